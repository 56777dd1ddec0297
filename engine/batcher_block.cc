#include "engine/batcher_block.h"

#include <algorithm>
#include <string_view>

namespace cairn {

bool SameAnswers(const QueryOptions& a, const QueryOptions& b) {
  return a.order == b.order && a.limit == b.limit && a.with_keys == b.with_keys;
}

void AppendKeys(const KeyBatch& keys, KeyColumn* column) {
  switch (keys.kind()) {
    case KeyKind::kU32:
      for (uint32_t key : keys.u32()) column->AppendU32(key);
      return;
    case KeyKind::kU64:
      for (uint64_t key : keys.u64()) column->AppendU64(key);
      return;
    case KeyKind::kBytes:
      for (std::string_view key : keys.bytes()) column->AppendBytes(key);
      return;
  }
}

void AppendKeys(const KeyColumn& keys, size_t first, size_t count, KeyColumn* column) {
  for (size_t i = first; i < first + count; ++i) {
    switch (keys.kind()) {
      case KeyKind::kU32:
        column->AppendU32(keys.u32(i));
        break;
      case KeyKind::kU64:
        column->AppendU64(keys.u64(i));
        break;
      case KeyKind::kBytes:
        column->AppendBytes(keys.bytes(i));
        break;
    }
  }
}

void BatcherBlock::Open(const BatcherRequest& request, KeyKind kind, BatcherNanos now) {
  keys_.Clear(kind);
  upper_.Clear(kind);
  lower_bounds_.clear();
  upper_bounds_.clear();
  after_.clear();
  cookies_.clear();
  deadlines_.clear();
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

bool BatcherBlock::Fits(const BatcherRequest& request) const {
  return !sealed_ && (request.options == nullptr || SameAnswers(*request.options, options_));
}

void BatcherBlock::Append(const BatcherRequest& request, BatcherNanos deadline) {
  sealed_ = true;  // until every column has its part
  const size_t queries = request.size();
  if (request.keys != nullptr) {
    AppendKeys(*request.keys, &keys_);
  } else {
    const RangeBatch& ranges = *request.ranges;
    AppendKeys(ranges.lower, &keys_);
    AppendKeys(ranges.upper, &upper_);
    for (size_t i = 0; i < queries; ++i) {
      lower_bounds_.push_back(ranges.lower_bound_of(i));
      upper_bounds_.push_back(ranges.upper_bound_of(i));
    }
    if (!ranges.after.empty() || !after_.empty()) after_.resize(size() + queries);
    for (size_t i = 0; i < ranges.after.size(); ++i) after_[size() + i] = ranges.after[i];
  }
  for (size_t i = 0; i < queries; ++i) cookies_.push_back(request.cookie + i);
  for (size_t i = 0; i < queries; ++i) deadlines_.push_back(deadline);

  const Batcher::Receiver& receiver = request.receiver;
  if (!runs_.empty() && runs_.back().receiver.receive == receiver.receive &&
      runs_.back().receiver.context == receiver.context) {
    runs_.back().end += queries;
  } else {
    runs_.push_back({receiver, size() + queries});
  }
  earliest_ = std::min(earliest_, deadline);
  sealed_ = false;
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
  const auto end = deadlines_.begin() + static_cast<ptrdiff_t>(size());
  return static_cast<size_t>(
      std::count_if(deadlines_.begin(), end, [now](BatcherNanos d) { return d < now; }));
}

}  // namespace cairn
