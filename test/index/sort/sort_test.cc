#include "index/sort/sort.h"

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "index/sort/bucket_map.h"
#include "test/sanitizer.h"
#include "test/test_random.h"

namespace cairn {
BOOST_AUTO_TEST_SUITE(sort_test)
namespace {

using Pair = std::pair<uint64_t, RowId>;

// Sorts the pairs as entries and compares with std::sort of the pairs.
template <typename Entry>
void CheckSort(std::vector<Pair> pairs, int threads) {
  std::vector<Entry> entries;
  entries.reserve(pairs.size());
  for (auto& [key, row] : pairs) {
    key = static_cast<typename Entry::Key>(key);
    entries.push_back(Entry::Make(static_cast<typename Entry::Key>(key), row));
  }
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

void CheckBothWidths(const std::vector<Pair>& pairs, int threads) {
  CheckSort<Entry32>(pairs, threads);
  CheckSort<Entry64>(pairs, threads);
}

std::vector<Pair> Make(size_t n, const std::function<uint64_t(size_t)>& key) {
  std::vector<Pair> pairs(n);
  for (size_t i = 0; i < n; ++i) pairs[i] = {key(i), static_cast<RowId>(i)};
  return pairs;
}

// Several buckets of either width.
constexpr size_t kLarge = kUnderTsan ? 140'000 : 300'000;

BOOST_AUTO_TEST_CASE(sorts_random_entries_of_every_size_around_powers_of_two) {
  auto random = TestRandom();
  // Below 2^15, all entries are in one bucket, which one thread sorts.
  const size_t first = kUnderTsan ? 1 << 15 : 1, last = kUnderTsan ? 1 << 17 : 1 << 18;
  for (size_t power = first; power <= last; power *= 2) {
    for (size_t n : {power - 1, power, power + 1}) {
      const auto pairs = Make(n, [&](size_t) { return random(); });
      for (int threads = kUnderTsan ? 2 : 1; threads <= 2; ++threads) {
        CheckBothWidths(pairs, threads);
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(sorts_with_any_number_of_threads) {
  auto random = TestRandom();
  const auto pairs = Make(kLarge, [&](size_t) { return random(); });
  for (int threads : {0, 1, 2, 3, 4, 7}) CheckBothWidths(pairs, threads);
}

BOOST_AUTO_TEST_CASE(sorts_keys_of_few_distinct_values) {
  auto random = TestRandom();
  for (uint64_t distinct : {1, 2, 3, 10, 1000}) {
    if (kUnderTsan && distinct > 3) continue;
    CheckBothWidths(Make(kLarge, [&](size_t) { return random() % distinct; }), 2);
    CheckBothWidths(Make(kLarge, [&](size_t) { return ~(random() % distinct); }), 2);
  }
  CheckBothWidths(Make(kLarge, [&](size_t) { return random() % 2 == 0 ? 0 : UINT64_MAX; }), 2);
}

BOOST_AUTO_TEST_CASE(sorts_skewed_and_clustered_keys) {
  auto random = TestRandom();
  // Nearly all keys in a narrow range, a few at the ends of the domain.
  CheckBothWidths(Make(kLarge,
                       [&](size_t i) {
                         if (i == 7) return uint64_t{0};
                         if (i == 9) return UINT64_MAX;
                         return 0x4000'0000'4000'0000 + random() % 5000;
                       }),
                  2);
  CheckBothWidths(Make(kLarge, [&](size_t) { return random() >> (random() % 64); }), 2);
  CheckBothWidths(
      Make(kLarge, [&](size_t) { return (random() % 16) * 0x1000'0000 + random() % 100; }), 2);
}

// At each of a radix sort's digits, whatever its width, nearly half of the keys share one.
BOOST_AUTO_TEST_CASE(sorts_clusters_within_clusters) {
  auto random = TestRandom();
  for (const uint64_t width : {1, 2, 5, 9, 13}) {
    for (const size_t n : {25, 100, 3000, 30'000}) {
      CheckBothWidths(Make(n,
                           [&](size_t) {
                             uint64_t inside = 0;  // number of nested clusters
                             while (inside * width < 63 && random() % 100 < 48) ++inside;
                             return random() >> std::min<uint64_t>(inside * width, 63);
                           }),
                      1);
    }
  }
}

BOOST_AUTO_TEST_CASE(sorts_what_is_sorted_already_or_reversed) {
  CheckBothWidths(Make(kLarge, [](size_t i) { return i; }), 2);
  CheckBothWidths(Make(kLarge, [](size_t i) { return kLarge - i; }), 2);
  CheckBothWidths(Make(kLarge, [](size_t i) { return i / 1000; }), 2);
  CheckBothWidths(Make(kLarge, [](size_t i) { return i % 1000; }), 2);
}

BOOST_AUTO_TEST_CASE(orders_one_key_by_row_id_and_keeps_duplicates) {
  auto random = TestRandom();
  auto pairs = Make(kLarge, [](size_t) { return 42; });
  for (auto& pair : pairs) pair.second = static_cast<RowId>(random() % 1000);
  CheckBothWidths(pairs, 1);
  CheckBothWidths(pairs, 2);
  for (auto& pair : pairs) pair.second = static_cast<RowId>(UINT32_MAX - random() % 3);
  CheckBothWidths(pairs, 2);
}

// The map must ascend and, whatever the distribution, load no bucket with much more than its share.
template <typename Entry>
void CheckMap(std::vector<Entry> entries, size_t wanted) {
  std::vector<Entry> sample;
  for (size_t i = 0; i < entries.size(); i += 7) sample.push_back(entries[i]);
  std::sort(sample.begin(), sample.end());
  const BucketMap<Entry> map(sample, wanted);
  BOOST_TEST(map.buckets() <= 2 * wanted + 1);
  BOOST_TEST(map.buckets() >= wanted / 2);
  std::sort(entries.begin(), entries.end());
  std::vector<size_t> counts(map.buckets(), 0);
  size_t last = 0;
  size_t descents = 0;
  for (const Entry& entry : entries) {
    const size_t bucket = map.BucketOf(entry);
    descents += bucket < last;
    last = bucket;
    ++counts.at(bucket);
  }
  BOOST_TEST(descents == 0u);
  const size_t largest = *std::max_element(counts.begin(), counts.end());
  BOOST_TEST(largest <= 2 * entries.size() / wanted);
}

BOOST_AUTO_TEST_CASE(no_distribution_overloads_a_bucket, *StartsNoThread()) {
  auto random = TestRandom();
  const std::vector<std::function<uint64_t(size_t)>> distributions = {
      [&](size_t) { return random(); },
      [&](size_t) { return 5; },
      [&](size_t) { return random() % 2; },
      [&](size_t i) { return i; },
      [&](size_t i) {
        return i == 0 ? UINT64_MAX : i == 7 ? 0 : 0x7777'0000'0000 + random() % 999;
      },
      [&](size_t) { return random() >> (random() % 64); },
  };
  for (const auto& key : distributions) {
    for (size_t wanted : {2, 64, 500}) {
      std::vector<Entry32> narrow;
      std::vector<Entry64> wide;
      for (RowId i = 0; i < 100'000; ++i) {
        const uint64_t k = key(i);
        narrow.push_back(Entry32::Make(static_cast<uint32_t>(k), i));
        wide.push_back(Entry64::Make(k, i));
      }
      CheckMap(narrow, wanted);
      CheckMap(wide, wanted);
    }
  }
}

BOOST_AUTO_TEST_CASE(a_map_without_a_sample_is_one_bucket) {
  const BucketMap<Entry32> map({}, 100);
  BOOST_TEST(map.buckets() == 1u);
  BOOST_TEST(map.BucketOf(Entry32::Make(UINT32_MAX, 0)) == 0u);
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
