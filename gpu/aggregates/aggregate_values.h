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

// The values of columns in the order of an index's entries, as numbers to add or compare.

namespace cairn::gpu {

// The range of a column's values. They are compared as 64-bit numbers with the same order: unsigned
// integers directly, signed integers with the sign bit flipped, floats in IEEE 754 total order with
// all NaNs equal and last.
struct ColumnSurvey {
  uint64_t least = 0, greatest = 0;
  bool is_narrow() const { return greatest - least <= UINT32_MAX; }
};

// Surveys a column of at least one value. Waits.
absl::StatusOr<ColumnSurvey> SurveyColumn(const DeviceColumn& column, cudaStream_t stream);

// The maximum of at least one row id. Waits.
absl::StatusOr<RowId> GreatestRow(const RowId* row_ids, size_t size, cudaStream_t stream);

// The form in which a value is stored.
enum class ValueCode : uint8_t {
  kAboveLeast,  // its number minus the column's minimum: for sums and minimums
  // The column's maximum minus its number: the minimum of these belongs to the maximum value.
  kBelowGreatest,
  kDouble,  // the value as a double
};

// codes[i] = the code of the value at row_ids[i]. Value is uint32_t, uint64_t or double.
template <typename Value>
absl::StatusOr<DeviceBuffer<Value>> GatherCodes(const DeviceColumn& column,
                                                const ColumnSurvey& survey, ValueCode code,
                                                const RowId* row_ids, size_t size,
                                                cudaStream_t stream);

// sums[i] = codes[0] + … + codes[i - 1], for i from 0 to `size`.
template <typename Value, typename Sum>
absl::StatusOr<DeviceBuffer<Sum>> SumsBefore(const Value* codes, size_t size, cudaStream_t stream);

// The minimum (uint64_t) or the sum (double) of the codes of each of `distinct` keys; `keys` must
// ascend.
template <typename Key, typename Value>
absl::StatusOr<DeviceBuffer<Value>> ReduceByKey(const Key* keys, const Value* codes, size_t size,
                                                size_t distinct, cudaStream_t stream);

// The data of a distinct key if keys repeat: its first entry, and the sum before that entry.
struct alignas(16) KeyRecord {
  uint32_t sum[3];
  Position first_entry;
};

// records[d] for keys 0 … distinct. Sum is uint64_t or WideKey; `sums` are those of all entries,
// including the total at the end.
template <typename Sum>
absl::StatusOr<DeviceBuffer<KeyRecord>> MakeRecords(const Position* first_entry, size_t distinct,
                                                    const Sum* sums, cudaStream_t stream);

}  // namespace cairn::gpu
