#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "cairn/types.h"
#include "engine/log/row_changes.h"
#include "engine/log/update_log.h"
#include "engine/log/write_batch_reader.h"
#include "rocksdb/db.h"

namespace cairn {

// Reads a database's log on and on, each time from where it ended to what has been committed since.
// UpdateLog says what is read, and what is made sure of.
//
// That lists the log's files, though, which takes longer than reading the few records that are new
// as a rule. So as long as the file that reading ended in is the one that is being written still,
// it is read on directly: 20 to 30 µs for some records. Whatever is not as expected there is left
// to UpdateLog. Not thread-safe.
class LogTail {
 public:
  // Begins after `after`; `position` and `live` as UpdateLog::Open's.
  LogTail(rocksdb::DB* db, std::vector<rocksdb::ColumnFamilyHandle*> column_families,
          SequenceNumber after, LogPosition position, LiveLog live);

  // Sets changes[i] to what was committed next to the i-th column family, up to and with `until`,
  // a sequence number that the database has published; less, in whole records, once they take
  // `max_bytes`. Errors as UpdateLog's; sequence() is then what it was.
  absl::Status Read(SequenceNumber until, size_t max_bytes, absl::Span<RowChanges> changes);

  // All up to and with this has been read, and the log goes on there.
  SequenceNumber sequence() const { return sequence_; }
  LogPosition position() const { return position_; }
  // Goes on behind `sequence`: numbers up to it are in no record of the log.
  void PassTo(SequenceNumber sequence) {
    sequence_ = sequence;
    log_ = nullptr;
  }
  // WriteBatchReader::newest_family of all that has been read.
  uint32_t newest_family() const { return newest_family_; }

 private:
  // False, and nothing read, where UpdateLog must be asked.
  bool ReadOn(SequenceNumber until, size_t max_bytes, absl::Span<RowChanges> changes);
  absl::Status ReadLog(SequenceNumber until, size_t max_bytes, absl::Span<RowChanges> changes);

  rocksdb::DB* const db_;
  const std::vector<rocksdb::ColumnFamilyHandle*> column_families_;
  const std::vector<uint32_t> ids_;  // of these
  const bool manual_flush_;          // DBOptions::manual_wal_flush
  const std::string directory_;      // of the log
  const LiveLog live_;
  SequenceNumber sequence_;
  LogPosition position_;
  std::unique_ptr<WriteBatchReader> batches_;  // knows what ReadOn has seen prepared
  std::unique_ptr<UpdateLog> log_;             // that has not been read to its end, log_until_
  SequenceNumber log_until_ = 0;
  uint32_t newest_family_ = 0;
};

}  // namespace cairn
