#pragma once

#include <cstdint>

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

// Builds the tree over `keys`, of which there must be some, on up to `threads` threads. The result
// does not depend on their number. Takes about nine bytes a key of memory meanwhile. Throws
// std::bad_alloc.
//
// From the top: a node's range is cut at the bits at which its keys differ first, the largest piece
// next, for as long as the node has slots and can make partial keys of the bits; then neighbouring
// pieces that fit one child are joined. So children, leaves above all, are well filled although the
// trie is not balanced. What the joined pieces were cut by is cut again in the child, whose own
// trie is that of its range.
//
// Entries of a leaf that its partial keys do not tell apart, be it that their keys are equal or
// that they differ in too many or too distant bits, are *ties*. A part of the tree that would take
// more than kMostBytesPerKey, or be deeper than kMostLevels, becomes a leaf whose entries are all
// tied, so that no set of keys makes the tree large, or slower than binary search by much. Of keys
// out of order the tree's answers mean nothing, but are positions in the column.
PartialKeyNodes BuildPartialKeyNodes(const BytesColumn& keys, int threads);

}  // namespace cairn
