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
// Unlike the host's packer, this one packs *distinct* keys, each with its first row id, where keys
// repeat often: a leaf answers for its key interval alone. Where few do, it packs all entries, and
// a key's are in one cell. For it may be told that a leaf's interval must begin on one of the
// directory's cells; a cell that holds more keys than a leaf gets a chain of leaves.

namespace cairn::gpu {

// The distinct keys of a run. Where all keys are, or leaves are to hold all entries, this is the
// run itself.
template <typename Key>
struct DistinctKeys {
  DeviceBuffer<Key> keys;
  // first_entry[i] is the run's first entry with keys[i], first_entry[size] the run's size; no
  // elements where key i is entry i.
  DeviceBuffer<Position> first_entry;
  // The row ids of all entries, in run order.
  DeviceBuffer<RowId> row_ids;

  size_t size() const { return keys.size(); }
  bool repeats() const { return first_entry.size() != 0; }
};

// `distinct` is how many there are.
template <typename Key>
absl::StatusOr<DistinctKeys<Key>> FindDistinctKeys(DeviceRun<Key> run, size_t distinct,
                                                   cudaStream_t stream);

// Bits a key: where the directory's cells begin, and where blocks do, which is where a cell does
// too. The first key begins both; one that is equal to the one before begins none.
struct KeyMarks {
  DeviceBuffer<uint32_t> cells;
  DeviceBuffer<uint32_t> blocks;
};

// Words of a bit array over `size` keys; those behind the last bit are readable.
constexpr size_t MarkWords(size_t size) {
  return size / 32 + 3;
}

// Memory for the marks of `size` keys; what no key marks is zero.
absl::StatusOr<KeyMarks> AllocateMarks(size_t size, cudaStream_t stream);

// Cells of one key each, with all its entries, for a directory that takes leaves as they come.
template <typename Key>
absl::StatusOr<KeyMarks> MarkBlocks(const Key* keys, size_t size, int bits, cudaStream_t stream);

// Keys that one thread cuts into leaves; no leaf goes on beyond them.
inline constexpr size_t kLeafTile = 1024;

// A leaf that another one links to.
struct LinkedLeaf {
  Position first, end;  // of its keys and all behind it in the chain
  uint32_t from;        // the leaf that links to it
};

// Where leaves begin. The primary ones, which a directory finds, are in key order and together
// answer for all keys that there can be; leaf i holds the keys first[i] … first[i + 1] - 1, or the
// first of them where they are too many, and none where it stands for a stretch of blocks without
// keys. The leaves that they link to are numbered behind them.
struct LeafCut {
  int bits = 0;
  size_t primary = 0;
  DeviceBuffer<Position> first;     // [primary + 1]
  DeviceBuffer<LinkedLeaf> linked;  // a chain's are neighbours
  size_t chained_keys = 0;          // keys in linked leaves
  size_t links_followed = 0;        // were each key asked for once
  size_t longest_chain = 0;         // in linked leaves

  size_t leaves() const { return primary + linked.size(); }
};

// Cuts at least one key into leaves. `repeat` says whether keys may be equal.
template <typename Key>
absl::StatusOr<LeafCut> CutLeaves(const Key* keys, size_t size, int bits, const KeyMarks& marks,
                                  bool repeat, cudaStream_t stream);

// The same for leaves of another layout, which hold up to `capacity` entries, at most 31, and one
// less where they are continued.
template <typename Key>
absl::StatusOr<LeafCut> CutLeavesOf(int capacity, const Key* keys, size_t size, int bits,
                                    const KeyMarks& marks, bool repeat, cudaStream_t stream);

// Fills the leaves.
//
// In a leaf that is continued, the last slot's key is zero, and its row id is the number of the
// leaf where the keys go on. Ascending distinct keys leave a zero there in no other leaf; a leaf
// that equal ones would leave so is continued.
template <typename Key>
absl::StatusOr<DeviceBuffer<Leaf>> FillLeaves(const DistinctKeys<Key>& keys, const LeafCut& cut,
                                              cudaStream_t stream);

// The greatest key that each primary leaf but the last answers for, ascending: the middle of what
// lies between its last key and the next leaf's first, where that is open.
template <typename Key>
absl::StatusOr<DeviceBuffer<Key>> FindSeparators(const Key* keys, size_t size, const LeafCut& cut,
                                                 cudaStream_t stream);

}  // namespace cairn::gpu
