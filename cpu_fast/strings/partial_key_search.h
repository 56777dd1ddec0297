#pragma once

#include <cstddef>
#include <cstdint>

#include "cairn/types.h"
#include "cpu_fast/simd/simd_level.h"
#include "cpu_fast/strings/partial_key.h"
#include "index/strings/sparse_key.h"

namespace cairn {

// A node of a PartialKeyTree: two cache lines, searched as 64 lanes of 16 bits. The first
// kHeaderLanes lanes are the header, the others are slots.
//
// A node represents a range of entries that is divided into pieces; sparse_key.h describes its
// slots. Slot 0 always qualifies, so the header's lanes before it do not affect a search.
struct alignas(128) PartialKeyNode {
  static constexpr size_t kHeaderLanes = 20;
  static constexpr size_t kSlots = 44;

  // Inner nodes: the first child; the others follow it. Leaves: the position of slot 0's entry.
  uint32_t base;
  // Leaves: the number of their entries, at most kSlots unless all are ties. Inner nodes: 0.
  uint32_t entries;
  PartialKeyBits bits;
  // Inner nodes: bit kHeaderLanes + i is set if slot i leads to another child than slot i - 1.
  uint64_t starts;
  uint16_t slots[kSlots];

  bool ties_all() const { return entries > kSlots; }
  bool is_leaf() const { return entries > 0; }
  // The next step of a search that found `lane`: a child, or a position.
  uint32_t Next(int lane) const {
    return base + static_cast<uint32_t>(__builtin_popcountll(starts << (63 - lane))) - 1;
  }
};
static_assert(sizeof(PartialKeyNode) == 128);

// A column with `stride` bytes per entry.
struct EntryColumn {
  const char* data = nullptr;
  size_t stride = 0;

  const char* At(size_t entry) const { return data + entry * stride; }
};

// The data that a search of a PartialKeyTree reads: plain pointers into memory that the tree owns.
struct PartialKeyTreeView {
  PartialKeyBits root_bits;
  const uint32_t* root = nullptr;  // partial key -> node
  const PartialKeyNode* nodes = nullptr;
  // The columns to prefetch when a query reaches an entry.
  EntryColumn wanted[2];
};

// Queries that descend a tree together.
struct PartialKeyGroup {
  // The groups that PartialKeyTree has in flight touch about as many lines as the L1 cache holds.
  static constexpr size_t kMax = 32;

  size_t size = 0;
  PaddedKey keys[kMax];
  KeyPrefix prefixes[kMax];  // read by prefix searches only
  uint32_t nodes[kMax];      // the current node of each query, and finally its leaf
  Position positions[kMax];  // the entry that the tree leads it to
  // Queries that have not reached an entry yet.
  size_t active_size = 0;
  uint8_t active[kMax];
};

// The searches of one SIMD level. Each leads the queries of a group to an entry. Among all keys
// that the tree distinguishes, the entry's key has the longest common prefix with the query, in
// bits. Thread-safe; never allocates.
struct PartialKeySearch {
  // A search in stages. Each stage prefetches the data that the next one reads: look(), enter(),
  // and then step() until no query is active.
  void (*look)(const PartialKeyTreeView& tree, PartialKeyGroup* group);
  void (*enter)(const PartialKeyTreeView& tree, PartialKeyGroup* group);
  void (*step)(const PartialKeyTreeView& tree, PartialKeyGroup* group);
  // Searches for prefixes of the queries.
  void (*find_prefix)(const PartialKeyTreeView& tree, PartialKeyGroup* group);
  // The same, starting at the nodes in group->nodes.
  void (*find_prefix_below)(const PartialKeyTreeView& tree, PartialKeyGroup* group);
};

// The searches of `level`, which must have passed CheckSupported.
const PartialKeySearch& PartialKeySearchFor(SimdLevel level);

}  // namespace cairn
