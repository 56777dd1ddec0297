// The steps of building a sharded index: separate, together, and repeated.
#include <atomic>
#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "cairn/options.h"
#include "cairn/sharding.h"
#include "engine/shard_build/shard_plan.h"
#include "engine/shards/shard_directory.h"
#include "index/files/file_system.h"
#include "index/files/manifest_text.h"
#include "test/engine/shard_build/shard_steps.h"
#include "test/sanitizer.h"

namespace cairn {
BOOST_AUTO_TEST_SUITE(shard_build_test)
namespace {

namespace fs = std::filesystem;

BOOST_AUTO_TEST_CASE(the_steps_make_what_one_build_makes) {
  Steps steps(500);
  for (const int parts : {1, 3}) {
    steps.Extract(parts);
    BOOST_TEST(steps.Split(4) == 4u);
    steps.BuildAll(4);
    RequireOk(steps.Publish());
    const auto index = steps.Open();
    const auto plain = Build(steps.db(), kShardSpec);
    BOOST_CHECK(Entries(*index) == Entries(*plain));
    RequireOk(index->Verify());
    BOOST_TEST(RequireOk(index->Stats()).version == (parts == 1 ? 1u : 2u));
    BOOST_TEST(steps.Names().size() == 6u);  // SHARDS, LOCK and the shards
  }
}

BOOST_AUTO_TEST_CASE(a_step_run_twice_gives_the_same_and_any_attempt_is_taken) {
  Steps steps(300);
  steps.Extract(2);
  steps.Split(3);
  const std::string plan = ReadAll(steps.plan());
  steps.Split(3);
  BOOST_TEST(ReadAll(steps.plan()) == plan);
  steps.BuildAll(3);
  steps.BuildAll(3);
  const std::string name = steps.BuildOne(1);
  fs::remove(steps.index() + "/" + name + "/MANIFEST");  // an attempt that was killed
  RequireOk(steps.Publish());
  BOOST_TEST(steps.Names().size() == 5u);
  BOOST_CHECK(Entries(*steps.Open()) == Entries(*Build(steps.db(), kShardSpec)));
  // Again, with existing shards.
  RequireOk(steps.Publish());
  BOOST_TEST(RequireOk(steps.Open()->Stats()).version == 2u);
}

BOOST_AUTO_TEST_CASE(readers_of_a_generation_go_on_when_the_next_is_published) {
  Steps steps(200);
  const auto build = [&](uint32_t shards) {
    ShardedBuildOptions options;
    options.shards = shards;
    RequireOk(
        BuildSharded(*steps.db().Source(), Spec(kShardSpec), steps.index(), options).status());
  };
  build(3);
  const auto first = steps.Open();
  const Strings before = Entries(*first);
  steps.db().Put("zzz", "new");
  build(5);
  BOOST_CHECK(Entries(*first) == before);
  RequireOk(steps.Open()->Verify());
  BOOST_TEST(Entries(*steps.Open()).size() == before.size() + 1);
  BOOST_TEST(steps.Names().size() == 7u);
}

BOOST_AUTO_TEST_CASE(equal_shards_are_cut_through_a_heavy_key_and_few_entries) {
  Steps steps(0);
  for (int i = 0; i < 1000; ++i) steps.db().Put("row" + std::to_string(i), "one");
  steps.Extract(3);
  BOOST_TEST(steps.Split(7) == 7u);
  const ShardPlan plan = RequireOk(ParseShardPlan(ReadAll(steps.plan()), "plan"));
  for (const ShardPlan::Shard& shard : plan.shards) {
    BOOST_TEST(shard.entries >= 142u);
    BOOST_TEST(shard.entries <= 143u);
  }
  Steps few(2);
  few.Extract(1);
  BOOST_TEST(few.Split(7) == 2u);
  Steps none(0);
  none.Extract(1);
  BOOST_TEST(none.Split(7) == 1u);
  none.BuildAll(1);
  RequireOk(none.Publish());
  BOOST_TEST(Entries(*none.Open()).empty());
}

BOOST_AUTO_TEST_CASE(a_unique_key_that_comes_twice_is_named_whatever_the_cut) {
  TestDatabase db;
  for (int i = 0; i < 60; ++i) db.Put("row" + std::to_string(i), std::to_string(i));
  db.Put("zz", "30");
  ShardedBuildOptions options;
  for (const uint32_t segments : {1, 4}) {
    for (uint32_t shards = 1; shards <= 61; shards += kUnderTsan ? 12 : 1) {
      options.shards = shards;
      options.segments = segments;
      const absl::Status status =
          BuildSharded(*db.Source(), Spec("value:text,unique=true"), db.Beside("unique"), options)
              .status();
      BOOST_REQUIRE(absl::IsAlreadyExists(status));
      BOOST_TEST(Says(status, "key 30"), status);
    }
  }
  BOOST_TEST(!fs::exists(db.Beside("unique")));
}

BOOST_AUTO_TEST_CASE(a_build_that_is_cancelled_or_fails_leaves_the_generation_before) {
  Steps steps(300);
  ShardedBuildOptions options;
  options.shards = 4;
  RequireOk(BuildSharded(*steps.db().Source(), Spec(kShardSpec), steps.index(), options).status());
  const Strings names = steps.Names();
  steps.db().Put("more", "rows");
  std::atomic<bool> cancelled = true;
  options.build.cancelled = &cancelled;
  BOOST_TEST(absl::IsCancelled(
      BuildSharded(*steps.db().Source(), Spec(kShardSpec), steps.index(), options).status()));
  BOOST_TEST(steps.Names() == names, boost::test_tools::per_element());
  options.build.cancelled = nullptr;
  options.shards = 0;
  BOOST_TEST(absl::IsInvalidArgument(
      BuildSharded(*steps.db().Source(), Spec(kShardSpec), steps.index(), options).status()));
  BOOST_TEST(RequireOk(steps.Open()->Stats()).version == 1u);
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
