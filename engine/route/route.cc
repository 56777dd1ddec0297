#include "engine/route/route.h"

#include <utility>

#include "cpu_fast/batch/strategy.h"

namespace cairn {

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
  Parallelism parallelism = parallelism_;
  parallelism.stop = StopCondition::Of(batch.options);
  if (strategy_ == Strategy::kUnbuffered) return cairn::Execute(*index_, batch, parallelism);
  StrategyOptions options;
  options.strategy = strategy_;
  return cairn::Execute(*index_, batch, options, parallelism, scratch_.get());
}

}  // namespace cairn
