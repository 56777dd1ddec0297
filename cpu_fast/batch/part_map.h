#pragma once

#include <algorithm>
#include <cstddef>
#include <type_traits>
#include <vector>

#include "index/sort/bucket_map.h"
#include "index/sort/sort_entry.h"

namespace cairn {

// Cuts a run's keys into parts of about as many entries each, and tells a query's part. Kept from
// call to call: asked again for the same run and number of parts, it is ready.
template <typename Key>
class PartMap {
  using Entry = std::conditional_t<sizeof(Key) == 4, Entry32, Entry64>;
  // The map counts samples, so a part is off by one of them.
  static constexpr size_t kSamplesPerPart = 4;

 public:
  // About `parts` parts, at most BucketMap::kMaxBuckets, of `size` ascending keys, one at least:
  // key_at(i) is key i. `run` is the address of their column; where another run has taken it in
  // the meantime, parts are uneven, but parts. Throws std::bad_alloc.
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
  // Ascends with the query, and is below parts().
  size_t PartOf(Key query) const { return map_.BucketOf(Entry::Make(query, 0)); }

 private:
  // What map_ is of.
  const void* run_ = nullptr;
  size_t size_ = 0;
  size_t wanted_ = 0;
  BucketMap<Entry> map_{{}, 1};
};

}  // namespace cairn
