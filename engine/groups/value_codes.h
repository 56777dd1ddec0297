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

// Numbers the distinct values of a column, including null, from 0, in the order of their first use.
// Equality is that of keys: all NaNs are equal, -0 and 0 are not. Throws std::bad_alloc; afterwards
// the object must not be used.
class ValueCodes {
 public:
  explicit ValueCodes(DataType type) : values_(type) {}

  // Sets codes[i] to the number of value i of a column of this type. Requires that both have the
  // same length.
  void Add(const ColumnValues& column, absl::Span<uint32_t> codes);

  // Value i has number i.
  const ColumnValues& values() const { return values_; }

 private:
  static constexpr uint32_t kNone = UINT32_MAX;

  template <typename T>
  void AddNumbers(const ColumnValues& column, absl::Span<uint32_t> codes);
  void AddBytes(const ColumnValues& column, absl::Span<uint32_t> codes);
  uint32_t CodeOfNull();

  ColumnValues values_;
  uint32_t null_ = kNone;
  std::vector<uint32_t> narrow_;                  // number of each value of one or two bytes
  absl::flat_hash_map<uint64_t, uint32_t> wide_;  // numbers of wider values, by their bits
  absl::flat_hash_map<std::string_view, uint32_t> texts_;
  std::deque<std::string> owned_;  // stores the keys of texts_
};

}  // namespace cairn
