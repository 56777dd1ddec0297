// Limit/gpu/random_read_<32, 64 or 128>B/<MiB>/in_flight:<f>: 2^27 independent random reads in
// memory of this size, each with a 4-byte query read and a 4-byte result written. 16 bytes per
// lane, f reads per lane in flight. Limit/gpu/chain_<d>MiB_64B/<MiB>/in_flight:<f>: the same with
// 64 bytes, at a place that a 16-byte read in d MiB determines: the cost of a directory and a leaf.
#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_format.h"
#include "gpu/runtime/cuda_status.h"
#include "gpu/runtime/device_memory.h"
#include "gpu/runtime/launch.h"
#include "index/machine/status_macros.h"
#include "tools/bench/gpu/check_each.cuh"
#include "tools/bench/gpu/device_bench.h"
#include "tools/bench/gpu/device_data.h"
#include "tools/bench/gpu/gpu_limit.h"
#include "tools/bench/gpu/key_rule.cuh"
#include "tools/bench/gpu/launch_check.h"

namespace cairn::bench {
namespace {

using gpu::DeviceBuffer;
using gpu::ForEachIndex;
using gpu::kSimpleThreads;
using gpu::SimpleBlocks;

constexpr int kWarp = 32;
constexpr int kThreads = 256;
constexpr uint64_t kSeed = 20261121;

// Part i, of 16 bytes, of the memory that limits are measured on.
__host__ __device__ uint4 PartAt(uint64_t i) {
  const uint64_t a = DrawRandom(kSeed, 2 * i), b = DrawRandom(kSeed, 2 * i + 1);
  return {static_cast<uint32_t>(a), static_cast<uint32_t>(a >> 32), static_cast<uint32_t>(b),
          static_cast<uint32_t>(b >> 32)};
}
__host__ __device__ uint32_t Fold(uint4 part) {
  return part.x ^ part.y ^ part.z ^ part.w;
}
__global__ void FillParts(uint4* parts, size_t size) {
  ForEachIndex(size, [=](size_t i) { parts[i] = PartAt(i); });
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

// The line, of `count` lines, that a random number selects.
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

__global__ void FillQueries(uint32_t* queries, size_t size) {
  ForEachIndex(size,
               [=](size_t i) { queries[i] = static_cast<uint32_t>(DrawRandom(kSeed + 1, i)); });
}

// How the caches treat a line: it is not kept in L1, and the L2 evicts it like others or first.
enum class LineHint : uint8_t { kNoAllocate, kEvictFirst };

template <LineHint kHint>
__device__ uint4 LoadPart(const uint4* part) {
  uint4 value;
  if constexpr (kHint == LineHint::kNoAllocate) {
    asm("ld.global.nc.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
        : "=r"(value.x), "=r"(value.y), "=r"(value.z), "=r"(value.w)
        : "l"(part));
  } else {
    asm("{ .reg .b64 policy; createpolicy.fractional.L2::evict_first.b64 policy, 1.0;"
        "ld.global.nc.L1::no_allocate.L2::cache_hint.v4.u32 {%0, %1, %2, %3}, [%4], policy; }"
        : "=r"(value.x), "=r"(value.y), "=r"(value.z), "=r"(value.w)
        : "l"(part));
  }
  return value;
}

// results[i] = all words of the line of query i, xored. One lane reads each part of a line, for
// kInFlight queries at once. `size` must be a multiple of the queries of a warp's step.
template <int kLineBytes, int kInFlight, LineHint kHint>
__global__ void __launch_bounds__(kThreads)
    RandomReads(const uint4* parts, uint64_t lines, Directory directory, const uint32_t* queries,
                uint32_t* results, size_t size) {
  constexpr int kLanes = kLineBytes / 16, kGroups = kWarp / kLanes;
  // A warp's step: kBatches queries per lane, and kLanes rounds for each. In every round a group of
  // lanes reads a line.
  constexpr int kBatches = kInFlight > kLanes ? kInFlight / kLanes : 1;
  constexpr int kRounds = kBatches * kLanes;
  const int lane = static_cast<int>(threadIdx.x) % kWarp, group = lane / kLanes;
  const size_t warp = (size_t{blockIdx.x} * kThreads + threadIdx.x) / kWarp;
  const size_t stride = size_t{gridDim.x} * kThreads * kBatches;
  for (size_t base = warp * kWarp * kBatches; base < size; base += stride) {
    uint32_t asked[kBatches], result[kBatches] = {};
#pragma unroll
    for (int b = 0; b < kBatches; ++b) asked[b] = __ldcs(queries + base + b * kWarp + lane);
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
        part[f] = LoadPart<kHint>(parts + PickLine(query, lines) * kLanes + lane % kLanes);
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
    for (int b = 0; b < kBatches; ++b) __stcs(results + base + b * kWarp + lane, result[b]);
  }
}

template <int kLineBytes, int kInFlight, LineHint kHint>
absl::StatusOr<double> TimeRandomReads(size_t bytes, size_t directory_bytes, size_t queries,
                                       cudaStream_t stream) {
  constexpr int kLanes = kLineBytes / 16;
  queries -= queries % (kWarp * std::max(1, kInFlight / kLanes));
  ASSIGN_OR_RETURN(const auto parts, MakeParts(bytes, stream));
  ASSIGN_OR_RETURN(const auto nodes, MakeParts(directory_bytes, stream));
  ASSIGN_OR_RETURN(const auto asked, DeviceBuffer<uint32_t>::Allocate(queries, stream));
  ASSIGN_OR_RETURN(const auto results, DeviceBuffer<uint32_t>::Allocate(queries, stream));
  FillQueries<<<SimpleBlocks(queries), kSimpleThreads, 0, stream>>>(asked.data(), queries);
  CAIRN_RETURN_IF_LAUNCH_FAILED("FillQueries");

  int device = 0, processors = 0, blocks = 0;
  CAIRN_RETURN_IF_CUDA_FAILS(cudaGetDevice(&device));
  CAIRN_RETURN_IF_CUDA_FAILS(
      cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device));
  CAIRN_RETURN_IF_CUDA_FAILS(cudaOccupancyMaxActiveBlocksPerMultiprocessor(
      &blocks, RandomReads<kLineBytes, kInFlight, kHint>, kThreads, 0));
  const uint64_t lines = parts.size() / kLanes;
  const absl::StatusOr<double> seconds = MedianSeconds(stream, [&]() -> absl::Status {
    RandomReads<kLineBytes, kInFlight, kHint><<<processors * blocks, kThreads, 0, stream>>>(
        parts.data(), lines, {nodes.data(), nodes.size()}, asked.data(), results.data(), queries);
    CAIRN_RETURN_IF_LAUNCH_FAILED("RandomReads");
    return absl::OkStatus();
  });
  if (!seconds.ok()) return seconds;
  const uint64_t node_count = nodes.size();
  const uint32_t *queries_read = asked.data(), *sums = results.data();
  const absl::Status right = CheckEach(queries, stream, [=] __device__(size_t i) {
    uint32_t query = queries_read[i], sum = 0;
    if (node_count != 0) query ^= Fold(PartAt(PickNode(query, node_count)));
    const uint64_t line = PickLine(query, lines);
    for (int j = 0; j < kLanes; ++j) sum ^= Fold(PartAt(line * kLanes + j));
    return sum != sums[i];
  });
  if (!right.ok()) return right;
  return seconds;
}

template <int kLineBytes, int kInFlight, LineHint kHint>
void RegisterReads(int mib, int directory_mib) {
  const std::string pattern = directory_mib == 0
                                  ? absl::StrFormat("random_read_%dB", kLineBytes)
                                  : absl::StrFormat("chain_%dMiB_%dB", directory_mib, kLineBytes);
  RegisterDeviceBenchmark(absl::StrFormat("Limit/gpu/%s/%d/in_flight:%d%s", pattern, mib, kInFlight,
                                          kHint == LineHint::kEvictFirst ? "/evict_first" : ""),
                          [=](benchmark::State& state, cudaStream_t stream) {
                            const auto seconds = TimeRandomReads<kLineBytes, kInFlight, kHint>(
                                size_t(mib) << 20, size_t(directory_mib) << 20, kDeviceQueries,
                                stream);
                            if (seconds.ok()) Report(state, *seconds, {.queries = kDeviceQueries});
                            return seconds.status();
                          });
}

const RegisterInMain reads_registered([] {
  constexpr LineHint kPlain = LineHint::kNoAllocate, kEvictFirst = LineHint::kEvictFirst;
  for (int mib : {8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192}) {
    RegisterReads<32, 8, kPlain>(mib, 0);
    RegisterReads<64, 2, kPlain>(mib, 0);
    RegisterReads<64, 8, kPlain>(mib, 0);
    RegisterReads<64, 8, kEvictFirst>(mib, 0);
    RegisterReads<128, 8, kPlain>(mib, 0);
    RegisterReads<64, 8, kEvictFirst>(mib, 16);
    RegisterReads<64, 8, kEvictFirst>(mib, 32);
  }
});

}  // namespace

absl::StatusOr<double> RandomReadSeconds(size_t bytes, size_t queries, cudaStream_t stream) {
  static std::map<std::pair<size_t, size_t>, double> measured;
  bytes = std::max<size_t>(1, bytes >> 20) << 20;
  const auto [at, is_new] = measured.try_emplace({bytes, queries}, 0.0);
  if (!is_new) return at->second;
  for (const auto time : {TimeRandomReads<64, 2, LineHint::kNoAllocate>,
                          TimeRandomReads<64, 8, LineHint::kNoAllocate>,
                          TimeRandomReads<64, 8, LineHint::kEvictFirst>}) {
    const absl::StatusOr<double> seconds = time(bytes, 0, queries, stream);
    if (!seconds.ok()) {
      measured.erase(at);
      return seconds;
    }
    if (at->second == 0 || *seconds < at->second) at->second = *seconds;
  }
  return at->second;
}

}  // namespace cairn::bench
