#include <boost/test/unit_test.hpp>
#include <memory>
#include <string>
#include <vector>

#include "cairn/ordered_index.h"
#include "gpu/runtime/device_memory.h"
#include "index/layout/tree_layout.h"
#include "test/gpu/needs_device.h"
#include "test/ordered_index_oracle.h"
#include "test/require_ok.h"
#include "test/test_random.h"

namespace cairn::gpu {
BOOST_FIXTURE_TEST_SUITE(fast_tree_test, NeedsDevice)
namespace {

std::unique_ptr<OrderedIndex> Make(SortedRun run) {
  return RequireOk(MakeOrderedIndex("gpu:fast", std::move(run)));
}

// Keys, every third of them twice, with sizes around those at which lines and levels fill up.
template <typename Key>
void AgreesAroundFullLevels() {
  constexpr size_t kLine = TreeLayout<Key>::kLineKeys;
  auto random = TestRandom(41);
  for (size_t full = kLine; full <= size_t{1} << 18; full *= kLine) {
    for (size_t size : {full - 1, full, full + 1}) {
      std::vector<Key> keys;
      while (keys.size() < size) {
        keys.push_back(static_cast<Key>(random()));
        if (keys.size() % 3 == 0 && keys.size() < size) keys.push_back(keys.back());
      }
      const auto data = oracle::FinishIntegers("pairs", std::move(keys));
      BOOST_TEST_CONTEXT(size << " entries") {
        CheckAgainstOracle(*Make(OracleRun(data)), data);
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(agrees_with_the_oracle) {
  CheckCatalogue<uint32_t>(Make);
  CheckCatalogue<uint64_t>(Make);
}

BOOST_AUTO_TEST_CASE(agrees_with_the_oracle_where_levels_fill_up) {
  AgreesAroundFullLevels<uint32_t>();
  AgreesAroundFullLevels<uint64_t>();
}

BOOST_AUTO_TEST_CASE(says_what_it_is_made_with) {
  const auto run = OracleRun(oracle::FinishIntegers<uint32_t>("few", {1, 2, 3}));
  BOOST_TEST(Make(run)->description() == "gpu:fast");
  BOOST_TEST(absl::IsInvalidArgument(MakeOrderedIndex("gpu:fast,k=9", run).status()));
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn::gpu
