#include "gpu/layout/kary_node.h"

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "gpu/layout/kary_layout.h"
#include "index/layout/wide_key.h"
#include "test/test_random.h"

namespace cairn {
BOOST_AUTO_TEST_SUITE(kary_node_test)
namespace {

// Nodes are arithmetic that the compiler can do.
static_assert(sizeof(KaryNode<32, 4>) == 32 && KaryNode<32, 4>::kNumbers == 1536);
static_assert(
    KaryNode<32, 4>::Make<uint32_t>(0, 99, 1, [](uint32_t) { return 50; }).Find(51u).low == 1);
static_assert(KaryLayout<33>(33 * 33 - 1, 32).levels() == 1);
static_assert(KaryLayout<33>(33 * 33, 32).levels() == 2);

// Finds `key` like a search, which compares the separators in doubt, and checks the node. Returns
// the number of these separators.
template <typename Node, typename Key>
uint32_t CheckKey(const Node& node, const std::vector<Key>& separators, Key key) {
  const auto rank = static_cast<uint32_t>(
      std::lower_bound(separators.begin(), separators.end(), key) - separators.begin());
  const auto ranks = node.Find(key);
  BOOST_REQUIRE_MESSAGE(ranks.low <= rank && rank <= ranks.high,
                        "key " << static_cast<uint64_t>(key) << ": rank " << rank << ", not "
                               << ranks.low << " to " << ranks.high);
  return ranks.high - ranks.low;
}

// Checks a node of `separators` for the keys from `first` to `last`: all those near separators and
// near the ends.
template <typename Node, typename Key>
void CheckNode(Key first, Key last, const std::vector<Key>& separators) {
  const auto node = Node::Make(first, last, static_cast<uint32_t>(separators.size()),
                               [&](uint32_t i) { return separators[i]; });
  std::vector<Key> centres = separators;
  centres.insert(centres.end(), {first, last, first + (last - first) / 2});
  for (Key centre : centres) {
    for (Key key : {Key(centre - 2), Key(centre - 1), centre, Key(centre + 1), Key(centre + 2)}) {
      if (key >= first && key <= last) CheckKey(node, separators, key);
    }
  }
}

// `count` ascending separators between two keys, drawn by `draw`.
template <typename Key, typename Draw>
std::vector<Key> Separators(size_t count, Key first, Key last, Draw draw) {
  std::vector<Key> separators(count);
  for (Key& key : separators) key = std::clamp<Key>(static_cast<Key>(draw()), first, last);
  std::sort(separators.begin(), separators.end());
  return separators;
}

template <typename Node, typename Key>
void CheckAllSpreads() {
  constexpr Key kMax = static_cast<Key>(~Key{0});
  constexpr int kBits = 8 * static_cast<int>(sizeof(Key));
  auto generator = TestRandom(21);
  const auto random = [&] {
    if constexpr (sizeof(Key) > 8) return static_cast<Key>(generator()) << 64 | generator();
    return static_cast<Key>(generator());
  };
  for (size_t count : {size_t{0}, size_t{1}, size_t{2}, size_t{Node::kSeparators} - 1,
                       size_t{Node::kSeparators}}) {
    for (int width = 0; width <= kBits; ++width) {
      const Key span = width == 0 ? 0 : kMax >> (kBits - width);
      for (Key first : {Key{0}, static_cast<Key>(kMax - span),
                        static_cast<Key>(random() % (kMax - span + (span == 0 ? 0 : 1)))}) {
        const Key last = first + span;
        const auto in_span = [&] {
          return static_cast<Key>(first + (span == kMax ? random() : random() % (span + Key{1})));
        };
        CheckNode<Node>(first, last, Separators<Key>(count, first, last, in_span));
        // Crowded at one end, at the other, and ever denser towards the first.
        CheckNode<Node>(first, last, Separators<Key>(count, first, last, [&, i = Key{0}]() mutable {
                          return first + std::min<Key>(span, i++);
                        }));
        CheckNode<Node>(first, last, Separators<Key>(count, first, last, [&, i = Key{0}]() mutable {
                          return last - std::min<Key>(span, i++);
                        }));
        CheckNode<Node>(
            first, last, Separators<Key>(count, first, last, [&] {
              return static_cast<Key>(first + (span >> static_cast<int>(random() % kBits)));
            }));
        CheckNode<Node>(first, last, std::vector<Key>(count, first));
        CheckNode<Node>(first, last, std::vector<Key>(count, last));
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(nodes_hold_the_rank_of_every_key_however_separators_are_spread) {
  CheckAllSpreads<KaryNode<32, 4>, uint32_t>();
  CheckAllSpreads<KaryNode<32, 4>, uint64_t>();
  CheckAllSpreads<KaryNode<32, 4>, WideKey>();
  // Low bits that cross words, and the fewest.
  CheckAllSpreads<KaryNode<40, 3>, uint64_t>();
  CheckAllSpreads<KaryNode<56, 1>, uint32_t>();
}

BOOST_AUTO_TEST_CASE(nodes_of_evenly_spread_separators_leave_few_in_doubt) {
  using Node = KaryNode<32, 4>;
  auto random = TestRandom(22);
  uint32_t in_doubt = 0;
  constexpr uint32_t kTries = 100000;
  constexpr uint64_t kGap = uint64_t{1} << 35, kLast = kGap * Node::kFanOut;
  std::vector<uint64_t> separators(Node::kSeparators);
  Node node = {};
  for (uint32_t i = 0; i < kTries; ++i) {
    if (i % 100 == 0) {
      for (size_t s = 0; s < separators.size(); ++s) {
        separators[s] = kGap * (s + 1) - kGap / 4 + random() % (kGap / 2);
      }
      node = Node::Make<uint64_t>(0, kLast, Node::kSeparators,
                                  [&](uint32_t s) { return separators[s]; });
    }
    in_doubt += CheckKey(node, separators, random() % kLast) != 0;
  }
  // Those with a separator's number: there are 46 numbers a separator.
  BOOST_TEST(in_doubt < kTries / 40);
}

BOOST_AUTO_TEST_CASE(nodes_of_dense_keys_leave_none_in_doubt) {
  using Node = KaryNode<32, 4>;
  for (uint64_t gap = 1; gap <= 7; ++gap) {
    std::vector<uint64_t> separators(Node::kSeparators);
    for (size_t i = 0; i < separators.size(); ++i) separators[i] = 1000 + gap * (i + 1);
    const uint64_t last = separators.back() + gap;
    const auto node = Node::Make<uint64_t>(1000, last, Node::kSeparators,
                                           [&](uint32_t i) { return separators[i]; });
    for (uint64_t key = 1000; key <= last; ++key) {
      BOOST_REQUIRE(CheckKey(node, separators, key) == 0);
    }
  }
}

BOOST_AUTO_TEST_CASE(layouts_share_out_all_separators) {
  using Layout = KaryLayout<33>;
  for (size_t count :
       {size_t{0}, size_t{1}, size_t{31}, size_t{32}, size_t{33}, size_t{34}, size_t{1088},
        size_t{1089}, size_t{1090}, size_t{35936}, size_t{35937}, size_t{123456}}) {
    const Layout layout(count, 7);
    BOOST_TEST(layout.top() <= 7);
    for (int level = 0; level < layout.levels(); ++level) {
      size_t own = 0;
      for (size_t node = 0; node < layout.nodes(level); ++node) {
        BOOST_REQUIRE(Layout::FirstSeparator(node) <= layout.separators(level));
        own += static_cast<size_t>(layout.CountSeparators(level, node));
      }
      BOOST_TEST(own + layout.separators(level + 1) == layout.separators(level));
      for (size_t i = 0; i < layout.separators(level + 1); ++i) {
        BOOST_REQUIRE(Layout::PassedOn(i) < layout.separators(level));
      }
    }
  }
  BOOST_TEST(Layout((size_t{1} << 32) - 2, 16384).levels() <= Layout::kMaxLevels);
}

BOOST_AUTO_TEST_CASE(tops_are_search_trees_in_eytzinger_order) {
  for (size_t top = 0; top <= 70; ++top) {
    const KaryLayout<33> layout(top, 100);
    BOOST_REQUIRE(layout.levels() == 0 && layout.top() == top);
    BOOST_REQUIRE(layout.top_slots() > top);
    // The end of a search for each separator, and of one past all.
    for (size_t rank = 0; rank <= top; ++rank) {
      size_t slot = 1;
      for (int level = layout.top_levels(); level > 0; --level) {
        slot = 2 * slot + (layout.TopEntry(slot) < rank ? 1 : 0);
      }
      BOOST_REQUIRE(slot - layout.top_slots() == rank);
    }
  }
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
