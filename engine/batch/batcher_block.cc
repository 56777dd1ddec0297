#include "engine/batch/batcher_block.h"

namespace cairn {

void AppendKeys(const EncodedKeys& keys, size_t first, size_t count, EncodedKeys* column) {
  for (size_t i = first; i < first + count; ++i) {
    switch (keys.kind()) {
      case PhysicalType::kU32:
        column->AppendU32(keys.u32(i));
        break;
      case PhysicalType::kU64:
        column->AppendU64(keys.u64(i));
        break;
      case PhysicalType::kBytes:
        column->AppendBytes(keys.bytes(i));
        break;
    }
  }
}

void BatcherBlock::Open(const BatcherRequest& request, PhysicalType kind, BatcherNanos now) {
  keys_.Clear(kind);
  upper_.Clear(kind);
  lower_bounds_.clear();
  upper_bounds_.clear();
  after_.clear();
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

void BatcherBlock::AppendRanges(const RangeBatch& ranges) {
  AppendKeys(ranges.lower, &keys_);
  AppendKeys(ranges.upper, &upper_);
  for (size_t i = 0; i < ranges.size(); ++i) {
    lower_bounds_.push_back(ranges.lower_bound_of(i));
    upper_bounds_.push_back(ranges.upper_bound_of(i));
  }
  if (!ranges.after.empty() || !after_.empty()) after_.resize(size() + ranges.size());
  for (size_t i = 0; i < ranges.after.size(); ++i) after_[size() + i] = ranges.after[i];
}

RangeBatch BatcherBlock::ranges() {
  RangeBatch ranges = RangeBatch::HalfOpen(keys(), upper_.Batch().Slice(0, size()));
  ranges.lower_bounds = absl::MakeConstSpan(lower_bounds_).subspan(0, size());
  ranges.upper_bounds = absl::MakeConstSpan(upper_bounds_).subspan(0, size());
  if (!after_.empty()) ranges.after = absl::MakeConstSpan(after_).subspan(0, size());
  return ranges;
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
