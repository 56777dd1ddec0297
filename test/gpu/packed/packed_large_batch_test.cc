#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <memory>
#include <string>
#include <vector>

#include "cairn/device.h"
#include "gpu/runtime/injected_failure.h"
#include "gpu/runtime/shared_memory.h"
#include "test/gpu/device_array.h"
#include "test/gpu/needs_device.h"
#include "test/gpu/packed/packed_sets.h"
#include "test/ordered_index_oracle.h"
#include "test/require_ok.h"
#include "test/test_random.h"

// Batches in device memory that are large enough for blocks that stay (kLargeBatch), and to be
// sampled for their order (kSampledBatch).
namespace cairn::gpu {
BOOST_FIXTURE_TEST_SUITE(packed_large_batch_test, NeedsDevice)
namespace {

constexpr size_t kQueries = (size_t{1} << 22) + 33;

// Present keys, and the two numbers above each.
template <typename Key>
std::vector<Key> Queries(const std::vector<Key>& keys) {
  auto random = TestRandom(14);
  std::vector<Key> queries(kQueries);
  for (Key& query : queries) query = keys[random() % keys.size()] + static_cast<Key>(random() % 3);
  return queries;
}

// The answers to some queries, by binary search.
struct Expected {
  template <typename Key>
  Expected(const OracleData<Key>& data, const std::vector<Key>& queries) {
    for (const Key query : queries) {
      const auto [lower, upper] = std::equal_range(data.keys.begin(), data.keys.end(), query);
      begin.push_back(static_cast<Position>(lower - data.keys.begin()));
      end.push_back(static_cast<Position>(upper - data.keys.begin()));
      first_row.push_back(lower == upper ? kNoRow : data.row_ids[begin.back()]);
    }
  }

