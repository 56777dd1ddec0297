#include "tools/bench/stores/rocksdb_rows.h"

#include <memory>
#include <stdexcept>

#include "rocksdb/cache.h"
#include "rocksdb/filter_policy.h"
#include "rocksdb/table.h"
#include "rocksdb/write_batch.h"
#include "tools/bench/or_throw.h"

namespace cairn::bench {

rocksdb::Options RocksDbOptions() {
  rocksdb::BlockBasedTableOptions table;
  table.block_cache = rocksdb::NewLRUCache(1 << 30);
  table.filter_policy.reset(rocksdb::NewBloomFilterPolicy(10));
  rocksdb::Options options;
  options.create_if_missing = true;
  options.create_missing_column_families = true;
  options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  return options;
}

std::string PrimaryKey(uint64_t key) {
  std::string bytes;
  AppendNumber(key, 8, &bytes);
  return bytes;
}

void RocksDbRows::Insert(absl::Span<const Row> rows) {
  rocksdb::WriteBatch batch;
  for (const Row& row : rows) OrThrow(batch.Put(PrimaryKey(row.key), row.value));
  OrThrow(db()->Write({}, &batch));
}

void RocksDbRows::Delete(absl::Span<const uint64_t> keys) {
  rocksdb::WriteBatch batch;
  for (const uint64_t key : keys) OrThrow(batch.Delete(PrimaryKey(key)));
  OrThrow(db()->Write({}, &batch));
}

bool RocksDbRowReader::Get(uint64_t key, std::string* value) {
  const rocksdb::Status status = db_->Get({}, PrimaryKey(key), value);
  if (status.IsNotFound()) return false;
  OrThrow(status);
  return true;
}

void RocksDbRowReader::Range(size_t /*index*/, uint64_t /*from*/, size_t /*limit*/,
                             std::vector<uint64_t>* /*keys*/) {
  throw std::logic_error("a store without indexes has no range of one");
}

void RocksDbRowReader::Newest(uint64_t value, size_t limit, std::vector<Row>* rows) {
  const NumberField& field = schema_.fields[schema_.indexes[0][0]];
  rows->clear();
  const std::unique_ptr<rocksdb::Iterator> it(db_->NewIterator({}));
  for (it->SeekToLast(); it->Valid() && rows->size() < limit; it->Prev()) {
    if (ReadNumber(it->value().data() + field.offset, field.bytes) != value) continue;
    rows->push_back({ReadNumber(it->key().data(), 8), it->value().ToString()});
  }
  OrThrow(it->status());
}

}  // namespace cairn::bench
