#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "index/machine/mutex.h"
#include "index/machine/parallel.h"
#include "index/machine/stop_flag.h"
#include "index/run/entry_sink.h"
#include "index/sort/bucket_sort.h"
#include "index/sort/bucket_split.h"
#include "index/sort/record_split.h"
#include "index/sort/sort_entry.h"

namespace cairn {

// Collects entries of one kind for a sink that takes batches. Ignores further entries after the
// sink's first error or a stop. Not thread-safe.
template <typename Key>
class EntryBatch {
 public:
  // The number of entries in a full batch.
  static constexpr size_t kEntries = size_t{1} << 16;

  // `on_flush`, if not null, is called with the total number of entries that the sink has taken.
  EntryBatch(EntrySink* sink, const std::function<void(uint64_t)>& on_flush, StopFlag* stop)
      : sink_(sink), on_flush_(on_flush), stop_(stop) {
    keys_.resize(kEntries);
    row_ids_.resize(kEntries);
  }

  void Add(Key key, RowId row_id) {
    if (size_ == kEntries) Flush();
    keys_[size_] = key;
    row_ids_[size_] = row_id;
    ++size_;
  }

  void Flush() {
    if (status_.ok() && stop_->stopped()) status_ = absl::CancelledError("cancelled");
    if (status_.ok() && size_ > 0) {
      status_ = sink_->Append(absl::MakeConstSpan(keys_.data(), size_),
                              absl::MakeConstSpan(row_ids_.data(), size_));
      taken_ += size_;
      if (status_.ok() && on_flush_) on_flush_(taken_);
    }
    size_ = 0;
    if (!status_.ok()) stop_->Stop();
  }

  // The sink's first error, or Cancelled.
  const absl::Status& status() const { return status_; }

 private:
  EntrySink* sink_;
  const std::function<void(uint64_t)>& on_flush_;
  StopFlag* stop_;
  std::vector<Key> keys_;
  std::vector<RowId> row_ids_;
  size_t size_ = 0;  // entries in keys_ and row_ids_
  uint64_t taken_ = 0;
  absl::Status status_;
};

// Yields buckets in order, while threads report them sorted in any order. A thread that completes
// the next buckets yields them, unless another thread is yielding; the others continue to sort.
// Thread-safe.
class OrderedYield {
 public:
  // `yield` is called once per bucket, in order, by one thread at a time.
  OrderedYield(size_t buckets, std::function<void(size_t)> yield)
      : yield_(std::move(yield)), sorted_(buckets) {}

  void Sorted(size_t bucket);

  // For buckets that take memory while they wait: blocks while `ahead` (at least one) or more
  // buckets before this one are not yet yielded. Returns false if a bucket was given up. Buckets
  // must be begun in order.
  bool MayBegin(size_t bucket, size_t ahead);
  // Called instead of Sorted: neither this bucket nor any after it will be yielded.
  void GiveUp();

 private:
  const std::function<void(size_t)> yield_;
  Mutex mutex_;
  CondVar moved_;  // next_ or given_up_ has changed
  bool given_up_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<bool> sorted_ ABSL_GUARDED_BY(mutex_);
  size_t next_ ABSL_GUARDED_BY(mutex_) = 0;        // the bucket to yield next
  bool yielding_ ABSL_GUARDED_BY(mutex_) = false;  // whether a thread yields, without the lock
};

// Sorts the entries of a source (bucket_split.h) and appends them to `batch`, which it flushes.
// Returns the sink's first error, or Cancelled.
template <typename Entry, typename Source>
absl::Status SortAndYield(Source* source, int threads, EntryBatch<typename Entry::Key>* batch,
                          StopFlag* stop) {
  Buckets<Entry> buckets = SplitIntoBuckets<Entry>(source, threads);
  if (stop->stopped()) return absl::CancelledError("cancelled");
  OrderedYield yield(buckets.size(), [&](size_t b) {
    for (const Entry& entry : buckets.bucket(b)) batch->Add(entry.key(), entry.row_id());
  });
  ParallelFor(threads, buckets.size(), [&](size_t b) {
    if (stop->stopped()) return;
    SortBucket(buckets.bucket(b));
    yield.Sorted(b);
  });
  batch->Flush();
  return batch->status();
}

// As above, for keys of bytes. They stay in the split's memory until the sink has taken them.
absl::Status SortAndYield(RecordSplit* split, int threads, EntryBatch<std::string_view>* batch,
                          StopFlag* stop);

}  // namespace cairn
