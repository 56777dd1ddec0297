#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/btree_set.h"
#include "absl/status/status.h"
#include "absl/types/span.h"
#include "cairn/types.h"
#include "engine/log/row_changes.h"
#include "engine/log/table_files.h"
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
// sequence numbers include the change's. If no table file can hold a change, the log must not be
// trusted, and the row is read from the database instead. This is also correct if a compaction
// dropped the change, or if the row is in memory. A file in which a compaction has set sequence
// numbers to 0 can have rows of any age, so it proves nothing.
//
// A lost file is not noticed if a compaction has merged files with lower and with higher sequence
// numbers, so that the result covers those of the lost file. Not thread-safe.
class FlushedRows {
 public:
  // A record of the log.
  struct Record {
    uint64_t log_number = 0;
    SequenceNumber first = 0;  // the sequence numbers that it took
    SequenceNumber last = 0;
  };

  // Uses the families' table files in `files`, or else the current ones. The database must outlive
  // this.
  FlushedRows(rocksdb::DB* db, absl::Span<rocksdb::ColumnFamilyHandle* const> column_families,
              const TableFilesOfFamilies* files);

  // Returns whether table files of the i-th column family can hold a change of the record. For the
  // deletion of a range, also returns true if no table file has rows that it would delete.
  bool CanHold(const Record& record, size_t family, const RowChange& change) const;

  // Replaces the record's changes of the i-th column family, those from `begin` on, by look-ups of
  // their rows if no table file can hold them. Collects ranges whose deletion no file can hold.
  void Check(const Record& record, size_t family, size_t begin, RowChanges* changes);

  // Must be called after all records have been checked. Adds look-ups of the rows in the collected
  // ranges that the i-th column family has at `snapshot`; null: that it has now. Errors:
  // FailedPrecondition for millions of rows; RocksDB's own.
  absl::Status LookUpRanges(size_t family, const rocksdb::Snapshot* snapshot, RowChanges* changes);

 private:
  using Files = std::vector<rocksdb::SstFileMetaData>;
  struct Family {
    rocksdb::ColumnFamilyHandle* handle;
    KeyOrder order;
    Files files;  // all
    // Those whose sequence numbers are greater than 0: of level 0, with disjoint sequence numbers
    // in ascending order, and of each other level, with disjoint keys in `order`.
    Files level_0;
    std::vector<Files> levels;
    std::vector<ChangedRange> ranges;  // deleted according to the log; in doubt
  };

  rocksdb::DB* const db_;
  std::vector<Family> families_;
};

// Finds rows of an index's state that were in no table file then, and were lost with a table file
// since. Not thread-safe.
class LostRows {
 public:
  // `flushed`: all rows up to this sequence number were in table files then. The rest is as for
  // FlushedRows.
  LostRows(rocksdb::DB* db, rocksdb::ColumnFamilyHandle* column_family, SequenceNumber flushed,
           const TableFilesOfFamilies* files);

  // Reads a record. All records of the state that were not in table files must be read in order.
  // Errors: those of WriteBatchReader::Read, except FailedPrecondition: RocksDB has applied only
  // the part before that error.
  absl::Status Read(uint64_t log_number, SequenceNumber first, const rocksdb::WriteBatch& batch);
  // Reads a file of the log up to a position; nothing if it is gone. Errors: those of Read, and of
  // reading the log.
  absl::Status ReadFile(const LogPosition& log);

  // The rows and ranges found. The file number of a range is 0.
  const absl::btree_set<std::string>& rows() const { return rows_; }
  const std::vector<ChangedRange>& ranges() const { return ranges_; }

 private:
  // Removes the rows in a range.
  void Forget(std::string_view lower, std::string_view upper);

  rocksdb::DB* const db_;
  const SequenceNumber flushed_up_to_;
  const FlushedRows flushed_;
  WriteBatchReader batches_;
  RowChanges changes_;
  absl::btree_set<std::string> rows_;  // those whose last change no table file can hold
  std::vector<ChangedRange> ranges_;
};

}  // namespace cairn
