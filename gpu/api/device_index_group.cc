#include <cuda_runtime.h>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "cairn/device/index_group.h"
#include "gpu/run/device_run.h"
#include "gpu/runtime/device_memory.h"
#include "gpu/runtime/devices.h"
#include "gpu/runtime/shared_memory.h"
#include "gpu/runtime/stream.h"
#include "gpu/runtime/stream_check.h"
#include "gpu/runtime/stream_uses.h"
#include "gpu/where/row_list.h"
#include "gpu/where/where_column.h"
#include "gpu/where/where_planner.h"
#include "gpu/where/where_ranges.h"
#include "gpu/where/where_search.h"
#include "index/machine/guard.h"
#include "index/machine/status_macros.h"

namespace cairn {

using gpu::DeviceBuffer;
using gpu::WhereColumn;
using gpu::WhereDecision;

struct DeviceIndexGroup::Impl {
  uint64_t rows = 0;
  int device = 0;
  size_t shared_bytes = 0;
  std::vector<WhereColumn> columns;
  std::vector<gpu::KeySample> samples;
  std::vector<uint32_t> entries;
  DeviceBuffer<gpu::WhereKeysView> keys;  // one per column

  // Builds a group of `columns` columns; make(i) returns column i. Enqueues work on `stream` and
  // waits for it.
  template <typename Make>
  static absl::StatusOr<std::unique_ptr<Impl>> Build(uint64_t rows, size_t columns, int device,
                                                     cudaStream_t stream, Make make);
  absl::StatusOr<WhereDecision> Decide(const DevicePredicate& where, bool only_count,
                                       DeviceWhereStrategy strategy) const;
  // Adds the matches to *count, or sets their bits in a bitmap and counts those of each tile.
  absl::Status Search(const WhereDecision& decision, unsigned long long* count, uint32_t* bitmap,
                      uint64_t* tile_counts, cudaStream_t stream) const;
};

namespace {

// Shared memory that kernels use in addition to the requested amount.
constexpr size_t kOwnSharedBytes = 1024;

absl::Status CheckGroup(uint64_t rows, size_t columns) {
  if (rows > kMaxEntries) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "DeviceIndexGroup: got %d rows, more than the %d supported", rows, kMaxEntries));
  }
  if (columns > DeviceIndexGroup::kMaxColumns) {
    return absl::InvalidArgumentError(
        absl::StrFormat("DeviceIndexGroup: got %d columns, more than the %d supported", columns,
                        DeviceIndexGroup::kMaxColumns));
  }
  return absl::OkStatus();
}

absl::Status CheckColumnKind(PhysicalType kind, size_t number) {
  if (kind != PhysicalType::kBytes) return absl::OkStatus();
  return absl::UnimplementedError(absl::StrFormat(
      "column %d: DeviceIndexGroup expects u32 or u64 keys, got byte strings", number));
}

template <typename Key>
absl::StatusOr<WhereColumn> ColumnOfEntries(uint64_t rows, size_t number, const Key* keys,
                                            const RowId* row_ids, size_t size,
                                            cudaStream_t stream) {
  DeviceBuffer<RowId> numbers;
  if (row_ids == nullptr) {
    RETURN_IF_ERROR(gpu::Resize(&numbers, size, stream));
    RETURN_IF_ERROR(gpu::NumberRows(numbers.data(), size, stream));
    row_ids = numbers.data();
  }
  ASSIGN_OR_RETURN(gpu::DeviceRun<Key> run, gpu::SortToRun(keys, row_ids, size, stream));
  return gpu::MakeWhereColumn<Key>(std::move(run), rows, number, stream);
}

template <typename Key>
absl::StatusOr<WhereColumn> ColumnOfRun(uint64_t rows, size_t number, const SortedRun& run,
                                        cudaStream_t stream) {
  ASSIGN_OR_RETURN(gpu::DeviceRun<Key> uploaded, gpu::UploadRun<Key>(run, stream));
  return gpu::MakeWhereColumn<Key>(std::move(uploaded), rows, number, stream);
}

}  // namespace

template <typename Make>
absl::StatusOr<std::unique_ptr<DeviceIndexGroup::Impl>> DeviceIndexGroup::Impl::Build(
    uint64_t rows, size_t columns, int device, cudaStream_t stream, Make make) {
  auto impl = std::make_unique<Impl>();
  impl->rows = rows;
  impl->device = device;
  ASSIGN_OR_RETURN(const size_t shared, gpu::MostSharedBytes());
  impl->shared_bytes = shared > kOwnSharedBytes ? shared - kOwnSharedBytes : 0;
  // A group without rows has no columns in memory, only their number.
  impl->samples.resize(columns);
  impl->entries.resize(columns);
  if (rows == 0 || columns == 0) return impl;
  const gpu::KeepsFreedMemory keeps;
  std::vector<gpu::WhereKeysView> keys;
  for (size_t i = 0; i < columns; ++i) {
    ASSIGN_OR_RETURN(WhereColumn column, make(i));
    keys.push_back(column.keys());
    impl->samples[i] = column.sample;
    impl->entries[i] = static_cast<uint32_t>(column.sample.entries());
    impl->columns.push_back(std::move(column));
  }
  RETURN_IF_ERROR(gpu::Upload(absl::MakeConstSpan(keys), &impl->keys, stream));
  CAIRN_RETURN_IF_CUDA_FAILS(cudaStreamSynchronize(stream));
  for (WhereColumn& column : impl->columns) column.SetStream(gpu::AfterAllUses());
  impl->keys.SetStream(gpu::AfterAllUses());
  return impl;
}

