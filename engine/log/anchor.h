#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cairn/types.h"
#include "engine/log/wal_files.h"
#include "rocksdb/db.h"

namespace cairn {

// What tells one history of a database from another: kept with every version of an index beside the
// sequence number, which alone does not. A database that was restored from an older copy, lost the
// end of its log, or has had a column family dropped and made again gives the same numbers to other
// writes.
//
// A database continues the anchor's state if it is the open database that the anchor was taken from
// (`session_id`), or if all of this is so:
// - its log holds, up to `log`, the records that it held then, as their checksums tell;
// - `files`, where there are any, are live in it: those that hold what no log tells, or, where the
//   log was empty, everything. A log that was begun behind them, above `log_behind_files`, is in no
//   copy without them; once `log` is there they need not be asked for any more.
// Otherwise the index is refused: that nothing speaks against it is not enough.
//
// Not told apart are histories whose log files of one number have the same records from the first
// on, though those before differ: a job that is run again, byte by byte, on an older copy.
struct Anchor {
  std::string session_id;  // DB::GetDbSessionId
  uint32_t column_family_id = 0;
  LogPosition log;    // behind the last record that the index has; no offset: the log had none
  std::string files;  // table files, "number:identity" with commas between
  uint64_t log_behind_files = 0;  // a log's number
  uint64_t ingested_file = 0;     // the newest that the index has (ingested_files.h)
  std::string unproven;  // why no other opening of the database can be told to continue this

  // Reading has gone on to this place.
  void MoveTo(const LogPosition& position);

  // What could not be proven is not asked for any more.
  void AssumeProven();

  // As text for an index's manifest, and back: DataLoss for any other text.
  std::string ToString() const;
  static absl::StatusOr<Anchor> Parse(std::string_view text);

  bool operator==(const Anchor&) const = default;
};

// The anchor of a database at `sequence`, which is that of a snapshot held, for an index of one
// column family. `read_only` as SyncLog's.
//
// Reads the live log's files through, once unless something is missing in them. Where they may not
// account for everything (writes with disableWAL), the column family is flushed, so that its rows
// are not lost with the process while an index has them. What cannot be proven later is not an
// error but Anchor::unproven.
absl::StatusOr<Anchor> TakeAnchor(rocksdb::DB* db, rocksdb::ColumnFamilyHandle* column_family,
                                  SequenceNumber sequence, bool read_only);

// OK where the database continues the state at `sequence` that the anchor is of;
// FailedPrecondition, saying what does not fit and what to do, where it does not. `proven` is false
// where nothing proves it and nothing speaks against it; true in every other case. Where it is OK
// or not proven, the anchor has then been moved to this opening of the database.
absl::Status CheckContinues(SequenceNumber sequence, rocksdb::DB* db,
                            rocksdb::ColumnFamilyHandle* column_family, Anchor* anchor,
                            bool* proven);

}  // namespace cairn
