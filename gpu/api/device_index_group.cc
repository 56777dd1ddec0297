#include <cuda_runtime.h>

#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "cairn/device/index_group.h"
#include "gpu/run/device_run.h"
#include "gpu/run/row_numbers.h"
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

namespace {

using MadeGroup = absl::StatusOr<std::unique_ptr<DeviceIndexGroup>>;

PhysicalType KindOf(const DeviceIndexGroup::Column& column) {
  return column.keys.kind();
}
PhysicalType KindOf(const SortedRun& run) {
  return run.kind();
}

template <typename Columns>
absl::Status CheckColumns(uint64_t rows, const Columns& columns) {
  if (rows > kMaxEntries) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "DeviceIndexGroup: got %d rows, more than the %d supported", rows, kMaxEntries));
  }
  if (columns.size() > DeviceIndexGroup::kMaxColumns) {
    return absl::InvalidArgumentError(
        absl::StrFormat("DeviceIndexGroup: got %d columns, more than the %d supported",
                        columns.size(), DeviceIndexGroup::kMaxColumns));
  }
  for (size_t i = 0; i < columns.size(); ++i) {
    if (KindOf(columns[i]) != PhysicalType::kBytes) continue;
    return absl::UnimplementedError(absl::StrFormat(
        "column %d: DeviceIndexGroup expects u32 or u64 keys, got byte strings", i));
  }
  return absl::OkStatus();
}

template <typename Key>
absl::StatusOr<WhereColumn> MakeColumn(uint64_t rows, size_t number,
                                       const DeviceIndexGroup::Column& column,
                                       cudaStream_t stream) {
  const size_t size = column.keys.size();
  const RowId* row_ids = column.row_ids;
  DeviceBuffer<RowId> numbers;
  if (row_ids == nullptr) {
    ASSIGN_OR_RETURN(numbers, gpu::RowNumbers(size, stream));
    row_ids = numbers.data();
  }
  ASSIGN_OR_RETURN(
      gpu::DeviceRun<Key> run,
      gpu::SortToRun(static_cast<const Key*>(column.keys.data()), row_ids, size, stream));
  return gpu::MakeWhereColumn<Key>(std::move(run), rows, number, stream);
}

template <typename Key>
absl::StatusOr<WhereColumn> MakeColumn(uint64_t rows, size_t number, const SortedRun& run,
                                       cudaStream_t stream) {
  ASSIGN_OR_RETURN(gpu::DeviceRun<Key> uploaded, gpu::UploadRun<Key>(run, stream));
  return gpu::MakeWhereColumn<Key>(std::move(uploaded), rows, number, stream);
}

class ColumnGroup final : public DeviceIndexGroup {
 public:
  // Builds a group of checked columns on `device`, which is current. Enqueues work on `stream` and
  // waits for it.
  template <typename Columns>
  static MadeGroup Build(uint64_t rows, const Columns& columns, int device, cudaStream_t stream);

  uint64_t rows() const override { return rows_; }
  size_t columns() const override { return samples_.size(); }
  uint64_t entries(size_t column) const override { return entries_[column]; }
  int device() const override { return device_; }
  uint64_t memory_bytes() const override {
    uint64_t bytes = keys_.bytes();
    for (const WhereColumn& column : columns_) bytes += column.bytes();
    return bytes;
  }
  absl::StatusOr<DeviceWherePlan> Explain(const DevicePredicate& where, bool only_count,
                                          DeviceWhereStrategy strategy) const override;
  absl::Status Count(const DevicePredicate& where, uint64_t* count, DeviceStream stream,
                     DeviceWhereStrategy strategy) const override;
  absl::Status Find(const DevicePredicate& where, RowId* row_ids, uint64_t capacity,
                    uint64_t* total, DeviceStream stream,
                    DeviceWhereStrategy strategy) const override;

 private:
  absl::StatusOr<WhereDecision> Decide(const DevicePredicate& where, bool only_count,
                                       DeviceWhereStrategy strategy) const {
    return gpu::DecideWhere(where, {rows_, samples_, shared_bytes_}, only_count, strategy);
  }
  // Adds the matches to *count, or sets their bits in a bitmap and counts those of each tile.
  absl::Status Search(const WhereDecision& decision, unsigned long long* count, uint32_t* bitmap,
                      uint64_t* tile_counts, cudaStream_t stream) const;

  uint64_t rows_ = 0;
  int device_ = 0;
  size_t shared_bytes_ = 0;
  std::vector<WhereColumn> columns_;
  std::vector<gpu::KeySample> samples_;
  std::vector<uint32_t> entries_;
  DeviceBuffer<gpu::WhereKeysView> keys_;  // one per column
};

template <typename Columns>
MadeGroup ColumnGroup::Build(uint64_t rows, const Columns& columns, int device,
                             cudaStream_t stream) {
  // Shared memory that kernels use in addition to the requested amount.
  constexpr size_t kOwnSharedBytes = 1024;
  auto group = std::make_unique<ColumnGroup>();
  group->rows_ = rows;
  group->device_ = device;
  ASSIGN_OR_RETURN(const size_t shared, gpu::MostSharedBytes());
  group->shared_bytes_ = shared > kOwnSharedBytes ? shared - kOwnSharedBytes : 0;
  // A group without rows has no columns in memory, only their number.
  group->samples_.resize(columns.size());
  group->entries_.resize(columns.size());
  if (rows == 0 || columns.empty()) return group;
  const gpu::KeepsFreedMemory keeps;
  std::vector<gpu::WhereKeysView> keys;
  for (size_t i = 0; i < columns.size(); ++i) {
    ASSIGN_OR_RETURN(WhereColumn column, KindOf(columns[i]) == PhysicalType::kU32
                                             ? MakeColumn<uint32_t>(rows, i, columns[i], stream)
                                             : MakeColumn<uint64_t>(rows, i, columns[i], stream));
    keys.push_back(column.keys());
    group->samples_[i] = column.sample;
    group->entries_[i] = static_cast<uint32_t>(column.sample.entries());
    group->columns_.push_back(std::move(column));
  }
  RETURN_IF_ERROR(gpu::Upload(absl::MakeConstSpan(keys), &group->keys_, stream));
  CAIRN_RETURN_IF_CUDA_FAILS(cudaStreamSynchronize(stream));
  for (WhereColumn& column : group->columns_) column.SetStream(gpu::AfterAllUses());
  group->keys_.SetStream(gpu::AfterAllUses());
  return group;
}

