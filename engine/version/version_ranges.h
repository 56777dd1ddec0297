#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "absl/container/inlined_vector.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/types/span.h"
#include "cairn/query.h"
#include "cairn/types.h"
#include "cpu_fast/batch/parallel_batch.h"
#include "engine/delta/delta.h"
#include "index/query/physical_key.h"

namespace cairn {

// What one run of a version, the base's or a part's, has for one range: entries at positions
// [begin, end) without those removed.
struct RunRange {
  const SortedRun* run;
  const RowId* rows;
  const PositionSet* removed;
  const SlottedArray* places;  // null of the base
  uint64_t begin;
  uint64_t end;

  uint64_t entries() const { return end - begin - removed->Count(begin, end); }
};

// The base's run, then those of the parts.
using Runs = absl::InlinedVector<RunRange, 6>;

// The runs of a version, without positions.
Runs RunsOf(const Delta& delta);

// The part of AnswerVersion that answers ranges, which have been checked.
absl::Status AnswerRanges(const Delta& delta, absl::FunctionRef<absl::Status(const Batch&)> base,
                          const Batch& batch, const Parallelism& parallelism);

// An entry of a version: its position in the run that has its key, and its row.
struct EntryPlace {
  const SortedRun* run = nullptr;
  uint64_t position = 0;
  RowId row = kNoRow;
};

// Copies the rows of a run's entries [from, to) to `out`, which has room up to `end`, and returns
// where they end there. Short stretches of any length: whole lines are copied where there is room
// for them, since a length that is another each time is what a copy of its own waits for.
inline RowId* CopyRows(const RunRange& run, uint64_t from, uint64_t to, RowId* out, RowId* end) {
  constexpr uint64_t kLine = 16;
  RowId* const behind = out + (to - from);
  if (behind + kLine > end || to + kLine > run.run->size() || to - from > 16 * kLine) {
    return std::copy(run.rows + from, run.rows + to, out);
  }
  for (; from < to; from += kLine, out += kLine) {
    std::memcpy(out, run.rows + from, kLine * sizeof(RowId));
  }
  return behind;
}

// Merges the runs' entries of one range in (key, primary key) order or its reverse. Key is
// uint32_t, uint64_t or std::string_view.
template <typename Key>
class RangeMerge {
 public:
  // `runs` is of RunsOf, with the positions of one range.
  RangeMerge(const DeltaRows& rows, absl::Span<RunRange> runs)
      : rows_(rows), base_(runs[0]), parts_(runs.subspan(1)) {}

  // Writes the rows of the first `limit` entries, which must be there, to `out`, and appends their
  // keys to `keys` unless that is null. Returns the last entry. The runs' positions move on.
  EntryPlace Ascend(uint64_t limit, RowId* out, KeyColumn* keys);
  // The same from the last entry on.
  EntryPlace Descend(uint64_t limit, RowId* out, KeyColumn* keys);

 private:
  using Column = decltype(ColumnOf<Key>(SortedRun()));

  // Of entries of two parts.
  bool Less(const RunRange& a, uint64_t i, const RunRange& b, uint64_t j) const {
    const Position before_a = (*a.places)[i], before_b = (*b.places)[j];
    if (before_a != before_b) return before_a < before_b;
    const Key x = ColumnOf<Key>(*a.run)[i], y = ColumnOf<Key>(*b.run)[j];
    if (x != y) return x < y;
    return rows_.Less(a.rows[i], b.rows[j]);
  }

  const DeltaRows& rows_;
  RunRange& base_;
  absl::Span<RunRange> parts_;
};

template <typename Key>
EntryPlace RangeMerge<Key>::Ascend(uint64_t limit, RowId* out, KeyColumn* keys) {
  EntryPlace last;
  RowId* const out_end = out + limit;
  const auto append_keys = [&](const RunRange& run, uint64_t from, uint64_t to) {
    last = {run.run, to - 1, run.rows[to - 1]};
    if (keys == nullptr) return;
    const Column column = ColumnOf<Key>(*run.run);
    for (uint64_t p = from; p < to; ++p) column.Append(p, keys);
  };
  for (RunRange& part : parts_) part.begin = part.removed->FirstAbsent(part.begin, part.end);
  while (out < out_end) {
    RunRange* least = nullptr;
    for (RunRange& part : parts_) {
      if (part.begin == part.end) continue;
      if (least == nullptr || Less(part, part.begin, *least, least->begin)) least = &part;
    }
    // What the base has before it.
    const uint64_t stop = least == nullptr
                              ? base_.end
                              : std::min<uint64_t>(base_.end, (*least->places)[least->begin]);
    while (base_.begin < stop && out < out_end) {
      const uint64_t from = base_.removed->FirstAbsent(base_.begin, stop);
      base_.begin = base_.removed->FirstMember(
          from, std::min(stop, from + static_cast<uint64_t>(out_end - out)));
      if (from == base_.begin) continue;
      out = CopyRows(base_, from, base_.begin, out, out_end);
      append_keys(base_, from, base_.begin);
    }
    if (least == nullptr || out == out_end) break;
    *out++ = least->rows[least->begin];
    append_keys(*least, least->begin, least->begin + 1);
    least->begin = least->removed->FirstAbsent(least->begin + 1, least->end);
  }
  return last;
}

template <typename Key>
EntryPlace RangeMerge<Key>::Descend(uint64_t limit, RowId* out, KeyColumn* keys) {
  EntryPlace last;
  RowId* const out_end = out + limit;
  const auto append_keys = [&](const RunRange& run, uint64_t from, uint64_t to) {
    last = {run.run, from, run.rows[from]};
    if (keys == nullptr) return;
    const Column column = ColumnOf<Key>(*run.run);
    for (uint64_t p = to; p-- > from;) column.Append(p, keys);
  };
  for (RunRange& part : parts_) part.end = part.removed->BehindLastAbsent(part.begin, part.end);
  while (out < out_end) {
    RunRange* greatest = nullptr;
    for (RunRange& part : parts_) {
      if (part.begin == part.end) continue;
      if (greatest == nullptr || Less(*greatest, greatest->end - 1, part, part.end - 1)) {
        greatest = &part;
      }
    }
    // What the base has behind it.
    const uint64_t stop =
        greatest == nullptr
            ? base_.begin
            : std::max<uint64_t>(base_.begin, (*greatest->places)[greatest->end - 1]);
    while (base_.end > stop && out < out_end) {
      const uint64_t to = base_.removed->BehindLastAbsent(stop, base_.end);
      const auto left = static_cast<uint64_t>(out_end - out);
      base_.end = base_.removed->BehindLastMember(to - stop > left ? to - left : stop, to);
      if (to == base_.end) continue;
      out = std::reverse_copy(base_.rows + base_.end, base_.rows + to, out);
      append_keys(base_, base_.end, to);
    }
    if (greatest == nullptr || out == out_end) break;
    *out++ = greatest->rows[greatest->end - 1];
    append_keys(*greatest, greatest->end - 1, greatest->end);
    greatest->end = greatest->removed->BehindLastAbsent(greatest->begin, greatest->end - 1);
  }
  return last;
}

}  // namespace cairn
