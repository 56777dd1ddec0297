#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

namespace cairn {

// Byte strings that never move. One thread appends. Other threads may concurrently read strings
// that the appending thread has passed to them.
class ByteHeap {
 public:
  // Copies the bytes; the copy lives as long as the heap. Throws std::bad_alloc.
  std::string_view Append(std::string_view bytes);
  // Removes `first`, which must be a result of Append, and everything appended after it. Frees
  // memory that only these strings use.
  void Truncate(const char* first);

  // Bytes allocated, used or not.
  uint64_t memory_bytes() const { return memory_bytes_; }

 private:
  struct Chunk {
    std::unique_ptr<char[]> bytes;
    size_t size;
  };

  std::vector<Chunk> chunks_;
  char* at_ = nullptr;
  size_t left_ = 0;  // unused bytes from at_ on
  uint64_t memory_bytes_ = 0;
};

}  // namespace cairn
