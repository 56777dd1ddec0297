#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "cairn/ordered_index.h"
#include "cairn/query.h"
#include "cairn/strategy.h"
#include "cairn/types.h"
#include "cpu_fast/strategy_scratch.h"

// The strategies of cairn/strategy.h on the CPU: functions over any OrderedIndex; each is exact for
// every batch. Buffered queries wait in buffers, one for each part of the key range, that are run
// when full. The paper's fourth scheme, a compressed tree, is an index: CompressedTree.

namespace cairn {

// How sorted queries are answered.
enum class SortedSearch : uint8_t {
  kFastest,  // by the ratio of the batch to the run
  kIndex,    // through the index, whose paths neighbouring queries share
  kMerge,    // in one linear pass over the run: the paper's
};

struct StrategyOptions {
  Strategy strategy = Strategy::kUnbuffered;
  // kKey takes kSortBased, since the other strategies know no order. Result i is then of
  // keys[scratch.permutation()[i]].
  ResultOrder order = ResultOrder::kCaller;
  SortedSearch sorted_search = SortedSearch::kFastest;
  // Buffered: about so many parts, a power of two up to 1024; fewer for a batch that would leave
  // their buffers nearly empty. More parts have more to share among the queries of each, but their
  // buffers, of `buffer` queries each, must stay in the core's cache.
  size_t parts = 256;
  size_t buffer = 1024;
};

// The operations of OrderedIndex, by the same name and to the same outcome, in one thread. What is
// allocated is kept in *scratch, so a call that is no larger than one before allocates nothing.
// Besides their errors: InvalidArgument for options that do not go together or are out of range;
// Unimplemented for keys of bytes and the strategy kBuffered, or SortedSearch::kMerge;
// ResourceExhausted where memory does not suffice.
absl::Status LowerBound(const OrderedIndex& index, KeyBatch keys, absl::Span<Position> positions,
                        const StrategyOptions& options, StrategyScratch* scratch);
absl::Status FindFirst(const OrderedIndex& index, KeyBatch keys, absl::Span<RowId> row_ids,
                       const StrategyOptions& options, StrategyScratch* scratch);

}  // namespace cairn
