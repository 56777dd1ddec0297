// Pages of rows that may have several keys: over all pages, each row is returned once, at its first
// occurrence, and pages are full. For an unsharded index, and for one sharded by key range.
#include <boost/test/unit_test.hpp>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "cairn/options.h"
#include "cairn/secondary_index.h"
#include "test/engine/serve/built_index.h"
#include "test/engine/shards/sharded_pair.h"
#include "test/sanitizer.h"
#include "test/test_random.h"

namespace cairn {
BOOST_AUTO_TEST_SUITE(row_pages_test)
namespace {

constexpr uint32_t kKeys = 20;

// Rows with arrays of keys.
struct Arrays {
  TestDatabase db;
  std::map<std::string, std::set<uint32_t>> rows;

  void Change(size_t times, size_t universe, std::mt19937_64& random) {
    for (; times > 0; --times) {
      const std::string key = absl::StrFormat("r%03d", random() % universe);
      if (random() % 5 == 0) {
        db.Delete(key);
        rows.erase(key);
        continue;
      }
      std::set<uint32_t>& keys = rows[key];
      keys.clear();
      for (uint64_t n = random() % 7; n > 0; --n) {
        keys.insert(static_cast<uint32_t>(random() % kKeys));
      }
      db.Put(key, "{\"t\":[" + absl::StrJoin(keys, ",") + "]}");
    }
  }

  // The rows with a key in [lower, upper), each at its first occurrence.
  Strings Expected(uint32_t lower, uint32_t upper, Order order) const {
    std::vector<std::pair<uint32_t, std::string>> first;
    for (const auto& [row, keys] : rows) {
      std::vector<uint32_t> within;
      for (const uint32_t key : keys) {
        if (key >= lower && key < upper) within.push_back(key);
      }
      if (within.empty()) continue;
      first.emplace_back(order == Order::kAscending ? within.front() : within.back(), row);
    }
    std::sort(first.begin(), first.end());
    if (order == Order::kDescending) std::reverse(first.begin(), first.end());
    Strings expected;
    for (const auto& [key, row] : first) expected.push_back(row);
    return expected;
  }

  // Two ranges together, page by page.
  void CheckPages(const SecondaryIndex& index, std::mt19937_64& random) {
    uint32_t ends[4];
    for (uint32_t& end : ends) end = static_cast<uint32_t>(random() % (kKeys + 1));
    const uint32_t lower[] = {std::min(ends[0], ends[1]), std::min(ends[2], ends[3])};
    const uint32_t upper[] = {std::max(ends[0], ends[1]), std::max(ends[2], ends[3])};
    QueryOptions options;
    options.order = random() % 2 == 0 ? Order::kAscending : Order::kDescending;
    options.limit = 1 + random() % (random() % 2 == 0 ? 4 : 40);
    Strings found[2];
    Strings after;
    for (bool more = true; more;) {
      RangeBatch ranges = RangeBatch::HalfOpen(lower, upper);
      ranges.after = after;
      FetchResult page;
      RequireOk(index.Fetch(*db.Source(), ranges, options, &page));
      BOOST_TEST(page.stale == 0u);
      BOOST_REQUIRE_EQUAL(page.offsets.size(), 3u);
      BOOST_REQUIRE_EQUAL(page.cursors.size(), 2u);
      more = false;
      for (size_t i = 0; i < 2; ++i) {
        if (!after.empty() && after[i].empty()) {  // it had no more rows, and starts again
          page.cursors[i].clear();
          continue;
        }
        const uint64_t rows_of_page = page.offsets[i + 1] - page.offsets[i];
        BOOST_TEST((rows_of_page == options.limit || page.cursors[i].empty()));
        for (uint64_t j = page.offsets[i]; j < page.offsets[i + 1]; ++j) {
          found[i].emplace_back(page.primary_keys[j]);
        }
        more |= !page.cursors[i].empty();
      }
      after = page.cursors;
    }
    for (size_t i = 0; i < 2; ++i) {
      BOOST_TEST(found[i] == Expected(lower[i], upper[i], options.order),
                 boost::test_tools::per_element());
    }
  }
};

BOOST_AUTO_TEST_CASE(a_row_is_there_once_over_all_pages) {
  std::mt19937_64 random = TestRandom();
  for (const uint32_t shards : {0, 1, 4}) {
    for (const size_t universe : {1, 3, 60}) {
      BOOST_TEST_CONTEXT(shards << " shards, " << universe << " rows") {
        Arrays arrays;
        arrays.Change(universe * 2, universe, random);
        const std::string spec = "value.json('/t'):u32";
        const auto build = [&](int round) {
          return shards == 0 ? Build(arrays.db, spec)
                             : BuildInShards(arrays.db, spec, shards, 1, absl::StrCat("s", round));
        };
        std::unique_ptr<SecondaryIndex> index = build(0);
        for (int round = 0; round < 4; ++round) {
          for (size_t i = 0; i < FewerSanitized(40, 4, 10); ++i) arrays.CheckPages(*index, random);
          arrays.Change(universe / 4 + 1, universe + 5, random);
          if (shards != 0) {  // which are built again
            index = build(round + 1);
            continue;
          }
          RequireOk(index->CatchUp(*arrays.db.Source()).status());
          if (round == 2) RequireOk(index->Compact());
        }
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(a_limit_of_no_rows_is_an_empty_answer) {
  TestDatabase db;
  db.Put("a", R"({"t":[1,2]})");
  const auto index = Build(db, "value.json('/t'):u32");
  QueryOptions options;
  options.limit = 0;
  FetchResult rows;
  RequireOk(index->Fetch(*db.Source(), RangeBatch::Everything(index->kind()), options, &rows));
  BOOST_TEST(rows.row_ids.empty());
  BOOST_TEST(rows.cursors == Strings{""});
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
