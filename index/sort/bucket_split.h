#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "index/machine/aligned_buffer.h"
#include "index/machine/parallel.h"
#include "index/sort/bucket_map.h"
#include "index/sort/sort_entry.h"

namespace cairn {

// Entries in buckets: every entry of a bucket is less than all of the next.
template <typename Entry>
struct Buckets {
  AlignedBuffer<Entry> entries;
  std::vector<uint64_t>
      begin;  // [size() + 1] bucket b is entries[begin[b]] … entries[begin[b + 1])

  size_t size() const { return begin.size() - 1; }
  absl::Span<Entry> bucket(size_t b) {
    return entries.span().subspan(begin[b], begin[b + 1] - begin[b]);
  }
};

// Entries per bucket, which one thread sorts in its core's own cache: half a megabyte, or half of
// that if the sort needs a copy (Sort/u32, Sort/u64). Buckets of byte-string entries are larger,
// since finding an entry's bucket requires comparing keys.
template <typename Entry>
inline constexpr size_t kBucketEntries = (std::is_same_v<Entry, Entry64> ? size_t{256} << 10
                                                                         : size_t{512} << 10) /
                                         sizeof(Entry);

// Whether splitting `entries` entries pays.
template <typename Entry>
constexpr bool WorthSplitting(size_t entries) {
  return entries >= 2 * kBucketEntries<Entry>;
}

// The first pass of a sort: distributes the entries of `source` to buckets, in parallel and keeping
// the order of equal entries. A Source has
//   size_t size() const                    number of entries;
//   std::vector<Entry> Sample(size_t n)    about n entries, drawn evenly; called first;
//   size_t slices() const                  the number of parts, each taken by one thread;
//   void ForEach(size_t slice, f)          calls f(entry) for all of a slice, repeatably;
//   void Drain(size_t slice, f)            the same, for the last time: may free passed entries
template <typename Entry, typename Source>
Buckets<Entry> SplitIntoBuckets(Source* source, int threads) {
  constexpr size_t kSamplesPerBucket = 32;
  Buckets<Entry> result;
  const size_t size = source->size();
  size_t wanted = 1;
  if (WorthSplitting<Entry>(size)) {
    wanted = std::max<size_t>(size / kBucketEntries<Entry>,
                              static_cast<size_t>(std::max(threads, 1)) * 4);
    wanted = std::min(wanted, BucketMap<Entry>::kMaxBuckets);
  }
  std::vector<Entry> sample;
  if (wanted > 1) sample = source->Sample(wanted * kSamplesPerBucket);
  std::sort(sample.begin(), sample.end());
  const BucketMap<Entry> map(sample, wanted);

  const size_t slices = source->slices();
  std::vector<std::vector<uint64_t>> cursors(slices);
  ParallelFor(threads, slices, [&](size_t slice) {
    std::vector<uint64_t> counts(map.buckets(), 0);
    source->ForEach(slice, [&](const Entry& entry) { ++counts[map.BucketOf(entry)]; });
    cursors[slice] = std::move(counts);
  });

  result.begin.resize(map.buckets() + 1);
  uint64_t next = 0;
  for (size_t b = 0; b < map.buckets(); ++b) {
    result.begin[b] = next;
    for (std::vector<uint64_t>& cursor : cursors) next += std::exchange(cursor[b], next);
  }
  result.begin[map.buckets()] = next;

  result.entries = AlignedBuffer<Entry>(next);
  ParallelFor(threads, slices, [&](size_t slice) {
    std::vector<uint64_t>& cursor = cursors[slice];
    source->Drain(slice, [&, out = result.entries.data()](const Entry& entry) {
      out[cursor[map.BucketOf(entry)]++] = entry;
    });
  });
  return result;
}

}  // namespace cairn