absl::StatusOr<WhereDecision> DeviceIndexGroup::Impl::Decide(const DevicePredicate& where,
                                                             bool only_count,
                                                             DeviceWhereStrategy strategy) const {
  return gpu::DecideWhere(where, {rows, samples, shared_bytes}, only_count, strategy);
}

absl::Status DeviceIndexGroup::Impl::Search(const WhereDecision& decision,
                                            unsigned long long* count, uint32_t* bitmap,
                                            uint64_t* tile_counts, cudaStream_t stream) const {
  gpu::WhereView where = {};
  for (size_t i = 0; i < decision.sets.size(); ++i) {
    where.sets[i].column = columns[decision.sets[i].column].view();
  }
  where.rows = static_cast<uint32_t>(rows);
  where.bucket = gpu::BucketOf(rows);
  gpu::WhereRanges ranges;
  RETURN_IF_ERROR(
      gpu::FindWhereRanges(decision.sets, keys.data(), entries, &where, &ranges, stream));
  const uint64_t tiles = gpu::TilesOf(rows);
  switch (decision.plan.strategy) {
    case DeviceWhereStrategy::kAuto:
    case DeviceWhereStrategy::kScan:
      gpu::SetProgram(decision.program, &where);
      return gpu::ScanWhere(where, decision.program.stack, count, bitmap, tile_counts, stream);
    case DeviceWhereStrategy::kGather:
      gpu::SetProgram(decision.rest, &where);
      if (bitmap != nullptr) {
        CAIRN_RETURN_IF_CUDA_FAILS(
            cudaMemsetAsync(bitmap, 0, tiles * (gpu::kTileRows / 8), stream));
      }
      RETURN_IF_ERROR(gpu::GatherWhere(where, static_cast<uint32_t>(decision.driver),
                                       decision.entries[decision.driver].most, count, bitmap,
                                       stream));
      break;
    case DeviceWhereStrategy::kBitmap:
      gpu::SetProgram(decision.program, &where);
      RETURN_IF_ERROR(gpu::BitmapWhere(where, decision.program.stack, decision.entries,
                                       decision.part_bits, count, bitmap, stream));
      break;
  }
  return bitmap == nullptr ? absl::OkStatus() : gpu::CountTiles(bitmap, tiles, tile_counts, stream);
}

