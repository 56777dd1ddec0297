#pragma once

#include <algorithm>
#include <cstddef>
#include <type_traits>
#include <vector>

#include "index/sort/bucket_map.h"
#include "index/sort/sort_entry.h"

namespace cairn {

// Divides a run's keys into partitions of about equal size and maps a query to its partition. It is
// kept between calls: preparing it again for the same run and number of partitions costs nothing.
template <typename Key>
class PartMap {
  using Entry = std::conditional_t<sizeof(Key) == 4, Entry32, Entry64>;
  // The map counts samples, so the size of a partition is off by up to one sampling interval.
  static constexpr size_t kSamplesPerPart = 4;

 public:
  // Prepares about `parts` partitions, at most BucketMap::kMaxBuckets, of `size` >= 1 ascending
  // keys, where key_at(i) is key i. `run` is the address of their column and identifies the run. If
  // another run of the same size has since been stored at that address, partitions are valid but
  // uneven. Throws std::bad_alloc.
  template <typename KeyAt>
  void Prepare(const void* run, size_t size, size_t parts, KeyAt key_at) {
    if (run == run_ && size == size_ && parts == wanted_) return;
    std::vector<Entry> sample(std::min(size, parts * kSamplesPerPart));
    for (size_t i = 0; i < sample.size(); ++i) {
      sample[i] = Entry::Make(key_at(i * size / sample.size()), 0);
    }
    map_ = BucketMap<Entry>(sample, parts);
    run_ = run;
    size_ = size;
    wanted_ = parts;
  }

  size_t parts() const { return map_.buckets(); }
  // Non-decreasing in the query, and less than parts().
  size_t PartOf(Key query) const { return map_.BucketOf(Entry::Make(query, 0)); }

 private:
  // The arguments that map_ was prepared for.
  const void* run_ = nullptr;
  size_t size_ = 0;
  size_t wanted_ = 0;
  BucketMap<Entry> map_{{}, 1};
};

}  // namespace cairn
