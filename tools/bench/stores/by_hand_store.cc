// RocksDB with a column family per index, which the application keeps in the batch of the rows. An
// entry's key is the fields and the primary key, inverted if the newest are read first; it has no
// value.
#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/util/rocksdb_compat.h"
#include "rocksdb/db.h"
#include "rocksdb/sst_file_writer.h"
#include "rocksdb/write_batch.h"
#include "tools/bench/or_throw.h"
#include "tools/bench/stores/implementations.h"
#include "tools/bench/stores/rocksdb_rows.h"

namespace cairn::bench {
namespace {

class ByHandStore : public RocksDbRows {
 public:
  ByHandStore(const Schema& schema, std::string directory)
      : RocksDbRows(schema), directory_(std::move(directory)) {
    const rocksdb::Options options = RocksDbOptions();
    std::vector<rocksdb::ColumnFamilyDescriptor> families = {{"default", options}};
    for (size_t i = 0; i < schema.indexes.size(); ++i) {
      families.emplace_back(absl::StrCat("index", i), options);
    }
    OrThrow(rocksdb::DB::Open(options, directory_ + "/db", families, &families_, Into(&db_)));
  }
  ~ByHandStore() override {
    for (rocksdb::ColumnFamilyHandle* family : families_) {
      db_->DestroyColumnFamilyHandle(family).PermitUncheckedError();
    }
  }
  ByHandStore(const ByHandStore&) = delete;
  ByHandStore& operator=(const ByHandStore&) = delete;

  rocksdb::DB* db() override { return db_.get(); }
  rocksdb::ColumnFamilyHandle* family(size_t index) { return families_[1 + index]; }

  void Insert(absl::Span<const Row> rows) override {
    rocksdb::WriteBatch batch;
    for (const Row& row : rows) {
      OrThrow(batch.Put(PrimaryKey(row.key), row.value));
      if (!indexed_) continue;
      for (size_t i = 0; i < schema().indexes.size(); ++i) {
        OrThrow(batch.Put(family(i), Entry(i, row.key, row.value), ""));
      }
    }
    OrThrow(db_->Write({}, &batch));
  }

  void Update(absl::Span<const Row> rows) override {
    rocksdb::WriteBatch batch;
    std::string old;
    for (const Row& row : rows) {
      OrThrow(db_->Get({}, PrimaryKey(row.key), &old));
      for (size_t i = 0; i < schema().indexes.size(); ++i) {
        const std::string before = Entry(i, row.key, old);
        const std::string after = Entry(i, row.key, row.value);
        if (before == after) continue;
        OrThrow(batch.Delete(family(i), before));
        OrThrow(batch.Put(family(i), after, ""));
      }
      OrThrow(batch.Put(PrimaryKey(row.key), row.value));
    }
    OrThrow(db_->Write({}, &batch));
  }

  void Delete(absl::Span<const uint64_t> keys) override {
    std::vector<std::string> primary_keys;
    for (const uint64_t key : keys) primary_keys.push_back(PrimaryKey(key));
    const std::vector<rocksdb::Slice> slices(primary_keys.begin(), primary_keys.end());
    std::vector<rocksdb::PinnableSlice> old(keys.size());
    std::vector<rocksdb::Status> statuses(keys.size());
    db_->MultiGet({}, db_->DefaultColumnFamily(), keys.size(), slices.data(), old.data(),
                  statuses.data());
    rocksdb::WriteBatch batch;
    for (size_t at = 0; at < keys.size(); ++at) {
      OrThrow(statuses[at]);
      OrThrow(batch.Delete(slices[at]));
      for (size_t i = 0; i < schema().indexes.size(); ++i) {
        OrThrow(batch.Delete(family(i), Entry(i, keys[at], old[at].ToStringView())));
      }
    }
    OrThrow(db_->Write({}, &batch));
  }

