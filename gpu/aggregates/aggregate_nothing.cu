#include "gpu/aggregates/aggregate_output.cuh"
#include "gpu/aggregates/aggregate_search.h"
#include "gpu/runtime/cuda_status.h"
#include "gpu/runtime/launch.h"

namespace cairn::gpu {
namespace {

__global__ void WriteNothing(size_t ranges, AggregateOutput output) {
  ForEachIndex(ranges, [=](size_t i) {
    const AggregateWriter writer = {output, i};
    writer.Count(0);
    if (output.function == AggregateFunction::kCountDistinct) {
      writer.Put(0, DeviceResult::kValue);
    } else if (output.function != AggregateFunction::kCount) {
      writer.PutNull();
    }
  });
}

}  // namespace

absl::Status AggregateNothing(size_t ranges, const AggregateOutput& output, cudaStream_t stream) {
  CAIRN_RETURN_IF_LAUNCH_FAILS("WriteNothing", SimpleShape(ranges), stream, WriteNothing, ranges,
                               output);
  return absl::OkStatus();
}

}  // namespace cairn::gpu
