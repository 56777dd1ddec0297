#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "absl/status/statusor.h"
#include "cairn/types.h"
#include "gpu/run/device_run.h"
#include "gpu/runtime/device_memory.h"
#include "index/layout/packed_leaves.h"

// Packs the entries of a run into leaves (index/layout/packed_leaves.h) on the device, in parallel.
//
// Unlike the host's packer, this one packs *distinct* keys, each with its first row id, if keys
// repeat often: a leaf covers only its own key interval. If few keys repeat, it packs all entries,
// and all entries of a key are in one cell. The caller may require that each leaf's interval begins
// on a cell of the directory; a cell with more keys than fit a leaf gets a chain of leaves.

namespace cairn::gpu {

// The distinct keys of a run. If all keys are distinct, or if leaves hold all entries, this is the
// run itself.
template <typename Key>
struct DistinctKeys {
  DeviceBuffer<Key> keys;
  // first_entry[i] is the run's first entry with keys[i]; first_entry[size] is the run's size.
  // Empty if key i is entry i.
  DeviceBuffer<Position> first_entry;
  // The row ids of all entries, in run order.
  DeviceBuffer<RowId> row_ids;

  size_t size() const { return keys.size(); }
  bool repeats() const { return first_entry.size() != 0; }
};

// `distinct` is the number of distinct keys.
template <typename Key>
absl::StatusOr<DistinctKeys<Key>> FindDistinctKeys(DeviceRun<Key> run, size_t distinct,
                                                   cudaStream_t stream);

// One bit per key in each array: cells has the first key of each cell of the directory, blocks that
// of each block; a block always begins with a cell. The first key begins both. A key equal to the
// previous one begins neither.
struct KeyMarks {
  DeviceBuffer<uint32_t> cells;
  DeviceBuffer<uint32_t> blocks;
};

// Words of a bit array over `size` keys, including readable words past the last bit.
constexpr size_t MarkWords(size_t size) {
  return size / 32 + 3;
}

// Memory for the marks of `size` keys; all marks are zero.
absl::StatusOr<KeyMarks> AllocateMarks(size_t size, cudaStream_t stream);

// Marks for cells of one key each, with all its entries, for a directory that does not restrict
// leaves.
template <typename Key>
absl::StatusOr<KeyMarks> MarkBlocks(const Key* keys, size_t size, int bits, cudaStream_t stream);

// Keys that one thread cuts into leaves; no leaf extends beyond them.
inline constexpr size_t kLeafTile = 1024;

// A leaf that another leaf links to.
struct LinkedLeaf {
  Position first, end;  // the leaf's keys and all later keys of the chain
  uint32_t from;        // the leaf that links to it
};

// The beginnings of leaves. Primary leaves, which a directory finds, are in key order and together
// cover all possible keys. Leaf i has the keys first[i] … first[i + 1] - 1, or only the first of
// them if they are too many. A leaf that covers blocks without keys is empty. Linked leaves are
// numbered after the primary ones.
struct LeafCut {
  int bits = 0;
  size_t primary = 0;
  DeviceBuffer<Position> first;     // [primary + 1]
  DeviceBuffer<LinkedLeaf> linked;  // the leaves of a chain are consecutive
  size_t chained_keys = 0;          // number of keys in linked leaves
  size_t links_followed = 0;        // number of links followed if each key is looked up once
  size_t longest_chain = 0;         // number of linked leaves

  size_t leaves() const { return primary + linked.size(); }
};

// Cuts at least one key into leaves. `repeat` is whether keys may be equal.
template <typename Key>
absl::StatusOr<LeafCut> CutLeaves(const Key* keys, size_t size, int bits, const KeyMarks& marks,
                                  bool repeat, cudaStream_t stream);

// The same for leaves of another layout, which have up to `capacity` entries, at most 31, and one
// less if they are continued.
template <typename Key>
absl::StatusOr<LeafCut> CutLeavesOf(int capacity, const Key* keys, size_t size, int bits,
                                    const KeyMarks& marks, bool repeat, cudaStream_t stream);

// Fills the leaves.
//
// In a continued leaf, the last slot's key is zero, and its row id is the number of the leaf that
// continues it. No other leaf of ascending distinct keys ends with a zero; a leaf of equal keys
// that would end with a zero is continued.
template <typename Key>
absl::StatusOr<DeviceBuffer<Leaf>> FillLeaves(const DistinctKeys<Key>& keys, const LeafCut& cut,
                                              cudaStream_t stream);

// The maximum key that each primary leaf except the last covers, ascending. If there is a choice,
// it is the middle between the leaf's last key and the next leaf's first key.
template <typename Key>
absl::StatusOr<DeviceBuffer<Key>> FindSeparators(const Key* keys, size_t size, const LeafCut& cut,
                                                 cudaStream_t stream);

}  // namespace cairn::gpu
