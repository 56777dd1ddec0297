#include "cairn/query.h"

#include <algorithm>

namespace cairn {

const char* KeyKindName(KeyKind kind) {
  switch (kind) {
    case KeyKind::kU32:
      return "u32";
    case KeyKind::kU64:
      return "u64";
    case KeyKind::kBytes:
      return "bytes";
  }
  return "unknown";
}

KeyBatch KeyBatch::Slice(size_t first, size_t count) const {
  switch (kind_) {
    case KeyKind::kU32:
      return U32(u32().subspan(first, count));
    case KeyKind::kU64:
      return U64(u64().subspan(first, count));
    case KeyKind::kBytes:
      return Bytes(bytes().subspan(first, count));
  }
  return KeyBatch();
}

size_t KeyColumn::size() const {
  switch (kind_) {
    case KeyKind::kU32:
      return u32_.size();
    case KeyKind::kU64:
      return u64_.size();
    case KeyKind::kBytes:
      return ends_.size() - 1;
  }
  return 0;
}

void KeyColumn::Clear(KeyKind kind) {
  kind_ = kind;
  u32_.clear();
  u64_.clear();
  heap_.clear();
  ends_.resize(1);
  views_.clear();
}

void KeyColumn::AppendBytes(std::string_view key) {
  // Room for its end first, so that a key is appended whole or not at all.
  if (ends_.size() == ends_.capacity()) ends_.reserve(std::max<size_t>(16, 2 * ends_.size()));
  heap_.append(key);
  ends_.push_back(heap_.size());
}

KeyBatch KeyColumn::Batch() {
  switch (kind_) {
    case KeyKind::kU32:
      return KeyBatch::U32(u32_);
    case KeyKind::kU64:
      return KeyBatch::U64(u64_);
    case KeyKind::kBytes:
      views_.resize(size());
      for (size_t i = 0; i < views_.size(); ++i) views_[i] = bytes(i);
      return KeyBatch::Bytes(views_);
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

RangeBatch RangeBatch::Everything(KeyKind kind) {
  static constexpr uint32_t kAnyU32[1] = {0};
  static constexpr uint64_t kAnyU64[1] = {0};
  static constexpr std::string_view kAnyBytes[1] = {""};
  const KeyBatch any = kind == KeyKind::kU32   ? KeyBatch::U32(kAnyU32)
                       : kind == KeyKind::kU64 ? KeyBatch::U64(kAnyU64)
                                               : KeyBatch::Bytes(kAnyBytes);
  RangeBatch ranges = HalfOpen(any, any);
  ranges.lower_bound = Bound::kOpen;
  ranges.upper_bound = Bound::kOpen;
  return ranges;
}

}  // namespace cairn
