#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "cairn/index_spec.h"
#include "cairn/options.h"
#include "cairn/snapshot_source.h"
#include "engine/extract/row_extractor.h"
#include "engine/rows/row_table_writer.h"
#include "engine/util/progress_meter.h"
#include "index/build/run_builder.h"
#include "index/columns/columns_builder.h"
#include "index/machine/mutex.h"

namespace cairn {

// The output of a scan for one index.
struct ScanTarget {
  const IndexSpec* spec;
  RowExtractor extractor;
  RunBuilder* entries;                // one part per range
  ColumnsBuilder* columns = nullptr;  // one part per range; null if the spec includes no columns
};

// One pass over all rows of a source by several threads, which take one range after the other. Adds
// each row's primary key to the row table, and each row's secondary keys and included values to
// every target. Can be used once.
class ScanPass {
 public:
  // The arguments must outlive the pass. `rows` must have one part per range.
  ScanPass(const SnapshotSource& source, absl::Span<const PrimaryKeyRange> ranges,
           absl::Span<const ScanTarget> targets, RowTableWriter* rows,
           const std::atomic<bool>* cancelled, ProgressMeter* progress);

  // Scans everything. The first error stops all threads and is returned. Errors: Cancelled if the
  // flag was set; InvalidArgument, with the primary key, for a row that cannot be read under
  // ErrorPolicy::kFail.
  absl::Status Run(int threads);

  // After Run: the counts of each target (entries not set), and the number of rows.
  const std::vector<BuildReport>& reports() const { return reports_; }
  uint64_t rows() const { return total_rows_; }

 private:
  struct RangeResult {
    uint64_t rows = 0;
    std::vector<BuildReport> reports;  // one per target
  };

  void ScanRanges();
  absl::Status ScanRange(size_t range);
  // Adds to the progress. Returns an error if the scan must stop.
  absl::Status CountRows(uint64_t rows);
  void Fail(absl::Status status);

  const SnapshotSource& source_;
  const absl::Span<const PrimaryKeyRange> ranges_;
  const absl::Span<const ScanTarget> targets_;
  RowTableWriter* const rows_;
  const std::atomic<bool>* const cancelled_;
  ProgressMeter* const progress_;

  std::atomic<size_t> next_range_ = 0;
  std::atomic<bool> stop_ = false;
  std::atomic<uint64_t> rows_seen_ = 0;
  std::vector<RangeResult> results_;
  Mutex mutex_;
  absl::Status error_;  // guarded by mutex_ while threads run

  std::vector<BuildReport> reports_;
  uint64_t total_rows_ = 0;
};

}  // namespace cairn
