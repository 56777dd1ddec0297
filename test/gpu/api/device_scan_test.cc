// DeviceIndex::Scan: has the results of PlanScan and CopyRows, without a wait between them, within
// the given capacity; also in a graph.
#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <memory>
#include <string>
#include <vector>

#include "cairn/device.h"
#include "gpu/runtime/stream.h"
#include "test/gpu/device_array.h"
#include "test/gpu/needs_device.h"
#include "test/require_ok.h"
#include "test/test_random.h"

namespace cairn::gpu {
BOOST_FIXTURE_TEST_SUITE(device_scan_test, NeedsDevice)
namespace {

constexpr RowId kUntouched = 0xABABABAB;

constexpr const char* kFactories[] = {"gpu:packed,directory=bitmap",
                                      "gpu:packed,directory=tree",
                                      "gpu:packed,directory=tree,rows",
                                      "gpu:btree",
                                      "gpu:fast",
                                      "gpu:eytzinger",
                                      "gpu:sorted_array,aos"};

// Entries, and the positions of ranges.
template <typename Key>
struct Entries {
  std::vector<Key> keys;
  std::vector<RowId> rows;

  // `most` entries of one key, at the most.
  Entries(size_t size, size_t most) {
    auto random = TestRandom(size + most);
    while (keys.size() < size) {
      const Key key = static_cast<Key>(random() % (8 * size));
      keys.insert(keys.end(), most == 1 ? 1 : random() % most + 1, key);
    }
    std::sort(keys.begin(), keys.end());
    if (most == 1) keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
    for (size_t i = 0; i < keys.size(); ++i) rows.push_back(static_cast<RowId>(3 * i + 1));
  }
  size_t Lower(Key key) const {
    return static_cast<size_t>(std::lower_bound(keys.begin(), keys.end(), key) - keys.begin());
  }
  size_t Upper(Key key) const {
    return static_cast<size_t>(std::upper_bound(keys.begin(), keys.end(), key) - keys.begin());
  }
};

struct Answers {
  std::vector<uint64_t> offsets;
  std::vector<RowId> rows;  // all that there are
};

template <typename Key>
Answers Expect(const Entries<Key>& entries, const std::vector<Key>& lower,
               const std::vector<Key>& upper, uint64_t limit, Order order) {
  Answers answers{{0}, {}};
  for (size_t i = 0; i < lower.size(); ++i) {
    const size_t begin = entries.Lower(lower[i]);
    const size_t end = std::max(begin, entries.Upper(upper[i]));
    const size_t count = std::min<size_t>(limit, end - begin);
    for (size_t k = 0; k < count; ++k) {
      answers.rows.push_back(entries.rows[order == Order::kAscending ? begin + k : end - 1 - k]);
    }
    answers.offsets.push_back(answers.rows.size());
  }
  return answers;
}

// Keys on the device; ranges of single keys share theirs.
template <typename Key>
class Ranges {
 public:
  Ranges(const std::vector<Key>& lower, const std::vector<Key>& upper)
      : lower_(lower), upper_(upper), single_(lower == upper) {}
  DeviceRanges view() const {
    const DeviceKeys lower(lower_.data(), lower_.size());
    return {lower, single_ ? lower : DeviceKeys(upper_.data(), upper_.size()), Bound::kInclusive,
            Bound::kInclusive};
  }

