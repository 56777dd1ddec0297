#include "index/sort/sort.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "index/machine/parallel.h"
#include "index/machine/splitmix.h"
#include "index/sort/bucket_sort.h"
#include "index/sort/bucket_split.h"
#include "index/sort/record_sort.h"

namespace cairn {
namespace {

// The source of a split (bucket_split.h) that is a span of entries.
template <typename Entry>
class SpanSource {
 public:
  SpanSource(absl::Span<Entry> entries, int threads)
      : entries_(entries), slices_(static_cast<size_t>(threads) * 4) {}

  size_t size() const { return entries_.size(); }
  size_t slices() const { return slices_; }

  std::vector<Entry> Sample(size_t n) {
    std::vector<Entry> sample(n);
    uint64_t state = 0;
    for (Entry& entry : sample) entry = entries_[NextRandom(&state) % entries_.size()];
    return sample;
  }

  template <typename F>
  void ForEach(size_t slice, F f) const {
    const size_t end = entries_.size() * (slice + 1) / slices_;
    for (size_t i = entries_.size() * slice / slices_; i < end; ++i) f(entries_[i]);
  }
  template <typename F>
  void Drain(size_t slice, F f) const {
    ForEach(slice, f);
  }

 private:
  absl::Span<Entry> entries_;
  size_t slices_;
};

// `sort` sorts a span on its caller's thread.
template <typename Entry, typename Sort>
void SplitAndSort(absl::Span<Entry> entries, int threads, Sort sort) {
  if (threads <= 1 || !WorthSplitting<Entry>(entries.size())) return sort(entries);
  SpanSource<Entry> source(entries, threads);
  Buckets<Entry> buckets = SplitIntoBuckets<Entry>(&source, threads);
  ParallelFor(threads, buckets.size(), [&](size_t b) {
    const absl::Span<Entry> bucket = buckets.bucket(b);
    sort(bucket);
    std::copy(bucket.begin(), bucket.end(), entries.begin() + buckets.begin[b]);
  });
}

// A prefix that most keys share: the common prefix of a sample.
std::string_view LikelyPrefix(absl::Span<const BytesEntry> entries) {
  constexpr size_t kLooks = 64;
  std::vector<BytesEntry> looks;
  for (size_t i = 0; i < kLooks; ++i) looks.push_back(entries[entries.size() * i / kLooks]);
  return looks[0].key().substr(0, CommonPrefix(looks, 0));
}

}  // namespace

void SortEntries(absl::Span<Entry32> entries, int threads) {
  SplitAndSort(entries, threads, [](absl::Span<Entry32> bucket) { SortBucket(bucket); });
}

void SortEntries(absl::Span<Entry64> entries, int threads) {
  SplitAndSort(entries, threads, [](absl::Span<Entry64> bucket) { SortBucket(bucket); });
}

void SortEntries(absl::Span<BytesEntry> entries, int threads) {
  if (entries.empty()) return;
  const std::string_view prefix = LikelyPrefix(entries);
  const size_t slices = static_cast<size_t>(std::max(threads, 1)) * 4;
  ParallelFor(threads, slices, [&](size_t slice) {
    const size_t end = entries.size() * (slice + 1) / slices;
    for (size_t i = entries.size() * slice / slices; i < end; ++i) {
      entries[i].partial_key = PartialKeyBehind(prefix, entries[i].key());
    }
  });
  SplitAndSort(entries, threads, [depth = prefix.size()](absl::Span<BytesEntry> bucket) {
    SortRecords(bucket, depth);
  });
}

}  // namespace cairn
