// The search kernels of FastTree, compiled once for each instruction set that Highway knows and
// once as plain C++ (cpu_fast/fast_tree_scalar.cc).
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu_fast/fast_tree_search.cc"
#include "hwy/foreach_target.h"
// Highway must come behind foreach_target.
#include "hwy/highway.h"

#include "cpu_fast/fast_tree_scalar.h"
#include "cpu_fast/fast_tree_search.h"

HWY_BEFORE_NAMESPACE();
namespace cairn {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// Queries that take one step together: enough that the line each has asked for has arrived when its
// next step comes, a round later. PointLookup/cpu:fast/u64/n:20/row_id on a Xeon with AVX-512:
// 15.7 ns with 16, 14.8 with 32, 13.6 with 64, 14.0 with 128; at n:24 they differ by less than the
// noise.
constexpr size_t kGroup = 64;

template <typename Key>
using SignedOf = std::make_signed_t<Key>;

// The number of lanes of one line, flipped by `flip`, that are less than the query.
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

// Separators are stored flipped.
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

// Queries of one group on their way down.
template <typename Key>
struct Group {
  SignedOf<Key> queries[kGroup];  // flipped
  uint32_t nodes[kGroup];         // in the level that comes next
};

enum class Output { kPosition, kFirstRow };

// One batch's way through one tree. A software pipeline over levels: in one round each group in
// flight takes one step, the oldest, which has come to its leaves, first.
template <typename Key, PageBlocking kPage, Output kOutput>
class Descent {
  using Signed = SignedOf<Key>;
  using Layout = TreeLayout<Key>;
  static constexpr Key kFlip = Key{1} << (sizeof(Key) * 8 - 1);

 public:
  explicit Descent(const FastTreeView<Key>& tree) : tree_(tree) {}

  HWY_ATTR void Run(absl::Span<const Key> queries, uint32_t* out) {
    const size_t levels = static_cast<size_t>(tree_.layout.levels());
    const size_t groups = (queries.size() + kGroup - 1) / kGroup;
    for (size_t round = 0; round < groups + levels; ++round) {
      for (size_t level = levels + 1; level-- > 0;) {
        if (level > round || round - level >= groups) continue;
        const size_t first = (round - level) * kGroup;
        const size_t count = queries.size() - first < kGroup ? queries.size() - first : kGroup;
        Group<Key>& group = groups_[(round - level) % (levels + 1)];
        if (level == 0) Start(queries.data() + first, count, &group);
        if (level == levels) {
          Finish(count, group, out + first);
        } else if (level + 1 == levels) {
          StepToLeaf(static_cast<int>(level), count, &group);
        } else {
          Step(static_cast<int>(level), count, &group);
        }
      }
    }
  }

 private:
  HWY_ATTR void Start(const Key* queries, size_t count, Group<Key>* group) {
    for (size_t j = 0; j < count; ++j) {
      group->queries[j] = static_cast<Signed>(queries[j] ^ kFlip);
      group->nodes[j] = 0;
    }
  }

  HWY_ATTR const Signed* Node(int level, size_t node) const {
    return tree_.nodes + tree_.layout.template Line<kPage>(level, node) * Layout::kLineKeys;
  }

  HWY_ATTR void Step(int level, size_t count, Group<Key>* group) {
    for (size_t j = 0; j < count; ++j) {
      const uint32_t node = group->nodes[j];
      const size_t child =
          (size_t{node} << Layout::kFanOutBits) + CountLess(Node(level, node), group->queries[j]);
      group->nodes[j] = static_cast<uint32_t>(child);
      __builtin_prefetch(Node(level + 1, child));
    }
  }

  HWY_ATTR void StepToLeaf(int level, size_t count, Group<Key>* group) {
    for (size_t j = 0; j < count; ++j) {
      const uint32_t node = group->nodes[j];
      const size_t leaf =
          (size_t{node} << Layout::kFanOutBits) + CountLess(Node(level, node), group->queries[j]);
      group->nodes[j] = static_cast<uint32_t>(leaf);
      __builtin_prefetch(tree_.keys + leaf * Layout::kLineKeys);
      if constexpr (kOutput == Output::kFirstRow) {
        __builtin_prefetch(tree_.row_ids + leaf * Layout::kLineKeys);
      }
    }
  }

  HWY_ATTR void Finish(size_t count, const Group<Key>& group, uint32_t* out) {
    const size_t last = tree_.layout.leaves() - 1;
    const size_t last_entry = tree_.layout.entries() - 1;
    for (size_t j = 0; j < count; ++j) {
      const size_t leaf = group.nodes[j];
      const Key* line = leaf == last ? tree_.last_line : tree_.keys + leaf * Layout::kLineKeys;
      const size_t position =
          leaf * Layout::kLineKeys + CountLess(reinterpret_cast<const Signed*>(line),
                                               group.queries[j], static_cast<Signed>(kFlip));
      if constexpr (kOutput == Output::kPosition) {
        out[j] = static_cast<Position>(position);
      } else {
        // Behind the end nothing is equal to the query, so that the last entry may stand for it.
        const size_t entry = position < last_entry ? position : last_entry;
        const Key query = static_cast<Key>(group.queries[j]) ^ kFlip;
        const RowId row = tree_.row_ids[entry];
        out[j] = tree_.keys[entry] == query ? row : kNoRow;
      }
    }
  }

  const FastTreeView<Key>& tree_;
  Group<Key> groups_[Layout::kMaxLevels + 1];
};

template <typename Key, Output kOutput>
HWY_ATTR void Search(const FastTreeView<Key>& tree, absl::Span<const Key> queries, uint32_t* out) {
  switch (tree.layout.page()) {
    case PageBlocking::kNone:
      return Descent<Key, PageBlocking::kNone, kOutput>(tree).Run(queries, out);
    case PageBlocking::k4K:
      return Descent<Key, PageBlocking::k4K, kOutput>(tree).Run(queries, out);
    case PageBlocking::k2M:
      return Descent<Key, PageBlocking::k2M, kOutput>(tree).Run(queries, out);
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
  switch (level) {
#if HWY_ARCH_X86_64
#if (HWY_TARGETS & HWY_SSE4) != 0
    case SimdLevel::kSse4:
      return N_SSE4::Searches<Key>();
#endif
#if (HWY_TARGETS & HWY_AVX2) != 0
    case SimdLevel::kAvx2:
      return N_AVX2::Searches<Key>();
#endif
#if (HWY_TARGETS & HWY_AVX3) != 0
    case SimdLevel::kAvx512:
      return N_AVX3::Searches<Key>();
#endif
#endif
    default:
      return ScalarFastTreeSearch<Key>();
  }
}

template const FastTreeSearch<uint32_t>& FastTreeSearchFor<uint32_t>(SimdLevel level);
template const FastTreeSearch<uint64_t>& FastTreeSearchFor<uint64_t>(SimdLevel level);

}  // namespace cairn
#endif  // HWY_ONCE
