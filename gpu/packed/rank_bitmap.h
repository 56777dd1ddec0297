#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "absl/status/statusor.h"
#include "gpu/packed/leaf_packing.h"
#include "gpu/run/key_survey.h"
#include "gpu/runtime/device_memory.h"

namespace cairn::gpu {

// Sixteen bytes of a rank bitmap: one bit for each of 96 cells, set if a leaf begins there, and the
// number of leaves that begin before these cells.
struct alignas(16) RankNode {
  static constexpr uint32_t kCells = 96;
  uint32_t rank;
  uint32_t bits[3];
};

// The data of a rank bitmap that kernels need.
template <typename Key>
struct RankBitmapView {
  // A power of two of regions, one per kKeysOfRegion keys, within these limits.
  static constexpr uint32_t kMinRegions = 64, kMaxRegions = uint32_t{1} << 14;
  static constexpr size_t kKeysOfRegion = 256;
  // A region's word has its first node in the low bits and its shift above.
  static constexpr int kNodeBits = sizeof(Key) == 16 ? 25 : 26;

  Key base;          // cells are counted from this key
  Key limit;         // base + limit is the last key that has a cell
  int region_shift;  // a region covers 2^region_shift keys
  uint32_t last_leaf;
  uint32_t region_count;
  const uint32_t* regions;
  const RankNode* nodes;

  // Makes the word of a region.
  static constexpr uint32_t Region(uint32_t first_node, int shift) {
    return first_node | static_cast<uint32_t>(shift) << kNodeBits;
  }
};

// A directory of leaves that is read once per lookup. Leading bits divide the range from the least
// to the greatest key into regions. Each region has a shift of its own that divides it into cells
// of about two keys. Leaves begin with cells, and a bitmap marks these cells. The leaf of a key is
// the number of set bits up to its cell.
//
// Suits keys that are evenly distributed within each region, however much regions differ. Otherwise
// many keys share cells, and their leaves are chained (LeafCut). Takes 16 bytes per 96 cells, which
// is 0.07 to 0.14 bytes per key, plus the region table, which each block of threads keeps in shared
// memory.
template <typename Key>
class RankBitmap {
 public:
  // Lays out cells for at least one key, in blocks of `bits` bits, so that a region's cells have at
  // most `load` keys on average. If this needs more than `max_nodes` nodes, the result has no nodes
  // and cannot be searched: the keys' blocks are too small for their distribution.
  static absl::StatusOr<RankBitmap> Plan(const Key* keys, size_t size, const KeySurvey<Key>& survey,
                                         int bits, double load, size_t max_nodes,
                                         cudaStream_t stream);

  bool planned() const { return nodes_.size() != 0; }

  // Marks the keys at which cells begin.
  absl::StatusOr<KeyMarks> Mark(const Key* keys, size_t size, cudaStream_t stream) const;

  // Sets the bits of the leaves, which must have been cut using the marks.
  absl::Status SetLeaves(const Key* keys, size_t size, const LeafCut& cut, cudaStream_t stream);

  RankBitmapView<Key> view() const;
  size_t memory_bytes() const { return regions_.bytes() + nodes_.bytes(); }
  // For buffers that outlive `stream`; see DeviceBuffer::SetStream.
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
