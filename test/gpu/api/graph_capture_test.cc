#include <cuda_runtime.h>

#include <boost/test/unit_test.hpp>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "cairn/device.h"
#include "gpu/runtime/device_memory.h"
#include "gpu/runtime/stream.h"
#include "test/gpu/device_array.h"
#include "test/gpu/needs_device.h"
#include "test/require_ok.h"
#include "test/test_random.h"

// Every call that enqueues work may be captured: each launch of the graph repeats the work with the
// current contents of the caller's memory.
namespace cairn::gpu {
BOOST_FIXTURE_TEST_SUITE(graph_capture_test, NeedsDevice)
namespace {

// The work that calls enqueue on a stream, as a graph.
class Graph {
 public:
  explicit Graph(const std::function<void(cudaStream_t)>& calls) {
    BOOST_REQUIRE(cudaStreamBeginCapture(stream_.get(), cudaStreamCaptureModeGlobal) ==
                  cudaSuccess);
    calls(stream_.get());
    BOOST_REQUIRE(cudaStreamEndCapture(stream_.get(), &graph_) == cudaSuccess);
    BOOST_REQUIRE(cudaGraphInstantiate(&launchable_, graph_, 0) == cudaSuccess);
  }
  ~Graph() {
    BOOST_TEST(cudaGraphExecDestroy(launchable_) == cudaSuccess);
    BOOST_TEST(cudaGraphDestroy(graph_) == cudaSuccess);
  }
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  void Launch() const {
    BOOST_REQUIRE(cudaGraphLaunch(launchable_, stream_.get()) == cudaSuccess);
    RequireOk(stream_.Wait());
  }

 private:
  Stream stream_ = RequireOk(Stream::Create());
  cudaGraph_t graph_ = nullptr;
  cudaGraphExec_t launchable_ = nullptr;
};

// The answers of all operations, in device memory.
class Answers {
 public:
  explicit Answers(size_t queries)
      : queries_(queries),
        words_(std::vector<uint32_t>(kColumns * queries)),
        longs_(std::vector<uint64_t>(2 * queries + 1)) {}

  // Executes every operation for keys that have one row each.
  void Ask(const DeviceIndex& index, DeviceKeys keys, cudaStream_t stream) const {
    const bool bytes = keys.kind() == PhysicalType::kBytes;
    DeviceRanges ranges;
    ranges.lower = ranges.upper = keys;
    ranges.upper_bound = bytes ? Bound::kPrefix : Bound::kInclusive;
    RequireOk(index.Execute(DeviceBatch::FindFirst(keys, Column(0)), stream));
    RequireOk(
        index.Execute(DeviceBatch::Contains(keys, reinterpret_cast<bool*>(Column(1))), stream));
    RequireOk(index.Execute(DeviceBatch::LowerBound(keys, Column(2)), stream));
    RequireOk(index.Execute(DeviceBatch::UpperBound(keys, Column(3)), stream));
    RequireOk(index.Execute(DeviceBatch::EqualRange(keys, Column(4), Column(5)), stream));
    RequireOk(index.Execute(DeviceBatch::Positions(ranges, Column(6), Column(7)), stream));
    RequireOk(index.Execute(DeviceBatch::Count(ranges, longs_.data()), stream));
    uint64_t* const offsets = longs_.data() + queries_;
    RequireOk(index.PlanScan(ranges, 4, Order::kDescending, Column(8), offsets, stream));
    RequireOk(index.CopyRows(Column(8), offsets, queries_, queries_, Order::kDescending, Column(9),
                             stream));
    if (bytes) return;
    for (const Strategy strategy : {Strategy::kBuffered, Strategy::kSortBased}) {
      const int column = strategy == Strategy::kBuffered ? 10 : 11;
      RequireOk(Execute(index, DeviceBatch::FindFirst(keys, Column(column)),
                        {strategy, ResultOrder::kCaller, 8}, nullptr, stream));
    }
  }
  uint64_t rows() const { return longs_.ToHost().back(); }
  bool operator==(const Answers& other) const {
    return words_.ToHost() == other.words_.ToHost() && longs_.ToHost() == other.longs_.ToHost();
  }

 private:
  static constexpr size_t kColumns = 12;
  uint32_t* Column(size_t i) const { return words_.data() + i * queries_; }

