#include "engine/delta/delta_rows.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace cairn {

RowId DeltaRows::Append(std::string_view primary_key, RowId rank) {
  const size_t chunk = ChunkOf(size_);
  if (chunks_[chunk] == nullptr) {
    const size_t rows = std::max<size_t>(FirstOf(chunk), size_t{1} << kLog2FirstChunk);
    chunks_[chunk] = std::make_unique_for_overwrite<Row[]>(rows);
    memory_bytes_ += rows * sizeof(Row);
  }
  if (primary_key.size() > heap_left_) {
    const size_t bytes = std::max(primary_key.size(), kHeapChunkBytes);
    heap_.push_back({std::make_unique_for_overwrite<char[]>(bytes), bytes});
    heap_at_ = heap_.back().bytes.get();
    heap_left_ = bytes;
    memory_bytes_ += bytes;
  }
  if (!primary_key.empty()) std::memcpy(heap_at_, primary_key.data(), primary_key.size());
  chunks_[chunk][size_ - FirstOf(chunk)] = {heap_at_, static_cast<uint32_t>(primary_key.size()),
                                            rank};
  heap_at_ += primary_key.size();
  heap_left_ -= primary_key.size();
  const RowId row = base_rows_ + size_;
  if (size_ > 0 && this->primary_key(row - 1) >= primary_key) ascending_from_ = row;
  ++size_;
  return row;
}

void DeltaRows::Truncate(RowId end) {
  if (end == this->end()) return;
  // Primary keys stand in the order of rows: where the first one that goes begins the next one
  // will.
  const char* const at = At(end).primary_key;
  const auto has = [&](const HeapChunk& chunk) {
    const auto begin = reinterpret_cast<uintptr_t>(chunk.bytes.get());
    const auto byte = reinterpret_cast<uintptr_t>(at);
    return begin <= byte && byte <= begin + chunk.size;
  };
  while (!heap_.empty() && !has(heap_.back())) {
    memory_bytes_ -= heap_.back().size;
    heap_.pop_back();
  }
  heap_at_ = nullptr;
  heap_left_ = 0;
  if (!heap_.empty()) {
    const HeapChunk& chunk = heap_.back();
    heap_at_ = chunk.bytes.get() + (at - chunk.bytes.get());
    heap_left_ = chunk.size - static_cast<size_t>(at - chunk.bytes.get());
  }
  size_ = end - base_rows_;
  ascending_from_ = std::min(ascending_from_.load(), end);
  for (size_t chunk = ChunkOf(size_) + 1; chunk < chunks_.size(); ++chunk) {
    if (chunks_[chunk] == nullptr) break;
    chunks_[chunk] = nullptr;
    memory_bytes_ -= FirstOf(chunk) * sizeof(Row);
  }
}

}  // namespace cairn
