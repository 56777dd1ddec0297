#include "engine/util/sorted_order.h"

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <numeric>
#include <string>
#include <string_view>

#include "test/test_random.h"

namespace cairn {
BOOST_AUTO_TEST_SUITE(sorted_order_test)
namespace {

template <typename Key>
void Check(const std::vector<Key>& keys) {
  std::vector<uint32_t> expected(keys.size());
  std::iota(expected.begin(), expected.end(), 0);
  std::stable_sort(expected.begin(), expected.end(),
                   [&](uint32_t a, uint32_t b) { return keys[a] < keys[b]; });
  BOOST_TEST((SortedOrder<Key>(keys) == expected));
}

}  // namespace

BOOST_AUTO_TEST_CASE(equal_keys_keep_their_order) {
  auto random = TestRandom();
  for (size_t size : {0, 1, 2, 10, 1000, 100000}) {
    for (uint64_t distinct : {uint64_t{1}, uint64_t{7}, uint64_t{1000}, UINT64_MAX}) {
      std::vector<uint32_t> keys32(size);
      std::vector<uint64_t> keys64(size);
      std::vector<std::string> strings(size);
      for (size_t i = 0; i < size; ++i) {
        keys64[i] = random() % distinct;
        keys32[i] = static_cast<uint32_t>(keys64[i]);
        strings[i] = std::string(keys64[i] % 12, 'a') + std::to_string(keys64[i]);
      }
      Check(keys32);
      Check(keys64);
      Check(std::vector<std::string_view>(strings.begin(), strings.end()));
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
