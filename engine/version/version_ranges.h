#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

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

// The entries of one range in one run of a version, the base's or a part's: those at positions
// [begin, end) that are not removed.
struct RunRange {
  const SortedRun* run;
  const RowId* rows;
  const PositionSet* removed;
  const SlottedArray* places;  // null for the base
  uint64_t begin;
  uint64_t end;
  // For the base, if the delta is compact: the positions of removed entries; numbers
  // [removed_begin, removed_end) are in the range. If null, `removed` must be read.
  const SlottedArray* removed_positions = nullptr;
  uint64_t removed_begin = 0;
  uint64_t removed_end = 0;

  uint64_t entries() const { return end - begin - removed->Count(begin, end); }
};

// The base's run, then those of the parts.
using Runs = absl::InlinedVector<RunRange, 6>;

// The runs of a version, without positions.
Runs RunsOf(const Delta& delta);

// The part of AnswerVersion for checked ranges.
absl::Status AnswerRanges(const Delta& delta, absl::FunctionRef<absl::Status(const Batch&)> base,
                          const Batch& batch, const Parallelism& parallelism, uint64_t index);

// An entry of a version: its position in its run, and its row.
struct EntryPlace {
  const SortedRun* run = nullptr;
  uint64_t position = 0;
  RowId row = kNoRow;
};

// Copies the rows of a run's entries [from, to) to `out`, which has room up to `end`, and returns
// the end of the copy. For short stretches of any length: whole cache lines are copied if there is
// room, since copies of varying exact lengths stall.
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
  // `runs` must be from RunsOf, with the positions of one range.
  RangeMerge(const DeltaRows& rows, absl::Span<RunRange> runs)
      : rows_(rows), base_(runs[0]), parts_(runs.subspan(1)) {}

  // Writes the rows of the first `limit` entries, which must exist, to `out`, and appends their
  // keys to `keys` unless that is null. Returns the last entry. Advances the runs' positions.
  EntryPlace Ascend(uint64_t limit, RowId* out, EncodedKeys* keys);
  // As Ascend, from the last entry on.
  EntryPlace Descend(uint64_t limit, RowId* out, EncodedKeys* keys);

 private:
  using Column = decltype(ColumnOf<Key>(SortedRun()));

  // Compares entries of two parts.
  bool Less(const RunRange& a, uint64_t i, const RunRange& b, uint64_t j) const {
    const Position before_a = (*a.places)[i], before_b = (*b.places)[j];
    if (before_a != before_b) return before_a < before_b;
    const Key x = ColumnOf<Key>(*a.run)[i], y = ColumnOf<Key>(*b.run)[j];
    if (x != y) return x < y;
    return rows_.Less(a.rows[i], b.rows[j]);
  }

  // The next existing entries of the base: up to `most` of those in [base_.begin, stop), or the
  // last ones in [stop, base_.end). Returns their positions; the base advances to them.
  std::pair<uint64_t, uint64_t> NextOfBase(uint64_t stop, uint64_t most);
  std::pair<uint64_t, uint64_t> LastOfBase(uint64_t stop, uint64_t most);

  const DeltaRows& rows_;
  RunRange& base_;
  absl::Span<RunRange> parts_;
};

template <typename Key>
std::pair<uint64_t, uint64_t> RangeMerge<Key>::NextOfBase(uint64_t stop, uint64_t most) {
  if (base_.removed_positions == nullptr) {
    const uint64_t from = base_.removed->FirstAbsent(base_.begin, stop);
    return {from, base_.removed->FirstMember(from, std::min(stop, from + most))};
  }
  for (;; ++base_.removed_begin, ++base_.begin) {
    const uint64_t next = base_.removed_begin < base_.removed_end
                              ? (*base_.removed_positions)[base_.removed_begin]
                              : stop;
    if (next > base_.begin || base_.begin >= stop) {
      return {base_.begin, std::min({stop, next, base_.begin + most})};
    }
  }
}

template <typename Key>
std::pair<uint64_t, uint64_t> RangeMerge<Key>::LastOfBase(uint64_t stop, uint64_t most) {
  if (base_.removed_positions == nullptr) {
    const uint64_t to = base_.removed->BehindLastAbsent(stop, base_.end);
    return {base_.removed->BehindLastMember(to - stop > most ? to - most : stop, to), to};
  }
  for (;; --base_.removed_end, --base_.end) {
    const uint64_t behind_last =
        base_.removed_begin < base_.removed_end
            ? (*base_.removed_positions)[base_.removed_end - 1] + uint64_t{1}
            : stop;
    if (behind_last < base_.end || base_.end <= stop) {
      const uint64_t from = std::max(stop, behind_last);
      return {base_.end - from > most ? base_.end - most : from, base_.end};
    }
  }
}

template <typename Key>
EntryPlace RangeMerge<Key>::Ascend(uint64_t limit, RowId* out, EncodedKeys* keys) {
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
    // The base's entries before it.
    const uint64_t stop = least == nullptr
                              ? base_.end
                              : std::min<uint64_t>(base_.end, (*least->places)[least->begin]);
    while (base_.begin < stop && out < out_end) {
      const auto [from, to] = NextOfBase(stop, static_cast<uint64_t>(out_end - out));
      base_.begin = to;
      if (from == to) continue;
      out = CopyRows(base_, from, to, out, out_end);
      append_keys(base_, from, to);
    }
    if (least == nullptr || out == out_end) break;
    *out++ = least->rows[least->begin];
    append_keys(*least, least->begin, least->begin + 1);
    least->begin = least->removed->FirstAbsent(least->begin + 1, least->end);
  }
  return last;
}

template <typename Key>
EntryPlace RangeMerge<Key>::Descend(uint64_t limit, RowId* out, EncodedKeys* keys) {
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
    // The base's entries after it.
    const uint64_t stop =
        greatest == nullptr
            ? base_.begin
            : std::max<uint64_t>(base_.begin, (*greatest->places)[greatest->end - 1]);
    while (base_.end > stop && out < out_end) {
      const auto [from, to] = LastOfBase(stop, static_cast<uint64_t>(out_end - out));
      base_.end = from;
      if (from == to) continue;
      out = std::reverse_copy(base_.rows + from, base_.rows + to, out);
      append_keys(base_, from, to);
    }
    if (greatest == nullptr || out == out_end) break;
    *out++ = greatest->rows[greatest->end - 1];
    append_keys(*greatest, greatest->end - 1, greatest->end);
    greatest->end = greatest->removed->BehindLastAbsent(greatest->begin, greatest->end - 1);
  }
  return last;
}

}  // namespace cairn
