#include "cpu_fast/batch/parallel_batch.h"

#include <algorithm>
#include <memory>
#include <new>
#include <vector>

#include "absl/strings/str_format.h"
#include "index/machine/batch_threads.h"
#include "index/machine/status_macros.h"
#include "index/query/batch_check.h"
#include "index/query/match_rows.h"

namespace cairn {
namespace {

template <typename T>
absl::Span<const T> SliceOf(absl::Span<const T> all, size_t first, size_t count) {
  return all.empty() ? all : all.subspan(first, count);
}

RangeBatch SliceOf(const RangeBatch& ranges, size_t first, size_t count) {
  RangeBatch slice = ranges;
  slice.lower = ranges.lower.Slice(first, count);
  slice.upper = ranges.upper.Slice(first, count);
  slice.lower_bounds = SliceOf(ranges.lower_bounds, first, count);
  slice.upper_bounds = SliceOf(ranges.upper_bounds, first, count);
  slice.after = SliceOf(ranges.after, first, count);
  return slice;
}

absl::Status NoMemory(size_t queries) {
  return absl::ResourceExhaustedError(
      absl::StrFormat("no memory to answer a batch of %d queries on several threads", queries));
}

}  // namespace

size_t SliceCount(size_t queries, const Parallelism& parallelism) {
  const size_t min_slice = std::max<size_t>(parallelism.min_slice, 1);
  if (parallelism.threads <= 1 || queries < 2 * min_slice) return 1;
  return std::min(static_cast<size_t>(parallelism.threads), queries / min_slice);
}

absl::Status ForEachSlice(size_t size, const Parallelism& parallelism,
                          absl::FunctionRef<absl::Status(size_t first, size_t count)> body) {
  const size_t parts = SliceCount(size, parallelism);
  if (parts == 1) return body(0, size);
  const size_t part_size = (size + parts - 1) / parts;
  try {
    std::vector<absl::Status> statuses(parts);
    RunOnBatchThreads(parts, [&](size_t part) {
      const size_t first = std::min(part * part_size, size);
      statuses[part] = body(first, std::min(part_size, size - first));
    });
    for (absl::Status& status : statuses) {
      if (!status.ok()) return std::move(status);
    }
    return absl::OkStatus();
  } catch (const std::bad_alloc&) {
    return NoMemory(size);
  }
}

absl::Status LowerBound(const OrderedIndex& index, KeyBatch keys, absl::Span<Position> positions,
                        const Parallelism& parallelism) {
  RETURN_IF_ERROR(CheckOutput(keys.size(), positions.size(), "positions"));
  return ForEachSlice(keys.size(), parallelism, [&](size_t first, size_t count) {
    return index.LowerBound(keys.Slice(first, count), positions.subspan(first, count));
  });
}

absl::Status FindFirst(const OrderedIndex& index, KeyBatch keys, absl::Span<RowId> row_ids,
                       const Parallelism& parallelism) {
  RETURN_IF_ERROR(CheckOutput(keys.size(), row_ids.size(), "row_ids"));
  return ForEachSlice(keys.size(), parallelism, [&](size_t first, size_t count) {
    return index.FindFirst(keys.Slice(first, count), row_ids.subspan(first, count));
  });
}

absl::Status Contains(const OrderedIndex& index, KeyBatch keys, absl::Span<bool> found,
                      const Parallelism& parallelism) {
  RETURN_IF_ERROR(CheckOutput(keys.size(), found.size(), "found"));
  return ForEachSlice(keys.size(), parallelism, [&](size_t first, size_t count) {
    return index.Contains(keys.Slice(first, count), found.subspan(first, count));
  });
}

absl::Status Positions(const OrderedIndex& index, const RangeBatch& ranges,
                       absl::Span<Position> begin, absl::Span<Position> end,
                       const Parallelism& parallelism) {
  RETURN_IF_ERROR(CheckRanges(index.run().kind(), ranges));
  RETURN_IF_ERROR(CheckOutput(ranges.size(), begin.size(), "begin"));
  RETURN_IF_ERROR(CheckOutput(ranges.size(), end.size(), "end"));
  return ForEachSlice(ranges.size(), parallelism, [&](size_t first, size_t count) {
    return index.Positions(SliceOf(ranges, first, count), begin.subspan(first, count),
                           end.subspan(first, count));
  });
}

absl::Status Count(const OrderedIndex& index, const RangeBatch& ranges, absl::Span<uint64_t> counts,
                   const Parallelism& parallelism) {
  RETURN_IF_ERROR(CheckRanges(index.run().kind(), ranges));
  RETURN_IF_ERROR(CheckOutput(ranges.size(), counts.size(), "counts"));
  return ForEachSlice(ranges.size(), parallelism, [&](size_t first, size_t count) {
    return index.Count(SliceOf(ranges, first, count), counts.subspan(first, count));
  });
}

absl::Status Find(const OrderedIndex& index, KeyBatch keys, Matches* matches,
                  const Parallelism& parallelism) {
  RETURN_IF_ERROR(CheckKind(index.run().kind(), keys));
  return Scan(index, RangeBatch::Equal(keys), QueryOptions(), matches, parallelism);
}

absl::Status Scan(const OrderedIndex& index, const RangeBatch& ranges, const QueryOptions& options,
                  Matches* matches, const Parallelism& parallelism) {
  if (SliceCount(ranges.size(), parallelism) == 1) {
    return index.Scan(ranges, options, matches);
  }
  const SortedRun& run = index.run();
  const size_t size = ranges.size();
  const std::unique_ptr<Position[]> scratch(new (std::nothrow) Position[2 * size]);
  if (scratch == nullptr) return NoMemory(size);
  const absl::Span<Position> begin(scratch.get(), size), end(scratch.get() + size, size);
  absl::Status s = Positions(index, ranges, begin, end, parallelism);
  if (s.ok()) s = PlanMatches(run.kind(), options, begin, end, matches);
  if (!s.ok()) return s;
  s = ForEachSlice(size, parallelism, [&](size_t first, size_t count) {
    CopyRows(run, options, first, begin.subspan(first, count), end.subspan(first, count), matches);
    return absl::OkStatus();
  });
  return s.ok() ? AppendKeys(run, options, begin, end, matches) : s;
}

}  // namespace cairn
