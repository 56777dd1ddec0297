// Batches in device memory by the C API, against the same index on the host.
#include <boost/test/unit_test.hpp>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "cairn/c/device.h"
#include "cairn/types.h"
#include "engine/c/device_tensor.h"
#include "test/engine/c/c_handles.h"
#include "test/gpu/device_array.h"
#include "test/gpu/needs_device.h"
#include "test/test_random.h"

namespace cairn::gpu {
BOOST_FIXTURE_TEST_SUITE(c_device_test, NeedsDevice)
namespace {

struct CloseDeviceIndex {
  void operator()(cairn_device_index* index) const { cairn_device_close(index); }
};
using DeviceIndexHandle = std::unique_ptr<cairn_device_index, CloseDeviceIndex>;

// A DLManagedTensor over an array in device memory.
template <typename T>
class TensorOf {
 public:
  explicit TensorOf(const DeviceArray<T>& array)
      : shape_{static_cast<int64_t>(array.size())},
        tensor_{array.data(), kDlCuda, 0, 1, Code(), 8 * sizeof(T), 1, shape_, nullptr, 0} {}
  TensorOf(const TensorOf&) = delete;
  TensorOf& operator=(const TensorOf&) = delete;

  const DLManagedTensor* managed() const {
    return reinterpret_cast<const DLManagedTensor*>(&tensor_);
  }

 private:
  static constexpr uint8_t Code() { return std::is_same_v<T, bool> ? kDlBool : kDlUInt; }

