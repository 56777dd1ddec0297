#include "index/machine/byte_heap.h"

#include <algorithm>
#include <cstring>

namespace cairn {
namespace {

constexpr size_t kChunkBytes = size_t{64} << 10;

}  // namespace

std::string_view ByteHeap::Append(std::string_view bytes) {
  if (bytes.size() > left_) {
    const size_t size = std::max(bytes.size(), kChunkBytes);
    chunks_.push_back({std::make_unique_for_overwrite<char[]>(size), size});
    at_ = chunks_.back().bytes.get();
    left_ = size;
    memory_bytes_ += size;
  }
  if (!bytes.empty()) std::memcpy(at_, bytes.data(), bytes.size());
  const std::string_view copy(at_, bytes.size());
  at_ += bytes.size();
  left_ -= bytes.size();
  return copy;
}

void ByteHeap::Truncate(const char* first) {
  const auto has = [&](const Chunk& chunk) {
    const auto begin = reinterpret_cast<uintptr_t>(chunk.bytes.get());
    const auto byte = reinterpret_cast<uintptr_t>(first);
    return begin <= byte && byte <= begin + chunk.size;
  };
  while (!chunks_.empty() && !has(chunks_.back())) {
    memory_bytes_ -= chunks_.back().size;
    chunks_.pop_back();
  }
  at_ = nullptr;
  left_ = 0;
  if (!chunks_.empty()) {
    const Chunk& chunk = chunks_.back();
    at_ = chunk.bytes.get() + (first - chunk.bytes.get());
    left_ = chunk.size - static_cast<size_t>(first - chunk.bytes.get());
  }
}

}  // namespace cairn
