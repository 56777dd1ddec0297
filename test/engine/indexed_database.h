#pragma once

#include <boost/test/unit_test.hpp>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "cairn/column.h"
#include "cairn/indexed_db.h"
#include "rocksdb/db.h"
#include "rocksdb/write_batch.h"
#include "test/engine/logged_database.h"
#include "test/require_ok.h"
#include "test/temporary_directory.h"

namespace cairn {

inline IndexSpec SpecOf(std::string_view text) {
  return RequireOk(IndexSpec::Parse(text));
}

// An IndexedDB with the column families "default" and "a", in a separate temporary directory.
class IndexedDatabase {
 public:
  enum class Base { kDb, kTransactionDb, kOptimisticTransactionDb };

  explicit IndexedDatabase(IndexedDBOptions options = {}, Base base = Base::kDb)
      : base_(base), options_(std::move(options)) {
    rocksdb_options_.create_if_missing = true;
    rocksdb_options_.allow_data_in_errors = true;
    rocksdb_options_.create_missing_column_families = true;
    rocksdb_options_.merge_operator = std::make_shared<AppendOperator>();
    options_.open.calibration = Calibration::kNone;
    options_.build.threads = 1;
    Open();
  }
  ~IndexedDatabase() { Close(); }
  IndexedDatabase(const IndexedDatabase&) = delete;
  IndexedDatabase& operator=(const IndexedDatabase&) = delete;

  void Open() {
    const std::vector<rocksdb::ColumnFamilyDescriptor> families = {{"default", rocksdb_options_},
                                                                   {"a", rocksdb_options_}};
    switch (base_) {
      case Base::kDb:
        db_ = RequireOk(IndexedDB::Open(rocksdb_options_, path(), families, &families_, options_));
        break;
      case Base::kTransactionDb:
        db_ = RequireOk(IndexedDB::Open(rocksdb_options_, rocksdb::TransactionDBOptions(), path(),
                                        families, &families_, options_));
        break;
      case Base::kOptimisticTransactionDb:
        db_ = RequireOk(IndexedDB::Open(rocksdb_options_, rocksdb::OptimisticTransactionDBOptions(),
                                        path(), families, &families_, options_));
        break;
    }
  }
  // Requires a base with transactions.
  std::unique_ptr<rocksdb::Transaction> Begin() {
    rocksdb::DB* const base = db_->GetBaseDB();
    rocksdb::Transaction* const transaction =
        base_ == Base::kTransactionDb
            ? static_cast<rocksdb::TransactionDB*>(base)->BeginTransaction({})
            : static_cast<rocksdb::OptimisticTransactionDB*>(base)->BeginTransaction({});
    return std::unique_ptr<rocksdb::Transaction>(transaction);
  }
  void Close() {
    if (db_ == nullptr) return;
    for (rocksdb::ColumnFamilyHandle* family : families_) {
      RequireOk(db_->DestroyColumnFamilyHandle(family));
    }
    families_.clear();
    db_.reset();
  }
  void Reopen() {
    Close();
    Open();
  }

  std::string path() const { return directory_ / "db"; }
  std::string Beside(const std::string& name) const { return directory_ / name; }
  IndexedDBOptions& options() { return options_; }                  // for the next Open
  rocksdb::Options& rocksdb_options() { return rocksdb_options_; }  // for the next Open
  IndexedDB* operator->() { return db_.get(); }
  IndexedDB* get() { return db_.get(); }
  rocksdb::ColumnFamilyHandle* family(size_t i) { return families_[i]; }
  // Called after the test has destroyed the last one.
  void ForgetLastFamily() { families_.pop_back(); }

  void Create(std::string_view spec, size_t family = 0) {
    const IndexSpec parsed = SpecOf(spec);
    RequireOk(db_->CreateIndex(parsed, families_[family]));
    RequireOk(db_->WaitUntilReady(parsed.name));
  }
  void Put(const std::string& key, const std::string& value, size_t family = 0) {
    RequireOk(db_->Put({}, families_[family], key, value));
  }

  IndexInfo Info(const std::string& name) {
    for (IndexInfo& info : db_->ListIndexes()) {
      if (info.spec.name == name) return info;
    }
    BOOST_FAIL("no index " << name);
    return {};
  }

 private:
  const Base base_;
  TemporaryDirectory directory_;
  rocksdb::Options rocksdb_options_;
  IndexedDBOptions options_;
  std::unique_ptr<IndexedDB> db_;
  std::vector<rocksdb::ColumnFamilyHandle*> families_;
};

// Puts the rows a0000000, a0000001, … with `value` and their number, a thousand per write.
inline void Fill(rocksdb::DB* db, int rows, const std::string& value) {
  for (int i = 0; i < rows;) {
    rocksdb::WriteBatch batch;
    for (int k = 0; k < 1000 && i < rows; ++k, ++i) {
      RequireOk(batch.Put(absl::StrFormat("a%07d", i), absl::StrCat(value, i)));
    }
    RequireOk(db->Write({}, &batch));
  }
}

// The primary keys of an index's entries with this key, in index order, separated by blanks.
inline std::string RowsOf(const SecondaryIndex& index, std::string_view key) {
  FindResult matches;
  const std::string_view keys[] = {key};
  RequireOk(index.Find(keys, &matches));
  StringList primary_keys;
  RequireOk(index.PrimaryKeys(matches, &primary_keys));
  std::string rows;
  for (size_t i = 0; i < primary_keys.size(); ++i) {
    rows += (i > 0 ? " " : "") + std::string(primary_keys[i]);
  }
  return rows;
}

// The same for the current state of the database's index of that name.
inline std::string RowsOf(IndexedDB* db, const std::string& name, std::string_view key) {
  const auto pinned = RequireOk(db->Pin(name));
  return RowsOf(*pinned, key);
}

// Checks that an index has the results of a full scan of the database, which must not change.
inline void CheckAgainstDatabase(IndexedDB* db, const std::string& name,
                                 rocksdb::ColumnFamilyHandle* family) {
  const auto pinned = RequireOk(db->Pin(name));
  const auto source = RequireOk(SnapshotSource::FromDb(db->GetBaseDB(), family));
  std::vector<std::string> differences;
  RequireOk(pinned->VerifyAgainst(*source, 5, &differences));
  for (const std::string& difference : differences) BOOST_ERROR(name << ": " << difference);
}

}  // namespace cairn
