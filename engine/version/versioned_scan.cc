// The part of AnswerVersion that answers ranges.

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "engine/util/scan_cursor.h"
#include "engine/version/version_ranges.h"
#include "index/machine/prefetch.h"
#include "index/machine/status_macros.h"
#include "index/query/match_rows.h"

namespace cairn {
namespace {

// Ranges for whose rows and removed positions the cache is asked before they are read.
constexpr size_t kAhead = 16;

// Where the ranges of a batch lie in every run of a version.
class RangePlaces {
 public:
  // Throws std::bad_alloc.
  RangePlaces(const Delta& delta, size_t ranges)
      : delta_(delta), runs_(RunsOf(delta)), ranges_(ranges), ends_(2 * runs_.size() * ranges) {}

  absl::Status Find(absl::FunctionRef<absl::Status(const Batch&)> base, const Batch& batch,
                    const Parallelism& parallelism);
  // Has each range begin, or if descending end, at the cursor that ranges.after gives it.
  absl::Status GoOn(const RangeBatch& ranges, Order order);

  // The runs with the positions of range i.
  void Get(size_t i, std::vector<RunRange>* runs) const {
    *runs = runs_;
    for (size_t r = 0; r < runs_.size(); ++r) {
      (*runs)[r].begin = begin(r)[i];
      (*runs)[r].end = end(r)[i];
    }
  }
  // The entries of range i. Asks the cache for what a later one needs.
  uint64_t Count(size_t i) const {
    if (i + kAhead < ranges_) runs_[0].removed->Prefetch(begin(0)[i + kAhead]);
    uint64_t entries = 0;
    for (size_t r = 0; r < runs_.size(); ++r) {
      RunRange run = runs_[r];
      run.begin = begin(r)[i];
      run.end = end(r)[i];
      entries += run.entries();
    }
    return entries;
  }
  // Asks the cache for the first rows of range i in the base.
  void Prefetch(size_t i, Order order) const {
    cairn::Prefetch(runs_[0].rows + (order == Order::kAscending ? begin(0)[i] : end(0)[i]));
  }

 private:
  absl::Span<Position> begin(size_t run) { return {&ends_[2 * run * ranges_], ranges_}; }
  absl::Span<Position> end(size_t run) { return {&ends_[(2 * run + 1) * ranges_], ranges_}; }
  const Position* begin(size_t run) const { return ends_.data() + 2 * run * ranges_; }
  const Position* end(size_t run) const { return ends_.data() + (2 * run + 1) * ranges_; }

