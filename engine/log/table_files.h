#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "cairn/types.h"
#include "engine/util/key_order.h"
#include "rocksdb/db.h"
#include "rocksdb/metadata.h"

namespace cairn {

// The maximum number of rows that an index reads again because the log does not show whether they
// have changed: about a second's work. A build reads all rows, and meanwhile the index does not
// change.
constexpr size_t kMaxRowsReadAgain = 100'000;

// The number of entries in a column family's memtables.
uint64_t EntriesInMemory(rocksdb::DB* db, rocksdb::ColumnFamilyHandle* column_family);

// The table files of column families, by id.
using TableFilesOfFamilies = std::map<uint32_t, rocksdb::ColumnFamilyMetaData>;

// Returns the live table files of the default column family and of these. Null if there are too
// many files.
std::shared_ptr<const TableFilesOfFamilies> TableFilesNow(
    rocksdb::DB* db, absl::Span<rocksdb::ColumnFamilyHandle* const> column_families);
// Returns a column family's files in `files`, which may be null, or else its live files.
rocksdb::ColumnFamilyMetaData FilesOf(rocksdb::DB* db, rocksdb::ColumnFamilyHandle* column_family,
                                      const TableFilesOfFamilies* files);

// All live table files.
std::vector<rocksdb::LiveFileMetaData> LiveFiles(rocksdb::DB* db);

// A table file of a column family, as an index remembers it.
struct TableFile {
  uint64_t number = 0;
  uint64_t size = 0;
  SequenceNumber largest_sequence = 0;
  uint64_t created = 0;  // in seconds; 0 if unknown
  // When its oldest entry was written, in seconds; 0 if unknown. A compaction passes on the lowest
  // time.
  uint64_t ancestry = 0;
  bool seen = false;  // whether its origin is known (ingested_files.h)
  // The file's first and last key in the order of bytes. Long keys are shortened, so the range may
  // be wider than the file's.
  std::string smallest;
  std::string largest;
  SequenceNumber smallest_sequence = 0;  // 0 for a remembered file

  bool operator==(const TableFile&) const = default;
};

// The live table files of a column family at one time.
struct TableFiles {
  // Whether they contained all rows of the state that is stored with them.
  bool complete = false;
  // If `complete`, a permanent name of the newest file: "number:unique id". Empty if there is no
  // file.
  std::string newest;
  std::vector<TableFile> files;  // by number

  // Returns null if no file has this number.
  const TableFile* Find(uint64_t number) const;

  // Converts to and from the text in an index's manifest. Errors: DataLoss for any other text.
  std::string ToString() const;
  static absl::StatusOr<TableFiles> Parse(std::string_view text);

  bool operator==(const TableFiles&) const = default;
};

// Records table files repeatedly, at little cost if nothing has changed. Not thread-safe.
class TableFilesRecorder {
 public:
  TableFilesRecorder(rocksdb::DB* db, rocksdb::ColumnFamilyHandle* column_family)
      : db_(db), column_family_(column_family) {}

  // Sets *tables to the current live files, for a state that the database had before the call.
  // Files that *tables lists as seen stay so; *tables may be null. The result is null if there are
  // too many files.
  absl::Status Record(std::shared_ptr<const TableFiles>* tables);

 private:
  rocksdb::DB* const db_;
  rocksdb::ColumnFamilyHandle* const column_family_;
  uint64_t at_version_ = 0;                   // RocksDB's version number at last_, 0 for none
  std::shared_ptr<const TableFiles> before_;  // the input from which last_ was made
  std::shared_ptr<const TableFiles> last_;
};

// Returns the files of a column family whose keys have this order, none of them seen. In the second
// form, the live ones.
TableFiles ListTableFiles(const rocksdb::ColumnFamilyMetaData& metadata, KeyOrder order);
TableFiles ListTableFiles(rocksdb::DB* db, rocksdb::ColumnFamilyHandle* column_family);

// Keys from `lower` up to but not including `upper`, whose rows may have been lost or added without
// the log.
struct ChangedRange {
  std::string lower;
  std::string upper;
  uint64_t file = 0;  // a table file that is gone or new; 0: deleted by the log (LostRows)
};

// The files whose ranges count as changed.
enum class ChangedFiles : uint8_t {
  // Files that are gone and whose rows did not move into newer files. A successor is a file that
  // was not live then, has a larger number and common keys, and has entries that are as old.
  kLost,
  kGone,       // all files that are gone
  kDifferent,  // all files that are gone or new; outside of their ranges, both states are equal
};

// Returns the ranges of files that were live `then` or are live `now`, ascending and disjoint.
// Errors: FailedPrecondition, which names a file, if one has the same number but differs.
absl::StatusOr<std::vector<ChangedRange>> FindChangedRanges(const TableFiles& then,
                                                            const TableFiles& now,
                                                            ChangedFiles which);

// Sorts ranges, and merges those that have common keys.
void UniteRanges(std::vector<ChangedRange>* ranges);

// Returns a permanent name of a table file of the column family: "number:unique id". Empty if the
// file is not live or has no id.
absl::StatusOr<std::string> OwnFileId(rocksdb::DB* db, rocksdb::ColumnFamilyHandle* column_family,
                                      uint64_t number);

}  // namespace cairn
