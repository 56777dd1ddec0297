#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "cairn/device/aggregates.h"
#include "cairn/types.h"
#include "gpu/aggregates/aggregate_values.h"
#include "gpu/layout/aggregate_leaf.h"
#include "gpu/packed/kary_directory.h"
#include "gpu/packed/rank_bitmap.h"
#include "index/layout/packed_leaves.h"

namespace cairn::gpu {

// The structures of an aggregate as kernels use them. Values have the type of the kind; arrays that
// the kind does not use are null.
struct AggregateView {
  AggregateKind kind = AggregateKind::kCounts;
  int bits = 0;           // of a key in a leaf
  Position distinct = 0;  // number of distinct keys
  const Leaf* leaves = nullptr;
  const void* group_leaves = nullptr;  // GroupSummary
  const void* group_lines = nullptr;
  const void* group_table = nullptr;
  uint32_t groups = 0;
  // Used if keys repeat: records for sums, which leaves then do not have; otherwise first entries.
  const KeyRecord* records = nullptr;
  const Position* first_entry = nullptr;
};

// Ranges in device memory. Range i starts at lower[i] + lower_add, or at the first key if `lower`
// is null. It ends before upper[i] + upper_add, or after the last key if `upper` is null.
template <typename Key>
struct RangeEnds {
  const Key* lower;
  const Key* upper;
  Key lower_add, upper_add;
  size_t size;
};

// How the combined values of a range are converted to its result.
struct AggregateOutput {
  AggregateFunction function;
  DataType type;  // of the column
  uint64_t base;  // the number from which codes count up or down; see ColumnSurvey
  DeviceAggregateResults results;
};

// Writes the results of `ranges` ranges over no entries. Enqueued on `stream`.
absl::Status AggregateNothing(size_t ranges, const AggregateOutput& output, cudaStream_t stream);

// Executes at least one range over at least one entry, under either directory. Enqueued on
// `stream`.
template <typename Key>
absl::Status AggregateUnderBitmap(const AggregateView& view, const RankBitmapView<Key>& directory,
                                  const RangeEnds<Key>& ranges, const AggregateOutput& output,
                                  cudaStream_t stream);
template <typename Key>
absl::Status AggregateUnderTree(const AggregateView& view, const KaryDirectory<Key>& directory,
                                const RangeEnds<Key>& ranges, const AggregateOutput& output,
                                cudaStream_t stream);

}  // namespace cairn::gpu
