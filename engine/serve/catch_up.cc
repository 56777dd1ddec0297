#include "engine/serve/catch_up.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/str_format.h"
#include "absl/types/span.h"
#include "engine/log/anchor.h"
#include "engine/log/ingested_files.h"
#include "engine/log/row_changes.h"
#include "engine/log/settled_changes.h"
#include "engine/log/update_log.h"
#include "engine/log/wal_files.h"
#include "engine/serve/change_extractor.h"
#include "engine/serve/existing_rows.h"
#include "engine/source/db_source.h"
#include "engine/util/rate_limiter.h"
#include "index/machine/guard.h"
#include "index/machine/status_macros.h"
#include "index/machine/stop_flag.h"

namespace cairn {
namespace {

// Changes that are held at a time: enough for batches that find neighbouring rows in passing,
// little beside an index.
constexpr size_t kSliceBytes = size_t{64} << 20;

absl::Status ReadAndApply(const SnapshotSource& source, const CatchUpOptions& options,
                          UpdateLog* log, IndexWriter::Update* update, CatchUpReport* report) {
  ASSIGN_OR_RETURN(ChangeExtractor extractor, ChangeExtractor::Create(update->version().spec()));
  RateLimiter limiter(options.max_bytes_per_second);
  StopFlag stop(options.cancelled);
  // A slice of the log is small where its rate is: a tenth of a second's worth.
  const size_t slice = options.max_bytes_per_second == 0
                           ? kSliceBytes
                           : std::min<size_t>(kSliceBytes, options.max_bytes_per_second / 10 + 1);
  uint64_t limited = 0;
  RowChanges changes;
  SettledChanges settled;
  RowUpdates updates(update->version().base->codec.kind());
  while (!log->done()) {
    limiter.Take(log->bytes_read() - std::exchange(limited, log->bytes_read()), &stop);
    if (stop.stopped()) return absl::CancelledError("catching up was cancelled");
    changes.Clear();
    RETURN_IF_ERROR(log->Read(slice, absl::MakeSpan(&changes, 1)));
    settled.Settle(changes);
    RETURN_IF_ERROR(extractor.Extract(settled, &source, &updates));
    RETURN_IF_ERROR(update->Apply(updates));
    report->changes += changes.size();
    report->rows += updates.rows();
  }
  report->log_bytes = log->bytes_read();
  return absl::OkStatus();
}

// Makes sure that the database continues what the index has, by ways that its log tells; returns
// the index's anchor as of this opening of the database.
absl::StatusOr<Anchor> CheckAnchor(const DbSource& database, const CatchUpOptions& options,
                                   const IndexWriter::Update& update) {
  Anchor anchor = update.anchor();
  const SequenceNumber sequence = update.version().sequence;
  rocksdb::ColumnFamilyHandle* const column_family = database.column_family_handle();
  if (database.changes_values()) {
    return absl::FailedPreconditionError(absl::StrFormat(
        "%s is read through a layer that makes its own iterators and may change values (DBWithTTL, "
        "for example), which the log does not record: an index of it cannot catch up; rebuild the "
        "index, or build it from the database below (DB::GetRootDB)",
        database.description()));
  }
  bool proven = true;
  absl::Status continues = CheckContinues(sequence, database.db(), column_family, &anchor, &proven);
  if (!continues.ok()) {
    if (proven || !options.assume_continues) return continues;
    anchor.AssumeProven();
  }
  ASSIGN_OR_RETURN(
      const uint64_t ingested,
      NewestIngestedFile(database.db(), column_family, database.sequence(), anchor.ingested_file));
  if (ingested != 0) {
    return absl::FailedPreconditionError(absl::StrFormat(
        "file %06d.sst was ingested into %s after the state %d that the index has, which the log "
        "does not tell; build the index anew",
        ingested, database.description(), sequence));
  }
  return anchor;
}

absl::StatusOr<CatchUpReport> ToSource(const SnapshotSource& source, const CatchUpOptions& options,
                                       IndexWriter* writer) {
  const auto* const database = dynamic_cast<const DbSource*>(&source);
  if (database == nullptr || !database->has_log()) {
    return absl::FailedPreconditionError(absl::StrFormat(
        "%s is no database: an index catches up from a database's log", source.description()));
  }
  CatchUpReport report;
  IndexWriter::Update update(writer);
  RETURN_IF_ERROR(CheckSameDatabase(*update.version().base, source));
  rocksdb::ColumnFamilyHandle* const column_families[] = {database->column_family_handle()};
  ASSIGN_OR_RETURN(Anchor next, CheckAnchor(*database, options, update));
  ASSIGN_OR_RETURN(std::unique_ptr<UpdateLog> log,
                   UpdateLog::Open(database->db(), column_families, update.version().sequence,
                                   source.sequence(), update.anchor().log));
  RETURN_IF_ERROR(ReadAndApply(source, options, log.get(), &update, &report));
  // What is published may be stored, by this call or by a merge, long after the source is gone. The
  // log is on the disk before, or the index could be ahead of a database whose machine failed.
  if (!writer->syncs_log()) {
    RETURN_IF_ERROR(SyncLog(database->db(), database->snapshot() == nullptr));
  }
  next.MoveTo(log->position());
  RETURN_IF_ERROR(update.Publish(
      source.sequence(), std::move(next),
      [&](std::string_view primary_key, const KeyColumn& keys, size_t i) {
        return ExistingRowHasKey(source, update.version().spec(), primary_key, keys, i);
      }));
  report.sequence = source.sequence();
  return report;
}

}  // namespace

absl::StatusOr<CatchUpReport> CatchUp(const SnapshotSource& source, const CatchUpOptions& options,
                                      IndexWriter* writer) {
  absl::StatusOr<CatchUpReport> report =
      Guarded("catching up", [&] { return ToSource(source, options, writer); });
  if (!report.ok() || !options.durable) return report;
  RETURN_IF_ERROR(writer->Store());
  return report;
}

}  // namespace cairn
