#include "engine/route/route.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <utility>

#include "absl/types/span.h"
#include "cpu_fast/batch/strategy.h"
#include "index/machine/status_macros.h"
#include "index/query/batch_check.h"
#include "index/query/wide_rows.h"

namespace cairn {
namespace {

// The number of 32-bit row ids that are widened at a time: they stay in the first-level cache.
constexpr size_t kWidenedTogether = 1024;

// Sets rows [first, first + count) from their 32-bit ids, which are in the front half of the memory
// of all rows. Goes from the last row to the first: row i overwrites only ids from 2 * i on.
void WidenInPlace(absl::Span<GlobalRowId> rows, size_t first, size_t count) {
  const auto* const front = reinterpret_cast<const char*>(rows.data());
  RowId row_ids[kWidenedTogether];
  while (count > 0) {
    const size_t some = std::min(count, kWidenedTogether);
    count -= some;
    std::memcpy(row_ids, front + (first + count) * sizeof(RowId), some * sizeof(RowId));
    WidenRows({row_ids, some}, rows.data() + first + count);
  }
}

// Sets all rows from their 32-bit ids in the front half of the same memory.
absl::Status WidenAll(absl::Span<GlobalRowId> rows, int threads) {
  const Parallelism parallelism{.threads = threads, .min_slice = size_t{1} << 16};
  size_t rest = rows.size();
  // Rows [middle, rest) are stored after the ids of all rows before `rest`, so threads can widen
  // them in any order.
  while (SliceCount(rest / 2, parallelism) > 1) {
    const size_t middle = (rest + 1) / 2;
    RETURN_IF_ERROR(ForEachSlice(rest - middle, parallelism, [&](size_t first, size_t count) {
      WidenInPlace(rows, middle + first, count);
      return absl::OkStatus();
    }));
    rest = middle;
  }
  WidenInPlace(rows, 0, rest);
  return absl::OkStatus();
}

}  // namespace

Route::Route(std::string name, const OrderedIndex* index, bool on_gpu, Strategy strategy,
             int threads)
    : name_(std::move(name)),
      index_(index),
      on_gpu_(on_gpu),
      strategy_(strategy),
      parallelism_{on_gpu ? 1 : threads},  // a GPU takes a batch as a whole
      scratch_(std::make_shared<StrategyScratchPool>()) {}

bool Route::Takes(Operation operation, ResultOrder order) const {
  if (TakesRanges(operation)) {
    return strategy_ == Strategy::kUnbuffered && order == ResultOrder::kCaller;
  }
  return order == ResultOrder::kCaller || strategy_ == Strategy::kSortBased;
}

absl::Status Route::Execute(const Batch& batch) const {
  // Only an unbuffered search of a HostIndex writes row ids of 64 bits.
  const bool is_host = !on_gpu_ && strategy_ == Strategy::kUnbuffered;
  if (!is_host && batch.operation == Operation::kFindFirst && !batch.rows.empty()) {
    return ExecuteNarrow(batch);
  }
  Parallelism parallelism = parallelism_;
  parallelism.stop = StopCondition::Of(batch.options);
  if (strategy_ == Strategy::kUnbuffered) return cairn::Execute(*index_, batch, parallelism);
  StrategyOptions options;
  options.strategy = strategy_;
  return cairn::Execute(*index_, batch, options, parallelism, scratch_.get());
}

absl::Status Route::ExecuteNarrow(const Batch& batch) const {
  RETURN_IF_ERROR(CheckBatchWithRows(index_->run().kind(), batch));
  Batch narrow = batch;
  narrow.rows = {};
  narrow.values = {reinterpret_cast<RowId*>(batch.rows.data()), batch.size()};
  RETURN_IF_ERROR(Execute(narrow));
  return WidenAll(batch.rows, parallelism_.threads);
}

}  // namespace cairn
