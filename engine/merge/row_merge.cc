#include "engine/merge/row_merge.h"

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "index/machine/status_macros.h"

namespace cairn {
namespace {

// Fewer rows are not worth a part of their own, which has a megabyte of buffers.
constexpr uint64_t kMinRowsOfPart = uint64_t{1} << 18;
// Parts a thread, so that all end at about the same time.
constexpr size_t kPartsPerThread = 4;
// Rows that are read at a time.
constexpr uint64_t kBatch = 4096;

// Merges the base's rows [begin, end) and the later rows among them into one part.
class RowPartMerge {
 public:
  RowPartMerge(const Delta& delta, const MergedRowIds& ids, RowId begin, RowId end, MergePace* pace,
               RowTableWriter::Part* part, ColumnsBuilder::Part* columns)
      : delta_(delta),
        later_(ids.LaterRowsAmong(begin, end)),
        begin_(begin),
        end_(end),
        pace_(pace),
        part_(part),
        columns_(columns) {
    if (columns_ == nullptr) return;
    for (const ColumnSchema& column : delta.base_columns.columns()) {
      column_numbers_.push_back(values_.size());
      values_.emplace_back(column.type);
    }
  }

  absl::Status Run() {
    for (uint64_t first = begin_; first < end_; first += kBatch) {
      RETURN_IF_ERROR(AddBatch(first, std::min<uint64_t>(end_, first + kBatch)));
    }
    while (!later_.empty()) {
      RETURN_IF_ERROR(AddLater());
    }
    RETURN_IF_ERROR(Step());
    if (columns_ != nullptr) {
      RETURN_IF_ERROR(columns_->Finish());
    }
    return part_->Close();
  }

 private:
  absl::Status AddBatch(uint64_t begin, uint64_t end) {
    live_.clear();
    for (uint64_t row = delta_.dead_rows.FirstAbsent(begin, end); row < end;
         row = delta_.dead_rows.FirstAbsent(row + 1, end)) {
      live_.push_back(static_cast<RowId>(row));
    }
    primary_keys_.Clear();
    RETURN_IF_ERROR(delta_.base_rows.PrimaryKeys(live_, &primary_keys_));
    for (size_t i = 0; i < live_.size(); ++i) {
      while (!later_.empty() && delta_.rows->rank(later_.front()) <= live_[i]) {
        RETURN_IF_ERROR(AddLater());
      }
      RETURN_IF_ERROR(Add(live_[i], primary_keys_[i]));
    }
    return absl::OkStatus();
  }

  absl::Status AddLater() {
    const RowId row = later_.front();
    later_.remove_prefix(1);
    return Add(row, delta_.rows->primary_key(row));
  }

  absl::Status Add(RowId row, std::string_view primary_key) {
    if (columns_ != nullptr) added_.push_back(row);
    bytes_ += primary_key.size();
    absl::Status s = part_->Add(primary_key);
    // Later rows stand in their places among the base's, so these are at fault.
    if (absl::IsInvalidArgument(s)) s = absl::DataLossError(s.message());
    return s.ok() && ++rows_ == kBatch ? Step() : s;
  }

  absl::Status Step() {
    if (!added_.empty()) {
      RETURN_IF_ERROR(AddValues());
    }
    return pace_->Step(std::exchange(rows_, 0), std::exchange(bytes_, 0));
  }

  // Adds the included values of the rows added since the last step.
  absl::Status AddValues() {
    for (ColumnValues& column : values_) column.Clear();
    RETURN_IF_ERROR(delta_.Included(added_, column_numbers_, absl::MakeSpan(values_)));
    for (const ColumnValues& column : values_) bytes_ += column.memory_bytes();
    added_.clear();
    return columns_->Add(absl::MakeConstSpan(values_)) ? absl::OkStatus() : columns_->Finish();
  }

  const Delta& delta_;
  absl::Span<const RowId> later_;  // that have not been added yet
  const RowId begin_, end_;
  MergePace* const pace_;
  RowTableWriter::Part* const part_;
  ColumnsBuilder::Part* const columns_;  // null where the index includes none
  uint64_t rows_ = 0, bytes_ = 0;        // added since the last step
  std::vector<RowId> live_;
  StringList primary_keys_;
  std::vector<RowId> added_;  // since the last step, where values are to be added
  std::vector<size_t> column_numbers_;
  std::vector<ColumnValues> values_;  // one a column
};

}  // namespace

size_t MergedRowParts(uint64_t rows, int threads) {
  if (threads <= 1) return 1;
  return static_cast<size_t>(std::clamp<uint64_t>(rows / kMinRowsOfPart, 1,
                                                  static_cast<size_t>(threads) * kPartsPerThread));
}

absl::Status MergeRows(const Delta& delta, const MergedRowIds& ids, size_t part, size_t parts,
                       MergePace* pace, RowTableWriter* table, ColumnsBuilder* columns) {
  const uint64_t base_rows = delta.base_rows.rows();
  const auto begin = static_cast<RowId>(base_rows * part / parts);
  const auto end = static_cast<RowId>(base_rows * (part + 1) / parts);
  ColumnsBuilder::Part* const of_columns =
      columns == nullptr ? nullptr : columns->part(static_cast<int>(part));
  return RowPartMerge(delta, ids, begin, end, pace, &table->part(part), of_columns).Run();
}

}  // namespace cairn
