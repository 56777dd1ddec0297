#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "rocksdb/db.h"

namespace cairn {

// The column families of an open database: those that were added and not dropped, according to its
// MANIFEST. rocksdb::DB has no function for this. A handle of a dropped column family remains
// valid, and a new column family of the same name has another id. Not thread-safe.
class ManifestFamilies {
 public:
  // The database must outlive this.
  explicit ManifestFamilies(rocksdb::DB* db) : db_(db) {}

  // Reads the part of the MANIFEST that was written since the last call, or all of it if another
  // file has taken its place. Returns the names by id, with each change that returned before the
  // call.
  // Errors: DataLoss if CURRENT names no MANIFEST, or if a part of the MANIFEST that RocksDB has
  // written cannot be read; RocksDB's own errors of reading.
  absl::StatusOr<std::map<uint32_t, std::string>> Read();

 private:
  // Reads the MANIFEST from offset_ to its end. Errors: NotFound if another file has taken its
  // place; those of Read.
  absl::Status ReadOn(const std::string& name);
  // Reads fragments from offset_ on, up to the first one that is incomplete or damaged. Returns
  // whether it has read the whole file.
  absl::StatusOr<bool> ReadFragments(const std::string& name);
  bool IsReadOnly() const;
  absl::Status FromFile(const rocksdb::Status& status) const;

  rocksdb::DB* const db_;
  std::string name_;  // the MANIFEST that the following members describe; empty: none
  // The end of the last complete fragment read. `record_` has the fragments of an incomplete
  // record.
  uint64_t offset_ = 0;
  std::string record_;
  std::map<uint32_t, std::string> names_;
};

}  // namespace cairn
