#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "cairn/types.h"

namespace cairn {

// A column of byte strings: one heap and size() + 1 ascending offsets into it, of 4 bytes each
// where the heap allows it, else 8. A view that owns nothing.
class BytesColumn {
 public:
  BytesColumn() = default;
  // Requires offsets[0] = 0, ascending, and offsets.back() at most the heap's size.
  BytesColumn(const char* heap, absl::Span<const uint32_t> offsets)
      : heap_(heap), offsets32_(offsets.data()), size_(offsets.size() - 1) {}
  BytesColumn(const char* heap, absl::Span<const uint64_t> offsets)
      : heap_(heap), offsets64_(offsets.data()), size_(offsets.size() - 1) {}

  size_t size() const { return size_; }
  std::string_view operator[](size_t i) const {
    return {heap_ + offset(i), static_cast<size_t>(offset(i + 1) - offset(i))};
  }

  // Offset in heap() of string i; offset(size()) is the end of the last one.
  uint64_t offset(size_t i) const { return offsets32_ != nullptr ? offsets32_[i] : offsets64_[i]; }
  const char* heap() const { return heap_; }
  // The offsets; the one that is not in use is null.
  const uint32_t* offsets32() const { return offsets32_; }
  const uint64_t* offsets64() const { return offsets64_; }

 private:
  const char* heap_ = nullptr;
  const uint32_t* offsets32_ = nullptr;
  const uint64_t* offsets64_ = nullptr;
  size_t size_ = 0;
};

// Entries (key, row id) in ascending (key, row id) order, columns apart: the unit that is
// bulk-loaded, stored and merged. Immutable; safe from any number of threads. A copy shares the
// memory, which a run keeps alive: heap arrays or a mapped file.
//
// Invariants: at most kMaxEntries entries; entries ascend strictly. The columns of fixed-width keys
// and of row ids start at a multiple of 64 bytes and are readable up to the next one behind their
// end, so that a search may load whole cache lines; what stands behind the end is unspecified.
class SortedRun {
 public:
  SortedRun() = default;  // no entries, 32-bit keys

  // Copies entries that are already in order. InvalidArgument, naming the position, where they are
  // not strictly ascending by (key, row id), where the columns' sizes differ, or beyond
  // kMaxEntries.
  static absl::StatusOr<SortedRun> FromSorted(absl::Span<const uint32_t> keys,
                                              absl::Span<const RowId> row_ids);
  static absl::StatusOr<SortedRun> FromSorted(absl::Span<const uint64_t> keys,
                                              absl::Span<const RowId> row_ids);
  static absl::StatusOr<SortedRun> FromSorted(absl::Span<const std::string_view> keys,
                                              absl::Span<const RowId> row_ids);

  // Copies entries that are in any order, and sorts them on `threads` threads (0: one per core that
  // this process may use). Where there are no row ids, keys[i] is of row i. Errors as FromSorted's:
  // InvalidArgument where an entry is there twice; and ResourceExhausted where memory does not
  // suffice for the sort, which takes 40 bytes an entry and keys of bytes once more.
  static absl::StatusOr<SortedRun> FromUnsorted(absl::Span<const uint32_t> keys,
                                                absl::Span<const RowId> row_ids = {},
                                                int threads = 0);
  static absl::StatusOr<SortedRun> FromUnsorted(absl::Span<const uint64_t> keys,
                                                absl::Span<const RowId> row_ids = {},
                                                int threads = 0);
  static absl::StatusOr<SortedRun> FromUnsorted(absl::Span<const std::string_view> keys,
                                                absl::Span<const RowId> row_ids = {},
                                                int threads = 0);

  // Wraps columns that satisfy the invariants, which are not checked; `owner` keeps them alive.
  static SortedRun Wrap(absl::Span<const uint32_t> keys, absl::Span<const RowId> row_ids,
                        std::shared_ptr<const void> owner);
  static SortedRun Wrap(absl::Span<const uint64_t> keys, absl::Span<const RowId> row_ids,
                        std::shared_ptr<const void> owner);
  static SortedRun Wrap(const BytesColumn& keys, absl::Span<const RowId> row_ids,
                        std::shared_ptr<const void> owner);

  // InvalidArgument, naming the position, unless the entries ascend strictly. Reads everything.
  absl::Status CheckOrder() const;

  PhysicalType kind() const { return kind_; }
  size_t size() const { return row_ids_.size(); }
  bool empty() const { return row_ids_.empty(); }

  // The columns; a key column requires that kind() be its keys'. Key is uint32_t or uint64_t.
  template <typename Key>
  absl::Span<const Key> keys() const {
    return {static_cast<const Key*>(keys_), size()};
  }
  absl::Span<const uint32_t> u32() const { return keys<uint32_t>(); }
  absl::Span<const uint64_t> u64() const { return keys<uint64_t>(); }
  const BytesColumn& bytes() const { return bytes_; }
  absl::Span<const RowId> row_ids() const { return row_ids_; }

  // Bytes of all columns.
  uint64_t memory_bytes() const;

 private:
  PhysicalType kind_ = PhysicalType::kU32;
  const void* keys_ = nullptr;
  BytesColumn bytes_;
  absl::Span<const RowId> row_ids_;
  std::shared_ptr<const void> owner_;
};

}  // namespace cairn
