#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "cairn/internal/bytes_column.h"
#include "cairn/types.h"

namespace cairn {

// Entries (key, row id) in ascending (key, row id) order, stored as separate columns. A sorted run
// is the unit of bulk load, storage and compaction. Immutable and thread-safe. Copies share the
// memory, heap arrays or a mapped file, and keep it alive.
//
// Invariants: there are at most kMaxEntries entries, and they are strictly ascending. The columns
// of fixed-width keys and of row ids start at a multiple of 64 bytes. They are readable up to the
// next multiple of 64 bytes after their end, so that a search can load whole cache lines; those
// bytes are unspecified.
class SortedRun {
 public:
  SortedRun() = default;  // no entries, 32-bit keys

  // Copies sorted entries. Errors: InvalidArgument, naming the position, if the entries are not
  // strictly ascending by (key, row id), if the sizes of the columns differ, or if there are more
  // than kMaxEntries entries; ResourceExhausted if memory runs out.
  static absl::StatusOr<SortedRun> FromSorted(absl::Span<const uint32_t> keys,
                                              absl::Span<const RowId> row_ids);
  static absl::StatusOr<SortedRun> FromSorted(absl::Span<const uint64_t> keys,
                                              absl::Span<const RowId> row_ids);
  static absl::StatusOr<SortedRun> FromSorted(absl::Span<const std::string_view> keys,
                                              absl::Span<const RowId> row_ids);

  // Copies entries in any order and sorts them on `threads` threads (0: one per core available to
  // this process). Empty `row_ids`: keys[i] is of row i. Errors: InvalidArgument if the sizes of
  // the columns differ, if an entry occurs twice, or if there are more than kMaxEntries entries.
  // InvalidArgument for a row id of kNoRow and for a key longer than KeyCodec::kMaxKeyBytes.
  // ResourceExhausted if memory runs out. Sorting takes 40 bytes per entry, and another copy of
  // byte-string keys.
  static absl::StatusOr<SortedRun> FromUnsorted(absl::Span<const uint32_t> keys,
                                                absl::Span<const RowId> row_ids = {},
                                                int threads = 0);
  static absl::StatusOr<SortedRun> FromUnsorted(absl::Span<const uint64_t> keys,
                                                absl::Span<const RowId> row_ids = {},
                                                int threads = 0);
  static absl::StatusOr<SortedRun> FromUnsorted(absl::Span<const std::string_view> keys,
                                                absl::Span<const RowId> row_ids = {},
                                                int threads = 0);

  // Refers to columns without a copy. The columns must satisfy the invariants, which are not
  // checked. `owner` keeps them alive.
  static SortedRun Wrap(absl::Span<const uint32_t> keys, absl::Span<const RowId> row_ids,
                        std::shared_ptr<const void> owner);
  static SortedRun Wrap(absl::Span<const uint64_t> keys, absl::Span<const RowId> row_ids,
                        std::shared_ptr<const void> owner);
  static SortedRun Wrap(const BytesColumn& keys, absl::Span<const RowId> row_ids,
                        std::shared_ptr<const void> owner);

  // Checks that the entries are strictly ascending; reads all of them. InvalidArgument, naming the
  // position, if they are not.
  absl::Status CheckOrder() const;

  // Return the physical type of the keys, and the number of entries.
  PhysicalType kind() const { return kind_; }
  size_t size() const { return row_ids_.size(); }
  bool empty() const { return row_ids_.empty(); }

  // The columns. Requires kind() to match the method. Key is uint32_t or uint64_t.
  template <typename Key>
  absl::Span<const Key> keys() const {
    return {static_cast<const Key*>(keys_), size()};
  }
  absl::Span<const uint32_t> u32() const { return keys<uint32_t>(); }
  absl::Span<const uint64_t> u64() const { return keys<uint64_t>(); }
  const BytesColumn& bytes() const { return bytes_; }
  absl::Span<const RowId> row_ids() const { return row_ids_; }

  // Returns the bytes of all columns.
  uint64_t memory_bytes() const;

 private:
  PhysicalType kind_ = PhysicalType::kU32;
  const void* keys_ = nullptr;
  BytesColumn bytes_;
  absl::Span<const RowId> row_ids_;
  std::shared_ptr<const void> owner_;
};

}  // namespace cairn
