#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cairn/types.h"
#include "rocksdb/db.h"
#include "rocksdb/metadata.h"

namespace cairn {

// The number of entries in a column family's memory.
uint64_t EntriesInMemory(rocksdb::DB* db, rocksdb::ColumnFamilyHandle* column_family);

// All table files that are live.
std::vector<rocksdb::LiveFileMetaData> LiveFiles(rocksdb::DB* db);

// A table file of a column family, as an index remembers it.
struct TableFile {
  uint64_t number = 0;
  uint64_t size = 0;
  SequenceNumber largest_sequence = 0;
  uint64_t created = 0;  // in seconds; 0 if unknown
  // When its oldest entry was written, in seconds. A compaction passes the lowest one on. 0 if
  // unknown.
  uint64_t ancestry = 0;
  bool seen = false;  // whether it is known what wrote it (ingested_files.h)
  // Its keys are from the one to the other, both included. Long ones are shortened: the range may
  // be wider than the file's.
  std::string smallest;
  std::string largest;
  SequenceNumber smallest_sequence = 0;  // of a live file, 0 of a remembered one

  bool operator==(const TableFile&) const = default;
};

// The live table files of a column family at one time.
struct TableFiles {
  // Whether they had all rows of the state that is remembered with them.
  bool complete = false;
  // If so, what names the newest of them for good: "number:unique id". Empty if there is none.
  std::string newest;
  std::vector<TableFile> files;  // by number

  // Null if there is none of that number.
  const TableFile* Find(uint64_t number) const;

  // As text for an index's manifest, and back: DataLoss for any other text.
  std::string ToString() const;
  static absl::StatusOr<TableFiles> Parse(std::string_view text);

  bool operator==(const TableFiles&) const = default;
};

// Records table files again and again, for little where nothing has changed. Not thread-safe.
class TableFilesRecorder {
 public:
  TableFilesRecorder(rocksdb::DB* db, rocksdb::ColumnFamilyHandle* column_family)
      : db_(db), column_family_(column_family) {}

  // Sets *tables to the files that are live now, for a state that the database had before the call.
  // Those that were seen before, in *tables (null: none), still are. Null, if there are too many.
  absl::Status Record(std::shared_ptr<const TableFiles>* tables);

 private:
  rocksdb::DB* const db_;
  rocksdb::ColumnFamilyHandle* const column_family_;
  uint64_t at_version_ = 0;                   // RocksDB's number of last_, 0 for none
  std::shared_ptr<const TableFiles> before_;  // what last_ was made of
  std::shared_ptr<const TableFiles> last_;
};

// The live files of a column family, none of them seen.
TableFiles ListTableFiles(rocksdb::DB* db, rocksdb::ColumnFamilyHandle* column_family);

// Keys that rows may have been lost or come in without the log, from `lower` to below `upper`.
struct ChangedRange {
  std::string lower;
  std::string upper;
  uint64_t file = 0;  // a table file that is gone, or new
};

// Which files' ranges have changed.
enum class ChangedFiles : uint8_t {
  // Those that are gone, without those whose rows went on into newer files: a file that was not
  // live
  // then has a larger number, keys in common, and entries as old.
  kLost,
  kGone,       // all that are gone
  kDifferent,  // all that are gone or new: outside of their ranges both states of files are equal
};

// The ranges of files that were live `then`, or are `now`, ascending and without a key in common.
// FailedPrecondition, naming it, for a file that is another than then.
absl::StatusOr<std::vector<ChangedRange>> FindChangedRanges(const TableFiles& then,
                                                            const TableFiles& now,
                                                            ChangedFiles which);

// Sorts ranges, and makes one of those that have keys in common.
void UniteRanges(std::vector<ChangedRange>* ranges);

// What names a table file of the column family for good: "number:unique id"; empty where it is not
// live, or has no id.
absl::StatusOr<std::string> OwnFileId(rocksdb::DB* db, rocksdb::ColumnFamilyHandle* column_family,
                                      uint64_t number);

}  // namespace cairn
