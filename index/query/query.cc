#include "cairn/query.h"

#include <algorithm>

#include "index/query/physical_key.h"

namespace cairn {
namespace {

// An empty span stays empty: it means the default for all queries, or an answer that is not
// requested.
template <typename T>
absl::Span<T> SliceOf(absl::Span<T> all, size_t first, size_t count) {
  return all.empty() ? all : all.subspan(first, count);
}

}  // namespace

std::string_view PhysicalTypeName(PhysicalType kind) {
  switch (kind) {
    case PhysicalType::kU32:
      return "u32";
    case PhysicalType::kU64:
      return "u64";
    case PhysicalType::kBytes:
      return "bytes";
  }
  return "unknown";
}

std::string_view OperationName(Operation operation) {
  static constexpr std::string_view kNames[] = {"find_first",  "contains",    "find",
                                                "count",       "scan",        "lower_bound",
                                                "upper_bound", "equal_range", "positions"};
  return kNames[static_cast<size_t>(operation)];
}

KeyBatch KeyBatch::Slice(size_t first, size_t count) const {
  return WithPhysicalKey(kind_, [&](auto type) -> KeyBatch {
    return as<typename decltype(type)::type>().subspan(first, count);
  });
}

size_t EncodedKeys::size() const {
  switch (kind_) {
    case PhysicalType::kU32:
      return u32_.size();
    case PhysicalType::kU64:
      return u64_.size();
    case PhysicalType::kBytes:
      return ends_.empty() ? 0 : ends_.size() - 1;
  }
  return 0;
}

const std::vector<uint64_t>& EncodedKeys::offsets() const {
  static const auto* const of_no_keys = new std::vector<uint64_t>{0};  // never freed
  return ends_.empty() ? *of_no_keys : ends_;
}

void EncodedKeys::Truncate(size_t size) {
  if (kind_ == PhysicalType::kU32) {
    u32_.resize(size);
  } else if (kind_ == PhysicalType::kU64) {
    u64_.resize(size);
  } else if (!ends_.empty()) {
    ends_.resize(size + 1);
    heap_.resize(ends_.back());
  }
}

void EncodedKeys::Clear(PhysicalType kind) {
  kind_ = kind;
  u32_.clear();
  u64_.clear();
  heap_.clear();
  ends_.clear();
  views_.clear();
}

void EncodedKeys::AppendBytes(std::string_view key) {
  // Reserves room for its end first, so that a key is appended whole or not at all.
  if (ends_.empty()) ends_.push_back(0);
  if (ends_.size() == ends_.capacity()) ends_.reserve(std::max<size_t>(16, 2 * ends_.size()));
  heap_.append(key);
  ends_.push_back(heap_.size());
}

uint32_t* EncodedKeys::ExtendU32(size_t count) {
  u32_.resize(u32_.size() + count);
  return u32_.data() + (u32_.size() - count);
}

uint64_t* EncodedKeys::ExtendU64(size_t count) {
  u64_.resize(u64_.size() + count);
  return u64_.data() + (u64_.size() - count);
}

KeyBatch EncodedKeys::Batch() {
  switch (kind_) {
    case PhysicalType::kU32:
      return u32_;
    case PhysicalType::kU64:
      return u64_;
    case PhysicalType::kBytes:
      views_.resize(size());
      for (size_t i = 0; i < views_.size(); ++i) views_[i] = bytes(i);
      return views_;
  }
  return KeyBatch();
}

RangeBatch RangeBatch::HalfOpen(KeyBatch lower, KeyBatch upper) {
  RangeBatch ranges;
  ranges.lower = lower;
  ranges.upper = upper;
  return ranges;
}

RangeBatch RangeBatch::Equal(KeyBatch keys) {
  RangeBatch ranges = HalfOpen(keys, keys);
  ranges.upper_bound = Bound::kInclusive;
  return ranges;
}

RangeBatch RangeBatch::Prefix(KeyBatch prefixes) {
  RangeBatch ranges = HalfOpen(prefixes, prefixes);
  ranges.upper_bound = Bound::kPrefix;
  return ranges;
}

RangeBatch RangeBatch::Everything(PhysicalType kind) {
  static constexpr uint32_t kAnyU32[1] = {0};
  static constexpr uint64_t kAnyU64[1] = {0};
  static constexpr std::string_view kAnyBytes[1] = {""};
  const KeyBatch any = kind == PhysicalType::kU32   ? KeyBatch(kAnyU32)
                       : kind == PhysicalType::kU64 ? KeyBatch(kAnyU64)
                                                    : KeyBatch(kAnyBytes);
  RangeBatch ranges = HalfOpen(any, any);
  ranges.lower_bound = Bound::kOpen;
  ranges.upper_bound = Bound::kOpen;
  return ranges;
}

RangeBatch RangeBatch::Slice(size_t first, size_t count) const {
  RangeBatch slice = *this;
  slice.lower = lower.Slice(first, count);
  slice.upper = upper.Slice(first, count);
  slice.lower_bounds = SliceOf(lower_bounds, first, count);
  slice.upper_bounds = SliceOf(upper_bounds, first, count);
  slice.after = SliceOf(after, first, count);
  return slice;
}

RowSpan RowSpan::Slice(size_t first, size_t count) const {
  RowSpan slice;
  slice.rows_ = SliceOf(rows_, first, count);
  slice.row_ids_ = SliceOf(row_ids_, first, count);
  slice.shards_ = SliceOf(shards_, first, count);
  slice.size_ = count;
  return slice;
}

Batch Batch::Slice(size_t first, size_t count) const {
  Batch slice = *this;
  if (takes_ranges()) {
    slice.ranges = ranges.Slice(first, count);
  } else {
    slice.keys = keys.Slice(first, count);
  }
  slice.values = SliceOf(values, first, count);
  slice.ends = SliceOf(ends, first, count);
  slice.rows = SliceOf(rows, first, count);
  slice.found = SliceOf(found, first, count);
  slice.counts = SliceOf(counts, first, count);
  slice.query_of = SliceOf(query_of, first, count);
  return slice;
}

}  // namespace cairn
