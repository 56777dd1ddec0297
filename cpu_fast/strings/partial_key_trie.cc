#include "cpu_fast/strings/partial_key_trie.h"

#include <algorithm>
#include <queue>

#include "cpu_fast/strings/partial_key_search.h"
#include "index/machine/parallel.h"

namespace cairn {
namespace {

// Pieces of a child's capacity divided by this are not cut further.
constexpr size_t kPiecesPerChild = 4;
// Keys that one task reads.
constexpr size_t kReadGrain = size_t{1} << 16;

AlignedBuffer<uint32_t> FindDifferences(const BytesColumn& keys, int threads) {
  AlignedBuffer<uint32_t> differences(keys.size());
  ParallelFor(threads, (keys.size() + kReadGrain - 1) / kReadGrain, [&](size_t block) {
    const size_t first = block * kReadGrain, last = std::min(keys.size(), first + kReadGrain);
    for (size_t i = first; i < last; ++i) {
      const uint64_t bit = i == 0 ? kNoBit : FirstDifferentBit(keys[i - 1], keys[i]);
      differences[i] = static_cast<uint32_t>(std::min<uint64_t>(bit, PartialKeyTrie::kSame));
    }
  });
  return differences;
}

}  // namespace

PartialKeyTrie::PartialKeyTrie(const BytesColumn& keys, int threads)
    : differences_(FindDifferences(keys, threads)),
      minimum_(absl::MakeConstSpan(differences_.data(), differences_.size())) {}

bool PartialKeyTrie::AddAll(const Range& range, PartialKeyBitSet* bits) const {
  for (size_t i = range.first + 1; i < range.last; ++i) {
    if (differences_[i] != kSame && !bits->Add(differences_[i])) return false;
  }
  return true;
}

bool PartialKeyTrie::FitsLeaf(const Range& range) const {
  PartialKeyBitSet bits(PartialKeyNode::kMostBits);
  return range.size() <= PartialKeyNode::kSlots && AddAll(range, &bits);
}

PartialKeyTrie::Division PartialKeyTrie::Divide(const Range& range, size_t capacity,
                                                size_t most_pieces, size_t most_bits) const {
  Division division = {PartialKeyBitSet(most_bits), {range.first}, {range.first}};
  CutPieces(range, capacity, most_pieces, &division);
  JoinPieces(range, capacity, &division);
  for (size_t i = 0; i < division.children.size(); ++i) {
    const size_t last = i + 1 < division.children.size() ? division.children[i + 1] : range.last;
    division.largest_child = std::max(division.largest_child, last - division.children[i]);
  }
  return division;
}

void PartialKeyTrie::CutPieces(const Range& range, size_t capacity, size_t most_pieces,
                               Division* division) const {
  const auto smaller = [](const Range& a, const Range& b) {
    return a.size() != b.size() ? a.size() < b.size() : a.first < b.first;
  };
  std::priority_queue<Range, std::vector<Range>, decltype(smaller)> pieces(smaller);
  pieces.push(range);
  while (!pieces.empty() && division->pieces.size() < most_pieces) {
    const Range piece = pieces.top();
    pieces.pop();
    if (piece.size() == 1) break;
    if (piece.size() <= capacity / kPiecesPerChild &&
        (capacity > PartialKeyNode::kSlots || FitsLeaf(piece))) {
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

void PartialKeyTrie::JoinPieces(const Range& range, size_t capacity, Division* division) const {
  const std::vector<size_t>& pieces = division->pieces;
  const bool leaves = capacity == PartialKeyNode::kSlots;
  PartialKeyBitSet bits(PartialKeyNode::kMostBits);  // of the last child, if it is a leaf
  bool open = true;                                  // whether the last child can take more
  for (size_t i = 0; i < pieces.size(); ++i) {
    const Range piece = {pieces[i], i + 1 < pieces.size() ? pieces[i + 1] : range.last};
    if (i > 0) {
      open = open && piece.last - division->children.back() <= capacity &&
             (!leaves || AddAll({piece.first - 1, piece.last}, &bits));
      if (open) continue;
      division->children.push_back(piece.first);
      bits = PartialKeyBitSet(PartialKeyNode::kMostBits);
    }
    open = piece.size() <= capacity && (!leaves || AddAll(piece, &bits));
  }
}

}  // namespace cairn
