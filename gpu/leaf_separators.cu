#include "gpu/leaf_separators.h"

#include "gpu/cuda_status.h"
#include "gpu/launch.h"
#include "gpu/leaf_start.cuh"

namespace cairn::gpu {
namespace {

template <typename Key>
__global__ void WriteSeparators(const Key* keys, size_t size, const Position* first,
                                size_t separators, int bits, Key* out) {
  ForEachIndex(separators, [=](size_t i) {
    const LeafStart<Key> start = FindLeafStart(keys, size, first, i + 1, bits);
    out[i] = start.least - 1 + (start.greatest - start.least) / 2;
  });
}

}  // namespace

template <typename Key>
absl::StatusOr<DeviceBuffer<Key>> ChooseSeparators(const Key* keys, size_t size, const LeafCut& cut,
                                                   cudaStream_t stream) {
  DeviceBuffer<Key> separators;
  const size_t count = cut.primary - 1;
  if (absl::Status s = Resize(&separators, count, stream); !s.ok()) return s;
  WriteSeparators<<<SimpleBlocks(count), kSimpleThreads, 0, stream>>>(
      keys, size, cut.first.data(), count, cut.bits, separators.data());
  CAIRN_RETURN_IF_LAUNCH_FAILED("WriteSeparators");
  return separators;
}

template absl::StatusOr<DeviceBuffer<uint32_t>> ChooseSeparators(const uint32_t*, size_t,
                                                                 const LeafCut&, cudaStream_t);
template absl::StatusOr<DeviceBuffer<uint64_t>> ChooseSeparators(const uint64_t*, size_t,
                                                                 const LeafCut&, cudaStream_t);

}  // namespace cairn::gpu
