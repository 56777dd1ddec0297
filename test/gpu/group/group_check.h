#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cairn/device/group.h"
#include "cairn/internal/peer_exchange.h"
#include "cairn/ordered_index.h"
#include "test/gpu/device_array.h"
#include "test/ordered_index_oracle.h"
#include "test/require_ok.h"

// Common code of the tests of device groups.
namespace cairn::gpu {

inline constexpr size_t kMemberCounts[] = {1, 2, 3, 4, 7};
inline constexpr PeerExchange kExchanges[] = {PeerExchange::kAuto, PeerExchange::kKernels,
                                              PeerExchange::kCopies};

// The first device, several times. If CAIRN_TEST_GPUS is set, its number of devices in turn; the
// machine must have them.
inline std::vector<int> GroupDevices(size_t members) {
  const char* const given = std::getenv("CAIRN_TEST_GPUS");
  const size_t count = given == nullptr ? 1 : std::max<size_t>(1, std::strtoull(given, nullptr, 0));
  std::vector<int> devices(members);
  for (size_t i = 0; i < members; ++i) devices[i] = static_cast<int>(i % count);
  return devices;
}

// Small enough for every batch to have several chunks and parts.
inline DeviceGroupOptions SmallChunks(PeerExchange exchange = PeerExchange::kAuto,
                                      size_t chunk = 5000) {
  DeviceGroupOptions options;
  options.exchange = exchange;
  options.chunk_queries = chunk;
  options.min_split = 1;
  return options;
}

inline DeviceGroupOptions WithFallback(DeviceGroupOptions options) {
  options.make_fallback = [](SortedRun run) {
    return MakeOrderedIndex("cpu:sorted_array", std::move(run));
  };
  return options;
}

inline std::unique_ptr<DeviceGroup> MakeGroup(bool sharded, const SortedRun& run, size_t members,
                                              const DeviceGroupOptions& options) {
  const std::vector<int> devices = GroupDevices(members);
  return RequireOk(sharded ? DeviceGroup::Shard("gpu:auto", run, devices, options)
                           : DeviceGroup::Replicate("gpu:auto", run, devices, options));
}

// A group as an OrderedIndex, for the oracle.
class GroupIndex : public OrderedIndex {
 public:
  GroupIndex(SortedRun run, std::unique_ptr<DeviceGroup> group)
      : OrderedIndex(std::move(run)), group_(std::move(group)) {}
  std::string description() const override { return group_->description(); }
  uint64_t memory_bytes() const override { return group_->memory_bytes(); }
  absl::Status Execute(const Batch& batch) const override { return group_->Execute(batch); }

 private:
  const std::unique_ptr<DeviceGroup> group_;
};

// The expected answers for a key of a group of these entries, which are sorted by key.
template <typename Key>
struct GroupOracle {
  std::vector<Key> keys;
  std::vector<GlobalRowId> rows;

  uint64_t Lower(Key key) const {
    return static_cast<uint64_t>(std::lower_bound(keys.begin(), keys.end(), key) - keys.begin());
  }
  uint64_t Upper(Key key) const {
    return static_cast<uint64_t>(std::upper_bound(keys.begin(), keys.end(), key) - keys.begin());
  }
  GlobalRowId First(Key key) const {
    return Lower(key) < Upper(key) ? rows[Lower(key)] : kNoGlobalRow;
  }
};

template <typename Key>
GroupOracle<Key> OracleOf(const OracleData<Key>& data) {
  return {data.keys, std::vector<GlobalRowId>(data.row_ids.begin(), data.row_ids.end())};
}

// Executes every operation of a group for batches in device memory, and compares.
template <typename Key>
void CheckWide(const DeviceGroup& group, const GroupOracle<Key>& oracle,
               const std::vector<Key>& queries) {
  const size_t size = queries.size();
  const std::vector<Key> reversed(queries.rbegin(), queries.rend());
  std::vector<uint64_t> rows(size), lowers(size), uppers(size);
  for (size_t i = 0; i < size; ++i) {
    rows[i] = oracle.First(queries[i]);
    lowers[i] = oracle.Lower(queries[i]);
    uppers[i] = oracle.Upper(queries[i]);
  }
  const DeviceArray<Key> memory(queries), reversed_memory(reversed);
  const DeviceKeys keys(memory.data(), size), ends_of_ranges(reversed_memory.data(), size);
  const DeviceArray<uint64_t> values(size), ends(size);
  const DeviceArray<uint8_t> found(size);
  const auto ask = [&](const WideDeviceBatch& batch) {
    for (const DeviceArray<uint64_t>* output : {&values, &ends}) {
      BOOST_REQUIRE(cudaMemset(output->data(), 0x5A, size * sizeof(uint64_t)) == cudaSuccess);
    }
    RequireOk(group.Execute(batch, nullptr));
  };
  const auto check = [&](const DeviceArray<uint64_t>& given, const char* what,
                         const std::vector<uint64_t>& expected) {
    const std::vector<uint64_t> answers = given.ToHost();
    const auto wrong = std::mismatch(answers.begin(), answers.end(), expected.begin());
    BOOST_REQUIRE_MESSAGE(wrong.first == answers.end(),
                          group.description() << ", " << what << " of query "
                                              << wrong.first - answers.begin() << " of " << size
                                              << ": " << *wrong.first << ", not " << *wrong.second);
  };
  ask(WideDeviceBatch::FindFirst(keys, values.data()));
  check(values, "row", rows);
  ask(WideDeviceBatch::LowerBound(keys, values.data()));
  check(values, "lower bound", lowers);
  ask(WideDeviceBatch::UpperBound(keys, values.data()));
  check(values, "upper bound", uppers);
  ask(WideDeviceBatch::EqualRange(keys, values.data(), ends.data()));
  check(values, "begin", lowers);
  check(ends, "end", uppers);
  ask(WideDeviceBatch::Contains(keys, reinterpret_cast<bool*>(found.data())));
  const std::vector<uint8_t> there = found.ToHost();
  for (size_t i = 0; i < size; ++i) {
    if ((there[i] == 1) != (rows[i] != kNoGlobalRow) || there[i] > 1) BOOST_FAIL("contains " << i);
  }
  for (const Bound lower : {Bound::kInclusive, Bound::kExclusive, Bound::kOpen}) {
    for (const Bound upper : {Bound::kInclusive, Bound::kExclusive, Bound::kOpen}) {
      std::vector<uint64_t> begin(size), end(size), counts(size);
      for (size_t i = 0; i < size; ++i) {
        const size_t other = size - 1 - i;
        begin[i] = lower == Bound::kOpen ? 0 : lower == Bound::kInclusive ? lowers[i] : uppers[i];
        end[i] = upper == Bound::kOpen        ? oracle.keys.size()
                 : upper == Bound::kInclusive ? uppers[other]
                                              : lowers[other];
        end[i] = std::max(begin[i], end[i]);
        counts[i] = end[i] - begin[i];
      }
      const DeviceRanges ranges{keys, ends_of_ranges, lower, upper};
      ask(WideDeviceBatch::Positions(ranges, values.data(), ends.data()));
      check(values, "begin of range", begin);
      check(ends, "end of range", end);
      ask(WideDeviceBatch::Count(ranges, values.data()));
      check(values, "count", counts);
    }
  }
}

}  // namespace cairn::gpu
