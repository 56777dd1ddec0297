#include "engine/delta/row_keys.h"

#include <boost/test/unit_test.hpp>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "test/test_random.h"

namespace cairn {
BOOST_AUTO_TEST_SUITE(row_keys_test)
namespace {

constexpr RowId kBaseRows = 100;

// Sizes at which the form of a key changes, and zero bytes.
std::string RandomBytes(std::mt19937_64* random) {
  constexpr size_t kSizes[] = {0, 1, 7, 14, 15, 16, 254, 255, 256, 5000, 70000};
  std::string bytes(kSizes[(*random)() % std::size(kSizes)], '\0');
  for (size_t i = 0; i < bytes.size(); i += 100) bytes[i] = static_cast<char>((*random)());
  return bytes;
}

BOOST_AUTO_TEST_CASE(byte_strings_of_rows_of_the_base_and_of_new_rows) {
  std::mt19937_64 random = TestRandom();
  RowKeys<std::string_view> keys(kBaseRows);
  std::map<RowId, std::vector<std::string>> model;
  for (int i = 0; i < 3000; ++i) {
    const RowId row = random() % (2 * kBaseRows);
    std::vector<std::string> wanted(random() % 4);
    for (std::string& key : wanted) key = RandomBytes(&random);
    keys.Set(row, std::vector<std::string_view>(wanted.begin(), wanted.end()));
    model[row] = wanted;
    const RowId other = random() % (2 * kBaseRows + 10);
    const auto found = keys.Find(other);
    BOOST_TEST(std::vector<std::string>(found.begin(), found.end()) == model[other],
               boost::test_tools::per_element());
    if (i == 1500) {
      keys.Clear();
      model.clear();
    }
  }
}

BOOST_AUTO_TEST_CASE(byte_strings_remain_until_the_next_change) {
  RowKeys<std::string_view> keys(kBaseRows);
  const std::string_view of_base[] = {"short"}, of_new[] = {"also", "short"};
  keys.Set(3, of_base);
  keys.Set(kBaseRows + 3, of_new);
  const std::string_view first = keys.Find(3)[0];
  const std::string_view second = keys.Find(kBaseRows + 3)[1];
  BOOST_TEST(keys.Find(kBaseRows + 4).empty());
  BOOST_TEST(first == "short");
  BOOST_TEST(second == "short");
}

template <typename Key>
void CheckNumbers() {
  std::mt19937_64 random = TestRandom();
  RowKeys<Key> keys(kBaseRows);
  std::map<RowId, std::vector<Key>> model;
  for (int i = 0; i < 3000; ++i) {
    const RowId row = random() % (2 * kBaseRows);
    std::vector<Key> wanted(random() % 6);
    for (Key& key : wanted) key = static_cast<Key>(random());
    keys.Set(row, wanted);
    model[row] = wanted;
    const RowId other = random() % (2 * kBaseRows + 10);
    const auto found = keys.Find(other);
    BOOST_TEST(std::vector<Key>(found.begin(), found.end()) == model[other],
               boost::test_tools::per_element());
  }
}
BOOST_AUTO_TEST_CASE(numbers_of_32_and_64_bits) {
  CheckNumbers<uint32_t>();
  CheckNumbers<uint64_t>();
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
