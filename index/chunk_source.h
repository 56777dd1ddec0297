#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "index/entry_chunks.h"
#include "index/parallel.h"
#include "index/record_sort.h"
#include "index/sort_entry.h"
#include "index/stop_flag.h"

// Sources of a split (bucket_split.h) that are lists of chunks. Once `stop` says so they yield
// nothing more, and what was split is incomplete.

namespace cairn {

// A chunk, and what is added to its row ids.
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

// How many slices let `threads` threads end at about the same time.
inline size_t SlicesFor(int threads) {
  return threads <= 1 ? 1 : static_cast<size_t>(threads) * 4;
}

// Entries of fixed width. Drain frees the chunks.
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

// Keys of bytes. The chunks must outlive the entries. The bases are added to the records' row ids
// in place, when the source is made.
class RecordSource {
 public:
  using Chunk = RecordChunks::Chunk;

  RecordSource(std::vector<ChunkOf<Chunk>> chunks, int threads, StopFlag* stop)
      : chunks_(std::move(chunks)), stop_(stop) {
    std::vector<size_t> sizes;
    for (const auto& [chunk, base] : chunks_) {
      sizes.push_back(chunk->size);
      size_ += chunk->entries;
    }
    ends_ = CutEvenly(sizes, SlicesFor(threads));
    ParallelFor(threads, chunks_.size(), [&](size_t c) {
      const RowId base = chunks_[c].base;
      if (base == 0 || stop_->stopped()) return;
      ForEachRecord(c, [base](char* record) {
        KeyRecord::SetRowId(record, base + KeyRecord::GetRowId(record));
      });
    });
  }

  size_t size() const { return size_; }
  size_t slices() const { return ends_.size(); }
  // The depth that entries' partial keys are taken at.
  size_t depth() const { return prefix_.size(); }

  // Also finds the prefix that most keys share.
  std::vector<BytesEntry> Sample(size_t n) {
    size_t marks = 0;
    for (const auto& [chunk, base] : chunks_) marks += chunk->marks.size();
    const size_t stride = std::max<size_t>(1, marks / n);
    std::vector<BytesEntry> sample;
    size_t mark = 0;
    for (const auto& [chunk, base] : chunks_) {
      for (uint32_t offset : chunk->marks) {
        if (mark++ % stride == 0) sample.push_back({chunk->memory.data() + offset, 0});
      }
    }
    if (sample.empty()) return sample;
    prefix_ = sample[0].key().substr(0, CommonPrefix(sample, 0));
    for (BytesEntry& entry : sample) entry.partial_key = PartialKey(entry.key(), prefix_.size());
    return sample;
  }

  template <typename F>
  void ForEach(size_t slice, F f) const {
    for (size_t c = slice == 0 ? 0 : ends_[slice - 1]; c < ends_[slice]; ++c) {
      if (stop_->stopped()) return;
      ForEachRecord(c, [&](const char* record) {
        f(BytesEntry{record, PartialKeyBehind(prefix_, KeyRecord::GetKey(record))});
      });
    }
  }
  template <typename F>
  void Drain(size_t slice, F f) const {
    ForEach(slice, f);
  }

 private:
  template <typename F>
  void ForEachRecord(size_t c, F f) const {
    char* record = chunks_[c].chunk->memory.data();
    char* const end = record + chunks_[c].chunk->size;
    while (record < end) {
      char* const next = record + KeyRecord::Bytes(KeyRecord::GetKey(record).size());
      f(record);
      record = next;
    }
  }

  std::vector<ChunkOf<Chunk>> chunks_;
  std::vector<size_t> ends_;
  size_t size_ = 0;
  std::string_view prefix_;
  StopFlag* stop_;
};

}  // namespace cairn