DeviceIndexGroup::DeviceIndexGroup(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

DeviceIndexGroup::~DeviceIndexGroup() {
  const gpu::OnDevice on_device(impl_->device);
  impl_.reset();
}

absl::StatusOr<std::unique_ptr<DeviceIndexGroup>> DeviceIndexGroup::Create(
    uint64_t rows, absl::Span<const Column> columns, DeviceStream stream) {
  return Guarded(
      "building a DeviceIndexGroup", [&]() -> absl::StatusOr<std::unique_ptr<DeviceIndexGroup>> {
        ASSIGN_OR_RETURN(const auto devices, ListDevices());
        RETURN_IF_ERROR(CheckGroup(rows, columns.size()));
        for (size_t i = 0; i < columns.size(); ++i) {
          RETURN_IF_ERROR(CheckColumnKind(columns[i].keys.kind(), i));
        }
        RETURN_IF_ERROR(gpu::CheckNotCapturing("DeviceIndexGroup", "building", stream));
        const gpu::BesideCaptures beside;
        ASSIGN_OR_RETURN(const int device, gpu::DeviceOfStream(stream));
        const gpu::OnDevice on_device(device);
        ASSIGN_OR_RETURN(auto impl,
                         Impl::Build(rows, columns.size(), device, stream,
                                     [&](size_t i) -> absl::StatusOr<WhereColumn> {
                                       const Column& column = columns[i];
                                       const size_t size = column.keys.size();
                                       return column.keys.kind() == PhysicalType::kU32
                                                  ? ColumnOfEntries(rows, i, column.keys.u32(),
                                                                    column.row_ids, size, stream)
                                                  : ColumnOfEntries(rows, i, column.keys.u64(),
                                                                    column.row_ids, size, stream);
                                     }));
        return std::unique_ptr<DeviceIndexGroup>(new DeviceIndexGroup(std::move(impl)));
      });
}

absl::StatusOr<std::unique_ptr<DeviceIndexGroup>> DeviceIndexGroup::Create(
    uint64_t rows, absl::Span<const SortedRun> columns, int device) {
  return Guarded(
      "building a DeviceIndexGroup", [&]() -> absl::StatusOr<std::unique_ptr<DeviceIndexGroup>> {
        ASSIGN_OR_RETURN(const auto devices, ListDevices());
        if (std::none_of(devices.begin(), devices.end(),
                         [&](const Device& d) { return d.ordinal == device; })) {
          return absl::UnavailableError(
              absl::StrFormat("no usable CUDA device %d; found %d", device, devices.size()));
        }
        RETURN_IF_ERROR(CheckGroup(rows, columns.size()));
        for (size_t i = 0; i < columns.size(); ++i) {
          RETURN_IF_ERROR(CheckColumnKind(columns[i].kind(), i));
        }
        const gpu::BesideCaptures beside;
        const gpu::OnDevice on_device(device);
        ASSIGN_OR_RETURN(const gpu::Stream stream, gpu::Stream::Create());
        ASSIGN_OR_RETURN(
            auto impl,
            Impl::Build(rows, columns.size(), device, stream.get(),
                        [&](size_t i) -> absl::StatusOr<WhereColumn> {
                          return columns[i].kind() == PhysicalType::kU32
                                     ? ColumnOfRun<uint32_t>(rows, i, columns[i], stream.get())
                                     : ColumnOfRun<uint64_t>(rows, i, columns[i], stream.get());
                        }));
        return std::unique_ptr<DeviceIndexGroup>(new DeviceIndexGroup(std::move(impl)));
      });
}

uint64_t DeviceIndexGroup::rows() const {
  return impl_->rows;
}

size_t DeviceIndexGroup::columns() const {
  return impl_->samples.size();
}

uint64_t DeviceIndexGroup::entries(size_t column) const {
  return impl_->entries[column];
}

int DeviceIndexGroup::device() const {
  return impl_->device;
}

uint64_t DeviceIndexGroup::memory_bytes() const {
  uint64_t bytes = impl_->keys.bytes();
  for (const WhereColumn& column : impl_->columns) bytes += column.bytes();
  return bytes;
}

absl::StatusOr<DeviceWherePlan> DeviceIndexGroup::Explain(const DevicePredicate& where,
                                                          bool only_count,
                                                          DeviceWhereStrategy strategy) const {
  return Guarded("planning a predicate", [&]() -> absl::StatusOr<DeviceWherePlan> {
    ASSIGN_OR_RETURN(WhereDecision decision, impl_->Decide(where, only_count, strategy));
    return std::move(decision.plan);
  });
}

absl::Status DeviceIndexGroup::Count(const DevicePredicate& where, uint64_t* count,
                                     DeviceStream stream, DeviceWhereStrategy strategy) const {
  static_assert(sizeof(unsigned long long) == sizeof(uint64_t));
  return Guarded("counting the rows of a predicate", [&]() -> absl::Status {
    ASSIGN_OR_RETURN(const WhereDecision decision, impl_->Decide(where, true, strategy));
    const gpu::OnDevice on_device(impl_->device);
    CAIRN_RETURN_IF_CUDA_FAILS(cudaMemsetAsync(count, 0, sizeof(uint64_t), stream));
    if (impl_->rows == 0) return absl::OkStatus();
    absl::Status searched = impl_->Search(decision, reinterpret_cast<unsigned long long*>(count),
                                          nullptr, nullptr, stream);
    absl::Status noted = gpu::NoteUse(impl_->device, stream);
    return searched.ok() ? noted : searched;
  });
}

absl::Status DeviceIndexGroup::Find(const DevicePredicate& where, RowId* row_ids, uint64_t capacity,
                                    uint64_t* total, DeviceStream stream,
                                    DeviceWhereStrategy strategy) const {
  return Guarded("finding the rows of a predicate", [&]() -> absl::Status {
    ASSIGN_OR_RETURN(const WhereDecision decision, impl_->Decide(where, false, strategy));
    const gpu::OnDevice on_device(impl_->device);
    if (impl_->rows == 0) {
      CAIRN_RETURN_IF_CUDA_FAILS(cudaMemsetAsync(total, 0, sizeof(uint64_t), stream));
      return absl::OkStatus();
    }
    const uint64_t tiles = gpu::TilesOf(impl_->rows);
    ASSIGN_OR_RETURN(const auto bitmap,
                     DeviceBuffer<uint32_t>::Allocate(tiles * (gpu::kTileRows / 32), stream));
    ASSIGN_OR_RETURN(const auto offsets, DeviceBuffer<uint64_t>::Allocate(tiles + 1, stream));
    absl::Status searched =
        impl_->Search(decision, nullptr, bitmap.data(), offsets.data() + 1, stream);
    absl::Status noted = gpu::NoteUse(impl_->device, stream);
    RETURN_IF_ERROR(searched);
    RETURN_IF_ERROR(noted);
    return gpu::ListTiles(bitmap.data(), tiles, offsets.data(), row_ids, capacity, total, stream);
  });
}

}  // namespace cairn
