#include "engine/delta/delta_rows.h"

#include <algorithm>
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
    heap_.push_back(std::make_unique_for_overwrite<char[]>(bytes));
    heap_at_ = heap_.back().get();
    heap_left_ = bytes;
    memory_bytes_ += bytes;
  }
  if (!primary_key.empty()) std::memcpy(heap_at_, primary_key.data(), primary_key.size());
  chunks_[chunk][size_ - FirstOf(chunk)] = {heap_at_, static_cast<uint32_t>(primary_key.size()),
                                            rank};
  heap_at_ += primary_key.size();
  heap_left_ -= primary_key.size();
  return base_rows_ + size_++;
}

}  // namespace cairn
