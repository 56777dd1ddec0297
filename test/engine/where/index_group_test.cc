// Predicates over several indexes, by every strategy, compared with brute force: one or several
// keys per row, nulls, composite keys, changes since the base, compactions of only one index.
#include "cairn/index_group.h"

#include <boost/test/unit_test.hpp>
#include <map>
#include <random>

#include "test/engine/where/where_world.h"
#include "test/sanitizer.h"
#include "test/test_random.h"

namespace cairn {
BOOST_AUTO_TEST_SUITE(index_group_test)
namespace {

BOOST_AUTO_TEST_CASE(one_key_a_row) {
  std::mt19937_64 random = TestRandom();
  std::map<WhereStrategy, size_t> answered;
  for (size_t keys : {0, 1, 64, 3000}) {
    World world = FieldWorld(&random);
    world.Change(keys * 2, std::max<size_t>(keys, 1));
    world.BuildTogether();
    CheckMany(world, FewerSanitized(40, 4, 12), random, &answered);
    for (int round = 0; round < 3; ++round) {
      world.Change(keys / 8 + 1, keys + 200);
      world.CatchUp();
      CheckMany(world, FewerSanitized(40, 4, 12), random, &answered);
      world.Merge(random() % 5);
      CheckMany(world, FewerSanitized(40, 4, 12), random, &answered);
    }
  }
  for (const WhereStrategy strategy : kStrategies) {
    if (strategy != WhereStrategy::kAuto) BOOST_TEST(answered[strategy] > 0u);
  }
}

BOOST_AUTO_TEST_CASE(several_keys_a_row) {
  std::mt19937_64 random = TestRandom();
  std::map<WhereStrategy, size_t> answered;
  for (size_t keys : {1, 64, 1500}) {
    World world = ArrayWorld(&random);
    world.Change(keys * 2, keys);
    world.BuildTogether();
    CheckMany(world, FewerSanitized(40, 4, 12), random, &answered);
    for (int round = 0; round < 3; ++round) {
      world.Change(keys / 8 + 1, keys + 100);
      world.CatchUp();
      CheckMany(world, FewerSanitized(40, 4, 12), random, &answered);
      world.Merge(random() % 3);
      CheckMany(world, FewerSanitized(40, 4, 12), random, &answered);
    }
  }
}

BOOST_AUTO_TEST_CASE(indexes_that_were_built_apart) {
  std::mt19937_64 random = TestRandom();
  std::map<WhereStrategy, size_t> answered;
  for (int round = 0; round < 3; ++round) {
    World world = FieldWorld(&random);
    world.Change(800, 600);
    world.BuildApart(150, 900);
    CheckMany(world, FewerSanitized(60, 6, 12), random, &answered);
    world.Change(300, 1000);
    world.CatchUp();
    for (size_t i = 0; i < 3; ++i) {
      world.Merge(i);
      CheckMany(world, FewerSanitized(30, 4, 12), random, &answered);
    }
  }
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
