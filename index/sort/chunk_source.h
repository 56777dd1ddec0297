#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "index/machine/stop_flag.h"
#include "index/sort/entry_chunks.h"
#include "index/sort/sort_entry.h"

namespace cairn {

// A chunk, and the number added to its row ids.
template <typename Chunk>
struct ChunkOf {
  Chunk* chunk;
  RowId base;
};

// Cuts `sizes` into at most `slices` consecutive slices of about the same sum. Slice s is
// [ends[s - 1], ends[s]).
inline std::vector<size_t> CutEvenly(const std::vector<size_t>& sizes, size_t slices) {
  size_t total = 0;
  for (size_t size : sizes) total += size;
  std::vector<size_t> ends;
  size_t sum = 0;
  for (size_t i = 0; i < sizes.size(); ++i) {
    sum += sizes[i];
    if (sum * slices >= total * (ends.size() + 1) || i + 1 == sizes.size()) ends.push_back(i + 1);
  }
  return ends;
}

// The number of slices with which `threads` threads end at about the same time.
inline size_t SlicesFor(int threads) {
  return threads <= 1 ? 1 : static_cast<size_t>(threads) * 4;
}

// The source of a split (bucket_split.h) that is a list of chunks of fixed-width entries. Drain
// frees the chunks. Once `stop` is set it yields nothing more, and the split is incomplete.
template <typename Entry>
class ColumnSource {
 public:
  using Key = typename Entry::Key;
  using Chunk = typename ColumnChunks<Key>::Chunk;

  ColumnSource(std::vector<ChunkOf<Chunk>> chunks, int threads, StopFlag* stop)
      : chunks_(std::move(chunks)), stop_(stop) {
    std::vector<size_t> sizes;
    for (const auto& [chunk, base] : chunks_) sizes.push_back(chunk->size), size_ += chunk->size;
    ends_ = CutEvenly(sizes, SlicesFor(threads));
  }

  size_t size() const { return size_; }
  size_t slices() const { return ends_.size(); }

  std::vector<Entry> Sample(size_t n) const {
    std::vector<Entry> sample;
    sample.reserve(n);
    const double stride = static_cast<double>(size_) / static_cast<double>(n);
    uint64_t random = 0;
    size_t chunk = 0;
    size_t first = 0;  // the rank of the chunk's first entry
    for (size_t i = 0; i < n; ++i) {
      random = random * 6364136223846793005u + 1442695040888963407u;
      const double within = static_cast<double>(random >> 40) / static_cast<double>(1 << 24);
      size_t rank = static_cast<size_t>((static_cast<double>(i) + within) * stride);
      rank = std::min(rank, size_ - 1);
      while (rank - first >= chunks_[chunk].chunk->size) first += chunks_[chunk++].chunk->size;
      sample.push_back(At(chunks_[chunk], rank - first));
    }
    return sample;
  }

  template <typename F>
  void ForEach(size_t slice, F f) const {
    for (size_t c = slice == 0 ? 0 : ends_[slice - 1]; c < ends_[slice]; ++c) {
      if (stop_->stopped()) return;
      for (size_t i = 0; i < chunks_[c].chunk->size; ++i) f(At(chunks_[c], i));
    }
  }
  template <typename F>
  void Drain(size_t slice, F f) {
    for (size_t c = slice == 0 ? 0 : ends_[slice - 1]; c < ends_[slice]; ++c) {
      if (stop_->stopped()) return;
      for (size_t i = 0; i < chunks_[c].chunk->size; ++i) f(At(chunks_[c], i));
      chunks_[c].chunk->memory.Free();
    }
  }

 private:
  static Entry At(const ChunkOf<Chunk>& from, size_t i) {
    return Entry::Make(from.chunk->keys[i], from.base + from.chunk->row_ids[i]);
  }

  std::vector<ChunkOf<Chunk>> chunks_;
  std::vector<size_t> ends_;
  size_t size_ = 0;
  StopFlag* stop_;
};

}  // namespace cairn
