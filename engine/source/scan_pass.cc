#include "engine/source/scan_pass.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_format.h"
#include "index/columns/tuple.h"
#include "index/keys/escaped_text.h"
#include "index/machine/guard.h"
#include "index/machine/parallel.h"
#include "index/machine/status_macros.h"

namespace cairn {
namespace {

// Rows between two checks of the flags that stop a scan; also the granularity of progress.
constexpr uint64_t kRowsPerCheck = 4096;

// Collects one target's entries of one range for the builder's part.
class EntryCollector {
 public:
  EntryCollector(const ScanTarget& target, size_t range, BuildReport* report)
      : target_(target),
        part_(target.entries->part(static_cast<int>(range))),
        report_(report),
        keys_(target.extractor.codec().kind()) {
    rows_.reserve(kEntriesAtATime);
    if (target.columns == nullptr) return;
    columns_ = target.columns->part(static_cast<int>(range));
    for (const ColumnSchema& column : target.columns->columns()) types_.push_back(column.type);
    values_.resize(types_.size());
    plain_ = target.extractor.has_plain_columns();
  }

  // Adds the keys of the range's row `local_row`. `again`: another target has extracted from this
  // row.
  absl::Status Take(const RowView& row, RowId local_row, bool again,
                    RowExtractor::Scratch* scratch) {
    std::string* const tuple = columns_ == nullptr || plain_ ? nullptr : &tuple_;
    absl::Status status = again ? target_.extractor.ExtractAgain(row, scratch, &keys_, tuple)
                                : target_.extractor.Extract(row, scratch, &keys_, tuple);
    if (plain_ && status.ok() && keys_.size() > rows_.size()) {
      status = target_.extractor.ReadIncluded(row, absl::MakeSpan(values_));
      if (!status.ok()) keys_.Truncate(rows_.size());
    }
    if (!status.ok()) {
      RETURN_IF_ERROR(Unreadable(row, status));
    }
    const size_t found = keys_.size() - rows_.size();
    if (found == 0 && status.ok()) ++report_->rows_without_key;
    if (columns_ != nullptr && !AddValues(found != 0)) return columns_->Finish();  // the reason
    if (found == 1) [[likely]] {
      rows_.push_back(local_row);
    } else {
      rows_.resize(rows_.size() + found, local_row);
    }
    if (rows_.size() < kEntriesAtATime && keys_.heap().size() < kKeyBytesAtATime) {
      return absl::OkStatus();
    }
    return HandOver();
  }

  absl::Status Finish() {
    if (!rows_.empty()) {
      RETURN_IF_ERROR(HandOver());
    }
    if (columns_ != nullptr) {
      RETURN_IF_ERROR(columns_->Finish());
    }
    return part_->Finish();
  }

 private:
  // Entries that are passed on at a time. They stay in the first-level cache.
  static constexpr size_t kEntriesAtATime = 256;
  static constexpr size_t kKeyBytesAtATime = size_t{8} << 10;

  absl::Status HandOver() {
    if (!part_->Add(keys_, rows_)) return part_->Finish();  // the reason
    keys_.Clear(keys_.kind());
    rows_.clear();
    return absl::OkStatus();
  }

  // Adds values_, after reading them from tuple_ unless they are plain. A row without entries gets
  // nulls, which no query reads.
  bool AddValues(bool has_entries) {
    if (!has_entries || (!plain_ && !ReadTuple(types_, tuple_, absl::MakeSpan(values_)))) {
      std::fill(values_.begin(), values_.end(), DataValue());
    }
    return columns_->Add(values_);
  }

  absl::Status Unreadable(const RowView& row, const absl::Status& why) {
    absl::Status status = absl::InvalidArgumentError(
        absl::StrFormat("row '%s': %s", EscapeBytes(row.primary_key), why.message()));
    if (target_.spec->on_error == ErrorPolicy::kFail) return status;
    if (report_->rows_skipped++ == 0) report_->first_skipped = std::string(status.message());
    return absl::OkStatus();
  }

  const ScanTarget& target_;
  RunBuilder::Part* const part_;
  BuildReport* const report_;
  EncodedKeys keys_;
  std::vector<RowId> rows_;  // one per key

