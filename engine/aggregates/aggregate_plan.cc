#include "engine/aggregates/aggregate_plan.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "engine/aggregates/aggregate_values.h"
#include "index/keys/key_number.h"
#include "index/machine/status_macros.h"

namespace cairn {
namespace {

absl::StatusOr<size_t> ColumnOf(absl::Span<const ColumnSchema> columns,
                                const Aggregate& aggregate) {
  std::string there;
  for (const ColumnSchema& schema : columns) {
    if (schema.name == aggregate.column) return static_cast<size_t>(&schema - columns.data());
    absl::StrAppend(&there, there.empty() ? "" : ", ", schema.name);
  }
  return absl::InvalidArgumentError(absl::StrFormat(
      "%s: %s; included columns: %s", AggregateText(aggregate),
      aggregate.column.empty() ? "expected a column, got none"
                               : "the index includes no column '" + aggregate.column + "'",
      there.empty() ? "none" : there));
}

MeasureKind MeasureOf(AggregateFunction function, DataType type) {
  if (function == AggregateFunction::kMin) return MeasureKind::kMin;
  if (function == AggregateFunction::kMax) return MeasureKind::kGreatest;
  return IsFloat(type) ? MeasureKind::kFloatSum : MeasureKind::kSum;
}

}  // namespace

absl::StatusOr<AggregatePlan> AggregatePlan::Make(absl::Span<const ColumnSchema> columns,
                                                  absl::Span<const Aggregate> aggregates) {
  AggregatePlan plan;
  for (const Aggregate& aggregate : aggregates) {
    const AggregateFunction function = aggregate.function;
    if (function > AggregateFunction::kMax) {
      return absl::InvalidArgumentError(
          absl::StrFormat("expected an aggregate function, got %d", static_cast<int>(function)));
    }
    Output output = {function};
    if (function == AggregateFunction::kCountDistinct) {
      if (!aggregate.column.empty()) {
        return absl::InvalidArgumentError(absl::StrFormat(
            "%s: expected no column: the function counts distinct keys", AggregateText(aggregate)));
      }
      plan.counts_keys = true;
    } else if (function == AggregateFunction::kCount && aggregate.column.empty()) {
      plan.counts_entries = true;
    } else {
      ASSIGN_OR_RETURN(const size_t column, ColumnOf(columns, aggregate));
      const DataType type = columns[column].type;
      ASSIGN_OR_RETURN(const DataType result, AggregateType(aggregate, type));
      const Input input = {MeasureOf(function, type), column, type, aggregate.column};
      const auto found = std::find_if(plan.inputs.begin(), plan.inputs.end(), [&](const Input& i) {
        return i.kind == input.kind && i.column == input.column;
      });
      output = {function, result, true, static_cast<size_t>(found - plan.inputs.begin())};
      if (found == plan.inputs.end()) plan.inputs.push_back(input);
    }
    plan.outputs.push_back(output);
  }
  return plan;
}

std::vector<ColumnValues> AggregatePlan::Columns() const {
  std::vector<ColumnValues> columns;
  columns.reserve(outputs.size());
  for (const Output& output : outputs) columns.emplace_back(output.type);
  return columns;
}

}  // namespace cairn
