#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "cairn/ordered_index.h"
#include "cairn/query.h"
#include "cairn/sorted_run.h"
#include "cairn/types.h"
#include "cpu_fast/simd/slotted_array.h"
#include "engine/delta/delta_rows.h"
#include "engine/delta/key_slots.h"
#include "engine/delta/position_set.h"
#include "index/machine/mutex.h"
#include "index/query/sorted_array.h"

namespace cairn {

// Key is uint32_t, uint64_t or std::string_view.
template <typename Key>
struct DeltaEntry {
  Key key;
  RowId row;
  // The number of base entries before it in (key, primary key) order, including removed ones.
  Position place = 0;
};

// Entries of a delta in (key, primary key) order, with the structures that find them. Immutable;
// every method is safe from any number of threads.
//
// Within one key the row ids need not ascend, because new rows have ids in the order of arrival. In
// this respect a segment's run differs from other sorted runs.
class DeltaSegment {
 public:
  // Copies `entries`, which must be in order; the base has `base_entries` entries. The rows have
  // the tuples (DeltaTuples) before `end_tuple`. Throws std::bad_alloc.
  template <typename Key>
  static absl::StatusOr<std::shared_ptr<const DeltaSegment>> Build(
      absl::Span<const DeltaEntry<Key>> entries, uint64_t base_entries, uint32_t end_tuple = 0);

  size_t size() const { return run().size(); }
  const SortedRun& run() const { return index_.run(); }
  absl::Span<const RowId> rows() const { return run().row_ids(); }
  const OrderedIndex& index() const { return index_; }
  // The entries' places among the base's entries (DeltaEntry). They never change. So a merge of a
  // segment with its base compares numbers instead of keys, and a position in the base leads to one
  // here without a search for its key.
  const SlottedArray& places() const { return places_; }
  // The end of the tuples when the segment was built. An entry exists only while its row has the
  // tuple of that time, so the values of a segment's entries never change.
  uint32_t end_tuple() const { return end_tuple_; }
  uint64_t memory_bytes() const;

  // The entries by row: row id in the high half, position in the low half, ascending. The first
  // call makes this array, and the segment keeps it: 8 bytes per entry. Throws std::bad_alloc.
  absl::Span<const uint64_t> ByRow() const;
  // The rows that the base lacks, in primary-key order, each once. `rows` has them. The first call
  // makes this array, and the segment keeps it: 4 bytes per row. Throws std::bad_alloc.
  absl::Span<const RowId> NewRows(const DeltaRows& rows) const;
  // The part of ByRow for one row.
  static absl::Span<const uint64_t> OfRow(absl::Span<const uint64_t> by_row, RowId row) {
    const auto end = by_row.end();
    const auto first = std::lower_bound(by_row.begin(), end, uint64_t{row} << 32);
    auto last = first;
    while (last != end && *last >> 32 == row) ++last;
    return by_row.subspan(static_cast<size_t>(first - by_row.begin()),
                          static_cast<size_t>(last - first));
  }

  static constexpr Position kNone = KeySlots::kNone;
  // Prefetches the cache lines that FindFirst reads for keys with these hashes (KeyFilter::Hash).
  void Prefetch(absl::Span<const uint64_t> hashes) const {
    if (has_slots_) {
      for (uint64_t hash : hashes) slots_.Prefetch(hash);
    }
  }
  // Sets first[i] to the position of the first entry with keys[i], or to kNone. Prefetches its row
  // id.
  template <typename Key>
  absl::Status FindFirst(absl::Span<const Key> keys, absl::Span<const uint64_t> hashes,
                         absl::Span<Position> first) const;

 private:
  DeltaSegment(SortedRun run, KeySlots slots, bool has_slots, SlottedArray places,
               uint32_t end_tuple)
      : index_(std::move(run)),
        slots_(std::move(slots)),
        has_slots_(has_slots),
        places_(std::move(places)),
        end_tuple_(end_tuple) {}

  SortedArray index_;
  KeySlots slots_;
  bool has_slots_;  // false if too many keys have colliding hashes
  SlottedArray places_;
  mutable Mutex by_row_mutex_;
  mutable std::unique_ptr<const std::vector<uint64_t>> by_row_ ABSL_GUARDED_BY(by_row_mutex_);
  mutable std::unique_ptr<const std::vector<RowId>> new_rows_ ABSL_GUARDED_BY(by_row_mutex_);
  uint32_t end_tuple_;
};

// Makes a search structure over a run of any kind that is cheap to build. Errors: those of
// MakeFastTree and StringSearch. Throws std::bad_alloc.
absl::StatusOr<std::unique_ptr<OrderedIndex>> MakeCheapIndex(SortedRun run);

// A segment as seen by one version.
struct DeltaPart {
  std::shared_ptr<const DeltaSegment> segment;
  PositionSet removed;  // positions of entries that no longer exist

  uint64_t entries() const { return segment->size() - removed.size(); }
};

// Merges the remaining entries of `part` into `entries`, which are in order. Byte-string keys are
// views into the segment. Throws std::bad_alloc.
template <typename Key>
void MergePart(const DeltaPart& part, const DeltaRows& rows, std::vector<DeltaEntry<Key>>* entries);

}  // namespace cairn
