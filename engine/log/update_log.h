#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "cairn/types.h"
#include "engine/log/row_changes.h"
#include "engine/log/wal_files.h"
#include "engine/log/write_batch_reader.h"
#include "rocksdb/db.h"

namespace cairn {

// What the process that writes a database knows of its log: everything above `sequence` is in files
// from `log_number` on, which have never been recovered. The default is a process that knows
// nothing.
struct LiveLog {
  uint64_t log_number = UINT64_MAX;
  SequenceNumber sequence = UINT64_MAX;

  // Of now, in the process that has the database open for writing.
  static LiveLog Of(rocksdb::DB* db);
};

// What was committed to some column families of a database after one sequence number, up to and
// with another, as its write-ahead log has it: all of it, or an error.
//
//   std::unique_ptr<SnapshotSource> source = ...;  // as the rows are to be at the end
//   auto log = UpdateLog::Open(db, families, index_sequence, source->sequence());
//   while (!(*log)->done()) {
//     for (RowChanges& c : changes) c.Clear();
//     absl::Status s = (*log)->Read(kSliceBytes, absl::MakeSpan(changes));
//     ... settle and apply; read rows that are to be looked up from `source` ...
//   }
//   ... publish, with source->sequence() and (*log)->position() ...
//
// Rows to be looked up (merge operands) are read as they are at `until`, not as they were at their
// place in the log. That is right at the end: what comes later in the log for such a row either
// says the same again, or, being the last change of all, says what `until` has. In between, after
// some slices only, such rows are ahead of the others. So what was read is published once, at the
// end.
//
// How all is made sure of: every sequence number after `after` must be taken by a record that was
// read, the first one by after + 1, each next one where the last ended, the last by `until`. Where
// one is not, the error is FailedPrecondition, says which are missing, and advises to rebuild: the
// log has expired (WAL_ttl_seconds, WAL_size_limit_MB), writes went past it (disableWAL), files
// were ingested, or the database is not the one it was: restored to an older state, or with another
// past.
//
// `after` may lie within a record: who opens a database from its files knows none of a write's last
// numbers where these left no trace there, as those of an empty range, and of a row that was put
// and taken away again by SingleDelete before it was flushed.
//
// An empty range takes a number when it is written and none when its record is recovered, so that
// the number is given again. A record that was the last one of its file before a newer file began
// may have been recovered or not; if its empty ranges would take numbers that LiveLog, `after` or a
// table file shows to be others', they take none, and those numbers are missing.
//
// Two records of one file with one number are of a write that failed and of the next one, which
// RocksDB did not separate (DBOptions::paranoid_checks off). They are refused, as a missing number
// is.
//
// What that cannot show: a write past the log that took the number of a recovered empty range, in a
// session without the index, and whose table file was compacted since. Files ingested where no key
// of theirs was, without a snapshot held, which RocksDB gives no sequence number
// (ingested_files.h). And writes that took the place of others, lost with the log's unsynced end
// when the machine failed: so have the log synced (FlushWAL(true)) before an index is made durable.
//
// The log's files are read directly, not by DB::GetUpdatesSince. That goes by the counts in
// batches' headers, which are not how many sequence numbers were taken where transactions are
// prepared, so that it stops there with a gap that is none, or leaves out a commit. Nor can it tell
// an expired log from a damaged one.
//
// Not thread-safe. The database may be written to, flushed and compacted meanwhile; it must outlive
// the log. Files that are being read are kept open, not kept from being removed.
class UpdateLog {
 public:
  // A good `max_bytes` for Read, where nothing speaks against it: changes of a slice, settled, stay
  // in an L2 cache of 2 MB (UpdateLog/settle: 65 ns an update instead of 112 with 9 MB).
  static constexpr size_t kSliceBytes = size_t{2} << 20;

  // Opens the log for (after, until], where `until` is the sequence number of a snapshot taken
  // before. `column_families` are distinct. `position`, where given, is that of an earlier log of
  // this database that was read to its end, which was `after`: nothing before it is read again.
  //
  // FailedPrecondition: see above; also where until < after, where numbers up to `after` were given
  // again behind `position`, and for DBOptions::unordered_write, whose snapshots change.
  // Unimplemented for transactions that are written before they commit, for comparators that are
  // not bytewise, and for logs compressed by other methods than zstd. DataLoss for a damaged log.
  static absl::StatusOr<std::unique_ptr<UpdateLog>> Open(
      rocksdb::DB* db, absl::Span<rocksdb::ColumnFamilyHandle* const> column_families,
      SequenceNumber after, SequenceNumber until, LogPosition position = {}, LiveLog live = {});

