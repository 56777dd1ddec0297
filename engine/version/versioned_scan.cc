// The part of AnswerVersion for ranges.

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/fixed_array.h"
#include "absl/strings/str_format.h"
#include "engine/util/scan_cursor.h"
#include "engine/version/range_chunk.h"
#include "engine/version/version_ranges.h"
#include "index/machine/status_macros.h"
#include "index/machine/stop_flag.h"
#include "index/query/match_rows.h"
#include "index/run/run_columns.h"

namespace cairn {
namespace {

// Entries of a range that are merged between two checks of the stop condition.
constexpr uint64_t kMergedTogether = uint64_t{1} << 18;

// Ranges whose rows are prefetched while another one is merged.
constexpr size_t kAhead = 8;

// The positions of a batch's ranges in the base.
struct BasePositions {
  explicit BasePositions(size_t ranges) : begin(ranges), end(ranges) {}

  absl::Status Find(absl::FunctionRef<absl::Status(const Batch&)> base, const Batch& batch) {
    if (batch.empty()) return absl::OkStatus();
    Batch positions = Batch::Positions(batch.ranges, absl::MakeSpan(begin), absl::MakeSpan(end));
    positions.options = batch.options;
    positions.explain = batch.explain;
    return base(positions);
  }

  absl::FixedArray<Position, 256> begin, end;
};

// Calls body(chunk, first, count) for the ranges from `first` on, some at a time.
// Returns the error of `stop` once it has one.
template <typename Key, typename Body>
absl::Status ForEachChunk(const Delta& delta, const RangeBatch& ranges, const BasePositions& base,
                          size_t first, size_t count, const StopCondition& stop, Body body) {
  const size_t most = std::min(count, kQueryChunk);
  RangeChunk<Key> chunk(delta, ranges, most);
  for (size_t at = first; at < first + count; at += most) {
    RETURN_IF_ERROR(stop.Check());
    const size_t some = std::min(most, first + count - at);
    chunk.Take(at, absl::MakeConstSpan(base.begin).subspan(at, some),
               absl::MakeConstSpan(base.end).subspan(at, some));
    RETURN_IF_ERROR(body(&chunk, at, some));
  }
  return absl::OkStatus();
}

absl::Status CountRanges(const Delta& delta, const BasePositions& base, const Batch& batch,
                         const Parallelism& parallelism) {
  return ForEachSlice(batch.size(), parallelism, [&](size_t first, size_t count) {
    return WithPhysicalKey(batch.ranges.kind(), [&](auto type) {
      using Key = typename decltype(type)::type;
      return ForEachChunk<Key>(delta, batch.ranges, base, first, count, parallelism.stop,
                               [&](RangeChunk<Key>* chunk, size_t at, size_t some) {
                                 for (size_t i = 0; i < some; ++i)
                                   batch.counts[at + i] = chunk->Count(i);
                                 return absl::OkStatus();
                               });
    });
  });
}

// Returns the cursors of the ranges that have more entries after these.
absl::StatusOr<std::vector<std::string>> CursorsAfter(const Delta& delta,
                                                      absl::Span<const EntryPlace> entries,
                                                      const Batch& batch, uint64_t index) {
  std::vector<RowId> rows;
  for (const EntryPlace& entry : entries) {
    if (entry.run != nullptr) rows.push_back(entry.row);
  }
  StringList primary_keys;
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
    cursors[i] = cursor.EncodeFor(CursorTag::OfScan(index, batch.ranges, i, batch.options.order));
  }
  return cursors;
}

// A scan of a batch's ranges: their entries are counted, which gives their positions among the
// matches, and then merged.
template <typename Key>
class Scan {
 public:
  Scan(const Delta& delta, const BasePositions& base, const Batch& batch, uint64_t index)
      : delta_(delta),
        base_(base),
        batch_(batch),
        index_(index),
        ranges_(batch.ranges),
        options_(batch.options),
        stop_(StopCondition::Of(batch.options)),
        matches_(batch.matches),
        in_pages_(options_.limit != QueryOptions().limit || !ranges_.after.empty()) {}

  absl::Status Run(const Parallelism& parallelism) {
    ASSIGN_OR_RETURN(cursors_, RangeCursors::Of(delta_, ranges_, options_.order, index_));
    RETURN_IF_ERROR(BeginMatches(ranges_.kind(), ranges_.size(), matches_));
    if (in_pages_) {
      matches_->cursors.resize(ranges_.size());
      goes_on_.resize(ranges_.size());
      last_.resize(ranges_.size());
    }
    // Keys are appended, by one thread.
    if (options_.with_keys || SliceCount(ranges_.size(), parallelism) == 1) {
      RETURN_IF_ERROR(
          ForEach(0, ranges_.size(), [&](RangeChunk<Key>* chunk, size_t first, size_t count) {
            Count(*chunk, first, count);
            Place(first, count);
            return Fill(chunk, first, count);
          }));
    } else {
      RETURN_IF_ERROR(ForEachSlice(ranges_.size(), parallelism, [&](size_t first, size_t count) {
        return ForEach(first, count, [&](RangeChunk<Key>* chunk, size_t at, size_t some) {
          Count(*chunk, at, some);
          return absl::OkStatus();
        });
      }));
      Place(0, ranges_.size());
      RETURN_IF_ERROR(ForEachSlice(ranges_.size(), parallelism, [&](size_t first, size_t count) {
        return ForEach(first, count, [&](RangeChunk<Key>* chunk, size_t at, size_t some) {
          return Fill(chunk, at, some);
        });
      }));
    }
    if (!in_pages_) return absl::OkStatus();
    ASSIGN_OR_RETURN(std::vector<std::string> cursors, CursorsAfter(delta_, last_, batch_, index_));
    matches_->cursors = std::move(cursors);
    return absl::OkStatus();
  }