  std::vector<Position> begin, end;
  std::vector<RowId> first_row;
};

template <typename Key>
void CheckAnswers(const DeviceIndex& index, const std::vector<Key>& queries,
                  const Expected& expected) {
  const DeviceArray<Key> batch(queries);
  const DeviceKeys keys(batch.data(), batch.size());
  const DeviceArray<Position> begin(keys.size()), end(keys.size());
  const DeviceArray<RowId> rows(keys.size());
  const DeviceArray<bool> found(keys.size());
  RequireOk(index.Execute(DeviceBatch::EqualRange(keys, begin.data(), end.data()), nullptr));
  BOOST_TEST((begin.ToHost() == expected.begin));
  BOOST_TEST((end.ToHost() == expected.end));
  RequireOk(index.Execute(DeviceBatch::UpperBound(keys, end.data()), nullptr));
  BOOST_TEST((end.ToHost() == expected.end));
  RequireOk(index.Execute(DeviceBatch::LowerBound(keys, begin.data()), nullptr));
  BOOST_TEST((begin.ToHost() == expected.begin));
  RequireOk(index.Execute(DeviceBatch::FindFirst(keys, rows.data()), nullptr));
  BOOST_TEST((rows.ToHost() == expected.first_row));
  RequireOk(index.Execute(DeviceBatch::Contains(keys, found.data()), nullptr));
  const std::vector<bool> contains = found.ToHost();
  size_t wrong = 0;
  for (size_t i = 0; i < contains.size(); ++i) {
    wrong += contains[i] != (expected.begin[i] != expected.end[i]);
  }
  BOOST_TEST(wrong == 0u);
}

// Returns whether the keys suit a bitmap.
template <typename Key>
bool CheckSet(const OracleData<Key>& data) {
  const auto tree = RequireOk(MakeDeviceIndex("gpu:packed,directory=tree", OracleRun(data)));
  const auto bitmap = MakeDeviceIndex("gpu:packed,directory=bitmap", OracleRun(data));
  if (!bitmap.ok()) BOOST_TEST(absl::IsFailedPrecondition(bitmap.status()));
  std::vector<Key> queries = Queries(data.keys);
  for (const bool in_order : {false, true}) {
    if (in_order) std::sort(queries.begin(), queries.end());
    const Expected expected(data, queries);
    BOOST_TEST_CONTEXT(data.name << ", in order: " << in_order) {
      BOOST_TEST_CONTEXT("under a tree") {
        CheckAnswers(*tree, queries, expected);
      }
      if (!bitmap.ok()) continue;
      BOOST_TEST_CONTEXT("under a bitmap") {
        CheckAnswers(**bitmap, queries, expected);
      }
    }
  }
  return bitmap.ok();
}

// Executes a batch as on a device whose blocks may take `shared` bytes of shared memory. Returns
// whether that allocated memory, for the counter of persistent blocks.
template <typename Key>
bool SearchTakesACounter(const DeviceIndex& index, const std::vector<Key>& keys, size_t shared) {
  const std::vector<Key> queries = Queries(keys);
  const DeviceArray<Key> batch(queries);
  const DeviceArray<Position> found(queries.size());
  const DeviceBatch lower_bounds =
      DeviceBatch::LowerBound(DeviceKeys(batch.data(), batch.size()), found.data());
  LimitSharedBytes(shared);
  FailDeviceAllocationsAfter(0);
  absl::Status status = index.Execute(lower_bounds, nullptr);
  const bool takes = absl::IsResourceExhausted(status);
  FailDeviceAllocationsAfter(-1);
  if (takes) status = index.Execute(lower_bounds, nullptr);
  LimitSharedBytes(0);
  RequireOk(status);
  const std::vector<Position> positions = found.ToHost();
  size_t wrong = 0;
  for (size_t i = 0; i < queries.size(); ++i) {
    const auto lower = std::lower_bound(keys.begin(), keys.end(), queries[i]);
    wrong += positions[i] != static_cast<Position>(lower - keys.begin());
  }
  BOOST_TEST(wrong == 0u);
  return takes;
}

template <typename Key>
void CheckSmallSharedMemory() {
  auto random = TestRandom(15);
  const auto data = Distinct<Key>("even", 1 << 20, [&] { return random(); });
  constexpr size_t kLittle = 9000, kNone = 100;
  const auto make = [&](const char* factory) {
    return RequireOk(MakeDeviceIndex(factory, OracleRun(data)));
  };
  // The region table does not get smaller.
  const auto bitmap = make("gpu:packed,directory=bitmap");
  BOOST_TEST(SearchTakesACounter(*bitmap, data.keys, 0));
  BOOST_TEST(!SearchTakesACounter(*bitmap, data.keys, kLittle));
  const auto tree = make("gpu:packed,directory=tree");
  BOOST_TEST(SearchTakesACounter(*tree, data.keys, 0));
  BOOST_TEST(!SearchTakesACounter(*tree, data.keys, kNone));
  // The top of a tree does.
  LimitSharedBytes(kLittle);
  const auto low = make("gpu:packed,directory=tree");
  LimitSharedBytes(0);
  BOOST_TEST(SearchTakesACounter(*low, data.keys, kLittle));
  BOOST_TEST(!SearchTakesACounter(*low, data.keys, kNone));
  BOOST_TEST(SearchTakesACounter(*low, data.keys, 0));
}

BOOST_AUTO_TEST_CASE(uneven_keys) {
  int under_bitmaps = 0;
  for (const auto& data : UnevenSets<uint32_t>(60000)) under_bitmaps += CheckSet(data) ? 1 : 0;
  for (const auto& data : UnevenSets<uint64_t>(60000)) under_bitmaps += CheckSet(data) ? 1 : 0;
  BOOST_TEST(under_bitmaps > 0);
}

BOOST_AUTO_TEST_CASE(few_keys_repeat) {
  int under_bitmaps = 0;
  for (const auto& data : NearUniqueSets<uint32_t>(40000)) under_bitmaps += CheckSet(data) ? 1 : 0;
  BOOST_TEST(under_bitmaps > 0);
  CheckSet(NearUniqueSets<uint64_t>(40000)[2]);
}

BOOST_AUTO_TEST_CASE(blocks_get_little_shared_memory) {
  CheckSmallSharedMemory<uint32_t>();
  CheckSmallSharedMemory<uint64_t>();
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn::gpu
