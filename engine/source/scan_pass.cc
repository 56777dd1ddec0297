#include "engine/source/scan_pass.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_format.h"
#include "index/keys/escaped_text.h"
#include "index/machine/guard.h"
#include "index/machine/parallel.h"
#include "index/machine/status_macros.h"

namespace cairn {
namespace {

// Rows between two looks at the flags that stop a scan; also the grain of progress.
constexpr uint64_t kRowsPerCheck = 4096;

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
  std::vector<RunBuilder::Part*> entry_parts;
  std::vector<KeyColumn> keys;
  for (const ScanTarget& target : targets_) {
    entry_parts.push_back(target.entries->part(static_cast<int>(range)));
    keys.emplace_back(target.extractor.codec().kind());
  }
  RowExtractor::Scratch scratch;

  uint64_t row_count = 0;
  while (cursor->Next()) {
    const RowView& row = cursor->row();
    RETURN_IF_ERROR(row_part.Add(row.primary_key));
    for (size_t t = 0; t < targets_.size(); ++t) {
      keys[t].Clear(keys[t].kind());
      const RowExtractor& extractor = targets_[t].extractor;
      absl::Status s = t == 0 ? extractor.Extract(row, &scratch, &keys[t])
                              : extractor.ExtractAgain(row, &scratch, &keys[t]);
      if (!s.ok()) {
        s = absl::InvalidArgumentError(absl::StrFormat("row '%s': %s", EscapeBytes(row.primary_key),
                                                       std::string(s.message())));
        if (targets_[t].spec->on_error == ErrorPolicy::kFail) return s;
        BuildReport& report = result.reports[t];
        if (report.rows_skipped++ == 0) report.first_skipped = std::string(s.message());
        continue;
      }
      if (keys[t].empty()) {
        ++result.reports[t].rows_without_key;
        continue;
      }
      if (!entry_parts[t]->Add(keys[t], static_cast<RowId>(row_count))) {
        return entry_parts[t]->Finish();  // says why
      }
    }
    if (++row_count % kRowsPerCheck == 0) {
      RETURN_IF_ERROR(CountRows(kRowsPerCheck));
    }
  }
  RETURN_IF_ERROR(cursor->status());
  RETURN_IF_ERROR(CountRows(row_count % kRowsPerCheck));
  result.rows = row_count;
  RETURN_IF_ERROR(row_part.Close());
  for (RunBuilder::Part* part : entry_parts) {
    RETURN_IF_ERROR(part->Finish());
  }
  return absl::OkStatus();
}

}  // namespace cairn
