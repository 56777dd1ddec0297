// The search kernels of FastTree, compiled once for each instruction set that Highway supports.
#include "cpu_fast/simd/simd_targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu_fast/fast/fast_tree_search.cc"
#include "hwy/foreach_target.h"
// Must be included after foreach_target.h.
#include "hwy/highway.h"

#include "cpu_fast/fast/fast_tree_search.h"
#include "cpu_fast/simd/simd_dispatch.h"
#include "index/machine/prefetch.h"

HWY_BEFORE_NAMESPACE();
namespace cairn {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// Distance, in queries, between two levels of the pipeline. A prefetched line has this many turns
// to arrive, and every level has this many lines in flight.
constexpr size_t kAhead = 32;

template <typename Key>
using SignedOf = std::make_signed_t<Key>;

// The number of lanes of one line, each XORed with `flip`, that are less than the query.
template <typename Signed>
HWY_INLINE size_t CountLess(const Signed* HWY_RESTRICT line, Signed query, Signed flip) {
  constexpr size_t kLineKeys = 64 / sizeof(Signed);
  const hn::CappedTag<Signed, kLineKeys> d;
  const auto q = hn::Set(d, query);
  const auto f = hn::Set(d, flip);
  size_t count = 0;
  for (size_t i = 0; i < kLineKeys; i += hn::Lanes(d)) {
    count += hn::CountTrue(d, hn::Lt(hn::Xor(hn::Load(d, line + i), f), q));
  }
  return count;
}

// For separators, which are stored with the sign bit flipped.
template <typename Signed>
HWY_INLINE size_t CountLess(const Signed* HWY_RESTRICT line, Signed query) {
  constexpr size_t kLineKeys = 64 / sizeof(Signed);
  const hn::CappedTag<Signed, kLineKeys> d;
  const auto q = hn::Set(d, query);
  size_t count = 0;
  for (size_t i = 0; i < kLineKeys; i += hn::Lanes(d)) {
    count += hn::CountTrue(d, hn::Lt(hn::Load(d, line + i), q));
  }
  return count;
}

enum class Output { kPosition, kFirstRow };

constexpr int kAnyLevels = -1;

// One batch's descent of one tree, as a software pipeline over queries. In each turn, every level
// takes one step of a different query: the root takes the next query, the level below it the query
// that was at the root kAhead turns before, and so on. The steps of one turn are independent, so
// the processor runs them in parallel. Between its steps, a query's node is kept in `out`.
//
// kLevels is the number of inner levels, so that the steps of a turn are unrolled; kAnyLevels uses
// a loop instead.
template <typename Key, PageBlocking kPage, Output kOutput, int kLevels>
class Descent {
  using Signed = SignedOf<Key>;
  using Layout = TreeLayout<Key>;
  static constexpr Key kFlip = Key{1} << (sizeof(Key) * 8 - 1);

 public:
  HWY_INLINE Descent(const FastTreeView<Key>& tree, const Key* queries, uint32_t* out)
      : tree_(tree),
        queries_(queries),
        out_(out),
        levels_(kLevels == kAnyLevels ? tree.layout.levels() : kLevels) {}

  HWY_INLINE void Run(size_t size) {
    const size_t depth = static_cast<size_t>(levels_) * kAhead;
    size_t turn = 0;
    for (; turn < size && turn < depth; ++turn) Turn<true>(turn, size);
    for (; turn < size; ++turn) Turn<false>(turn, size);
    for (; turn < size + depth; ++turn) Turn<true>(turn, size);
  }

 private:
  // kEdge: some levels have no query, because the batch is just starting or ending.
  template <bool kEdge>
  HWY_INLINE void Turn(size_t turn, size_t size) {
    const size_t i =
        turn - static_cast<size_t>(levels_) * kAhead;  // wraps around if there is no such query
    if (!kEdge || i < size) Finish(i);
    if constexpr (kLevels == kAnyLevels) {
      for (int level = levels_ - 1; level >= 0; --level) {
        StepOf<kEdge>(level, turn - static_cast<size_t>(level) * kAhead, size);
      }
    } else {
      Steps<kEdge, kLevels - 1>(turn, size);
    }
  }
  template <bool kEdge, int kLevel>
  HWY_INLINE void Steps(size_t turn, size_t size) {
    if constexpr (kLevel >= 0) {
      StepOf<kEdge>(kLevel, turn - static_cast<size_t>(kLevel) * kAhead, size);
      Steps<kEdge, kLevel - 1>(turn, size);
    }
  }
  template <bool kEdge>
  HWY_INLINE void StepOf(int level, size_t i, size_t size) {
    if (!kEdge || i < size) Step(level, i);
  }

