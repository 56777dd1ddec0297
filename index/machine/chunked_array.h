#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace cairn {

// Up to 2^32 - 1 elements that never move. One thread appends. Other threads may concurrently read
// elements that the appending thread has published to them.
template <typename T>
class ChunkedArray {
 public:
  uint32_t size() const { return size_; }
  // Bytes allocated, used or not.
  uint64_t memory_bytes() const { return memory_bytes_; }

  const T& operator[](uint32_t i) const {
    const size_t chunk = ChunkOf(i);
    return chunks_[chunk][i - FirstOf(chunk)];
  }

  // Makes room for one more element. Throws std::bad_alloc.
  void MakeRoom() {
    const size_t chunk = ChunkOf(size_);
    if (chunks_[chunk] != nullptr) return;
    const size_t elements = std::max<size_t>(FirstOf(chunk), size_t{1} << kLog2FirstChunk);
    chunks_[chunk] = std::make_unique_for_overwrite<T[]>(elements);
    memory_bytes_ += elements * sizeof(T);
  }
  // Requires a call of MakeRoom after the last Append.
  void Append(const T& element) {
    const size_t chunk = ChunkOf(size_);
    chunks_[chunk][size_ - FirstOf(chunk)] = element;
    ++size_;
  }
  // Removes the elements from `size` on, and frees memory that only these use. No thread may read
  // them any more.
  void Truncate(uint32_t size) {
    size_ = size;
    for (size_t chunk = ChunkOf(size) + 1; chunk < chunks_.size(); ++chunk) {
      if (chunks_[chunk] == nullptr) break;
      chunks_[chunk] = nullptr;
      memory_bytes_ -= FirstOf(chunk) * sizeof(T);
    }
  }

 private:
  // Chunk sizes double: chunk c > 0 starts with element kFirstChunk << (c - 1).
  static constexpr int kLog2FirstChunk = 8;

  static size_t ChunkOf(uint32_t i) {
    return static_cast<size_t>(std::bit_width(i >> kLog2FirstChunk));
  }
  static uint32_t FirstOf(size_t chunk) {
    return chunk == 0 ? 0 : uint32_t{1} << (kLog2FirstChunk + chunk - 1);
  }

  uint32_t size_ = 0;
  uint64_t memory_bytes_ = 0;
  std::array<std::unique_ptr<T[]>, 33 - kLog2FirstChunk> chunks_;
};

}  // namespace cairn
