// SkewedScan/<index>/<key>/n:<log2 n>/<shape>: the row ids of 2^22 ranges of unequal lengths,
// copied (CopyRows) from positions in device memory. rows_per_s counts rows. Shapes:
//   one_long    2^26 rows of one range, none of the others;
//   long_short  2^26 rows of one range, four of each of the others;
//   sparse      four rows of every 64th range, none of the others;
//   zipf        2^24 / i rows of the i-th longest, at random places among the others;
//   even        sixteen rows of each.
// ratio_to_limit is to cudaMemcpy of the same bytes of rows within device memory, in the same
// process.
#include <algorithm>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "cairn/device.h"
#include "gpu/runtime/cuda_status.h"
#include "gpu/runtime/device_memory.h"
#include "index/machine/status_macros.h"
#include "tools/bench/gpu/check_each.cuh"
#include "tools/bench/gpu/device_bench.h"
#include "tools/bench/gpu/device_data.h"

namespace cairn::bench::gpu_skewed_scan {
namespace {

using gpu::DeviceBuffer;

constexpr size_t kRanges = size_t{1} << 22;
constexpr uint64_t kLong = uint64_t{1} << 26;

// The number of rows of each range.
std::vector<uint64_t> LengthsOf(const std::string& shape, uint64_t entries) {
  std::vector<uint64_t> lengths(kRanges);
  for (size_t i = 0; i < kRanges; ++i) {
    lengths[i] = shape == "long_short"              ? 4
                 : shape == "sparse" && i % 64 == 0 ? 4
                 : shape == "even"                  ? 16
                 : shape == "zipf"                  ? (uint64_t{1} << 24) / (i + 1)
                                                    : 0;
  }
  if (shape == "one_long" || shape == "long_short") lengths[kRanges / 3] = kLong;
  if (shape == "zipf") std::shuffle(lengths.begin(), lengths.end(), std::mt19937_64(1));
  for (uint64_t& length : lengths) length = std::min(length, entries);
  return lengths;
}

template <typename T>
absl::StatusOr<DeviceBuffer<T>> Upload(const std::vector<T>& values, cudaStream_t stream) {
  ASSIGN_OR_RETURN(DeviceBuffer<T> buffer, DeviceBuffer<T>::Allocate(values.size(), stream));
  CAIRN_RETURN_IF_CUDA_FAILS(cudaMemcpyAsync(buffer.data(), values.data(), buffer.bytes(),
                                             cudaMemcpyHostToDevice, stream));
  CAIRN_RETURN_IF_CUDA_FAILS(cudaStreamSynchronize(stream));
  return buffer;
}

// The start of each range, and the offset of its rows in the output.
struct Ranges {
  DeviceBuffer<Position> begin;
  DeviceBuffer<uint64_t> offsets;
  uint64_t rows = 0;
};

absl::StatusOr<Ranges> MakeRanges(const std::string& shape, uint64_t entries, cudaStream_t stream) {
  const std::vector<uint64_t> lengths = LengthsOf(shape, entries);
  std::vector<Position> begin(kRanges);
  std::vector<uint64_t> offsets(kRanges + 1);
  std::mt19937_64 random(2);
  for (size_t i = 0; i < kRanges; ++i) {
    begin[i] = static_cast<Position>(random() % (entries - lengths[i] + 1));
    offsets[i + 1] = offsets[i] + lengths[i];
  }
  ASSIGN_OR_RETURN(DeviceBuffer<Position> on_device, Upload(begin, stream));
  ASSIGN_OR_RETURN(DeviceBuffer<uint64_t> ends, Upload(offsets, stream));
  return Ranges{std::move(on_device), std::move(ends), offsets.back()};
}

absl::StatusOr<double> CopySeconds(uint64_t rows, cudaStream_t stream) {
  ASSIGN_OR_RETURN(const auto memory, DeviceBuffer<RowId>::Allocate(2 * rows, stream));
  return MedianSeconds(stream, [&]() -> absl::Status {
    CAIRN_RETURN_IF_CUDA_FAILS(cudaMemcpyAsync(memory.data() + rows, memory.data(),
                                               rows * sizeof(RowId), cudaMemcpyDeviceToDevice,
                                               stream));
    return absl::OkStatus();
  });
}

// Whether row r of the output is wrong.
struct IsWrongRow {
  const Position* begin;
  const uint64_t* offsets;
  const RowId* expected;  // by position
  const RowId* found;

  __device__ bool operator()(uint64_t r) const {
    size_t least = 0, most = kRanges;  // the last range that begins at or before it
    while (most - least > 1) {
      const size_t middle = (least + most) / 2;
      (offsets[middle] <= r ? least : most) = middle;
    }
    return found[r] != expected[begin[least] + (r - offsets[least])];
  }
};

template <typename Key>
absl::Status SkewedScan(benchmark::State& state, cudaStream_t stream, const std::string& factory,
                        int log2_n, const std::string& shape) {
  ASSIGN_OR_RETURN(const auto entries, GetEntries<Key>(KeySet::kUniform, log2_n));
  ASSIGN_OR_RETURN(const auto index, GetIndex<Key>(factory, KeySet::kUniform, log2_n));
  ASSIGN_OR_RETURN(const auto ranges, MakeRanges(shape, entries->size(), stream));
  ASSIGN_OR_RETURN(const auto out, DeviceBuffer<RowId>::Allocate(ranges.rows, stream));
  ASSIGN_OR_RETURN(const double seconds, MedianSeconds(stream, [&] {
                     return index->CopyRows(ranges.begin.data(), ranges.offsets.data(), kRanges,
                                            ranges.rows, Order::kAscending, out.data(), stream);
                   }));
  ASSIGN_OR_RETURN(const double limit, CopySeconds(ranges.rows, stream));
  Report(state, seconds,
         {.queries = kRanges,
          .rows = ranges.rows,
          .bytes = index->memory_bytes(),
          .entries = entries->size(),
          .limit_seconds = limit});
  return CheckEach(ranges.rows, stream,
                   IsWrongRow{ranges.begin.data(), ranges.offsets.data(),
                              entries->run.row_ids.data(), out.data()});
}

template <typename Key>
void RegisterKey(int log2_n) {
  for (const char* index : {"gpu:packed", "gpu:packed,directory=tree", "gpu:packed,rows",
                            "gpu:btree", "gpu:sorted_array"}) {
    for (const char* shape : {"one_long", "long_short", "sparse", "zipf", "even"}) {
      RegisterDeviceBenchmark(
          absl::StrFormat("SkewedScan/%s/u%d/n:%d/%s", index, 8 * sizeof(Key), log2_n, shape),
          [=](benchmark::State& state, cudaStream_t stream) {
            return SkewedScan<Key>(state, stream, index, log2_n, shape);
          });
    }
  }
}

const RegisterInMain registered([] {
  RegisterKey<uint32_t>(26);
  RegisterKey<uint64_t>(26);
});

}  // namespace
}  // namespace cairn::bench::gpu_skewed_scan
