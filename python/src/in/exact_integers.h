#pragma once

// Columns of integers of one type as numbers of another.

#include <cstdint>
#include <string>
#include <vector>

#include "cairn/key_codec.h"

namespace cairn::python {

inline bool IsInteger(DataType type) {
  return type <= DataType::kI64;
}

// The integers of a column as numbers of another type, in a copy.
class ExactIntegers {
 public:
  // Requires integers in `from`, whose validity bitmap must outlive this, and a type of numbers.
  // Throws InvalidArgument, with the position, for an integer that the type does not have; `where`
  // begins the message.
  ExactIntegers(const ColumnSpan& from, DataType to, const std::string& where);

  const ColumnSpan& part() const { return part_; }

 private:
  std::vector<uint64_t> numbers_;  // of any type: aligned for all
  ColumnSpan part_;
};

}  // namespace cairn::python
