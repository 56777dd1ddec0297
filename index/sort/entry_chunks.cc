#include "index/sort/entry_chunks.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <new>

namespace cairn {
namespace {

// Maps `bytes`, a multiple of kLargeBytes, at an address that is also one. Pages mapped before and
// after it for the alignment are unmapped again.
char* MapPages(size_t bytes) {
  constexpr size_t kAlignment = ChunkMemory::kLargeBytes;
  const size_t mapped = bytes + kAlignment;
  void* p = mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (p == MAP_FAILED) throw std::bad_alloc();
  char* const begin = static_cast<char*>(p);
  const size_t before = (kAlignment - reinterpret_cast<uintptr_t>(p) % kAlignment) % kAlignment;
  if (before > 0) munmap(begin, before);
  munmap(begin + before + bytes, kAlignment - before);
  madvise(begin + before, bytes, MADV_HUGEPAGE);  // only a hint: small pages also work, but slower
  return begin + before;
}

}  // namespace

ChunkMemory::ChunkMemory(size_t bytes) {
  if (bytes > SIZE_MAX / 2) throw std::bad_alloc();
  if (bytes < kLargeBytes) {
    data_ = static_cast<char*>(std::malloc(bytes));
    if (data_ == nullptr) throw std::bad_alloc();
    bytes_ = bytes;
  } else {
    bytes_ = (bytes + kLargeBytes - 1) / kLargeBytes * kLargeBytes;
    data_ = MapPages(bytes_);
  }
}

void ChunkMemory::Free() {
  if (bytes_ < kLargeBytes) {
    std::free(data_);
  } else {
    munmap(data_, bytes_);
  }
  data_ = nullptr;
  bytes_ = 0;
}

size_t NextChunkBytes(size_t chunks) {
  constexpr size_t kFirstChunkBytes = size_t{16} << 10;
  return chunks >= 4 ? ChunkMemory::kLargeBytes : kFirstChunkBytes << (2 * chunks);
}

template <typename Key>
size_t ColumnChunks<Key>::AddChunk() {
  Chunk chunk;
  chunk.memory = ChunkMemory(NextChunkBytes(chunks_.size()));
  chunk.capacity = chunk.memory.bytes() / (sizeof(Key) + sizeof(RowId));
  chunk.keys = reinterpret_cast<Key*>(chunk.memory.data());
  chunk.row_ids = reinterpret_cast<RowId*>(chunk.keys + chunk.capacity);
  chunks_.push_back(std::move(chunk));
  return chunks_.back().memory.bytes();
}

template class ColumnChunks<uint32_t>;
template class ColumnChunks<uint64_t>;

size_t RecordChunks::AddChunk(std::string_view key) {
  Chunk chunk;
  chunk.memory = ChunkMemory(
      std::max(NextChunkBytes(chunks_.size()), KeyRecord::Bytes(key.size()) + KeyRecord::kSlack));
  chunk.capacity = chunk.memory.bytes() - KeyRecord::kSlack;
  chunk.marks.reserve(chunk.capacity / kMarkBytes + 1);
  chunks_.push_back(std::move(chunk));
  return chunks_.back().memory.bytes();
}

}  // namespace cairn
