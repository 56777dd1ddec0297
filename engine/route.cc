#include "engine/route.h"

#include <utility>

#include "cpu_fast/parallel_batch.h"

namespace cairn {

Route::Route(std::string name, const OrderedIndex* index, bool on_gpu, Strategy strategy,
             int threads)
    : name_(std::move(name)),
      index_(index),
      on_gpu_(on_gpu),
      strategy_(strategy),
      threads_(on_gpu ? 1 : threads) {}  // a GPU takes a batch as a whole

bool Route::Takes(Operation operation, ResultOrder order) const {
  (void)operation;
  return strategy_ == Strategy::kUnbuffered && order == ResultOrder::kCaller;
}

absl::Status Route::FindFirst(KeyBatch keys, const QueryOptions&, absl::Span<RowId> row_ids) const {
  return cairn::FindFirst(*index_, keys, row_ids, Parallelism{threads_});
}

absl::Status Route::Contains(KeyBatch keys, const QueryOptions&, absl::Span<bool> found) const {
  return cairn::Contains(*index_, keys, found, Parallelism{threads_});
}

absl::Status Route::Find(KeyBatch keys, const QueryOptions&, Matches* matches) const {
  return cairn::Find(*index_, keys, matches, Parallelism{threads_});
}

absl::Status Route::Count(const RangeBatch& ranges, absl::Span<uint64_t> counts) const {
  return cairn::Count(*index_, ranges, counts, Parallelism{threads_});
}

absl::Status Route::Scan(const RangeBatch& ranges, const QueryOptions& options,
                         Matches* matches) const {
  return cairn::Scan(*index_, ranges, options, matches, Parallelism{threads_});
}

}  // namespace cairn