  // Appends the next slice to changes[i] for the i-th column family: whole records of the log,
  // until the changes take `max_bytes` of memory (RowChanges::bytes(), more by one record at most),
  // or `until` is reached. Transactions that are prepared and not yet committed take memory
  // besides. After an error the changes may have more than sequence() says, and the log is not to
  // be used.
  absl::Status Read(size_t max_bytes, absl::Span<RowChanges> changes);

  bool done() const { return sequence() == until_; }
  // WriteBatchReader::newest_family of what was read.
  uint32_t newest_family() const { return batches_.newest_family(); }
  // All up to and with this has been read.
  SequenceNumber sequence() const { return std::clamp(next_ - 1, after_, until_); }
  // Where the next record will be. Once done(), where to go on from `until`.
  LogPosition position() const { return position_; }
  // Bytes of the log that were looked at.
  uint64_t bytes_read() const { return bytes_read_; }

 private:
  UpdateLog(rocksdb::DB* db, std::vector<uint32_t> column_families, SequenceNumber after,
            SequenceNumber until, LiveLog live);

  absl::Status OpenFiles(const LogPosition& position);
  // Whether what is behind `position` has numbers that are behind after_. RocksDB counts an empty
  // range that a batch deletes as it is written, but not as it is recovered from the log, and goes
  // on with a number that it has given before.
  absl::Status CheckNumbers(const LogPosition& position) const;
  absl::StatusOr<std::unique_ptr<WalReader>> OpenFile(size_t file, WalPlace from) const;
  // Whether the record at `position` is the first one that is wanted. GivenTwice if it takes
  // numbers that have been read.
  absl::StatusOr<bool> StartsAt(const LogPosition& position) const;
  // Finds that record, or the one that may hold it, in the file that reading begins with.
  absl::Status FindStart();

  // Moves to the next record, of the next file where one has ended.
  absl::StatusOr<const WalReader*> Next();
  absl::Status ReadRecord(const WalReader& reader, absl::Span<RowChanges> changes);
  // The number behind those that only empty ranges of the record just read took, from `least` on,
  // as far as they did: up to next_, or less.
  absl::StatusOr<SequenceNumber> EndOfEmptyRanges(SequenceNumber first, SequenceNumber least,
                                                  const WalReader& reader) const;
  // GivenTwice if the record that follows in the file takes numbers below next_.
  absl::Status CheckFollowing(const WalReader& reader) const;
  // Refuses a record whose keys, in a column family that is followed, are not those of its rows:
  // the family was open with user-defined timestamps, which RocksDB kept in memory and in the log
  // only.
  absl::Status CheckKeys(const WalReader& reader) const;
  absl::Status ReadSuperseded(const rocksdb::WriteBatch& batch, absl::Span<RowChanges> changes);
  // The error for a record whose number another one before it in its file has.
  absl::Status GivenTwice(std::string_view path, SequenceNumber sequence) const;
  // The error for sequence numbers from next_ on that no record has; `found` says what there is.
  absl::Status Missing(std::string_view found) const;
  absl::StatusOr<PreparedTransaction> FindPrepared(std::string_view name) const;

  rocksdb::DB* const db_;
  const std::vector<uint32_t> column_families_;
  const SequenceNumber after_;
  const SequenceNumber until_;
  const LiveLog live_;
  WriteBatchReader batches_;
  std::vector<WalFile> files_;
  std::vector<std::unique_ptr<WalReader>> readers_;  // of files_, null before the first
  size_t start_file_ = 0;                            // where reading began
  WalPlace start_;
  size_t file_ = 0;      // that is being read
  SequenceNumber next_;  // that the next record must have
  LogPosition position_;
  absl::Status damage_;  // where the last file ended, if it did so
  uint64_t bytes_read_ = 0;
};

}  // namespace cairn
