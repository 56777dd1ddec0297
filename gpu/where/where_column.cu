#include "gpu/where/where_column.h"

#include <type_traits>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "gpu/runtime/cuda_status.h"
#include "gpu/runtime/device_algorithms.cuh"
#include "gpu/runtime/launch.h"
#include "gpu/where/row_list.h"
#include "index/machine/status_macros.h"

namespace cairn::gpu {
namespace {

constexpr Position kNoPosition = UINT32_MAX;

// positions[rows[p]] = p, for positions from `first` on. *beyond becomes the greatest row that does
// not exist.
__global__ void PutPositions(const RowId* by_position, Position first, size_t size, uint32_t rows,
                             Position* positions, RowId* beyond) {
  ForEachIndex(size, [=](size_t i) {
    const RowId row = by_position[first + i];
    if (row < rows) {
      positions[row] = static_cast<Position>(first + i);
    } else {
      atomicMax(beyond, row);
    }
  });
}

// Sets a bit for each row without a position, one warp per word.
__global__ void MarkMissing(const Position* positions, uint32_t rows, uint64_t padded_rows,
                            uint32_t* bitmap) {
  ForEachIndex(padded_rows, [=](size_t row) {
    const bool missing = row < rows && positions[row] == kNoPosition;
    const uint32_t word = __ballot_sync(0xffffffffu, missing);
    if (row % 32 == 0) bitmap[row / 32] = word;
  });
}

// One warp per 32 rows writes their codes.
__global__ void PutCodes(const Position* positions, uint32_t rows, uint32_t bucket,
                         uint64_t padded_rows, uint32_t* codes) {
  ForEachIndex(padded_rows, [=](size_t row) {
    const uint32_t code = row < rows ? positions[row] / bucket : 0;
    uint32_t mine = 0;
#pragma unroll
    for (uint32_t bit = 0; bit < kCodeBits; ++bit) {
      const uint32_t word = __ballot_sync(0xffffffffu, code >> bit & 1);
      if (row % 32 == bit) mine = word;
    }
    if (row % 32 < kCodeBits) codes[row / 32 * kCodeBits + row % 32] = mine;
  });
}

template <typename Key>
__global__ void TakeSample(const Key* keys, uint64_t entries, uint64_t* sample) {
  ForEachIndex(KeySample::SizeFor(entries),
               [=](size_t i) { sample[i] = keys[KeySample::PositionOf(i, entries)]; });
}

// Appends the rows without an entry to those with one. InvalidArgument if their number is wrong.
absl::Status AddMissingRows(uint64_t entries, uint64_t rows, size_t number, WhereColumn* column,
                            cudaStream_t stream) {
  const uint64_t tiles = TilesOf(rows), padded_rows = tiles * kTileRows;
  ASSIGN_OR_RETURN(const auto bitmap, DeviceBuffer<uint32_t>::Allocate(padded_rows / 32, stream));
  ASSIGN_OR_RETURN(const auto offsets, DeviceBuffer<uint64_t>::Allocate(tiles + 1, stream));
  CAIRN_RETURN_IF_LAUNCH_FAILS("MarkMissing", SimpleShape(padded_rows), stream, MarkMissing,
                               column->positions.data(), static_cast<uint32_t>(rows), padded_rows,
                               bitmap.data());
  RETURN_IF_ERROR(CountTiles(bitmap.data(), tiles, offsets.data() + 1, stream));
  const uint64_t missing = rows - entries;
  if (missing > 0) {
    DeviceBuffer<RowId> all;
    RETURN_IF_ERROR(Resize(&all, rows, stream));
    if (entries > 0) {
      CAIRN_RETURN_IF_CUDA_FAILS(cudaMemcpyAsync(all.data(), column->rows.data(),
                                                 entries * sizeof(RowId), cudaMemcpyDeviceToDevice,
                                                 stream));
    }
    std::swap(all, column->rows);
  }
  RETURN_IF_ERROR(ListTiles(bitmap.data(), tiles, offsets.data(), column->rows.data() + entries,
                            missing, nullptr, stream));
  ASSIGN_OR_RETURN(const uint64_t found, ReadBack(offsets.data() + tiles, stream));
  if (found != missing) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "column %d: got %d entries of %d rows, but a row can have only one key per column", number,
        entries, rows - found));
  }
  if (missing == 0) return absl::OkStatus();
  CAIRN_RETURN_IF_LAUNCH_FAILS("PutPositions", SimpleShape(missing), stream, PutPositions,
                               column->rows.data(), static_cast<Position>(entries), missing,
                               static_cast<uint32_t>(rows), column->positions.data(), nullptr);
  return absl::OkStatus();
}

