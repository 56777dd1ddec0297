#include "tools/bench/database.h"
#include "engine/util/rocksdb_compat.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>

#include "rocksdb/cache.h"
#include "rocksdb/filter_policy.h"
#include "rocksdb/slice_transform.h"
#include "rocksdb/table.h"
#include "tools/bench/data.h"
#include "tools/bench/or_throw.h"

namespace cairn::bench {
namespace {

constexpr size_t kValueBytes = 100;
constexpr size_t kBlockCacheBytes = size_t{8} << 30;

rocksdb::ColumnFamilyOptions FamilyOptions(const std::shared_ptr<rocksdb::Cache>& cache,
                                           bool point_lookups) {
  rocksdb::BlockBasedTableOptions table;
  table.block_cache = cache;
  table.filter_policy.reset(rocksdb::NewBloomFilterPolicy(10));
  table.format_version = 5;
  if (point_lookups) {
    table.data_block_index_type = rocksdb::BlockBasedTableOptions::kDataBlockBinaryAndHash;
  }
  rocksdb::ColumnFamilyOptions options;
  options.compression = rocksdb::kNoCompression;
  options.write_buffer_size = size_t{64} << 20;
  options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  return options;
}

}  // namespace

BenchDatabase& BenchDatabase::Get(uint64_t rows) {
  std::unique_ptr<BenchDatabase>& database = Databases()[rows];
  if (database == nullptr) database.reset(new BenchDatabase(rows));
  return *database;
}

void BenchDatabase::RemoveAll() {
  Databases().clear();
}

std::map<uint64_t, std::unique_ptr<BenchDatabase>>& BenchDatabase::Databases() {
  static std::map<uint64_t, std::unique_ptr<BenchDatabase>> databases;
  return databases;
}

// A bijection of 64-bit numbers, so that values are distinct: splitmix64's finalizer.
uint64_t BenchDatabase::Value(uint64_t i) {
  return Random(i * 0x9E3779B97F4A7C15ull)();
}

std::string BenchDatabase::PrimaryKey(uint64_t i) {
  char key[21];
  std::snprintf(key, sizeof(key), "%016llu", static_cast<unsigned long long>(i));
  return key;
}

std::string BenchDatabase::BigEndian(uint64_t value) {
  std::string bytes(8, '\0');
  for (int i = 0; i < 8; ++i) bytes[i] = static_cast<char>(value >> (56 - 8 * i));
  return bytes;
}

BenchDatabase::BenchDatabase(uint64_t rows) : rows_(rows) {
  const std::shared_ptr<rocksdb::Cache> cache = rocksdb::NewLRUCache(kBlockCacheBytes);
  rocksdb::ColumnFamilyOptions by_value = FamilyOptions(cache, false);
  by_value.prefix_extractor.reset(rocksdb::NewFixedPrefixTransform(8));
  rocksdb::DBOptions options;
  options.create_if_missing = true;
  options.create_missing_column_families = true;
  options.max_background_jobs = 2;
  options.max_open_files = -1;
  std::unique_ptr<rocksdb::DB> db;
  OrThrow(rocksdb::DB::Open(options, directory(),
                            {{"default", FamilyOptions(cache, false)},
                             {"by_value", by_value},
                             {"value_to_key", FamilyOptions(cache, true)}},
                            &families_, Into(&db)));
  db_ = std::move(db);
  LoadRows();
  Settle();
}

void BenchDatabase::Settle() {
  for (rocksdb::ColumnFamilyHandle* family : families_) {
    OrThrow(db_->Flush({}, family));
    OrThrow(db_->CompactRange({}, family, nullptr, nullptr));
  }
  OrThrow(db_->PauseBackgroundWork());
  sync();
}

rocksdb::ColumnFamilyHandle* BenchDatabase::Index(size_t family) {
  if (!has_indexes_) {
    OrThrow(db_->ContinueBackgroundWork());
    LoadIndexes();
    Settle();
    has_indexes_ = true;
  }
  return families_[family];
}

BenchDatabase::~BenchDatabase() {
  db_->ContinueBackgroundWork().PermitUncheckedError();
  for (rocksdb::ColumnFamilyHandle* family : families_) db_->DestroyColumnFamilyHandle(family);
  db_.reset();
}

void BenchDatabase::LoadRows() {
  rocksdb::WriteOptions write;
  write.disableWAL = true;
  rocksdb::WriteBatch batch;
  std::string value(kValueBytes, 'v');
  Random random(kSeed);
  for (uint64_t i = 0; i < rows_; ++i) {
    value.replace(0, 8, BigEndian(Value(i)));
    for (size_t j = 8; j + 8 <= kValueBytes / 2; j += 8) value.replace(j, 8, BigEndian(random()));
    OrThrow(batch.Put(families_[0], PrimaryKey(i), value));
    if (batch.Count() == 1000 || i + 1 == rows_) {
      OrThrow(db_->Write(write, &batch));
      batch.Clear();
    }
  }
}

void BenchDatabase::LoadIndexes() {
  std::vector<std::pair<uint64_t, uint64_t>> entries;
  for (uint64_t i = 0; i < rows_; ++i) entries.emplace_back(Value(i), i);
  std::sort(entries.begin(), entries.end());
  rocksdb::WriteOptions write;
  write.disableWAL = true;
  rocksdb::WriteBatch batch;
  for (const auto& [value, i] : entries) {
    const std::string key = BigEndian(value);
    OrThrow(batch.Put(families_[1], key + PrimaryKey(i), ""));
    OrThrow(batch.Put(families_[2], key, PrimaryKey(i)));
    if (batch.Count() >= 1000 || i == entries.back().second) {
      OrThrow(db_->Write(write, &batch));
      batch.Clear();
    }
  }
}

uint64_t BenchRows(uint64_t otherwise) {
  const char* rows = std::getenv("CAIRN_BENCH_ROWS");
  return rows == nullptr ? otherwise : std::strtoull(rows, nullptr, 0);
}

}  // namespace cairn::bench
