// The files of an index that is built.

#include <algorithm>
#include <atomic>
#include <memory>
#include <vector>

#include "absl/strings/str_format.h"
#include "cairn/options.h"
#include "cairn/secondary_index.h"
#include "cairn/snapshot_source.h"
#include "engine/live/index_upkeep.h"
#include "engine/log/wal_files.h"
#include "engine/util/periodically.h"
#include "engine/util/status.h"
#include "index/machine/status_macros.h"
#include "index/machine/topology.h"
#include "rocksdb/options.h"
#include "rocksdb/transaction_log.h"

namespace cairn {
namespace {

// The memory for a build whose options do not set it.
constexpr uint64_t kBuildMemory = uint64_t{1} << 30;
// How often to check whether a build must end.
constexpr absl::Duration kWatchInterval = absl::Milliseconds(20);

// The share of a build that is done; scanning the rows takes about half of the time.
double ShareDone(const Progress& progress) {
  const double share =
      progress.total == 0
          ? 0
          : std::min(1.0, static_cast<double>(progress.done) / static_cast<double>(progress.total));
  switch (progress.phase) {
    case Progress::Phase::kScan:
      return 0.5 * share;
    case Progress::Phase::kSort:
      return 0.5 + 0.25 * share;
    case Progress::Phase::kWrite:
      return 0.75 + 0.25 * share;
  }
  return 0;
}

}  // namespace

absl::Status IndexUpkeep::BuildFiles(const Indexes& indexes, const LogRetention::Hold& hold,
                                     const UnloggedWrites::Hold& unlogged) {
  std::vector<BuildTarget> targets;
  for (const auto& index : indexes) {
    // The files of an earlier build are useless even if they are complete, because later changes
    // are unknown.
    if (index->writer() == nullptr && index->is_to_be_built()) {
      RETURN_IF_ERROR(catalog_.RemoveFiles(index->name()));
    }
    index->LetGoOfDirectory();  // the build takes it
    targets.push_back({index->spec(), index->directory()});
  }
  RETURN_IF_ERROR(PassFailedWrites(indexes[0]->column_family()));
  ASSIGN_OR_RETURN(const std::unique_ptr<SnapshotSource> source,
                   SnapshotSource::FromDb(db_, indexes[0]->column_family()));
  std::atomic<bool> cancelled{false};
  BuildOptions build = options_.build;
  if (build.memory_budget == 0) {
    build.memory_budget = std::min(kBuildMemory, Topology::Get().memory_bytes() / 2);
  }
  build.cancelled = &cancelled;
  build.file_system = options_.open.file_system;
  build.on_progress = [&](const Progress& progress) {
    for (const auto& index : indexes) index->set_progress(ShareDone(progress));
  };
  // Ends the build if one of its indexes is dropped, or if its log is no longer kept.
  const Periodically watch(kWatchInterval, [&] {
    cancelled = hold.exceeded() || unlogged.exceeded() ||
                std::any_of(indexes.begin(), indexes.end(),
                            [](const auto& i) { return i->cancelled().load(); });
  });
  return SecondaryIndex::BuildAll(*source, targets, build).status();
}

absl::Status IndexUpkeep::PassFailedWrites(rocksdb::ColumnFamilyHandle* column_family) {
  const uint64_t failed = changes_->failed_log();
  if (failed == 0) return absl::OkStatus();
  // A successful write publishes all numbers that were assigned before it. Until the database has
  // recovered from the failed write, each write fails with that error, which says nothing about
  // rows.
  if (const absl::Status s = SyncLog(db_, /*read_only=*/false); !s.ok()) {
    return absl::UnavailableError(s.message());
  }
  for (rocksdb::ColumnFamilyHandle* family : {static_cast<rocksdb::ColumnFamilyHandle*>(nullptr),
                                              column_family, db_->DefaultColumnFamily()}) {
    if (family != nullptr) {
      RETURN_IF_ERROR(
          FromRocksDb(db_->Flush(rocksdb::FlushOptions(), family), "cannot flush the database"));
    }
    std::unique_ptr<rocksdb::LogFile> current;
    RETURN_IF_ERROR(FromRocksDb(db_->GetCurrentWalFile(&current), "cannot find the log's file"));
    if (current->LogNumber() > failed) return absl::OkStatus();
  }
  return absl::UnavailableError(absl::StrFormat(
      "log file %d of database '%s' may have the record of a write that failed: the index is built "
      "once a flush begins another file",
      failed, db_->GetName()));
}

}  // namespace cairn
