#pragma once

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/match.h"
#include "cairn/device.h"
#include "test/gpu/device_array.h"
#include "test/ordered_index_oracle.h"
#include "test/require_ok.h"

namespace cairn::gpu {

// A batch of strings in device memory.
class DeviceStrings {
 public:
  explicit DeviceStrings(const std::vector<std::string_view>& keys)
      : offsets_(Offsets(keys)), bytes_(Heap(keys)), size_(keys.size()) {}

  DeviceKeys keys() const { return {bytes_.data(), offsets_.data(), size_}; }

 private:
  static std::vector<uint32_t> Offsets(const std::vector<std::string_view>& keys) {
    std::vector<uint32_t> offsets = {0};
    for (const std::string_view key : keys) {
      offsets.push_back(offsets.back() + static_cast<uint32_t>(key.size()));
    }
    return offsets;
  }
  static std::vector<char> Heap(const std::vector<std::string_view>& keys) {
    std::vector<char> heap;
    for (const std::string_view key : keys) heap.insert(heap.end(), key.begin(), key.end());
    heap.resize((heap.size() + 4) / 4 * 4, '\xEE');  // the padding is not part of the last key
    return heap;
  }

  DeviceArray<uint32_t> offsets_;
  DeviceArray<char> bytes_;
  size_t size_;
};

// Executes every operation of a device index, in device memory, and compares with std:: algorithms.
inline void CheckOnDevice(const std::string& factory, const OracleData<std::string>& data) {
  const auto index = RequireOk(MakeDeviceIndex(factory, OracleRun(data)));
  BOOST_TEST((index->kind() == PhysicalType::kBytes));
  std::vector<std::string_view> queries = oracle::Views(data.queries);
  const size_t size = queries.size();
  const DeviceStrings batch(queries);
  const auto lower = [&](std::string_view key) {
    return static_cast<Position>(std::lower_bound(data.keys.begin(), data.keys.end(), key) -
                                 data.keys.begin());
  };
  const auto upper = [&](std::string_view key) {
    return static_cast<Position>(std::upper_bound(data.keys.begin(), data.keys.end(), key) -
                                 data.keys.begin());
  };
  std::vector<Position> lowers(size), uppers(size), prefix_ends(size);
  std::vector<RowId> rows(size);
  for (size_t i = 0; i < size; ++i) {
    lowers[i] = lower(queries[i]);
    uppers[i] = upper(queries[i]);
    rows[i] = lowers[i] < uppers[i] ? data.row_ids[lowers[i]] : kNoRow;
    prefix_ends[i] = lowers[i];
    while (prefix_ends[i] < data.keys.size() &&
           absl::StartsWith(data.keys[prefix_ends[i]],
                            absl::string_view(queries[i].data(), queries[i].size()))) {
      ++prefix_ends[i];
    }
  }
  DeviceArray<uint32_t> values(size), ends(size);
  DeviceArray<uint8_t> found(size);
  RequireOk(index->Execute(DeviceBatch::FindFirst(batch.keys(), values.data()), nullptr));
  BOOST_REQUIRE_MESSAGE(values.ToHost() == rows, factory << ", " << data.name << ": rows");
  RequireOk(index->Execute(
      DeviceBatch::Contains(batch.keys(), reinterpret_cast<bool*>(found.data())), nullptr));
  const auto there = found.ToHost();
  for (size_t i = 0; i < size; ++i) BOOST_REQUIRE(there[i] == (rows[i] != kNoRow ? 1 : 0));
  RequireOk(index->Execute(DeviceBatch::LowerBound(batch.keys(), values.data()), nullptr));
  BOOST_REQUIRE_MESSAGE(values.ToHost() == lowers,
                        factory << ", " << data.name << ": lower bounds");
  RequireOk(index->Execute(DeviceBatch::UpperBound(batch.keys(), values.data()), nullptr));
  BOOST_REQUIRE_MESSAGE(values.ToHost() == uppers,
                        factory << ", " << data.name << ": upper bounds");
  RequireOk(
      index->Execute(DeviceBatch::EqualRange(batch.keys(), values.data(), ends.data()), nullptr));
  BOOST_REQUIRE(values.ToHost() == lowers);
  BOOST_REQUIRE(ends.ToHost() == uppers);
  DeviceRanges prefixes;
  prefixes.lower = prefixes.upper = batch.keys();
  prefixes.upper_bound = Bound::kPrefix;
  RequireOk(index->Execute(DeviceBatch::Positions(prefixes, values.data(), ends.data()), nullptr));
  BOOST_REQUIRE(values.ToHost() == lowers);
  BOOST_REQUIRE_MESSAGE(ends.ToHost() == prefix_ends, factory << ", " << data.name << ": prefixes");

  // All rows of all prefixes.
  DeviceArray<uint64_t> offsets(size + 1);
  RequireOk(index->PlanScan(prefixes, UINT64_MAX, Order::kAscending, values.data(), offsets.data(),
                            nullptr));
  const std::vector<uint64_t> planned = offsets.ToHost();
  DeviceArray<RowId> all(std::max<size_t>(1, planned.back()));
  RequireOk(index->CopyRows(values.data(), offsets.data(), size, planned.back(), Order::kAscending,
                            all.data(), nullptr));
  const std::vector<RowId> copied = all.ToHost();
  for (size_t i = 0; i < size; ++i) {
    BOOST_REQUIRE(planned[i + 1] - planned[i] == prefix_ends[i] - lowers[i]);
    BOOST_REQUIRE(std::equal(copied.begin() + static_cast<std::ptrdiff_t>(planned[i]),
                             copied.begin() + static_cast<std::ptrdiff_t>(planned[i + 1]),
                             data.row_ids.begin() + lowers[i]));
  }
}

}  // namespace cairn::gpu
