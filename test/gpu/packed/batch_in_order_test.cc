// Batches in ascending order, which have a search of their own.
#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cstddef>
#include <limits>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "cairn/device.h"
#include "test/gpu/device_array.h"
#include "test/gpu/needs_device.h"
#include "test/ordered_index_oracle.h"
#include "test/require_ok.h"
#include "test/test_random.h"

namespace cairn::gpu {
BOOST_FIXTURE_TEST_SUITE(batch_in_order_test, NeedsDevice)
namespace {

template <typename Key>
std::vector<Key> SomeKeys(int set, size_t size) {
  auto random = TestRandom(static_cast<uint64_t>(set));
  std::vector<Key> keys(size);
  Key next = 0;
  for (size_t i = 0; i < size; ++i) {
    switch (set) {
      case 0:  // dense, and the max key
        keys[i] = i == 0 ? std::numeric_limits<Key>::max() : static_cast<Key>(i);
        break;
      case 1:
        keys[i] = static_cast<Key>(random());
        break;
      case 2:  // eight rows per key
        keys[i] = static_cast<Key>(i / 8 * 1000);
        break;
      case 3:  // cells with enough keys to be linked to leaves
        if (i % 50 == 0) next = static_cast<Key>(random());
        keys[i] = next++;
        break;
      default:  // blocks of keys with gaps between them
        keys[i] = static_cast<Key>((i / 100 << 20) + random() % 200);
    }
  }
  return keys;
}

// Present keys, their predecessors and successors, the min and the max, in order except `swapped`
// adjacent pairs.
template <typename Key>
std::vector<Key> InOrder(const std::vector<Key>& keys, size_t size, size_t swapped) {
  auto random = TestRandom(7);
  std::vector<Key> queries = {0, std::numeric_limits<Key>::max()};
  while (queries.size() < size) {
    queries.push_back(static_cast<Key>(keys[random() % keys.size()] + random() % 3 - 1));
  }
  std::sort(queries.begin(), queries.end());
  for (size_t i = 0; i < swapped; ++i) {
    const size_t at = random() % (size - 1);
    std::swap(queries[at], queries[at + 1]);
  }
  return queries;
}

template <typename Key>
void Check(const std::string& factory, const OracleData<Key>& data,
           const std::vector<Key>& queries) {
  const auto index = RequireOk(MakeDeviceIndex(factory, OracleRun(data)));
  const size_t size = queries.size();
  std::vector<Position> lower(size), upper(size);
  std::vector<RowId> rows(size);
  std::vector<uint8_t> there(size);
  for (size_t i = 0; i < size; ++i) {
    const auto [first, last] = std::equal_range(data.keys.begin(), data.keys.end(), queries[i]);
    lower[i] = static_cast<Position>(first - data.keys.begin());
    upper[i] = static_cast<Position>(last - data.keys.begin());
    there[i] = first != last ? 1 : 0;
    rows[i] = first != last ? data.row_ids[lower[i]] : kNoRow;
  }
  const DeviceArray<Key> batch(queries);
  const DeviceKeys keys(batch.data(), size);
  const DeviceArray<uint32_t> values(size);
  const DeviceArray<uint8_t> found(size);
  BOOST_TEST_CONTEXT(factory << ", " << data.name << ", " << size << " queries") {
    RequireOk(index->Execute(DeviceBatch::FindFirst(keys, values.data()), nullptr));
    BOOST_TEST((values.ToHost() == rows));
    RequireOk(index->Execute(DeviceBatch::LowerBound(keys, values.data()), nullptr));
    BOOST_TEST((values.ToHost() == lower));
    RequireOk(index->Execute(DeviceBatch::UpperBound(keys, values.data()), nullptr));
    BOOST_TEST((values.ToHost() == upper));
    RequireOk(index->Execute(DeviceBatch::Contains(keys, reinterpret_cast<bool*>(found.data())),
                             nullptr));
    BOOST_TEST((found.ToHost() == there));
  }
}

template <typename Key>
void CheckAll(std::initializer_list<int> bits) {
  const char* const sets[] = {"dense", "even", "rows", "linked", "blocks"};
  for (int set = 0; set < 5; ++set) {
    const auto data = oracle::FinishIntegers<Key>(sets[set], SomeKeys<Key>(set, 40000));
    for (const int leaf_bits : bits) {
      const std::string factory = "gpu:packed,directory=tree,bits=" + std::to_string(leaf_bits);
      // A batch that is sampled (kSampledBatch), and one that is too small for that.
      Check(factory, data, InOrder(data.keys, (size_t{1} << 22) + 77, set * 5));
      Check(factory, data, InOrder(data.keys, 5001, 0));
    }
    Check("gpu:auto", data, InOrder(data.keys, (size_t{1} << 22) + 77, 3));
    // In order except the last eighth, which the samples may not detect.
    std::vector<Key> queries = InOrder(data.keys, (size_t{1} << 22) + 77, 0);
    std::shuffle(queries.end() - static_cast<ptrdiff_t>(queries.size() / 8), queries.end(),
                 TestRandom(8));
    Check("gpu:auto", data, queries);
    Check("gpu:auto", data, InOrder(data.keys, 31, 0));
  }
}

BOOST_AUTO_TEST_CASE(answers_keys_of_32_bits) {
  CheckAll<uint32_t>({16, 32});
}

BOOST_AUTO_TEST_CASE(answers_keys_of_64_bits) {
  CheckAll<uint64_t>({16, 32, 48, 64});
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn::gpu
