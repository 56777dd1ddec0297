#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/types/span.h"

namespace cairn {

// Cuts the order of entries into ranges, the buckets, that hold about as many entries each whatever
// the keys' distribution: the first digit of a radix sort, its boundaries taken from a sample.
//
// The range of the sample's leading() words is divided into up to kSlots slots of equal width.
// Slots with few samples are joined to a bucket, so that for most keys a shift and a table say all.
// A slot with many is divided by splitters, entries of the sample, and searched. Splitters compare
// whole entries, row id included, so that even entries of one key are divided. Immutable.
template <typename Entry>
class BucketMap {
 public:
  // `sample` must be sorted; it may be empty. About `buckets` of them are made, at most twice as
  // many and one; requires 1 <= buckets <= kMaxBuckets.
  BucketMap(absl::Span<const Entry> sample, size_t buckets);

  size_t buckets() const { return buckets_; }

  // In [0, buckets()), ascending with the entry.
  size_t BucketOf(const Entry& entry) const {
    const Slot slot = slots_[SlotOf(entry.leading())];
    if (slot.splitters == 0) return slot.bucket;
    const Entry* first = splitters_.data() + slot.first_splitter;
    return slot.bucket + UpperBound(first, slot.splitters, entry);
  }

  static constexpr size_t kMaxBuckets = 2048;

 private:
  static constexpr size_t kSlots = 4096;

  struct Slot {
    uint16_t bucket;          // of the slot's least entries
    uint16_t splitters;       // inside the slot: one bucket more each
    uint16_t first_splitter;  // in splitters_
  };

  size_t SlotOf(uint64_t word) const {
    const uint64_t offset = word < least_ ? 0 : (word - least_) >> shift_;
    return offset < kSlots ? offset : kSlots - 1;
  }

  // How many of `n` >= 1 splitters are at most `entry`; without branches that depend on it.
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
  std::vector<Slot> slots_;
  std::vector<Entry> splitters_;
};

template <typename Entry>
BucketMap<Entry>::BucketMap(absl::Span<const Entry> sample, size_t buckets)
    : slots_(kSlots, Slot{0, 0, 0}) {
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
      slots_[s].bucket = static_cast<uint16_t>(bucket);
      filled += here;
      if (filled >= full) ++bucket, filled = 0;
      continue;
    }
    if (filled > 0) ++bucket, filled = 0;
    Slot& slot = slots_[s];
    slot.bucket = static_cast<uint16_t>(bucket);
    slot.first_splitter = static_cast<uint16_t>(splitters_.size());
    for (size_t j = begin + full; j + full / 2 < i; j += full) {
      if (slot.splitters > 0 && !(splitters_.back() < sample[j])) continue;  // drawn twice
      splitters_.push_back(sample[j]);
      ++slot.splitters;
    }
    bucket += slot.splitters + size_t{1};
  }
  buckets_ = filled > 0 || bucket == 0 ? bucket + 1 : bucket;
  // Slots behind the last bucket's end hold no sample, but may meet entries.
  for (Slot& slot : slots_) {
    slot.bucket = static_cast<uint16_t>(std::min<size_t>(slot.bucket, buckets_ - 1));
  }
}

}  // namespace cairn
