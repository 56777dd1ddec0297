#include "engine/merge/base_merge.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cpu_fast/packed/leaves_writer.h"
#include "engine/delta_files/delta_files.h"
#include "engine/merge/entry_merge.h"
#include "engine/merge/merge_pace.h"
#include "engine/merge/merged_row_ids.h"
#include "engine/merge/row_merge.h"
#include "engine/rows/row_table_file.h"
#include "index/columns/column_file.h"
#include "index/columns/columns_builder.h"
#include "index/files/run_file.h"
#include "index/machine/guard.h"
#include "index/machine/mutex.h"
#include "index/machine/parallel.h"
#include "index/machine/status_macros.h"
#include "index/machine/topology.h"

namespace cairn {
namespace {

// A thread in so many, and at least one, begins with entries; the others with rows, which take
// about three times as long (Merge/u64, 16-byte primary keys). More than kMostEntryThreads would
// wait for the one that writes.
constexpr int kThreadsPerEntryThread = 4;
constexpr int kMostEntryThreads = 4;

// Memory for included columns, beyond which they are spilled.
constexpr uint64_t kColumnBytes = uint64_t{64} << 20;

// One merge: threads that write its run, and then, with those that did not, its row table.
class BaseMerge {
 public:
  BaseMerge(const Delta& delta, IndexDirectory* directory, const MergeOptions& options,
            BaseLeaves leaves)
      : delta_(delta),
        directory_(directory),
        leaves_(leaves),
        threads_(Topology::Get().Threads(options.threads)),
        entry_threads_(std::clamp(threads_ / kThreadsPerEntryThread, 1, kMostEntryThreads)),
        ids_(delta, threads_),
        parts_(MergedRowParts(ids_.rows(), threads_)),
        pace_(options.max_bytes_per_second, options.on_progress, options.cancelled) {}

  absl::StatusOr<MergedBase> Run() {
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
    if (status_.ok()) status_ = FinishRows();
    if (status_.ok() && columns_ != nullptr) status_ = FinishColumns();
    if (!status_.ok()) return status_;
    return std::exchange(merged_, MergedBase());
  }
  // Removes the files that were finished if others were not.
  ~BaseMerge() {
    for (const std::string& name : {merged_.run.name, merged_.row_table.name}) {
      if (!name.empty()) directory_->files()->Remove(directory_->PathOf(name)).IgnoreError();
    }
  }

 private:
  absl::Status Begin() {
    run_name_ = directory_->NextFileName("base", "run");
    ASSIGN_OR_RETURN(run_, RunFileWriter::Create(directory_->PathOf(run_name_),
                                                 delta_.base_run.kind(), {}, directory_->files()));
    table_name_ = directory_->NextFileName("rows", "tbl");
    ASSIGN_OR_RETURN(table_, RowTableFileWriter::Create(directory_->PathOf(table_name_), parts_,
                                                        directory_->files()));
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
    ASSIGN_OR_RETURN(entries_, EntryMerge::Begin(delta_, ids_, entry_threads_, &pace_, run_.get()));
    pace_.Start(ids_.rows() + delta_.Stats().entries);
    return absl::OkStatus();
  }

  // The last thread to leave the entries finishes their file.
  absl::Status WorkOnEntries() {
    entries_->Work();
    if (++entry_threads_done_ < entry_threads_) return absl::OkStatus();
    if (!entries_->status().ok()) return entries_->status();
    if (pace_.stopped()) return absl::CancelledError("the merge was cancelled");
    if (leaves_ == BaseLeaves::kStored) RETURN_IF_ERROR(WriteLeaves(run_.get(), entry_threads_));
    RETURN_IF_ERROR(run_->Finish());
    merged_.entries = run_->properties().entries;
    merged_.distinct_keys = run_->properties().distinct_keys;
    merged_.run = {run_name_, run_->file().size(), run_->file().header_checksum()};
    return absl::OkStatus();
  }

  absl::Status MergeRowPart(size_t part) {
    return MergeRows(delta_, ids_, part, parts_, &pace_, &table_->table(), columns_.get());
  }
  absl::Status FinishRows() {
    RETURN_IF_ERROR(table_->Finish());
    merged_.rows = ids_.rows();
    merged_.row_table = {table_name_, table_->size(), table_->header_checksum()};
    return absl::OkStatus();
  }

  absl::Status FinishColumns() {
    const std::string name = directory_->NextFileName("columns", "col");
    ASSIGN_OR_RETURN(std::unique_ptr<ColumnFileWriter> file,
                     ColumnFileWriter::Create(directory_->PathOf(name), columns_->columns(),
                                              directory_->files()));
    RETURN_IF_ERROR(columns_->Finish(file.get()));
    merged_.columns = {name, file->size(), file->header_checksum()};
    return absl::OkStatus();
  }

  // Keeps the first error, and not those of threads that were cancelled on its account.
  void Fail(absl::Status status) {
    if (status.ok()) return;
    const MutexLock lock(&mutex_);
    if (status_.ok() || absl::IsCancelled(status_)) status_ = std::move(status);
    pace_.Stop();
  }

  const Delta& delta_;
  IndexDirectory* const directory_;
  const BaseLeaves leaves_;
  const int threads_;
  const int entry_threads_;
  const MergedRowIds ids_;
  const size_t parts_;  // of the row table
  MergePace pace_;
  std::string run_name_, table_name_;
  std::unique_ptr<RunFileWriter> run_;
  std::unique_ptr<RowTableFileWriter> table_;
  std::unique_ptr<ColumnsBuilder> columns_;  // null where the index includes none
  std::unique_ptr<EntryMerge> entries_;
  std::atomic<int> entry_threads_done_{0};
  Mutex mutex_;
  absl::Status status_;  // guarded by mutex_ while there are threads
  MergedBase merged_;
};

}  // namespace

absl::StatusOr<MergedBase> MergeBase(const Delta& delta, IndexDirectory* directory,
                                     const MergeOptions& options, BaseLeaves leaves) {
  return Guarded("merging a delta into its base",
                 [&] { return BaseMerge(delta, directory, options, leaves).Run(); });
}

Manifest MergedBase::Follow(const Manifest& current, absl::Span<const ManifestFile> merged) const {
  Manifest next = current;
  next.rows = rows;
  next.entries = entries;
  next.counts["distinct_keys"] = distinct_keys;
  next.counts.erase("rows_skipped");
  next.counts.erase("rows_without_key");
  next.files = {run, row_table};
  if (columns.has_value()) next.files.push_back(*columns);
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
