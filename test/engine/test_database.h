#pragma once

#include <boost/test/unit_test.hpp>
#include <memory>
#include <string>
#include <string_view>

#include "cairn/snapshot_source.h"
#include "rocksdb/db.h"
#include "test/temporary_directory.h"

namespace cairn {

// A RocksDB of its own in a temporary directory, for one test.
class TestDatabase {
 public:
  TestDatabase() {
    rocksdb::Options options;
    options.create_if_missing = true;
    rocksdb::DB* db = nullptr;
    BOOST_REQUIRE(rocksdb::DB::Open(options, path(), &db).ok());
    db_.reset(db);
  }

  std::string path() const { return directory_ / "db"; }
  // The path of `name` beside the database.
  std::string Beside(const std::string& name) const { return directory_ / name; }
  rocksdb::DB* db() { return db_.get(); }

  void Put(std::string_view key, std::string_view value) {
    BOOST_REQUIRE(db_->Put({}, rocksdb::Slice(key.data(), key.size()),
                           rocksdb::Slice(value.data(), value.size()))
                      .ok());
  }
  void Delete(std::string_view key) {
    BOOST_REQUIRE(db_->Delete({}, rocksdb::Slice(key.data(), key.size())).ok());
  }
  // The state as it is now. Must be gone before the database.
  std::unique_ptr<SnapshotSource> Source() {
    auto source = SnapshotSource::FromDb(db());
    BOOST_REQUIRE_MESSAGE(source.ok(), source.status().ToString());
    return *std::move(source);
  }

 private:
  TemporaryDirectory directory_;
  std::unique_ptr<rocksdb::DB> db_;
};

}  // namespace cairn
