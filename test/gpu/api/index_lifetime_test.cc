#include <boost/test/unit_test.hpp>
#include <chrono>
#include <memory>
#include <thread>
#include <vector>

#include "cairn/device.h"
#include "gpu/host/query_context.h"
#include "gpu/runtime/device_memory.h"
#include "gpu/runtime/stream.h"
#include "test/gpu/device_array.h"
#include "test/gpu/needs_device.h"
#include "test/gpu/runtime/device_faults.h"
#include "test/gpu/runtime/failing_device.h"
#include "test/require_ok.h"

// The memory of an index, while work is enqueued and while streams are captured.
namespace cairn::gpu {
BOOST_FIXTURE_TEST_SUITE(index_lifetime_test, NeedsDevice)
namespace {

using std::chrono::milliseconds;

constexpr const char* kFactories[] = {"gpu:packed,directory=bitmap",
                                      "gpu:packed,directory=tree",
                                      "gpu:packed,rows",
                                      "gpu:btree",
                                      "gpu:fast",
                                      "gpu:pivot",
                                      "gpu:eytzinger",
                                      "gpu:sorted_array"};
constexpr size_t kEntries = 200000;
constexpr size_t kQueries = 3000;
// For which packed leaves take scratch memory.
constexpr size_t kManyQueries = size_t{1} << 21;

// Key 2 i has row i.
std::unique_ptr<DeviceIndex> MakeIndex(const char* factory) {
  std::vector<uint32_t> keys(kEntries);
  std::vector<RowId> rows(kEntries);
  for (size_t i = 0; i < kEntries; ++i) {
    keys[i] = static_cast<uint32_t>(2 * i);
    rows[i] = static_cast<RowId>(i);
  }
  return RequireOk(MakeDeviceIndex(factory, *SortedRun::FromSorted(keys, rows)));
}

// Queries in device memory, and room for their rows.
struct Queries {
  explicit Queries(size_t size) : keys(Keys(size)), found(size) {
    BOOST_REQUIRE(cudaMemset(found.data(), 0xCD, size * sizeof(RowId)) == cudaSuccess);
    BOOST_REQUIRE(cudaDeviceSynchronize() == cudaSuccess);
  }
  static std::vector<uint32_t> Keys(size_t size) {
    std::vector<uint32_t> keys(size);
    for (size_t i = 0; i < size; ++i) keys[i] = static_cast<uint32_t>(i * 77 % (2 * kEntries));
    return keys;
  }
  absl::Status Ask(const DeviceIndex& index, cudaStream_t stream) const {
    return index.Execute(DeviceBatch::FindFirst(DeviceKeys(keys.data(), keys.size()), found.data()),
                         stream);
  }
  size_t CountWrong() const {
    const std::vector<uint32_t> asked = Keys(keys.size());
    const std::vector<RowId> rows = found.ToHost();
    size_t wrong = 0;
    for (size_t i = 0; i < rows.size(); ++i) {
      wrong += rows[i] != (asked[i] % 2 == 0 ? asked[i] / 2 : kNoRow);
    }
    return wrong;
  }

  DeviceArray<uint32_t> keys;
  DeviceArray<RowId> found;
};

Stream MakeStream() {
  return RequireOk(Stream::Create());
}

// A capture of a stream by the calling thread, which must end well.
class Capture {
 public:
  explicit Capture(cudaStream_t stream) : stream_(stream) {
    BOOST_REQUIRE(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal) == cudaSuccess);
  }
  ~Capture() {
    cudaGraph_t graph = nullptr;
    BOOST_TEST(cudaGetLastError() == cudaSuccess);
    BOOST_TEST(cudaStreamEndCapture(stream_, &graph) == cudaSuccess);
    (void)cudaGetLastError();
    if (graph != nullptr) BOOST_TEST(cudaGraphDestroy(graph) == cudaSuccess);
  }
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;

