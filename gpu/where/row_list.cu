#include "gpu/where/row_list.h"

#include "gpu/runtime/launch.h"
#include "gpu/where/row_list.cuh"
#include "gpu/where/where_view.h"
#include "index/machine/status_macros.h"

namespace cairn::gpu {
namespace {

constexpr int kListWords = 4;  // of a thread

__global__ void __launch_bounds__(kListThreads)
    ListBits(const uint32_t* bitmap, uint64_t bitmap_words, RowList list) {
  const uint64_t first = uint64_t{blockIdx.x} * (kListWords * kListThreads);
  uint32_t words[kListWords];
#pragma unroll
  for (int i = 0; i < kListWords; ++i) {
    const uint64_t word = first + i * kListThreads + threadIdx.x;
    words[i] = word < bitmap_words ? __ldcs(bitmap + word) : 0;
  }
  ListBlockRows(words, static_cast<RowId>(first * 32), list);
}

}  // namespace

absl::StatusOr<DeviceBuffer<uint64_t>> MakeListStates(uint64_t rows, cudaStream_t stream) {
  ASSIGN_OR_RETURN(auto states, DeviceBuffer<uint64_t>::Allocate(TilesOf(rows), stream));
  CAIRN_RETURN_IF_CUDA_FAILS(cudaMemsetAsync(states.data(), 0, states.bytes(), stream));
  return states;
}

absl::Status ListBitmap(const uint32_t* bitmap, uint64_t rows, const RowList& list,
                        cudaStream_t stream) {
  const uint64_t tiles = TilesOf(rows);
  const auto blocks = static_cast<unsigned>((tiles + kListWords - 1) / kListWords);
  CAIRN_RETURN_IF_LAUNCH_FAILS("ListBits", {blocks, kListThreads}, stream, ListBits, bitmap,
                               tiles * (kTileRows / 32), list);
  return absl::OkStatus();
}

}  // namespace cairn::gpu
