#include "index/aggregates/distinct_ranks.h"

#include <boost/test/unit_test.hpp>
#include <numeric>
#include <string>
#include <vector>

#include "test/index/aggregates/entries.h"
#include "test/require_ok.h"
#include "test/test_random.h"

namespace cairn {
BOOST_AUTO_TEST_SUITE(distinct_ranks_test)
namespace {

template <typename Key, typename KeyAt>
void CheckDistinct(const std::vector<Key>& keys, std::mt19937_64& random, KeyAt key_at) {
  const SortedRun run = RequireOk(SortedRun::FromUnsorted(absl::MakeConstSpan(keys), {}, 1));
  const DistinctRanks ranks = RequireOk(DistinctRanks::Build(run, 2));
  const Ranges ranges = SomeRanges(run.size(), random);
  std::vector<uint64_t> counts(ranges.size());
  ranks.Count(ranges.begin, ranges.end, absl::MakeSpan(counts));
  for (size_t i = 0; i < ranges.size(); ++i) {
    uint64_t expected = ranges.begin[i] < ranges.end[i] ? 1 : 0;
    for (size_t p = ranges.begin[i] + size_t{1}; p < ranges.end[i]; ++p) {
      expected += key_at(run, p) != key_at(run, p - 1) ? 1 : 0;
    }
    BOOST_REQUIRE(counts[i] == expected);
    BOOST_REQUIRE(ranks.Count(ranges.begin[i], ranges.end[i]) == expected);
  }
}

BOOST_AUTO_TEST_CASE(counts_the_keys_of_ranges) {
  auto random = TestRandom();
  for (const size_t size : {0, 1, 2, 63, 64, 65, 127, 128, 129, 3000, 140'000}) {
    for (const uint64_t distinct : {uint64_t{1}, uint64_t{2}, uint64_t{100}, uint64_t{1} << 30}) {
      std::vector<uint32_t> narrow(size);
      std::vector<uint64_t> wide(size);
      for (size_t i = 0; i < size; ++i) {
        narrow[i] = static_cast<uint32_t>(random() % distinct);
        wide[i] = UINT64_MAX - random() % distinct;
      }
      CheckDistinct(narrow, random, [](const SortedRun& run, size_t i) { return run.u32()[i]; });
      CheckDistinct(wide, random, [](const SortedRun& run, size_t i) { return run.u64()[i]; });
      if (size > 10'000) continue;
      std::vector<std::string> strings(size);
      for (std::string& string : strings) {
        string = std::string(random() % 3, '\0') + std::to_string(random() % distinct);
      }
      const std::vector<std::string_view> views(strings.begin(), strings.end());
      CheckDistinct(views, random, [](const SortedRun& run, size_t i) { return run.bytes()[i]; });
    }
  }
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
