#include "engine/catch_up.h"

#include <algorithm>
#include <exception>
#include <memory>
#include <new>
#include <utility>

#include "absl/strings/str_format.h"
#include "absl/types/span.h"
#include "engine/change_extractor.h"
#include "engine/log/row_changes.h"
#include "engine/log/settled_changes.h"
#include "engine/log/update_log.h"
#include "engine/log/wal_files.h"
#include "engine/source/db_source.h"
#include "engine/util/rate_limiter.h"
#include "index/stop_flag.h"

namespace cairn {
namespace {

// Changes that are held at a time: enough for batches that find neighbouring rows in passing,
// little beside an index.
constexpr size_t kSliceBytes = size_t{64} << 20;

absl::Status ReadAndApply(const SnapshotSource& source, const CatchUpOptions& options,
                          UpdateLog* log, IndexWriter::Update* update, CatchUpReport* report) {
  absl::StatusOr<ChangeExtractor> extractor = ChangeExtractor::Create(update->version().spec());
  if (!extractor.ok()) return extractor.status();
  RateLimiter limiter(options.max_bytes_per_second);
  StopFlag stop(options.cancelled);
  // A slice of the log is small where its rate is: a tenth of a second's worth.
  const size_t slice = options.max_bytes_per_second == 0
                           ? kSliceBytes
                           : std::min<size_t>(kSliceBytes, options.max_bytes_per_second / 10 + 1);
  uint64_t limited = 0;
  RowChanges changes;
  SettledChanges settled;
  RowUpdates updates(update->version().base->base().codec.kind());
  while (!log->done()) {
    limiter.Take(log->bytes_read() - std::exchange(limited, log->bytes_read()), &stop);
    if (stop.stopped()) return absl::CancelledError("catching up was cancelled");
    changes.Clear();
    if (absl::Status s = log->Read(slice, absl::MakeSpan(&changes, 1)); !s.ok()) return s;
    settled.Settle(changes);
    if (absl::Status s = extractor->Extract(settled, source, &updates); !s.ok()) return s;
    if (absl::Status s = update->Apply(updates); !s.ok()) return s;
    report->changes += changes.size();
    report->rows += updates.rows();
  }
  report->log_bytes = log->bytes_read();
  return absl::OkStatus();
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
  if (absl::Status s = CheckSameDatabase(update.version().base->base(), source); !s.ok()) return s;
  rocksdb::ColumnFamilyHandle* const column_families[] = {database->column_family_handle()};
  absl::StatusOr<std::unique_ptr<UpdateLog>> log =
      UpdateLog::Open(database->db(), column_families, update.version().sequence, source.sequence(),
                      update.position());
  if (!log.ok()) return log.status();
  if (absl::Status s = ReadAndApply(source, options, log->get(), &update, &report); !s.ok()) {
    return s;
  }
  update.Publish(source.sequence(), (*log)->position());
  report.sequence = source.sequence();
  return report;
}

}  // namespace

absl::StatusOr<CatchUpReport> CatchUp(const SnapshotSource& source, const CatchUpOptions& options,
                                      IndexWriter* writer) {
  absl::StatusOr<CatchUpReport> report;
  try {
    report = ToSource(source, options, writer);
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError("out of memory while catching up");
  } catch (const std::exception& e) {  // from an extractor that is not ours
    return absl::InternalError(absl::StrFormat("while catching up: %s", e.what()));
  }
  if (!report.ok() || !options.durable) return report;
  // The log before what comes of it, or the index could be ahead of a database whose machine
  // failed.
  const auto& database = dynamic_cast<const DbSource&>(source);
  if (absl::Status s = SyncLog(database.db(), database.snapshot() == nullptr); !s.ok()) return s;
  if (absl::Status s = writer->Store(); !s.ok()) return s;
  return report;
}

}  // namespace cairn
