#include "engine/serve/catch_up.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "absl/types/span.h"
#include "engine/log/anchor.h"
#include "engine/log/flushed_rows.h"
#include "engine/log/ingested_files.h"
#include "engine/log/older_logs.h"
#include "engine/log/row_changes.h"
#include "engine/log/row_reading.h"
#include "engine/log/settled_changes.h"
#include "engine/log/table_files.h"
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

// The size of the changes in memory at a time: enough for batches that find adjacent rows together,
// but small compared with an index.
constexpr size_t kSliceBytes = size_t{64} << 20;
constexpr size_t kRowsPerUpdate = 10'000;

absl::Status ReadAndApply(const DbSource& source, const CatchUpOptions& options, UpdateLog* log,
                          IndexWriter::Update* update, CatchUpReport* report) {
  ASSIGN_OR_RETURN(ChangeExtractor extractor, ChangeExtractor::Create(update->version().spec()));
  RateLimiter limiter(options.max_bytes_per_second);
  StopFlag stop(options.cancelled);
  // With a rate limit, a slice of the log is small: a tenth of a second's worth.
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
    RETURN_IF_ERROR(log->Read(slice, absl::MakeSpan(&changes, 1), source.snapshot()));
    settled.Settle(changes);
    RETURN_IF_ERROR(extractor.Extract(settled, &source, &updates));
    RETURN_IF_ERROR(update->Apply(updates));
    report->rows += updates.rows();
  }
  report->changes = log->changes();
  report->log_bytes = log->bytes_read();
  return absl::OkStatus();
}

// Checks that the database continues the index's state by changes that are in its log. Returns the
// index's anchor for this opening of the database.
absl::StatusOr<Anchor> CheckAnchor(const DbSource& database, const CatchUpOptions& options,
                                   const IndexWriter::Update& update, const LiveLog& live,
                                   RowsToReadAgain* again) {
  Anchor anchor = update.anchor();
  const SequenceNumber sequence = update.version().sequence;
  rocksdb::ColumnFamilyHandle* const column_family = database.column_family_handle();
  if (database.changes_values()) {
    return absl::FailedPreconditionError(absl::StrFormat(
        "%s is read through a layer that creates its own iterators and may change values "
        "(DBWithTTL, for example), which the log does not record: an index of it cannot catch up; "
        "rebuild the index, or build it from the database below (DB::GetRootDB)",
        database.description()));
  }
  RETURN_IF_ERROR(CheckRowReading(update.version().base->manifest.reading, update.version().spec(),
                                  database.db(), column_family));
  bool proven = true;
  absl::Status continues = CheckContinues(sequence, database.db(), column_family, live.files.get(),
                                          &anchor, &proven, again);
  if (!continues.ok()) {
    if (proven || !options.skip_identity_check) return continues;
    anchor.AssumeProven();
  }
  if (anchor.session_id != update.anchor().session_id) {
    RETURN_IF_ERROR(OlderLogCheck(database.db()).HasAll(sequence, anchor.older_logs));
  }
  ASSIGN_OR_RETURN(const uint64_t ingested,
                   NewestIngestedFile(database.db(), column_family, database.sequence(),
                                      anchor.ingested_file, anchor.tables.get()));
  if (ingested != 0) {
    return absl::FailedPreconditionError(absl::StrFormat(
        "file %06d.sst was ingested into %s after the state %d that the index has, which the log "
        "does not contain; rebuild the index",
        ingested, database.description(), sequence));
  }
  RETURN_IF_ERROR(TableFilesRecorder(database.db(), column_family).Record(&anchor.tables));
  anchor.SetSeen(database.sequence());
  return anchor;
}

