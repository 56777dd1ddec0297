#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "absl/status/statusor.h"
#include "gpu/packed/leaf_packing.h"
#include "gpu/run/key_survey.h"
#include "gpu/runtime/device_memory.h"

namespace cairn::gpu {

// Sixteen bytes of a rank bitmap: a bit for each of 96 cells, set where a leaf begins, and the
// number of leaves that begin before them.
struct alignas(16) RankNode {
  static constexpr uint32_t kCells = 96;
  uint32_t rank;
  uint32_t bits[3];
};

// What a kernel needs of a rank bitmap.
template <typename Key>
struct RankBitmapView {
  // Regions: a power of two of them, for kKeysOfRegion keys each, but no more.
  static constexpr uint32_t kMinRegions = 64, kMaxRegions = uint32_t{1} << 14;
  static constexpr size_t kKeysOfRegion = 256;
  // A region's word: its first node, and above that its shift.
  static constexpr int kNodeBits = sizeof(Key) == 16 ? 25 : 26;

  Key base;          // what cells count from
  Key limit;         // the last key that has a cell is base + limit
  int region_shift;  // a region is of 2^region_shift keys
  uint32_t last_leaf;
  uint32_t region_count;
  const uint32_t* regions;
  const RankNode* nodes;

  // The word of region `r`.
  static constexpr uint32_t Region(uint32_t first_node, int shift) {
    return first_node | static_cast<uint32_t>(shift) << kNodeBits;
  }
};

// A directory of leaves that is read once: the key space from the least key to the greatest is cut
// into regions by leading bits, and each region into cells by a shift of its own, so that a cell
// holds about two keys; leaves begin with cells, and a bitmap says with which. The leaf of a key is
// the number of bits that are set up to its cell.
//
// Suits keys that are spread evenly between the first and the last of a region, however much
// regions differ: elsewhere many keys share cells, and their leaves are chained (LeafCut). Takes 16
// bytes for 96 cells, so 0.07 to 0.14 bytes a key, and the region table, which a block of threads
// keeps in shared memory.
template <typename Key>
class RankBitmap {
 public:
  // Lays out cells for at least one key, in blocks of `bits` bits, so that a region's hold at most
  // `load` keys on average. No nodes, and nothing to search, where they would be more than
  // `max_nodes`: the keys' blocks are too small for how they are spread.
  static absl::StatusOr<RankBitmap> Plan(const Key* keys, size_t size, const KeySurvey<Key>& survey,
                                         int bits, double load, size_t max_nodes,
                                         cudaStream_t stream);

  bool planned() const { return nodes_.size() != 0; }

  // Where the cells begin.
  absl::StatusOr<KeyMarks> Mark(const Key* keys, size_t size, cudaStream_t stream) const;

  // Sets the bits of the leaves, which were cut by the marks.
  absl::Status SetLeaves(const Key* keys, size_t size, const LeafCut& cut, cudaStream_t stream);

  RankBitmapView<Key> view() const;
  size_t memory_bytes() const { return regions_.bytes() + nodes_.bytes(); }
  // For buffers that outlive `stream`: see DeviceBuffer.
  void Detach() {
    regions_.SetStream(AfterAllUses());
    nodes_.SetStream(AfterAllUses());
  }

 private:
  Key base_ = 0, limit_ = 0;
  int region_shift_ = 0;
  int bits_ = 0;
  uint32_t last_leaf_ = 0;
  DeviceBuffer<uint32_t> regions_;
  DeviceBuffer<RankNode> nodes_;
};

}  // namespace cairn::gpu
