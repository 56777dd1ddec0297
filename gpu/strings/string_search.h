#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "cairn/device.h"
#include "gpu/layout/string_node.h"
#include "gpu/strings/string_records.h"

namespace cairn::gpu {

// What searches of a tree of partial keys read, in device memory.
struct StringTreeView {
  const StringNode* nodes = nullptr;
  const uint32_t* root = nullptr;       // partial key -> node
  const uint32_t* root_bits = nullptr;  // StringTree::root_bits
  bool ties = false;                    // StringTree::ties
  StringRecordsView records;
  const Position* first_positions = nullptr;  // DistinctStrings; null where keys do not repeat
  size_t longest = 0;                         // key, in bytes
};

// What is asked of a batch of byte strings.
enum class StringAnswer : uint8_t {
  kRow,         // RowId: of the first entry of the key, or kNoRow
  kFound,       // bool
  kLowerBound,  // Position: how many entries are less,
  kUpperBound,  // not greater,
  kPrefixEnd,   // neither greater nor start with it
};

// Enqueues the search for a batch of keys of bytes; the results are of the answer's type.
absl::Status SearchStringTree(const StringTreeView& tree, StringAnswer answer, DeviceKeys keys,
                              void* results, cudaStream_t stream);

}  // namespace cairn::gpu
