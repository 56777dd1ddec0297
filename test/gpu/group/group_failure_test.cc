#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cairn/device/group.h"
#include "gpu/runtime/injected_failure.h"
#include "test/gpu/device_array.h"
#include "test/gpu/fail_every_allocation.h"
#include "test/gpu/group/group_check.h"
#include "test/gpu/needs_device.h"
#include "test/require_ok.h"
#include "test/test_random.h"

// Simulated losses of a group's members, before and during batches.
namespace cairn::gpu {
BOOST_FIXTURE_TEST_SUITE(group_failure_test, NeedsDevice)
namespace {

constexpr size_t kEntriesOfGroup = 40000;
constexpr size_t kQueriesOfGroup = 12000;

GroupOracle<uint32_t> Entries() {
  GroupOracle<uint32_t> entries;
  for (size_t i = 0; i < kEntriesOfGroup; ++i) {
    entries.keys.push_back(static_cast<uint32_t>(i / 3 * 5));
    entries.rows.push_back(i);
  }
  return entries;
}

SortedRun RunOf(const GroupOracle<uint32_t>& entries) {
  const std::vector<RowId> rows(entries.rows.begin(), entries.rows.end());
  return RequireOk(SortedRun::FromSorted(entries.keys, rows));
}

std::vector<uint32_t> QueriesOf(const GroupOracle<uint32_t>& entries) {
  auto random = TestRandom(1);
  std::vector<uint32_t> queries(kQueriesOfGroup);
  for (uint32_t& key : queries) {
    key = static_cast<uint32_t>(random() % (entries.keys.back() + 10));
  }
  return queries;
}

std::unique_ptr<DeviceGroup> FourMembers(bool sharded, const DeviceGroupOptions& options) {
  return MakeGroup(sharded, RunOf(Entries()), 4, options);
}

struct FailsNoMore {
  ~FailsNoMore() { FailGroupMemberAfter(-1, -1); }
};

// Whether the group counts correctly for a batch in device memory, or its error.
absl::Status AskOnDevice(const DeviceGroup& group, const GroupOracle<uint32_t>& entries,
                         const std::vector<uint32_t>& queries) {
  const size_t size = queries.size();
  const DeviceArray<uint32_t> memory(queries);
  const DeviceArray<uint64_t> values(size);
  const DeviceKeys keys(memory.data(), size);
  DeviceRanges ranges{keys, keys, Bound::kInclusive, Bound::kInclusive};
  absl::Status status = group.Execute(WideDeviceBatch::Count(ranges, values.data()), nullptr);
  if (!status.ok()) return status;
  const auto counts = values.ToHost();
  size_t wrong = 0;
  for (size_t i = 0; i < size; ++i) {
    wrong += counts[i] != entries.Upper(queries[i]) - entries.Lower(queries[i]);
  }
  status = group.Execute(WideDeviceBatch::FindFirst(keys, values.data()), nullptr);
  if (!status.ok()) return status;
  const auto rows = values.ToHost();
  for (size_t i = 0; i < size; ++i) wrong += rows[i] != entries.First(queries[i]);
  BOOST_TEST(wrong == 0u);
  return absl::OkStatus();
}

absl::Status AskOnHost(const DeviceGroup& group, const GroupOracle<uint32_t>& entries,
                       const std::vector<uint32_t>& queries) {
  std::vector<RowId> rows(queries.size());
  absl::Status status = group.Execute(Batch::FindFirst(queries, absl::MakeSpan(rows)));
  if (!status.ok()) return status;
  size_t wrong = 0;
  for (size_t i = 0; i < rows.size(); ++i) {
    wrong += rows[i] != static_cast<RowId>(entries.First(queries[i]));
  }
  const auto found = std::make_unique<bool[]>(queries.size());
  status = group.Execute(Batch::Contains(queries, absl::MakeSpan(found.get(), queries.size())));
  for (size_t i = 0; status.ok() && i < rows.size(); ++i) {
    wrong += found[i] != (rows[i] != kNoRow);
  }
  BOOST_TEST(wrong == 0u);
  return status;
}

BOOST_AUTO_TEST_CASE(others_answer_for_a_member_that_is_lost_at_any_call) {
  const GroupOracle<uint32_t> entries = Entries();
  const std::vector<uint32_t> queries = QueriesOf(entries);
  for (const bool sharded : {false, true}) {
    for (const PeerExchange exchange : kExchanges) {
      const auto options = WithFallback(SmallChunks(exchange, 4500));
      bool lost = true;
      for (int64_t after = 0; lost; after += 1 + after / 4) {
        const FailsNoMore no_more;
        const auto group = FourMembers(sharded, options);
        FailGroupMemberAfter(2, after);
        RequireOk(AskOnDevice(*group, entries, queries));
        RequireOk(AskOnHost(*group, entries, queries));
        lost = group->lost_members() > 0;
        BOOST_TEST(group->lost_members() <= 1u);
        FailGroupMemberAfter(-1, -1);
        // It stays lost.
        RequireOk(AskOnDevice(*group, entries, queries));
        RequireOk(AskOnHost(*group, entries, queries));
        BOOST_REQUIRE(after < 1000);
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(the_cpu_answers_where_no_device_is_left) {
  const FailsNoMore no_more;
  const GroupOracle<uint32_t> entries = Entries();
  const std::vector<uint32_t> queries = QueriesOf(entries);
  for (const bool sharded : {false, true}) {
    const auto with = FourMembers(sharded, WithFallback(SmallChunks()));
    const auto without = FourMembers(sharded, SmallChunks());
    FailGroupMemberAfter(-1, 0);
    RequireOk(AskOnHost(*with, entries, queries));
    BOOST_TEST(with->lost_members() == 4u);
    const absl::Status lost = AskOnHost(*without, entries, queries);
    BOOST_TEST(absl::IsUnavailable(lost), lost);
    BOOST_TEST(lost.ToString().find("no fallback") != std::string::npos, lost);
    FailGroupMemberAfter(-1, -1);
    // The batch's own device has no simulated failure.
    const absl::Status on_device = AskOnDevice(*with, entries, queries);
    if (sharded) {
      RequireOk(on_device);
    } else {
      BOOST_TEST(absl::IsUnavailable(on_device), on_device);
    }
  }
}

BOOST_AUTO_TEST_CASE(a_shard_without_device_and_fallback_is_named) {
  const FailsNoMore no_more;
  const GroupOracle<uint32_t> entries = Entries();
  const std::vector<uint32_t> queries = QueriesOf(entries);
  const auto group = FourMembers(true, SmallChunks());
  FailGroupMemberAfter(1, 0);
  for (int round = 0; round < 2; ++round) {
    for (const absl::Status& lost :
         {AskOnDevice(*group, entries, queries), AskOnHost(*group, entries, queries)}) {
      BOOST_TEST(absl::IsUnavailable(lost), lost);
      const std::string name =
          absl::StrCat("member 1, on device ", GroupDevices(4)[1], ", is lost");
      BOOST_TEST(lost.ToString().find(name) != std::string::npos, lost);
    }
  }
  BOOST_TEST(group->lost_members() == 1u);
}

BOOST_AUTO_TEST_CASE(a_fallback_that_fails_says_why) {
  const FailsNoMore no_more;
  const GroupOracle<uint32_t> entries = Entries();
  DeviceGroupOptions options = SmallChunks();
  options.make_fallback = [](SortedRun) -> absl::StatusOr<std::unique_ptr<OrderedIndex>> {
    return absl::ResourceExhaustedError("no room for this fallback");
  };
  const auto group = FourMembers(true, options);
  FailGroupMemberAfter(0, 0);
  const absl::Status failed = AskOnDevice(*group, entries, QueriesOf(entries));
  BOOST_TEST(absl::IsResourceExhausted(failed), failed);
  BOOST_TEST(failed.message() == "no room for this fallback");
}

BOOST_AUTO_TEST_CASE(every_allocation_may_fail) {
  const GroupOracle<uint32_t> entries = Entries();
  const std::vector<uint32_t> queries = QueriesOf(entries);
  for (const bool sharded : {false, true}) {
    for (const PeerExchange exchange : {PeerExchange::kAuto, PeerExchange::kCopies}) {
      const auto group = FourMembers(sharded, SmallChunks(exchange));
      BOOST_TEST(FailEveryAllocation([&] { return AskOnDevice(*group, entries, queries); }) > 0);
      BOOST_TEST(group->lost_members() == 0u);
    }
  }
}

BOOST_AUTO_TEST_CASE(a_member_is_lost_while_eight_threads_ask) {
  const GroupOracle<uint32_t> entries = Entries();
  const std::vector<uint32_t> queries = QueriesOf(entries);
  for (const bool sharded : {false, true}) {
    const FailsNoMore no_more;
    const auto group = FourMembers(sharded, WithFallback(SmallChunks()));
    FailGroupMemberAfter(3, 12);
    std::vector<std::thread> threads;
    std::vector<int> right(8, 0);
    for (int& one : right) {
      threads.emplace_back([&] {
        one = 1;
        for (int round = 0; round < 4; ++round) {
          std::vector<RowId> rows(queries.size());
          one &= group->Execute(Batch::FindFirst(queries, absl::MakeSpan(rows))).ok() ? 1 : 0;
          for (size_t i = 0; i < rows.size(); ++i) {
            one &= rows[i] == static_cast<RowId>(entries.First(queries[i])) ? 1 : 0;
          }
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    BOOST_TEST((right == std::vector<int>(8, 1)));
    BOOST_TEST(group->lost_members() == 1u);
  }
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn::gpu