 private:
  DeviceArray<Key> lower_, upper_;
  bool single_;
};

void CheckRows(const Answers& expected, const std::vector<uint64_t>& offsets,
               const std::vector<RowId>& rows, uint64_t capacity) {
  BOOST_TEST_REQUIRE(offsets == expected.offsets, boost::test_tools::per_element());
  for (size_t i = 0; i < rows.size(); ++i) {
    const bool is_row = i < capacity && i < expected.rows.size();
    BOOST_TEST_REQUIRE(rows[i] == (is_row ? expected.rows[i] : kUntouched), "row " << i);
  }
}

template <typename Key>
void CheckScan(const DeviceIndex& index, const Entries<Key>& entries, const std::vector<Key>& lower,
               const std::vector<Key>& upper, uint64_t limit, Order order) {
  const Stream stream = RequireOk(Stream::Create());
  const Answers expected = Expect(entries, lower, upper, limit, order);
  const Ranges<Key> ranges(lower, upper);
  const uint64_t all = expected.rows.size();
  for (const uint64_t capacity : {all, all + 1000, all / 2, uint64_t{1}, uint64_t{0}}) {
    BOOST_TEST_CONTEXT("room for " << capacity << " of " << all << " rows, limit " << limit) {
      const DeviceArray<uint64_t> offsets(std::vector<uint64_t>(lower.size() + 1, 77));
      // Nothing may be written past the capacity.
      const DeviceArray<RowId> rows(std::vector<RowId>(all + 1000, kUntouched));
      RequireOk(index.Scan(ranges.view(), limit, order, offsets.data(), rows.data(), capacity,
                           stream.get()));
      CheckRows(expected, offsets.ToHost(), rows.ToHost(), capacity);
    }
  }
}

template <typename Key>
std::vector<Key> Queries(const Entries<Key>& entries, size_t size, uint64_t seed) {
  auto random = TestRandom(seed);
  std::vector<Key> keys;
  for (size_t i = 0; i < size; ++i) {
    keys.push_back(i % 3 == 0 || entries.keys.empty()
                       ? static_cast<Key>(random())
                       : entries.keys[random() % entries.keys.size()]);
  }
  return keys;
}

template <typename Key>
void CheckFactories(size_t size, size_t max_of_a_key) {
  const Entries<Key> entries(size, max_of_a_key);
  const auto run = RequireOk(SortedRun::FromSorted(entries.keys, entries.rows));
  for (const std::string factory : kFactories) {
    BOOST_TEST_CONTEXT(factory << ", " << size << " entries, u" << 8 * sizeof(Key)) {
      auto made = MakeDeviceIndex(factory, run);
      // A bitmap is not for every set of keys.
      if (!made.ok() && factory == kFactories[0]) continue;
      const auto index = RequireOk(std::move(made));
      for (const size_t batch : {size_t{0}, size_t{1}, size_t{5000}}) {
        const auto lower = Queries(entries, batch, 1);
        auto upper = lower;
        for (Key& key : upper) key += static_cast<Key>(key % 50);
        CheckScan(*index, entries, lower, lower, UINT64_MAX, Order::kAscending);
        for (const Order order : {Order::kAscending, Order::kDescending}) {
          for (const uint64_t limit : {uint64_t{0}, uint64_t{3}, UINT64_MAX}) {
            CheckScan(*index, entries, lower, upper, limit, order);
          }
        }
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(keys_that_are_distinct) {
  CheckFactories<uint32_t>(20000, 1);
  CheckFactories<uint64_t>(20000, 1);
}

BOOST_AUTO_TEST_CASE(keys_with_several_rows) {
  CheckFactories<uint32_t>(20000, 40);
  CheckFactories<uint64_t>(700, 300);
}

BOOST_AUTO_TEST_CASE(indexes_of_nothing_and_of_one_entry) {
  CheckFactories<uint32_t>(0, 1);
  CheckFactories<uint64_t>(1, 1);
}

BOOST_AUTO_TEST_CASE(a_structure_says_whether_keys_are_distinct) {
  for (const size_t most : {size_t{1}, size_t{2}}) {
    const Entries<uint32_t> entries(1000, most);
    const auto run = RequireOk(SortedRun::FromSorted(entries.keys, entries.rows));
    BOOST_TEST(RequireOk(MakeDeviceIndex("gpu:packed", run))->has_distinct_keys() == (most == 1));
  }
}

// Few keys repeat, so that leaves hold them as they are.
BOOST_AUTO_TEST_CASE(keys_of_which_few_have_several_rows) {
  Entries<uint32_t> entries(100000, 1);
  BOOST_REQUIRE(entries.keys.size() > 80000);
  for (size_t i = 0; i < 20; ++i) entries.keys[4000 * i + 1] = entries.keys[4000 * i];
  const auto run = RequireOk(SortedRun::FromSorted(entries.keys, entries.rows));
  for (const std::string factory : {"gpu:auto", "gpu:packed,directory=tree"}) {
    BOOST_TEST_CONTEXT(factory) {
      const auto index = RequireOk(MakeDeviceIndex(factory, run));
      BOOST_TEST(!index->has_distinct_keys());
      std::vector<uint32_t> keys = Queries(entries, 1000, 9);
      for (size_t i = 0; i < 20; ++i) keys.push_back(entries.keys[4000 * i]);
      CheckScan(*index, entries, keys, keys, UINT64_MAX, Order::kAscending);
    }
  }
}

// A batch that fills the device.
BOOST_AUTO_TEST_CASE(a_large_batch) {
  const Entries<uint32_t> entries(300000, 1);
  const auto run = RequireOk(SortedRun::FromSorted(entries.keys, entries.rows));
  const auto index = RequireOk(MakeDeviceIndex("gpu:auto", run));
  const auto keys = Queries(entries, (size_t{1} << 20) + 77, 5);
  CheckScan(*index, entries, keys, keys, UINT64_MAX, Order::kAscending);
}

BOOST_AUTO_TEST_CASE(text) {
  std::vector<std::string> texts;
  for (int i = 0; i < 3000; ++i) texts.push_back("key " + std::to_string(100000 + 7 * i));
  for (const bool twice : {false, true}) {
    std::vector<std::string_view> keys;
    std::vector<RowId> rows;
    for (const std::string& text : texts) {
      for (int k = 0; k < (twice ? 2 : 1); ++k) {
        keys.push_back(text);
        rows.push_back(static_cast<RowId>(rows.size()));
      }
    }
    const auto run = RequireOk(SortedRun::FromSorted(keys, rows));
    const auto index = RequireOk(MakeDeviceIndex("gpu:partial_key", run));
    BOOST_TEST(index->has_distinct_keys() == !twice);
    // Every fifth key, and the same number of absent keys.
    std::string bytes;
    std::vector<uint32_t> offsets = {0};
    Answers expected{{0}, {}};
    for (size_t i = 0; i < texts.size(); i += 5) {
      for (const std::string& key : {texts[i], texts[i] + "x"}) {
        bytes += key;
        offsets.push_back(static_cast<uint32_t>(bytes.size()));
        for (size_t row = 0; row < rows.size() && key.back() != 'x'; ++row) {
          if (keys[row] == key) expected.rows.push_back(rows[row]);
        }
        expected.offsets.push_back(expected.rows.size());
      }
    }
    bytes.resize((bytes.size() + 3) / 4 * 4);
    const DeviceArray<char> device_bytes(std::vector<char>(bytes.begin(), bytes.end()));
    const DeviceArray<uint32_t> device_offsets(offsets);
    const DeviceKeys queries(device_bytes.data(), device_offsets.data(), offsets.size() - 1);
    const uint64_t capacity = expected.rows.size() - 1;
    const DeviceArray<uint64_t> found_offsets(offsets.size());
    const DeviceArray<RowId> found(std::vector<RowId>(capacity + 10, kUntouched));
    RequireOk(index->Scan({queries, queries, Bound::kInclusive, Bound::kInclusive}, UINT64_MAX,
                          Order::kAscending, found_offsets.data(), found.data(), capacity,
                          nullptr));
    CheckRows(expected, found_offsets.ToHost(), found.ToHost(), capacity);
  }
}

BOOST_AUTO_TEST_CASE(ranges_of_another_kind) {
  const Entries<uint32_t> entries(100, 1);
  const auto run = RequireOk(SortedRun::FromSorted(entries.keys, entries.rows));
  const auto index = RequireOk(MakeDeviceIndex("gpu:auto", run));
  const Ranges<uint64_t> ranges({1, 2}, {3, 4});
  const DeviceArray<uint64_t> offsets(3);
  BOOST_TEST((index->Scan(ranges.view(), 1, Order::kAscending, offsets.data(), nullptr, 0, nullptr)
                  .code() == absl::StatusCode::kInvalidArgument));
}

// A scan can be captured, and launched again with other keys.
BOOST_AUTO_TEST_CASE(in_a_graph) {
  for (const size_t most : {size_t{1}, size_t{5}}) {
    const Entries<uint32_t> entries(50000, most);
    const auto run = RequireOk(SortedRun::FromSorted(entries.keys, entries.rows));
    for (const char* factory : kFactories) {
      BOOST_TEST_CONTEXT(factory) {
        auto made = MakeDeviceIndex(factory, run);
        if (!made.ok() && factory == kFactories[0]) continue;
        const auto index = RequireOk(std::move(made));
        constexpr size_t kBatch = 3000;
        const DeviceArray<uint32_t> keys(kBatch);
        const DeviceArray<uint64_t> offsets(kBatch + 1);
        const DeviceArray<RowId> rows(kBatch * most);
        const DeviceKeys batch(keys.data(), kBatch);
        const DeviceRanges ranges{batch, batch, Bound::kInclusive, Bound::kInclusive};
        const Stream stream = RequireOk(Stream::Create());
        BOOST_REQUIRE(cudaStreamBeginCapture(stream.get(), cudaStreamCaptureModeThreadLocal) ==
                      cudaSuccess);
        RequireOk(index->Scan(ranges, UINT64_MAX, Order::kAscending, offsets.data(), rows.data(),
                              rows.size(), stream.get()));
        cudaGraph_t graph = nullptr;
        BOOST_REQUIRE(cudaStreamEndCapture(stream.get(), &graph) == cudaSuccess);
        cudaGraphExec_t executable = nullptr;
        BOOST_REQUIRE(cudaGraphInstantiate(&executable, graph, 0) == cudaSuccess);
        for (const uint64_t round : {1, 2, 3}) {
          const auto asked = Queries(entries, kBatch, round);
          BOOST_REQUIRE(cudaMemcpy(keys.data(), asked.data(), kBatch * sizeof(uint32_t),
                                   cudaMemcpyHostToDevice) == cudaSuccess);
          BOOST_REQUIRE(cudaGraphLaunch(executable, stream.get()) == cudaSuccess);
          const auto found_offsets = offsets.ToHost();
          const auto found_rows = rows.ToHost();
          const Answers expected = Expect(entries, asked, asked, UINT64_MAX, Order::kAscending);
          BOOST_TEST_REQUIRE(found_offsets == expected.offsets, boost::test_tools::per_element());
          for (size_t i = 0; i < expected.rows.size(); ++i) {
            BOOST_TEST_REQUIRE(found_rows[i] == expected.rows[i]);
          }
        }
        BOOST_TEST(cudaGraphExecDestroy(executable) == cudaSuccess);
        BOOST_TEST(cudaGraphDestroy(graph) == cudaSuccess);
      }
    }
  }
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn::gpu
