#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "cairn/device.h"
#include "gpu/layout/string_node.h"
#include "gpu/strings/string_records.h"

namespace cairn::gpu {

// The data that searches of a tree of partial keys read, in device memory.
struct StringTreeView {
  const StringNode* nodes = nullptr;
  const uint32_t* root = nullptr;       // partial key -> node
  const uint32_t* root_bits = nullptr;  // StringTree::root_bits
  bool ties = false;                    // StringTree::ties
  StringRecordsView records;
  const Position* first_positions = nullptr;  // DistinctStrings; null if keys do not repeat
  size_t longest = 0;                         // length of the longest key, in bytes
};

// The result type of a batch of byte strings.
enum class StringAnswer : uint8_t {
  kRow,         // RowId: the key's first row id, or kNoRow
  kFound,       // bool
  kRange,       // Position: the lower bound, and in `ends` the upper bound
  kLowerBound,  // Position: the number of entries that are less
  kUpperBound,  // Position: the number of entries that are not greater
  kPrefixEnd,   // Position: the number of entries that are less or start with the query
};

// Enqueues the search for a batch of byte-string keys; `results` has the answer's type. `ends` is
// for kRange.
absl::Status SearchStringTree(const StringTreeView& tree, StringAnswer answer, DeviceKeys keys,
                              void* results, Position* ends, cudaStream_t stream);

}  // namespace cairn::gpu
