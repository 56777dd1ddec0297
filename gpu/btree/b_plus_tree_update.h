#pragma once

#include <cuda_runtime.h>

#include <cstddef>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cairn/device.h"
#include "gpu/btree/b_plus_tree_pages.h"
#include "gpu/run/device_run.h"

namespace cairn::gpu {

// Entries in run order, and room for more.
template <typename Key>
struct MergedRun {
  DeviceRun<Key> entries;
  size_t size;
};

// Two runs as one, without equal pairs, or without equal keys: then those of `added` are kept
// rather than those of `old`. Waits for the stream.
template <typename Key>
absl::StatusOr<MergedRun<Key>> MergeRuns(DeviceRun<Key> old, DeviceRun<Key> added,
                                         EqualKeys equal_keys, cudaStream_t stream);

// Puts entries one by one into pages that have room for them (MakeRoom). The tree is unchanged on
// ResourceExhausted. Waits for the stream.
template <typename Key>
absl::Status InsertOneByOne(BPlusTreePages<Key>* pages, const Key* keys, const RowId* row_ids,
                            size_t size, cudaStream_t stream);

// Puts a sorted batch into pages that have room for it, all leaves at once, and creates inner pages
// anew. The tree is unchanged on ResourceExhausted. Waits for the stream.
template <typename Key>
absl::Status InsertTogether(BPlusTreePages<Key>* pages, const DeviceRun<Key>& added,
                            cudaStream_t stream);

}  // namespace cairn::gpu
