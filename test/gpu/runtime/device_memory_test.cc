#include "gpu/runtime/device_memory.h"

#include <algorithm>
#include <atomic>
#include <boost/test/unit_test.hpp>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "cairn/device.h"
#include "cairn/ordered_index.h"
#include "gpu/runtime/injected_failure.h"
#include "gpu/runtime/stream.h"
#include "test/gpu/needs_device.h"
#include "test/require_ok.h"

namespace cairn::gpu {
BOOST_FIXTURE_TEST_SUITE(device_memory_test, NeedsDevice)
namespace {

BOOST_AUTO_TEST_CASE(what_is_allocated_is_counted_until_it_is_freed) {
  const size_t before = AllocatedDeviceBytes();
  {
    auto buffer = RequireOk(DeviceBuffer<uint64_t>::Allocate(1000, nullptr));
    BOOST_TEST(buffer.size() == 1000u);
    BOOST_TEST(AllocatedDeviceBytes() == before + 8000);
    DeviceBuffer<uint64_t> moved = std::move(buffer);
    BOOST_TEST(AllocatedDeviceBytes() == before + 8000);
    BOOST_TEST(reinterpret_cast<uintptr_t>(moved.data()) % 256 == 0u);
  }
  BOOST_TEST(AllocatedDeviceBytes() == before);
}

BOOST_AUTO_TEST_CASE(the_peak_is_the_most_at_once) {
  (void)TakePeakDeviceBytes();
  const size_t before = AllocatedDeviceBytes();
  for (int i = 0; i < 3; ++i) {
    const auto large = DeviceBuffer<char>::Allocate(5000, nullptr);
    const auto small = DeviceBuffer<char>::Allocate(300, nullptr);
    BOOST_REQUIRE(large.ok() && small.ok());
  }
  BOOST_TEST(TakePeakDeviceBytes() == before + 5300);
  BOOST_TEST(TakePeakDeviceBytes() == before);
}

BOOST_AUTO_TEST_CASE(no_bytes_take_none) {
  const auto buffer = RequireOk(DeviceBuffer<int>::Allocate(0, nullptr));
  BOOST_TEST(buffer.data() == nullptr);
}

BOOST_AUTO_TEST_CASE(more_than_there_is_is_refused_with_sizes) {
  const auto available = RequireOk(AvailableDeviceBytes());
  const absl::Status refused = CheckDeviceMemory(available * 2, "a test");
  BOOST_TEST(absl::IsResourceExhausted(refused));
  BOOST_TEST(std::string(refused.message()).find("a test") != std::string::npos);
  BOOST_TEST(CheckDeviceMemory(1 << 20, "a test").ok());

  const size_t before = AllocatedDeviceBytes();
  const auto buffer = DeviceBuffer<char>::Allocate(available * 2, nullptr);
  BOOST_TEST(absl::IsResourceExhausted(buffer.status()), buffer.status());
  const auto overflow = DeviceBuffer<uint64_t>::Allocate(SIZE_MAX / 2, nullptr);
  BOOST_TEST(absl::IsResourceExhausted(overflow.status()), overflow.status());
  BOOST_TEST(AllocatedDeviceBytes() == before);
  BOOST_TEST(DeviceBuffer<char>::Allocate(1000, nullptr).ok());  // goes on working
}

BOOST_AUTO_TEST_CASE(allocations_fail_on_request_and_then_work_again) {
  FailDeviceAllocationsAfter(1);
  BOOST_TEST(DeviceBuffer<char>::Allocate(1, nullptr).ok());
  BOOST_TEST(absl::IsResourceExhausted(DeviceBuffer<char>::Allocate(1, nullptr).status()));
  BOOST_TEST(absl::IsResourceExhausted(DeviceBuffer<char>::Allocate(1, nullptr).status()));
  FailDeviceAllocationsAfter(-1);
  BOOST_TEST(DeviceBuffer<char>::Allocate(1, nullptr).ok());
}

BOOST_AUTO_TEST_CASE(a_limit_on_request_is_what_there_is) {
  const size_t before = AllocatedDeviceBytes();
  LimitDeviceBytes(before + 5000);
  {
    const auto buffer = DeviceBuffer<char>::Allocate(3000, nullptr);
    BOOST_TEST(buffer.ok());
    BOOST_TEST(*AvailableDeviceBytes() == 2000u);
    BOOST_TEST(absl::IsResourceExhausted(DeviceBuffer<char>::Allocate(2001, nullptr).status()));
    BOOST_TEST(absl::IsResourceExhausted(CheckDeviceMemory(2001, "a test")));
    BOOST_TEST(DeviceBuffer<char>::Allocate(2000, nullptr).ok());
  }
  LimitDeviceBytes(0);
  BOOST_TEST(DeviceBuffer<char>::Allocate(1 << 20, nullptr).ok());
}

// The pool must not keep memory that other processes could use.
BOOST_AUTO_TEST_CASE(the_pool_keeps_little_of_what_was_freed) {
  const auto max_kept = MostKeptBytes();
  const auto before = ReservedDeviceBytes();
  BOOST_REQUIRE(max_kept.ok() && before.ok());
  BOOST_TEST(*max_kept <= size_t{1} << 30);
  const auto stream = RequireOk(Stream::Create());
  constexpr size_t kPart = size_t{256} << 20;
  for (int round = 0; round < 2; ++round) {
    {
      std::vector<DeviceBuffer<char>> parts;
      for (size_t bytes = 0; bytes <= *max_kept + 2 * kPart; bytes += kPart) {
        auto part = RequireOk(DeviceBuffer<char>::Allocate(kPart, stream.get()));
        if (round == 1) part.SetStream(AfterAllUses());
        parts.push_back(std::move(part));
      }
      BOOST_TEST(*ReservedDeviceBytes() > *max_kept + kPart);
    }
    // The second time, waits for another stream, on which the memory was never used.
    BOOST_REQUIRE(cudaDeviceSynchronize() == cudaSuccess);
    RequireOk(stream.Wait());
    BOOST_TEST(*ReservedDeviceBytes() <= std::max(*max_kept, *before));
  }
}

BOOST_AUTO_TEST_CASE(memory_outlives_the_stream_of_its_making) {
  DeviceBuffer<uint32_t> kept;
  {
    const auto stream = RequireOk(Stream::Create());
    auto buffer = RequireOk(DeviceBuffer<uint32_t>::Allocate(1 << 20, stream.get()));
    BOOST_REQUIRE(cudaMemsetAsync(buffer.data(), 0x5A, buffer.bytes(), stream.get()) ==
                  cudaSuccess);
    RequireOk(stream.Wait());
    buffer.SetStream(nullptr);
    kept = std::move(buffer);
  }
  std::vector<uint32_t> values(kept.size());
  BOOST_REQUIRE(cudaMemcpy(values.data(), kept.data(), kept.bytes(), cudaMemcpyDeviceToHost) ==
                cudaSuccess);
  BOOST_TEST(std::count(values.begin(), values.end(), 0x5A5A5A5Au) == 1 << 20);
}

BOOST_AUTO_TEST_CASE(a_trimmed_pool_keeps_nothing_but_what_is_asked_for) {
  BOOST_REQUIRE(cudaDeviceSynchronize() == cudaSuccess);
  RequireOk(TrimDeviceMemory(0));
  BOOST_REQUIRE(cudaDeviceSynchronize() == cudaSuccess);
  const size_t least = RequireOk(ReservedDeviceBytes());
  constexpr size_t kBytes = size_t{256} << 20;
  (void)RequireOk(DeviceBuffer<char>::Allocate(kBytes, nullptr));  // and freed
  BOOST_REQUIRE(cudaDeviceSynchronize() == cudaSuccess);
  BOOST_TEST(RequireOk(ReservedDeviceBytes()) >= kBytes);
  RequireOk(TrimDeviceMemory(0, kBytes));
  BOOST_TEST(RequireOk(ReservedDeviceBytes()) >= kBytes);
  RequireOk(TrimDeviceMemory(0, UINT64_MAX));
  BOOST_TEST(RequireOk(ReservedDeviceBytes()) >= kBytes);
  {
    const auto held = RequireOk(DeviceBuffer<char>::Allocate(1000, nullptr));
    RequireOk(TrimDeviceMemory(0));
    BOOST_TEST(RequireOk(ReservedDeviceBytes()) >= 1000u);
  }
  BOOST_REQUIRE(cudaDeviceSynchronize() == cudaSuccess);
  RequireOk(TrimDeviceMemory(0));
  BOOST_TEST(RequireOk(ReservedDeviceBytes()) <= least);
  BOOST_TEST(absl::IsUnavailable(TrimDeviceMemory(-1)));
  BOOST_TEST(absl::IsUnavailable(TrimDeviceMemory(1000)));
}

// CUDA's own pool, and how much was taken from it.
class CountingResource : public DeviceMemoryResource {
 public:
  void* Allocate(size_t bytes, DeviceStream stream) override {
    if (bytes > most) return nullptr;
    void* memory = nullptr;
    BOOST_TEST(cudaMallocAsync(&memory, bytes, stream) == cudaSuccess);
    given += bytes;
    ++calls;
    return memory;
  }
  void Deallocate(void* memory, size_t bytes, DeviceStream stream) override {
    BOOST_TEST(cudaFreeAsync(memory, stream) == cudaSuccess);
    given -= bytes;
  }
  size_t AvailableBytes() override { return available; }

