#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "rocksdb/db.h"

namespace cairn {

// A database opened for reading such that nothing in its directory is written: no log, no identity.
// Leftovers of deleted files remain.
class ReadOnlyDatabase {
 public:
  // Opens the column family and, because RocksDB requires it, the default one. `options` and
  // `default_options` are used except for settings that would write, that skip unreadable data, or
  // that matter only to writers. Another process may write to the database; then it is reopened
  // until no flush happens during the opening. Errors: Unavailable if a flush happens each time.
  static absl::StatusOr<std::unique_ptr<ReadOnlyDatabase>> Open(
      const std::string& directory, const rocksdb::DBOptions& options,
      const std::string& column_family, const rocksdb::ColumnFamilyOptions& family_options,
      const rocksdb::ColumnFamilyOptions& default_options);
  ~ReadOnlyDatabase();
  ReadOnlyDatabase(const ReadOnlyDatabase&) = delete;
  ReadOnlyDatabase& operator=(const ReadOnlyDatabase&) = delete;

  rocksdb::DB* db() const { return db_.get(); }
  rocksdb::ColumnFamilyHandle* column_family() const { return handles_.back(); }

 private:
  ReadOnlyDatabase() = default;
  void Close();

  std::shared_ptr<rocksdb::Env> env_;  // null if the environment of the options is used
  std::unique_ptr<rocksdb::DB> db_;
  std::vector<rocksdb::ColumnFamilyHandle*> handles_;
};

// Returns an environment that rejects every change of files.
absl::StatusOr<std::shared_ptr<rocksdb::Env>> NewReadOnlyEnv();

// Returns the name of the merge operator for the operands in the column family's files; empty if
// they contain none. Errors: FailedPrecondition if a file does not name it.
absl::StatusOr<std::string> NeededMergeOperator(const ReadOnlyDatabase& database);

// Makes a merge operator from its name, with RocksDB's default settings. Errors:
// FailedPrecondition, with the name and `where`, if RocksDB does not know it, or if its results
// depend on settings that SST files do not store (the delimiter of StringAppendOperator).
absl::StatusOr<std::shared_ptr<rocksdb::MergeOperator>> MakeMergeOperator(const std::string& name,
                                                                          std::string_view where);

}  // namespace cairn
