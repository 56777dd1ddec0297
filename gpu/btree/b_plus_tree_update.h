#pragma once

#include <cuda_runtime.h>

#include <cstddef>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cairn/device.h"
#include "gpu/btree/b_plus_tree_pages.h"
#include "gpu/run/device_run.h"

namespace cairn::gpu {

// Entries in run order, with unused capacity at the end.
template <typename Key>
struct MergedRun {
  DeviceRun<Key> entries;
  size_t size;
};

// Merges two runs and removes equal pairs, or with EqualKeys::kReplaceRows equal keys: entries of
// `added` then replace those of `old`. Waits for the stream.
template <typename Key>
absl::StatusOr<MergedRun<Key>> MergeRuns(DeviceRun<Key> old, DeviceRun<Key> added,
                                         EqualKeys equal_keys, cudaStream_t stream);

// Inserts entries one by one into pages with enough room (MakeRoom). On ResourceExhausted the tree
// is unchanged. Waits for the stream.
template <typename Key>
absl::Status InsertOneByOne(BPlusTreePages<Key>* pages, const Key* keys, const RowId* row_ids,
                            size_t size, cudaStream_t stream);

// Inserts a sorted batch into pages with enough room, all leaves at once, and rebuilds inner pages.
// On ResourceExhausted the tree is unchanged. Waits for the stream.
template <typename Key>
absl::Status InsertTogether(BPlusTreePages<Key>* pages, const DeviceRun<Key>& added,
                            cudaStream_t stream);

}  // namespace cairn::gpu
