#include "engine/version/index_version.h"

#include <numeric>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "cpu_fast/batch/parallel_batch.h"
#include "engine/delta/compact_delta.h"
#include "engine/version/versioned_search.h"
#include "index/machine/status_macros.h"
#include "index/machine/topology.h"
#include "index/query/batch_check.h"

namespace cairn {
namespace {

// Checks that unverified entries refer only to existing rows.
absl::Status CheckRows(const Base& base, const Batch& batch) {
  absl::Span<const RowId> row_ids;
  if (batch.operation == Operation::kFindFirst) row_ids = batch.values;
  if (batch.gives_matches()) row_ids = batch.matches->row_ids;
  const uint64_t rows = base.rows().rows();
  bool good = true;
  for (const RowId row : row_ids) good &= row < rows || row == kNoRow;
  if (batch.operation == Operation::kFindFirst) {
    for (const GlobalRowId row : batch.rows) good &= row < rows || row == kNoGlobalRow;
  }
  if (batch.gives_matches()) {
    for (const RowId row : row_ids) good &= row != kNoRow;
  }
  if (good) return absl::OkStatus();
  return absl::DataLossError(absl::StrFormat(
      "index '%s': an entry has a row id outside of its %d rows", base.directory, rows));
}

}  // namespace

absl::Status BeginColumns(const Batch& batch) {
  if (batch.gives_matches()) {
    batch.matches->columns.clear();
    return absl::OkStatus();
  }
  if (batch.options.columns.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrFormat("%s returns no columns; use find or scan", OperationName(batch.operation)));
}

absl::Status IndexVersion::Execute(const Batch& batch, int threads) const {
  if (static_cast<size_t>(batch.operation) >= kIndexOperations) {
    return absl::InvalidArgumentError(
        absl::StrFormat("%s is for an ordered index: a secondary index has no positions",
                        OperationName(batch.operation)));
  }
  const bool in_key_order = batch.options.result_order == ResultOrder::kKey;
  if (!batch.takes_ranges() && (in_key_order || !batch.query_of.empty())) {
    RETURN_IF_ERROR(CheckOutput(batch.size(), batch.query_of.size(), "query_of"));
    // Routes fill it only if it is another order.
    if (!in_key_order) std::iota(batch.query_of.begin(), batch.query_of.end(), 0);
  }
  RETURN_IF_ERROR(BeginColumns(batch));
  const StopCondition stop = StopCondition::Of(batch.options);
  RETURN_IF_ERROR(stop.Check());
  RETURN_IF_ERROR(AnswerEntries(batch, threads));
  if (batch.options.columns.empty()) return absl::OkStatus();
  return Columns(batch.matches->row_ids, batch.options.columns, &batch.matches->columns, stop);
}

IndexVersion IndexVersion::ToAsk(size_t ranges) const {
  if (delta->compact == nullptr) return *this;
  const std::shared_ptr<const Delta>* const compact =
      delta->compact->Get(*delta, ranges * CompactDelta::kRangeWork);
  return compact == nullptr ? *this : IndexVersion{base, *compact, sequence};
}

absl::Status IndexVersion::AnswerEntries(const Batch& batch, int threads) const {
  // Cursors contain rows of any version, so they are resolved by the delta.
  const bool in_pages =
      batch.operation == Operation::kScan &&
      (batch.options.limit != QueryOptions().limit || !batch.ranges.after.empty());
  const auto answer_base = [this](const Batch& of_base) { return base->router->Execute(of_base); };
  RETURN_IF_ERROR(delta->empty() && !in_pages
                      ? answer_base(batch)
                      : AnswerVersion(*delta, answer_base, batch,
                                      Parallelism{.threads = Topology::Get().Threads(threads),
                                                  .stop = StopCondition::Of(batch.options)},
                                      base->cursor_checksum));
  return base->is_proven() ? absl::OkStatus() : CheckRows(*base, batch);
}

absl::Status IndexVersion::Columns(absl::Span<const RowId> row_ids,
                                   absl::Span<const std::string> names,
                                   std::vector<ColumnValues>* columns,
                                   const StopCondition& stop) const {
  const ColumnTable& table = delta->base_columns;
  std::vector<size_t> numbers;
  columns->clear();
  for (const std::string& name : names) {
    const std::optional<size_t> number = table.Find(name);
    if (!number.has_value()) {
      std::string there;
      for (const ColumnSchema& column : table.columns()) {
        absl::StrAppend(&there, there.empty() ? "" : ", ", column.name);
      }
      return absl::InvalidArgumentError(
          absl::StrFormat("the index includes no column '%s', %s", name,
                          there.empty() ? "nor any other" : "only " + there));
    }
    numbers.push_back(*number);
    columns->emplace_back(table.columns()[*number].type);
  }
  return ForEachStoppable(row_ids.size(), stop, [&](size_t first, size_t count) {
    return delta->Included(row_ids.subspan(first, count), numbers, absl::MakeSpan(*columns));
  });
}

}  // namespace cairn
