#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/types/span.h"

namespace cairn {

// Divides the order of entries into ranges, the buckets, of about equal numbers of entries for any
// distribution of keys: the first digit of a radix sort, with boundaries from a sample.
//
// The range of the sample's leading() words is divided into up to kSlots slots of equal width.
// Slots with few samples are joined to a bucket, so that for most keys a shift and a table are
// enough. A slot with many is divided by splitters, entries of the sample, and searched. Splitters
// compare whole entries, row id included, so that even entries of one key are divided. Immutable.
template <typename Entry>
class BucketMap {
 public:
  // `sample` must be sorted; it may be empty. Makes about `buckets` buckets, at most
  // 2 * buckets + 1. Requires 1 <= buckets <= kMaxBuckets.
  BucketMap(absl::Span<const Entry> sample, size_t buckets);

  size_t buckets() const { return buckets_; }

  // In [0, buckets()), ascending with the entry.
  size_t BucketOf(const Entry& entry) const {
    const uint16_t slot = slots_[SlotOf(entry.leading())];
    if (slot < kDivided) return slot;
    const DividedSlot& divided = divided_[slot - kDivided];
    return divided.bucket +
           UpperBound(&splitters_[divided.first_splitter], divided.splitters, entry);
  }

  static constexpr size_t kMaxBuckets = 2048;

 private:
  static constexpr size_t kSlots = 4096;

  static constexpr uint16_t kDivided = 0x8000;  // slots_ from here on: an index of divided_

  struct DividedSlot {
    uint32_t bucket;          // of the slot's smallest entries
    uint32_t first_splitter;  // in splitters_
    uint32_t splitters;       // at least one; each adds a bucket
  };

  size_t SlotOf(uint64_t word) const {
    const uint64_t offset = (std::max(word, least_) - least_) >> shift_;
    return std::min<uint64_t>(offset, kSlots - 1);
  }

  // The number of splitters, of `n` >= 1, that are at most `entry`; without branches on its value.
  static size_t UpperBound(const Entry* first, size_t n, const Entry& entry) {
    const Entry* begin = first;
    while (n > 1) {
      const size_t half = n / 2;
      begin = entry < begin[half - 1] ? begin : begin + half;
      n -= half;
    }
    return static_cast<size_t>(begin - first) + (entry < *begin ? 0 : 1);
  }

  size_t buckets_ = 1;
  uint64_t least_ = 0;
  int shift_ = 0;
  std::vector<uint16_t> slots_;  // [kSlots] the slot's bucket, or kDivided + an index of divided_
  std::vector<DividedSlot> divided_;
  std::vector<Entry> splitters_;
};

template <typename Entry>
BucketMap<Entry>::BucketMap(absl::Span<const Entry> sample, size_t buckets) : slots_(kSlots, 0) {
  if (sample.empty() || buckets <= 1) return;
  least_ = sample.front().leading();
  const uint64_t width = sample.back().leading() - least_;
  while ((width >> shift_) >= kSlots) ++shift_;

  // A bucket is full with this many samples.
  const size_t full = std::max<size_t>(1, (sample.size() + buckets - 1) / buckets);
  size_t bucket = 0;
  size_t filled = 0;  // samples in `bucket` so far
  size_t i = 0;
  for (size_t s = 0; s < kSlots; ++s) {
    const size_t begin = i;
    while (i < sample.size() && SlotOf(sample[i].leading()) == s) ++i;
    const size_t here = i - begin;
    if (here <= full + full / 2) {
      if (filled > 0 && filled + here > full + full / 2) ++bucket, filled = 0;
      slots_[s] = static_cast<uint16_t>(bucket);
      filled += here;
      if (filled >= full) ++bucket, filled = 0;
      continue;
    }
    if (filled > 0) ++bucket, filled = 0;
    const size_t first = splitters_.size();
    for (size_t j = begin + full; j + full / 2 < i; j += full) {
      if (splitters_.size() > first && !(splitters_.back() < sample[j])) continue;  // drawn twice
      splitters_.push_back(sample[j]);
    }
    const size_t splitters = splitters_.size() - first;
    slots_[s] = static_cast<uint16_t>(bucket);
    if (splitters > 0) {
      slots_[s] = static_cast<uint16_t>(kDivided + divided_.size());
      divided_.push_back({static_cast<uint32_t>(bucket), static_cast<uint32_t>(first),
                          static_cast<uint32_t>(splitters)});
    }
    bucket += splitters + 1;
  }
  buckets_ = filled > 0 || bucket == 0 ? bucket + 1 : bucket;
  // Slots past the last bucket's end hold no sample, but entries may fall into them.
  for (uint16_t& slot : slots_) {
    if (slot < kDivided) slot = static_cast<uint16_t>(std::min<size_t>(slot, buckets_ - 1));
  }
}

}  // namespace cairn
