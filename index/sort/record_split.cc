#include "index/sort/record_split.h"

#include <sys/mman.h>

#include <algorithm>
#include <new>
#include <utility>

#include "index/machine/byte_copy.h"
#include "index/machine/parallel.h"
#include "index/sort/record_sort.h"

namespace cairn {
namespace {

// A bucket's records, with their entries, should fit a core's own cache.
constexpr size_t kBucketBytes = size_t{1} << 19;

// The smallest number of entries in a bucket, however long they are.
constexpr size_t kMinBucketEntries = 256;

constexpr size_t kSamplesPerBucket = 16;

// The largest part of a key in a sample, since samples are copied. Keys that differ only after it
// may share a bucket.
constexpr size_t kLongestSample = 4096;

size_t WantedBuckets(size_t bytes, size_t entries) {
  const size_t wanted = std::min(bytes / kBucketBytes, entries / kMinBucketEntries);
  return std::clamp<size_t>(wanted, 1, BucketMap<BytesEntry>::kMaxBuckets);
}

}  // namespace

RecordSplit::RecordSplit(std::vector<ChunkOf<Chunk>> chunks, int threads, StopFlag* stop)
    : chunks_(std::move(chunks)) {
  size_t bytes = 0;
  size_t entries = 0;
  std::vector<size_t> sizes;
  for (const auto& [chunk, base] : chunks_) {
    sizes.push_back(chunk->size);
    bytes += chunk->size;
    entries += chunk->entries;
  }
  const size_t wanted = WantedBuckets(bytes, entries);
  if (wanted > 1) DrawSample(wanted * kSamplesPerBucket);
  const BucketMap<BytesEntry> map(sample_, wanted);

  // Count, remembering each record's bucket.
  struct Slice {
    std::vector<uint16_t> buckets;
    std::vector<uint64_t> counts;
    std::vector<uint64_t> ends;  // bytes; later the offset of the next record
  };
  const std::vector<size_t> ends = CutEvenly(sizes, SlicesFor(threads));
  std::vector<Slice> slices(ends.size());
  ParallelFor(threads, slices.size(), [&](size_t s) {
    Slice slice;
    slice.counts.resize(map.buckets());
    slice.ends.resize(map.buckets());
    size_t count = 0;
    for (size_t c = s == 0 ? 0 : ends[s - 1]; c < ends[s]; ++c) count += chunks_[c].chunk->entries;
    slice.buckets.reserve(count);
    for (size_t c = s == 0 ? 0 : ends[s - 1]; c < ends[s] && !stop->stopped(); ++c) {
      const RowId base = chunks_[c].base;
      ForEachRecord(c, [&](char* record, size_t size) {
        KeyRecord::SetRowId(record, base + KeyRecord::GetRowId(record));
        const size_t bucket = map.BucketOf(EntryOf(record));
        slice.buckets.push_back(static_cast<uint16_t>(bucket));
        ++slice.counts[bucket];
        slice.ends[bucket] += size;
      });
    }
    slices[s] = std::move(slice);
  });

  counts_.resize(map.buckets());
  begin_.resize(map.buckets() + 1);
  uint64_t next = 0;
  for (size_t b = 0; b < map.buckets(); ++b) {
    begin_[b] = next;
    for (Slice& slice : slices) {
      counts_[b] += slice.counts[b];
      next += std::exchange(slice.ends[b], next);
    }
  }
  begin_[map.buckets()] = next;

  const size_t heap_bytes = next + KeyRecord::kSlack;
  void* p = mmap(nullptr, heap_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (p == MAP_FAILED) throw std::bad_alloc();
  heap_ = std::unique_ptr<char, Unmap>(static_cast<char*>(p), Unmap{heap_bytes});
  // With large pages, all memory would be allocated as soon as each bucket has a record.
  madvise(p, heap_bytes, MADV_NOHUGEPAGE);

  ParallelFor(threads, slices.size(), [&](size_t s) {
    const uint16_t* bucket = slices[s].buckets.data();
    uint64_t* const to = slices[s].ends.data();
    for (size_t c = s == 0 ? 0 : ends[s - 1]; c < ends[s] && !stop->stopped(); ++c) {
      ForEachRecord(c, [&](const char* record, size_t size) {
        CopyBytes({record, size}, heap_.get() + to[*bucket]);
        to[*bucket++] += size;
      });
      chunks_[c].chunk->memory.Free();
    }
  });
}

void RecordSplit::Unmap::operator()(char* p) const {
  munmap(p, bytes);
}

// Copies the starts of about `samples` records, in order of their keys.
void RecordSplit::DrawSample(size_t samples) {
  size_t marks = 0;
  for (const auto& [chunk, base] : chunks_) marks += chunk->marks.size();
  const size_t stride = std::max<size_t>(1, marks / samples);
  std::vector<size_t> offsets;
  size_t mark = 0;
  for (const auto& [chunk, base] : chunks_) {
    for (uint32_t offset : chunk->marks) {
      if (mark++ % stride != 0) continue;
      const char* const record = chunk->memory.data() + offset;
      const std::string_view key = KeyRecord::GetKey(record).substr(0, kLongestSample);
      offsets.push_back(sample_heap_.size());
      sample_heap_.resize(sample_heap_.size() + KeyRecord::Bytes(key.size()));
      KeyRecord::Write(key, base + KeyRecord::GetRowId(record),
                       sample_heap_.data() + offsets.back());
    }
  }
  sample_heap_.resize(sample_heap_.size() + KeyRecord::kSlack);
  for (size_t offset : offsets) sample_.push_back({sample_heap_.data() + offset, 0});
  if (sample_.empty()) return;
  prefix_ = sample_[0].key().substr(0, CommonPrefix(sample_, 0));
  for (BytesEntry& entry : sample_) entry = EntryOf(entry.record);
  std::sort(sample_.begin(), sample_.end());
}

BytesEntry RecordSplit::EntryOf(const char* record) const {
  return {record, PartialKeyBehind(prefix_, KeyRecord::GetKey(record))};
}

template <typename F>
void RecordSplit::ForEachRecord(size_t chunk, F f) const {
  char* record = chunks_[chunk].chunk->memory.data();
  char* const end = record + chunks_[chunk].chunk->size;
  while (record < end) {
    const size_t size = KeyRecord::Bytes(KeyRecord::GetKey(record).size());
    f(record, size);
    record += size;
  }
}

std::vector<BytesEntry> RecordSplit::Entries(size_t bucket) const {
  std::vector<BytesEntry> entries;
  entries.reserve(counts_[bucket]);
  const char* record = heap_.get() + begin_[bucket];
  const char* const end = heap_.get() + begin_[bucket + 1];
  while (record < end) {
    entries.push_back({record, 0});
    record += KeyRecord::Bytes(KeyRecord::GetKey(record).size());
  }
  return entries;
}

void RecordSplit::Release(size_t bucket) {
  // The pages at both ends may hold records of adjacent buckets.
  constexpr uint64_t kPage = 4096;
  const uint64_t begin = (begin_[bucket] + kPage - 1) / kPage * kPage;
  const uint64_t end = begin_[bucket + 1] / kPage * kPage;
  if (begin < end) madvise(heap_.get() + begin, end - begin, MADV_DONTNEED);
}

}  // namespace cairn
