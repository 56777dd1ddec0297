#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cairn/types.h"
#include "engine/log/table_files.h"
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
// - The column family has the same id.
// - Its log holds, up to `log`, the records that it held then, as their checksums tell. If that
// part
//   of the log is gone, or the log was empty, files prove the state: `tables` had all rows of it,
//   no record that is in the log now has a number of that state or before, and the rows in the key
//   ranges of all files that are not the same now are read again.
// - The rows of each file in `tables` are still there: in the file, in a newer one that a
// compaction
//   can have made of it, or, as they are now, in the index, because their range is read again.
//   Up to `log_behind_files`, a log's number, newer files do not count: what is in files only is
//   not told by a log that agrees.
// A state with sequence number 0 has nothing that could be lost with the log.
// Otherwise the index is refused: that nothing speaks against it is not enough.
//
// Not told apart are histories whose log files of one number have the same records from the first
// on, though those before differ: a job that is run again, byte by byte, on an older copy. And a
// file that was lost is taken for one that was compacted if a newer file with entries as old, to
// the second, has keys in its range.
struct Anchor {
  std::string session_id;  // DB::GetDbSessionId
  uint32_t column_family_id = 0;
  LogPosition log;    // behind the last record that the index has; no offset: the log had none
  std::string files;  // of an older version of Cairn: files that had to be live
  uint64_t log_behind_files = 0;
  uint64_t ingested_file = 0;  // the newest that the index has (ingested_files.h)
  std::string unproven;        // why no other opening of the database can be told to continue this
  std::shared_ptr<const TableFiles> tables;  // null: unknown

  // Reading has gone on to this place.
  void MoveTo(const LogPosition& position);

  // It has been looked into what wrote the files that the state at `sequence` has.
  void SetSeen(SequenceNumber sequence);

  bool HasAllInFiles() const { return tables != nullptr && tables->complete; }

  // What could not be proven is not asked for any more.
  void AssumeProven();

  // As text for an index's manifest, without `tables`, and back: DataLoss for any other text.
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

// OK if the database continues the state at `sequence` that the anchor is of. The rows in *ranges
// (ascending, without keys in common) then have to be read again, as they are at some later state.
// FailedPrecondition, saying what does not fit and what to do, otherwise. `proven` is false if
// nothing proves it and nothing speaks against it; true in every other case. If it is OK or not
// proven, the anchor has then been moved to this opening of the database, except for its tables.
absl::Status CheckContinues(SequenceNumber sequence, rocksdb::DB* db,
                            rocksdb::ColumnFamilyHandle* column_family, Anchor* anchor,
                            bool* proven, std::vector<ChangedRange>* ranges);

}  // namespace cairn
