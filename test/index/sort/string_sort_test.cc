#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "index/sort/sort.h"
#include "test/sanitizer.h"
#include "test/test_random.h"

namespace cairn {
BOOST_AUTO_TEST_SUITE(string_sort_test)
namespace {

using Pair = std::pair<std::string, RowId>;

// Sorts the pairs as entries, whose records are in memory in a shuffled order, and compares with
// std::sort of the pairs.
enum class Order : uint8_t { kShuffled, kAsGiven };

void CheckSort(std::vector<Pair> pairs, int threads, uint64_t salt = 0,
               Order order = Order::kShuffled) {
  auto random = TestRandom(salt);
  if (order == Order::kShuffled) std::shuffle(pairs.begin(), pairs.end(), random);
  size_t bytes = KeyRecord::kSlack;
  for (const Pair& pair : pairs) bytes += KeyRecord::Bytes(pair.first.size());
  std::vector<char> heap(bytes);
  std::vector<BytesEntry> entries;
  char* end = heap.data();
  for (const auto& [key, row] : pairs) {
    KeyRecord::Write(key, row, end);
    entries.push_back({end, random()});
    end += KeyRecord::Bytes(key.size());
  }
  if (order == Order::kShuffled) std::shuffle(entries.begin(), entries.end(), random);
  SortEntries(absl::MakeSpan(entries), threads);
  std::sort(pairs.begin(), pairs.end());
  size_t equal = 0;
  while (equal < pairs.size() && entries[equal].key() == pairs[equal].first &&
         entries[equal].row_id() == pairs[equal].second) {
    ++equal;
  }
  BOOST_TEST_CONTEXT(pairs.size() << " entries, " << threads << " threads; entries in place:") {
    BOOST_TEST(equal == pairs.size());
  }
}

std::vector<Pair> Make(size_t n, const std::function<std::string(size_t)>& key) {
  std::vector<Pair> pairs(n);
  for (size_t i = 0; i < n; ++i) pairs[i] = {key(i), static_cast<RowId>(i)};
  return pairs;
}

const std::vector<int> kOneAndTwo = kUnderTsan ? std::vector{2} : std::vector{1, 2};  // threads

constexpr size_t kLarge = kUnderTsan ? 50'000 : 90'000;  // several buckets

BOOST_AUTO_TEST_CASE(sorts_random_strings_over_small_alphabets_with_zero_bytes_and_empty_keys) {
  auto random = TestRandom();
  for (size_t n : {0, 1, 2, 3, 15, 16, 17, 31, 32, 33, 255, 256, 257, 4095, 4097, 90'000}) {
    if (kUnderTsan && n < kLarge) continue;  // one thread sorts them
    for (uint64_t alphabet : {1, 2, 256}) {
      const auto pairs = Make(n, [&](size_t) {
        std::string key(random() % 20, '\0');
        for (char& c : key) c = static_cast<char>(random() % alphabet);
        return key;
      });
      for (int threads : kOneAndTwo) CheckSort(pairs, threads, n);
    }
  }
}

BOOST_AUTO_TEST_CASE(partial_keys_have_the_order_of_keys_at_every_boundary) {
  // All strings of up to 3 blocks around the width of a partial key, over bytes at the extremes.
  std::vector<Pair> pairs;
  for (size_t length : {0, 1, 6, 7, 8, 13, 14, 15, 21}) {
    for (size_t changed = 0; changed <= length; ++changed) {
      for (char c : {'\0', '\x01', '\x08', '\x09', '\x7f', '\x80', '\xff'}) {
        std::string key(length, '\0');
        if (changed < length) key[changed] = c;
        pairs.emplace_back(key, static_cast<RowId>(pairs.size()));
        pairs.emplace_back(std::string(length, '\xff').replace(0, changed, changed, c),
                           static_cast<RowId>(pairs.size()));
      }
    }
  }
  for (int threads : kOneAndTwo) CheckSort(pairs, threads);
}

BOOST_AUTO_TEST_CASE(orders_equal_keys_by_row_id) {
  for (size_t length :
       kUnderTsan ? std::vector<size_t>{8} : std::vector<size_t>{0, 3, 7, 8, 1000}) {
    const auto pairs = Make(kLarge, [&](size_t) { return std::string(length, 'k'); });
    for (int threads : kOneAndTwo) CheckSort(pairs, threads);
  }
  const auto two = Make(kLarge, [](size_t i) { return std::string(i % 2 == 0 ? "no" : "yes"); });
  for (int threads : kUnderTsan ? std::vector{4} : std::vector{1, 2, 4}) CheckSort(two, threads);
}

BOOST_AUTO_TEST_CASE(sorts_behind_long_common_prefixes) {
  auto random = TestRandom();
  const std::string prefix(1024, 'p');
  auto pairs = Make(kLarge, [&](size_t) { return prefix + std::to_string(random() % 50'000); });
  for (int threads : kOneAndTwo) CheckSort(pairs, threads);
  // A few keys outside of the prefix that all others share.
  pairs[5].first = "a";
  pairs[6].first = "z";
  pairs[7].first = "";
  pairs[8].first = prefix.substr(0, 1000);
  pairs[9].first = prefix;
  for (size_t i = 10; i < 60; ++i) pairs[i].first = "below" + std::to_string(i % 9);
  for (size_t i = 60; i < 90; ++i) pairs[i].first = "zenith" + std::to_string(i % 9);
  for (int threads : kOneAndTwo) CheckSort(pairs, threads);
}

BOOST_AUTO_TEST_CASE(sorts_many_keys_outside_of_a_prefix_that_a_few_looks_took_for_all_keys) {
  auto random = TestRandom();
  // Every fourth of the keys that SortEntries does not sample is different.
  std::vector<bool> looked_at(kLarge);
  for (size_t i = 0; i < 64; ++i) looked_at[kLarge * i / 64] = true;
  for (const char* other : {"zip/", "a/"}) {
    const auto pairs = Make(kLarge, [&](size_t i) {
      const bool inside = looked_at[i] || i % 4 != 0;
      return (inside ? "user/" : other) + std::to_string(random() % 1'000'000);
    });
    for (int threads : kOneAndTwo) CheckSort(pairs, threads, 0, Order::kAsGiven);
  }
}

BOOST_AUTO_TEST_CASE(sorts_64_KiB_prefixes_and_keys_that_are_prefixes_of_one_another) {
  const std::string prefix(65'536, 'x');
  CheckSort(Make(300, [&](size_t i) { return prefix + std::to_string(i % 100); }), 2);
  // a, aa, aaa …: every level of partial keys distinguishes a few of them.
  CheckSort(Make(3000, [&](size_t i) { return prefix.substr(0, i); }), 2);
  // 1,000 strings with one long common prefix; each leaves it at a different place.
  CheckSort(Make(1000,
                 [&](size_t i) {
                   std::string key = prefix.substr(0, 8000);
                   key[8 * i] = i % 2 == 0 ? 'a' : 'z';
                   return key;
                 }),
            2);
}

BOOST_AUTO_TEST_CASE(sorts_what_looks_like_urls) {
  auto random = TestRandom();
  const auto pairs = Make(kLarge, [&](size_t) {
    return "https://www.site" + std::to_string(random() % 50) + ".example/path/" +
           std::to_string(random() % 300) + "/page" + std::to_string(random() % 7) + ".html";
  });
  for (int threads : {1, 2, 3, 4}) CheckSort(pairs, threads);
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
