#include "gpu/run/key_survey.h"

#include "gpu/run/key_groups.cuh"
#include "gpu/runtime/cuda_status.h"
#include "gpu/runtime/device_algorithms.cuh"
#include "gpu/runtime/launch.h"
#include "index/layout/packed_leaves.h"
#include "index/layout/wide_key.h"
#include "index/machine/status_macros.h"

namespace cairn::gpu {
namespace {

constexpr int kWidths = KeySurvey<uint64_t>::kWidths;

struct SurveyCounts {
  unsigned long long distinct, key_descents, row_descents, no_rows, long_runs, blocks[kWidths],
      gaps[kWidths];
};

template <typename Key>
__global__ void CountKeys(const Key* keys, const RowId* row_ids, size_t size,
                          SurveyCounts* counts) {
  constexpr int kKeyBits = static_cast<int>(sizeof(Key)) * 8;
  unsigned distinct = 0, key_descents = 0, row_descents = 0, no_rows = 0, long_runs = 0;
  unsigned blocks[kWidths] = {}, gaps[kWidths] = {};
  ForEachKeyGroup(keys, size, [&](size_t first, const auto& group, int count) {
#pragma unroll
    for (int j = 0; j < kKeyGroup<Key>; ++j) {
      if (j >= count) continue;
      const size_t i = first + j;
      const Key key = group[1 + j], before = group[j];
      const RowId row_id = row_ids[i];
      no_rows += row_id == kNoRow;
      if (i != 0 && key == before) {
        row_descents += row_id < row_ids[i - 1];
        constexpr size_t kLongRun = KeySurvey<Key>::kLongRun;
        long_runs += i >= kLongRun && keys[i - kLongRun] == key;
        continue;
      }
      key_descents += i != 0 && key < before;
      ++distinct;
#pragma unroll
      for (int width = 0; width < kWidths; ++width) {
        const int bits = 16 * (width + 1);
        if (bits >= kKeyBits) continue;
        const Key step = (key >> bits) - (before >> bits);
        blocks[width] += i == 0 || step != 0;
        gaps[width] += i == 0 ? step != 0 : step > 1;
      }
    }
  });
  const auto add = [](unsigned count, unsigned long long* sum) {
    count = __reduce_add_sync(0xffffffffu, count);
    if (threadIdx.x % 32 == 0 && count != 0) atomicAdd(sum, count);
  };
  add(distinct, &counts->distinct);
  add(key_descents, &counts->key_descents);
  add(row_descents, &counts->row_descents);
  add(no_rows, &counts->no_rows);
  add(long_runs, &counts->long_runs);
#pragma unroll
  for (int width = 0; width < kWidths; ++width) {
    add(blocks[width], &counts->blocks[width]);
    add(gaps[width], &counts->gaps[width]);
  }
}

}  // namespace

template <typename Key>
int KeySurvey<Key>::BestLeafBits(size_t size) const {
  constexpr int kKeyBits = static_cast<int>(sizeof(Key)) * 8;
  int best = kKeyBits;
  double fewest = static_cast<double>(size) / LeafEntries(best);
  // For 128-bit keys, leaves keep all or half of the bits.
  for (int width = kKeyBits == 128 ? 3 : 0; width < kWidths; ++width) {
    const int bits = 16 * (width + 1);
    if (bits >= kKeyBits) break;
    // On average, a block's last leaf is half empty.
    const double leaves = static_cast<double>(size) / LeafEntries(bits) +
                          0.5 * static_cast<double>(blocks[width]) +
                          static_cast<double>(gaps[width]);
    if (leaves < fewest) best = bits, fewest = leaves;
  }
  return best;
}

template <typename Key>
absl::StatusOr<KeySurvey<Key>> SurveyKeys(const Key* keys, const RowId* row_ids, size_t size,
                                          cudaStream_t stream) {
  KeySurvey<Key> survey = {};
  DeviceBuffer<SurveyCounts> counts;
  RETURN_IF_ERROR(Resize(&counts, 1, stream));
  CAIRN_RETURN_IF_CUDA_FAILS(cudaMemsetAsync(counts.data(), 0, counts.bytes(), stream));
  CAIRN_RETURN_IF_LAUNCH_FAILS("CountKeys", SimpleShape(size), stream, CountKeys<Key>, keys,
                               row_ids, size, counts.data());
  CAIRN_RETURN_IF_CUDA_FAILS(
      cudaMemcpyAsync(&survey.least, keys, sizeof(Key), cudaMemcpyDeviceToHost, stream));
  CAIRN_RETURN_IF_CUDA_FAILS(cudaMemcpyAsync(&survey.greatest, keys + size - 1, sizeof(Key),
                                             cudaMemcpyDeviceToHost, stream));
  ASSIGN_OR_RETURN(const SurveyCounts read, ReadBack(counts.data(), stream));
  survey.distinct = read.distinct;
  survey.keys_ascend = read.key_descents == 0;
  survey.rows_ascend = read.row_descents == 0;
  survey.has_no_row = read.no_rows != 0;
  survey.has_long_run = read.long_runs != 0;
  for (int width = 0; width < kWidths; ++width) {
    survey.blocks[width] = read.blocks[width];
    survey.gaps[width] = read.gaps[width];
  }
  return survey;
}

template struct KeySurvey<uint32_t>;
template struct KeySurvey<uint64_t>;
template struct KeySurvey<WideKey>;
template absl::StatusOr<KeySurvey<uint32_t>> SurveyKeys(const uint32_t*, const RowId*, size_t,
                                                        cudaStream_t);
template absl::StatusOr<KeySurvey<uint64_t>> SurveyKeys(const uint64_t*, const RowId*, size_t,
                                                        cudaStream_t);
template absl::StatusOr<KeySurvey<WideKey>> SurveyKeys(const WideKey*, const RowId*, size_t,
                                                       cudaStream_t);

}  // namespace cairn::gpu