  HWY_INLINE Signed Query(size_t i) const { return static_cast<Signed>(queries_[i] ^ kFlip); }
  HWY_INLINE const Signed* Node(int level, size_t node) const {
    return tree_.nodes + tree_.layout.template Line<kPage>(level, node) * Layout::kLineKeys;
  }

  HWY_INLINE void Step(int level, size_t i) {
    const size_t node = level == 0 ? 0 : out_[i];
    const size_t child = (node << Layout::kFanOutBits) + CountLess(Node(level, node), Query(i));
    out_[i] = static_cast<uint32_t>(child);
    if (level + 1 < levels_) {
      Prefetch(Node(level + 1, child));
    } else {
      Prefetch(tree_.keys + child * Layout::kLineKeys);
      if constexpr (kOutput == Output::kFirstRow) {
        Prefetch(tree_.row_ids + child * Layout::kLineKeys);
      }
    }
  }

  HWY_INLINE void Finish(size_t i) {
    const size_t leaf = levels_ == 0 ? 0 : out_[i];
    const bool last = leaf + 1 == tree_.layout.leaves();
    const Key* line = last ? tree_.last_line : tree_.keys + leaf * Layout::kLineKeys;
    const size_t position =
        leaf * Layout::kLineKeys +
        CountLess(reinterpret_cast<const Signed*>(line), Query(i), static_cast<Signed>(kFlip));
    if constexpr (kOutput == Output::kPosition) {
      out_[i] = static_cast<Position>(position);
    } else {
      // No key past the end equals the query, so the last entry can be tested in its place.
      const size_t last_entry = tree_.layout.entries() - 1;
      const size_t entry = position < last_entry ? position : last_entry;
      const RowId row = tree_.row_ids[entry];
      out_[i] = tree_.keys[entry] == queries_[i] ? row : kNoRow;
    }
  }

  const FastTreeView<Key> tree_;
  const Key* HWY_RESTRICT queries_;
  uint32_t* HWY_RESTRICT out_;
  const int levels_;
};

template <typename Key, PageBlocking kPage, Output kOutput, int kLevels = kAnyLevels>
HWY_NOINLINE void Descend(const FastTreeView<Key>& tree, absl::Span<const Key> queries,
                          uint32_t* out) {
  Descent<Key, kPage, kOutput, kLevels>(tree, queries.data(), out).Run(queries.size());
}

// Calls the descent that is instantiated for the tree's number of levels.
template <typename Key, Output kOutput, int... kLevels>
void DescendLevels(const FastTreeView<Key>& tree, absl::Span<const Key> queries, uint32_t* out,
                   std::integer_sequence<int, kLevels...>) {
  static constexpr void (*kDescents[])(
      const FastTreeView<Key>&, absl::Span<const Key>,
      uint32_t*) = {Descend<Key, PageBlocking::kNone, kOutput, kLevels>...};
  kDescents[tree.layout.levels()](tree, queries, out);
}

template <typename Key, Output kOutput>
void Search(const FastTreeView<Key>& tree, absl::Span<const Key> queries, uint32_t* out) {
  switch (tree.layout.page()) {
    case PageBlocking::kNone:
      return DescendLevels<Key, kOutput>(
          tree, queries, out, std::make_integer_sequence<int, TreeLayout<Key>::kMaxLevels + 1>());
    case PageBlocking::k4K:
      return Descend<Key, PageBlocking::k4K, kOutput>(tree, queries, out);
    case PageBlocking::k2M:
      return Descend<Key, PageBlocking::k2M, kOutput>(tree, queries, out);
  }
}

template <typename Key>
const FastTreeSearch<Key>& Searches() {
  static constexpr FastTreeSearch<Key> kSearches = {Search<Key, Output::kPosition>,
                                                    Search<Key, Output::kFirstRow>};
  return kSearches;
}

}  // namespace HWY_NAMESPACE
}  // namespace cairn
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cairn {

template <typename Key>
const FastTreeSearch<Key>& FastTreeSearchFor(SimdLevel level) {
  switch (level) { CAIRN_LEVEL_CASES(Searches<Key>()) }
}

template const FastTreeSearch<uint32_t>& FastTreeSearchFor<uint32_t>(SimdLevel level);
template const FastTreeSearch<uint64_t>& FastTreeSearchFor<uint64_t>(SimdLevel level);

}  // namespace cairn
#endif  // HWY_ONCE
