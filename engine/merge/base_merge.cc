#include "engine/merge/base_merge.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "engine/delta/delta.h"
#include "engine/delta_files/delta_files.h"
#include "engine/merge/entry_merge.h"
#include "engine/merge/merge_pace.h"
#include "engine/merge/merged_row_ids.h"
#include "engine/rows/row_table_writer.h"
#include "index/columns/columns_builder.h"
#include "index/machine/guard.h"
#include "index/machine/mutex.h"
#include "index/machine/parallel.h"
#include "index/machine/status_macros.h"
#include "index/machine/topology.h"

namespace cairn {
namespace {

// The minimum number of rows per part. A part has a megabyte of buffers.
constexpr uint64_t kMinRowsOfPart = uint64_t{1} << 18;
// Parts per thread; several, so that all threads end at about the same time.
constexpr size_t kPartsPerThread = 4;
// Number of rows that are read at a time.
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
    // Later rows are inserted at their sorted positions, so an order error is in the base's rows.
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
  absl::Span<const RowId> later_;  // those not added yet
  const RowId begin_, end_;
  MergePace* const pace_;
  RowTableWriter::Part* const part_;
  ColumnsBuilder::Part* const columns_;  // null if the index includes no columns
  uint64_t rows_ = 0, bytes_ = 0;        // added since the last step
  std::vector<RowId> live_;
  StringList primary_keys_;
  std::vector<RowId> added_;  // since the last step, if the index includes columns
  std::vector<size_t> column_numbers_;
  std::vector<ColumnValues> values_;  // one per column
};

// Returns the number of parts in which this many threads write a table of this many rows.
size_t MergedRowParts(uint64_t rows, int threads) {
  if (threads <= 1) return 1;
  return static_cast<size_t>(std::clamp<uint64_t>(rows / kMinRowsOfPart, 1,
                                                  static_cast<size_t>(threads) * kPartsPerThread));
}

// Adds the version's remaining rows to part `part` of `parts` of `table`: the live base rows of a
// range, in order, and the later rows between them. Also adds their included values to `columns`,
// which is null if the index includes none. Different threads may call it for different parts.
// Errors: DataLoss: the base is damaged; Cancelled; those of the table and the columns. Throws
// std::bad_alloc.
absl::Status MergeRows(const Delta& delta, const MergedRowIds& ids, size_t part, size_t parts,
                       MergePace* pace, RowTableWriter* table, ColumnsBuilder* columns) {
  const uint64_t base_rows = delta.base_rows.rows();
  const auto begin = static_cast<RowId>(base_rows * part / parts);
  const auto end = static_cast<RowId>(base_rows * (part + 1) / parts);
  ColumnsBuilder::Part* const of_columns =
      columns == nullptr ? nullptr : columns->part(static_cast<int>(part));
  return RowPartMerge(delta, ids, begin, end, pace, &table->part(part), of_columns).Run();
}

// One in this many threads, but at least one, begins with entries. The others begin with rows,
// which take about three times as long (Merge/u64, 16-byte primary keys). More than
// kMaxEntryThreads threads would wait for the one that writes.
constexpr int kThreadsPerEntryThread = 4;
constexpr int kMaxEntryThreads = 4;

// Maximum memory for included columns; more is spilled to disk.
constexpr uint64_t kColumnBytes = uint64_t{64} << 20;

// One merge. Some threads write the run first; then all threads write the row table.
class BaseMerge {
 public:
  BaseMerge(const Delta& delta, IndexDirectory* directory, const CompactOptions& options,
            bool prebuild_search_structure)
      : delta_(delta),
        directory_(directory),
        files_(directory, prebuild_search_structure),
        threads_(Topology::Get().Threads(options.threads)),
        entry_threads_(std::clamp(threads_ / kThreadsPerEntryThread, 1, kMaxEntryThreads)),
        ids_(delta, threads_),
        parts_(MergedRowParts(ids_.rows(), threads_)),
        pace_(options.max_bytes_per_second, options.on_progress, options.cancelled) {}

