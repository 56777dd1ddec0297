#pragma once

#include "cairn/sorted_run.h"
#include "cpu_fast/strings/partial_key_search.h"
#include "index/machine/aligned_buffer.h"

namespace cairn {

// The parts of a PartialKeyTree.
struct PartialKeyNodes {
  PartialKeyBits root_bits;
  AlignedBuffer<uint32_t> root;  // 2^(number of root_bits)
  AlignedBuffer<PartialKeyNode> nodes;
};

// Builds the tree over `keys`, which must not be empty, on up to `threads` threads
// (index/strings/partial_key_builder.h). Throws std::bad_alloc.
PartialKeyNodes BuildPartialKeyNodes(const BytesColumn& keys, int threads);

}  // namespace cairn
