#include "engine/delta/new_row_ids.h"

#include <boost/test/unit_test.hpp>
#include <string>
#include <unordered_map>
#include <vector>

#include "absl/strings/str_cat.h"

namespace cairn {
BOOST_AUTO_TEST_SUITE(new_row_ids_test)
namespace {

BOOST_AUTO_TEST_CASE(each_row_is_found_by_its_key_while_the_table_grows) {
  DeltaRows rows(10);
  NewRowIds ids(&rows);
  BOOST_TEST(ids.empty());
  BOOST_TEST(ids.Find("", NewRowIds::Hash("")) == kNoRow);
  std::vector<std::string> keys = {"", std::string(1, '\0'), std::string(3000, 'x')};
  for (int i = 0; i < 50000; ++i) keys.push_back(absl::StrCat("a long common prefix of ", i));
  for (size_t i = 0; i < keys.size(); ++i) {
    BOOST_TEST_REQUIRE(ids.Find(keys[i], NewRowIds::Hash(keys[i])) == kNoRow);
    ids.Add(rows.Append(keys[i], 0));
    const size_t other = i * 7919 % (i + 1);
    BOOST_TEST_REQUIRE(ids.Find(keys[other], NewRowIds::Hash(keys[other])) == 10 + other);
  }
  for (size_t i = 0; i < keys.size(); ++i) {
    ids.Prefetch(NewRowIds::Hash(keys[i]));
    BOOST_TEST_REQUIRE(ids.Find(keys[i], NewRowIds::Hash(keys[i])) == 10 + i);
  }
  ids.Clear();
  BOOST_TEST(ids.Find(keys[5], NewRowIds::Hash(keys[5])) == kNoRow);
}

BOOST_AUTO_TEST_CASE(keys_with_one_hash_are_told_apart) {
  // About a hundred pairs of a million keys have one hash of 32 bits.
  std::unordered_map<uint32_t, std::string> key_of;
  std::string a, b;
  for (int i = 0; i < 1'000'000 && b.empty(); ++i) {
    const std::string key = absl::StrCat(i);
    const auto [at, is_new] = key_of.emplace(NewRowIds::Hash(key), key);
    if (!is_new) a = at->second, b = key;
  }
  BOOST_TEST_REQUIRE(!b.empty());
  DeltaRows rows(0);
  NewRowIds ids(&rows);
  ids.Add(rows.Append(a, 0));
  BOOST_TEST(ids.Find(b, NewRowIds::Hash(b)) == kNoRow);
  ids.Add(rows.Append(b, 0));
  BOOST_TEST(ids.Find(a, NewRowIds::Hash(a)) == 0u);
  BOOST_TEST(ids.Find(b, NewRowIds::Hash(b)) == 1u);
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
