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

absl::Status NoMemory(size_t queries) {
  return absl::ResourceExhaustedError(
      absl::StrFormat("out of memory for a batch of %d queries on several threads", queries));
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
  const StopCondition& stop = parallelism.stop;
  const auto answer = [&](size_t first, size_t count) {
    if (!stop.may_stop() || count <= kStopSlice) return body(first, count);
    for (size_t end = first + count; first < end; first += kStopSlice) {
      RETURN_IF_ERROR(stop.Check());
      RETURN_IF_ERROR(body(first, std::min(kStopSlice, end - first)));
    }
    return absl::OkStatus();
  };
  if (parts == 1) return answer(0, size);
  const size_t part_size = (size + parts - 1) / parts;
  try {
    std::vector<absl::Status> statuses(parts);
    RunOnBatchThreads(parts, [&](size_t part) {
      const size_t first = std::min(part * part_size, size);
      statuses[part] = answer(first, std::min(part_size, size - first));
    });
    for (absl::Status& status : statuses) {
      if (!status.ok()) return std::move(status);
    }
    return absl::OkStatus();
  } catch (const std::bad_alloc&) {
    return NoMemory(size);
  }
}

absl::Status Execute(const OrderedIndex& index, const Batch& batch,
                     const Parallelism& parallelism) {
  const size_t size = batch.size();
  const bool stops = parallelism.stop.may_stop() && size > kStopSlice;
  if (SliceCount(size, parallelism) == 1 && !stops) return index.Execute(batch);
  const SortedRun& run = index.run();
  RETURN_IF_ERROR(CheckBatchWithRows(run.kind(), batch));
  if (!batch.gives_matches()) {
    return ForEachSlice(size, parallelism, [&](size_t first, size_t count) {
      return index.Execute(batch.Slice(first, count));
    });
  }
  const std::unique_ptr<Position[]> scratch(new (std::nothrow) Position[2 * size]);
  if (scratch == nullptr) return NoMemory(size);
  const absl::Span<Position> begin(scratch.get(), size), end(scratch.get() + size, size);
  const bool scan = batch.operation == Operation::kScan;
  const QueryOptions options = scan ? batch.options : parallelism.stop.As<QueryOptions>();
  absl::Status s = Execute(
      index,
      scan ? Batch::Positions(batch.ranges, begin, end) : Batch::EqualRange(batch.keys, begin, end),
      parallelism);
  if (s.ok()) s = PlanMatches(run.kind(), options, begin, end, batch.matches);
  if (!s.ok()) return s;
  s = ForEachSlice(size, parallelism, [&](size_t first, size_t count) {
    return CopyRows(run, options, first, begin.subspan(first, count), end.subspan(first, count),
                    batch.matches);
  });
  return s.ok() ? AppendKeys(run, options, begin, end, batch.matches) : s;
}

}  // namespace cairn
