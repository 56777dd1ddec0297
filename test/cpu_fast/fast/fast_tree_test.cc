#include "cpu_fast/fast/fast_tree.h"

#include <boost/test/unit_test.hpp>
#include <memory>
#include <string>
#include <vector>

#include "test/ordered_index_oracle.h"
#include "test/require_ok.h"
#include "test/sanitizer.h"
#include "test/scoped_environment.h"

namespace cairn {
BOOST_AUTO_TEST_SUITE(fast_tree_test)
namespace {

std::unique_ptr<OrderedIndex> Make(SortedRun run, const FastTreeOptions& options) {
  return RequireOk(MakeFastTree(std::move(run), options));
}

template <typename Key>
void CheckEveryLevelAndLayout() {
  const auto catalogue = OracleCatalogue<Key>();
  for (const OracleData<Key>& data : catalogue) {
    const SortedRun run = OracleRun(data);
    const auto full = Make(run, {});
    CheckAgainstOracle(*full, data);
    for (SimdLevel level : SupportedSimdLevels()) {
      for (PageBlocking page : {PageBlocking::kNone, PageBlocking::k4K, PageBlocking::k2M}) {
        const auto tree = Make(run, {page, level});
        CheckPointsAgainstOracle(*tree, data);
        CheckPointsAgainstOracle(*tree, data, 33);
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(answers_like_the_oracle_for_32_bit_keys_at_every_simd_level,
                     *StartsNoThread()) {
  CheckEveryLevelAndLayout<uint32_t>();
}

BOOST_AUTO_TEST_CASE(answers_like_the_oracle_for_64_bit_keys_at_every_simd_level,
                     *StartsNoThread()) {
  CheckEveryLevelAndLayout<uint64_t>();
}

BOOST_AUTO_TEST_CASE(does_not_read_what_stands_behind_the_end_of_the_run, *StartsNoThread()) {
  // The last line continues with smaller keys than those before it, and then with larger ones.
  auto keys = std::make_shared<AlignedBuffer<uint32_t>>(64);
  auto rows = std::make_shared<AlignedBuffer<RowId>>(64);
  for (size_t n = 1; n < 48; ++n) {
    for (uint32_t behind : {0u, 77u, UINT32_MAX}) {
      OracleData<uint32_t> data;
      data.name = "garbage past the end, " + std::to_string(n);
      for (uint32_t i = 0; i < 64; ++i) {
        (*keys)[i] = i < n ? 100 + i * 2 : behind;
        (*rows)[i] = i < n ? i : kNoRow - 1;
        if (i < n) data.keys.push_back((*keys)[i]), data.row_ids.push_back((*rows)[i]);
      }
      for (uint32_t q = 0; q < 260; ++q) data.queries.push_back(q);
      data.queries.push_back(UINT32_MAX);
      const SortedRun run = SortedRun::Wrap(std::as_const(*keys).span().subspan(0, n),
                                            std::as_const(*rows).span().subspan(0, n), keys);
      for (SimdLevel level : SupportedSimdLevels()) {
        CheckAgainstOracle(*Make(run, {PageBlocking::kNone, level}), data);
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(takes_less_than_a_tenth_of_its_run) {
  std::vector<uint64_t> keys(1 << 20);
  std::vector<RowId> rows(keys.size());
  for (size_t i = 0; i < keys.size(); ++i) keys[i] = i * 3, rows[i] = static_cast<RowId>(i);
  auto run = RequireOk(SortedRun::FromSorted(absl::MakeConstSpan(keys), rows));
  for (PageBlocking page : {PageBlocking::kNone, PageBlocking::k4K, PageBlocking::k2M}) {
    const auto tree = Make(run, {page, std::nullopt});
    BOOST_TEST(tree->memory_bytes() > 0u);
    BOOST_TEST(tree->memory_bytes() < run.memory_bytes() / 10);
  }
}

BOOST_AUTO_TEST_CASE(the_environment_chooses_the_simd_level) {
  for (SimdLevel level : SupportedSimdLevels()) {
    const std::string name(SimdLevelName(level));
    const ScopedEnvironment simd("CAIRN_SIMD", name);
    BOOST_TEST(Make(SortedRun(), {})->description() == "cpu:fast,page=none,simd=" + name);
  }
  const ScopedEnvironment simd("CAIRN_SIMD", "mmx");
  const auto tree = MakeFastTree(SortedRun());
  BOOST_TEST(absl::IsInvalidArgument(tree.status()));
  BOOST_TEST(tree.status().message().find("mmx") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(refuses_keys_of_bytes) {
  const std::string_view keys[] = {"a"};
  const RowId rows[] = {0};
  auto run = RequireOk(SortedRun::FromSorted(absl::MakeConstSpan(keys), rows));
  BOOST_TEST(absl::IsUnimplemented(MakeFastTree(run).status()));
}

BOOST_AUTO_TEST_CASE(many_threads_ask_at_once) {
  const auto catalogue = OracleCatalogue<uint64_t>(30000);
  const OracleData<uint64_t>& data = catalogue.back();
  const auto tree = Make(OracleRun(data), {});
  std::vector<Position> expected(data.queries.size());
  RequireOk(tree->Execute(Batch::LowerBound(data.queries, absl::MakeSpan(expected))));
  RequireOnFourThreads([&] {
    std::vector<Position> positions(data.queries.size());
    FindResult matches;
    bool same = true;
    for (int i = 0; i < 20; ++i) {
      same &= tree->Execute(Batch::LowerBound(data.queries, absl::MakeSpan(positions))).ok();
      same &= positions == expected;
      same &= tree->Execute(Batch::Find(data.queries, &matches)).ok();
    }
    return same;
  });
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
