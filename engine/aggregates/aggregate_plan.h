#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "cairn/aggregate.h"
#include "cairn/column.h"
#include "engine/aggregates/measures.h"
#include "index/columns/column_table.h"

namespace cairn {

// Which keys of each range the results contain (ListedKeys), in addition to the number of keys.
enum class KeyList : uint8_t {
  kNone,
  kEnds,  // the index's first and last key, if in the range: only these can be shared with
          // neighboring shards
  kAll,
};

// The measures that a call's aggregates need of each range, without duplicates, and how to compute
// each output from them.
struct AggregatePlan {
  struct Input {
    MeasureKind kind = MeasureKind::kSum;
    size_t column = 0;
    DataType type = DataType::kU64;  // the column's type
    std::string name = {};           // the column's name
  };
  struct Output {
    AggregateFunction function = AggregateFunction::kCount;
    DataType type = DataType::kU64;  // the result's type
    bool of_column = false;          // otherwise of entries or keys
    size_t input = 0;                // index in `inputs`, if of a column
  };

  // Plans aggregates for an index that includes these columns. InvalidArgument, naming the
  // aggregate: the column is not included, is missing, or must be empty; or the function does not
  // take the column's type.
  static absl::StatusOr<AggregatePlan> Make(absl::Span<const ColumnSchema> columns,
                                            absl::Span<const Aggregate> aggregates);

  // One empty column per aggregate.
  std::vector<ColumnValues> Columns() const;

  std::vector<Input> inputs;
  std::vector<Output> outputs;
  bool counts_entries = false;
  bool counts_keys = false;
  KeyList lists_keys = KeyList::kNone;
};

}  // namespace cairn
