#include "index/build/sorted_yield.h"

#include "index/sort/record_sort.h"

namespace cairn {

void OrderedYield::Sorted(size_t bucket) {
  MutexLock lock(&mutex_);
  sorted_[bucket] = true;
  if (yielding_) return;  // the yielding thread checks again before it stops
  yielding_ = true;
  for (; next_ < sorted_.size() && sorted_[next_]; ++next_) {
    const size_t next = next_;
    lock.Unlock();
    yield_(next);
    lock.Lock();
    moved_.NotifyAll();
  }
  yielding_ = false;
}

bool OrderedYield::MayBegin(size_t bucket, size_t ahead) {
  MutexLock lock(&mutex_);
  while (!given_up_ && bucket >= next_ + ahead) moved_.Wait(&lock);
  return !given_up_;
}

void OrderedYield::GiveUp() {
  const MutexLock lock(&mutex_);
  given_up_ = true;
  moved_.NotifyAll();
}

absl::Status SortAndYield(RecordSplit* split, int threads, EntryBatch<std::string_view>* batch,
                          StopFlag* stop) {
  if (stop->stopped()) return absl::CancelledError("cancelled");
  std::vector<std::vector<BytesEntry>> sorted(split->buckets());
  OrderedYield yield(split->buckets(), [&](size_t b) {
    for (const BytesEntry& entry : sorted[b]) batch->Add(entry.key(), entry.row_id());
    batch->Flush();  // its keys point into the bucket
    sorted[b] = {};
    split->Release(b);
  });
  ParallelFor(threads, split->buckets(), [&](size_t b) {
    if (stop->stopped()) return;
    sorted[b] = split->Entries(b);
    const absl::Span<BytesEntry> entries = absl::MakeSpan(sorted[b]);
    if (!entries.empty()) SortRecords(entries, TakePartialKeys(entries, 0));
    yield.Sorted(b);
  });
  batch->Flush();
  return batch->status();
}

}  // namespace cairn
