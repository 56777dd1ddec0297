#pragma once

// Single values from Python: numbers, text, bytes, None.

#include <nanobind/nanobind.h>

#include <string>
#include <vector>

#include "cairn/internal/arrow.h"
#include "cairn/key_codec.h"

namespace cairn::python {

namespace nb = nanobind;

// Whether an object is a single value: a number, str, bytes, None, or an array without dimensions.
bool IsValue(nb::handle object);

// Converts `object` to a value for a part of `type`. Text points into the object, which must
// outlive it. Throws KeyTypeError if it is not a value or has another kind; the message begins with
// `where`.
DataValue ValueOfPart(nb::handle object, DataType type, const std::string& where);

// Converts `object` to a value of its own type. As above, but ArgumentTypeError if it is not a
// value.
DataValue ValueOfAnyType(nb::handle object, const std::string& where);

// The values of one key: a tuple or list with one value per part, or fewer if `partial`; or a
// single value for its first part. Returns an object that keeps their text alive. Throws
// KeyTypeError.
[[nodiscard]] nb::object ValuesOfKey(nb::handle object, const KeyCodec& codec, bool partial,
                                     const std::string& where, std::vector<DataValue>* values);

}  // namespace cairn::python
