#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/types/span.h"
#include "cairn/column.h"

namespace cairn {

// The distinct values of a column of text or bytes, while it is written. A block is stored as codes
// if all its values are in the dictionary. The dictionary takes values while that pays, and gives
// up for good if they hardly repeat. Not thread-safe. Throws std::bad_alloc.
class ColumnDictionary {
 public:
  // The maximum number of values, and of their bytes in total.
  static constexpr uint32_t kMaxValues = 1 << 16;
  static constexpr size_t kMaxBytes = size_t{4} << 20;

  // Sets the codes of values [first, first + count), 0 for a null, and adds new values, if that
  // takes fewer bytes than the `plain_bytes` of the block without the dictionary. Half of the new
  // values' bytes are charged to this block, the rest to later ones. Otherwise returns false, and
  // nothing has changed.
  bool Encode(const ColumnValues& values, size_t first, size_t count, uint64_t plain_bytes,
              uint64_t* codes);

  uint32_t size() const { return static_cast<uint32_t>(ends_.size()); }
  // The end of each value in the heap.
  absl::Span<const uint32_t> ends() const { return ends_; }
  std::string_view heap() const { return heap_; }

 private:
  std::string_view value(uint32_t code) const;
  bool FindOrAdd(std::string_view value, uint32_t* code);
  bool FindAll(const ColumnValues& values, size_t first, size_t count, uint64_t* codes);
  size_t SlotOf(std::string_view value, uint32_t hash) const;
  void Grow();
  void RemoveFrom(uint32_t size);
  bool Refuse();
  bool HardlyRepeats() const;

  std::vector<uint32_t> slots_;   // 0, or code + 1; linear probing
  std::vector<uint32_t> hashes_;  // by code
  std::vector<uint32_t> ends_;
  std::string heap_;
  uint64_t rows_ = 0;     // rows stored as codes
  uint32_t refused_ = 0;  // consecutive blocks that were smaller without the dictionary
  bool closed_ = false;
};

}  // namespace cairn
