// Indexes opened on a list of GPUs, as far as that needs no GPU: rejected options, missing devices,
// and the options of each shard.
#include <boost/test/unit_test.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "cairn/device.h"
#include "cairn/device/group.h"
#include "cairn/indexed_db.h"
#include "cairn/options.h"
#include "cairn/query.h"
#include "cairn/secondary_index.h"
#include "cairn/sharding.h"
#include "engine/route/open_devices.h"
#include "rocksdb/options.h"
#include "test/engine/serve/built_index.h"
#include "test/engine/test_database.h"
#include "test/require_ok.h"

namespace cairn {
BOOST_AUTO_TEST_SUITE(open_devices_test)
namespace {

// Higher than the number of any device.
constexpr int kNoDevice = 1000;

OpenOptions On(SearchDevice device, std::vector<int> devices, Strings ordered_indexes = {}) {
  OpenOptions options;
  options.device = device;
  options.devices = std::move(devices);
  options.ordered_indexes = std::move(ordered_indexes);
  options.calibration = Calibration::kNone;
  options.threads = 2;
  return options;
}

// A sharded and an unsharded index of the same rows.
struct Indexes {
  TestDatabase db;

  Indexes() {
    for (uint8_t i = 0; i < 90; ++i) {
      db.Put("row" + std::to_string(i), std::string{'\0', static_cast<char>(i / 3)});
    }
    Build(db, "value[0:2]:u16be");
    ShardedBuildOptions options;
    options.shards = 3;
    options.build.threads = 2;
    RequireOk(BuildSharded(*db.Source(), Spec("value[0:2]:u16be"), Path(true), options).status());
  }
  std::string Path(bool sharded) const { return db.Beside(sharded ? "sharded" : "index"); }
};

BOOST_AUTO_TEST_CASE(a_list_that_no_index_is_opened_on_is_refused_by_name) {
  struct Case {
    OpenOptions options;
    const char* message;
  };
  const std::vector<Case> cases = {
      {On(SearchDevice::kGpu, {0, -1}), "devices: expected CUDA ordinals of 0 or more, found -1"},
      {On(SearchDevice::kAuto, std::vector<int>(kMaxGroupMembers + 1)),
       "devices: expected at most 64, found 65"},
      {On(SearchDevice::kCpu, {0}), "devices: GPUs are listed, but no ordered index"},
      {On(SearchDevice::kGpu, {0}, {"cpu:fast", "auto"}), "devices: GPUs are listed"},
      {On(SearchDevice::kAuto, {0, 0}, {"cpu:auto", "gpu:packed,device=0"}),
       "'gpu:packed,device=0': expected no device= together with a list of devices"},
  };
  const Indexes indexes;
  for (const Case& refused : cases) {
    for (const bool sharded : {false, true}) {
      const absl::Status status =
          SecondaryIndex::Open(indexes.Path(sharded), refused.options).status();
      BOOST_TEST(absl::IsInvalidArgument(status), status);
      BOOST_TEST(absl::StrContains(status.message(), refused.message), status);
    }
    IndexedDBOptions live;
    live.open = refused.options;
    rocksdb::Options options;
    options.create_if_missing = true;
    const absl::Status status = IndexedDB::Open(options, indexes.db.Beside("live"), live).status();
    BOOST_TEST(absl::IsInvalidArgument(status), status);
    BOOST_TEST(absl::StrContains(status.message(), refused.message), status);
  }
}

// Neither a build without CUDA nor a machine without a GPU has such a device.
BOOST_AUTO_TEST_CASE(devices_that_are_not_there_are_named_and_the_cpu_answers_where_it_may) {
  const Indexes indexes;
  const absl::StatusOr<std::vector<Device>> devices = ListDevices();
  const std::string reason =
      devices.ok() ? "no usable CUDA device 1000" : std::string(devices.status().message());
  for (const bool sharded : {false, true}) {
    const Strings expected = [&] {
      const auto on_cpu = RequireOk(SecondaryIndex::Open(indexes.Path(sharded), {}));
      Strings keys;
      FindResult matches;
      RequireOk(on_cpu->Scan(RangeBatch::Everything(on_cpu->kind()), &matches));
      StringList rows;
      RequireOk(on_cpu->PrimaryKeys(matches, &rows));
      for (const std::string_view row : rows) keys.emplace_back(row);
      return keys;
    }();
    BOOST_TEST(expected.size() == 90u);
    for (const std::vector<int>& list :
         {std::vector<int>{kNoDevice}, std::vector<int>{kNoDevice, kNoDevice, kNoDevice}}) {
      const absl::Status status =
          SecondaryIndex::Open(indexes.Path(sharded), On(SearchDevice::kGpu, list)).status();
      BOOST_TEST(absl::IsUnavailable(status), status);
      BOOST_TEST(absl::StrContains(status.message(), reason), status);

      const auto index =
          RequireOk(SecondaryIndex::Open(indexes.Path(sharded), On(SearchDevice::kAuto, list)));
      const IndexStats stats = RequireOk(index->Stats());
      BOOST_TEST(absl::StrContains(stats.fallback, reason), stats.fallback);
      FindResult matches;
      Explain explain;
      Batch batch = Batch::Scan(RangeBatch::Everything(index->kind()), &matches);
      batch.explain = &explain;
      RequireOk(index->Execute(batch));
      StringList rows;
      RequireOk(index->PrimaryKeys(matches, &rows));
      BOOST_REQUIRE_EQUAL(rows.size(), expected.size());
      for (size_t i = 0; i < expected.size(); ++i) BOOST_TEST(rows[i] == expected[i]);
      BOOST_TEST(absl::StartsWith(explain.index, "cpu:"), explain.index);
      RequireOk(index->Verify());
    }
  }
}

BOOST_AUTO_TEST_CASE(shards_go_to_the_devices_in_turn_and_share_their_memory) {
  OpenOptions options = On(SearchDevice::kGpu, {4, 7, 4});
  options.device_memory_budget = 1000;
  options.host_memory_budget = 7000;
  const int devices[] = {4, 7, 4, 4, 7, 4, 4};
  for (size_t shard = 0; shard < 7; ++shard) {
    const OpenOptions of_one = OptionsOfShard(options, shard, 7);
    BOOST_TEST(of_one.devices == std::vector<int>{devices[shard]},
               boost::test_tools::per_element());
    // Five shards are on device 4, two on device 7.
    BOOST_TEST(of_one.device_memory_budget == (devices[shard] == 4 ? 201u : 501u));
    BOOST_TEST(of_one.host_memory_budget == 1001u);
    RequireOk(CheckDevices(of_one));
  }
  // A single one is opened on only the first device.
  BOOST_TEST(OptionsOfShard(options, 0, 1).devices == std::vector<int>{4},
             boost::test_tools::per_element());
  BOOST_TEST(OptionsOfShard(options, 0, 1).device_memory_budget == 1001u);
  options.devices.clear();
  BOOST_TEST(OptionsOfShard(options, 3, 4).device_memory_budget == 251u);
  BOOST_TEST(OptionsOfShard(options, 3, 4).devices.empty());
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
