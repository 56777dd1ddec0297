#pragma once

#include <string>

#include "absl/types/span.h"
#include "rocksdb/db.h"
#include "rocksdb/options.h"
#include "tools/bench/stores/store.h"

namespace cairn::bench {

// The options of all stores over RocksDB, which differ only in their indexes: RocksDB's defaults, a
// block cache of 1 GB and bloom filters of 10 bits per key.
rocksdb::Options RocksDbOptions();
// 8 big-endian bytes.
std::string PrimaryKey(uint64_t key);

// Rows in the default column family, without indexes. The base of stores whose indexes need no code
// in the write path.
class RocksDbRows : public Store {
 public:
  explicit RocksDbRows(const Schema& schema) : schema_(schema) {}

  void Insert(absl::Span<const Row> rows) override;
  void Update(absl::Span<const Row> rows) override { Insert(rows); }
  void Delete(absl::Span<const uint64_t> keys) override;

  virtual rocksdb::DB* db() = 0;
  const Schema& schema() const { return schema_; }

 private:
  const Schema schema_;
};

// A reader of such rows, which reads all rows from the newest on to find those with a value.
class RocksDbRowReader : public StoreReader {
 public:
  explicit RocksDbRowReader(RocksDbRows* store) : db_(store->db()), schema_(store->schema()) {}

  bool Get(uint64_t key, std::string* value) override;
  void Range(size_t index, uint64_t from, size_t limit, std::vector<uint64_t>* keys) override;
  void Newest(uint64_t value, size_t limit, std::vector<Row>* rows) override;

 private:
  rocksdb::DB* const db_;
  const Schema& schema_;
};

}  // namespace cairn::bench
