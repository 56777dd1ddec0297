#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cairn/types.h"
#include "engine/log/row_changes.h"
#include "engine/log/table_files.h"
#include "engine/log/wal_files.h"
#include "rocksdb/db.h"

namespace cairn {

class OlderLogs;

// The proof that a database continues the state of an index. Each version of an index stores an
// anchor together with its sequence number, because the number alone proves nothing. A database
// gives the same numbers to other writes after it was restored from an older copy, after it lost
// the end of its log, or after a column family was dropped and made again.
//
// A database continues the anchor's state if it is the open database from which the anchor was
// taken (`session_id`), or if all of the following are true:
// - The column family has the same id.
// - Up to the position `log`, the log has the same records as then, according to their checksums.
//   If that part of the log is gone, or the log was empty, files prove the state instead. Then
//   `tables` contained all rows of the state, and no record that is now in the log has a number up
//   to that state. The rows in the key ranges of all changed files are read again.
// - The rows that were in no table file then are in one now (LostRows), or are read again.
// - The rows of each file in `tables` still exist: in the file itself, in a newer file that can be
//   a compaction of it, or in the index in their current state, because their range is read again.
//   Newer files do not count up to the log number `log_behind_files`, because an equal log proves
//   nothing about rows that are only in files.
// RocksDB must also have recovered the rows in `older_logs`, which OlderLogCheck checks.
//
// Otherwise the index is refused, even if nothing contradicts the anchor. A state with sequence
// number 0 has nothing that could be lost with the log.
//
// Two kinds of different histories are not distinguished. First, log files of one number with the
// same records from the first one on, although earlier log files differ: for example a job that
// runs again, byte by byte, on an older copy. Second, a lost file that seems to be compacted,
// because a newer file with entries that are as old, to the second, has keys in its range.
struct Anchor {
  std::string session_id;  // DB::GetDbSessionId
  uint32_t column_family_id = 0;
  LogPosition log;    // after the last record that the index has; offset 0: the log had none
  std::string files;  // from an older version of Cairn: files that had to be live
  uint64_t log_behind_files = 0;
  uint64_t ingested_file = 0;  // the newest ingested file that the index has (ingested_files.h)
  std::string unproven;        // why a later session cannot be proven to continue this
  std::shared_ptr<const TableFiles> tables;  // null: unknown
  // The ends of older log files from which RocksDB would recover rows that are in no table file.
  std::vector<LogPosition> older_logs = {};

  // The log has been read up to this position.
  void MoveTo(const LogPosition& position);

  // The origin of all files that the state at `sequence` has is now known.
  void SetSeen(SequenceNumber sequence);

  bool HasAllInFiles() const { return tables != nullptr && tables->complete; }

  // Updates `tables` and `older_logs` for the position `log`. Rows that are flushed during the call
  // are in one of them or in both. Errors: those of TableFilesRecorder and OlderLogs.
  absl::Status RecordFiles(TableFilesRecorder* recorder, OlderLogs* logs);

  // Drops all requirements that could not be proven.
  void AssumeProven();

  // Converts to and from the text in an index's manifest, without `tables` and `older_logs`.
  // Errors: DataLoss for any other text.
  std::string ToString() const;
  static absl::StatusOr<Anchor> Parse(std::string_view text);

  bool operator==(const Anchor&) const = default;
};

// Takes the anchor of a database at `sequence`, the number of a snapshot that the caller holds, for
// an index of one column family. `read_only` is as for SyncLog.
//
// Reads the files of the live log, usually once. If they may lack writes (disableWAL), the column
// family is flushed, so that its rows are not lost with the process while an index has them. If
// something cannot be proven later, that is not an error, but is stored in Anchor::unproven.
absl::StatusOr<Anchor> TakeAnchor(rocksdb::DB* db, rocksdb::ColumnFamilyHandle* column_family,
                                  SequenceNumber sequence, bool read_only);

// Rows that an index must read again, because its database may have lost or gained them without the
// log.
struct RowsToReadAgain {
  std::vector<ChangedRange> ranges;  // ascending and disjoint
  RowChanges rows;                   // only look-ups

  bool empty() const { return ranges.empty() && rows.empty(); }
};

// Returns OK if the database continues the state at `sequence` of the anchor. Then *again must be
// read again, at any later state. Otherwise returns FailedPrecondition with the reason and the
// remedy. `proven` is false if nothing proves and nothing disproves it, otherwise true. If the
// result is OK or `proven` is false, the anchor has been moved to this session of the database,
// except for its tables and older logs. `files`: the table files at the beginning of the session;
// null or without the column family: the current ones, in which a compaction may hide a loss.
absl::Status CheckContinues(SequenceNumber sequence, rocksdb::DB* db,
                            rocksdb::ColumnFamilyHandle* column_family,
                            const TableFilesOfFamilies* files, Anchor* anchor, bool* proven,
                            RowsToReadAgain* again);

}  // namespace cairn
