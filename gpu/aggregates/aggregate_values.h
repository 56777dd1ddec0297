#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "absl/status/statusor.h"
#include "cairn/device/aggregates.h"
#include "cairn/types.h"
#include "gpu/layout/aggregate_leaf.h"
#include "gpu/runtime/device_memory.h"
#include "index/layout/wide_key.h"

// The values of columns in the order of an index's entries, as numbers to be added or compared.

namespace cairn::gpu {

// What a column's values are like. They are compared as numbers of 64 bits in their order:
// unsigned ones themselves, signed ones with the sign bit flipped, floats in IEEE 754 total order
// with every NaN equal and last.
struct ColumnSurvey {
  uint64_t least = 0, greatest = 0;
  bool is_narrow() const { return greatest - least <= UINT32_MAX; }
};

// Surveys a column of at least one value. Waits.
absl::StatusOr<ColumnSurvey> SurveyColumn(const DeviceColumn& column, cudaStream_t stream);

// The greatest of at least one row id. Waits.
absl::StatusOr<RowId> GreatestRow(const RowId* row_ids, size_t size, cudaStream_t stream);

// What is kept of a value.
enum class ValueCode : uint8_t {
  kAboveLeast,     // its number less the column's least: for sums and least values
  kBelowGreatest,  // the column's greatest less its number: the least of these is the greatest
  kDouble,         // itself, as a double
};

// codes[i] = what is kept of the value at row_ids[i]. Value is uint32_t, uint64_t or double.
template <typename Value>
absl::StatusOr<DeviceBuffer<Value>> GatherCodes(const DeviceColumn& column,
                                                const ColumnSurvey& survey, ValueCode code,
                                                const RowId* row_ids, size_t size,
                                                cudaStream_t stream);

// sums[i] = codes[0] + … + codes[i - 1], for i up to `size`.
template <typename Value, typename Sum>
absl::StatusOr<DeviceBuffer<Sum>> SumsBefore(const Value* codes, size_t size, cudaStream_t stream);

// The least (uint64_t), or the sum (double), of the codes of each of `distinct` keys; `keys`
// ascend.
template <typename Key, typename Value>
absl::StatusOr<DeviceBuffer<Value>> ReduceByKey(const Key* keys, const Value* codes, size_t size,
                                                size_t distinct, cudaStream_t stream);

// What is read of a distinct key where keys repeat: its first entry, and the sum before that.
struct alignas(16) KeyRecord {
  uint32_t sum[3];
  Position first_entry;
};

// records[d] for keys 0 … distinct. Sum is uint64_t or WideKey; sums of all entries and their end.
template <typename Sum>
absl::StatusOr<DeviceBuffer<KeyRecord>> MakeRecords(const Position* first_entry, size_t distinct,
                                                    const Sum* sums, cudaStream_t stream);

}  // namespace cairn::gpu
