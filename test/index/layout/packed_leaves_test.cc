#include "index/layout/packed_leaves.h"

#include <algorithm>
#include <array>
#include <boost/test/unit_test.hpp>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "test/ordered_index_oracle.h"
#include "test/require_ok.h"
#include "test/test_random.h"

namespace cairn {
BOOST_AUTO_TEST_SUITE(packed_leaves_test)
namespace {

// Leaves of 128-bit keys, which only a GPU has.
static_assert(LeafLayout<128>::kEntries == 3 && LeafEntries(128) == 3);
static_assert(LeafLayout<128>::kPositionOffset == 48 && LeafLayout<128>::kRowsOffset == 52);
constexpr LeafWords<128> OneWideKey() {
  LeafWords<128> words(7);
  words.SetKey(1, (WideKey{(uint64_t{4} << 32) | 3} << 64) | ((uint64_t{2} << 32) | 1));
  words.SetRow(1, 9);
  return words;
}
static_assert(OneWideKey().words[3] == UINT32_MAX && OneWideKey().words[4] == 1 &&
              OneWideKey().words[5] == 2 && OneWideKey().words[6] == 3 &&
              OneWideKey().words[7] == 4 && OneWideKey().words[8] == UINT32_MAX);
static_assert(OneWideKey().words[12] == 7 && OneWideKey().words[13] == kNoRow &&
              OneWideKey().words[14] == 9 && OneWideKey().words[15] == kNoRow);

static_assert(SeparatorBetween<uint32_t>(5, 5) == 5 && SeparatorBetween<uint32_t>(5, 6) == 5);
static_assert(SeparatorBetween<uint32_t>(0x100, 0x3ff) == 0x1ff);
static_assert(SeparatorBetween<uint64_t>(0, ~uint64_t{0}) == ~uint64_t{0} >> 1);

template <typename T, size_t kCount>
std::array<T, kCount> Read(const Leaf& leaf, size_t offset) {
  std::array<T, kCount> values;
  std::memcpy(values.data(), leaf.bytes + offset, sizeof(values));
  return values;
}

// BOOST_REQUIRE for inner loops: it costs nothing while it holds.
#define REQUIRE(condition)                                                             \
  do {                                                                                 \
    if (!(condition)) BOOST_FAIL(#condition << ", leaf " << i << ", entry " << entry); \
  } while (false)

// Checks the contract of PackedLeaves for every leaf against the entries.
template <typename Key, int kBits>
void CheckLeaves(const OracleData<Key>& data, int threads) {
  using Layout = LeafLayout<kBits>;
  using Low = typename Layout::Low;
  const absl::Span<const Key> keys = data.keys;
  const auto packed = RequireOk(CutLeaves<Key>(keys, kBits, threads));
  const AlignedBuffer<Leaf> leaves = FillLeaves<Key>(keys, data.row_ids, packed, threads);
  const size_t count = packed.leaves;
  BOOST_TEST_CONTEXT(data.name << ", " << kBits << " bits") {
    BOOST_REQUIRE_EQUAL(packed.bits, kBits);
    BOOST_REQUIRE_EQUAL(count, leaves.size());
    BOOST_REQUIRE_EQUAL(count, CountPackedLeaves(keys, kBits, 1));
    BOOST_REQUIRE_EQUAL(packed.separators.size() + 1, count);
    size_t entry = 0;
    for (size_t i = 0; i < count; ++i) {
      const auto position = Read<Position, 1>(leaves[i], Layout::kPositionOffset)[0];
      const auto low = Read<Low, Layout::kEntries>(leaves[i], 0);
      const auto rows = Read<RowId, Layout::kEntries>(leaves[i], Layout::kRowsOffset);
      REQUIRE(position == entry);
      size_t filled = 0;
      while (filled < rows.size() && rows[filled] != kNoRow) {
        REQUIRE(entry < keys.size());
        REQUIRE(low[filled] == static_cast<Low>(keys[entry]));
        REQUIRE(rows[filled] == data.row_ids[entry]);
        ++filled, ++entry;
      }
      for (size_t lane = filled; lane < Layout::kEntries; ++lane) {
        REQUIRE(low[lane] == std::numeric_limits<Low>::max());
        REQUIRE(rows[lane] == kNoRow);
      }
      // The leaf's interval contains its keys; all keys of the interval have the same high bits.
      const bool last = i + 1 == count;
      const Key upper = last ? std::numeric_limits<Key>::max() : packed.separators[i];
      if (i > 0) REQUIRE(packed.separators[i - 1] <= upper);
      const Key lower = i == 0 ? 0 : packed.separators[i - 1];
      if (filled == 0) continue;
      REQUIRE(lower <= keys[position]);
      REQUIRE(keys[entry - 1] <= upper);
      if constexpr (kBits < static_cast<int>(sizeof(Key)) * 8) {
        const Key above = i == 0 ? 0 : lower + 1;
        const bool duplicates_go_on = i > 0 && lower == upper;
        if (!duplicates_go_on) REQUIRE(above >> kBits == upper >> kBits);
        REQUIRE(keys[position] >> kBits == upper >> kBits);
      }
    }
    BOOST_REQUIRE_EQUAL(entry, keys.size());
  }
}

template <typename Key>
std::vector<OracleData<Key>> LargeSets() {
  std::vector<OracleData<Key>> sets;
  auto random = TestRandom(9);
  const auto add = [&](const std::string& name, auto key) {
    std::vector<Key> keys(150000);
    for (size_t i = 0; i < keys.size(); ++i) keys[i] = static_cast<Key>(key(i));
    sets.push_back(oracle::FinishIntegers(name, std::move(keys)));
  };
  add("large random", [&](size_t) { return random(); });
  add("large dense", [&](size_t i) { return i + 100000; });
  add("large clusters", [&](size_t) { return (random() % 20 << 27) + random() % 40000; });
  add("large duplicate", [&](size_t i) { return i < 100000 ? 70000 : random(); });
  return sets;
}

template <typename Key>
void CheckSets(const std::vector<OracleData<Key>>& sets) {
  for (const OracleData<Key>& data : sets) {
    CheckLeaves<Key, 16>(data, 3);
    CheckLeaves<Key, 32>(data, 1);
    if constexpr (sizeof(Key) == 8) CheckLeaves<Key, 64>(data, 2);
  }
}

BOOST_AUTO_TEST_CASE(hold_every_32_bit_entry_and_answer_for_the_whole_key_space) {
  CheckSets(OracleCatalogue<uint32_t>());
  CheckSets(LargeSets<uint32_t>());
}

BOOST_AUTO_TEST_CASE(hold_every_64_bit_entry_and_answer_for_the_whole_key_space) {
  CheckSets(OracleCatalogue<uint64_t>());
  CheckSets(LargeSets<uint64_t>());
}

BOOST_AUTO_TEST_CASE(keep_as_few_bits_as_pays) {
  std::vector<uint64_t> dense(100000), in_32_bits(100000), scattered(100000);
  for (size_t i = 0; i < dense.size(); ++i) {
    dense[i] = i * 3;
    in_32_bits[i] = i * 40000;
    scattered[i] = i * 184467440737095ull;
  }
  BOOST_TEST(ChooseLeafBits(absl::MakeConstSpan(dense), 2) == 16);
  BOOST_TEST(ChooseLeafBits(absl::MakeConstSpan(in_32_bits), 2) == 32);
  BOOST_TEST(ChooseLeafBits(absl::MakeConstSpan(scattered), 2) == 64);
}

// Keys are dense at the places that a sample reads, so that few bits seem best. Between these, each
// key is in its own block, so few bits would take ten times the number of leaves.
BOOST_AUTO_TEST_CASE(never_take_more_than_all_bits_would) {
  constexpr size_t kTask = size_t{1} << 16, kTasks = 40, kSampled = 16;
  std::vector<uint64_t> keys(kTask * kTasks);
  uint64_t key = 0;
  for (size_t i = 0; i < keys.size(); ++i) {
    bool sampled = false;
    for (size_t s = 0; s < kSampled; ++s) sampled |= i / kTask == s * kTasks / kSampled;
    keys[i] = key += sampled ? 1 : uint64_t{1} << 33;
  }
  const int bits = ChooseLeafBits(absl::MakeConstSpan(keys), 2);
  const size_t leaves = CountPackedLeaves(absl::MakeConstSpan(keys), bits, 2);
  BOOST_TEST(leaves <= (keys.size() + 4) / 5);
}

BOOST_AUTO_TEST_CASE(are_refused_where_their_numbers_would_not_fit) {
  BOOST_TEST(CheckLeafCount(kMaxEntries, 16).ok());
  // The leaves of 2^31 keys in blocks of their own: one per key, and one for the gap after it.
  const absl::Status refused = CheckLeafCount(uint64_t{1} << 32, 16);
  BOOST_TEST(absl::IsInvalidArgument(refused));
  BOOST_TEST(refused.message() ==
             "leaves that keep 16 bits of a key would be 4294967296 here, more than 4294967294");
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
