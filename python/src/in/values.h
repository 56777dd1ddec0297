#pragma once

// Single values from Python: numbers, text, bytes, None.

#include <nanobind/nanobind.h>

#include <string>
#include <vector>

#include "cairn/key_codec.h"

namespace cairn::python {

namespace nb = nanobind;

// Whether parts of `type` are strings.
inline bool IsText(DataType type) {
  return type == DataType::kText || type == DataType::kBytes;
}

// Whether an object is one value, rather than several: a number, str, bytes, None, or an array of
// no dimensions.
bool IsValue(nb::handle object);

// `object` as a value for a part of `type`. Text points into the object, which must outlive it.
// Throws KeyTypeError where it is no value or of another kind; `where` begins the message.
DataValue ValueOfPart(nb::handle object, DataType type, const std::string& where);

// `object` as a value of its own type. As above otherwise; ArgumentTypeError for what is no value.
DataValue ValueOfAnyType(nb::handle object, const std::string& where);

// The values of one key: a tuple or list of one value a part, or of fewer where `partial`; or one
// value, for its first part. Returns what keeps their text alive. Throws KeyTypeError.
[[nodiscard]] nb::object ValuesOfKey(nb::handle object, const KeyCodec& codec, bool partial,
                                     const std::string& where, std::vector<DataValue>* values);

}  // namespace cairn::python
