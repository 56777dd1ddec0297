#pragma once

#include <cstdint>

namespace cairn {

// What stands in the slots of a tree of partial keys. A node is cut into pieces by a blind trie:
// the bits at which keys to the left and to the right of each cut differ first. Slot i holds the
// sparse partial key of piece i: of the bits that the node looks at, those where the way from the
// trie's root to the piece goes right (Binna et al., HOT, SIGMOD 2018, section 4.1). The last slot
// whose bits are all set in a query's partial key is where the trie leads. Slot 0 is 0, and always
// qualifies.
inline constexpr int kMaxNodeBits = 15;

// Slots that no query is led to, for the highest bit: those behind the last one and, in a leaf,
// keys that are not told apart from the one before. The first of such *ties* has their number in
// its low bits, and says with kMixedTies that not all have the same bits.
inline constexpr uint16_t kTied = 0x8000;
inline constexpr uint16_t kMixedTies = 0x4000;

}  // namespace cairn
