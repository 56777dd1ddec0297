#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/types/span.h"
#include "cairn/column.h"

namespace cairn {

// Numbers the different values of a column from 0 on, as they come; null is one of them. Values
// are equal as keys are: every NaN is, -0 and 0 are not. Throws std::bad_alloc, and is of no use
// then.
class ValueCodes {
 public:
  explicit ValueCodes(DataType type) : values_(type) {}

  // Sets codes[i] to the number of value i of a column of the type; the two are of one length.
  void Add(const ColumnValues& column, absl::Span<uint32_t> codes);

  // Value i is that of number i.
  const ColumnValues& values() const { return values_; }

 private:
  static constexpr uint32_t kNone = UINT32_MAX;

  template <typename T>
  void AddNumbers(const ColumnValues& column, absl::Span<uint32_t> codes);
  void AddBytes(const ColumnValues& column, absl::Span<uint32_t> codes);
  uint32_t CodeOfNull();

  ColumnValues values_;
  uint32_t null_ = kNone;
  std::vector<uint32_t> narrow_;                  // of numbers of one byte or two, by value
  absl::flat_hash_map<uint64_t, uint32_t> wide_;  // of the others, by their bits
  absl::flat_hash_map<std::string_view, uint32_t> texts_;
  std::deque<std::string> owned_;  // the keys of texts_
};

}  // namespace cairn
