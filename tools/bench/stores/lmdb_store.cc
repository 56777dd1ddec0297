// LMDB: a table of rows, and one of (fields -> sorted primary keys) per index. Commits are written
// to the file but not synced, as in the other stores. There is no log: unlike the others, a crash
// of the machine may damage the file.
#include <lmdb.h>

#include <algorithm>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tools/bench/stores/implementations.h"

namespace cairn::bench {
namespace {

void LmdbOrThrow(int status) {
  if (status != 0) throw std::runtime_error(mdb_strerror(status));
}

MDB_val LmdbValue(std::string_view bytes) {
  return {bytes.size(), const_cast<char*>(bytes.data())};  // LMDB only reads it
}

std::string_view LmdbBytes(const MDB_val& value) {
  return {static_cast<const char*>(value.mv_data), value.mv_size};
}

std::string LmdbKey(uint64_t number, size_t bytes = 8) {
  std::string key;
  AppendNumber(number, bytes, &key);
  return key;
}

class LmdbStore : public Store {
 public:
  LmdbStore(Schema schema, const std::string& directory) : schema_(std::move(schema)) {
    LmdbOrThrow(mdb_env_create(&environment_));
    LmdbOrThrow(mdb_env_set_maxdbs(environment_, 1 + schema_.indexes.size()));
    LmdbOrThrow(mdb_env_set_mapsize(environment_, size_t{64} << 30));
    LmdbOrThrow(mdb_env_open(environment_, directory.c_str(), MDB_NOSYNC | MDB_NOTLS, 0644));
    MDB_txn* const transaction = Begin(0);
    LmdbOrThrow(mdb_dbi_open(transaction, "rows", MDB_CREATE, &rows_));
    for (size_t i = 0; i < schema_.indexes.size(); ++i) {
      LmdbOrThrow(mdb_dbi_open(transaction, absl::StrCat("index", i).c_str(),
                               MDB_CREATE | MDB_DUPSORT | MDB_DUPFIXED, &indexes_.emplace_back()));
    }
    LmdbOrThrow(mdb_txn_commit(transaction));
  }
  ~LmdbStore() override { mdb_env_close(environment_); }
  LmdbStore(const LmdbStore&) = delete;
  LmdbStore& operator=(const LmdbStore&) = delete;

  void Insert(absl::Span<const Row> rows) override {
    MDB_txn* const transaction = Begin(0);
    for (const Row& row : rows) {
      PutRow(transaction, row, MDB_APPEND);
      if (!indexed_) continue;
      for (size_t i = 0; i < indexes_.size(); ++i) {
        PutEntry(transaction, i, IndexKey(schema_, i, row.value), row.key);
      }
    }
    LmdbOrThrow(mdb_txn_commit(transaction));
  }

  void Update(absl::Span<const Row> rows) override {
    MDB_txn* const transaction = Begin(0);
    for (const Row& row : rows) {
      const std::string old(OldValue(transaction, row.key));
      for (size_t i = 0; i < indexes_.size(); ++i) {
        const std::string before = IndexKey(schema_, i, old);
        const std::string after = IndexKey(schema_, i, row.value);
        if (before == after) continue;
        DeleteEntry(transaction, i, before, row.key);
        PutEntry(transaction, i, after, row.key);
      }
      PutRow(transaction, row, 0);
    }
    LmdbOrThrow(mdb_txn_commit(transaction));
  }

  void Delete(absl::Span<const uint64_t> keys) override {
    MDB_txn* const transaction = Begin(0);
    for (const uint64_t key : keys) {
      const std::string old(OldValue(transaction, key));
      for (size_t i = 0; i < indexes_.size(); ++i) {
        DeleteEntry(transaction, i, IndexKey(schema_, i, old), key);
      }
      const std::string primary = LmdbKey(key);
      MDB_val at = LmdbValue(primary);
      LmdbOrThrow(mdb_del(transaction, rows_, &at, nullptr));
    }
    LmdbOrThrow(mdb_txn_commit(transaction));
  }

  // One scan of the rows per index, sorted in memory and appended.
  void CreateIndexes() override {
    indexed_ = true;
    MDB_txn* const transaction = Begin(0);
    for (size_t i = 0; i < indexes_.size(); ++i) {
      std::vector<std::string> entries;  // fields, primary key
      MDB_cursor* cursor;
      LmdbOrThrow(mdb_cursor_open(transaction, rows_, &cursor));
      MDB_val key, value;
      while (mdb_cursor_get(cursor, &key, &value, MDB_NEXT) == 0) {
        entries.push_back(IndexKey(schema_, i, LmdbBytes(value)).append(LmdbBytes(key)));
      }
      mdb_cursor_close(cursor);
      std::sort(entries.begin(), entries.end());
      for (const std::string_view entry : entries) {
        key = LmdbValue(entry.substr(0, entry.size() - 8));
        value = LmdbValue(entry.substr(entry.size() - 8));
        LmdbOrThrow(mdb_put(transaction, indexes_[i], &key, &value, MDB_APPENDDUP));
      }
    }
    LmdbOrThrow(mdb_txn_commit(transaction));
  }

  std::unique_ptr<StoreReader> NewReader() override;

  MDB_txn* Begin(unsigned flags) {
    MDB_txn* transaction;
    LmdbOrThrow(mdb_txn_begin(environment_, nullptr, flags, &transaction));
    return transaction;
  }
  const Schema& schema() const { return schema_; }
  MDB_dbi rows() const { return rows_; }
  MDB_dbi index(size_t i) const { return indexes_[i]; }