template <typename Key>
absl::StatusOr<KeySample> SampleKeys(const Key* keys, uint64_t entries, cudaStream_t stream) {
  const uint64_t size = KeySample::SizeFor(entries);
  if (size == 0) return KeySample();
  ASSIGN_OR_RETURN(const auto sample, DeviceBuffer<uint64_t>::Allocate(size, stream));
  CAIRN_RETURN_IF_LAUNCH_FAILS("TakeSample", SimpleShape(size), stream, TakeSample<Key>, keys,
                               entries, sample.data());
  std::vector<uint64_t> on_host(size);
  CAIRN_RETURN_IF_CUDA_FAILS(cudaMemcpyAsync(on_host.data(), sample.data(), sample.bytes(),
                                             cudaMemcpyDeviceToHost, stream));
  CAIRN_RETURN_IF_CUDA_FAILS(cudaStreamSynchronize(stream));
  return KeySample(entries, std::move(on_host));
}

}  // namespace

WhereKeysView WhereColumn::keys() const {
  const bool wide = wide_keys.size() > 0;
  return {wide ? static_cast<const void*>(wide_keys.data()) : narrow_keys.data(),
          static_cast<uint32_t>(sample.entries()), wide};
}

uint64_t WhereColumn::bytes() const {
  return narrow_keys.bytes() + wide_keys.bytes() + rows.bytes() + positions.bytes() + codes.bytes();
}

void WhereColumn::SetStream(cudaStream_t stream) {
  narrow_keys.SetStream(stream);
  wide_keys.SetStream(stream);
  rows.SetStream(stream);
  positions.SetStream(stream);
  codes.SetStream(stream);
}

template <typename Key>
absl::StatusOr<WhereColumn> MakeWhereColumn(DeviceRun<Key> run, uint64_t rows, size_t number,
                                            cudaStream_t stream) {
  const uint64_t entries = run.size();
  if (entries > rows) {
    return absl::InvalidArgumentError(
        absl::StrFormat("column %d: got %d entries, but %d rows, each with at most one key", number,
                        entries, rows));
  }
  const auto most = static_cast<uint32_t>(rows);
  const uint64_t padded_rows = TilesOf(rows) * kTileRows;
  WhereColumn column;
  column.rows = std::move(run.row_ids);
  RETURN_IF_ERROR(Resize(&column.positions, rows, stream));
  RETURN_IF_ERROR(Resize(&column.codes, padded_rows / sizeof(uint4), stream));
  CAIRN_RETURN_IF_CUDA_FAILS(
      cudaMemsetAsync(column.positions.data(), 0xFF, column.positions.bytes(), stream));
  if (entries > 0) {
    ASSIGN_OR_RETURN(const auto beyond, DeviceBuffer<RowId>::Allocate(1, stream));
    CAIRN_RETURN_IF_CUDA_FAILS(cudaMemsetAsync(beyond.data(), 0, beyond.bytes(), stream));
    CAIRN_RETURN_IF_LAUNCH_FAILS("PutPositions", SimpleShape(entries), stream, PutPositions,
                                 column.rows.data(), Position{0}, entries, most,
                                 column.positions.data(), beyond.data());
    ASSIGN_OR_RETURN(const RowId greatest, ReadBack(beyond.data(), stream));
    if (greatest != 0) {
      return absl::InvalidArgumentError(absl::StrFormat(
          "column %d: got an entry of row %d, but there are %d rows", number, greatest, rows));
    }
  }
  RETURN_IF_ERROR(AddMissingRows(entries, rows, number, &column, stream));
  CAIRN_RETURN_IF_LAUNCH_FAILS("PutCodes", SimpleShape(padded_rows), stream, PutCodes,
                               column.positions.data(), most, BucketOf(rows), padded_rows,
                               reinterpret_cast<uint32_t*>(column.codes.data()));
  ASSIGN_OR_RETURN(column.sample, SampleKeys(run.keys.data(), entries, stream));
  if constexpr (std::is_same_v<Key, uint32_t>) {
    column.narrow_keys = std::move(run.keys);
  } else {
    column.wide_keys = std::move(run.keys);
  }
  CAIRN_RETURN_IF_CUDA_FAILS(cudaStreamSynchronize(stream));
  return column;
}

template absl::StatusOr<WhereColumn> MakeWhereColumn(DeviceRun<uint32_t>, uint64_t, size_t,
                                                     cudaStream_t);
template absl::StatusOr<WhereColumn> MakeWhereColumn(DeviceRun<uint64_t>, uint64_t, size_t,
                                                     cudaStream_t);

}  // namespace cairn::gpu
