#pragma once

#include <cstddef>
#include <cstdint>

#include "cairn/types.h"
#include "cpu_fast/simd/simd_level.h"
#include "cpu_fast/strings/partial_key.h"
#include "index/strings/sparse_key.h"

namespace cairn {

// A node of a PartialKeyTree: two cache lines, searched as 64 lanes of 16 bits of which the first
// kHeaderLanes are the header, and the others slots.
//
// A node stands for a range of entries, cut into pieces; its slots are as sparse_key.h says. Slot 0
// always qualifies, so that the header's lanes before it never matter.
struct alignas(128) PartialKeyNode {
  static constexpr size_t kHeaderLanes = 20;
  static constexpr size_t kSlots = 44;

  // Inner nodes: the first child; the others follow it. Leaves: the position of slot 0's entry.
  uint32_t base;
  // Leaves: the number of their entries, at most kSlots unless all are ties. Inner nodes: 0.
  uint32_t entries;
  PartialKeyBits bits;
  // Inner nodes: bit kHeaderLanes + i is set where slot i leads to another child than slot i - 1.
  uint64_t starts;
  uint16_t slots[kSlots];

  bool ties_all() const { return entries > kSlots; }
  bool is_leaf() const { return entries > 0; }
  // Where the search goes from the lane that it found: a child, or a position.
  uint32_t Next(int lane) const {
    return base + static_cast<uint32_t>(__builtin_popcountll(starts << (63 - lane))) - 1;
  }
};
static_assert(sizeof(PartialKeyNode) == 128);

// A column that has so many bytes for each entry.
struct EntryColumn {
  const char* data = nullptr;
  size_t stride = 0;

  const char* At(size_t entry) const { return data + entry * stride; }
};

// What a search of a PartialKeyTree reads: plain pointers into memory that the tree keeps alive.
struct PartialKeyTreeView {
  PartialKeyBits root_bits;
  const uint32_t* root = nullptr;  // partial key -> node
  const PartialKeyNode* nodes = nullptr;
  // What to ask of memory where a query comes to an entry.
  EntryColumn wanted[2];
};

// Queries that go down a tree together.
struct PartialKeyGroup {
  // With the groups that PartialKeyTree has in flight, about what the L1 cache holds of lines.
  static constexpr size_t kMax = 32;

  size_t size = 0;
  PaddedKey keys[kMax];
  KeyPrefix prefixes[kMax];  // read by the searches of prefixes only
  uint32_t nodes[kMax];      // where each query is, and then its leaf
  Position positions[kMax];  // the entry that it is led to
  // Those that have not come to an entry yet.
  size_t active_size = 0;
  uint8_t active[kMax];
};

// The searches of one SIMD level: each leads the queries of a group to an entry whose key has the
// longest common prefix with the query, in bits, of all keys that the tree tells apart.
// Thread-safe; allocates nothing.
struct PartialKeySearch {
  // A search in stages, each of which asks memory for what the next one reads: look(), enter(), and
  // step() until there is no active query.
  void (*look)(const PartialKeyTreeView& tree, PartialKeyGroup* group);
  void (*enter)(const PartialKeyTreeView& tree, PartialKeyGroup* group);
  void (*step)(const PartialKeyTreeView& tree, PartialKeyGroup* group);
  // A search for prefixes of the queries.
  void (*find_prefix)(const PartialKeyTreeView& tree, PartialKeyGroup* group);
  // The same from the nodes in group->nodes on.
  void (*find_prefix_below)(const PartialKeyTreeView& tree, PartialKeyGroup* group);
};

// The searches of `level`, which CheckSupported must have let pass.
const PartialKeySearch& PartialKeySearchFor(SimdLevel level);

}  // namespace cairn
