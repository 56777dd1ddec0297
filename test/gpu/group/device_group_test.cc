#include "cairn/device/group.h"

#include <algorithm>
#include <atomic>
#include <boost/test/unit_test.hpp>
#include <cstdint>
#include <limits>
#include <string>
#include <thread>
#include <vector>

#include "test/gpu/device_array.h"
#include "test/gpu/device_strings.h"
#include "test/gpu/group/group_check.h"
#include "test/gpu/needs_device.h"
#include "test/ordered_index_oracle.h"
#include "test/require_ok.h"
#include "test/test_random.h"

namespace cairn::gpu {
BOOST_FIXTURE_TEST_SUITE(device_group_test, NeedsDevice)
namespace {

// Calls `check` for every data set of the catalog, with alternating numbers of members and ways of
// exchange.
template <typename Key, typename Check>
void ForEachSet(size_t most, Check check) {
  size_t set = 0;
  for (const OracleData<Key>& data : OracleCatalogue<Key>(most)) {
    check(data, set, kMemberCounts[set % std::size(kMemberCounts)],
          kExchanges[set % std::size(kExchanges)]);
    ++set;
  }
}

template <typename Key>
void CheckHostBatches() {
  ForEachSet<Key>(1500, [](const OracleData<Key>& data, size_t set, size_t members,
                           PeerExchange exchange) {
    // Half of them by keys of 32 bits, the others by those of 64.
    if (set / 2 % 2 != (sizeof(Key) == sizeof(uint32_t) ? 0 : 1)) return;
    const SortedRun run = OracleRun(data);
    CheckAgainstOracle(
        GroupIndex(run, MakeGroup(set % 2 != 0, run, members, SmallChunks(exchange, 1000))), data);
  });
}

template <typename Key>
void CheckDeviceBatches() {
  ForEachSet<Key>(20000,
                  [](const OracleData<Key>& data, size_t, size_t members, PeerExchange exchange) {
                    const SortedRun run = OracleRun(data);
                    for (const bool sharded : {false, true}) {
                      CheckWide(*MakeGroup(sharded, run, members, SmallChunks(exchange)),
                                OracleOf(data), data.queries);
                    }
                  });
}

// A tenth of the entries are of one key, which spans shards.
template <typename Key>
OracleData<Key> LargeSet() {
  auto random = TestRandom(sizeof(Key));
  std::vector<Key> keys(200000);
  for (size_t i = 0; i < keys.size(); ++i) {
    keys[i] = i % 10 == 0 ? Key{1} << 31 : static_cast<Key>(random());
  }
  return oracle::FinishIntegers<Key>("a heavy key", std::move(keys));
}

template <typename Key>
void CheckAroundChunks() {
  const OracleData<Key> data = LargeSet<Key>();
  const SortedRun run = OracleRun(data);
  constexpr size_t kChunk = 10000;
  for (const PeerExchange exchange : kExchanges) {
    const auto options = SmallChunks(exchange, kChunk);
    const auto shards = MakeGroup(true, run, 4, options);
    const auto replicas = MakeGroup(false, run, 3, options);
    auto random = TestRandom(7);
    for (const size_t size : {size_t{1}, size_t{31}, size_t{4096}, size_t{4097}, kChunk - 1, kChunk,
                              kChunk + 1, 2 * kChunk, 3 * kChunk + 17}) {
      std::vector<Key> queries(size);
      for (Key& key : queries) {
        key =
            random() % 2 == 0 ? data.keys[random() % data.keys.size()] : static_cast<Key>(random());
      }
      CheckWide(*shards, OracleOf(data), queries);
      CheckWide(*replicas, OracleOf(data), queries);
      // All of one shard.
      std::fill(queries.begin(), queries.end(), Key{1} << 31);
      CheckWide(*shards, OracleOf(data), queries);
    }
  }
}

BOOST_AUTO_TEST_CASE(batches_of_the_host_u32) {
  CheckHostBatches<uint32_t>();
}
BOOST_AUTO_TEST_CASE(batches_of_the_host_u64) {
  CheckHostBatches<uint64_t>();
}

BOOST_AUTO_TEST_CASE(batches_of_the_host_of_strings_by_replicas) {
  ForEachSet<std::string>(300, [](const OracleData<std::string>& data, size_t set, size_t members,
                                  PeerExchange exchange) {
    if (set % 7 != 0) return;
    const SortedRun run = OracleRun(data);
    CheckAgainstOracle(GroupIndex(run, MakeGroup(false, run, members, SmallChunks(exchange))),
                       data);
  });
}

BOOST_AUTO_TEST_CASE(batches_in_device_memory_u32) {
  CheckDeviceBatches<uint32_t>();
}
BOOST_AUTO_TEST_CASE(batches_in_device_memory_u64) {
  CheckDeviceBatches<uint64_t>();
}
BOOST_AUTO_TEST_CASE(batches_around_chunks_u32) {
  CheckAroundChunks<uint32_t>();
}
BOOST_AUTO_TEST_CASE(batches_around_chunks_u64) {
  CheckAroundChunks<uint64_t>();
}

BOOST_AUTO_TEST_CASE(large_batches_of_the_host_are_split) {
  const OracleData<uint64_t> data = LargeSet<uint64_t>();
  const SortedRun run = OracleRun(data);
  DeviceGroupOptions options;
  options.chunk_queries = size_t{1} << 17;
  for (const bool sharded : {false, true}) {
    const auto group = MakeGroup(sharded, run, 3, options);
    auto random = TestRandom(3);
    std::vector<uint64_t> keys(600000);
    for (uint64_t& key : keys) key = data.keys[random() % data.keys.size()] + random() % 2;
    std::vector<RowId> rows(keys.size());
    RequireOk(group->Execute(Batch::FindFirst(keys, absl::MakeSpan(rows))));
    std::vector<uint64_t> counts(keys.size());
    RequireOk(group->Execute(Batch::Count(RangeBatch::Equal(keys), absl::MakeSpan(counts))));
    const GroupOracle<uint64_t> oracle = OracleOf(data);
    size_t wrong = 0;
    for (size_t i = 0; i < keys.size(); ++i) {
      wrong += rows[i] != static_cast<RowId>(oracle.First(keys[i]));
      wrong += counts[i] != oracle.Upper(keys[i]) - oracle.Lower(keys[i]);
    }
    BOOST_TEST(wrong == 0u);
  }
}

// Shards with their own rows; the third is empty, a key spans the last ones.
template <typename Key>
void CheckOwnShards() {
  constexpr Key kMax = std::numeric_limits<Key>::max();
  const std::vector<std::vector<Key>> keys = {{0, 0, 3, 5}, {6, 7, 9},  {},
                                              {9, 9, 100},  {100, 100}, {100, kMax}};
  std::vector<SortedRun> runs;
  GroupOracle<Key> oracle;
  for (size_t s = 0; s < keys.size(); ++s) {
    std::vector<RowId> rows(keys[s].size());
    for (size_t i = 0; i < rows.size(); ++i) {
      rows[i] = static_cast<RowId>(1000 * s + i);
      oracle.keys.push_back(keys[s][i]);
      oracle.rows.push_back(MakeGlobalRowId(static_cast<uint32_t>(s), rows[i]));
    }
    runs.push_back(RequireOk(SortedRun::FromSorted(keys[s], rows)));
  }
  const std::vector<Key> queries = {0, 1, 3, 4, 5, 6, 8, 9, 10, 99, 100, 101, kMax - 1, kMax};
  for (const PeerExchange exchange : kExchanges) {
    const auto group = RequireOk(DeviceGroup::OfShards("gpu:auto", runs, GroupDevices(runs.size()),
                                                       SmallChunks(exchange, 5)));
    BOOST_TEST(group->has_global_rows());
    BOOST_TEST(group->size() == oracle.keys.size());
    CheckWide(*group, oracle, queries);
    std::vector<RowId> row_ids(queries.size());
    BOOST_TEST(absl::IsInvalidArgument(
        group->Execute(Batch::FindFirst(queries, absl::MakeSpan(row_ids)))));
    std::vector<GlobalRowId> rows(queries.size());
    RequireOk(group->Execute(Batch::FindFirst(queries, absl::MakeSpan(rows))));
    std::vector<Position> lowers(queries.size());
    RequireOk(group->Execute(Batch::LowerBound(queries, absl::MakeSpan(lowers))));
    for (size_t i = 0; i < queries.size(); ++i) {
      const GlobalRowId first = oracle.First(queries[i]);
      BOOST_TEST(rows[i] == first);
      BOOST_TEST(lowers[i] == oracle.Lower(queries[i]));
    }
    BOOST_TEST(absl::IsFailedPrecondition(group->On(0).status()));
    FindResult matches;
    BOOST_TEST(absl::IsUnimplemented(group->Execute(Batch::Find(queries, &matches))));
  }
}
BOOST_AUTO_TEST_CASE(shards_with_rows_of_their_own) {
  CheckOwnShards<uint32_t>();
  CheckOwnShards<uint64_t>();
}

BOOST_AUTO_TEST_CASE(indexes_that_are_on_their_devices) {
  const std::vector<uint64_t> low = {1, 2, 2, 5}, high = {7, 8, 9}, none;
  const std::vector<RowId> rows = {0, 1, 2, 3};
  const auto index = [&](const auto& keys) -> std::unique_ptr<const DeviceIndex> {
    const DeviceArray memory(keys);
    const DeviceArray<RowId> row_memory(rows);
    return RequireOk(MakeDeviceIndex("gpu:auto", DeviceKeys(memory.data(), keys.size()),
                                     row_memory.data(), nullptr));
  };
  const auto shards = [&](const auto&... keys) {
    std::vector<std::unique_ptr<const DeviceIndex>> made;
    (made.push_back(index(keys)), ...);
    return made;
  };
  const auto group = RequireOk(DeviceGroup::OfShards(shards(low, none, high)));
  const GroupOracle<uint64_t> oracle = {
      {1, 2, 2, 5, 7, 8, 9},
      {0, 1, 2, 3, MakeGlobalRowId(2, 0), MakeGlobalRowId(2, 1), MakeGlobalRowId(2, 2)}};
  const std::vector<uint64_t> queries = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, UINT64_MAX};
  CheckWide(*group, oracle, queries);
  // Shards that overlap or are not in key order, and shards of different key types.
  const std::vector<uint32_t> narrow = {0, 7}, rest = {7, UINT32_MAX};
  const auto refuse = [](std::vector<std::unique_ptr<const DeviceIndex>> made) {
    const absl::Status refused = DeviceGroup::OfShards(std::move(made)).status();
    BOOST_TEST(absl::IsInvalidArgument(refused), refused);
  };
  refuse(shards(high, none, low));
  refuse(shards(low, low));
  refuse(shards(none, low, narrow));
  // A key in two shards, and the minimum and maximum of its type.
  CheckWide(*RequireOk(DeviceGroup::OfShards(shards(narrow, rest))),
            {{0, 7, 7, UINT32_MAX}, {0, 1, MakeGlobalRowId(1, 0), MakeGlobalRowId(1, 1)}},
            std::vector<uint32_t>{0, 1, 6, 7, 8, UINT32_MAX - 1, UINT32_MAX});
  std::vector<std::unique_ptr<const DeviceIndex>> replicas;
  for (int i = 0; i < 3; ++i) replicas.push_back(index(low));
  const auto replicated = RequireOk(DeviceGroup::OfReplicas(std::move(replicas), SmallChunks()));
  CheckWide(*replicated, {{1, 2, 2, 5}, {0, 1, 2, 3}}, queries);
  std::vector<RowId> found(queries.size());
  RequireOk(replicated->Execute(Batch::FindFirst(queries, absl::MakeSpan(found))));
  BOOST_TEST(found[2] == 1u);
  replicas.clear();
  replicas.push_back(index(low));
  replicas.push_back(index(high));
  BOOST_TEST(absl::IsInvalidArgument(DeviceGroup::OfReplicas(std::move(replicas)).status()));
}

BOOST_AUTO_TEST_CASE(a_group_is_an_index_of_each_of_its_devices) {
  const OracleData<uint32_t> data = LargeSet<uint32_t>();
  const GroupOracle<uint32_t> oracle = OracleOf(data);
  const SortedRun run = OracleRun(data);
  const DeviceArray<uint32_t> keys(data.queries);
  const size_t size = data.queries.size();
  const DeviceKeys batch(keys.data(), size);
  DeviceRanges ranges{batch, batch, Bound::kInclusive, Bound::kInclusive};
  for (const bool sharded : {false, true}) {
    const auto group = MakeGroup(sharded, run, 4, SmallChunks());
    const DeviceIndex* const index = RequireOk(group->On(0));
    BOOST_TEST(index->size() == data.keys.size());
    const DeviceArray<uint32_t> values(size);
    const DeviceArray<uint64_t> counts(size), offsets(size + 1);
    RequireOk(index->Execute(DeviceBatch::FindFirst(batch, values.data()), nullptr));
    RequireOk(index->Execute(DeviceBatch::Count(ranges, counts.data()), nullptr));
    const auto rows = values.ToHost();
    const auto counted = counts.ToHost();
    size_t wrong = 0;
    for (size_t i = 0; i < size; ++i) {
      wrong += rows[i] != static_cast<RowId>(oracle.First(data.queries[i]));
      wrong += counted[i] != oracle.Upper(data.queries[i]) - oracle.Lower(data.queries[i]);
    }
    RequireOk(
        index->PlanScan(ranges, 2, Order::kAscending, values.data(), offsets.data(), nullptr));
    BOOST_TEST(wrong == 0u);
    const std::vector<uint64_t> planned = offsets.ToHost();
    const DeviceArray<RowId> copied(planned.back());
    const absl::Status gathered =
        index->CopyRows(values.data(), offsets.data(), size, planned.back(), Order::kAscending,
                        copied.data(), nullptr);
    if (sharded) {
      BOOST_TEST(absl::IsUnimplemented(gathered), gathered);
    } else {
      RequireOk(gathered);
      const std::vector<RowId> first_rows = copied.ToHost();
      for (size_t i = 0; i < size; ++i) {
        if (planned[i] < planned[i + 1]) wrong += first_rows[planned[i]] != rows[i];
      }
      BOOST_TEST(wrong == 0u);
    }
    BOOST_TEST(absl::IsInvalidArgument(group->On(1000).status()));
  }
}

BOOST_AUTO_TEST_CASE(strings_in_device_memory_are_asked_of_a_replica) {
  const std::vector<std::string_view> keys = {"", "a", "ab", "b", "berlin", "lisbon"};
  const std::vector<RowId> rows = {5, 4, 3, 2, 1, 0};
  const SortedRun run = RequireOk(SortedRun::FromSorted(keys, rows));
  const auto group = MakeGroup(false, run, 2, SmallChunks());
  const DeviceStrings batch({"lisbon", "", "oslo", "a"});
  const DeviceArray<RowId> found(4);
  const DeviceArray<Position> begin(4), end(4);
  const DeviceIndex* const index = RequireOk(group->On(0));
  RequireOk(index->Execute(DeviceBatch::FindFirst(batch.keys(), found.data()), nullptr));
  BOOST_TEST((found.ToHost() == std::vector<RowId>{0, 5, kNoRow, 4}));
  DeviceRanges prefixes{batch.keys(), batch.keys(), Bound::kInclusive, Bound::kPrefix};
  RequireOk(index->Execute(DeviceBatch::Positions(prefixes, begin.data(), end.data()), nullptr));
  BOOST_TEST((end.ToHost() == std::vector<Position>{6, 6, 6, 3}));
  const DeviceArray<GlobalRowId> wide(4);
  BOOST_TEST(absl::IsUnimplemented(
      group->Execute(WideDeviceBatch::FindFirst(batch.keys(), wide.data()), nullptr)));
  BOOST_TEST(absl::IsUnimplemented(DeviceGroup::Shard("gpu:auto", run, GroupDevices(2)).status()));
}

BOOST_AUTO_TEST_CASE(eight_threads_ask_one_group) {
  const OracleData<uint32_t> data = LargeSet<uint32_t>();
  const GroupOracle<uint32_t> oracle = OracleOf(data);
  const SortedRun run = OracleRun(data);
  const auto shards = MakeGroup(true, run, 4, SmallChunks());
  const auto replicas = MakeGroup(false, run, 3, SmallChunks());
  const DeviceArray<uint32_t> keys(data.queries);
  const size_t size = data.queries.size();
  std::vector<std::unique_ptr<DeviceArray<uint64_t>>> outputs;
  for (int i = 0; i < 8; ++i) outputs.push_back(std::make_unique<DeviceArray<uint64_t>>(size));
  std::atomic<size_t> wrong{0}, failed{0};
  const auto ask = [&](size_t thread) {
    const DeviceGroup& group = thread % 2 == 0 ? *shards : *replicas;
    std::vector<RowId> rows(size);
    for (int round = 0; round < 5; ++round) {
      const auto batch =
          WideDeviceBatch::LowerBound(DeviceKeys(keys.data(), size), outputs[thread]->data());
      failed += !group.Execute(batch, nullptr).ok();
      failed += !group.Execute(Batch::FindFirst(data.queries, absl::MakeSpan(rows))).ok();
      for (size_t i = 0; i < size; ++i) {
        wrong += rows[i] != static_cast<RowId>(oracle.First(data.queries[i]));
      }
    }
  };
  std::vector<std::thread> threads;
  for (size_t i = 0; i < 8; ++i) threads.emplace_back(ask, i);
  for (std::thread& thread : threads) thread.join();
  for (const auto& output : outputs) {
    const auto lowers = output->ToHost();
    for (size_t i = 0; i < size; ++i) wrong += lowers[i] != oracle.Lower(data.queries[i]);
  }
  BOOST_TEST(failed == 0u);
  BOOST_TEST(wrong == 0u);
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn::gpu
