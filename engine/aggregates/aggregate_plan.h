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

// Which keys results list of each range, beside how many there are (ListedKeys).
enum class KeyList : uint8_t {
  kNone,
  kEnds,  // the index's first and last: all that others by key range can have, too
  kAll,
};

// What a call's aggregates ask of each range: measures, each once, and how a value is made of them.
struct AggregatePlan {
  struct Input {
    MeasureKind kind = MeasureKind::kSum;
    size_t column = 0;
    DataType type = DataType::kU64;  // of the column
    std::string name = {};           // of the column
  };
  struct Output {
    AggregateFunction function = AggregateFunction::kCount;
    DataType type = DataType::kU64;  // of the result
    bool of_column = false;          // else of entries or keys
    size_t input = 0;                // of a column
  };

  // Of an index that includes these columns. InvalidArgument, naming the aggregate, for a column
  // that is not included, one that is missing or not wanted, or one whose type the function does
  // not take.
  static absl::StatusOr<AggregatePlan> Make(absl::Span<const ColumnSchema> columns,
                                            absl::Span<const Aggregate> aggregates);

  // One empty column an aggregate.
  std::vector<ColumnValues> Columns() const;

  std::vector<Input> inputs;
  std::vector<Output> outputs;
  bool counts_entries = false;
  bool counts_keys = false;
  KeyList lists_keys = KeyList::kNone;
};

}  // namespace cairn
