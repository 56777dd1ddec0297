#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "cairn/types.h"
#include "engine/log/flushed_rows.h"
#include "engine/log/row_changes.h"
#include "engine/log/update_log.h"
#include "engine/log/write_batch_reader.h"
#include "rocksdb/db.h"
#include "rocksdb/write_batch.h"

namespace cairn {

// A batch that was written without a log.
struct UnloggedBatch {
  SequenceNumber first = 0;  // the sequence number of its first record
  uint64_t count = 0;        // of records; each takes one number
  std::shared_ptr<const rocksdb::WriteBatch> batch;
};

// Reads a database's log continuously: each call reads from the end of the last one to the commits
// since. UpdateLog defines and checks the results.
//
// UpdateLog lists the log's files, which usually takes longer than reading the few new records. So
// while the database still writes to the file in which reading ended, this class continues in that
// file directly, which it keeps open: some µs for a few records. UpdateLog handles everything
// unexpected. Not thread-safe.
class LogTail {
 public:
  // Begins after `after`. `position` and `live` are as for UpdateLog::Open.
  LogTail(rocksdb::DB* db, std::vector<rocksdb::ColumnFamilyHandle*> column_families,
          SequenceNumber after, LogPosition position, LiveLog live);

  // Sets changes[i] to the next commits to the i-th column family, up to and including `until`, a
  // sequence number that the database has published. Stops earlier, after a whole record, once the
  // changes take `max_bytes`. `snapshot`: see UpdateLog::Read. Errors: those of UpdateLog;
  // sequence() is then unchanged.
  absl::Status Read(SequenceNumber until, size_t max_bytes, absl::Span<RowChanges> changes,
                    const rocksdb::Snapshot* snapshot = nullptr);

  // Like Read, but also stops where the log's records end or have a gap. Returns false, with
  // nothing read, if there is no record at the current place or if only Read can tell.
  bool ReadAvailable(SequenceNumber until, size_t max_bytes, absl::Span<RowChanges> changes);
  // Sets the changes to those of batches that are not in the log. The first one has the number
  // sequence() + 1, and the others follow it without a gap. Changes after `until` are left out.
  // Errors: those of WriteBatchReader; Internal if a batch has another number of records.
  absl::Status ReadUnlogged(absl::Span<const UnloggedBatch> batches, SequenceNumber until,
                            absl::Span<RowChanges> changes);

  // Closes the log's file, which may have been deleted. Read opens it again.
  void CloseFile() { reader_ = nullptr; }

  // Everything up to and including sequence() has been read. The log continues at position().
  SequenceNumber sequence() const { return sequence_; }
  LogPosition position() const { return position_; }
  // Continues after `sequence`. No record of the log has a number up to it.
  void PassTo(SequenceNumber sequence) {
    sequence_ = sequence;
    log_ = nullptr;
  }
  // WriteBatchReader::newest_family of everything read so far.
  uint32_t newest_family() const { return newest_family_; }

 private:
  // Returns false, with nothing read, if UpdateLog must be used. `may_end`: the records may end
  // before `until`.
  bool ReadOn(SequenceNumber until, size_t max_bytes, bool may_end, absl::Span<RowChanges> changes);
  absl::Status ReadLog(SequenceNumber until, size_t max_bytes, const rocksdb::Snapshot* snapshot,
                       absl::Span<RowChanges> changes);

  rocksdb::DB* const db_;
  const std::vector<rocksdb::ColumnFamilyHandle*> column_families_;
  const std::vector<FollowedFamily> followed_;  // these
  const bool manual_flush_;                     // DBOptions::manual_wal_flush
  const std::string directory_;                 // of the log
  const LiveLog live_;
  SequenceNumber sequence_;
  LogPosition position_;
  std::unique_ptr<WalReader> reader_;          // at the end of the file of position_; or null
  std::unique_ptr<WriteBatchReader> batches_;  // has the prepared transactions that ReadOn has read
  std::unique_ptr<WriteBatchReader> unlogged_;  // for ReadUnlogged; or null
  std::unique_ptr<FlushedRows> flushed_;        // while writes before live_ are being read
  std::unique_ptr<UpdateLog> log_;              // not yet read to its end, log_until_
  SequenceNumber log_until_ = 0;
  uint32_t newest_family_ = 0;
};

}  // namespace cairn
