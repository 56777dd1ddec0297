// SortedRun::FromUnsorted, against std::sort.
#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "cairn/sorted_run.h"
#include "test/require_ok.h"
#include "test/sanitizer.h"
#include "test/test_random.h"

namespace cairn {
BOOST_AUTO_TEST_SUITE(unsorted_run_test)
namespace {

uint32_t KeyAt(const SortedRun& run, size_t i, uint32_t) {
  return run.u32()[i];
}
uint64_t KeyAt(const SortedRun& run, size_t i, uint64_t) {
  return run.u64()[i];
}
std::string_view KeyAt(const SortedRun& run, size_t i, std::string_view) {
  return run.bytes()[i];
}

template <typename Key>
void CheckSorted(const std::vector<Key>& keys, const std::vector<RowId>& row_ids) {
  std::vector<std::pair<Key, RowId>> expected;
  for (size_t i = 0; i < keys.size(); ++i) {
    expected.emplace_back(keys[i], row_ids.empty() ? static_cast<RowId>(i) : row_ids[i]);
  }
  std::sort(expected.begin(), expected.end());
  for (const int threads : {0, 1, 3}) {
    if (kUnderTsan && threads != 3) continue;
    const SortedRun run =
        RequireOk(SortedRun::FromUnsorted(absl::MakeConstSpan(keys), row_ids, threads));
    BOOST_REQUIRE(run.size() == expected.size());
    for (size_t i = 0; i < expected.size(); ++i) {
      BOOST_REQUIRE(KeyAt(run, i, Key()) == expected[i].first);
      BOOST_REQUIRE(run.row_ids()[i] == expected[i].second);
    }
  }
}

BOOST_AUTO_TEST_CASE(sorts_numbers_and_text) {
  std::mt19937_64 random = TestRandom();
  for (const size_t size : {0, 1, 2, 1000, 100'000}) {
    if (kUnderTsan && size < 100'000) continue;  // one thread sorts them
    std::vector<RowId> row_ids(size);
    std::iota(row_ids.begin(), row_ids.end(), 17);
    std::shuffle(row_ids.begin(), row_ids.end(), random);
    std::vector<uint32_t> u32(size);
    std::vector<uint64_t> u64(size);
    std::vector<std::string> strings(size);
    for (size_t i = 0; i < size; ++i) {
      u32[i] = static_cast<uint32_t>(random() % (size / 2 + 1));
      u64[i] = random() >> (random() % 64);
      strings[i] = std::string(random() % 20, static_cast<char>(random()));
      if (random() % 4 == 0) strings[i] += std::to_string(random());
    }
    const std::vector<std::string_view> text(strings.begin(), strings.end());
    for (const auto& rows : {std::vector<RowId>(), row_ids}) {
      CheckSorted(u32, rows);
      CheckSorted(u64, rows);
      CheckSorted(text, rows);
    }
  }
}

BOOST_AUTO_TEST_CASE(refuses_what_is_no_set_of_entries) {
  const std::vector<uint64_t> keys = {5, 1, 5};
  const auto refuses = [&](std::vector<RowId> row_ids, std::string_view what) {
    const absl::Status status =
        SortedRun::FromUnsorted(absl::MakeConstSpan(keys), row_ids).status();
    BOOST_CHECK(absl::IsInvalidArgument(status));
    BOOST_TEST(std::string(status.message()).find(what) != std::string::npos, status.message());
  };
  refuses({7, 2, 7}, "1 and 2");
  refuses({7, 2}, "3 keys, 2 row ids");
  refuses({7, 2, kNoRow}, "row id 2");
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
