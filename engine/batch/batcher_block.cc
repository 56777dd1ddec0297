#include "engine/batch/batcher_block.h"

namespace cairn {

void BatcherBlock::Open(const BatcherRequest& request, PhysicalType kind, BatcherNanos now) {
  queries_.Clear(kind);
  cookies_.clear();
  runs_.clear();
  options_ = QueryOptions();
  if (request.options != nullptr) {
    options_.order = request.options->order;
    options_.limit = request.options->limit;
    options_.with_keys = request.options->with_keys;
  }
  opened_ = now;
  earliest_ = kNever;
  sealed_ = false;
}

size_t BatcherBlock::CountLate(BatcherNanos now) const {
  if (earliest_ >= now) return 0;
  size_t late = 0, begin = 0;
  for (const Run& run : runs_) {
    if (run.deadline < now) late += run.end - begin;
    begin = run.end;
  }
  return late;
}

}  // namespace cairn
