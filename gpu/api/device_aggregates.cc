#include "cairn/device/aggregates.h"

#include <cuda_runtime.h>

#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "gpu/aggregates/aggregate_tables.h"
#include "gpu/run/device_run.h"
#include "gpu/run/row_numbers.h"
#include "gpu/runtime/cuda_status.h"
#include "gpu/runtime/device_memory.h"
#include "gpu/runtime/devices.h"
#include "gpu/runtime/stream.h"
#include "gpu/runtime/stream_check.h"
#include "gpu/runtime/stream_uses.h"
#include "index/machine/guard.h"
#include "index/machine/status_macros.h"

namespace cairn {
namespace {

using MadeAggregates = absl::StatusOr<std::unique_ptr<DeviceAggregates>>;

absl::Status CheckAggregatedKeys(PhysicalType kind) {
  if (kind != PhysicalType::kBytes) return absl::OkStatus();
  return absl::UnimplementedError(
      "aggregates on a device: expected integer keys, got byte strings");
}

// Sorts entries by key, each with the index of its value.
template <typename Key>
absl::StatusOr<gpu::DeviceRun<Key>> SortForAggregates(const Key* keys, const RowId* row_ids,
                                                      size_t size, cudaStream_t stream) {
  if (row_ids != nullptr) return gpu::SortToRun(keys, row_ids, size, stream);
  ASSIGN_OR_RETURN(const gpu::DeviceBuffer<RowId> numbers, gpu::RowNumbers(size, stream));
  return gpu::SortToRun(keys, numbers.data(), size, stream);
}

// Builds from make_run(stream) and waits.
template <typename Key, typename MakeRun>
MadeAggregates BuildAndWaitFor(MakeRun make_run, absl::Span<const DeviceColumn> columns,
                               absl::Span<const DeviceAggregate> aggregates, cudaStream_t stream) {
  const auto build = [&]() -> MadeAggregates {
    const gpu::KeepsFreedMemory keeps;
    ASSIGN_OR_RETURN(gpu::DeviceRun<Key> run, make_run(stream));
    return gpu::BuildAggregates(std::move(run), columns, aggregates, stream);
  };
  MadeAggregates built = build();
  if (built.ok()) CAIRN_RETURN_IF_CUDA_FAILS(cudaStreamSynchronize(stream));
  return built;
}

}  // namespace

absl::Status DeviceAggregates::Execute(const DeviceRanges& ranges, const DeviceAggregate& aggregate,
                                       const DeviceAggregateResults& results,
                                       DeviceStream stream) const {
  if (ranges.lower.size() != ranges.upper.size()) {
    return absl::InvalidArgumentError(absl::StrFormat("%d lower keys, but %d upper keys",
                                                      ranges.lower.size(), ranges.upper.size()));
  }
  if (ranges.lower_bound == Bound::kPrefix || ranges.upper_bound == Bound::kPrefix) {
    return absl::InvalidArgumentError(
        "Bound::kPrefix: expected as an upper bound of byte-string keys only");
  }
  for (const auto& [keys, bound] :
       {std::pair(ranges.lower, ranges.lower_bound), std::pair(ranges.upper, ranges.upper_bound)}) {
    if (keys.empty() || bound == Bound::kOpen || keys.kind() == kind_) continue;
    return absl::InvalidArgumentError(
        absl::StrFormat("batch: got %s keys, but the aggregates have %s keys",
                        PhysicalTypeName(keys.kind()), PhysicalTypeName(kind_)));
  }
  if (aggregate.function > AggregateFunction::kMax) {
    return absl::InvalidArgumentError(
        absl::StrFormat("invalid aggregate function: %d", static_cast<int>(aggregate.function)));
  }
  if (ranges.size() == 0) return absl::OkStatus();
  const gpu::OnDevice on_device(device_);
  absl::Status answered = AnswerRanges(ranges, aggregate, results, stream);
  absl::Status noted = gpu::NoteUse(device_, stream);
  return answered.ok() ? noted : answered;
}

MadeAggregates MakeDeviceAggregates(DeviceKeys keys, const RowId* row_ids,
                                    absl::Span<const DeviceColumn> columns,
                                    absl::Span<const DeviceAggregate> aggregates,
                                    DeviceStream stream) {
  return Guarded("building aggregates on a device", [&]() -> MadeAggregates {
    RETURN_IF_ERROR(CheckAggregatedKeys(keys.kind()));
    RETURN_IF_ERROR(gpu::CheckNotCapturing("aggregates on a device", "building", stream));
    const gpu::BesideCaptures beside;
    ASSIGN_OR_RETURN(const int device, gpu::DeviceOfStream(stream));
    RETURN_IF_ERROR(gpu::CheckUsableDevice(device));
    const gpu::OnDevice on_device(device);
    if (keys.kind() == PhysicalType::kU32) {
      return BuildAndWaitFor<uint32_t>(
          [&](cudaStream_t s) { return SortForAggregates(keys.u32(), row_ids, keys.size(), s); },
          columns, aggregates, stream);
    }
    return BuildAndWaitFor<uint64_t>(
        [&](cudaStream_t s) { return SortForAggregates(keys.u64(), row_ids, keys.size(), s); },
        columns, aggregates, stream);
  });
}

MadeAggregates MakeDeviceAggregates(const SortedRun& run, absl::Span<const DeviceColumn> columns,
                                    absl::Span<const DeviceAggregate> aggregates, int device) {
  return Guarded("building aggregates on a device", [&]() -> MadeAggregates {
    RETURN_IF_ERROR(CheckAggregatedKeys(run.kind()));
    RETURN_IF_ERROR(gpu::CheckUsableDevice(device));
    const gpu::OnDevice on_device(device);
    const gpu::BesideCaptures beside;
    ASSIGN_OR_RETURN(const gpu::Stream stream, gpu::Stream::Create());
    const auto upload = [&](auto key) {
      using Key = decltype(key);
      return BuildAndWaitFor<Key>([&](cudaStream_t s) { return gpu::UploadRun<Key>(run, s); },
                                  columns, aggregates, stream.get());
    };
    return run.kind() == PhysicalType::kU32 ? upload(uint32_t{}) : upload(uint64_t{});
  });
}

}  // namespace cairn