  ColumnsBuilder::Part* columns_ = nullptr;  // null: the spec includes no columns
  std::vector<DataType> types_;
  bool plain_ = false;  // whether values_ are read from the row instead of its tuple
  std::string tuple_;
  std::vector<DataValue> values_;
};

}  // namespace

ScanPass::ScanPass(const SnapshotSource& source, absl::Span<const PrimaryKeyRange> ranges,
                   absl::Span<const ScanTarget> targets, RowTableWriter* rows,
                   const std::atomic<bool>* cancelled, ProgressMeter* progress)
    : source_(source),
      ranges_(ranges),
      targets_(targets),
      rows_(rows),
      cancelled_(cancelled),
      progress_(progress),
      results_(ranges.size()) {
  for (RangeResult& result : results_) result.reports.resize(targets.size());
}

absl::Status ScanPass::Run(int threads) {
  const int useful = static_cast<int>(std::min<size_t>(std::max(threads, 1), ranges_.size()));
  ParallelFor(useful, static_cast<size_t>(useful), [this](size_t) { ScanRanges(); });
  if (!error_.ok()) return error_;

  reports_.resize(targets_.size());
  for (const RangeResult& result : results_) {
    total_rows_ += result.rows;
    for (size_t t = 0; t < targets_.size(); ++t) {
      const BuildReport& from = result.reports[t];
      BuildReport& to = reports_[t];
      to.rows_skipped += from.rows_skipped;
      to.rows_without_key += from.rows_without_key;
      if (to.first_skipped.empty()) to.first_skipped = from.first_skipped;
    }
  }
  for (BuildReport& report : reports_) report.rows = total_rows_;
  return absl::OkStatus();
}

void ScanPass::ScanRanges() {
  while (!stop_.load(std::memory_order_relaxed)) {
    const size_t range = next_range_.fetch_add(1);
    if (range >= ranges_.size()) return;
    absl::Status status = Guarded("scanning rows", [&] { return ScanRange(range); });
    if (!status.ok()) return Fail(std::move(status));
  }
}

void ScanPass::Fail(absl::Status status) {
  stop_ = true;
  const MutexLock lock(&mutex_);
  if (error_.ok()) error_ = std::move(status);
}

absl::Status ScanPass::CountRows(uint64_t rows) {
  progress_->Add(rows);
  if (rows_seen_.fetch_add(rows, std::memory_order_relaxed) + rows > kMaxEntries) {
    return absl::ResourceExhaustedError(
        absl::StrFormat("more than %d rows in one column family", kMaxEntries));
  }
  if (cancelled_ != nullptr && cancelled_->load(std::memory_order_relaxed)) {
    return absl::CancelledError("the build was cancelled");
  }
  if (stop_.load(std::memory_order_relaxed)) return absl::CancelledError("another scan failed");
  return absl::OkStatus();
}

absl::Status ScanPass::ScanRange(size_t range) {
  ASSIGN_OR_RETURN(std::unique_ptr<RowCursor> cursor, source_.Scan(ranges_[range]));
  RangeResult& result = results_[range];
  RowTableWriter::Part& row_part = rows_->part(range);
  std::vector<EntryCollector> collectors;
  for (size_t t = 0; t < targets_.size(); ++t) {
    collectors.emplace_back(targets_[t], range, &result.reports[t]);
  }
  RowExtractor::Scratch scratch;

  uint64_t row_count = 0;
  while (cursor->Next()) {
    const RowView& row = cursor->row();
    RETURN_IF_ERROR(row_part.Add(row.primary_key));
    bool again = false;
    for (EntryCollector& collector : collectors) {
      RETURN_IF_ERROR(
          collector.Take(row, static_cast<RowId>(row_count), std::exchange(again, true), &scratch));
    }
    if (++row_count % kRowsPerCheck == 0) {
      RETURN_IF_ERROR(CountRows(kRowsPerCheck));
    }
  }
  RETURN_IF_ERROR(cursor->status());
  RETURN_IF_ERROR(CountRows(row_count % kRowsPerCheck));
  result.rows = row_count;
  RETURN_IF_ERROR(row_part.Close());
  for (EntryCollector& collector : collectors) {
    RETURN_IF_ERROR(collector.Finish());
  }
  return absl::OkStatus();
}

}  // namespace cairn
