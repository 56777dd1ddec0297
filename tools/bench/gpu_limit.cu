// Limit/gpu/random_read_<32, 64 or 128>B/<MiB>/in_flight:<f>: 2^27 independent random reads among
// so much memory, each with a 4-byte query read and a 4-byte result written. 16 bytes a lane, f
// reads of each lane in flight. Limit/gpu/chain_<d>MiB_64B/<MiB>: the same of 64 bytes, after a
// 16-byte read in d MiB that says where: what a directory and a leaf cost.
// Limit/gpu/random_write_4B/<MiB>: writes of 4 bytes to all places in random order, each with a
// 4-byte place read.
// Limit/gpu/copy_<memcpy or kernel>/<MiB>: bytes_per_s counts those read and those written.
// Sort/<key>/n:<log2 n>/cub: cub::DeviceRadixSort::SortPairs of random keys and their row ids.
#include "tools/bench/gpu_limit.h"

#include <algorithm>
#include <bit>
#include <cub/device/device_radix_sort.cuh>
#include <map>
#include <utility>

#include "absl/strings/str_format.h"
#include "gpu/cuda_status.h"
#include "gpu/device_memory.h"
#include "gpu/launch.h"
#include "tools/bench/device_bench.h"
#include "tools/bench/device_data.h"
#include "tools/bench/key_rule.cuh"

