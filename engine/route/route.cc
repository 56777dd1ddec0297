#include "engine/route/route.h"

#include <utility>

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
  if (operation == Operation::kCount || operation == Operation::kScan) {
    return strategy_ == Strategy::kUnbuffered && order == ResultOrder::kCaller;
  }
  return order == ResultOrder::kCaller || strategy_ == Strategy::kSortBased;
}

StrategyOptions Route::OptionsFor(const QueryOptions& options) const {
  StrategyOptions chosen;
  chosen.strategy = strategy_;
  chosen.order = options.result_order;
  chosen.sorted_input = options.sorted_input;
  return chosen;
}

absl::Status Route::FindFirst(KeyBatch keys, const QueryOptions& options,
                              absl::Span<RowId> row_ids) const {
  if (strategy_ == Strategy::kUnbuffered) {
    return cairn::FindFirst(*index_, keys, row_ids, parallelism_);
  }
  return cairn::FindFirst(*index_, keys, row_ids, OptionsFor(options), parallelism_, scratch_.get(),
                          options.query_of);
}

absl::Status Route::Contains(KeyBatch keys, const QueryOptions& options,
                             absl::Span<bool> found) const {
  if (strategy_ == Strategy::kUnbuffered) {
    return cairn::Contains(*index_, keys, found, parallelism_);
  }
  return cairn::Contains(*index_, keys, found, OptionsFor(options), parallelism_, scratch_.get(),
                         options.query_of);
}

absl::Status Route::Find(KeyBatch keys, const QueryOptions& options, Matches* matches) const {
  if (strategy_ == Strategy::kUnbuffered) {
    return cairn::Find(*index_, keys, matches, parallelism_);
  }
  return cairn::Find(*index_, keys, matches, OptionsFor(options), parallelism_, scratch_.get(),
                     options.query_of);
}

absl::Status Route::Positions(const RangeBatch& ranges, absl::Span<Position> begin,
                              absl::Span<Position> end) const {
  return cairn::Positions(*index_, ranges, begin, end, parallelism_);
}

absl::Status Route::Count(const RangeBatch& ranges, absl::Span<uint64_t> counts) const {
  return cairn::Count(*index_, ranges, counts, parallelism_);
}

absl::Status Route::Scan(const RangeBatch& ranges, const QueryOptions& options,
                         Matches* matches) const {
  return cairn::Scan(*index_, ranges, options, matches, parallelism_);
}

}  // namespace cairn
