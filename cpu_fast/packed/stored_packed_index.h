#pragma once

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "cairn/ordered_index.h"
#include "cpu_fast/packed/packed_index.h"
#include "cpu_fast/packed/stored_leaves.h"

namespace cairn {

// Where the leaves of a run file are searched.
enum class LeafMemory : uint8_t {
  kMapped,  // in the file's mapping
  kCopied,  // in a copy in memory, with huge pages if the kernel provides them
};

// Whether MakePackedIndex with these options would build leaves like the stored ones.
bool AreLeavesOf(const StoredLeaves& stored, const PackedIndexOptions& options);

// Opens the "cpu:packed" index whose leaves and directory are stored in the file of `run`. `run`
// may be a copy of the file's run. Nothing is built. kMapped reads the groups of cells, or the
// tree's nodes, and takes 64 bytes of memory per group; everything else is read when queries need
// it.
//
// Whatever the sections contain, a search stays inside them and returns positions in the run and
// row ids below the file's bound. The results are wrong if the sections do not match the run, which
// CheckStoredLeaves detects. For `options.simd` see FastTreeOptions. Errors: DataLoss if even a
// safe search cannot be guaranteed. Throws std::bad_alloc.
absl::StatusOr<std::unique_ptr<OrderedIndex>> OpenPackedIndex(SortedRun run,
                                                              const PackedIndexOptions& options,
                                                              const StoredLeaves& stored,
                                                              LeafMemory memory);

}  // namespace cairn
