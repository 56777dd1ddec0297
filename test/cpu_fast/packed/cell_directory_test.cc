#include "cpu_fast/packed/cell_directory.h"

#include <algorithm>
#include <boost/mpl/list.hpp>
#include <boost/test/unit_test.hpp>
#include <limits>
#include <vector>

#include "test/test_random.h"

namespace cairn {
namespace {

// The separators that a search of the directory counts below `key`, but for those on its step.
template <typename Key>
std::pair<size_t, size_t> Below(const CellDirectory<Key>& directory, Key key) {
  const auto place = directory.scale().PlaceOf(key);
  const Cell& cell = directory.cells()[place.cell];
  const auto steps = absl::MakeConstSpan(cell.separators);
  const auto [from, to] = std::equal_range(steps.begin(), steps.end(), place.step);
  return {cell.first + static_cast<size_t>(from - steps.begin()),
          cell.first + static_cast<size_t>(to - steps.begin())};
}

template <typename Key>
void CheckAgainst(const std::vector<Key>& separators, const CellDirectory<Key>& directory) {
  for (const Key separator : separators) {
    for (const Key key :
         {static_cast<Key>(separator - 1), separator, static_cast<Key>(separator + 1)}) {
      const auto expected = static_cast<size_t>(
          std::lower_bound(separators.begin(), separators.end(), key) - separators.begin());
      const auto [least, most] = Below(directory, key);
      BOOST_REQUIRE(least <= expected && expected <= most);
    }
  }
}

using KeyTypes = boost::mpl::list<uint32_t, uint64_t>;

BOOST_AUTO_TEST_SUITE(cell_directory_test)

BOOST_AUTO_TEST_CASE_TEMPLATE(counts_the_separators_below_a_key, Key, KeyTypes) {
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

// With 64-bit keys the cells for a span of 1 are beyond 64 bits.
BOOST_AUTO_TEST_CASE_TEMPLATE(more_neighbours_than_a_cell_holds_are_refused, Key, KeyTypes) {
  auto random = TestRandom();
  constexpr Key kMiddle = std::numeric_limits<Key>::max() / 2;
  for (const size_t neighbours : {31, 32, 40, 160}) {
    std::vector<Key> separators(20000);
    for (Key& separator : separators) separator = static_cast<Key>(random());
    for (size_t i = 0; i < neighbours; ++i) separators[i] = kMiddle + static_cast<Key>(i % 2);
    std::sort(separators.begin(), separators.end());
    for (const bool exact : {false, true}) {
      BOOST_TEST(!CellDirectory<Key>::Build(absl::MakeConstSpan(separators), exact, 2).has_value());
    }
  }
}

BOOST_AUTO_TEST_CASE_TEMPLATE(separators_that_descend_are_refused, Key, KeyTypes) {
  auto random = TestRandom();
  std::vector<Key> separators(140000);
  for (Key& separator : separators) separator = static_cast<Key>(random());
  std::sort(separators.begin(), separators.end());
  const size_t size = separators.size();
  for (const size_t at : {size_t{0}, size_t{1}, size_t{65535}, size_t{65536}, size - 2, size - 1}) {
    for (int bit = static_cast<int>(sizeof(Key)) * 8 - 8; bit < static_cast<int>(sizeof(Key)) * 8;
         ++bit) {
      std::vector<Key> flipped = separators;
      flipped[at] ^= Key{1} << bit;
      const auto directory = CellDirectory<Key>::Build(absl::MakeConstSpan(flipped), false, 2);
      if (std::is_sorted(flipped.begin(), flipped.end())) continue;
      BOOST_TEST(!directory.has_value(), "separator " << at << ", bit " << bit);
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace cairn
