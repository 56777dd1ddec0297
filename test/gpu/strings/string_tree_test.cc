// Trees of partial keys with nodes for the GPU, searched on the host; no device.
#include "gpu/strings/string_tree.h"

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "test/ordered_index_oracle.h"
#include "test/test_random.h"

namespace cairn::gpu {
BOOST_AUTO_TEST_SUITE(string_tree_test)
namespace {

bool BitOf(std::string_view key, uint32_t bit) {
  return bit / 8 < key.size() && (static_cast<uint8_t>(key[bit / 8]) >> (7 - bit % 8) & 1) != 0;
}

uint32_t FirstBitOf(const StringNode& node) {
  return (node.words[2] >> 20 & 0x7FF) | (node.words[3] & 0xFFFF) << 11;
}

uint32_t PartialKeyIn(const StringNode& node, std::string_view key) {
  uint32_t partial = 0;
  for (uint32_t place = 0; place < 15; ++place) {
    const uint32_t behind = node.words[place / 4 * 4] >> (place % 4 * 8) & 0xFF;
    partial |= uint32_t{BitOf(key, FirstBitOf(node) + behind)} << place;
  }
  return partial;
}

// The last slot whose bits are all the key's.
uint32_t SlotOf(const StringNode& node, std::string_view key) {
  const uint32_t partial = PartialKeyIn(node, key);
  uint32_t last = 0;
  for (uint32_t s = 1; s < StringNode::kSlots; ++s) {
    if ((node.slot(s) & ~partial) == 0) last = s;
  }
  return last;
}

struct Led {
  uint32_t first, last;  // to these keys, which the leaf does not distinguish
  int levels;
};

Led Search(const StringTree& tree, std::string_view key) {
  uint32_t partial = 0;
  for (uint32_t place = 0; place < tree.root_bits.size(); ++place) {
    const uint32_t bit = tree.root_bits[place];
    if (bit != StringTree::kNoRootBit) partial |= uint32_t{BitOf(key, bit)} << place;
  }
  BOOST_REQUIRE(partial < tree.root.size());
  uint32_t at = tree.root[partial];
  for (int level = 1;; ++level) {
    BOOST_REQUIRE(at < tree.nodes.size());
    const StringNode& node = tree.nodes[at];
    const uint32_t slot = SlotOf(node, key);
    if (node.is_leaf()) {
      const uint32_t first = node.base() + slot;
      return {first, first + node.TiesBehind(slot), level};
    }
    at = node.base() +
         static_cast<uint32_t>(__builtin_popcount(node.words[2] & ((2u << slot) - 1))) - 1;
  }
}

// Every key is led to itself, or to keys among which it is; whether some are.
bool CheckTree(const std::string& name, std::vector<std::string> keys, int threads = 2) {
  const auto data = oracle::FinishStrings(name, std::move(keys));
  const SortedRun run = OracleRun(data);
  const DistinctStrings distinct(run.bytes(), threads);
  BOOST_TEST(distinct.ascend());
  const StringTree tree = BuildStringTree(distinct, threads);
  bool ties = false;
  for (size_t i = 0; i < distinct.size(); ++i) {
    const Led led = Search(tree, distinct[i]);
    BOOST_REQUIRE_MESSAGE(led.first <= i && i <= led.last,
                          name << ": key " << i << " is led to " << led.first);
    BOOST_REQUIRE(led.last < distinct.size());
    BOOST_REQUIRE(led.levels <= 17);
    ties |= led.last > led.first;
  }
  BOOST_TEST(ties == tree.ties);
  const uint64_t bytes = tree.nodes.size() * sizeof(StringNode) +
                         tree.root.size() * sizeof(uint32_t) + sizeof(tree.root_bits);
  BOOST_TEST(bytes <= MostStringTreeBytes(distinct.size()));
  return ties;
}

BOOST_AUTO_TEST_CASE(leads_every_key_to_itself) {
  for (const auto& data : OracleCatalogue<std::string>(30000)) {
    if (!data.keys.empty()) CheckTree(data.name, data.keys);
  }
}

BOOST_AUTO_TEST_CASE(leads_every_key_to_itself_for_every_small_number_of_them) {
  auto random = TestRandom(1);
  for (size_t size = 1; size < 200; ++size) {
    std::vector<std::string> keys(size);
    for (std::string& key : keys) {
      key = std::string(random() % 4, 'p') + std::to_string(random() % 400);
    }
    CheckTree(std::to_string(size), std::move(keys), 1 + static_cast<int>(size % 3));
  }
}

BOOST_AUTO_TEST_CASE(bits_may_be_far_out_and_far_from_each_other) {
  auto random = TestRandom(2);
  std::vector<std::string> far, spread;
  for (int i = 0; i < 3000; ++i) {
    far.push_back(std::string(70000, 'x') + std::to_string(random()));
    std::string key(4000, 'a');
    for (int j = 0; j < 3; ++j) key[random() % key.size()] = static_cast<char>(random());
    spread.push_back(key);
  }
  BOOST_TEST(!CheckTree("far out", std::move(far)));
  CheckTree("spread", std::move(spread));  // more nodes than they are worth: ties
}

BOOST_AUTO_TEST_CASE(keys_that_no_bit_tells_apart_are_ties) {
  std::vector<std::string> zeros, mixed;
  for (size_t i = 0; i < 300; ++i) zeros.emplace_back(i, '\0');
  BOOST_TEST(CheckTree("zeros", std::move(zeros)));
  auto random = TestRandom(3);
  for (size_t i = 0; i < 20000; ++i) {
    mixed.push_back(std::to_string(random() % 5000) + std::string(random() % 3, '\0'));
  }
  BOOST_TEST(CheckTree("with zeros at the end", std::move(mixed)));
}

BOOST_AUTO_TEST_CASE(a_chain_of_prefixes_is_cut_off) {
  std::vector<std::string> chain;
  for (size_t i = 0; i < 6000; ++i) chain.emplace_back(i, 'a');
  BOOST_TEST(CheckTree("prefixes of each other", std::move(chain)));
}

BOOST_AUTO_TEST_CASE(a_text_is_small) {
  auto random = TestRandom(4);
  std::vector<std::string> keys;
  for (int i = 0; i < 100000; ++i) {
    keys.push_back("https://example.org/" + std::to_string(random() % 100000000));
  }
  const SortedRun run = OracleRun(oracle::FinishStrings("paths", std::move(keys)));
  const DistinctStrings distinct(run.bytes(), 2);
  const StringTree tree = BuildStringTree(distinct, 2);
  const double bytes = static_cast<double>(tree.nodes.size() * sizeof(StringNode) +
                                           tree.root.size() * sizeof(uint32_t));
  BOOST_TEST(bytes / static_cast<double>(distinct.size()) < 6);
}

BOOST_AUTO_TEST_CASE(distinct_keys_know_where_their_entries_are) {
  const std::vector<std::string_view> keys = {"", "a", "a", "a", "b", "c", "c"};
  const std::vector<RowId> row_ids = {9, 3, 4, 8, 1, 2, 5};
  const SortedRun run = *SortedRun::FromSorted(absl::MakeConstSpan(keys), row_ids);
  const DistinctStrings distinct(run.bytes(), 1);
  BOOST_TEST(distinct.size() == 4u);
  BOOST_TEST((distinct.first_positions() == std::vector<Position>{0, 1, 4, 5, 7}));
  BOOST_TEST(distinct.longest() == 1u);
  BOOST_TEST(distinct.bytes() == 24u);
  BOOST_TEST((distinct[3] == "c"));
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn::gpu
