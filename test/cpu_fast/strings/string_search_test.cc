#include "cpu_fast/strings/string_search.h"

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <memory>
#include <string>
#include <vector>

#include "index/strings/string_compare.h"
#include "test/ordered_index_oracle.h"
#include "test/require_ok.h"
#include "test/sanitizer.h"
#include "test/test_random.h"

namespace cairn {
BOOST_AUTO_TEST_SUITE(string_search_test)
namespace {

std::unique_ptr<OrderedIndex> Make(SortedRun run) {
  return RequireOk(StringSearch::Build(std::move(run)));
}

BOOST_AUTO_TEST_CASE(answers_like_the_oracle, *StartsNoThread()) {
  CheckCatalogue<std::string>(Make);
}

BOOST_AUTO_TEST_CASE(answers_like_the_oracle_with_offsets_of_four_bytes, *StartsNoThread()) {
  CheckCatalogue<std::string>([](const SortedRun& run) { return Make(WithShortOffsets(run)); },
                              FewerSanitized(20000, 4, 1));
}

BOOST_AUTO_TEST_CASE(answers_like_the_oracle_at_every_simd_level, *StartsNoThread()) {
  const auto catalogue = OracleCatalogue<std::string>(30000);
  for (SimdLevel level : SupportedSimdLevels()) {
    auto index = RequireOk(StringSearch::Build(OracleRun(catalogue.back()), level));
    CheckAgainstOracle(*index, catalogue.back());
  }
}

BOOST_AUTO_TEST_CASE(comparisons_agree_with_those_of_the_standard_library, *StartsNoThread()) {
  auto random = TestRandom();
  const auto any = [&random] {
    std::string s(random() % 40, 'a');
    if (!s.empty() && random() % 4 != 0) s[random() % s.size()] = static_cast<char>(random());
    return s;
  };
  for (int i = 0; i < 100000; ++i) {
    const std::string a = any(), b = any();
    size_t shared = 0;
    while (shared < a.size() && shared < b.size() && a[shared] == b[shared]) ++shared;
    const size_t known = random() % (shared + 1);
    BOOST_REQUIRE(CommonPrefix(a, b, known) == shared);
    const int order = CompareBehind(a, b, shared);
    BOOST_REQUIRE((order < 0) == (a < b));
    BOOST_REQUIRE((order == 0) == (a == b));
    BOOST_REQUIRE(Less(a, b) == (a < b));
    if (SliceOf(a) < SliceOf(b)) BOOST_REQUIRE(a < b);
    if (a < b) BOOST_REQUIRE(SliceOf(a) <= SliceOf(b));
  }
}

// Ties of every size and depth: words from a small alphabet, some of them nested deeply.
BOOST_AUTO_TEST_CASE(takes_no_more_than_four_bytes_a_key) {
  for (size_t tie : {1, 30, 32, 33, 100, 5000}) {
    if (kUnderTsan && tie != 30) continue;
    OracleData<std::string> data;
    data.name = "ties of " + std::to_string(tie);
    auto random = TestRandom(tie);
    for (uint32_t i = 0; i < FewerUnderTsan(200000, 5); ++i) {
      std::string key = std::to_string(1000000 + i / tie);
      key.append(random() % 2 == 0 ? 11 : 20, 'x');
      key += std::to_string(1000000 + i % tie);
      data.keys.push_back(std::move(key));
      data.row_ids.push_back(i);
    }
    std::sort(data.keys.begin(), data.keys.end());
    for (size_t i = 0; i < data.keys.size(); i += 97) {
      data.queries.push_back(data.keys[i]);
      data.queries.push_back(data.keys[i] + "0");
      data.queries.push_back(data.keys[i].substr(0, 15));
    }
    const auto index = Make(OracleRun(data));
    BOOST_TEST(index->memory_bytes() <= 4 * data.keys.size());
    CheckPointsAgainstOracle(*index, data);
  }
}

BOOST_AUTO_TEST_CASE(refuses_keys_that_are_not_bytes) {
  BOOST_TEST(absl::IsUnimplemented(StringSearch::Build(SortedRun()).status()));
}

BOOST_AUTO_TEST_CASE(many_threads_ask_at_once) {
  const auto catalogue = OracleCatalogue<std::string>(30000);
  const OracleData<std::string>& data = catalogue.back();
  const auto index = Make(OracleRun(data));
  const std::vector<std::string_view> queries(data.queries.begin(), data.queries.end());
  std::vector<RowId> expected(queries.size());
  RequireOk(index->Execute(Batch::FindFirst(queries, absl::MakeSpan(expected))));
  RequireOnFourThreads([&] {
    std::vector<RowId> rows(queries.size());
    bool same = true;
    for (int i = 0; i < 10; ++i) {
      same &= index->Execute(Batch::FindFirst(queries, absl::MakeSpan(rows))).ok();
      same &= rows == expected;
    }
    return same;
  });
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
