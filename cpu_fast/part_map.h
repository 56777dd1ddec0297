#pragma once

#include <algorithm>
#include <cstddef>
#include <type_traits>
#include <vector>

#include "absl/types/span.h"
#include "index/bucket_map.h"
#include "index/sort_entry.h"

namespace cairn {

// Cuts a run's keys into parts of about as many entries each, and tells a query's part. Kept from
// call to call: asked again for the same run and number of parts, it is ready without allocating.
template <typename Key>
class PartMap {
  using Entry = std::conditional_t<sizeof(Key) == 4, Entry32, Entry64>;
  // The map counts samples, so a part is off by one of them.
  static constexpr size_t kSamplesPerPart = 4;

 public:
  // About `parts` parts, at most BucketMap::kMaxBuckets, of ascending keys, of which there is one
  // at least. Throws std::bad_alloc.
  void Prepare(absl::Span<const Key> keys, size_t parts) {
    sample_.resize(std::min(keys.size(), parts * kSamplesPerPart));
    for (size_t i = 0; i < sample_.size(); ++i) {
      sample_[i] = Entry::Make(keys[i * keys.size() / sample_.size()], 0);
    }
    const auto same = [](const Entry& a, const Entry& b) { return a.key() == b.key(); };
    if (parts == wanted_ &&
        std::equal(sample_.begin(), sample_.end(), mapped_.begin(), mapped_.end(), same)) {
      return;
    }
    map_ = BucketMap<Entry>(sample_, parts);
    mapped_ = sample_;
    wanted_ = parts;
  }

  size_t parts() const { return map_.buckets(); }
  // Ascends with the query, and is below parts().
  size_t PartOf(Key query) const { return map_.BucketOf(Entry::Make(query, 0)); }

 private:
  std::vector<Entry> sample_;
  std::vector<Entry> mapped_;  // the sample that map_ is of
  size_t wanted_ = 0;
  BucketMap<Entry> map_{{}, 1};
};

}  // namespace cairn
