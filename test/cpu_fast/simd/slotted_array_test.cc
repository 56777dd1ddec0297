#include "cpu_fast/simd/slotted_array.h"

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <vector>

#include "test/test_random.h"

namespace cairn {
namespace {

SlottedArray ArrayOf(const std::vector<uint32_t>& elements, uint32_t greatest) {
  SlottedArray array(elements.size());
  for (size_t i = 0; i < elements.size(); ++i) array[i] = elements[i];
  array.Finish(greatest);
  return array;
}

// Asks for numbers of every kind, in batches of every length up to 40, and for many at once.
void Check(const std::vector<uint32_t>& elements, uint32_t greatest, std::mt19937_64* random) {
  const SlottedArray array = ArrayOf(elements, greatest);
  std::vector<uint32_t> numbers = {0, greatest};
  for (size_t i = 0; i < 1000; ++i) {
    numbers.push_back(static_cast<uint32_t>((*random)() % (uint64_t{greatest} + 1)));
    if (elements.empty()) continue;
    const uint32_t element = elements[(*random)() % elements.size()];
    numbers.push_back(element);
    if (element > 0) numbers.push_back(element - 1);
    if (element < greatest) numbers.push_back(element + 1);
  }
  std::vector<uint32_t> lower(numbers.size()), equal(numbers.size());
  const auto check = [&](size_t first, size_t count) {
    const auto asked = absl::MakeConstSpan(numbers).subspan(first, count);
    const size_t found = array.LowerBound(asked, absl::MakeSpan(lower).first(count),
                                          absl::MakeSpan(equal).first(count));
    std::vector<uint32_t> expected;
    for (size_t i = 0; i < count; ++i) {
      const auto at = std::lower_bound(elements.begin(), elements.end(), asked[i]);
      BOOST_REQUIRE(lower[i] == at - elements.begin());
      if (at != elements.end() && *at == asked[i]) expected.push_back(static_cast<uint32_t>(i));
    }
    BOOST_REQUIRE(
        std::equal(equal.begin(), equal.begin() + found, expected.begin(), expected.end()));
  };
  for (size_t count = 0; count <= std::min<size_t>(40, numbers.size()); ++count) {
    check((*random)() % (numbers.size() - count + 1), count);
  }
  check(0, numbers.size());
}

}  // namespace

BOOST_AUTO_TEST_SUITE(slotted_array_test)

BOOST_AUTO_TEST_CASE(lower_bounds_are_those_of_binary_search) {
  std::mt19937_64 random = TestRandom();
  for (size_t size : {0, 1, 2, 15, 16, 17, 31, 32, 33, 1000, 1023, 1024, 1025}) {
    for (uint32_t greatest :
         {uint32_t{0}, uint32_t{1}, uint32_t{100}, uint32_t{1} << 20, UINT32_MAX - 1}) {
      std::vector<uint32_t> elements(size);
      for (uint32_t& element : elements) {
        element = static_cast<uint32_t>(random() % (uint64_t{greatest} + 1));
      }
      std::sort(elements.begin(), elements.end());
      Check(elements, greatest, &random);
    }
  }
}

BOOST_AUTO_TEST_CASE(elements_may_be_close_together) {
  std::mt19937_64 random = TestRandom();
  constexpr uint32_t kGreatest = 10'000'000;
  Check(std::vector<uint32_t>(1000, 0), kGreatest, &random);
  Check(std::vector<uint32_t>(1000, kGreatest), kGreatest, &random);
  Check(std::vector<uint32_t>(1000, 4'999'999), kGreatest, &random);
  std::vector<uint32_t> dense;
  for (uint32_t i = 0; i < 5000; ++i) dense.push_back(1'000'000 + i / 3);
  dense.push_back(kGreatest);
  Check(dense, kGreatest, &random);
}

// As of damaged files.
BOOST_AUTO_TEST_CASE(elements_out_of_order_are_not_read_beyond) {
  std::mt19937_64 random = TestRandom();
  constexpr uint32_t kGreatest = 1'000'000;
  std::vector<uint32_t> elements(1000);
  for (uint32_t& element : elements) element = static_cast<uint32_t>(random() % (kGreatest + 1));
  const SlottedArray array = ArrayOf(elements, kGreatest);
  for (uint32_t number = 0; number <= kGreatest; number += 97) {
    uint32_t lower, equal;
    array.LowerBound(absl::MakeConstSpan(&number, 1), absl::MakeSpan(&lower, 1),
                     absl::MakeSpan(&equal, 1));
    BOOST_REQUIRE(lower <= elements.size());
  }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace cairn
