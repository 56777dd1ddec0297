#include "cpu_fast/simd/slotted_array.h"

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <random>
#include <string>
#include <vector>

#include "cpu_fast/simd/simd_level.h"
#include "test/scoped_environment.h"
#include "test/test_random.h"

namespace cairn {
BOOST_AUTO_TEST_SUITE(slotted_array_test)
namespace {

constexpr uint32_t kGreatest = UINT32_MAX - 2;  // of positions

SlottedArray Make(const std::vector<uint32_t>& elements, uint32_t greatest) {
  SlottedArray array(elements.size());
  for (size_t i = 0; i < elements.size(); ++i) array[i] = elements[i];
  array.Finish(greatest);
  return array;
}

// Searches numbers in and between the elements, and compares with std::lower_bound.
void CheckLevel(SimdLevel level, const std::vector<uint32_t>& elements, uint32_t greatest,
                const std::vector<uint32_t>& numbers) {
  const ScopedEnvironment simd("CAIRN_SIMD", std::string(SimdLevelName(level)));
  const SlottedArray array = Make(elements, greatest);
  BOOST_TEST(array.size() == elements.size());
  BOOST_TEST(array.memory_bytes() <= 5 * elements.size() + 256);
  std::vector<uint32_t> lower(numbers.size()), equal(numbers.size());
  equal.resize(array.LowerBound(numbers, absl::MakeSpan(lower), absl::MakeSpan(equal)));
  std::vector<uint32_t> expected_equal;
  for (size_t i = 0; i < numbers.size(); ++i) {
    const auto at = std::lower_bound(elements.begin(), elements.end(), numbers[i]);
    BOOST_TEST_REQUIRE(lower[i] == static_cast<uint32_t>(at - elements.begin()),
                       "number " << numbers[i]);
    if (at != elements.end() && *at == numbers[i]) {
      expected_equal.push_back(static_cast<uint32_t>(i));
    }
  }
  BOOST_TEST(equal == expected_equal, boost::test_tools::per_element());
}

void Check(const std::vector<uint32_t>& elements, uint32_t greatest,
           const std::vector<uint32_t>& numbers) {
  for (const SimdLevel level : SupportedSimdLevels()) {
    CheckLevel(level, elements, greatest, numbers);
  }
}

// Numbers near each element, and the ends.
std::vector<uint32_t> NumbersAround(const std::vector<uint32_t>& elements, uint32_t greatest) {
  std::vector<uint32_t> numbers = {0, greatest, greatest / 2};
  for (const uint32_t element : elements) {
    for (const uint32_t number : {element - 1, element, element + 1}) {
      if (number <= greatest) numbers.push_back(number);
    }
  }
  return numbers;
}

}  // namespace

BOOST_AUTO_TEST_CASE(sizes_and_limits) {
  auto random = TestRandom();
  for (const uint32_t greatest :
       {uint32_t{0}, uint32_t{1}, uint32_t{100}, uint32_t{1} << 20, uint32_t{1} << 31, kGreatest}) {
    for (const size_t size : {0, 1, 2, 3, 4, 5, 15, 16, 17, 255, 256, 257, 3000}) {
      std::vector<uint32_t> elements(size);
      for (uint32_t& element : elements) {
        element = static_cast<uint32_t>(random() % (uint64_t{greatest} + 1));
      }
      std::sort(elements.begin(), elements.end());
      Check(elements, greatest, NumbersAround(elements, greatest));
    }
  }
}

BOOST_AUTO_TEST_CASE(numbers_that_share_a_slot) {
  for (const uint32_t at : {uint32_t{0}, uint32_t{77777}, kGreatest - 50}) {
    std::vector<uint32_t> elements(500, at);                       // all equal
    for (uint32_t i = 0; i < 50; ++i) elements.push_back(at + i);  // and adjacent numbers
    std::sort(elements.begin(), elements.end());
    Check(elements, kGreatest, NumbersAround(elements, kGreatest));
  }
  std::vector<uint32_t> ends(300, 0);
  ends.insert(ends.end(), 300, kGreatest);
  Check(ends, kGreatest, NumbersAround(ends, kGreatest));
}

BOOST_AUTO_TEST_CASE(no_numbers) {
  const SlottedArray array = Make({1, 2, 3}, 10);
  BOOST_TEST(array.LowerBound({}, {}, {}) == 0u);
}

// Possible contents of a damaged file.
BOOST_AUTO_TEST_CASE(elements_that_do_not_ascend) {
  auto random = TestRandom();
  const std::vector<SimdLevel>& levels = SupportedSimdLevels();
  for (size_t round = 0; round < 50; ++round) {
    const std::string level(SimdLevelName(levels[round % levels.size()]));
    const ScopedEnvironment simd("CAIRN_SIMD", level);
    std::vector<uint32_t> elements(1 + random() % 1000), numbers(1000);
    for (uint32_t& element : elements) element = static_cast<uint32_t>(random() % 100000);
    for (uint32_t& number : numbers) number = static_cast<uint32_t>(random() % 100000);
    const SlottedArray array = Make(elements, 100000);
    std::vector<uint32_t> lower(numbers.size()), equal(numbers.size());
    const size_t found = array.LowerBound(numbers, absl::MakeSpan(lower), absl::MakeSpan(equal));
    BOOST_TEST(found <= numbers.size());
    for (const uint32_t position : lower) BOOST_TEST_REQUIRE(position <= elements.size());
  }
}

BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
