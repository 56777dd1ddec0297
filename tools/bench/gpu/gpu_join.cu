// Join/<answer>/<shape>/<key>/n:<log2 n>: two sides of 2^k sorted keys in device memory. rows_per_s
// counts the keys of both sides. <answer> is pairs (JoinDevice) or count (CountDeviceJoin). Shapes:
//   half_match    distinct keys, half of them on both sides;
//   no_match      distinct keys, none of them on both sides;
//   foreign_key   sixteen entries per key on the left, one on the right, all on both sides;
//   foreign_left  the same, the other way around.
// ratio_to_limit is to cudaMemcpy of the keys' bytes, with pairs also of the bytes of row ids and
// pairs, in the same process.
#include <string>
#include <utility>

#include "absl/strings/str_format.h"
#include "cairn/device/join.h"
#include "gpu/run/device_run.h"
#include "gpu/runtime/cuda_status.h"
#include "gpu/runtime/device_algorithms.cuh"
#include "gpu/runtime/device_memory.h"
#include "gpu/runtime/launch.h"
#include "index/machine/status_macros.h"
#include "tools/bench/gpu/check_each.cuh"
#include "tools/bench/gpu/device_bench.h"
#include "tools/bench/gpu/device_data.h"
#include "tools/bench/gpu/gpu_limit.h"
#include "tools/bench/gpu/key_rule.cuh"
#include "tools/bench/gpu/launch_check.h"

namespace cairn::bench::gpu_join {
namespace {

using gpu::DeviceBuffer;
using gpu::DeviceRun;
using gpu::ForEachIndex;
using gpu::kSimpleThreads;
using gpu::SimpleBlocks;

// The key of row i of a side: number i / rows_of_key + first of a sequence of distinct ones.
struct SideRule {
  uint64_t first;
  uint64_t rows_of_key;

  template <typename Key>
  __host__ __device__ Key KeyOf(uint64_t row) const {
    return static_cast<Key>(Scramble(first + row / rows_of_key, 8 * sizeof(Key)));
  }
};

template <typename Key>
__global__ void FillSide(SideRule rule, Key* keys, RowId* row_ids, size_t size) {
  ForEachIndex(size, [=](size_t i) {
    keys[i] = rule.KeyOf<Key>(i);
    row_ids[i] = static_cast<RowId>(i);
  });
}

template <typename Key>
absl::StatusOr<DeviceRun<Key>> MakeSide(SideRule rule, size_t size, cudaStream_t stream) {
  ASSIGN_OR_RETURN(const auto keys, DeviceBuffer<Key>::Allocate(size, stream));
  ASSIGN_OR_RETURN(const auto row_ids, DeviceBuffer<RowId>::Allocate(size, stream));
  FillSide<<<SimpleBlocks(size), kSimpleThreads, 0, stream>>>(rule, keys.data(), row_ids.data(),
                                                              size);
  CAIRN_RETURN_IF_LAUNCH_FAILED("FillSide");
  return gpu::SortToRun(keys.data(), row_ids.data(), size, stream);
}

struct JoinCase {
  std::string shape;
  bool pairs;
  int log2_n;

  size_t size() const { return size_t{1} << log2_n; }
  SideRule left() const { return {0, shape == "foreign_key" ? 16u : 1u}; }
  SideRule right() const {
    const uint64_t first = shape == "half_match" ? size() / 2 : shape == "no_match" ? size() : 0;
    return {first, shape == "foreign_left" ? 16u : 1u};
  }
  uint64_t matches() const {
    return shape == "half_match" ? size() / 2 : shape == "no_match" ? 0 : size();
  }
};

// Pairs must have equal keys and be ordered by key, then by rows, so they are complete.
template <typename Key>
absl::Status CheckPairs(const JoinCase& join, const RowId* left, const RowId* right,
                        cudaStream_t stream) {
  const SideRule a = join.left(), b = join.right();
  const size_t size = join.size();
  return CheckEach(join.matches(), stream, [=] __device__(size_t i) {
    if (left[i] >= size || right[i] >= size) return true;
    const Key key = a.KeyOf<Key>(left[i]);
    if (key != b.KeyOf<Key>(right[i])) return true;
    if (i == 0) return false;
    const Key before = a.KeyOf<Key>(left[i - 1]);
    if (before != key) return before > key;
    return left[i - 1] > left[i] || (left[i - 1] == left[i] && right[i - 1] >= right[i]);
  });
}

template <typename Key>
absl::Status RunJoin(benchmark::State& state, cudaStream_t stream, const JoinCase& join) {
  const size_t size = join.size();
  ASSIGN_OR_RETURN(const auto left, MakeSide<Key>(join.left(), size, stream));
  ASSIGN_OR_RETURN(const auto right, MakeSide<Key>(join.right(), size, stream));
  const DeviceEntries a = {DeviceKeys(left.keys.data(), size), left.row_ids.data()};
  const DeviceEntries b = {DeviceKeys(right.keys.data(), size), right.row_ids.data()};
  const uint64_t matches = join.matches(), room = join.pairs ? matches : 0;
  ASSIGN_OR_RETURN(const auto total, DeviceBuffer<uint64_t>::Allocate(1, stream));
  ASSIGN_OR_RETURN(const auto left_rows, DeviceBuffer<RowId>::Allocate(room, stream));
  ASSIGN_OR_RETURN(const auto right_rows, DeviceBuffer<RowId>::Allocate(room, stream));
  if (room != 0) {
    CAIRN_RETURN_IF_CUDA_FAILS(cudaMemsetAsync(left_rows.data(), 0xff, left_rows.bytes(), stream));
  }
  ASSIGN_OR_RETURN(
      const double seconds, MedianSeconds(stream, [&] {
        return join.pairs
                   ? JoinDevice(a, b, {left_rows.data(), right_rows.data(), matches, total.data()},
                                stream)
                   : CountDeviceJoin(a, b, total.data(), stream);
      }));
  ASSIGN_OR_RETURN(const double copy, CopySeconds(stream));
  const uint64_t bytes =
      2 * size * (sizeof(Key) + (room != 0 ? sizeof(RowId) : 0)) + room * 2 * sizeof(RowId);
  Report(state, seconds,
         {.rows = 2 * size,
          .moved_bytes = bytes,
          .limit_seconds = copy * static_cast<double>(bytes) / (2.0 * kCopiedBytes)});
  ASSIGN_OR_RETURN(const uint64_t found, gpu::ReadBack(total.data(), stream));
  if (found != matches) {
    return absl::InternalError(absl::StrFormat("%d pairs, expected %d", found, matches));
  }
  if (room == 0) return absl::OkStatus();
  return CheckPairs<Key>(join, left_rows.data(), right_rows.data(), stream);
}

template <typename Key>
void RegisterSize(int log2_n) {
  for (const char* shape : {"half_match", "no_match", "foreign_key", "foreign_left"}) {
    for (const bool pairs : {true, false}) {
      const JoinCase join = {shape, pairs, log2_n};
      RegisterDeviceBenchmark(absl::StrFormat("Join/%s/%s/u%d/n:%d", pairs ? "pairs" : "count",
                                              shape, 8 * sizeof(Key), log2_n),
                              [join](benchmark::State& state, cudaStream_t stream) {
                                return RunJoin<Key>(state, stream, join);
                              });
    }
  }
}

const RegisterInMain registered([] {
  for (int log2_n : {20, 24, 28}) {
    RegisterSize<uint32_t>(log2_n);
    RegisterSize<uint64_t>(log2_n);
  }
});

}  // namespace
}  // namespace cairn::bench::gpu_join
