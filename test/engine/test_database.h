#pragma once

#include <boost/test/unit_test.hpp>
#include <memory>
#include <string>
#include <string_view>

#include "cairn/snapshot_source.h"
#include "engine/util/rocksdb_compat.h"
#include "rocksdb/db.h"
#include "test/require_ok.h"
#include "test/temporary_directory.h"

namespace cairn {

// A separate RocksDB in a temporary directory, for one test.
class TestDatabase {
 public:
  TestDatabase() {
    rocksdb::Options options;
    options.create_if_missing = true;
    RequireOk(rocksdb::DB::Open(options, path(), Into(&db_)));
  }

  std::string path() const { return directory_ / "db"; }
  // The path of `name` next to the database.
  std::string Beside(const std::string& name) const { return directory_ / name; }
  rocksdb::DB* db() { return db_.get(); }

  void Put(std::string_view key, std::string_view value) {
    RequireOk(db_->Put({}, rocksdb::Slice(key.data(), key.size()),
                       rocksdb::Slice(value.data(), value.size())));
  }
  void Delete(std::string_view key) {
    RequireOk(db_->Delete({}, rocksdb::Slice(key.data(), key.size())));
  }
  // The current state. Must be destroyed before the database.
  std::unique_ptr<SnapshotSource> Source() { return RequireOk(SnapshotSource::FromDb(db())); }

 private:
  TemporaryDirectory directory_;
  std::unique_ptr<rocksdb::DB> db_;
};

}  // namespace cairn
