// HostParts/gpu:auto/<key>/n:24/batch:<log2 b>: the parts of the response to a batch of 2^b keys in
// pinned host memory, answered there. Counters, microseconds by the host's clock, medians:
//   launch_wait, launch_poll   an empty kernel until the stream is done, or until the host sees a
//                              word that it writes to host memory;
//   pinned_check               asking the driver whether keys and rows are pinned;
//   copy_in, copy_out          the keys' copy to the device, the rows' back, each with its wait;
//   search                     the search from and to device memory, with its wait;
//   from_host, to_host         the same, but keys are read from, or rows written to, host memory;
//   both                       both in host memory;
//   waited, polled             the whole call (GpuIndex): the kernel reads and writes host memory,
//                              and the caller waits for its end, or for each row;
//   chunked                    the whole call, with keys and rows copied
#include <algorithm>
#include <chrono>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "cairn/device.h"
#include "cairn/ordered_index.h"
#include "gpu/host/gpu_index.h"
#include "gpu/runtime/cuda_status.h"
#include "gpu/runtime/launch.h"
#include "gpu/runtime/pinned_memory.h"
#include "index/machine/status_macros.h"
#include "tools/bench/gpu/device_bench.h"
#include "tools/bench/gpu/device_data.h"

namespace cairn::bench::gpu_host_parts {
namespace {

using gpu::DeviceBuffer;
using gpu::GpuIndex;
using gpu::HostBatchPolicy;
using gpu::PinnedMemory;

constexpr int kLog2N = 24;
constexpr int kRuns = 401;

__global__ void WriteWord(uint32_t* to, uint32_t word) {
  *to = word;
}

// Median microseconds of a call.
absl::StatusOr<double> MedianMicroseconds(const std::function<absl::Status()>& call) {
  using Clock = std::chrono::steady_clock;
  std::vector<double> taken(kRuns);
  for (int run = -kRuns / 10; run < kRuns; ++run) {
    const Clock::time_point start = Clock::now();
    RETURN_IF_ERROR(call());
    if (run < 0) continue;
    taken[static_cast<size_t>(run)] =
        std::chrono::duration<double, std::micro>(Clock::now() - start).count();
  }
  std::nth_element(taken.begin(), taken.begin() + kRuns / 2, taken.end());
  return taken[kRuns / 2];
}

// The same structure under three policies of batches from the host.
struct Ways {
  std::unique_ptr<GpuIndex> waited, polled, chunked;
  const DeviceIndex* index = nullptr;
};

template <typename Key>
absl::StatusOr<const Ways*> GetWays() {
  static std::unique_ptr<Ways> kept;
  if (kept != nullptr) return kept.get();
  ASSIGN_OR_RETURN(const auto entries, GetEntries<Key>(KeySet::kUniform, kLog2N));
  std::vector<Key> keys(entries->size());
  std::vector<RowId> rows(entries->size());
  CAIRN_RETURN_IF_CUDA_FAILS(cudaMemcpy(keys.data(), entries->run.keys.data(),
                                        entries->run.keys.bytes(), cudaMemcpyDeviceToHost));
  CAIRN_RETURN_IF_CUDA_FAILS(cudaMemcpy(rows.data(), entries->run.row_ids.data(),
                                        entries->run.row_ids.bytes(), cudaMemcpyDeviceToHost));
  ASSIGN_OR_RETURN(const SortedRun run, SortedRun::FromSorted(absl::MakeConstSpan(keys), rows));
  auto ways = std::make_unique<Ways>();
  const auto make = [&](size_t max_zero_copy, size_t max_polled,
                        std::unique_ptr<GpuIndex>* way) -> absl::Status {
    ASSIGN_OR_RETURN(auto index, MakeDeviceIndex("gpu:auto", run));
    HostBatchPolicy policy;
    policy.max_zero_copy = max_zero_copy;
    policy.max_polled = max_polled;
    ways->index = index.get();
    *way = std::make_unique<GpuIndex>(run, std::move(index), policy);
    return absl::OkStatus();
  };
  RETURN_IF_ERROR(make(SIZE_MAX, 0, &ways->waited));
  RETURN_IF_ERROR(make(SIZE_MAX, SIZE_MAX, &ways->polled));
  RETURN_IF_ERROR(make(0, 0, &ways->chunked));
  kept = std::move(ways);
  return kept.get();
}

template <typename Key>
absl::Status HostParts(benchmark::State& state, int log2_batch, cudaStream_t stream) {
  const size_t size = size_t{1} << log2_batch;
  ASSIGN_OR_RETURN(const Ways* const ways, GetWays<Key>());
  ASSIGN_OR_RETURN(const auto queries,
                   GetQueries<Key>(KeySet::kUniform, kLog2N, QueryMix::kHits, size_t{1} << 20));
  ASSIGN_OR_RETURN(const PinnedMemory pinned_keys, PinnedMemory::Allocate(size * sizeof(Key)));
  ASSIGN_OR_RETURN(const PinnedMemory pinned_rows, PinnedMemory::Allocate(size * sizeof(RowId)));
  ASSIGN_OR_RETURN(const auto device_keys, DeviceBuffer<Key>::Allocate(size, stream));
  ASSIGN_OR_RETURN(const auto device_rows, DeviceBuffer<RowId>::Allocate(size, stream));
  Key* const keys = reinterpret_cast<Key*>(pinned_keys.data());
  RowId* const rows = reinterpret_cast<RowId*>(pinned_rows.data());
  std::vector<RowId> expected(size);
  CAIRN_RETURN_IF_CUDA_FAILS(
      cudaMemcpy(keys, queries->keys.data(), size * sizeof(Key), cudaMemcpyDeviceToHost));
  CAIRN_RETURN_IF_CUDA_FAILS(cudaMemcpy(expected.data(), queries->row_ids.data(),
                                        size * sizeof(RowId), cudaMemcpyDeviceToHost));
  CAIRN_RETURN_IF_CUDA_FAILS(
      cudaMemcpy(device_keys.data(), keys, size * sizeof(Key), cudaMemcpyHostToDevice));

  double last = 0;
  const auto time = [&](const char* part, const std::function<absl::Status()>& call) {
    const auto taken = MedianMicroseconds(call);
    if (taken.ok()) state.counters[part] = last = *taken;
    return taken.status();
  };
  const auto wait = [&]() -> absl::Status {
    CAIRN_RETURN_IF_CUDA_FAILS(cudaStreamSynchronize(stream));
    return absl::OkStatus();
  };
  RETURN_IF_ERROR(time("launch_wait", [&] {
    WriteWord<<<1, 1, 0, stream>>>(device_rows.data(), 0);
    return wait();
  }));
  uint32_t word = 0;
  RETURN_IF_ERROR(time("launch_poll", [&] {
    WriteWord<<<1, 1, 0, stream>>>(rows, ++word);
    while (*static_cast<volatile uint32_t*>(rows) != word) {
    }
    return absl::OkStatus();
  }));
  RETURN_IF_ERROR(wait());
  RETURN_IF_ERROR(time("pinned_check", [&] {
    return gpu::IsPinned(keys, size * sizeof(Key)) && gpu::IsPinned(rows, size * sizeof(RowId))
               ? absl::OkStatus()
               : absl::InternalError("not pinned");
  }));
  const auto copy = [&](void* to, const void* from, size_t bytes,
                        cudaMemcpyKind kind) -> absl::Status {
    CAIRN_RETURN_IF_CUDA_FAILS(cudaMemcpyAsync(to, from, bytes, kind, stream));
    return wait();
  };
  RETURN_IF_ERROR(time("copy_in", [&] {
    return copy(device_keys.data(), keys, size * sizeof(Key), cudaMemcpyHostToDevice);
  }));
  RETURN_IF_ERROR(time("copy_out", [&] {
    return copy(rows, device_rows.data(), size * sizeof(RowId), cudaMemcpyDeviceToHost);
  }));
  const auto search = [&](const Key* from, RowId* to) -> absl::Status {
    RETURN_IF_ERROR(
        ways->index->Execute(DeviceBatch::FindFirst(DeviceKeys(from, size), to), stream));
    return wait();
  };
  RETURN_IF_ERROR(time("search", [&] { return search(device_keys.data(), device_rows.data()); }));
  RETURN_IF_ERROR(time("from_host", [&] { return search(keys, device_rows.data()); }));
  RETURN_IF_ERROR(time("to_host", [&] { return search(device_keys.data(), rows); }));
  RETURN_IF_ERROR(time("both", [&] { return search(keys, rows); }));
  const Batch batch = Batch::FindFirst(absl::MakeConstSpan(keys, size), absl::MakeSpan(rows, size));
  const std::pair<const char*, const GpuIndex*> calls[] = {{"waited", ways->waited.get()},
                                                           {"polled", ways->polled.get()},
                                                           {"chunked", ways->chunked.get()}};
  for (const auto& [part, index] : calls) {
    std::memset(rows, 0, size * sizeof(RowId));
    RETURN_IF_ERROR(time(part, [&, answering = index] { return answering->Execute(batch); }));
    if (!std::equal(expected.begin(), expected.end(), rows)) {
      return absl::InternalError("wrong row ids");
    }
  }
  Report(state, last * 1e-6, {.queries = size});
  return absl::OkStatus();
}

const RegisterInMain registered([] {
  for (int log2_batch : {0, 8, 10, 11, 12, 13, 14, 15, 16, 17, 18}) {
    const auto add = [&](const char* key, auto body) {
      RegisterDeviceBenchmark(
          absl::StrFormat("HostParts/gpu:auto/%s/n:%d/batch:%d", key, kLog2N, log2_batch), body);
    };
    add("u32", [=](benchmark::State& state, cudaStream_t stream) {
      return HostParts<uint32_t>(state, log2_batch, stream);
    });
    add("u64", [=](benchmark::State& state, cudaStream_t stream) {
      return HostParts<uint64_t>(state, log2_batch, stream);
    });
  }
});

}  // namespace
}  // namespace cairn::bench::gpu_host_parts
