#include "cpu_fast/packed/cell_directory.h"

#include <algorithm>
#include <boost/mpl/list.hpp>
#include <boost/test/unit_test.hpp>
#include <limits>
#include <utility>
#include <vector>

#include "test/sanitizer.h"
#include "test/test_random.h"

namespace cairn {
BOOST_AUTO_TEST_SUITE(cell_directory_test)
namespace {

// The number of separators below `key` that a search of the directory counts, except on its step.
template <typename Key>
std::pair<size_t, size_t> Below(const CellDirectory<Key>& directory, Key key) {
  const auto place = directory.PlaceOf(key);
  const Cell& cell = directory.cells()[place.cell];
  const auto steps = absl::MakeConstSpan(cell.separators);
  const auto [from, to] = std::equal_range(steps.begin(), steps.end(), place.step);
  return {cell.first + static_cast<size_t>(from - steps.begin()),
          cell.first + static_cast<size_t>(to - steps.begin())};
}

template <typename Key>
void CheckAgainst(const std::vector<Key>& separators, const CellDirectory<Key>& directory) {
  for (size_t i = 0; i < separators.size(); i += kUnderTsan ? 97 : 1) {
    const Key separator = separators[i];
    for (const Key key :
         {static_cast<Key>(separator - 1), separator, static_cast<Key>(separator + 1)}) {
      const auto expected = static_cast<size_t>(
          std::lower_bound(separators.begin(), separators.end(), key) - separators.begin());
      const auto [least, most] = Below(directory, key);
      BOOST_REQUIRE(least <= expected && expected <= most);
      if (directory.exact()) BOOST_REQUIRE_EQUAL(least, expected);
    }
  }
}

using DataTypes = boost::mpl::list<uint32_t, uint64_t>;

BOOST_AUTO_TEST_CASE_TEMPLATE(counts_the_separators_below_a_key, Key, DataTypes) {
  auto random = TestRandom();
  for (const size_t size : {1, 29, 30, 31, 1000, 200000}) {
    std::vector<Key> separators(size);
    for (Key& separator : separators) separator = static_cast<Key>(random());
    std::sort(separators.begin(), separators.end());
    const auto directory = CellDirectory<Key>::Build(absl::MakeConstSpan(separators), false, 2);
    BOOST_REQUIRE(directory.has_value() || size == 1);
    if (directory.has_value()) CheckAgainst(separators, *directory);
  }
}

// Sets of separators that no one width of cells suits.
template <typename Key>
std::vector<std::pair<const char*, std::vector<Key>>> UnevenSets() {
  constexpr int kBits = static_cast<int>(sizeof(Key)) * 8;
  constexpr Key kGreatest = std::numeric_limits<Key>::max();
  auto random = TestRandom(5);
  std::vector<std::pair<const char*, std::vector<Key>>> sets;
  const auto add = [&](const char* name, size_t size, auto key) {
    if (kUnderTsan && size < 65536) return;  // one thread builds it
    std::vector<Key> keys(size);
    for (size_t i = 0; i < size; ++i) keys[i] = static_cast<Key>(key(i));
    std::sort(keys.begin(), keys.end());
    sets.emplace_back(name, std::move(keys));
  };
  add("two ends", 300000, [&](size_t i) {
    const Key key = static_cast<Key>(random()) >> 10;
    return i % 2 == 0 ? key : static_cast<Key>(kGreatest - key);
  });
  add("powers", 20000, [&](size_t) {
    const int k = kBits / 2 + static_cast<int>(random() % (kBits / 2));
    return (Key{1} << k) + (static_cast<Key>(random()) >> (kBits - k));
  });
  add("outliers", 20000, [&](size_t i) { return i < 50 ? random() : 5000000 + 7 * i; });
  add("30 clusters", 30000, [&](size_t i) { return kGreatest / 30 * (i % 30) + 3 * (i / 30); });
  add("300 clusters", 90000, [&](size_t i) { return kGreatest / 300 * (i % 300) + 3 * (i / 300); });
  add("blocks", 20000, [&](size_t i) { return ((i < 100 ? random() : i) << 8) | 0xff; });
  return sets;
}

BOOST_AUTO_TEST_CASE_TEMPLATE(gives_stretches_of_uneven_separators_cells_of_their_own, Key,
                              DataTypes) {
  for (const auto& [name, separators] : UnevenSets<Key>()) {
    for (const bool exact : {false, true}) {
      const auto directory = CellDirectory<Key>::Build(absl::MakeConstSpan(separators), exact, 2);
      BOOST_TEST_CONTEXT(name << (exact ? ", exact" : "")) {
        // An exact directory of scattered keys needs too many steps.
        BOOST_REQUIRE(directory.has_value() || exact);
        if (!directory.has_value()) continue;
        BOOST_TEST((directory->exact() || !exact));
        BOOST_TEST(directory->groups().size() > 1u);
        BOOST_TEST(directory->groups().size() <= separators.size() / 64);
        const size_t all = directory->groups().size() - 1;
        BOOST_REQUIRE_EQUAL(directory->bounds().size(), all);
        BOOST_TEST(directory->far_bounds().size() == (all < 64 ? 0 : all / 32));
        CheckAgainst(separators, *directory);
      }
    }
  }
}

// With 64-bit keys the cells for a span of 1 are beyond 64 bits.
BOOST_TEST_DECORATOR(*StartsNoThread())
BOOST_AUTO_TEST_CASE_TEMPLATE(takes_more_neighbours_than_a_cell_holds, Key, DataTypes) {
  auto random = TestRandom();
  constexpr Key kMiddle = std::numeric_limits<Key>::max() / 2;
  for (const size_t neighbours : {31, 32, 40, 160}) {
    std::vector<Key> separators(20000);
    for (Key& separator : separators) separator = static_cast<Key>(random());
    for (size_t i = 0; i < neighbours; ++i) separators[i] = kMiddle + static_cast<Key>(i % 2);
    std::sort(separators.begin(), separators.end());
    const auto directory = CellDirectory<Key>::Build(absl::MakeConstSpan(separators), false, 2);
    BOOST_REQUIRE(directory.has_value());
    BOOST_TEST(directory->groups().size() > 1u);
    CheckAgainst(separators, *directory);
  }
}

BOOST_AUTO_TEST_CASE_TEMPLATE(refuses_what_would_take_many_groups, Key, DataTypes) {
  auto random = TestRandom();
  std::vector<Key> equal(10000, 7), clusters(40000);
  for (size_t i = 0; i < clusters.size(); i += 40) {
    const Key first = static_cast<Key>(random()) >> 1;
    for (size_t j = 0; j < 40; ++j) clusters[i + j] = static_cast<Key>(first + j);
  }
  std::sort(clusters.begin(), clusters.end());
  for (const bool exact : {false, true}) {
    for (const auto& separators : {equal, clusters}) {
      BOOST_TEST(!CellDirectory<Key>::Build(absl::MakeConstSpan(separators), exact, 2).has_value());
    }
  }
}

BOOST_AUTO_TEST_CASE_TEMPLATE(separators_that_descend_are_refused, Key, DataTypes) {
  auto random = TestRandom();
  std::vector<Key> separators(140000);
  for (Key& separator : separators) separator = static_cast<Key>(random());
  std::sort(separators.begin(), separators.end());
  const size_t size = separators.size();
  for (const size_t at : {size_t{0}, size_t{1}, size_t{65535}, size_t{65536}, size - 2, size - 1}) {
    for (int bit = static_cast<int>(sizeof(Key)) * 8 - 8; bit < static_cast<int>(sizeof(Key)) * 8;
         bit += kUnderTsan ? 7 : 1) {
      std::vector<Key> flipped = separators;
      flipped[at] ^= Key{1} << bit;
      const auto directory = CellDirectory<Key>::Build(absl::MakeConstSpan(flipped), false, 2);
      if (std::is_sorted(flipped.begin(), flipped.end())) continue;
      BOOST_TEST(!directory.has_value(), "separator " << at << ", bit " << bit);
    }
  }
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
