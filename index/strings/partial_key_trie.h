#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <queue>
#include <utility>
#include <vector>

#include "cairn/types.h"
#include "index/machine/aligned_buffer.h"
#include "index/machine/parallel.h"
#include "index/strings/key_bits.h"
#include "index/strings/range_minimum.h"

namespace cairn {

// The blind trie of ordered keys, from which a tree of partial keys is built: the first bit in
// which each key differs from its predecessor. The trie of a range's keys branches first at the
// smallest of these bits. Immutable; thread-safe.
//
// A Shape defines the nodes: `Bits`, a set of bits that grows by Add(bit) while a node can use
// them, `NodeBits()`, an empty set, and `kSlots`, the number of pieces of a node
// (partial_key_builder.h).
class PartialKeyTrie {
 public:
  // A range of keys.
  struct Range {
    size_t first;
    size_t last;  // not included

    size_t size() const { return last - first; }
  };
  // A range cut into pieces that partial keys of `bits` distinguish, and these joined to children.
  template <typename Bits>
  struct Division {
    Bits bits;
    std::vector<size_t> pieces;    // where each starts
    std::vector<size_t> children;  // where each starts; some of `pieces`
    size_t largest_child = 0;      // its keys
  };
  // The difference of keys whose bits are the same, or differ too far out to count.
  static constexpr uint32_t kSame = UINT32_MAX;

  // Reads keys[0] to keys[size - 1], std::string_view, on up to `threads` threads. Throws
  // std::bad_alloc.
  template <typename Keys>
  PartialKeyTrie(const Keys& keys, size_t size, int threads)
      : differences_(FindDifferences(keys, size, threads)),
        minimum_(absl::MakeConstSpan(differences_.data(), differences_.size())) {}

  // The first bit in which key i differs from key i - 1.
  uint32_t difference(size_t i) const { return differences_[i]; }
  // The key before which the trie of a range of two or more keys branches first.
  size_t Cut(const Range& range) const { return minimum_.ArgMin(range.first + 1, range.last); }
  // Adds all bits in which keys of the range differ first. If they do not fit, returns false with
  // some of them in *bits.
  template <typename Bits>
  bool AddAll(const Range& range, Bits* bits) const {
    for (size_t i = range.first + 1; i < range.last; ++i) {
      if (differences_[i] != kSame && !bits->Add(differences_[i])) return false;
    }
    return true;
  }
  // Cuts the largest piece of a range, again and again, into at most `max_pieces` pieces, told
  // apart by bits added to `bits`, that pack well into children of `capacity` keys. Children of
  // Shape::kSlots keys are leaves, which can distinguish their keys.
  template <typename Shape>
  Division<typename Shape::Bits> Divide(const Range& range, size_t capacity, size_t max_pieces,
                                        typename Shape::Bits bits) const {
    Division<typename Shape::Bits> division = {std::move(bits), {range.first}, {range.first}};
    CutPieces<Shape>(range, capacity, max_pieces, &division);
    JoinPieces<Shape>(range, capacity, &division);
    for (size_t i = 0; i < division.children.size(); ++i) {
      const size_t last = i + 1 < division.children.size() ? division.children[i + 1] : range.last;
      division.largest_child = std::max(division.largest_child, last - division.children[i]);
    }
    return division;
  }

 private:
  // Pieces of a child's capacity divided by this are not cut further.
  static constexpr size_t kPiecesPerChild = 4;
  // Keys that one task reads.
  static constexpr size_t kReadGrain = size_t{1} << 16;

  template <typename Keys>
  static AlignedBuffer<uint32_t> FindDifferences(const Keys& keys, size_t size, int threads) {
    AlignedBuffer<uint32_t> differences(size);
    ParallelFor(threads, (size + kReadGrain - 1) / kReadGrain, [&](size_t block) {
      const size_t first = block * kReadGrain, last = std::min(size, first + kReadGrain);
      for (size_t i = first; i < last; ++i) {
        const uint64_t bit = i == 0 ? kNoBit : FirstDifferentBit(keys[i - 1], keys[i]);
        differences[i] = static_cast<uint32_t>(std::min<uint64_t>(bit, kSame));
      }
    });
    return differences;
  }

  template <typename Shape>
  bool FitsLeaf(const Range& range) const {
    typename Shape::Bits bits = Shape::NodeBits();
    return range.size() <= Shape::kSlots && AddAll(range, &bits);
  }

  template <typename Shape, typename Bits>
  void CutPieces(const Range& range, size_t capacity, size_t max_pieces,
                 Division<Bits>* division) const {
    const auto smaller = [](const Range& a, const Range& b) {
      return a.size() != b.size() ? a.size() < b.size() : a.first < b.first;
    };
    std::priority_queue<Range, std::vector<Range>, decltype(smaller)> pieces(smaller);
    pieces.push(range);
    while (!pieces.empty() && division->pieces.size() < max_pieces) {
      const Range piece = pieces.top();
      pieces.pop();
      if (piece.size() == 1) break;
      if (piece.size() <= capacity / kPiecesPerChild &&
          (capacity > Shape::kSlots || FitsLeaf<Shape>(piece))) {
        continue;
      }
      const size_t cut = Cut(piece);
      if (differences_[cut] == kSame || !division->bits.Add(differences_[cut])) continue;
      division->pieces.push_back(cut);
      pieces.push({piece.first, cut});
      pieces.push({cut, piece.last});
    }
    std::sort(division->pieces.begin(), division->pieces.end());
  }

  template <typename Shape, typename Bits>
  void JoinPieces(const Range& range, size_t capacity, Division<Bits>* division) const {
    const std::vector<size_t>& pieces = division->pieces;
    const bool leaves = capacity == Shape::kSlots;
    Bits bits = Shape::NodeBits();  // of the last child, if it is a leaf
    bool open = true;               // whether the last child can take more
    for (size_t i = 0; i < pieces.size(); ++i) {
      const Range piece = {pieces[i], i + 1 < pieces.size() ? pieces[i + 1] : range.last};
      if (i > 0) {
        open = open && piece.last - division->children.back() <= capacity &&
               (!leaves || AddAll({piece.first - 1, piece.last}, &bits));
        if (open) continue;
        division->children.push_back(piece.first);
        bits = Shape::NodeBits();
      }
      open = piece.size() <= capacity && (!leaves || AddAll(piece, &bits));
    }
  }

  AlignedBuffer<uint32_t> differences_;
  RangeMinimum minimum_;
};

}  // namespace cairn
