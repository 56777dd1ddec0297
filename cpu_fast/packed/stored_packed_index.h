#pragma once

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "cairn/ordered_index.h"
#include "cpu_fast/packed/packed_index.h"
#include "cpu_fast/packed/stored_leaves.h"

namespace cairn {

// Where leaves that a run file has are searched.
enum class LeafMemory : uint8_t {
  kMapped,  // in the file's mapping
  kCopied,  // in memory of huge pages, where the kernel gives them
};

// Whether MakePackedIndex, given these options, would make the leaves that are stored.
bool AreLeavesOf(const StoredLeaves& stored, const PackedIndexOptions& options);

// The "cpu:packed" whose leaves and directory are stored beside `run`, which may be a copy of the
// file's. Nothing is built: kMapped reads the groups of cells, or the tree's nodes, and takes 64
// bytes a group of memory; all else is read as queries come to it.
//
// Whatever the sections hold, a search stays inside of them, and gives positions in the run and row
// ids below the file's bound: wrong ones where they do not belong to the run, which is for
// CheckStoredLeaves to tell. DataLoss where not even that is certain; for `options.simd` see
// FastTreeOptions. Throws std::bad_alloc.
absl::StatusOr<std::unique_ptr<OrderedIndex>> OpenPackedIndex(SortedRun run,
                                                              const PackedIndexOptions& options,
                                                              const StoredLeaves& stored,
                                                              LeafMemory memory);

}  // namespace cairn
