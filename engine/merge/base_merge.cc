#include "engine/merge/base_merge.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/delta_files/delta_files.h"
#include "engine/merge/entry_merge.h"
#include "engine/merge/merge_pace.h"
#include "engine/merge/merged_row_ids.h"
#include "engine/merge/row_merge.h"
#include "index/columns/columns_builder.h"
#include "index/machine/guard.h"
#include "index/machine/mutex.h"
#include "index/machine/parallel.h"
#include "index/machine/status_macros.h"
#include "index/machine/topology.h"

namespace cairn {
namespace {

// A thread in so many, and at least one, begins with entries; the others with rows, which take
// about three times as long (Merge/u64, 16-byte primary keys). More than kMaxEntryThreads would
// wait for the one that writes.
constexpr int kThreadsPerEntryThread = 4;
constexpr int kMaxEntryThreads = 4;

// Memory for included columns, beyond which they are spilled.
constexpr uint64_t kColumnBytes = uint64_t{64} << 20;

// One merge: threads that write its run, and then, with those that did not, its row table.
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

  // The last thread to leave the entries finishes their file.
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

  // Keeps the first error, and not those of threads that were cancelled on its account.
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
  std::unique_ptr<ColumnsBuilder> columns_;  // null where the index includes none
  std::unique_ptr<EntryMerge> entries_;
  std::atomic<int> entry_threads_done_{0};
  Mutex mutex_;
  absl::Status status_;  // guarded by mutex_ while there are threads
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