  int64_t shape_[1];
  DlTensor tensor_;
  void* manager_context_ = nullptr;
  void (*deleter_)(DLManagedTensor*) = nullptr;
};

DeviceIndexHandle OpenOnDevice(const IndexHandle& index) {
  cairn_device_index* opened = nullptr;
  RequireNone(cairn_device_open(index.get(), nullptr, 0, &opened));
  BOOST_TEST(cairn_device_kind(opened) == cairn_kind(index.get()));
  BOOST_TEST(cairn_device_memory_bytes(opened) > 0u);
  return DeviceIndexHandle(opened);
}

// All answers about the keys, which are on the host and on the device, are the same.
void CheckSame(const IndexHandle& host, const TestArrow& keys, const cairn_device_keys& on_device) {
  const size_t size = static_cast<size_t>(keys.array.length);
  const DeviceIndexHandle device = OpenOnDevice(host);
  std::vector<uint32_t> first(size);
  RequireNone(cairn_find_first(host.get(), &keys.schema, &keys.array, nullptr, first.data(), size));
  const DeviceArray<uint32_t> device_first(size);
  RequireNone(
      cairn_device_find_first(device.get(), &on_device, TensorOf(device_first).managed(), nullptr));
  BOOST_TEST(device_first.ToHost() == first, boost::test_tools::per_element());

  const DeviceArray<uint8_t> found(size);
  RequireNone(cairn_device_contains(device.get(), &on_device, TensorOf(found).managed(), nullptr));
  const std::vector<uint8_t> found_on_host = found.ToHost();
  for (size_t i = 0; i < size; ++i) {
    BOOST_TEST((found_on_host[i] != 0) == (first[i] != CAIRN_NO_ROW));
  }

  // The rows of each key, in two steps.
  cairn_device_ranges equal = cairn_device_ranges_init();
  equal.kind = CAIRN_EQUAL;
  equal.lower = &on_device;
  const MatchesHandle matches = NewMatches();
  RequireNone(cairn_find(host.get(), &keys.schema, &keys.array, nullptr, matches.get()));
  const uint64_t* const offsets = cairn_matches_offsets(matches.get());
  const uint32_t* const rows = cairn_matches_row_ids(matches.get());
  const DeviceArray<uint32_t> begin(size);
  const DeviceArray<uint64_t> device_offsets(size + 1), counts(size);
  RequireNone(cairn_device_count(device.get(), &equal, TensorOf(counts).managed(), nullptr));
  RequireNone(cairn_device_plan(device.get(), &equal, 0, CAIRN_ASCENDING, TensorOf(begin).managed(),
                                TensorOf(device_offsets).managed(), nullptr));
  BOOST_TEST(device_offsets.ToHost() == std::vector<uint64_t>(offsets, offsets + size + 1),
             boost::test_tools::per_element());
  const std::vector<uint64_t> counted = counts.ToHost();
  for (size_t i = 0; i < size; ++i) BOOST_TEST(counted[i] == offsets[i + 1] - offsets[i]);
  const DeviceArray<uint32_t> device_rows(offsets[size]);
  RequireNone(cairn_device_copy_rows(device.get(), TensorOf(begin).managed(),
                                     TensorOf(device_offsets).managed(), CAIRN_ASCENDING,
                                     TensorOf(device_rows).managed(), nullptr));
  BOOST_TEST(device_rows.ToHost() == std::vector<uint32_t>(rows, rows + offsets[size]),
             boost::test_tools::per_element());

  const DeviceArray<uint64_t> scan_offsets(size + 1);
  const DeviceArray<uint32_t> scan_rows(offsets[size] / 2);
  RequireNone(cairn_device_scan(device.get(), &equal, 0, CAIRN_ASCENDING,
                                TensorOf(scan_offsets).managed(), TensorOf(scan_rows).managed(),
                                nullptr));
  BOOST_TEST(scan_offsets.ToHost() == std::vector<uint64_t>(offsets, offsets + size + 1),
             boost::test_tools::per_element());
  BOOST_TEST(scan_rows.ToHost() == std::vector<uint32_t>(rows, rows + offsets[size] / 2),
             boost::test_tools::per_element());
}

}  // namespace

BOOST_AUTO_TEST_CASE(numbers_are_found_as_on_the_host) {
  std::mt19937_64 random = TestRandom();
  std::vector<DataValue> entries, asked;
  std::vector<uint64_t> asked_numbers;
  for (int i = 0; i < 20000; ++i) entries.emplace_back(uint64_t{random() % 9000});
  for (int i = 0; i < 3000; ++i) {
    asked_numbers.push_back(random() % 9100);
    asked.emplace_back(asked_numbers.back());
  }
  const DeviceArray<uint64_t> on_device(asked_numbers);
  const TensorOf tensor(on_device);
  cairn_device_keys keys = cairn_device_keys_init();
  keys.keys = tensor.managed();
  CheckSame(IndexOver(TestArrow("L", entries)), TestArrow("L", asked), keys);
}

BOOST_AUTO_TEST_CASE(text_is_found_as_on_the_host) {
  std::mt19937_64 random = TestRandom();
  std::vector<std::string> texts;
  for (int i = 0; i < 5000; ++i) texts.push_back("key " + std::to_string(random() % 4000));
  std::vector<DataValue> entries, asked;
  std::vector<char> bytes;
  std::vector<uint32_t> offsets = {0};
  for (size_t i = 0; i < texts.size(); ++i) {
    if (i < 4000) entries.emplace_back(std::string_view(texts[i]));
    if (i < 3500) continue;
    asked.emplace_back(std::string_view(texts[i]));
    bytes.insert(bytes.end(), texts[i].begin(), texts[i].end());
    offsets.push_back(static_cast<uint32_t>(bytes.size()));
  }
  bytes.resize((bytes.size() + 3) / 4 * 4);  // whole words
  const DeviceArray<uint8_t> bytes_on_device(std::vector<uint8_t>(bytes.begin(), bytes.end()));
  const DeviceArray<uint32_t> offsets_on_device(offsets);
  const TensorOf bytes_tensor(bytes_on_device);
  const TensorOf offsets_tensor(offsets_on_device);
  cairn_device_keys keys = cairn_device_keys_init();
  keys.keys = bytes_tensor.managed();
  keys.offsets = offsets_tensor.managed();
  CheckSame(IndexOver(TestArrow("u", entries)), TestArrow("u", asked), keys);
}

BOOST_AUTO_TEST_CASE(batches_that_do_not_fit_are_refused) {
  const DeviceIndexHandle index =
      OpenOnDevice(IndexOver(TestArrow("I", {uint64_t{3}, uint64_t{1}})));
  BOOST_TEST(cairn_device_entries(index.get()) == 2u);
  const DeviceArray<uint32_t> numbers(std::vector<uint32_t>{1, 2, 3});
  const DeviceArray<uint64_t> wide(std::vector<uint64_t>{1, 2, 3});
  const DeviceArray<uint32_t> rows(3), too_few(2);
  const TensorOf numbers_tensor(numbers), rows_tensor(rows), too_few_tensor(too_few);
  const TensorOf wide_tensor(wide);
  cairn_device_keys keys = cairn_device_keys_init();
  keys.keys = wide_tensor.managed();
  CheckError(cairn_device_find_first(index.get(), &keys, rows_tensor.managed(), nullptr),
             CAIRN_INVALID_ARGUMENT, {"keys: ", "uint32", "64 bits"});
  keys.keys = numbers_tensor.managed();
  CheckError(cairn_device_find_first(index.get(), &keys, too_few_tensor.managed(), nullptr),
             CAIRN_INVALID_ARGUMENT, {"row_ids: ", "3 elements, found 2"});
  keys.offsets = numbers_tensor.managed();
  CheckError(cairn_device_find_first(index.get(), &keys, rows_tensor.managed(), nullptr),
             CAIRN_INVALID_ARGUMENT, {"offsets: expected none", "u32"});
  keys.offsets = nullptr;
  cairn_device_ranges ranges = cairn_device_ranges_init();
  const DeviceArray<uint64_t> counts(3);
  const TensorOf counts_tensor(counts);
  CheckError(cairn_device_count(index.get(), &ranges, counts_tensor.managed(), nullptr),
             CAIRN_INVALID_ARGUMENT, {"lower"});
  ranges.lower = &keys;
  ranges.kind = CAIRN_PREFIX;
  CheckError(cairn_device_count(index.get(), &ranges, counts_tensor.managed(), nullptr),
             CAIRN_INVALID_ARGUMENT);
  ranges.upper = &keys;
  CheckError(cairn_device_count(index.get(), &ranges, counts_tensor.managed(), nullptr),
             CAIRN_INVALID_ARGUMENT, {"no upper keys and no bounds"});
}

BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn::gpu