  absl::StatusOr<WrittenBase> Run() {
    RETURN_IF_ERROR(Begin());
    const auto entry_threads = static_cast<size_t>(entry_threads_);
    ParallelFor(threads_, entry_threads + parts_, [&](size_t i) {
      try {
        Fail(i < entry_threads ? WorkOnEntries() : MergeRowPart(i - entry_threads));
      } catch (...) {
        pace_.Stop();
        throw;
      }
    });
    if (status_.ok()) status_ = files_.FinishRows();
    if (status_.ok() && columns_ != nullptr) status_ = FinishColumns();
    if (!status_.ok()) return status_;
    return files_.Take();
  }

 private:
  absl::Status Begin() {
    ASSIGN_OR_RETURN(RunFileWriter* const run, files_.BeginRun(delta_.base_run.kind()));
    ASSIGN_OR_RETURN(table_, files_.BeginRows(parts_));
    const absl::Span<const ColumnSchema> columns = delta_.base_columns.columns();
    if (!columns.empty()) {
      ColumnsBuilder::Options options;
      options.memory_budget = kColumnBytes;
      options.spill_directory = directory_->path();
      options.files = directory_->files();
      columns_ = std::make_unique<ColumnsBuilder>(
          std::vector<ColumnSchema>(columns.begin(), columns.end()), options,
          static_cast<int>(parts_));
    }
    ASSIGN_OR_RETURN(entries_, EntryMerge::Begin(delta_, ids_, entry_threads_, &pace_, run));
    pace_.Start(ids_.rows() + delta_.Stats().entries);
    return absl::OkStatus();
  }

  // The last thread that finishes the entries closes their file.
  absl::Status WorkOnEntries() {
    entries_->Work();
    if (++entry_threads_done_ < entry_threads_) return absl::OkStatus();
    if (!entries_->status().ok()) return entries_->status();
    if (pace_.stopped()) return absl::CancelledError("the merge was cancelled");
    return files_.FinishRun(entry_threads_);
  }

  absl::Status MergeRowPart(size_t part) {
    return MergeRows(delta_, ids_, part, parts_, &pace_, table_, columns_.get());
  }
  absl::Status FinishColumns() {
    return files_.WriteColumns(columns_->columns(),
                               [&](ColumnFileWriter* file) { return columns_->Finish(file); });
  }

  // Keeps the first error. Replaces the error of a thread that was only cancelled because of
  // another one's error.
  void Fail(absl::Status status) {
    if (status.ok()) return;
    const MutexLock lock(&mutex_);
    if (status_.ok() || absl::IsCancelled(status_)) status_ = std::move(status);
    pace_.Stop();
  }

  const Delta& delta_;
  IndexDirectory* const directory_;
  BaseFiles files_;
  const int threads_;
  const int entry_threads_;
  const MergedRowIds ids_;
  const size_t parts_;  // of the row table
  MergePace pace_;
  RowTableWriter* table_ = nullptr;
  std::unique_ptr<ColumnsBuilder> columns_;  // null if the index includes no columns
  std::unique_ptr<EntryMerge> entries_;
  std::atomic<int> entry_threads_done_{0};
  Mutex mutex_;
  absl::Status status_;  // guarded by mutex_ while threads run
};

}  // namespace

absl::StatusOr<WrittenBase> MergeBase(const Delta& delta, IndexDirectory* directory,
                                      const CompactOptions& options,
                                      bool prebuild_search_structure) {
  return Guarded("merging a delta into its base", [&] {
    return BaseMerge(delta, directory, options, prebuild_search_structure).Run();
  });
}

Manifest AfterMerge(const Manifest& current, const WrittenBase& base,
                    absl::Span<const ManifestFile> merged) {
  Manifest next = current;
  base.Describe(&next);
  next.counts.erase("rows_skipped");
  next.counts.erase("rows_without_key");
  for (const ManifestFile& file : current.files) {
    std::string_view prefix, extension;
    uint64_t number = 0;
    ParseIndexFileName(file.name, &prefix, &number, &extension);
    if (prefix != "base" && prefix != "rows" && prefix != "columns") next.files.push_back(file);
  }
  RemoveFiles(merged, &next);
  return next;
}

}  // namespace cairn
