#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "absl/container/fixed_array.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "cairn/query.h"
#include "cairn/types.h"
#include "engine/delta/delta.h"
#include "engine/util/scan_cursor.h"
#include "engine/version/version_ranges.h"
#include "index/query/physical_key.h"
#include "index/run/gallop.h"

namespace cairn {

// The positions after which ranges of a batch with cursors continue (RangeBatch::after).
struct RangeCursors {
  std::vector<size_t> ranges;  // ascending
  std::vector<ScanCursor> cursors;
  std::vector<RowPlace> places;  // of the cursors' rows among the base's

  // `index` is as for AnswerVersion. Errors: InvalidArgument if a cursor is invalid or belongs to
  // another scan; DataLoss.
  static absl::StatusOr<RangeCursors> Of(const Delta& delta, const RangeBatch& ranges, Order order,
                                         uint64_t index);
};

// Some ranges of a batch, and their positions in every run of a version. The base has found them in
// its own run. From there, the places of the parts' entries (DeltaEntry) lead to their positions in
// the parts, except for entries at a range's very end, whose keys are compared. Key is as
// RangeMerge's. One object serves one thread.
template <typename Key>
class RangeChunk {
 public:
  // For up to `most` ranges at a time. Throws std::bad_alloc.
  RangeChunk(const Delta& delta, const RangeBatch& ranges, size_t most)
      : delta_(delta),
        ranges_(ranges),
        runs_(RunsOf(delta)),
        most_(most),
        ends_(2 * runs_.size() * most),
        removed_(delta.removed_positions == nullptr ? 0 : 2 * most),
        equal_(most) {}

  // Takes the ranges from `first` on, one per element of `begin`; range i has the positions
  // [begin[i], end[i]) in the base.
  void Take(size_t first, absl::Span<const Position> begin, absl::Span<const Position> end);
  // Makes each range begin (if descending: end) at its cursor.
  void GoOn(const RangeCursors& cursors, Order order);

  // The number of entries of the i-th range taken.
  uint64_t Count(size_t i) const {
    uint64_t entries = end(0)[i] - begin(0)[i] - Removed(i);
    for (size_t r = 1; r < runs_.size(); ++r) {
      const uint64_t from = begin(r)[i], to = end(r)[i];
      entries += to - from - runs_[r].removed->Count(from, to);
    }
    return entries;
  }
  // The number of the base's entries in the i-th range taken that are removed.
  uint64_t Removed(size_t i) const {
    if (delta_.removed_positions == nullptr) return runs_[0].removed->Count(begin(0)[i], end(0)[i]);
    return removed_[most_ + i] - removed_[i];
  }
  // The runs with the positions of the i-th range taken.
  absl::Span<RunRange> Get(size_t i) {
    for (size_t r = 0; r < runs_.size(); ++r) {
      runs_[r].begin = begin(r)[i];
      runs_[r].end = end(r)[i];
    }
    if (delta_.removed_positions != nullptr) {
      runs_[0].removed_positions = delta_.removed_positions.get();
      runs_[0].removed_begin = removed_[i];
      runs_[0].removed_end = removed_[most_ + i];
    }
    return absl::MakeSpan(runs_);
  }
  // Prefetches the data that a scan of the i-th range taken, of up to `limit` rows, reads first;
  // does nothing if there is no such range.
  void PrefetchRows(size_t i, Order order, uint64_t limit) const;

 private:
  void FindInPart(size_t run);
  // For `count` ranges taken, from the i-th on.
  void FindRemoved(size_t i, size_t count);
  // Return whether a key is below the lower end of range i; and whether it is below the upper end,
  // or the range has no upper end.
  bool BelowLower(size_t i, const Key& key) const;
  bool BelowUpper(size_t i, const Key& key) const;

  Position* begin(size_t run) { return ends_.data() + 2 * run * most_; }
  Position* end(size_t run) { return ends_.data() + (2 * run + 1) * most_; }
  const Position* begin(size_t run) const { return ends_.data() + 2 * run * most_; }
  const Position* end(size_t run) const { return ends_.data() + (2 * run + 1) * most_; }

  const Delta& delta_;
  const RangeBatch& ranges_;
  Runs runs_;
  const size_t most_;
  size_t first_ = 0;  // among the ranges taken
  size_t count_ = 0;
  absl::FixedArray<Position, 512> ends_;  // of each run: the ranges' begins and then their ends
  // For a compact delta: the number of removed base entries before the ranges' begins, and then
  // before their ends.
  absl::FixedArray<Position, 512> removed_;
  absl::FixedArray<uint32_t, 64> equal_;  // scratch
};

extern template class RangeChunk<uint32_t>;
extern template class RangeChunk<uint64_t>;
extern template class RangeChunk<std::string_view>;

}  // namespace cairn