  size_t queries_;
  DeviceArray<uint32_t> words_;
  DeviceArray<uint64_t> longs_;  // counts, then offsets of rows
};

// Captures calls about one batch, and launches them about that and another in its place.
void CheckCapture(const std::string& factory, const DeviceIndex& index, DeviceKeys keys,
                  const std::function<void(int)>& set_batch) {
  BOOST_TEST_CONTEXT(factory) {
    const Answers first(keys.size()), second(keys.size()), captured(keys.size());
    set_batch(1);
    second.Ask(index, keys, nullptr);
    BOOST_REQUIRE(second.rows() == keys.size());
    set_batch(0);
    first.Ask(index, keys, nullptr);
    BOOST_REQUIRE(first.rows() == keys.size());
    BOOST_REQUIRE(!(first == second));
    const size_t before = AllocatedDeviceBytes();
    {
      const Graph graph([&](cudaStream_t stream) { captured.Ask(index, keys, stream); });
      for (int launch = 0; launch < 4; ++launch) {
        set_batch(launch % 2);
        graph.Launch();
        BOOST_TEST((captured == (launch % 2 == 0 ? first : second)));
      }
    }
    BOOST_TEST(AllocatedDeviceBytes() == before);
  }
}

template <typename T>
void Overwrite(const DeviceArray<T>& array, const std::vector<T>& values) {
  BOOST_REQUIRE(cudaMemcpy(array.data(), values.data(), values.size() * sizeof(T),
                           cudaMemcpyHostToDevice) == cudaSuccess);
  // Waits, since streams that do not wait for the default one may continue.
  BOOST_REQUIRE(cudaDeviceSynchronize() == cudaSuccess);
}

// Batches that are searched by a kernel for few, and by one for many.
constexpr size_t kFew = 1000, kMany = (size_t{1} << 17) + 5;
constexpr size_t kEntries = 20000;

std::vector<size_t> DrawnKeys(size_t queries, uint64_t seed) {
  auto random = TestRandom(seed);
  std::vector<size_t> drawn(queries);
  for (size_t& key : drawn) key = random() % kEntries;
  return drawn;
}

template <typename Key>
void CheckNumbers() {
  std::vector<Key> keys(kEntries);
  std::vector<RowId> rows(kEntries);
  for (size_t i = 0; i < kEntries; ++i) {
    keys[i] = static_cast<Key>(i * i);
    rows[i] = static_cast<RowId>(kEntries - i);
  }
  const SortedRun run = *SortedRun::FromSorted(keys, rows);
  for (const char* factory :
       {"gpu:packed", "gpu:packed,directory=tree", "gpu:packed,rows", "gpu:btree", "gpu:fast",
        "gpu:pivot", "gpu:eytzinger", "gpu:sorted_array"}) {
    const auto index = RequireOk(MakeDeviceIndex(factory, run));
    for (const size_t queries : {kFew, kMany}) {
      const DeviceArray<Key> batch(queries);
      CheckCapture(factory, *index, DeviceKeys(batch.data(), queries), [&](int which) {
        std::vector<Key> asked;
        for (const size_t i : DrawnKeys(queries, 90 + static_cast<uint64_t>(which))) {
          asked.push_back(keys[i]);
        }
        Overwrite(batch, asked);
      });
    }
  }
}

BOOST_AUTO_TEST_CASE(every_operation_on_numbers_may_be_captured) {
  CheckNumbers<uint32_t>();
  CheckNumbers<uint64_t>();
}

BOOST_AUTO_TEST_CASE(every_operation_on_bytes_may_be_captured) {
  constexpr size_t kBytes = 12;
  std::vector<std::string> keys(kEntries);
  std::vector<std::string_view> views(kEntries);
  std::vector<RowId> rows(kEntries);
  for (size_t i = 0; i < kEntries; ++i) {
    keys[i] = std::to_string(100000000000 + i * i * 7);
    views[i] = keys[i];
    rows[i] = static_cast<RowId>(kEntries - i);
  }
  const SortedRun run = *SortedRun::FromSorted(absl::MakeConstSpan(views), rows);
  for (const char* factory :
       {"gpu:packed", "gpu:packed,directory=tree", "gpu:partial_key", "gpu:partial_key,hash"}) {
    const auto index = RequireOk(MakeDeviceIndex(factory, run));
    for (const size_t queries : {kFew, kMany}) {
      std::vector<uint32_t> offsets(queries + 1);
      for (size_t i = 0; i < offsets.size(); ++i) offsets[i] = static_cast<uint32_t>(i * kBytes);
      const DeviceArray<uint32_t> device_offsets(offsets);
      const DeviceArray<char> heap(queries * kBytes);
      const DeviceKeys batch(heap.data(), device_offsets.data(), queries);
      CheckCapture(factory, *index, batch, [&](int which) {
        std::vector<char> asked;
        for (const size_t i : DrawnKeys(queries, 90 + static_cast<uint64_t>(which))) {
          asked.insert(asked.end(), keys[i].begin(), keys[i].end());
        }
        Overwrite(heap, asked);
      });
    }
  }
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn::gpu
