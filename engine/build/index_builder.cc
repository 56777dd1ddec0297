#include "engine/build/index_builder.h"

#include <cstdint>
#include <future>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/str_format.h"
#include "engine/build/base_files.h"
#include "engine/extract/included_columns.h"
#include "engine/extract/row_extractor.h"
#include "engine/log/anchor.h"
#include "engine/log/older_logs.h"
#include "engine/log/row_reading.h"
#include "engine/rows/row_table_file.h"
#include "engine/source/db_source.h"
#include "engine/source/scan_pass.h"
#include "engine/util/progress_meter.h"
#include "engine/util/rocksdb_file_system.h"
#include "index/build/run_builder.h"
#include "index/columns/columns_builder.h"
#include "index/files/file_system.h"
#include "index/files/index_directory.h"
#include "index/machine/status_macros.h"
#include "index/machine/topology.h"

namespace cairn {
namespace {

// Ranges per thread: enough that threads idle only briefly at the end, few enough that each range
// is long.
constexpr int kRangesPerThread = 16;
// The share of an index's memory for its included columns is 1 / kColumnsShare.
constexpr uint64_t kColumnsShare = 4;

// One index that is being built.
struct IndexInProgress {
  IndexSpec spec;
  std::unique_ptr<IndexDirectory> directory;
  std::unique_ptr<BaseFiles> files;
  std::unique_ptr<RunBuilder> entries;
  std::unique_ptr<ColumnsBuilder> columns;  // null if the spec includes no columns
  Manifest manifest;                        // without the base
};

absl::Status CheckTargets(absl::Span<const BuildTarget> targets) {
  if (targets.empty())
    return absl::InvalidArgumentError("expected at least one index to build, got none");
  std::set<std::string> directories;
  for (const BuildTarget& target : targets) {
    if (target.directory.empty())
      return absl::InvalidArgumentError("BuildTarget::directory: expected a path, got none");
    if (!directories.insert(target.directory).second) {
      return absl::InvalidArgumentError(absl::StrFormat(
          "directory '%s': expected one index per directory, got two", target.directory));
    }
  }
  return absl::OkStatus();
}

// Returns the spec as it is stored, with the column family that is scanned.
absl::StatusOr<IndexSpec> ResolveSpec(const IndexSpec& spec, const SnapshotSource& source) {
  IndexSpec resolved = spec;
  if (spec.column_family != "default" && spec.column_family != source.column_family()) {
    return absl::InvalidArgumentError(
        absl::StrFormat("the index is of column family '%s', but the rows are from '%s'",
                        spec.column_family, source.column_family()));
  }
  resolved.column_family = source.column_family();
  return resolved;
}

// Returns the source's database if its log has all later changes of the rows that are read;
// otherwise null.
const DbSource* LoggedDatabase(const SnapshotSource& source) {
  const auto* const database = dynamic_cast<const DbSource*>(&source);
  return database != nullptr && database->has_log() && !database->changes_values() ? database
                                                                                   : nullptr;
}

// The build of all targets, with the state that its steps share.
class IndexBuild {
 public:
  IndexBuild(const SnapshotSource& source, const BuildOptions& options)
      : source_(source),
        database_(LoggedDatabase(source)),
        options_(options),
        files_(FileSystemOf(options.file_system)),
        threads_(Topology::Get().Threads(options.threads)),
        progress_(options.on_progress) {}

  absl::StatusOr<std::vector<BuildReport>> Run(absl::Span<const BuildTarget> targets) {
    RETURN_IF_ERROR(Prepare(targets));
    RETURN_IF_ERROR(TakeAnchor());
    RETURN_IF_ERROR(Scan());
    RETURN_IF_ERROR(WriteRuns());
    RETURN_IF_ERROR(ShareRowTable());
    // Otherwise the index could be ahead of the database after a power failure.
    if (database_ != nullptr) {
      RETURN_IF_ERROR(SyncLog(database_->db(), read_only()));
    }
    for (IndexInProgress& index : indexes_) {
      index.files->Take().Describe(&index.manifest);
      RETURN_IF_ERROR(index.directory->Publish(std::move(index.manifest)));
    }
    return std::move(reports_);
  }

