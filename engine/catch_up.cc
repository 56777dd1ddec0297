#include "engine/catch_up.h"

#include <exception>
#include <memory>
#include <new>
#include <thread>

#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "engine/change_extractor.h"
#include "engine/db_source.h"
#include "engine/row_changes.h"
#include "engine/settled_changes.h"
#include "engine/update_log.h"

namespace cairn {
namespace {

// Changes that are held at a time: enough for batches that find neighbouring rows in passing,
// little beside an index.
constexpr size_t kSliceBytes = size_t{64} << 20;

// Keeps a rate on average: waits while more was read than the time since the start allows.
class RateLimit {
 public:
  explicit RateLimit(uint64_t bytes_per_second) : bytes_per_second_(bytes_per_second) {}

  // False where `cancelled` was set meanwhile.
  bool Wait(uint64_t bytes_so_far, const std::atomic<bool>* cancelled) const {
    while (true) {
      if (cancelled != nullptr && cancelled->load(std::memory_order_relaxed)) return false;
      if (bytes_per_second_ == 0) return true;
      const absl::Duration due =
          absl::Seconds(static_cast<double>(bytes_so_far) / static_cast<double>(bytes_per_second_));
      const absl::Duration ahead = due - (absl::Now() - start_);
      if (ahead <= absl::ZeroDuration()) return true;
      absl::SleepFor(std::min(ahead, absl::Milliseconds(20)));
    }
  }

 private:
  const uint64_t bytes_per_second_;
  const absl::Time start_ = absl::Now();
};

absl::Status ReadAndApply(const SnapshotSource& source, const CatchUpOptions& options,
                          UpdateLog* log, IndexWriter::Update* update, CatchUpReport* report) {
  absl::StatusOr<ChangeExtractor> extractor = ChangeExtractor::Create(update->version().spec());
  if (!extractor.ok()) return extractor.status();
  const RateLimit limit(options.bytes_per_second);
  // A slice of the log is small where its rate is: a second's worth.
  const size_t slice = options.bytes_per_second == 0
                           ? kSliceBytes
                           : std::min<size_t>(kSliceBytes, options.bytes_per_second);
  RowChanges changes;
  SettledChanges settled;
  RowUpdates updates(update->version().base->base().codec.kind());
  while (!log->done()) {
    if (!limit.Wait(log->bytes_read(), options.cancelled)) {
      return absl::CancelledError("catching up was cancelled");
    }
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
  const auto* const live = dynamic_cast<const DbSource*>(&source);
  if (live == nullptr || live->snapshot() == nullptr) {
    return absl::FailedPreconditionError(absl::StrFormat(
        "%s is no live database: an index catches up from a database's log", source.description()));
  }
  CatchUpReport report;
  IndexWriter::Update update(writer);
  if (absl::Status s = CheckSameDatabase(update.version().base->base(), source); !s.ok()) return s;
  rocksdb::ColumnFamilyHandle* const column_families[] = {live->column_family_handle()};
  absl::StatusOr<std::unique_ptr<UpdateLog>> log = UpdateLog::Open(
      live->db(), column_families, update.version().sequence, source.sequence(), update.position());
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
  if (report.ok() && options.durable) {
    if (absl::Status s = writer->Store(); !s.ok()) return s;
  }
  return report;
}

}  // namespace cairn
