#include "cpu_fast/partial_key_tree.h"

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "test/ordered_index_oracle.h"

namespace cairn {
namespace {

std::unique_ptr<OrderedIndex> Make(SortedRun run, std::optional<SimdLevel> level = std::nullopt) {
  auto tree = PartialKeyTree::Build(std::move(run), level);
  BOOST_REQUIRE_MESSAGE(tree.ok(), tree.status());
  return *std::move(tree);
}

// All operations on a few queries, all point operations on all, at every SIMD level.
void CheckEveryLevel(const OracleData<std::string>& data) {
  const SortedRun run = OracleRun(data);
  const auto queries = oracle::Views(data.queries);
  for (SimdLevel level : SupportedSimdLevels()) {
    const auto tree = Make(run, level);
    BOOST_TEST_MESSAGE(tree->description() << " on " << data.name);
    oracle::Oracle<std::string>(*tree, data).CheckPoints(KeyBatch::Bytes(queries));
  }
}

BOOST_AUTO_TEST_SUITE(partial_key_tree_test)

BOOST_AUTO_TEST_CASE(answers_like_the_oracle) {
  CheckCatalogue<std::string>([](const SortedRun& run) { return Make(run); });
}

BOOST_AUTO_TEST_CASE(answers_like_the_oracle_at_every_simd_level) {
  for (const OracleData<std::string>& data : OracleCatalogue<std::string>()) CheckEveryLevel(data);
}

BOOST_AUTO_TEST_CASE(refuses_keys_that_are_not_bytes) {
  BOOST_TEST(absl::IsUnimplemented(PartialKeyTree::Build(SortedRun()).status()));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace cairn
