#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "cairn/types.h"
#include "engine/log/row_changes.h"
#include "engine/log/wal_files.h"
#include "engine/log/write_batch_reader.h"
#include "rocksdb/db.h"

namespace cairn {

// Finds changes in a database's log whose rows were lost with a table file.
//
// RocksDB writes the rows of a log file to table files, which have higher numbers than the log
// file, and then does not read the log file again. If such a table file is lost, the log still has
// changes that the database lacks.
//
// A table file can hold a change if its number is higher than the log file's, and its keys and
// sequence numbers include the change's. A compaction may replace sequence numbers by 0. If no
// table file can hold a change, the log must not be trusted, and the row is read from the database
// instead. This is also correct if a compaction dropped the change, or if the row is in memory.
//
// A lost file is not noticed if a later compaction has merged files with lower and with higher
// sequence numbers, so that the result covers those of the lost file. Thread-safe.
class FlushedRows {
 public:
  // A record of the log.
  struct Record {
    uint64_t log_number = 0;
    SequenceNumber first = 0;  // the sequence numbers that it took
    SequenceNumber last = 0;
  };

  // Lists the current table files of the families. The database must outlive this.
  FlushedRows(rocksdb::DB* db, absl::Span<rocksdb::ColumnFamilyHandle* const> column_families);

  // Replaces changes of a record that no table file can hold by look-ups of their rows. The changes
  // are those from `begin` on, of the i-th column family. After the deletion of a range, the rows
  // that the range has at `snapshot` are looked up; null: that it has now.
  //
  // Errors: FailedPrecondition if the range has more than kMaxRowsReadAgain rows; RocksDB's own.
  absl::Status Check(const Record& record, size_t family, const rocksdb::Snapshot* snapshot,
                     size_t begin, RowChanges* changes) const;

  // Adds look-ups of the rows of `changes`, the record's changes of the i-th column family, that no
  // table file can hold. Errors: those of Check.
  absl::Status AddLost(const Record& record, size_t family, const RowChanges& changes,
                       RowChanges* look_ups) const;

 private:
  using Files = std::vector<rocksdb::SstFileMetaData>;
  struct Family {
    rocksdb::ColumnFamilyHandle* handle;
    // Files of level 0, with disjoint sequence numbers, in ascending order.
    Files level_0;
    // Files of other levels, with disjoint keys, in ascending order. A file of level 0 in which a
    // compaction has set sequence numbers to 0 is a level by itself.
    std::vector<Files> levels;
  };

  // Returns whether the files of one level can hold the change.
  static bool CanHold(const Family& family, const Record& record, const RowChange& change);
  absl::Status LookUpRange(const Family& family, const Record& record,
                           const rocksdb::Snapshot* snapshot, std::string_view lower,
                           std::string_view upper, RowChanges* changes) const;

  rocksdb::DB* const db_;
  std::vector<Family> families_;
};

// Finds rows of an index's state that were in no table file then, and were lost with a table file
// since. Not thread-safe.
class LostRows {
 public:
  // The database must outlive this.
  LostRows(rocksdb::DB* db, rocksdb::ColumnFamilyHandle* column_family);

  // Reads a record. All records of the state that were not in table files must be read in order.
  // Errors: those of WriteBatchReader::Read and FlushedRows::Check.
  absl::Status Read(uint64_t log_number, SequenceNumber first, const rocksdb::WriteBatch& batch);
  // Reads a file of the log up to a position; nothing if it is gone. Errors: those of Read, and of
  // reading the log.
  absl::Status ReadFile(const LogPosition& log);

  // Returns look-ups of the rows found, once.
  RowChanges TakeLookUps() { return std::move(look_ups_); }

 private:
  rocksdb::DB* const db_;
  const FlushedRows flushed_;
  WriteBatchReader batches_;
  RowChanges changes_;
  RowChanges look_ups_;
};

}  // namespace cairn
