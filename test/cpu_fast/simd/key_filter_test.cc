#include "cpu_fast/simd/key_filter.h"

#include <atomic>
#include <boost/mpl/list.hpp>
#include <boost/test/unit_test.hpp>
#include <string>
#include <thread>
#include <type_traits>
#include <vector>

#include "cpu_fast/simd/simd_level.h"
#include "test/scoped_environment.h"
#include "test/test_random.h"

namespace cairn {
BOOST_AUTO_TEST_SUITE(key_filter_test)
namespace {

constexpr uint64_t kCapacity = 1 << 14;

// Distinct keys, the extreme ones among them.
template <typename Key>
std::vector<Key> Keys(size_t count, std::mt19937_64* random) {
  std::vector<Key> keys;
  for (size_t i = 0; i < count; ++i) {
    if constexpr (std::is_same_v<Key, std::string>) {
      keys.push_back(std::string(i % 5, '\0') + std::to_string((*random)()));
    } else {
      // Odd factors permute the numbers of a width.
      keys.push_back(static_cast<Key>((i + 1) * 0x9E3779B97F4A7C15));
    }
  }
  if constexpr (std::is_integral_v<Key>) {
    keys.front() = 0;
    keys.back() = ~Key{0};
  }
  return keys;
}

template <typename Key>
auto AskedAs(const std::vector<Key>& keys) {
  if constexpr (std::is_same_v<Key, std::string>) {
    return std::vector<std::string_view>(keys.begin(), keys.end());
  } else {
    return keys;
  }
}

using DataTypes = boost::mpl::list<uint32_t, uint64_t, std::string>;

// Selects batches at one SIMD level, and compares with one lookup per key.
template <typename Key>
void CheckSelect(SimdLevel level, const std::vector<Key>& keys, std::mt19937_64* random) {
  const ScopedEnvironment simd("CAIRN_SIMD", std::string(SimdLevelName(level)));
  KeyFilter filter(kCapacity);
  for (size_t i = 0; i < kCapacity; ++i) filter.Add(KeyFilter::Hash(keys[i]));
  BOOST_TEST(filter.size() == kCapacity);
  const auto asked = AskedAs(keys);
  std::vector<uint32_t> passed(asked.size());
  // Whole vectors of every width, and rests.
  for (const size_t size : {size_t{0}, size_t{1}, size_t{7}, size_t{8}, size_t{9}, size_t{17},
                            size_t{1000}, asked.size()}) {
    const size_t first = (*random)() % (asked.size() - size + 1);
    const auto batch = absl::MakeConstSpan(asked).subspan(first, size);
    const size_t count = filter.Select(batch, passed.data());
    std::vector<uint32_t> expected;
    for (size_t i = 0; i < size; ++i) {
      const bool may_hold = filter.MayHold(KeyFilter::Hash(keys[first + i]));
      if (!may_hold && first + i < kCapacity) BOOST_ERROR("lost key " << first + i);
      if (may_hold) expected.push_back(static_cast<uint32_t>(i));
    }
    BOOST_TEST(std::vector<uint32_t>(passed.begin(), passed.begin() + count) == expected,
               boost::test_tools::per_element());
  }
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_batch_is_selected_as_its_keys_are_one_by_one, Key, DataTypes) {
  std::mt19937_64 random = TestRandom();
  const std::vector<Key> keys = Keys<Key>(4 * kCapacity, &random);
  for (const SimdLevel level : SupportedSimdLevels()) CheckSelect(level, keys, &random);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(few_other_keys_pass, Key, DataTypes) {
  std::mt19937_64 random = TestRandom();
  const std::vector<Key> keys = Keys<Key>(16 * kCapacity, &random);
  KeyFilter filter(kCapacity);
  const uint64_t capacity = filter.capacity();
  BOOST_TEST(capacity >= kCapacity);
  size_t added = 0;
  for (const auto& [share, most] : {std::pair{0.5, 0.0024}, {1.0, 0.0105}}) {
    for (; static_cast<double>(added) < share * static_cast<double>(capacity); ++added) {
      filter.Add(KeyFilter::Hash(keys[added]));
    }
    size_t passed = 0;
    for (size_t i = capacity; i < keys.size(); ++i) {
      passed += filter.MayHold(KeyFilter::Hash(keys[i])) ? 1 : 0;
    }
    const double rate = static_cast<double>(passed) / static_cast<double>(keys.size() - capacity);
    BOOST_TEST(rate < most, "with " << share << " of the capacity " << rate << " pass");
  }
}

BOOST_AUTO_TEST_CASE(an_empty_filter_lets_nothing_pass) {
  const KeyFilter filter(0);
  std::vector<uint64_t> keys(1000);
  for (size_t i = 0; i < keys.size(); ++i) keys[i] = i * i;
  std::vector<uint32_t> passed(keys.size());
  BOOST_TEST(filter.Select(absl::MakeConstSpan(keys), passed.data()) == 0u);
  BOOST_TEST(filter.memory_bytes() > 0u);
}

BOOST_AUTO_TEST_CASE(a_key_passes_for_who_is_told_that_it_was_added) {
  constexpr uint64_t kKeys = 50'000;
  KeyFilter filter(kKeys);
  std::atomic<uint64_t> added{0};
  std::atomic<uint64_t> lost{0};
  std::thread reader([&] {
    for (uint64_t known = 0; known < kKeys;) {
      known = added.load();
      if (known > 0 && !filter.MayHold(KeyFilter::Hash(known - 1))) ++lost;
    }
  });
  for (uint64_t key = 0; key < kKeys; ++key) {
    filter.Add(KeyFilter::Hash(key));
    added.store(key + 1);
  }
  reader.join();
  BOOST_TEST(lost == 0u);
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