 private:
  // Records the database's state that the indexes reflect, while the log has it.
  absl::Status TakeAnchor();
  bool read_only() const { return database_->snapshot() == nullptr; }
  // Opens the directories, divides the source into ranges, and creates the row table's file in the
  // first directory.
  absl::Status Prepare(absl::Span<const BuildTarget> targets);
  absl::Status Scan();
  // Sorts and writes each index's entries, while the row table is written to disk.
  absl::Status WriteRuns();
  absl::Status WriteRun(IndexInProgress* index, BuildReport* report);
  // Uses the first index's row table for all other indexes.
  absl::Status ShareRowTable();
  absl::Status PrimaryKeys(absl::Span<const RowId> rows, StringList* primary_keys);

  const SnapshotSource& source_;
  const DbSource* const database_;  // the source's database if its log has all later changes;
                                    // otherwise null
  const BuildOptions& options_;
  const std::shared_ptr<FileSystem> files_;
  const int threads_;
  std::vector<IndexInProgress> indexes_;
  std::vector<PrimaryKeyRange> ranges_;
  RowTableWriter* rows_ = nullptr;  // of the first index's files
  std::vector<RowId> first_rows_;   // of each range
  std::shared_future<absl::Status> rows_written_;
  Anchor anchor_;
  std::vector<BuildReport> reports_;
  ProgressMeter progress_;
};

absl::Status IndexBuild::Prepare(absl::Span<const BuildTarget> targets) {
  RETURN_IF_ERROR(CheckTargets(targets));
  ASSIGN_OR_RETURN(ranges_, source_.Split(threads_ * kRangesPerThread));

  const uint64_t budget =
      options_.memory_budget != 0 ? options_.memory_budget : Topology::Get().memory_bytes() / 2;
  for (const BuildTarget& target : targets) {
    IndexInProgress index;
    ASSIGN_OR_RETURN(IndexSpec spec, ResolveSpec(target.spec, source_));
    index.spec = std::move(spec);
    ASSIGN_OR_RETURN(KeyCodec codec, index.spec.Codec());
    ASSIGN_OR_RETURN(std::unique_ptr<IndexDirectory> directory,
                     IndexDirectory::OpenForWrite(target.directory, files_.get()));
    index.directory = std::move(directory);
    index.files =
        std::make_unique<BaseFiles>(index.directory.get(), options_.prebuild_search_structure);
    RunBuilder::Options options;
    options.threads = threads_;
    options.memory_budget = budget / targets.size();
    options.spill_directory = target.directory;
    options.files = files_.get();
    const auto parts = static_cast<int>(ranges_.size());
    if (!index.spec.include.empty()) {
      ColumnsBuilder::Options of_columns;
      of_columns.memory_budget = options.memory_budget / kColumnsShare;
      of_columns.spill_directory = options.spill_directory;
      of_columns.files = options.files;
      options.memory_budget -= of_columns.memory_budget;
      index.columns =
          std::make_unique<ColumnsBuilder>(IncludedColumns(index.spec), of_columns, parts);
    }
    index.entries = std::make_unique<RunBuilder>(codec.kind(), options, parts);
    indexes_.push_back(std::move(index));
  }
  ASSIGN_OR_RETURN(rows_, indexes_[0].files->BeginRows(ranges_.size()));
  return absl::OkStatus();
}

absl::Status IndexBuild::TakeAnchor() {
  if (database_ == nullptr) {
    anchor_.unproven = absl::StrFormat("it was built from %s, which has no log of later changes",
                                       source_.description());
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(anchor_, cairn::TakeAnchor(database_->db(), database_->column_family_handle(),
                                              database_->sequence(), read_only()));
  return absl::OkStatus();
}

absl::Status IndexBuild::Scan() {
  std::vector<ScanTarget> targets;
  for (IndexInProgress& index : indexes_) {
    ASSIGN_OR_RETURN(RowExtractor extractor, RowExtractor::Create(index.spec));
    targets.push_back(
        {&index.spec, std::move(extractor), index.entries.get(), index.columns.get()});
  }
  progress_.Start(Progress::Phase::kScan, source_.approximate_rows());
  ScanPass pass(source_, ranges_, targets, rows_, options_.cancelled, &progress_);
  RETURN_IF_ERROR(pass.Run(threads_));
  reports_ = pass.reports();
  const std::vector<uint64_t> first_rows = rows_->FirstRows();
  first_rows_.assign(first_rows.begin(), first_rows.end() - 1);
  return absl::OkStatus();
}

absl::Status IndexBuild::WriteRuns() {
  rows_written_ =
      std::async(std::launch::async, [this] { return indexes_[0].files->FinishRows(); }).share();
  uint64_t entries = 0;
  for (const IndexInProgress& index : indexes_) entries += index.entries->entries();
  progress_.Start(Progress::Phase::kWrite, entries);
  absl::Status status;
  for (size_t i = 0; i < indexes_.size() && status.ok(); ++i) {
    status = WriteRun(&indexes_[i], &reports_[i]);
  }
  const absl::Status rows_status = rows_written_.get();
  return status.ok() ? rows_status : status;
}

absl::Status IndexBuild::WriteRun(IndexInProgress* index, BuildReport* report) {
  uint64_t reported = 0;
  const auto on_progress = [&](uint64_t entries) {
    progress_.Add(entries - std::exchange(reported, entries));
  };
  BaseFiles& files = *index->files;
  RETURN_IF_ERROR(files.WriteRun(
      index->spec, threads_,
      [&](absl::Span<const RowId> rows, StringList* primary_keys) {
        return PrimaryKeys(rows, primary_keys);
      },
      [&](EntrySink* sink) {
        return index->entries->Finish(first_rows_, sink, on_progress, options_.cancelled);
      }));
  index->entries.reset();
  if (index->columns != nullptr) {
    RETURN_IF_ERROR(files.WriteColumns(index->columns->columns(), [&](ColumnFileWriter* file) {
      return index->columns->Finish(file, options_.cancelled);
    }));
    index->columns.reset();
  }

  report->entries = files.written().entries;
  Manifest& manifest = index->manifest;
  manifest.spec = index->spec.ToString();
  manifest.database_id = source_.database_id();
  manifest.column_family = source_.column_family();
  manifest.anchor = anchor_.ToString();
  if (anchor_.tables != nullptr) manifest.tables = anchor_.tables->ToString();
  manifest.logs = FormatOlderLogs(anchor_.older_logs);
  if (database_ != nullptr) {
    ASSIGN_OR_RETURN(manifest.reading,
                     RowReading(index->spec, database_->db(), database_->column_family_handle()));
  }
  manifest.sequence = source_.sequence();
  manifest.counts = {{"rows_skipped", report->rows_skipped},
                     {"rows_without_key", report->rows_without_key}};
  return absl::OkStatus();
}

absl::Status IndexBuild::ShareRowTable() {
  for (size_t i = 1; i < indexes_.size(); ++i) {
    RETURN_IF_ERROR(indexes_[i].files->ShareRows(*indexes_[0].files));
  }
  return absl::OkStatus();
}

absl::Status IndexBuild::PrimaryKeys(absl::Span<const RowId> rows, StringList* primary_keys) {
  RETURN_IF_ERROR(rows_written_.get());
  ASSIGN_OR_RETURN(const RowTableFile file, OpenRowTable(indexes_[0].files->rows_path(),
                                                         VerifyLevel::kMetadata, 0, files_.get()));
  return file.table.PrimaryKeys(rows, primary_keys);
}

}  // namespace

absl::StatusOr<std::vector<BuildReport>> BuildIndexes(const SnapshotSource& source,
                                                      absl::Span<const BuildTarget> targets,
                                                      const BuildOptions& options) {
  return IndexBuild(source, options).Run(targets);
}

}  // namespace cairn
