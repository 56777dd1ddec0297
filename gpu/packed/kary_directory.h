#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "absl/status/statusor.h"
#include "gpu/layout/kary_layout.h"
#include "gpu/layout/kary_node.h"
#include "gpu/runtime/device_memory.h"

namespace cairn::gpu {

// Maps keys to leaves for any distribution of keys: leaf(key) is the number of separators less than
// the key. A K-ary tree of 32-byte nodes (gpu/layout/kary_node.h) over the separators; a lookup
// reads one sector per level. The levels above the last are small enough for any cache, and the top
// is searched in shared memory. If a node cannot determine on which side of a separator the key is,
// the separator itself is read. Takes one byte per leaf in addition to the separators.
//
// A lookup of a key near a separator needs one more read, so builders that can choose a separator
// between two keys should choose the middle.

// Passed to kernels by value; see gpu/packed/kary_directory.cuh.
template <typename Key>
struct KaryDirectoryView;

// 32 separators in 32 bytes, each mapped to one of 1,536 numbers. With 48 separators and 512
// numbers, the directory would be a third smaller, but the number of separators in doubt would be
// four times larger: PointLookup of 2^27 queries at n = 2^28 takes 4.76 ms, not 4.55, for 32-bit
// keys, and 5.84 ms, not 5.80, for 64-bit keys.
using KaryDirectoryNode = KaryNode<32, 4>;
using KaryDirectoryLayout = KaryLayout<KaryDirectoryNode::kFanOut>;

// The arrays of a directory; all pointers are to device memory.
template <typename Key>
struct KaryDirectoryLevels {
  KaryDirectoryLayout layout;
  const Key* top = nullptr;  // [layout.top_slots()], see layout.TopEntry
  // The arrays of each level, the lowest first; separators also have the top.
  const KaryDirectoryNode* nodes[KaryDirectoryLayout::kMaxLevels] = {};
  const Key* separators[KaryDirectoryLayout::kMaxLevels + 1] = {};
};

// Owns a directory's memory. Key is uint32_t, uint64_t or WideKey.
template <typename Key>
class KaryDirectory {
 public:
  // Maximum bytes of shared memory for the top, and maximum number of its separators; less if a
  // device allows a block less (MostSharedBytes). With 16 KB, one more level would be needed at n =
  // 2^26 and 2^28, and lookups would take an eighth longer. For 128-bit keys, two blocks must fit a
  // multiprocessor.
  static constexpr size_t kTopBytes = sizeof(Key) == 16 ? 64 << 10 : 128 << 10;
  static constexpr size_t kMaxInTop = kTopBytes / sizeof(Key) - 1;

  // Builds the directory over ascending separators, less than 2^32 - 1, and takes ownership of
  // them. Waits for the stream. Errors: ResourceExhausted if memory runs out.
  static absl::StatusOr<KaryDirectory> Build(DeviceBuffer<Key> separators, cudaStream_t stream);
  // The future memory_bytes() if at most `max_in_top` separators are in the top.
  static size_t PredictBytes(size_t separators, size_t max_in_top = kMaxInTop);

  KaryDirectoryView<Key> view() const;
  // Bytes of shared memory that a kernel needs to stage the top.
  size_t top_bytes() const { return top_.bytes(); }
  size_t memory_bytes() const {
    return separators_.bytes() + nodes_.bytes() + separators_above_.bytes() + top_.bytes();
  }

 private:
  KaryDirectory() = default;

  KaryDirectoryLevels<Key> levels_;
  DeviceBuffer<Key> separators_;
  DeviceBuffer<KaryDirectoryNode> nodes_;
  DeviceBuffer<Key> separators_above_;  // of the levels above 0
  DeviceBuffer<Key> top_;
};

// leaves[i] = the leaf of keys[i], all in device memory. Enqueued on `stream`. Equivalent to a
// kernel that only searches a directory. Requires that a block can have top_bytes() of shared
// memory.
template <typename Key>
absl::Status FindLeaves(const KaryDirectory<Key>& directory, const Key* keys, size_t size,
                        uint32_t* leaves, cudaStream_t stream);

}  // namespace cairn::gpu
