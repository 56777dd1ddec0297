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

// What answers an aggregate, as a kernel sees it. Of a kind's values; null where it has none.
struct AggregateView {
  AggregateKind kind = AggregateKind::kCounts;
  int bits = 0;           // of a key in a leaf
  Position distinct = 0;  // keys
  const Leaf* leaves = nullptr;
  const void* group_leaves = nullptr;  // GroupSummary
  const void* group_lines = nullptr;
  const void* group_table = nullptr;
  uint32_t groups = 0;
  // Where keys repeat: of sums, which leaves then have none of, records; else first entries.
  const KeyRecord* records = nullptr;
  const Position* first_entry = nullptr;
};

// Ranges in device memory: from lower[i], where that is not null, and `lower_add` behind it, to
// before upper[i] likewise.
template <typename Key>
struct RangeEnds {
  const Key* lower;
  const Key* upper;
  Key lower_add, upper_add;
  size_t size;
};

// What becomes of what a range's entries come to.
struct AggregateOutput {
  AggregateFunction function;
  DataType type;  // of the column
  uint64_t base;  // the number that codes count from, or down from: ColumnSurvey
  DeviceAggregateResults results;
};

// Answers so many ranges over no entries. Enqueues.
absl::Status AggregateNothing(size_t ranges, const AggregateOutput& output, cudaStream_t stream);

// Answers ranges, at least one, over at least one entry, under either directory. Enqueues.
template <typename Key>
absl::Status AggregateUnderBitmap(const AggregateView& view, const RankBitmapView<Key>& directory,
                                  const RangeEnds<Key>& ranges, const AggregateOutput& output,
                                  cudaStream_t stream);
template <typename Key>
absl::Status AggregateUnderTree(const AggregateView& view, const KaryDirectory<Key>& directory,
                                const RangeEnds<Key>& ranges, const AggregateOutput& output,
                                cudaStream_t stream);

}  // namespace cairn::gpu