 private:
  void PutRow(MDB_txn* transaction, const Row& row, unsigned flags) {
    const std::string primary = LmdbKey(row.key);
    MDB_val key = LmdbValue(primary), value = LmdbValue(row.value);
    LmdbOrThrow(mdb_put(transaction, rows_, &key, &value, flags));
  }

  std::string_view OldValue(MDB_txn* transaction, uint64_t key) {
    const std::string primary = LmdbKey(key);
    MDB_val at = LmdbValue(primary), value;
    LmdbOrThrow(mdb_get(transaction, rows_, &at, &value));
    return LmdbBytes(value);
  }

  void PutEntry(MDB_txn* transaction, size_t index, std::string_view fields, uint64_t key) {
    const std::string primary = LmdbKey(key);
    MDB_val at = LmdbValue(fields), value = LmdbValue(primary);
    LmdbOrThrow(mdb_put(transaction, indexes_[index], &at, &value, 0));
  }

  void DeleteEntry(MDB_txn* transaction, size_t index, std::string_view fields, uint64_t key) {
    const std::string primary = LmdbKey(key);
    MDB_val at = LmdbValue(fields), value = LmdbValue(primary);
    LmdbOrThrow(mdb_del(transaction, indexes_[index], &at, &value));
  }

  const Schema schema_;
  bool indexed_ = false;
  MDB_env* environment_ = nullptr;
  MDB_dbi rows_ = 0;
  std::vector<MDB_dbi> indexes_;
};

// Keeps one read transaction and one cursor per index, which each question renews.
class LmdbReader : public StoreReader {
 public:
  explicit LmdbReader(LmdbStore* store) : store_(*store), transaction_(store->Begin(MDB_RDONLY)) {
    for (size_t i = 0; i < store_.schema().indexes.size(); ++i) {
      LmdbOrThrow(mdb_cursor_open(transaction_, store_.index(i), &cursors_.emplace_back()));
    }
    mdb_txn_reset(transaction_);
  }
  ~LmdbReader() override {
    for (MDB_cursor* cursor : cursors_) mdb_cursor_close(cursor);
    mdb_txn_abort(transaction_);
  }
  LmdbReader(const LmdbReader&) = delete;
  LmdbReader& operator=(const LmdbReader&) = delete;

  bool Get(uint64_t key, std::string* value) override {
    const Renewed renewed(transaction_);
    return GetRow(key, value);
  }

  void Range(size_t index, uint64_t from, size_t limit, std::vector<uint64_t>* keys) override {
    const Renewed renewed(transaction_);
    MDB_cursor* const cursor = RenewedCursor(index);
    const std::string bound = FirstField(index, from);
    MDB_val key = LmdbValue(bound), value;
    keys->clear();
    int status = mdb_cursor_get(cursor, &key, &value, MDB_SET_RANGE);
    while (status == 0 && keys->size() < limit) {
      keys->push_back(ReadNumber(LmdbBytes(value).data(), 8));
      status = mdb_cursor_get(cursor, &key, &value, MDB_NEXT);
    }
    if (status != MDB_NOTFOUND) LmdbOrThrow(status);
  }

  void Newest(uint64_t value, size_t limit, std::vector<Row>* rows) override {
    const Renewed renewed(transaction_);
    MDB_cursor* const cursor = RenewedCursor(0);
    const std::string fields = FirstField(0, value);
    MDB_val key = LmdbValue(fields), entry;
    rows->clear();
    int status = mdb_cursor_get(cursor, &key, &entry, MDB_SET);
    if (status == 0) status = mdb_cursor_get(cursor, &key, &entry, MDB_LAST_DUP);
    while (status == 0 && rows->size() < limit) {
      Row& row = rows->emplace_back();
      row.key = ReadNumber(LmdbBytes(entry).data(), 8);
      if (!GetRow(row.key, &row.value)) throw std::runtime_error("an entry without a row");
      status = mdb_cursor_get(cursor, &key, &entry, MDB_PREV_DUP);
    }
    if (status != MDB_NOTFOUND) LmdbOrThrow(status);
  }

 private:
  // The transaction sees the newest commit during the life of this object.
  class Renewed {
   public:
    explicit Renewed(MDB_txn* transaction) : transaction_(transaction) {
      LmdbOrThrow(mdb_txn_renew(transaction_));
    }
    ~Renewed() { mdb_txn_reset(transaction_); }
    Renewed(const Renewed&) = delete;
    Renewed& operator=(const Renewed&) = delete;

   private:
    MDB_txn* const transaction_;
  };

  MDB_cursor* RenewedCursor(size_t index) {
    LmdbOrThrow(mdb_cursor_renew(transaction_, cursors_[index]));
    return cursors_[index];
  }

  std::string FirstField(size_t index, uint64_t value) const {
    return LmdbKey(value, store_.schema().fields[store_.schema().indexes[index][0]].bytes);
  }

  bool GetRow(uint64_t key, std::string* value) {
    const std::string primary = LmdbKey(key);
    MDB_val at = LmdbValue(primary), found;
    const int status = mdb_get(transaction_, store_.rows(), &at, &found);
    if (status == MDB_NOTFOUND) return false;
    LmdbOrThrow(status);
    *value = LmdbBytes(found);
    return true;
  }

  LmdbStore& store_;
  MDB_txn* const transaction_;
  std::vector<MDB_cursor*> cursors_;
};

std::unique_ptr<StoreReader> LmdbStore::NewReader() {
  return std::make_unique<LmdbReader>(this);
}

}  // namespace

std::unique_ptr<Store> OpenLmdbStore(const Schema& schema, const std::string& directory) {
  return std::make_unique<LmdbStore>(schema, directory);
}

}  // namespace cairn::bench
