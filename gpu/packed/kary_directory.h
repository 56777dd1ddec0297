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
// the key. A K-ary tree of 32-byte nodes (gpu/layout/kary_node.h) over the separators, of which a
// lookup reads one sector a level; the levels above the last are small enough for any cache, and
// the top is searched in shared memory. Where a node leaves it open which side of a separator the
// key is on, the separator itself is read. A byte a leaf, besides the separators.
//
// A lookup for a key that is near a separator costs a read more, so builders that are free to
// choose a separator between two keys do best with one in the middle.

// What kernels take by value, in gpu/packed/kary_directory.cuh.
template <typename Key>
struct KaryDirectoryView;

// 32 separators in 32 bytes, each one of 1,536 numbers. With 48 of 512 numbers the directory is a
// third smaller, but four times as many separators are in doubt: PointLookup of 32-bit keys under
// it takes 4.76 ms for 2^27 at n = 2^28, instead of 4.55; of 64-bit keys 5.84 instead of 5.80.
using KaryDirectoryNode = KaryNode<32, 4>;
using KaryDirectoryLayout = KaryLayout<KaryDirectoryNode::kFanOut>;

// Where everything stands; all pointers are to device memory.
template <typename Key>
struct KaryDirectoryLevels {
  KaryDirectoryLayout layout;
  const Key* top = nullptr;  // [layout.top_slots()], as layout.TopEntry
  // Of every level, and separators of the top: nodes[0] and separators[0] are the lowest.
  const KaryDirectoryNode* nodes[KaryDirectoryLayout::kMaxLevels] = {};
  const Key* separators[KaryDirectoryLayout::kMaxLevels + 1] = {};
};

// Owns a directory's memory. Key is uint32_t, uint64_t or WideKey.
template <typename Key>
class KaryDirectory {
 public:
  // Bytes of shared memory that the top may take, and the separators that are in it at most; less
  // where a device gives a block less (MostSharedBytes). Of 16 KB, a level more is needed at n =
  // 2^26 and 2^28, and lookups take an eighth longer.
  // Of keys of 128 bits two blocks are to fit a multiprocessor.
  static constexpr size_t kTopBytes = sizeof(Key) == 16 ? 64 << 10 : 128 << 10;
  static constexpr size_t kMaxInTop = kTopBytes / sizeof(Key) - 1;

  // The directory over ascending separators, less than 2^32 - 1 of them, which it keeps. Waits for
  // the stream. ResourceExhausted if memory does not suffice.
  static absl::StatusOr<KaryDirectory> Build(DeviceBuffer<Key> separators, cudaStream_t stream);
  // What memory_bytes() will be with so many separators in the top at most.
  static size_t PredictBytes(size_t separators, size_t max_in_top = kMaxInTop);

  KaryDirectoryView<Key> view() const;
  // Bytes of shared memory that a kernel takes which stages the top.
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

// leaves[i] = the leaf of keys[i], all in device memory; enqueues. What a kernel does that searches
// a directory and then nothing.
// Requires that top_bytes() be what a block may take.
template <typename Key>
absl::Status FindLeaves(const KaryDirectory<Key>& directory, const Key* keys, size_t size,
                        uint32_t* leaves, cudaStream_t stream);

}  // namespace cairn::gpu
