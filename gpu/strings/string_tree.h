#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "absl/types/span.h"
#include "cairn/sorted_run.h"
#include "cairn/types.h"
#include "gpu/layout/string_node.h"
#include "index/machine/aligned_buffer.h"
#include "index/strings/key_reader.h"

namespace cairn::gpu {

// The distinct keys of a run of byte strings, by number.
class DistinctStrings {
 public:
  // Reads all keys, on up to `threads` threads. Throws std::bad_alloc.
  DistinctStrings(const BytesColumn& keys, int threads);

  size_t size() const { return first_.size() == 0 ? keys_size_ : first_.size() - 1; }
  std::string_view operator[](size_t i) const { return keys_[FirstPosition(i)]; }
  // The position of key i's first entry; the run's size for i = size().
  Position FirstPosition(size_t i) const {
    return first_.size() == 0 ? static_cast<Position>(i) : first_[i];
  }
  // All first positions if keys repeat, otherwise empty.
  absl::Span<const Position> first_positions() const { return first_.span(); }
  // The common length of all keys, if they have the same length.
  const std::optional<uint64_t>& length() const { return keys_.length(); }
  size_t longest() const { return longest_; }
  uint64_t bytes() const { return bytes_; }  // of all keys, each rounded up to a multiple of 8
  // Whether each key is greater than the one before.
  bool ascend() const { return ascend_; }

 private:
  KeyReader keys_;
  size_t keys_size_;
  AlignedBuffer<Position> first_;
  size_t longest_ = 0;
  uint64_t bytes_ = 0;
  bool ascend_ = true;
};

// A tree of partial keys with nodes for the GPU, in host memory.
struct StringTree {
  static constexpr int kMaxRootBits = 20;
  // Represents no bit: it is past any key's end.
  static constexpr uint32_t kNoRootBit = UINT32_MAX;

  std::array<uint32_t, 24> root_bits;  // the key's bit for each bit of the root's partial keys
  AlignedBuffer<uint32_t> root;        // partial key -> node
  AlignedBuffer<StringNode> nodes;
  bool ties = false;  // whether some leaf does not distinguish all its keys
};

// Builds the tree over keys, at least one, on up to `threads` threads
// (index/strings/partial_key_builder.h). Takes 4 to 6 bytes per key for most sets of keys. Throws
// std::bad_alloc.
StringTree BuildStringTree(const DistinctStrings& keys, int threads);

// Upper bound in bytes of the tree of any set of `keys` keys: up to 24.5 bytes per key.
uint64_t MostStringTreeBytes(size_t keys);

}  // namespace cairn::gpu
