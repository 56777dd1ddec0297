#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "cairn/sorted_run.h"
#include "cpu_fast/strings/partial_key.h"
#include "cpu_fast/strings/range_minimum.h"
#include "index/machine/aligned_buffer.h"

namespace cairn {

// The blind trie of a run's keys, as what a PartialKeyTree is built from: the bit in which each key
// differs first from the one before. The least of these bits in a range is where the trie of the
// range's keys branches first. Immutable; thread-safe.
class PartialKeyTrie {
 public:
  // A range of entries.
  struct Range {
    size_t first;
    size_t last;  // not included

    size_t size() const { return last - first; }
  };
  // A range cut into pieces that partial keys of `bits` tell apart, and those joined to children.
  struct Division {
    PartialKeyBitSet bits;
    std::vector<size_t> pieces;    // where each starts
    std::vector<size_t> children;  // likewise; some of `pieces`
    size_t largest_child = 0;      // its entries
  };
  // The difference of keys whose bits are the same, or differ too far out to count.
  static constexpr uint32_t kSame = UINT32_MAX;

  // Reads all keys, on up to `threads` threads. Throws std::bad_alloc.
  PartialKeyTrie(const BytesColumn& keys, int threads);

  // The first bit in which entry i differs from entry i - 1.
  uint32_t difference(size_t i) const { return differences_[i]; }
  // The entry before which the trie of a range of two or more branches first.
  size_t Cut(const Range& range) const { return minimum_.ArgMin(range.first + 1, range.last); }
  // Adds all bits in which keys of the range differ first. False, and *bits with some of them,
  // where it cannot.
  bool AddAll(const Range& range, PartialKeyBitSet* bits) const;
  // Cuts the largest piece of a range, again and again, into at most `most_pieces` pieces, told
  // apart by at most `most_bits` bits, that pack well into children of `capacity` entries. Children
  // of PartialKeyNode::kSlots entries are leaves, which can tell apart their entries.
  Division Divide(const Range& range, size_t capacity, size_t most_pieces, size_t most_bits) const;

 private:
  bool FitsLeaf(const Range& range) const;
  void CutPieces(const Range& range, size_t capacity, size_t most_pieces, Division* division) const;
  void JoinPieces(const Range& range, size_t capacity, Division* division) const;

  AlignedBuffer<uint32_t> differences_;
  RangeMinimum minimum_;
};

}  // namespace cairn
