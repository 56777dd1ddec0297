#pragma once

// Columns of integers of one type, converted to another numeric type.

#include <cstdint>
#include <string>
#include <vector>

#include "cairn/key_codec.h"

namespace cairn::python {

inline bool IsInteger(DataType type) {
  return type <= DataType::kI64;
}

// The integers of a column, copied as numbers of another type.
class ExactIntegers {
 public:
  // Requires integers in `from`, whose validity bitmap must outlive this, and a numeric type.
  // Throws InvalidArgument if `to` cannot represent an integer; the message begins with `where` and
  // has the position of the integer.
  ExactIntegers(const ColumnSpan& from, DataType to, const std::string& where);

  const ColumnSpan& part() const { return part_; }

 private:
  std::vector<uint64_t> numbers_;  // of any type, so aligned for all
  ColumnSpan part_;
};

}  // namespace cairn::python
