#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "cairn/types.h"
#include "index/sort/sort_entry.h"

// Stores entries until they are sorted: lists of chunks that grow without copying, and whose memory
// is returned to the system chunk by chunk. One thread at a time.

namespace cairn {

// Memory of one chunk: from the heap below kLargeBytes, otherwise separately mapped 2 MB pages, so
// that freeing it returns them at once, whatever the heap's state. Movable. Throws
// std::bad_alloc.
class ChunkMemory {
 public:
  ChunkMemory() = default;
  explicit ChunkMemory(size_t bytes);
  ~ChunkMemory() { Free(); }
  ChunkMemory(ChunkMemory&& other) noexcept { *this = std::move(other); }
  ChunkMemory& operator=(ChunkMemory&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }

  char* data() const { return data_; }
  size_t bytes() const { return bytes_; }
  void Free();

  static constexpr size_t kLargeBytes = size_t{2} << 20;

 private:
  char* data_ = nullptr;
  size_t bytes_ = 0;
};

// The size in bytes of the chunk after `chunks` others: small for the first ones, since an index of
// a small database has many short lists, then kLargeBytes.
size_t NextChunkBytes(size_t chunks);

// Keys of fixed width with their row ids, in two columns per chunk.
template <typename Key>
class ColumnChunks {
 public:
  struct Chunk {
    ChunkMemory memory;
    Key* keys = nullptr;
    RowId* row_ids = nullptr;
    size_t size = 0;
    size_t capacity = 0;
  };

  // Whether the next Add needs AddChunk() first.
  bool full() const { return chunks_.empty() || chunks_.back().size == chunks_.back().capacity; }
  // Returns the new chunk's bytes.
  size_t AddChunk();
  // Adds the first entries while there is room, and returns their number.
  size_t Add(absl::Span<const Key> keys, absl::Span<const RowId> row_ids) {
    Chunk& chunk = chunks_.back();
    const size_t count = std::min(keys.size(), chunk.capacity - chunk.size);
    std::copy_n(keys.data(), count, chunk.keys + chunk.size);
    std::copy_n(row_ids.data(), count, chunk.row_ids + chunk.size);
    chunk.size += count;
    return count;
  }

  std::vector<Chunk>& chunks() { return chunks_; }

 private:
  std::vector<Chunk> chunks_;
};

// Byte-string keys: contiguous KeyRecords.
class RecordChunks {
 public:
  struct Chunk {
    ChunkMemory memory;
    size_t size = 0;      // bytes of records
    size_t capacity = 0;  // bytes; followed by a KeyRecord's slack
    size_t entries = 0;
    std::vector<uint32_t> marks;  // offsets of some records, evenly drawn
  };

  bool full(std::string_view key) const {
    return chunks_.empty() ||
           chunks_.back().capacity - chunks_.back().size < KeyRecord::Bytes(key.size());
  }
  // Adds a chunk with room for at least `key`. Returns the new chunk's bytes.
  size_t AddChunk(std::string_view key);
  void Add(std::string_view key, RowId row_id) {
    Chunk& chunk = chunks_.back();
    if (chunk.size >= chunk.marks.size() * kMarkBytes) {
      chunk.marks.push_back(static_cast<uint32_t>(chunk.size));
    }
    KeyRecord::Write(key, row_id, chunk.memory.data() + chunk.size);
    chunk.size += KeyRecord::Bytes(key.size());
    ++chunk.entries;
  }

  std::vector<Chunk>& chunks() { return chunks_; }

 private:
  // The distance of marked records, about, in bytes.
  static constexpr size_t kMarkBytes = size_t{32} << 10;

  std::vector<Chunk> chunks_;
};

}  // namespace cairn
