#include "cairn/device.h"

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <limits>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "gpu/runtime/stream.h"
#include "test/gpu/device_array.h"
#include "test/gpu/needs_device.h"
#include "test/gpu/runtime/device_faults.h"
#include "test/require_ok.h"
#include "test/test_random.h"

// Insertions by the public API; b_plus_tree_update_test tests their effect on pages.
namespace cairn::gpu {
BOOST_FIXTURE_TEST_SUITE(device_update_test, NeedsDevice)
namespace {

template <typename Key>
using Entries = std::vector<std::pair<Key, RowId>>;

// Entries in device memory.
template <typename Key>
struct Column {
  explicit Column(const Entries<Key>& entries) : Column(Split(entries)) {}
  DeviceKeys all() const { return {keys.data(), keys.size()}; }

  DeviceArray<Key> keys;
  DeviceArray<RowId> rows;

 private:
  using Columns = std::pair<std::vector<Key>, std::vector<RowId>>;
  explicit Column(const Columns& columns) : keys(columns.first), rows(columns.second) {
    BOOST_REQUIRE(cudaDeviceSynchronize() == cudaSuccess);  // copies may still be on their way
  }
  static Columns Split(const Entries<Key>& entries) {
    Columns columns;
    for (const auto& [key, row] : entries) {
      columns.first.push_back(key);
      columns.second.push_back(row);
    }
    return columns;
  }
};

template <typename Key>
std::unique_ptr<UpdatableDeviceIndex> MakeIndex(const std::string& factory,
                                                const Entries<Key>& entries) {
  const Column<Key> column(entries);
  return RequireOk(MakeUpdatableDeviceIndex(factory, column.all(), column.rows.data(), nullptr));
}

// `count` entries with keys below `most`, at the ends of the key range now and then.
template <typename Key>
Entries<Key> SomeEntries(size_t count, uint64_t most, uint64_t salt) {
  auto random = TestRandom(salt);
  Entries<Key> entries;
  for (size_t i = 0; i < count; ++i) {
    const Key key = i % 100 == 17   ? std::numeric_limits<Key>::max()
                    : i % 100 == 31 ? Key{0}
                                    : static_cast<Key>(random() % most);
    entries.emplace_back(key, static_cast<RowId>(random() % 1000000));
  }
  return entries;
}

// Queries all rows of present keys and of adjacent ones, on a separate stream.
template <typename Key>
void CheckRows(const DeviceIndex& index, const std::set<std::pair<Key, RowId>>& expected) {
  BOOST_REQUIRE(index.size() == expected.size());
  std::vector<Key> keys = {0, std::numeric_limits<Key>::max()};
  for (const auto& [key, row] : expected) {
    keys.push_back(key);
    keys.push_back(static_cast<Key>(key + 1));
  }
  const DeviceArray<Key> queries(keys);
  const DeviceKeys asked(queries.data(), keys.size());
  const DeviceRanges ranges{asked, asked, Bound::kInclusive, Bound::kInclusive};
  size_t rows = 0;
  for (const Key key : keys) {
    rows += static_cast<size_t>(
        std::distance(expected.lower_bound({key, 0}), expected.upper_bound({key, kNoRow})));
  }
  const DeviceArray<uint64_t> offsets(keys.size() + 1);
  const DeviceArray<RowId> found(rows);
  BOOST_REQUIRE(cudaDeviceSynchronize() == cudaSuccess);
  const Stream stream = RequireOk(Stream::Create());
  RequireOk(index.Scan(ranges, UINT64_MAX, Order::kAscending, offsets.data(), found.data(), rows,
                       stream.get()));
  RequireOk(stream.Wait());
  const auto ends = offsets.ToHost();
  const auto row_ids = found.ToHost();
  BOOST_REQUIRE(ends.back() == rows);
  for (size_t i = 0; i < keys.size(); ++i) {
    std::vector<RowId> of_key;
    for (auto at = expected.lower_bound({keys[i], 0}); at != expected.end() && at->first == keys[i];
         ++at) {
      of_key.push_back(at->second);
    }
    BOOST_REQUIRE(
        (std::vector<RowId>(row_ids.begin() + static_cast<ptrdiff_t>(ends[i]),
                            row_ids.begin() + static_cast<ptrdiff_t>(ends[i + 1])) == of_key));
  }
}

template <typename Key>
void CheckInsertions(const std::string& factory, size_t before, uint64_t most) {
  BOOST_TEST_CONTEXT(factory << ", " << before << " entries below " << most) {
    const Entries<Key> first = SomeEntries<Key>(before, most, before);
    std::set<std::pair<Key, RowId>> expected(first.begin(), first.end());
    const auto index = MakeIndex<Key>(factory, {expected.begin(), expected.end()});
    const Stream stream = RequireOk(Stream::Create());
    uint64_t salt = 100;
    for (const size_t count : {0, 1, 64, 65, 3000}) {
      const Entries<Key> added = SomeEntries<Key>(count, most, ++salt);
      const Column<Key> column(added);
      const size_t inserted =
          RequireOk(index->Insert(column.all(), column.rows.data(), stream.get()));
      const size_t had = expected.size();
      expected.insert(added.begin(), added.end());
      BOOST_TEST(inserted == expected.size() - had);
      CheckRows(*index, expected);
      const Entries<Key> more = SomeEntries<Key>(count, most, ++salt);
      const Column<Key> bulk(more);
      RequireOk(
          index->BulkInsert(bulk.all(), bulk.rows.data(), EqualKeys::kKeepRows, stream.get()));
      expected.insert(more.begin(), more.end());
      CheckRows(*index, expected);
    }
  }
}

// Key 2 i has row i.
Entries<uint32_t> EvenKeys(uint32_t count) {
  Entries<uint32_t> entries;
  for (uint32_t i = 0; i < count; ++i) entries.emplace_back(2 * i, i);
  return entries;
}

BOOST_AUTO_TEST_CASE(entries_that_are_inserted_are_found) {
  for (const char* factory : {"gpu:btree", "gpu:btree,order=8,fill=0.5,method=binary"}) {
    for (const size_t before : {0, 1, 5000}) {
      CheckInsertions<uint32_t>(factory, before, 1000000);
      CheckInsertions<uint64_t>(factory, before, UINT64_MAX);
      CheckInsertions<uint32_t>(factory, before, 300);  // many equal keys
    }
  }
}

BOOST_AUTO_TEST_CASE(rows_of_keys_may_be_replaced) {
  const auto index = MakeIndex<uint32_t>("gpu:btree", {{1, 10}, {1, 11}, {5, 50}, {7, 70}});
  const Column<uint32_t> added(Entries<uint32_t>{{5, 53}, {5, 52}, {6, 60}});
  RequireOk(index->BulkInsert(added.all(), added.rows.data(), EqualKeys::kReplaceRows, nullptr));
  CheckRows<uint32_t>(*index, {{1, 10}, {5, 52}, {6, 60}, {7, 70}});
}

BOOST_AUTO_TEST_CASE(an_index_from_the_host_takes_insertions) {
  const std::vector<uint32_t> keys = {3, 4, 8};
  const std::vector<RowId> rows = {30, 40, 80};
  const SortedRun run = RequireOk(SortedRun::FromSorted(absl::MakeConstSpan(keys), rows));
  const auto index = RequireOk(MakeUpdatableDeviceIndex("gpu:btree", run));
  const Column<uint32_t> added(Entries<uint32_t>{{5, 50}});
  BOOST_TEST(RequireOk(index->Insert(added.all(), added.rows.data(), nullptr)) == 1u);
  CheckRows<uint32_t>(*index, {{3, 30}, {4, 40}, {5, 50}, {8, 80}});
}

// Work enqueued before an update, on any stream, does not see it.
BOOST_AUTO_TEST_CASE(updates_come_after_earlier_queries) {
  constexpr uint32_t kEntries = 50000;
  const auto index = MakeIndex<uint32_t>("gpu:btree", EvenKeys(kEntries));
  std::vector<uint32_t> odd;
  for (uint32_t i = 0; i < kEntries; ++i) odd.push_back(2 * i + 1);
  const DeviceArray<uint32_t> queries(odd);
  BOOST_REQUIRE(cudaDeviceSynchronize() == cudaSuccess);
  const Stream asking = RequireOk(Stream::Create()), stream = RequireOk(Stream::Create());
  for (const bool bulk : {false, true}) {
    const uint32_t first = bulk ? kEntries / 2 : 0;
    Entries<uint32_t> entries;
    for (uint32_t i = first; i < first + kEntries / 2; ++i) entries.emplace_back(2 * i + 1, i);
    const Column<uint32_t> added(entries);
    const DeviceArray<RowId> rows(kEntries);
    const DeviceKeys asked(queries.data(), kEntries);
    BOOST_REQUIRE(DelayStream(std::chrono::milliseconds(60), asking.get()) == cudaSuccess);
    RequireOk(index->Execute(DeviceBatch::FindFirst(asked, rows.data()), asking.get()));
    if (bulk) {
      RequireOk(
          index->BulkInsert(added.all(), added.rows.data(), EqualKeys::kKeepRows, stream.get()));
    } else {
      RequireOk(index->Insert(added.all(), added.rows.data(), stream.get()));
    }
    const auto found = rows.ToHost();
    for (uint32_t i = 0; i < kEntries; ++i) BOOST_REQUIRE(found[i] == (i < first ? i : kNoRow));
    const DeviceArray<RowId> after(kEntries);
    RequireOk(index->Execute(DeviceBatch::FindFirst(asked, after.data()), asking.get()));
    const auto rows_after = after.ToHost();
    for (uint32_t i = 0; i < kEntries; ++i) {
      BOOST_REQUIRE(rows_after[i] == (i < first + kEntries / 2 ? i : kNoRow));
    }
  }
}

BOOST_AUTO_TEST_CASE(bad_insertions_change_nothing) {
  const Entries<uint32_t> entries = EvenKeys(300);
  const std::set<std::pair<uint32_t, RowId>> expected(entries.begin(), entries.end());
  const auto index = MakeIndex<uint32_t>("gpu:btree", entries);
  const auto refused = [&](DeviceKeys keys, const RowId* rows, cudaStream_t stream) {
    std::vector<absl::Status> statuses = {
        index->Insert(keys, rows, stream).status(),
        index->BulkInsert(keys, rows, EqualKeys::kKeepRows, stream)};
    return statuses;
  };
  const Column<uint64_t> wide(Entries<uint64_t>{{1, 1}});
  for (const absl::Status& status : refused(wide.all(), wide.rows.data(), nullptr)) {
    BOOST_TEST(absl::IsInvalidArgument(status), status);
  }
  for (const size_t count : {1, 64, 65, 1000}) {
    Entries<uint32_t> without_row = SomeEntries<uint32_t>(count, 1000, count);
    without_row[count / 2].second = kNoRow;
    const Column<uint32_t> column(without_row);
    for (const absl::Status& status : refused(column.all(), column.rows.data(), nullptr)) {
      BOOST_TEST(absl::IsInvalidArgument(status), status);
    }
  }
  const Column<uint32_t> good(Entries<uint32_t>{{1, 1}});
  const Stream stream = RequireOk(Stream::Create());
  cudaGraph_t graph = nullptr;
  BOOST_REQUIRE(cudaStreamBeginCapture(stream.get(), cudaStreamCaptureModeGlobal) == cudaSuccess);
  for (const absl::Status& status : refused(good.all(), good.rows.data(), stream.get())) {
    BOOST_TEST(absl::IsFailedPrecondition(status), status);
  }
  BOOST_REQUIRE(cudaStreamEndCapture(stream.get(), &graph) == cudaSuccess);
  BOOST_TEST(cudaGraphDestroy(graph) == cudaSuccess);
  CheckRows(*index, expected);
}

BOOST_AUTO_TEST_CASE(other_structures_take_none) {
  const Column<uint32_t> column(EvenKeys(10));
  for (const char* factory : {"gpu:auto", "gpu:packed", "gpu:fast"}) {
    BOOST_TEST(absl::IsUnimplemented(
        MakeUpdatableDeviceIndex(factory, column.all(), column.rows.data(), nullptr).status()));
  }
  for (const char* factory : {"cpu:fast", "gpu:btree,order=7", "btree", ""}) {
    BOOST_TEST(absl::IsInvalidArgument(
        MakeUpdatableDeviceIndex(factory, column.all(), column.rows.data(), nullptr).status()));
  }
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn::gpu