absl::Status ColumnGroup::Search(const WhereDecision& decision, unsigned long long* count,
                                 uint32_t* bitmap, uint64_t* tile_counts,
                                 cudaStream_t stream) const {
  gpu::WhereView where = {};
  for (size_t i = 0; i < decision.sets.size(); ++i) {
    where.sets[i].column = columns_[decision.sets[i].column].view();
  }
  where.rows = static_cast<uint32_t>(rows_);
  where.bucket = gpu::BucketOf(rows_);
  gpu::WhereRanges ranges;
  RETURN_IF_ERROR(
      gpu::FindWhereRanges(decision.sets, keys_.data(), entries_, &where, &ranges, stream));
  const uint64_t tiles = gpu::TilesOf(rows_);
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

absl::StatusOr<DeviceWherePlan> ColumnGroup::Explain(const DevicePredicate& where, bool only_count,
                                                     DeviceWhereStrategy strategy) const {
  return Guarded("planning a predicate", [&]() -> absl::StatusOr<DeviceWherePlan> {
    ASSIGN_OR_RETURN(WhereDecision decision, Decide(where, only_count, strategy));
    return std::move(decision.plan);
  });
}

absl::Status ColumnGroup::Count(const DevicePredicate& where, uint64_t* count, DeviceStream stream,
                                DeviceWhereStrategy strategy) const {
  static_assert(sizeof(unsigned long long) == sizeof(uint64_t));
  return Guarded("counting the rows of a predicate", [&]() -> absl::Status {
    ASSIGN_OR_RETURN(const WhereDecision decision, Decide(where, true, strategy));
    const gpu::OnDevice on_device(device_);
    CAIRN_RETURN_IF_CUDA_FAILS(cudaMemsetAsync(count, 0, sizeof(uint64_t), stream));
    if (rows_ == 0) return absl::OkStatus();
    absl::Status searched =
        Search(decision, reinterpret_cast<unsigned long long*>(count), nullptr, nullptr, stream);
    absl::Status noted = gpu::NoteUse(device_, stream);
    return searched.ok() ? noted : searched;
  });
}

absl::Status ColumnGroup::Find(const DevicePredicate& where, RowId* row_ids, uint64_t capacity,
                               uint64_t* total, DeviceStream stream,
                               DeviceWhereStrategy strategy) const {
  return Guarded("finding the rows of a predicate", [&]() -> absl::Status {
    ASSIGN_OR_RETURN(const WhereDecision decision, Decide(where, false, strategy));
    const gpu::OnDevice on_device(device_);
    if (rows_ == 0) {
      CAIRN_RETURN_IF_CUDA_FAILS(cudaMemsetAsync(total, 0, sizeof(uint64_t), stream));
      return absl::OkStatus();
    }
    const uint64_t tiles = gpu::TilesOf(rows_);
    ASSIGN_OR_RETURN(const auto bitmap,
                     DeviceBuffer<uint32_t>::Allocate(tiles * (gpu::kTileRows / 32), stream));
    ASSIGN_OR_RETURN(const auto offsets, DeviceBuffer<uint64_t>::Allocate(tiles + 1, stream));
    absl::Status searched = Search(decision, nullptr, bitmap.data(), offsets.data() + 1, stream);
    absl::Status noted = gpu::NoteUse(device_, stream);
    RETURN_IF_ERROR(searched);
    RETURN_IF_ERROR(noted);
    return gpu::ListTiles(bitmap.data(), tiles, offsets.data(), row_ids, capacity, total, stream);
  });
}

}  // namespace

MadeGroup DeviceIndexGroup::Create(uint64_t rows, absl::Span<const Column> columns,
                                   DeviceStream stream) {
  return Guarded("building a DeviceIndexGroup", [&]() -> MadeGroup {
    RETURN_IF_ERROR(ListDevices().status());
    RETURN_IF_ERROR(CheckColumns(rows, columns));
    RETURN_IF_ERROR(gpu::CheckNotCapturing("DeviceIndexGroup", "building", stream));
    const gpu::BesideCaptures beside;
    ASSIGN_OR_RETURN(const int device, gpu::DeviceOfStream(stream));
    const gpu::OnDevice on_device(device);
    return ColumnGroup::Build(rows, columns, device, stream);
  });
}

MadeGroup DeviceIndexGroup::Create(uint64_t rows, absl::Span<const SortedRun> columns, int device) {
  return Guarded("building a DeviceIndexGroup", [&]() -> MadeGroup {
    RETURN_IF_ERROR(gpu::CheckUsableDevice(device));
    RETURN_IF_ERROR(CheckColumns(rows, columns));
    const gpu::BesideCaptures beside;
    const gpu::OnDevice on_device(device);
    ASSIGN_OR_RETURN(const gpu::Stream stream, gpu::Stream::Create());
    return ColumnGroup::Build(rows, columns, device, stream.get());
  });
}

}  // namespace cairn
