#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "rocksdb/db.h"
#include "tools/bench/temporary_directory.h"

namespace cairn::bench {

// A RocksDB of `rows` rows in a temporary directory, removed at the end: 16-byte primary keys (the
// rank as 16 decimal digits), values of 100 bytes whose first 8 are a random big-endian u64, all
// distinct. Two more column families are hand-made indexes: `by_value` with keys value||primary key
// and empty values, and `value_to_key` with the value as key and the primary key as value. They are
// loaded on first use. All compacted and uncompressed, with a block
// cache of 8 GB. Not thread-safe.
class BenchDatabase {
 public:
  // This process's database of `rows` rows, created by the first call.
  static BenchDatabase& Get(uint64_t rows);
  // Closes and removes all databases. main must call this while RocksDB's globals exist.
  static void RemoveAll();
  ~BenchDatabase();
  BenchDatabase(const BenchDatabase&) = delete;
  BenchDatabase& operator=(const BenchDatabase&) = delete;

  rocksdb::DB* db() { return db_.get(); }
  rocksdb::ColumnFamilyHandle* rows_family() { return families_[0]; }
  rocksdb::ColumnFamilyHandle* by_value() { return Index(1); }
  rocksdb::ColumnFamilyHandle* value_to_key() { return Index(2); }
  const std::string& directory() const { return directory_.path(); }

  // Row i's indexed value and primary key.
  static uint64_t Value(uint64_t i);
  static std::string PrimaryKey(uint64_t i);
  // 8 big-endian bytes.
  static std::string BigEndian(uint64_t value);

 private:
  static std::map<uint64_t, std::unique_ptr<BenchDatabase>>& Databases();
  explicit BenchDatabase(uint64_t rows);
  void LoadRows();
  void LoadIndexes();
  rocksdb::ColumnFamilyHandle* Index(size_t family);
  // Compacts everything, stops background work and syncs, so that measurements are undisturbed.
  void Settle();

  const uint64_t rows_;
  bool has_indexes_ = false;
  const TemporaryDirectory directory_;
  std::unique_ptr<rocksdb::DB> db_;
  std::vector<rocksdb::ColumnFamilyHandle*> families_;
};

// The number of rows that benchmarks over a database use: CAIRN_BENCH_ROWS, or `otherwise`.
uint64_t BenchRows(uint64_t otherwise);

}  // namespace cairn::bench