// Replaces some of the index's rows by those of the source.
absl::Status ReadAgain(const SnapshotSource& source, const RowsToReadAgain& again,
                       const CatchUpOptions& options, IndexWriter::Update* update,
                       CatchUpReport* report) {
  if (again.empty()) return absl::OkStatus();
  ASSIGN_OR_RETURN(ChangeExtractor extractor, ChangeExtractor::Create(update->version().spec()));
  StopFlag stop(options.cancelled);
  RowChanges changes;
  SettledChanges settled;
  RowUpdates updates(update->version().base->codec.kind());
  const auto apply = [&]() -> absl::Status {
    settled.Settle(changes);
    RETURN_IF_ERROR(extractor.Extract(settled, &source, &updates));
    RETURN_IF_ERROR(update->Apply(updates));
    report->rows += updates.rows();
    changes.Clear();
    return stop.stopped() ? absl::CancelledError("catching up was cancelled") : absl::OkStatus();
  };
  // The index has these rows already, unless their table file was lost.
  const uint64_t changed = report->rows;
  for (size_t i = 0; i < again.rows.size(); ++i) {
    changes.LookUp(again.rows[i].key);
    if (changes.size() >= kRowsPerUpdate) RETURN_IF_ERROR(apply());
  }
  RETURN_IF_ERROR(apply());
  report->rows = changed;
  size_t rows = 0;
  for (const ChangedRange& range : again.ranges) {
    changes.DeleteRange(range.lower, range.upper);
    ASSIGN_OR_RETURN(const std::unique_ptr<RowCursor> cursor,
                     source.Scan({range.lower, range.upper, /*open=*/false}));
    while (cursor->Next()) {
      if (++rows > kMaxRowsReadAgain) {
        const std::string reason =
            range.file == 0
                ? absl::StrFormat(
                      "the log of %s deletes ranges of rows, but no table file shows that",
                      source.description())
                : absl::StrFormat(
                      "table file %06d.sst of %s is not as it was at the state %d that the index "
                      "has, and its log does not show why",
                      range.file, source.description(), update->version().sequence);
        return absl::FailedPreconditionError(
            absl::StrFormat("%s: more than %d rows may have changed; rebuild the index", reason,
                            kMaxRowsReadAgain));
      }
      changes.LookUp(cursor->row().primary_key);
      if (changes.size() >= kRowsPerUpdate) RETURN_IF_ERROR(apply());
    }
    RETURN_IF_ERROR(cursor->status());
  }
  return apply();
}

absl::StatusOr<CatchUpReport> ToSource(const SnapshotSource& source, const CatchUpOptions& options,
                                       IndexWriter* writer, const LiveLog& live) {
  const auto* const database = dynamic_cast<const DbSource*>(&source);
  if (database == nullptr || !database->has_log()) {
    return absl::FailedPreconditionError(absl::StrFormat(
        "%s is not a database: an index catches up from a database's log", source.description()));
  }
  CatchUpReport report;
  IndexWriter::Update update(writer);
  RETURN_IF_ERROR(CheckSameDatabase(*update.version().base, source));
  rocksdb::ColumnFamilyHandle* const column_families[] = {database->column_family_handle()};
  RowsToReadAgain again;
  ASSIGN_OR_RETURN(Anchor next, CheckAnchor(*database, options, update, live, &again));
  // A database loses no table files while it stays open.
  std::optional<FlushedRows> flushed;
  if (next.session_id != update.anchor().session_id) {
    flushed.emplace(database->db(), column_families, live.files.get());
  }
  ASSIGN_OR_RETURN(
      std::unique_ptr<UpdateLog> log,
      UpdateLog::Open(database->db(), column_families, update.version().sequence, source.sequence(),
                      update.anchor().log, live, flushed.has_value() ? &*flushed : nullptr));
  RETURN_IF_ERROR(ReadAndApply(*database, options, log.get(), &update, &report));
  RETURN_IF_ERROR(ReadAgain(source, again, options, &update, &report));
  // The published changes may be stored, by this call or by a merge, long after the source is gone.
  // The log is made durable before; otherwise the index could be ahead of a database whose machine
  // failed.
  next.MoveTo(log->position());
  if (!writer->syncs_log()) {
    TableFilesRecorder recorder(database->db(), database->column_family_handle());
    OlderLogs older_logs(database->db());
    RETURN_IF_ERROR(next.RecordFiles(&recorder, &older_logs));
    next.SetSeen(database->sequence());
    RETURN_IF_ERROR(SyncLog(database->db(), database->snapshot() == nullptr));
  }
  RETURN_IF_ERROR(update.Publish(
      source.sequence(), std::move(next),
      [&](std::string_view primary_key, const EncodedKeys& keys, size_t i) {
        return ExistingRowHasKey(source, update.version().spec(), primary_key, keys, i);
      }));
  report.sequence = source.sequence();
  return report;
}

}  // namespace

absl::StatusOr<CatchUpReport> CatchUp(const SnapshotSource& source, const CatchUpOptions& options,
                                      IndexWriter* writer, const LiveLog& live) {
  absl::StatusOr<CatchUpReport> report =
      Guarded("catching up", [&] { return ToSource(source, options, writer, live); });
  if (!report.ok() || !options.durable) return report;
  RETURN_IF_ERROR(writer->Store());
  return report;
}

}  // namespace cairn