namespace cairn::bench {
namespace {

using gpu::DeviceBuffer;
using gpu::ForEachIndex;
using gpu::kSimpleThreads;
using gpu::SimpleBlocks;

constexpr int kWarp = 32;
constexpr int kThreads = 256;
constexpr uint64_t kSeed = 20261121;

// Memory is 16-byte parts; part i holds what this says.
__host__ __device__ uint4 PartAt(uint64_t i) {
  const uint64_t a = DrawRandom(kSeed, 2 * i), b = DrawRandom(kSeed, 2 * i + 1);
  return {static_cast<uint32_t>(a), static_cast<uint32_t>(a >> 32), static_cast<uint32_t>(b),
          static_cast<uint32_t>(b >> 32)};
}
__host__ __device__ uint32_t Fold(uint4 part) {
  return part.x ^ part.y ^ part.z ^ part.w;
}
// Which of `count` lines a random number stands for.
__host__ __device__ uint64_t PickLine(uint32_t random, uint64_t count) {
  return (random * count) >> 32;
}
// The part of the directory, of `count` parts, that a query reads.
__host__ __device__ uint64_t PickNode(uint32_t query, uint64_t count) {
  return PickLine(query * 0x9E3779B1u, count);
}

// Nodes of a directory that are read first, to know the line; none if `size` is 0.
struct Directory {
  const uint4* nodes;
  uint64_t size;
};

__global__ void FillParts(uint4* parts, size_t size) {
  ForEachIndex(size, [=](size_t i) { parts[i] = PartAt(i); });
}

__global__ void FillQueries(uint32_t* queries, size_t size) {
  ForEachIndex(size,
               [=](size_t i) { queries[i] = static_cast<uint32_t>(DrawRandom(kSeed + 1, i)); });
}

// The reads of a line that evict nothing useful: a search's leaves.
__device__ uint4 LoadPart(const uint4* part) {
  uint4 value;
  asm volatile("ld.global.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(value.x), "=r"(value.y), "=r"(value.z), "=r"(value.w)
               : "l"(part));
  return value;
}

// results[i] = all words of the line of query i, xored. A line is read by as many lanes as it has
// parts, each for kInFlight queries at once; `size` is a multiple of the queries of a warp's step.
template <int kLineBytes, int kInFlight>
__global__ void __launch_bounds__(kThreads)
    RandomReads(const uint4* parts, uint64_t lines, Directory directory, const uint32_t* queries,
                uint32_t* results, size_t size) {
  constexpr int kLanes = kLineBytes / 16, kGroups = kWarp / kLanes;
  // A warp's step: kBatches queries a lane, and kLanes rounds for each, in every one of which a
  // group of lanes reads a line.
  constexpr int kBatches = kInFlight > kLanes ? kInFlight / kLanes : 1;
  constexpr int kRounds = kBatches * kLanes;
  const int lane = static_cast<int>(threadIdx.x) % kWarp, group = lane / kLanes;
  const size_t warp = (size_t{blockIdx.x} * kThreads + threadIdx.x) / kWarp;
  const size_t stride = size_t{gridDim.x} * kThreads * kBatches;
  for (size_t base = warp * kWarp * kBatches; base < size; base += stride) {
    uint32_t asked[kBatches], result[kBatches] = {};
#pragma unroll
    for (int b = 0; b < kBatches; ++b) asked[b] = queries[base + b * kWarp + lane];
    if (directory.size != 0) {
      uint32_t said[kBatches];
#pragma unroll
      for (int b = 0; b < kBatches; ++b) {
        said[b] = Fold(directory.nodes[PickNode(asked[b], directory.size)]);
      }
#pragma unroll
      for (int b = 0; b < kBatches; ++b) asked[b] ^= said[b];
    }
#pragma unroll
    for (int first = 0; first < kRounds; first += kInFlight) {
      uint4 part[kInFlight];
#pragma unroll
      for (int f = 0; f < kInFlight; ++f) {
        const int round = first + f, b = round / kLanes;
        const uint32_t query = __shfl_sync(~0u, asked[b], round % kLanes * kGroups + group);
        part[f] = LoadPart(parts + PickLine(query, lines) * kLanes + lane % kLanes);
      }
#pragma unroll
      for (int f = 0; f < kInFlight; ++f) {
        const int round = first + f, b = round / kLanes;
        uint32_t sum = Fold(part[f]);
#pragma unroll
        for (int apart = 1; apart < kLanes; apart *= 2) sum ^= __shfl_xor_sync(~0u, sum, apart);
        sum = __shfl_sync(~0u, sum, lane % kGroups * kLanes);
        if (lane / kGroups == round % kLanes) result[b] = sum;
      }
    }
#pragma unroll
    for (int b = 0; b < kBatches; ++b) results[base + b * kWarp + lane] = result[b];
  }
}

// Computes what RandomReads reads, and counts what differs.
__global__ void CountWrongReads(int lanes, uint64_t lines, uint64_t directory,
                                const uint32_t* queries, const uint32_t* results, size_t size,
                                unsigned long long* wrong) {
  ForEachIndex(size, [=](size_t i) {
    uint32_t query = queries[i], sum = 0;
    if (directory != 0) query ^= Fold(PartAt(PickNode(query, directory)));
    for (int j = 0; j < lanes; ++j) sum ^= Fold(PartAt(PickLine(query, lines) * lanes + j));
    if (sum != results[i]) atomicAdd(wrong, 1ull);
  });
}

__global__ void FillPlaces(uint32_t* places, size_t size, int log2_size) {
  ForEachIndex(size, [=](size_t i) { places[i] = static_cast<uint32_t>(Scramble(i, log2_size)); });
}

__global__ void WriteAt(const uint32_t* places, uint32_t* out, size_t size) {
  ForEachIndex(size, [=](size_t i) { out[places[i]] = static_cast<uint32_t>(i); });
}

__global__ void CountWrongWrites(const uint32_t* places, const uint32_t* out, size_t size,
                                 unsigned long long* wrong) {
  ForEachIndex(size, [=](size_t i) {
    if (out[places[i]] != i) atomicAdd(wrong, 1ull);
  });
}

__global__ void CopyParts(const uint4* from, uint4* to, size_t size) {
  ForEachIndex(size, [=](size_t i) { to[i] = from[i]; });
}

__global__ void CountWrongParts(const uint4* parts, size_t size, unsigned long long* wrong) {
  ForEachIndex(size, [=](size_t i) {
    const uint4 part = parts[i], right = PartAt(i);
    if (Fold(part) != Fold(right) || part.x != right.x) atomicAdd(wrong, 1ull);
  });
}

template <typename Key>
__global__ void CountDifferent(const Key* a, const Key* b, size_t size, unsigned long long* wrong) {
  ForEachIndex(size, [=](size_t i) {
    if (a[i] != b[i]) atomicAdd(wrong, 1ull);
  });
}

// Runs `enqueue(counter)` and gives what it counted as a status.
template <typename Enqueue>
absl::Status CheckNoneWrong(const char* what, cudaStream_t stream, Enqueue enqueue) {
  absl::StatusOr<DeviceBuffer<unsigned long long>> counter =
      DeviceBuffer<unsigned long long>::Allocate(1, stream);
  if (!counter.ok()) return counter.status();
  CAIRN_RETURN_IF_CUDA_FAILS(cudaMemsetAsync(counter->data(), 0, counter->bytes(), stream));
  enqueue(counter->data());
  CAIRN_RETURN_IF_LAUNCH_FAILED("enqueue");
  unsigned long long wrong = 0;
  CAIRN_RETURN_IF_CUDA_FAILS(
      cudaMemcpyAsync(&wrong, counter->data(), sizeof wrong, cudaMemcpyDeviceToHost, stream));
  CAIRN_RETURN_IF_CUDA_FAILS(cudaStreamSynchronize(stream));
  if (wrong == 0) return absl::OkStatus();
  return absl::InternalError(absl::StrFormat("%d of what was %s is wrong", wrong, what));
}

absl::StatusOr<DeviceBuffer<uint4>> MakeParts(size_t bytes, cudaStream_t stream) {
  absl::StatusOr<DeviceBuffer<uint4>> parts =
      DeviceBuffer<uint4>::Allocate(bytes / sizeof(uint4), stream);
  if (!parts.ok() || parts->size() == 0) return parts;
  FillParts<<<SimpleBlocks(parts->size()), kSimpleThreads, 0, stream>>>(parts->data(),
                                                                        parts->size());
  CAIRN_RETURN_IF_LAUNCH_FAILED("FillParts");
  return parts;
}

template <int kLineBytes, int kInFlight>
absl::StatusOr<double> TimeRandomReads(size_t bytes, size_t directory_bytes, size_t queries,
                                       cudaStream_t stream) {
  constexpr int kLanes = kLineBytes / 16;
  queries -= queries % (kWarp * std::max(1, kInFlight / kLanes));
  const auto parts = MakeParts(bytes, stream);
  if (!parts.ok()) return parts.status();
  const auto nodes = MakeParts(directory_bytes, stream);
  if (!nodes.ok()) return nodes.status();
  const auto asked = DeviceBuffer<uint32_t>::Allocate(queries, stream);
  if (!asked.ok()) return asked.status();
  const auto results = DeviceBuffer<uint32_t>::Allocate(queries, stream);
  if (!results.ok()) return results.status();
  FillQueries<<<SimpleBlocks(queries), kSimpleThreads, 0, stream>>>(asked->data(), queries);
  CAIRN_RETURN_IF_LAUNCH_FAILED("FillQueries");

  int device = 0, processors = 0, blocks = 0;
  CAIRN_RETURN_IF_CUDA_FAILS(cudaGetDevice(&device));
  CAIRN_RETURN_IF_CUDA_FAILS(
      cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device));
  CAIRN_RETURN_IF_CUDA_FAILS(cudaOccupancyMaxActiveBlocksPerMultiprocessor(
      &blocks, RandomReads<kLineBytes, kInFlight>, kThreads, 0));
  const uint64_t lines = parts->size() / kLanes;
  const absl::StatusOr<double> seconds = MedianSeconds(stream, [&]() -> absl::Status {
    RandomReads<kLineBytes, kInFlight><<<processors * blocks, kThreads, 0, stream>>>(
        parts->data(), lines, {nodes->data(), nodes->size()}, asked->data(), results->data(),
        queries);
    CAIRN_RETURN_IF_LAUNCH_FAILED("RandomReads");
    return absl::OkStatus();
  });
  if (!seconds.ok()) return seconds;
  const absl::Status right = CheckNoneWrong("read", stream, [&](unsigned long long* wrong) {
    CountWrongReads<<<SimpleBlocks(queries), kSimpleThreads, 0, stream>>>(
        kLanes, lines, nodes->size(), asked->data(), results->data(), queries, wrong);
  });
  if (!right.ok()) return right;
  return seconds;
}

template <int kLineBytes, int kInFlight>
void RegisterReads(int mib, int directory_mib) {
  const std::string pattern = directory_mib == 0
                                  ? absl::StrFormat("random_read_%dB", kLineBytes)
                                  : absl::StrFormat("chain_%dMiB_%dB", directory_mib, kLineBytes);
  RegisterDeviceBenchmark(absl::StrFormat("Limit/gpu/%s/%d/in_flight:%d", pattern, mib, kInFlight),
                          [=](benchmark::State& state, cudaStream_t stream) {
                            const auto seconds = TimeRandomReads<kLineBytes, kInFlight>(
                                size_t(mib) << 20, size_t(directory_mib) << 20, kDeviceQueries,
                                stream);
                            if (seconds.ok()) Report(state, *seconds, {.queries = kDeviceQueries});
                            return seconds.status();
                          });
}

absl::Status RandomWrite(benchmark::State& state, cudaStream_t stream, int mib) {
  const size_t size = (size_t{1} << 20) * mib / sizeof(uint32_t);
  const int log2_size = static_cast<int>(std::bit_width(size)) - 1;
  const auto places = DeviceBuffer<uint32_t>::Allocate(size, stream);
  if (!places.ok()) return places.status();
  const auto out = DeviceBuffer<uint32_t>::Allocate(size, stream);
  if (!out.ok()) return out.status();
  FillPlaces<<<SimpleBlocks(size), kSimpleThreads, 0, stream>>>(places->data(), size, log2_size);
  CAIRN_RETURN_IF_LAUNCH_FAILED("FillPlaces");
  const absl::StatusOr<double> seconds = MedianSeconds(stream, [&]() -> absl::Status {
    WriteAt<<<SimpleBlocks(size), kSimpleThreads, 0, stream>>>(places->data(), out->data(), size);
    CAIRN_RETURN_IF_LAUNCH_FAILED("WriteAt");
    return absl::OkStatus();
  });
  if (!seconds.ok()) return seconds.status();
  Report(state, *seconds, {.queries = size});
  return CheckNoneWrong("written", stream, [&](unsigned long long* wrong) {
    CountWrongWrites<<<SimpleBlocks(size), kSimpleThreads, 0, stream>>>(places->data(), out->data(),
                                                                        size, wrong);
  });
}

enum class CopyWay : uint8_t { kMemcpy, kKernel };

absl::Status Copy(benchmark::State& state, cudaStream_t stream, int mib, CopyWay way) {
  const auto from = MakeParts(size_t(mib) << 20, stream);
  if (!from.ok()) return from.status();
  const auto to = DeviceBuffer<uint4>::Allocate(from->size(), stream);
  if (!to.ok()) return to.status();
  const absl::StatusOr<double> seconds = MedianSeconds(stream, [&]() -> absl::Status {
    if (way == CopyWay::kMemcpy) {
      CAIRN_RETURN_IF_CUDA_FAILS(cudaMemcpyAsync(to->data(), from->data(), from->bytes(),
                                                 cudaMemcpyDeviceToDevice, stream));
      return absl::OkStatus();
    }
    CopyParts<<<SimpleBlocks(from->size()), kSimpleThreads, 0, stream>>>(from->data(), to->data(),
                                                                         from->size());
    CAIRN_RETURN_IF_LAUNCH_FAILED("CopyParts");
    return absl::OkStatus();
  });
  if (!seconds.ok()) return seconds.status();
  Report(state, *seconds, {.moved_bytes = 2 * from->bytes()});
  return CheckNoneWrong("copied", stream, [&](unsigned long long* wrong) {
    CountWrongParts<<<SimpleBlocks(to->size()), kSimpleThreads, 0, stream>>>(to->data(), to->size(),
                                                                             wrong);
  });
}

template <typename Key>
absl::StatusOr<double> TimeSortPairs(int log2_n, cudaStream_t stream) {
  const auto entries = GetEntries<Key>(KeySet::kUniform, log2_n);
  if (!entries.ok()) return entries.status();
  const EntrySet<Key>& e = **entries;
  const auto keys = DeviceBuffer<Key>::Allocate(e.size(), stream);
  if (!keys.ok()) return keys.status();
  const auto row_ids = DeviceBuffer<RowId>::Allocate(e.size(), stream);
  if (!row_ids.ok()) return row_ids.status();
  const auto sort = [&](void* scratch, size_t* bytes) {
    return cub::DeviceRadixSort::SortPairs(scratch, *bytes, e.keys.data(), keys->data(),
                                           e.row_ids.data(), row_ids->data(), e.size(), 0,
                                           static_cast<int>(8 * sizeof(Key)), stream);
  };
  size_t bytes = 0;
  CAIRN_RETURN_IF_CUDA_FAILS(sort(nullptr, &bytes));
  const auto scratch = DeviceBuffer<char>::Allocate(bytes, stream);
  if (!scratch.ok()) return scratch.status();
  const absl::StatusOr<double> seconds = MedianSeconds(stream, [&]() -> absl::Status {
    CAIRN_RETURN_IF_CUDA_FAILS(sort(scratch->data(), &bytes));
    return absl::OkStatus();
  });
  if (!seconds.ok()) return seconds;
  const Key *sorted = keys->data(), *right = e.run.keys.data();
  const absl::Status checked = CheckNoneWrong("sorted", stream, [&](unsigned long long* wrong) {
    CountDifferent<<<SimpleBlocks(e.size()), kSimpleThreads, 0, stream>>>(sorted, right, e.size(),
                                                                          wrong);
  });
  if (!checked.ok()) return checked;
  return seconds;
}

template <typename Key>
void RegisterSort(int log2_n) {
  RegisterDeviceBenchmark(absl::StrFormat("Sort/u%d/n:%d/cub", 8 * sizeof(Key), log2_n),
                          [=](benchmark::State& state, cudaStream_t stream) {
                            const absl::StatusOr<double> seconds =
                                SortPairsSeconds<Key>(log2_n, stream);
                            if (seconds.ok())
                              Report(state, *seconds, {.queries = uint64_t{1} << log2_n});
                            return seconds.status();
                          });
}

const RegisterInMain registered([] {
  for (int mib : {16, 32, 64, 256, 1024, 2048, 4096, 8192}) {
    RegisterReads<32, 4>(mib, 0);
    RegisterReads<64, 2>(mib, 0);
    RegisterReads<64, 4>(mib, 0);
    RegisterReads<64, 8>(mib, 0);
    RegisterReads<128, 4>(mib, 0);
    RegisterReads<64, 8>(mib, 16);
  }
  for (int mib : {64, 512, 4096}) {
    RegisterDeviceBenchmark(absl::StrFormat("Limit/gpu/random_write_4B/%d", mib),
                            [=](benchmark::State& state, cudaStream_t stream) {
                              return RandomWrite(state, stream, mib);
                            });
  }
  for (CopyWay way : {CopyWay::kMemcpy, CopyWay::kKernel}) {
    RegisterDeviceBenchmark(
        absl::StrFormat("Limit/gpu/copy_%s/4096", way == CopyWay::kMemcpy ? "memcpy" : "kernel"),
        [=](benchmark::State& state, cudaStream_t stream) {
          return Copy(state, stream, 4096, way);
        });
  }
  for (int log2_n : {20, 24, 26, 28}) {
    RegisterSort<uint32_t>(log2_n);
    RegisterSort<uint64_t>(log2_n);
  }
});

// measured[arguments], by `measure` if it is not there yet.
template <typename Arguments, typename Measure>
absl::StatusOr<double> Remembered(std::map<Arguments, double>* measured, const Arguments& arguments,
                                  Measure measure) {
  if (const auto at = measured->find(arguments); at != measured->end()) return at->second;
  const absl::StatusOr<double> seconds = measure();
  if (seconds.ok()) measured->emplace(arguments, *seconds);
  return seconds;
}

}  // namespace

absl::StatusOr<double> RandomReadSeconds(size_t bytes, size_t queries, cudaStream_t stream) {
  static std::map<std::pair<size_t, size_t>, double> measured;
  bytes = std::max<size_t>(1, bytes >> 20) << 20;
  return Remembered(&measured, {bytes, queries}, [&]() -> absl::StatusOr<double> {
    double best = 0;
    for (const auto time :
         {TimeRandomReads<64, 2>, TimeRandomReads<64, 4>, TimeRandomReads<64, 8>}) {
      const absl::StatusOr<double> seconds = time(bytes, 0, queries, stream);
      if (!seconds.ok()) return seconds;
      if (best == 0 || *seconds < best) best = *seconds;
    }
    return best;
  });
}

template <typename Key>
absl::StatusOr<double> SortPairsSeconds(int log2_n, cudaStream_t stream) {
  static std::map<int, double> measured;
  return Remembered(&measured, log2_n, [&] { return TimeSortPairs<Key>(log2_n, stream); });
}

template absl::StatusOr<double> SortPairsSeconds<uint32_t>(int, cudaStream_t);
template absl::StatusOr<double> SortPairsSeconds<uint64_t>(int, cudaStream_t);

}  // namespace cairn::bench
