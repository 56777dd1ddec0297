// Limit/gpu/random_write_4B/<MiB>: writes of 4 bytes to all places in random order, each with a
// 4-byte place read.
// Limit/gpu/copy_<memcpy or kernel>/<MiB>: bytes_per_s counts those read and those written.
// Sort/<key>/n:<log2 n>/cub: cub::DeviceRadixSort::SortPairs of random keys and their row ids.
#include "tools/bench/gpu/gpu_limit.h"

#include <bit>
#include <cub/device/device_radix_sort.cuh>
#include <map>

#include "absl/strings/str_format.h"
#include "gpu/runtime/cuda_status.h"
#include "gpu/runtime/device_memory.h"
#include "gpu/runtime/launch.h"
#include "index/machine/status_macros.h"
#include "tools/bench/gpu/check_each.cuh"
#include "tools/bench/gpu/device_bench.h"
#include "tools/bench/gpu/device_data.h"
#include "tools/bench/gpu/key_rule.cuh"
#include "tools/bench/gpu/launch_check.h"

namespace cairn::bench {
namespace {

using gpu::DeviceBuffer;
using gpu::ForEachIndex;
using gpu::kSimpleThreads;
using gpu::SimpleBlocks;

// The numbers of log2_size bits, unordered and repeated.
__global__ void FillPlaces(uint32_t* places, size_t size, int log2_size) {
  ForEachIndex(size, [=](size_t i) { places[i] = static_cast<uint32_t>(Scramble(i, log2_size)); });
}

__global__ void WriteAt(const uint32_t* places, uint32_t* out, size_t size) {
  ForEachIndex(size, [=](size_t i) { out[places[i]] = static_cast<uint32_t>(i); });
}

__global__ void CopyParts(const uint4* from, uint4* to, size_t size) {
  ForEachIndex(size, [=](size_t i) { to[i] = from[i]; });
}

absl::Status RandomWrite(benchmark::State& state, cudaStream_t stream, int mib) {
  const size_t size = (size_t{1} << 20) * mib / sizeof(uint32_t);
  const int log2_size = static_cast<int>(std::bit_width(size)) - 1;
  ASSIGN_OR_RETURN(const auto places, DeviceBuffer<uint32_t>::Allocate(size, stream));
  ASSIGN_OR_RETURN(const auto out, DeviceBuffer<uint32_t>::Allocate(size, stream));
  FillPlaces<<<SimpleBlocks(size), kSimpleThreads, 0, stream>>>(places.data(), size, log2_size);
  CAIRN_RETURN_IF_LAUNCH_FAILED("FillPlaces");
  const absl::StatusOr<double> seconds = MedianSeconds(stream, [&]() -> absl::Status {
    WriteAt<<<SimpleBlocks(size), kSimpleThreads, 0, stream>>>(places.data(), out.data(), size);
    CAIRN_RETURN_IF_LAUNCH_FAILED("WriteAt");
    return absl::OkStatus();
  });
  if (!seconds.ok()) return seconds.status();
  Report(state, *seconds, {.queries = size});
  const uint32_t *to = places.data(), *written = out.data();
  return CheckEach(size, stream, [=] __device__(size_t i) { return written[to[i]] != i; });
}

enum class CopyWay : uint8_t { kMemcpy, kKernel };

absl::StatusOr<double> TimeCopy(CopyWay way, size_t bytes, cudaStream_t stream) {
  const size_t parts = bytes / sizeof(uint4), words = bytes / sizeof(uint32_t);
  ASSIGN_OR_RETURN(const auto from, DeviceBuffer<uint4>::Allocate(parts, stream));
  ASSIGN_OR_RETURN(const auto to, DeviceBuffer<uint4>::Allocate(parts, stream));
  const auto original = reinterpret_cast<uint32_t*>(from.data());
  FillPlaces<<<SimpleBlocks(words), kSimpleThreads, 0, stream>>>(original, words, 32);
  CAIRN_RETURN_IF_LAUNCH_FAILED("FillPlaces");
  const absl::StatusOr<double> seconds = MedianSeconds(stream, [&]() -> absl::Status {
    if (way == CopyWay::kMemcpy) {
      CAIRN_RETURN_IF_CUDA_FAILS(
          cudaMemcpyAsync(to.data(), from.data(), from.bytes(), cudaMemcpyDeviceToDevice, stream));
      return absl::OkStatus();
    }
    CopyParts<<<SimpleBlocks(parts), kSimpleThreads, 0, stream>>>(from.data(), to.data(), parts);
    CAIRN_RETURN_IF_LAUNCH_FAILED("CopyParts");
    return absl::OkStatus();
  });
  if (!seconds.ok()) return seconds;
  const auto copied = reinterpret_cast<const uint32_t*>(to.data());
  RETURN_IF_ERROR(
      CheckEach(words, stream, [=] __device__(size_t i) { return copied[i] != original[i]; }));
  return seconds;
}

void RegisterCopy(CopyWay way, int mib) {
  const char* name = way == CopyWay::kMemcpy ? "memcpy" : "kernel";
  RegisterDeviceBenchmark(absl::StrFormat("Limit/gpu/copy_%s/%d", name, mib),
                          [=](benchmark::State& state, cudaStream_t stream) {
                            const size_t bytes = size_t(mib) << 20;
                            const auto seconds = TimeCopy(way, bytes, stream);
                            if (seconds.ok()) Report(state, *seconds, {.moved_bytes = 2 * bytes});
                            return seconds.status();
                          });
}

template <typename Key>
absl::StatusOr<double> TimeSortPairs(int log2_n, cudaStream_t stream) {
  ASSIGN_OR_RETURN(const auto entries, GetEntries<Key>(KeySet::kUniform, log2_n));
  const EntrySet<Key>& e = *entries;
  ASSIGN_OR_RETURN(const auto keys, DeviceBuffer<Key>::Allocate(e.size(), stream));
  ASSIGN_OR_RETURN(const auto row_ids, DeviceBuffer<RowId>::Allocate(e.size(), stream));
  const auto sort = [&](void* scratch, size_t* bytes) {
    return cub::DeviceRadixSort::SortPairs(scratch, *bytes, e.keys.data(), keys.data(),
                                           e.row_ids.data(), row_ids.data(), e.size(), 0,
                                           static_cast<int>(8 * sizeof(Key)), stream);
  };
  size_t bytes = 0;
  CAIRN_RETURN_IF_CUDA_FAILS(sort(nullptr, &bytes));
  ASSIGN_OR_RETURN(const auto scratch, DeviceBuffer<char>::Allocate(bytes, stream));
  ASSIGN_OR_RETURN(const double seconds, MedianSeconds(stream, [&]() -> absl::Status {
                     CAIRN_RETURN_IF_CUDA_FAILS(sort(scratch.data(), &bytes));
                     return absl::OkStatus();
                   }));
  const Key *sorted = keys.data(), *right = e.run.keys.data();
  RETURN_IF_ERROR(
      CheckEach(e.size(), stream, [=] __device__(size_t i) { return sorted[i] != right[i]; }));
  return seconds;
}

template <typename Key>
void RegisterSort(int log2_n) {
  RegisterDeviceBenchmark(absl::StrFormat("Sort/u%d/n:%d/cub", 8 * sizeof(Key), log2_n),
                          [=](benchmark::State& state, cudaStream_t stream) {
                            const absl::StatusOr<double> seconds =
                                SortPairsSeconds<Key>(log2_n, stream);
                            if (seconds.ok())
                              Report(state, *seconds, {.rows = uint64_t{1} << log2_n});
                            return seconds.status();
                          });
}

const RegisterInMain limits_registered([] {
  for (int mib : {64, 512, 4096}) {
    RegisterDeviceBenchmark(absl::StrFormat("Limit/gpu/random_write_4B/%d", mib),
                            [=](benchmark::State& state, cudaStream_t stream) {
                              return RandomWrite(state, stream, mib);
                            });
  }
  RegisterCopy(CopyWay::kMemcpy, 4096);
  RegisterCopy(CopyWay::kKernel, 4096);
  for (int log2_n : {20, 24, 26, 28}) {
    RegisterSort<uint32_t>(log2_n);
    RegisterSort<uint64_t>(log2_n);
  }
});

}  // namespace

absl::StatusOr<double> CopySeconds(cudaStream_t stream) {
  static double measured = 0;
  if (measured != 0) return measured;
  const absl::StatusOr<double> seconds = TimeCopy(CopyWay::kMemcpy, kCopiedBytes, stream);
  if (seconds.ok()) measured = *seconds;
  return seconds;
}

template <typename Key>
absl::StatusOr<double> SortPairsSeconds(int log2_n, cudaStream_t stream) {
  static std::map<int, double> measured;
  if (const auto at = measured.find(log2_n); at != measured.end()) return at->second;
  const absl::StatusOr<double> seconds = TimeSortPairs<Key>(log2_n, stream);
  if (seconds.ok()) measured.emplace(log2_n, *seconds);
  return seconds;
}

template absl::StatusOr<double> SortPairsSeconds<uint32_t>(int, cudaStream_t);
template absl::StatusOr<double> SortPairsSeconds<uint64_t>(int, cudaStream_t);

}  // namespace cairn::bench
