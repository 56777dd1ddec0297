#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "rocksdb/db.h"
#include "rocksdb/file_system.h"

namespace cairn {

// The column families of a database: those that were added and not dropped, according to its
// MANIFEST. rocksdb::DB has no function for this. A handle of a dropped column family remains
// valid, and a new column family of the same name has another id. Not thread-safe.
class ManifestFamilies {
 public:
  // The database must outlive this.
  explicit ManifestFamilies(rocksdb::DB* db)
      : files_(db->GetFileSystem()), path_(db->GetName()), db_(db) {}
  // A database that may be closed. Like RocksDB when it opens a database, Read then ignores an
  // incomplete end of the MANIFEST.
  ManifestFamilies(rocksdb::FileSystem* files, std::string path)
      : files_(files), path_(std::move(path)) {}

  // Reads the part of the MANIFEST that was written since the last call, or all of it if another
  // file has taken its place. Returns the names by id, with each change that returned before the
  // call.
  // Errors: DataLoss if CURRENT names no MANIFEST, or if a part of the MANIFEST that RocksDB has
  // written cannot be read; RocksDB's own errors of reading.
  absl::StatusOr<std::map<uint32_t, std::string>> Read();
  // As of the last Read: the names of the comparators, by id. The default column family of a new
  // database may have none.
  const std::map<uint32_t, std::string>& comparators() const { return comparators_; }
  // As of the last Read: RocksDB may have removed log files with lower numbers, and keeps all
  // others.
  uint64_t min_log_to_keep() const { return min_log_to_keep_; }

 private:
  // Reads the MANIFEST from offset_ to its end. Errors: NotFound if another file has taken its
  // place; those of Read.
  absl::Status ReadOn(const std::string& name);
  // Reads fragments from offset_ on, up to the first one that is incomplete or damaged. Returns
  // whether it has read the whole file.
  absl::StatusOr<bool> ReadFragments(const std::string& name);
  bool IsReadOnly() const;
  absl::Status FromFile(const rocksdb::Status& status) const;

  rocksdb::FileSystem* const files_;
  const std::string path_;
  rocksdb::DB* const db_ = nullptr;
  std::string name_;  // the MANIFEST that the following members describe; empty: none
  // The end of the last complete fragment read. `record_` has the fragments of an incomplete
  // record.
  uint64_t offset_ = 0;
  std::string record_;
  std::map<uint32_t, std::string> names_;
  std::map<uint32_t, std::string> comparators_;
  uint64_t min_log_to_keep_ = 0;
};

}  // namespace cairn