  std::atomic<size_t> given = 0, calls = 0;
  size_t most = SIZE_MAX, available = SIZE_MAX;
};

BOOST_AUTO_TEST_CASE(memory_comes_from_a_resource_of_the_programs) {
  std::vector<uint32_t> keys(100000);
  std::vector<RowId> rows(keys.size());
  for (size_t i = 0; i < keys.size(); ++i) {
    keys[i] = static_cast<uint32_t>(3 * i);
    rows[i] = static_cast<RowId>(i);
  }
  const SortedRun run = *SortedRun::FromSorted(keys, rows);
  BOOST_REQUIRE(cudaDeviceSynchronize() == cudaSuccess);
  BOOST_REQUIRE(AllocatedDeviceBytes() == 0u);
  CountingResource resource;
  RequireOk(SetDeviceMemoryResource(0, &resource));
  {
    auto index = RequireOk(MakeOrderedIndex("gpu:auto", run));
    BOOST_TEST(resource.given == index->memory_bytes());
    std::vector<RowId> found(keys.size());
    RequireOk(index->Execute(Batch::FindFirst(keys, absl::MakeSpan(found))));
    BOOST_TEST(found == rows);
    BOOST_TEST(resource.given == index->memory_bytes());
    // Neither back to the pool, nor to another.
    const absl::Status held = SetDeviceMemoryResource(0, nullptr);
    BOOST_TEST(absl::IsFailedPrecondition(held));
    BOOST_TEST(std::string(held.message()).find(std::to_string(index->memory_bytes())) !=
               std::string::npos);
    // If it has no more memory, nothing is lost, and the index still works.
    resource.most = 1000;
    BOOST_TEST(absl::IsResourceExhausted(MakeOrderedIndex("gpu:auto", run).status()));
    resource.most = SIZE_MAX;
    resource.available = 1000;
    const size_t calls = resource.calls;
    BOOST_TEST(absl::IsResourceExhausted(CheckDeviceMemory(1001, "a test")));
    BOOST_TEST(CheckDeviceMemory(1000, "a test").ok());
    BOOST_TEST(resource.calls == calls);
    BOOST_TEST(resource.given == index->memory_bytes());
  }
  BOOST_TEST(resource.given == 0u);
  RequireOk(SetDeviceMemoryResource(0, nullptr));
  const size_t calls = resource.calls;
  (void)RequireOk(MakeOrderedIndex("gpu:auto", run));
  BOOST_TEST(resource.calls == calls);
  BOOST_TEST(absl::IsUnavailable(SetDeviceMemoryResource(1000, nullptr)));
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn::gpu
