#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "index/machine/stop_flag.h"
#include "index/sort/bucket_map.h"
#include "index/sort/chunk_source.h"
#include "index/sort/entry_chunks.h"
#include "index/sort/sort_entry.h"

namespace cairn {

// The first pass of sorting byte-string keys in chunks: moves the records themselves to buckets, so
// that a bucket's keys are together in a core's cache when they are compared. The buckets' order is
// that of their keys; inside one, records are unordered. Chunks are freed as they are passed, so
// that memory holds little more than one copy of the keys. After the constructor, buckets may be
// used by different threads.
class RecordSplit {
 public:
  using Chunk = RecordChunks::Chunk;

  // Splits on up to `threads` threads, and adds each chunk's offset to its row ids. The result is
  // incomplete if `stop` is set.
  RecordSplit(std::vector<ChunkOf<Chunk>> chunks, int threads, StopFlag* stop);
  RecordSplit(const RecordSplit&) = delete;
  RecordSplit& operator=(const RecordSplit&) = delete;

  size_t buckets() const { return counts_.size(); }
  // The records of a bucket; the partial keys are not set.
  std::vector<BytesEntry> Entries(size_t bucket) const;
  // Frees the memory of a bucket's records.
  void Release(size_t bucket);

 private:
  struct Unmap {
    size_t bytes;
    void operator()(char* p) const;
  };

  void DrawSample(size_t samples);
  BytesEntry EntryOf(const char* record) const;
  template <typename F>
  void ForEachRecord(size_t chunk, F f) const;

  std::vector<ChunkOf<Chunk>> chunks_;
  std::vector<BytesEntry> sample_;
  std::vector<char> sample_heap_;
  std::string prefix_;            // that most keys share
  std::vector<uint64_t> begin_;   // [buckets() + 1] offsets in heap_
  std::vector<uint64_t> counts_;  // [buckets()] entries
  std::unique_ptr<char, Unmap> heap_{nullptr, Unmap{0}};
};

}  // namespace cairn