 private:
  cudaStream_t stream_;
};

// Takes as much memory as was freed, and overwrites it, on a stream that waits for no other.
void OverwriteFreedMemory(size_t bytes) {
  const Stream stream = MakeStream();
  std::vector<DeviceBuffer<char>> taken;
  for (size_t part = 0; part < 16; ++part) {
    auto memory = RequireOk(DeviceBuffer<char>::Allocate(bytes / 8, stream.get()));
    BOOST_REQUIRE(cudaMemsetAsync(memory.data(), 0xFF, memory.bytes(), stream.get()) ==
                  cudaSuccess);
    taken.push_back(std::move(memory));
  }
  RequireOk(stream.Wait());
}

BOOST_AUTO_TEST_CASE(an_index_may_go_while_its_work_is_enqueued) {
  for (const char* factory : kFactories) {
    BOOST_TEST_CONTEXT(factory) {
      for (const bool stream_goes_too : {false, true}) {
        const size_t before = AllocatedDeviceBytes();
        std::unique_ptr<DeviceIndex> index = MakeIndex(factory);
        const size_t bytes = AllocatedDeviceBytes() - before;
        const Queries batch(kQueries);
        auto stream = std::make_unique<Stream>(MakeStream());
        BOOST_REQUIRE(DelayStream(milliseconds(60), stream->get()) == cudaSuccess);
        RequireOk(batch.Ask(*index, stream->get()));
        if (stream_goes_too) stream.reset();
        index.reset();
        BOOST_TEST(AllocatedDeviceBytes() == before);
        OverwriteFreedMemory(bytes);
        BOOST_TEST(batch.CountWrong() == 0u);
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(an_index_may_go_whatever_streams_it_was_used_on) {
  std::unique_ptr<DeviceIndex> index = MakeIndex("gpu:packed");
  const Queries batch(100);
  // More streams than are remembered, each destroyed before the next one.
  for (int i = 0; i < 200; ++i) {
    const Stream stream = MakeStream();
    RequireOk(batch.Ask(*index, stream.get()));
  }
  const Queries last(kQueries);
  const Stream stream = MakeStream();
  BOOST_REQUIRE(DelayStream(milliseconds(60), stream.get()) == cudaSuccess);
  RequireOk(last.Ask(*index, stream.get()));
  RequireOk(last.Ask(*index, nullptr));
  index.reset();
  OverwriteFreedMemory(size_t{4} << 20);
  BOOST_TEST(last.CountWrong() == 0u);
  BOOST_TEST(batch.CountWrong() == 0u);
}

BOOST_AUTO_TEST_CASE(a_captured_batch_is_answered_when_the_graph_is_launched) {
  for (const char* factory : kFactories) {
    for (size_t size : {kQueries, kManyQueries}) {
      BOOST_TEST_CONTEXT(factory << ", " << size << " queries") {
        const std::unique_ptr<DeviceIndex> index = MakeIndex(factory);
        const Stream stream = MakeStream();
        const Queries warm_up(size), batch(size);
        RequireOk(warm_up.Ask(*index, stream.get()));  // loads the kernels
        RequireOk(stream.Wait());
        const size_t before = AllocatedDeviceBytes();
        BOOST_REQUIRE(cudaStreamBeginCapture(stream.get(), cudaStreamCaptureModeGlobal) ==
                      cudaSuccess);
        const absl::Status asked = batch.Ask(*index, stream.get());
        BOOST_TEST(asked.ok(), asked);
        cudaGraph_t graph = nullptr;
        cudaGraphExec_t launchable = nullptr;
        BOOST_REQUIRE(cudaStreamEndCapture(stream.get(), &graph) == cudaSuccess);
        BOOST_TEST(AllocatedDeviceBytes() == before);
        BOOST_REQUIRE(cudaGraphInstantiate(&launchable, graph, 0) == cudaSuccess);
        for (int launch = 0; launch < 2; ++launch) {
          BOOST_REQUIRE(cudaGraphLaunch(launchable, stream.get()) == cudaSuccess);
        }
        RequireOk(stream.Wait());
        BOOST_TEST(batch.CountWrong() == 0u);
        BOOST_TEST(cudaGraphExecDestroy(launchable) == cudaSuccess);
        BOOST_TEST(cudaGraphDestroy(graph) == cudaSuccess);
      }
    }
  }
}

// Freeing an index neither fails then nor spoils the capture, whichever thread does it.
BOOST_AUTO_TEST_CASE(an_index_may_go_while_a_stream_is_being_captured) {
  for (const unsigned flags : {cudaStreamNonBlocking, cudaStreamDefault}) {
    for (const bool other_thread : {false, true}) {
      const size_t before = AllocatedDeviceBytes();
      std::unique_ptr<DeviceIndex> index = MakeIndex("gpu:packed");
      const std::unique_ptr<DeviceIndex> other = MakeIndex("gpu:fast");
      const size_t with_other = AllocatedDeviceBytes() - index->memory_bytes();
      const Queries batch(kQueries);
      const Stream stream = MakeStream();
      RequireOk(batch.Ask(*index, stream.get()));
      RequireOk(batch.Ask(*other, stream.get()));
      cudaStream_t capturing = nullptr;
      BOOST_REQUIRE(cudaStreamCreateWithFlags(&capturing, flags) == cudaSuccess);
      {
        const Capture capture(capturing);
        BOOST_TEST(batch.Ask(*other, capturing).ok());
        if (other_thread) {
          std::thread([&] { index.reset(); }).join();
        } else {
          index.reset();
        }
        BOOST_TEST(AllocatedDeviceBytes() == with_other);
      }
      BOOST_TEST(cudaStreamDestroy(capturing) == cudaSuccess);
      BOOST_TEST(batch.CountWrong() == 0u);
      BOOST_TEST(before < with_other);
    }
  }
}

BOOST_AUTO_TEST_CASE(a_build_on_a_stream_that_is_being_captured_is_refused) {
  const DeviceArray<uint32_t> keys(std::vector<uint32_t>{5, 3, 4});
  const DeviceArray<RowId> rows(std::vector<RowId>{0, 1, 2});
  const auto build = [&](cudaStream_t stream) {
    return MakeDeviceIndex("gpu:packed", DeviceKeys(keys.data(), 3), rows.data(), stream).status();
  };
  cudaStream_t stream = nullptr;
  BOOST_REQUIRE(cudaStreamCreate(&stream) == cudaSuccess);
  BOOST_TEST(build(stream).ok());
  {
    const Capture capture(stream);
    // The default stream waits for it.
    for (cudaStream_t on : {stream, cudaStream_t{nullptr}}) {
      const absl::Status status = build(on);
      BOOST_TEST(absl::IsFailedPrecondition(status), status);
    }
  }
  BOOST_TEST(build(stream).ok());
  BOOST_TEST(build(nullptr).ok());
  BOOST_TEST(cudaStreamDestroy(stream) == cudaSuccess);
}

// Streams of the library's own, and memory for them, whichever thread captures.
BOOST_AUTO_TEST_CASE(batches_of_the_host_and_builds_go_on_beside_captures) {
  const std::unique_ptr<OrderedIndex> index = failing::MakeIndex();
  const auto work = [&] {
    BOOST_TEST(MakeDeviceIndex("gpu:packed", failing::Run()).ok());
    for (size_t size : failing::kSizes) {
      for (Operation operation : failing::kAskedOperations) {
        const absl::Status status = failing::Ask(*index, operation, failing::Keys(size, size));
        BOOST_TEST(status.ok(), size << " keys: " << status);
      }
    }
  };
  work();
  const size_t before = AllocatedDeviceBytes();
  for (const bool other_thread : {false, true}) {
    FreeIdleQueryContexts(0);
    const Stream stream = MakeStream();
    const Capture capture(stream.get());
    if (other_thread) {
      std::thread(work).join();
    } else {
      work();
    }
  }
  BOOST_TEST(AllocatedDeviceBytes() == before);
}

BOOST_AUTO_TEST_CASE(memory_of_a_capture_that_was_spoilt_goes_with_it) {
  const size_t before = AllocatedDeviceBytes();
  const Stream stream = MakeStream();
  BOOST_REQUIRE(cudaStreamBeginCapture(stream.get(), cudaStreamCaptureModeGlobal) == cudaSuccess);
  {
    const auto memory = DeviceBuffer<char>::Allocate(1000, stream.get());
    RequireOk(memory);
    BOOST_TEST(cudaStreamSynchronize(stream.get()) != cudaSuccess);  // spoils it
    (void)cudaGetLastError();
  }
  BOOST_TEST(cudaGetLastError() == cudaSuccess);
  cudaGraph_t graph = nullptr;
  BOOST_TEST(cudaStreamEndCapture(stream.get(), &graph) == cudaErrorStreamCaptureInvalidated);
  (void)cudaGetLastError();
  BOOST_TEST(AllocatedDeviceBytes() == before);
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn::gpu