 private:
  template <typename Body>
  absl::Status ForEach(size_t first, size_t count, Body body) const {
    return ForEachChunk<Key>(delta_, ranges_, base_, first, count, stop_,
                             [&](RangeChunk<Key>* chunk, size_t at, size_t some) {
                               if (!cursors_.ranges.empty()) chunk->GoOn(cursors_, options_.order);
                               return body(chunk, at, some);
                             });
  }

  // Writes the numbers of the ranges' rows to the offsets.
  void Count(const RangeChunk<Key>& chunk, size_t first, size_t count) {
    for (size_t i = 0; i < count; ++i) {
      const uint64_t entries = chunk.Count(i);
      if (in_pages_) goes_on_[first + i] = entries > options_.limit && options_.limit > 0;
      matches_->offsets[first + i + 1] = std::min(entries, options_.limit);
    }
  }
  // Turns the numbers into offsets, and makes room for the rows.
  void Place(size_t first, size_t count) {
    uint64_t* const offsets = matches_->offsets.data() + first;
    for (size_t i = 0; i < count; ++i) offsets[i + 1] += offsets[i];
    matches_->row_ids.resize(offsets[count]);
  }
  absl::Status Fill(RangeChunk<Key>* chunk, size_t first, size_t count) {
    EncodedKeys* const keys = options_.with_keys ? &matches_->keys : nullptr;
    for (size_t i = 0; i < kAhead; ++i) chunk->PrefetchRows(i, options_.order, options_.limit);
    for (size_t i = 0; i < count; ++i) {
      chunk->PrefetchRows(i + kAhead, options_.order, options_.limit);
      RangeMerge<Key> merge(*delta_.rows, chunk->Get(i));
      const uint64_t* const offset = matches_->offsets.data() + first + i;
      EntryPlace end;
      for (uint64_t at = offset[0]; at < offset[1];) {
        if (at != offset[0]) RETURN_IF_ERROR(stop_.Check());
        const uint64_t some = std::min(kMergedTogether, offset[1] - at);
        RowId* const out = matches_->row_ids.data() + at;
        end = options_.order == Order::kAscending ? merge.Ascend(some, out, keys)
                                                  : merge.Descend(some, out, keys);
        at += some;
      }
      if (in_pages_ && goes_on_[first + i]) last_[first + i] = end;
    }
    return absl::OkStatus();
  }

  const Delta& delta_;
  const BasePositions& base_;
  const Batch& batch_;
  const uint64_t index_;  // CursorTag::OfIndex
  const RangeBatch& ranges_;
  const QueryOptions& options_;
  const StopCondition stop_;
  FindResult* const matches_;
  const bool in_pages_;
  RangeCursors cursors_;
  std::vector<uint8_t> goes_on_;  // whether a range has more entries after its page
  std::vector<EntryPlace> last_;  // of the ranges that have more entries
};

}  // namespace

Runs RunsOf(const Delta& delta) {
  Runs runs;
  runs.push_back({&delta.base_run, delta.base_run.row_ids().data(), &delta.removed, nullptr, 0, 0});
  for (const DeltaPart& part : delta.parts) {
    const DeltaSegment& segment = *part.segment;
    runs.push_back({&segment.run(), segment.rows().data(), &part.removed, &segment.places(), 0, 0});
  }
  return runs;
}

absl::Status AnswerRanges(const Delta& delta, absl::FunctionRef<absl::Status(const Batch&)> base,
                          const Batch& batch, const Parallelism& parallelism, uint64_t index) {
  const size_t size = batch.size();
  if (!batch.ranges.after.empty() && batch.ranges.after.size() != size) {
    return absl::InvalidArgumentError(
        absl::StrFormat("%d cursors for %d ranges", batch.ranges.after.size(), size));
  }
  BasePositions positions(size);
  RETURN_IF_ERROR(positions.Find(base, batch));
  if (batch.operation == Operation::kCount) {
    return CountRanges(delta, positions, batch, parallelism);
  }
  return WithPhysicalKey(batch.ranges.kind(), [&](auto type) {
    return Scan<typename decltype(type)::type>(delta, positions, batch, index).Run(parallelism);
  });
}

}  // namespace cairn