  const Delta& delta_;
  const std::vector<RunRange> runs_;
  const size_t ranges_;
  std::vector<Position> ends_;  // of each run, the ranges' begins and then their ends
};

absl::Status RangePlaces::Find(absl::FunctionRef<absl::Status(const Batch&)> base,
                               const Batch& batch, const Parallelism& parallelism) {
  if (ranges_ == 0) return absl::OkStatus();
  Batch positions = Batch::Positions(batch.ranges, begin(0), end(0));
  positions.options = batch.options;
  positions.explain = batch.explain;
  RETURN_IF_ERROR(base(positions));
  return ForEachSlice(ranges_, parallelism, [&](size_t first, size_t count) {
    const RangeBatch slice = batch.ranges.Slice(first, count);
    for (size_t r = 1; r < runs_.size(); ++r) {
      const OrderedIndex& index = delta_.parts[r - 1].segment->index();
      RETURN_IF_ERROR(index.Answer(
          Batch::Positions(slice, begin(r).subspan(first, count), end(r).subspan(first, count))));
    }
    return absl::OkStatus();
  });
}

template <typename Key>
Key KeyOf(const ScanCursor& cursor) {
  if constexpr (std::is_same_v<Key, std::string_view>) {
    return cursor.bytes;
  } else {
    return static_cast<Key>(cursor.number);
  }
}

absl::Status RangePlaces::GoOn(const RangeBatch& ranges, Order order) {
  std::vector<size_t> which;
  std::vector<ScanCursor> cursors;
  std::vector<std::string_view> primary_keys;
  for (size_t i = 0; i < ranges.after.size(); ++i) {
    if (ranges.after[i].empty()) continue;
    ASSIGN_OR_RETURN(ScanCursor cursor, ScanCursor::Decode(ranges.after[i], ranges.kind()));
    which.push_back(i);
    cursors.push_back(cursor);
    primary_keys.push_back(cursor.primary_key);
  }
  // The cursor's row may be gone, or the base another one: its place is what counts.
  std::vector<RowPlace> places(which.size());
  RETURN_IF_ERROR(delta_.base_rows.Places(primary_keys, absl::MakeSpan(places)));
  WithPhysicalKey(ranges.kind(), [&](auto type) {
    using Key = typename decltype(type)::type;
    for (size_t c = 0; c < which.size(); ++c) {
      const Key key = KeyOf<Key>(cursors[c]);
      for (size_t r = 0; r < runs_.size(); ++r) {
        const auto column = ColumnOf<Key>(*runs_[r].run);
        Position& from = begin(r)[which[c]];
        Position& to = end(r)[which[c]];
        // The first entry that is not before, or if ascending that is behind, the cursor's.
        Position first = from;
        for (Position last = to; first < last;) {
          const Position middle = first + (last - first) / 2;
          const Key at = column[middle];
          const auto by_row = [&] {
            return delta_.rows->Compare(runs_[r].rows[middle], places[c]);
          };
          const bool before = at != key                    ? at < key
                              : order == Order::kAscending ? by_row() <= 0
                                                           : by_row() < 0;
          (before ? first : last) = before ? middle + 1 : middle;
        }
        (order == Order::kAscending ? from : to) = first;
      }
    }
  });
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::string>> CursorsBehind(const Delta& delta,
                                                       absl::Span<const EntryPlace> entries) {
  std::vector<RowId> rows;
  for (const EntryPlace& entry : entries) {
    if (entry.run != nullptr) rows.push_back(entry.row);
  }
  PrimaryKeyColumn primary_keys;
  RETURN_IF_ERROR(delta.PrimaryKeys(rows, &primary_keys));
  std::vector<std::string> cursors(entries.size());
  size_t next = 0;
  for (size_t i = 0; i < entries.size(); ++i) {
    if (entries[i].run == nullptr) continue;
    ScanCursor cursor;
    cursor.kind = delta.base_run.kind();
    cursor.primary_key = primary_keys[next++];
    WithColumn(*entries[i].run, [&](const auto& column) {
      const auto key = column[entries[i].position];
      if constexpr (std::is_integral_v<std::remove_const_t<decltype(key)>>) {
        cursor.number = key;
      } else {
        cursor.bytes = key;
      }
    });
    cursors[i] = cursor.Encode();
  }
  return cursors;
}

absl::Status ScanRanges(const Delta& delta, RangePlaces* places, const Batch& batch,
                        const Parallelism& parallelism) {
  const RangeBatch& ranges = batch.ranges;
  const QueryOptions& options = batch.options;
  Matches* const matches = batch.matches;
  const size_t size = ranges.size();
  const bool in_pages = options.limit != QueryOptions().limit || !ranges.after.empty();
  RETURN_IF_ERROR(places->GoOn(ranges, options.order));

  RETURN_IF_ERROR(BeginMatches(ranges.kind(), size, matches));
  std::vector<EntryPlace> last(in_pages ? size : 0);  // of the ranges that go on
  if (in_pages) matches->cursors.resize(size);
  std::vector<uint8_t> goes_on(in_pages ? size : 0);
  for (size_t i = 0; i < size; ++i) {
    const uint64_t entries = places->Count(i);
    if (in_pages) goes_on[i] = entries > options.limit && options.limit > 0;
    matches->offsets[i + 1] = matches->offsets[i] + std::min(entries, options.limit);
  }
  matches->row_ids.resize(matches->offsets[size]);

  const auto fill = [&](size_t first, size_t count) {
    WithPhysicalKey(ranges.kind(), [&](auto type) {
      using Key = typename decltype(type)::type;
      std::vector<RunRange> runs;
      KeyColumn* const keys = options.with_keys ? &matches->keys : nullptr;
      for (size_t i = first; i < first + count; ++i) {
        if (i + kAhead < first + count) places->Prefetch(i + kAhead, options.order);
        places->Get(i, &runs);
        RangeMerge<Key> merge(*delta.rows, absl::MakeSpan(runs));
        const uint64_t rows = matches->offsets[i + 1] - matches->offsets[i];
        RowId* const out = matches->row_ids.data() + matches->offsets[i];
        const EntryPlace end = options.order == Order::kAscending ? merge.Ascend(rows, out, keys)
                                                                  : merge.Descend(rows, out, keys);
        if (in_pages && goes_on[i]) last[i] = end;
      }
    });
    return absl::OkStatus();
  };
  // Keys are appended, by one thread.
  absl::Status s = options.with_keys ? fill(0, size) : ForEachSlice(size, parallelism, fill);
  if (!s.ok() || !in_pages) return s;
  ASSIGN_OR_RETURN(std::vector<std::string> cursors, CursorsBehind(delta, last));
  matches->cursors = std::move(cursors);
  return absl::OkStatus();
}

}  // namespace

std::vector<RunRange> RunsOf(const Delta& delta) {
  std::vector<RunRange> runs;
  runs.push_back({&delta.base_run, delta.base_run.row_ids().data(), &delta.removed, 0, 0});
  for (const DeltaPart& part : delta.parts) {
    runs.push_back({&part.segment->run(), part.segment->rows().data(), &part.removed, 0, 0});
  }
  return runs;
}

absl::Status AnswerRanges(const Delta& delta, absl::FunctionRef<absl::Status(const Batch&)> base,
                          const Batch& batch, const Parallelism& parallelism) {
  const size_t size = batch.size();
  if (!batch.ranges.after.empty() && batch.ranges.after.size() != size) {
    return absl::InvalidArgumentError(
        absl::StrFormat("%d cursors for %d ranges", batch.ranges.after.size(), size));
  }
  RangePlaces places(delta, size);
  RETURN_IF_ERROR(places.Find(base, batch, parallelism));
  if (batch.operation == Operation::kScan) return ScanRanges(delta, &places, batch, parallelism);
  return ForEachSlice(size, parallelism, [&](size_t first, size_t count) {
    for (size_t i = first; i < first + count; ++i) batch.counts[i] = places.Count(i);
    return absl::OkStatus();
  });
}

}  // namespace cairn