  // One scan of the rows per index, sorted in memory and ingested as a file.
  void CreateIndexes() override {
    indexed_ = true;
    for (size_t i = 0; i < schema().indexes.size(); ++i) {
      std::vector<std::string> entries;
      const std::unique_ptr<rocksdb::Iterator> it(db_->NewIterator({}));
      for (it->SeekToFirst(); it->Valid(); it->Next()) {
        entries.push_back(Entry(i, ReadNumber(it->key().data(), 8), it->value().ToStringView()));
      }
      OrThrow(it->status());
      if (entries.empty()) return;
      std::sort(entries.begin(), entries.end());
      rocksdb::SstFileWriter writer({}, db_->GetOptions(family(i)), family(i));
      const std::string path = directory_ + "/ingested.sst";
      OrThrow(writer.Open(path));
      for (const std::string& entry : entries) OrThrow(writer.Put(entry, ""));
      OrThrow(writer.Finish());
      rocksdb::IngestExternalFileOptions options;
      options.move_files = true;
      OrThrow(db_->IngestExternalFile(family(i), {path}, options));
    }
  }

  std::unique_ptr<StoreReader> NewReader() override;

 private:
  std::string Entry(size_t index, uint64_t key, std::string_view value) const {
    std::string entry = IndexKey(schema(), index, value);
    AppendNumber(schema().newest_first ? ~key : key, 8, &entry);
    return entry;
  }

  const std::string directory_;
  bool indexed_ = false;
  std::unique_ptr<rocksdb::DB> db_;
  std::vector<rocksdb::ColumnFamilyHandle*> families_;
};

class ByHandReader : public RocksDbRowReader {
 public:
  explicit ByHandReader(ByHandStore* store) : RocksDbRowReader(store), store_(*store) {}

  void Range(size_t index, uint64_t from, size_t limit, std::vector<uint64_t>* keys) override {
    const Schema& schema = store_.schema();
    std::string bound;
    AppendNumber(from, schema.fields[schema.indexes[index][0]].bytes, &bound);
    keys->clear();
    const std::unique_ptr<rocksdb::Iterator> it(store_.db()->NewIterator({}, store_.family(index)));
    for (it->Seek(bound); it->Valid() && keys->size() < limit; it->Next()) {
      keys->push_back(ReadNumber(it->key().data() + it->key().size() - 8, 8));
    }
    OrThrow(it->status());
  }

  void Newest(uint64_t value, size_t limit, std::vector<Row>* rows) override {
    const size_t bytes = store_.schema().fields[store_.schema().indexes[0][0]].bytes;
    std::string prefix, end;
    AppendNumber(value, bytes, &prefix);
    AppendNumber(value + 1, bytes, &end);
    std::vector<std::string> primary_keys;
    {
      const rocksdb::Slice upper = end;
      rocksdb::ReadOptions options;
      options.iterate_upper_bound = &upper;
      const std::unique_ptr<rocksdb::Iterator> it(
          store_.db()->NewIterator(options, store_.family(0)));
      for (it->Seek(prefix); it->Valid() && primary_keys.size() < limit; it->Next()) {
        primary_keys.push_back(PrimaryKey(~ReadNumber(it->key().data() + bytes, 8)));
      }
      OrThrow(it->status());
    }
    const size_t count = primary_keys.size();
    const std::vector<rocksdb::Slice> slices(primary_keys.begin(), primary_keys.end());
    std::vector<rocksdb::PinnableSlice> values(count);
    std::vector<rocksdb::Status> statuses(count);
    store_.db()->MultiGet({}, store_.db()->DefaultColumnFamily(), count, slices.data(),
                          values.data(), statuses.data());
    rows->clear();
    for (size_t i = 0; i < count; ++i) {
      OrThrow(statuses[i]);
      rows->push_back({ReadNumber(primary_keys[i].data(), 8), values[i].ToString()});
    }
  }

 private:
  ByHandStore& store_;
};

std::unique_ptr<StoreReader> ByHandStore::NewReader() {
  return std::make_unique<ByHandReader>(this);
}

}  // namespace

std::unique_ptr<Store> OpenByHandStore(const Schema& schema, const std::string& directory) {
  return std::make_unique<ByHandStore>(schema, directory);
}

}  // namespace cairn::bench
