// Directories that are not a sharded index, or a part of one, are rejected with a specific error
// before they are published or queried.
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

namespace cairn {
BOOST_AUTO_TEST_SUITE(shard_refusals_test)
namespace {

namespace fs = std::filesystem;

BOOST_AUTO_TEST_CASE(segments_that_do_not_belong_together_are_refused_by_name) {
  Steps steps(400);
  const std::vector<PrimaryKeyRange> ranges = {
      {"", "row2", false}, {"row2", "row3", false}, {"row3", "", true}};
  steps.Extract(ranges);
  const Strings segments = steps.segments();
  const auto refused = [&](const Strings& given, const std::string& name, const char* why) {
    const absl::Status status = SplitSegments(given, 2, steps.plan(), {});
    BOOST_TEST(!status.ok());
    BOOST_TEST(Says(status, name), status);
    BOOST_TEST(Says(status, why), status);
    BOOST_TEST(!fs::exists(steps.plan()));
  };
  refused({}, "", "segments: expected at least one, got none");
  refused({segments[1], segments[2]}, segments[1], "do not begin");
  refused({segments[0], segments[2]}, segments[2], "do not begin");
  refused({segments[0], segments[1]}, segments[1], "not the last");
  refused({segments[1], segments[0], segments[2]}, segments[1], "do not begin");
  refused({segments[0], segments[0], segments[2]}, segments[0], "do not begin");
  refused({segments[0], segments[1], steps.work() + "/none"}, "none", "no index");
  const auto source = steps.db().Source();
  const std::string other = steps.work() + "/other";
  RequireOk(ExtractSegment(*source, ranges[2], Spec("value:bytes"), other, {}).status());
  refused({segments[0], segments[1], other}, other, "its spec is");
  TestDatabase stranger;
  const std::string strange = steps.work() + "/strange";
  RequireOk(ExtractSegment(*stranger.Source(), ranges[2], Spec(kShardSpec), strange, {}).status());
  refused({segments[0], segments[1], strange}, strange, "its database is");
  steps.db().Put("row0", "later");
  const std::string later = steps.work() + "/later";
  RequireOk(ExtractSegment(*steps.db().Source(), ranges[2], Spec(kShardSpec), later, {}).status());
  refused({segments[0], segments[1], later}, later, "its sequence number is");
  const std::string index = steps.work() + "/index";
  RequireOk(SecondaryIndex::Build(*source, Spec(kShardSpec), index).status());
  refused({index}, index, "it is not a segment");
}

BOOST_AUTO_TEST_CASE(a_damaged_segment_or_plan_is_refused_by_every_step) {
  Steps steps(200);
  steps.Extract(1);
  steps.Split(2);
  const std::string plan = ReadAll(steps.plan());
  const std::string shard = steps.index() + "/" + ShardDirectoryName(0);
  for (const size_t at : {size_t{0}, plan.size() / 3, plan.size() - 2}) {
    std::string damaged = plan;
    damaged[at] ^= 4;
    WriteAll(steps.plan(), damaged);
    BOOST_TEST(absl::IsDataLoss(BuildShard(steps.plan(), 0, shard, {}).status()));
    BOOST_TEST(absl::IsDataLoss(steps.Publish()));
  }
  WriteAll(steps.plan(), plan);
  BOOST_TEST(absl::IsInvalidArgument(BuildShard(steps.plan(), 2, shard, {}).status()));
  BOOST_TEST(absl::IsInvalidArgument(SplitSegments(steps.segments(), 0, steps.plan(), {})));
  BOOST_TEST(absl::IsNotFound(BuildShard(steps.work() + "/no", 0, shard, {}).status()));
  // A plan of another version.
  std::string newer = plan;
  newer.replace(newer.find("1.0"), 3, "2.0");
  newer.resize(newer.rfind("checksum "));
  AppendChecksumLine(&newer);
  WriteAll(steps.plan(), newer);
  BOOST_TEST(absl::IsFailedPrecondition(steps.Publish()));
  WriteAll(steps.plan(), plan);
  // A segment that has changed since the split, and a damaged one.
  for (const auto& entry : fs::directory_iterator(steps.segments()[0])) {
    if (entry.path().extension() != ".run") continue;
    const std::string bytes = ReadAll(entry.path().string());
    std::string damaged = bytes;
    damaged[damaged.size() / 2] ^= 1;
    WriteAll(entry.path().string(), damaged);
    const absl::Status status = BuildShard(steps.plan(), 0, shard, {}).status();
    BOOST_TEST(absl::IsDataLoss(status), status);
    BOOST_TEST(Says(status, steps.segments()[0]), status);
    WriteAll(entry.path().string(), bytes);
  }
  const auto source = steps.db().Source();
  RequireOk(ExtractSegment(*source, {}, Spec(kShardSpec), steps.segments()[0], {}).status());
  const absl::Status status = BuildShard(steps.plan(), 0, shard, {}).status();
  BOOST_TEST(absl::IsFailedPrecondition(status), status);
  BOOST_TEST(!fs::exists(shard));
}

BOOST_AUTO_TEST_CASE(shards_that_are_missing_damaged_or_of_another_plan_are_not_published) {
  Steps steps(300);
  steps.Extract(2);
  steps.Split(3);
  steps.BuildOne(0);
  steps.BuildOne(2);
  const auto refused = [&](const char* name, const char* why) {
    const absl::Status status = steps.Publish();
    BOOST_TEST(absl::IsFailedPrecondition(status), status);
    BOOST_TEST(Says(status, name), status);
    BOOST_TEST(Says(status, why), status);
    BOOST_TEST(absl::IsNotFound(SecondaryIndex::Open(steps.index()).status()));
  };
  refused("shard-1", "there is no directory");
  const std::string name = steps.BuildOne(1);
  const std::string path = steps.index() + "/" + name;
  const std::string manifest = ReadAll(path + "/MANIFEST");
  fs::remove(path + "/MANIFEST");
  refused("shard-1", "no MANIFEST");
  WriteAll(path + "/MANIFEST", manifest.substr(1));
  refused("shard-1", "damaged");
  WriteAll(path + "/MANIFEST", manifest);
  for (const auto& entry : fs::directory_iterator(path)) {
    const std::string file = entry.path().string();
    if (entry.path().extension() != ".run" && entry.path().extension() != ".tbl") continue;
    const std::string bytes = ReadAll(file);
    std::string damaged = bytes;
    damaged[damaged.size() - 70] ^= 1;
    WriteAll(file, damaged);
    refused("shard-1", "");
    fs::remove(file);
    refused("shard-1", "No such file");
    WriteAll(file, bytes);
  }
  // Shard 0 under the name of shard 1; and a shard of a plan with other cuts.
  fs::rename(path, steps.work() + "/kept");
  const std::string first = steps.BuildOne(0);
  fs::rename(steps.index() + "/" + first, path);
  refused("shard-1", "it is shard 0 of the plan");
  fs::remove_all(path);
  const std::string plan = ReadAll(steps.plan());
  steps.Split(4);
  steps.BuildOne(1);
  WriteAll(steps.plan(), plan);
  refused("shard-1", "not built from this plan");
  fs::rename(steps.work() + "/kept", path);
  RequireOk(steps.Publish());
  BOOST_CHECK(Entries(*steps.Open()) == Entries(*Build(steps.db(), kShardSpec)));
}

BOOST_AUTO_TEST_CASE(an_index_whose_shards_are_not_those_that_were_published_is_not_opened) {
  Steps steps(300);
  ShardedBuildOptions options;
  options.shards = 3;
  RequireOk(BuildSharded(*steps.db().Source(), Spec(kShardSpec), steps.index(), options).status());
  const std::string shards = ReadAll(steps.index() + "/SHARDS");
  const ShardManifest manifest = RequireOk(ParseShardManifest(shards, "SHARDS"));
  const std::string victim = manifest.shards[1].directory, path = steps.index() + "/" + victim;
  const auto refused = [&](const char* why) {
    const absl::Status status = SecondaryIndex::Open(steps.index(), ForTests()).status();
    BOOST_TEST(absl::IsDataLoss(status), status);
    BOOST_TEST(Says(status, victim), status);
    BOOST_TEST(Says(status, why), status);
  };
  fs::rename(path, steps.work() + "/kept");
  refused("is missing");
  // Another index of the same spec and database, and of its version.
  RequireOk(SecondaryIndex::Build(*steps.db().Source(), Spec(kShardSpec), path).status());
  refused("not the published one");
  fs::remove_all(path);
  RequireOk(SecondaryIndex::Build(*steps.db().Source(), Spec("value:bytes"), path).status());
  refused("its spec is");
  fs::remove_all(path);
  TestDatabase other;
  RequireOk(SecondaryIndex::Build(*other.Source(), Spec(kShardSpec), path).status());
  refused("its database id is");
  fs::remove_all(path);
  fs::rename(steps.work() + "/kept", path);
  RequireOk(SecondaryIndex::Open(steps.index(), ForTests()).status());

  // Bounds that exclude a shard's entries, with a correct checksum.
  const auto forged = [&](const std::function<void(ShardManifest*)>& change) {
    ShardManifest next = manifest;
    change(&next);
    WriteAll(steps.index() + "/SHARDS", RequireOk(FormatShardManifest(next)));
  };
  forged([](ShardManifest* m) {
    m->shards[0].upper = m->shards[1].lower = ShardBound{m->shards[1].lower->key + "\1", ""};
  });
  refused("its first entry is");
  forged([](ShardManifest* m) { m->shards[1].version = 2; });
  refused("its version is");
  forged([](ShardManifest* m) { m->shards[1].manifest_checksum ^= 1; });
  refused("its manifest's checksum is");
  WriteAll(steps.index() + "/SHARDS", shards.substr(1));
  BOOST_TEST(absl::IsDataLoss(SecondaryIndex::Open(steps.index(), ForTests()).status()));
}

BOOST_AUTO_TEST_CASE(a_directory_of_something_else_is_left_alone) {
  Steps steps(10);
  ShardedBuildOptions options;
  options.shards = 2;
  const auto build = [&](const std::string& path) {
    return BuildSharded(*steps.db().Source(), Spec(kShardSpec), path, options).status();
  };
  Build(steps.db(), kShardSpec);
  BOOST_TEST(absl::IsFailedPrecondition(build(steps.db().Beside("index"))));
  BOOST_TEST(Entries(*RequireOk(SecondaryIndex::Open(steps.db().Beside("index")))).size() == 10u);
  BOOST_TEST(absl::IsFailedPrecondition(build(steps.db().path())));
  BOOST_TEST(absl::IsNotFound(build(steps.db().Beside("no") + "/index")));
  RequireOk(build(steps.index()));
  // A sharded index is not replaced by an unsharded one.
  BOOST_TEST(absl::IsFailedPrecondition(
      SecondaryIndex::Build(*steps.db().Source(), Spec(kShardSpec), steps.index()).status()));
  RequireOk(steps.Open()->Verify());
  // One writer at a time.
  const auto writer = RequireOk(ShardDirectory::OpenForWrite(steps.index(), FileSystem::Posix()));
  BOOST_TEST(absl::IsUnavailable(build(steps.index())));
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
