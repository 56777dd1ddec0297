#pragma once

#include <cstdint>

namespace cairn {

// The slots of a tree of partial keys. A blind trie cuts a node into pieces, at the first bits in
// which the keys on both sides of each cut differ. Slot i holds the sparse partial key of piece i:
// those of the node's bits at which the path from the trie's root to the piece goes right (Binna et
// al., HOT, SIGMOD 2018, section 4.1). The trie leads to the last slot whose bits are all set in a
// query's partial key. Slot 0 is 0, and always qualifies.
inline constexpr int kMaxNodeBits = 15;

// The highest bit marks slots that no query reaches: those after the last one and, in a leaf, keys
// that are not distinguished from the one before. The first of such *ties* has their number in its
// low bits, and kMixedTies if not all have the same bits.
inline constexpr uint16_t kTied = 0x8000;
inline constexpr uint16_t kMixedTies = 0x4000;

}  // namespace cairn
