// IndexedDB with default options: the write path is that of RocksDB without indexes.
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "cairn/indexed_db.h"
#include "tools/bench/or_throw.h"
#include "tools/bench/stores/implementations.h"
#include "tools/bench/stores/rocksdb_rows.h"

namespace cairn::bench {
namespace {

std::string IndexName(size_t index) {
  return absl::StrFormat("index%d", index);
}

class CairnReader : public RocksDbRowReader {
 public:
  CairnReader(RocksDbRows* store, IndexedDB* db) : RocksDbRowReader(store), db_(db) {
    for (size_t i = 0; i < store->schema().indexes.size(); ++i) {
      indexes_.push_back(OrThrow(db_->Index(IndexName(i))));
    }
    newest_.order = Order::kDescending;
  }

  void Range(size_t index, uint64_t from, size_t limit, std::vector<uint64_t>* keys) override {
    first_.limit = limit;
    OrThrow(indexes_[index]->Lookup(KeyQuery::AtLeast(from), first_, &found_));
    keys->clear();
    for (const std::string_view key : found_) keys->push_back(ReadNumber(key.data(), 8));
  }

  void Newest(uint64_t value, size_t limit, std::vector<Row>* rows) override {
    newest_.limit = limit;
    const FoundRows found = OrThrow(db_->LookupRows(IndexName(0), value, newest_));
    rows->clear();
    for (const FoundRow& row : found) {
      rows->push_back({ReadNumber(row.primary_key.data(), 8), std::string(row.value)});
    }
  }

 private:
  IndexedDB* const db_;
  std::vector<std::shared_ptr<const SecondaryIndex>> indexes_;
  LookupOptions first_;
  LookupOptions newest_;
  FoundKeys found_;
};

class CairnStore : public RocksDbRows {
 public:
  CairnStore(const Schema& schema, const std::string& directory)
      : RocksDbRows(schema), db_(OrThrow(IndexedDB::Open(RocksDbOptions(), directory + "/db"))) {}

  rocksdb::DB* db() override { return db_.get(); }

  void CreateIndexes() override {
    std::vector<IndexSpec> specs;
    for (size_t i = 0; i < schema().indexes.size(); ++i) {
      std::string spec;
      for (const size_t field : schema().indexes[i]) {
        const NumberField& part = schema().fields[field];
        spec += absl::StrFormat("%s value[%d:%d]:u%dbe", spec.empty() ? IndexName(i) + " =" : ",",
                                part.offset, part.bytes, 8 * part.bytes);
      }
      specs.push_back(OrThrow(IndexSpec::Parse(spec)));
    }
    OrThrow(db_->CreateIndexes(specs));
    for (const IndexSpec& spec : specs) OrThrow(db_->WaitUntilReady(spec.name));
  }

  std::unique_ptr<StoreReader> NewReader() override {
    return std::make_unique<CairnReader>(this, db_.get());
  }

  Counters Sums() const override {
    const BacklogStats backlog = db_->Backlog();
    double compactions = 0;
    for (const IndexInfo& info : db_->ListIndexes()) {
      compactions += static_cast<double>(info.compactions);
    }
    return {{"waits", static_cast<double>(backlog.waits)},
            {"waited_ms", absl::ToDoubleMilliseconds(backlog.wait_time)},
            {"compactions", compactions}};
  }

 private:
  const std::unique_ptr<IndexedDB> db_;
};

}  // namespace

std::unique_ptr<Store> OpenCairnStore(const Schema& schema, const std::string& directory) {
  return std::make_unique<CairnStore>(schema, directory);
}

}  // namespace cairn::bench
