#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "rocksdb/db.h"

namespace cairn {

// A database opened for reading, in a way that writes nothing to its directory: no log, no
// identity, and leftovers of deleted files stay.
class ReadOnlyDatabase {
 public:
  // Opens the column family and, as RocksDB must, the default one. `options` and
  // `default_options` are taken but for what would write, skip what cannot be read, or matter to
  // writers only. Another process may write to the database: it is opened again until it did not
  // flush meanwhile, and Unavailable where it does all the time.
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

  std::shared_ptr<rocksdb::Env> env_;  // null where the options' own is used
  std::unique_ptr<rocksdb::DB> db_;
  std::vector<rocksdb::ColumnFamilyHandle*> handles_;
};

// An environment that refuses every change to files.
absl::StatusOr<std::shared_ptr<rocksdb::Env>> NewReadOnlyEnv();

// The name of the merge operator whose operands the column family's files hold; empty where they
// hold none. FailedPrecondition where they do not name it.
absl::StatusOr<std::string> NeededMergeOperator(const ReadOnlyDatabase& database);

// The merge operator that RocksDB makes from a name alone. FailedPrecondition, naming it and
// `where`, for one that it does not know, or whose results depend on settings besides (the
// delimiter of StringAppendOperator), which SST files do not store.
absl::StatusOr<std::shared_ptr<rocksdb::MergeOperator>> MakeMergeOperator(const std::string& name,
                                                                          std::string_view where);

}  // namespace cairn
