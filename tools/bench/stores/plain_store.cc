// RocksDB without indexes: the upper limit for writes.
#include <memory>
#include <string>

#include "engine/util/rocksdb_compat.h"
#include "rocksdb/db.h"
#include "tools/bench/or_throw.h"
#include "tools/bench/stores/implementations.h"
#include "tools/bench/stores/rocksdb_rows.h"

namespace cairn::bench {
namespace {

class PlainStore : public RocksDbRows {
 public:
  PlainStore(const Schema& schema, const std::string& directory) : RocksDbRows(schema) {
    OrThrow(rocksdb::DB::Open(RocksDbOptions(), directory + "/db", Into(&db_)));
  }

  rocksdb::DB* db() override { return db_.get(); }
  void CreateIndexes() override {}
  std::unique_ptr<StoreReader> NewReader() override {
    return std::make_unique<RocksDbRowReader>(this);
  }

 private:
  std::unique_ptr<rocksdb::DB> db_;
};

}  // namespace

std::unique_ptr<Store> OpenPlainStore(const Schema& schema, const std::string& directory) {
  return std::make_unique<PlainStore>(schema, directory);
}

}  // namespace cairn::bench
