// SQLite in WAL mode without syncs at commits (synchronous=NORMAL), with prepared statements and
// covering indexes. The cache has 1 GB; a checkpoint is made for 64 MB of log.
#include <sqlite3.h>

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

class SqliteConnection {
 public:
  explicit SqliteConnection(const std::string& path) {
    Check(sqlite3_open(path.c_str(), &db_));
    Execute("PRAGMA page_size = 4096");
    Execute("PRAGMA journal_mode = WAL");
    Execute("PRAGMA synchronous = NORMAL");
    Execute("PRAGMA cache_size = -1000000");
    Execute("PRAGMA wal_autocheckpoint = 16384");
  }
  ~SqliteConnection() { sqlite3_close(db_); }
  SqliteConnection(const SqliteConnection&) = delete;
  SqliteConnection& operator=(const SqliteConnection&) = delete;

  void Execute(const std::string& sql) {
    Check(sqlite3_exec(db_, sql.c_str(), nullptr, nullptr, nullptr));
  }
  void Check(int status) const {
    if (status != SQLITE_OK) throw std::runtime_error(sqlite3_errmsg(db_));
  }
  sqlite3* db() { return db_; }

 private:
  sqlite3* db_ = nullptr;
};

// A prepared statement. Parameters and columns are counted from 0.
class SqliteStatement {
 public:
  SqliteStatement(SqliteConnection* connection, const std::string& sql) : connection_(*connection) {
    connection_.Check(sqlite3_prepare_v3(connection_.db(), sql.c_str(), -1,
                                         SQLITE_PREPARE_PERSISTENT, &statement_, nullptr));
  }
  ~SqliteStatement() { sqlite3_finalize(statement_); }
  SqliteStatement(const SqliteStatement&) = delete;
  SqliteStatement& operator=(const SqliteStatement&) = delete;

  void Bind(int parameter, uint64_t number) {
    connection_.Check(sqlite3_bind_int64(statement_, parameter + 1, static_cast<int64_t>(number)));
  }
  void Bind(int parameter, std::string_view bytes) {
    connection_.Check(sqlite3_bind_blob(statement_, parameter + 1, bytes.data(),
                                        static_cast<int>(bytes.size()), SQLITE_STATIC));
  }
  // Returns whether there is a row; the statement is reset after the last one.
  bool Step() {
    const int status = sqlite3_step(statement_);
    if (status == SQLITE_ROW) return true;
    connection_.Check(sqlite3_reset(statement_));
    return false;
  }
  uint64_t Number(int column) {
    return static_cast<uint64_t>(sqlite3_column_int64(statement_, column));
  }
  std::string_view Bytes(int column) {
    const void* const bytes = sqlite3_column_blob(statement_, column);
    return {static_cast<const char*>(bytes),
            static_cast<size_t>(sqlite3_column_bytes(statement_, column))};
  }

 private:
  SqliteConnection& connection_;
  sqlite3_stmt* statement_ = nullptr;
};

// The names of an index's fields.
std::string SqliteFields(const Schema& schema, size_t index) {
  std::string names;
  for (const size_t field : schema.indexes[index]) {
    absl::StrAppend(&names, names.empty() ? "" : ", ", schema.fields[field].name);
  }
  return names;
}

// Columns of a row: its fields, and the rest of the value.
std::string SqliteColumns(const Schema& schema) {
  std::string names;
  for (const NumberField& field : schema.fields) absl::StrAppend(&names, field.name, ", ");
  return names + "rest";
}

std::string SqliteAssignments(const Schema& schema) {
  std::string text;
  for (const NumberField& field : schema.fields) absl::StrAppend(&text, field.name, " = ?, ");
  return text + "rest = ?";
}

size_t RestOffset(const Schema& schema) {
  return schema.fields.back().offset + schema.fields.back().bytes;
}

// Binds the columns of a value from a parameter on.
void BindValue(const Schema& schema, std::string_view value, int parameter,
               SqliteStatement* statement) {
  for (const NumberField& field : schema.fields) {
    statement->Bind(parameter++, ReadNumber(value.data() + field.offset, field.bytes));
  }
  statement->Bind(parameter, value.substr(RestOffset(schema)));
}

// The value of a row whose columns begin at a column.
void ReadValue(const Schema& schema, int column, SqliteStatement* statement, std::string* value) {
  value->clear();
  for (const NumberField& field : schema.fields) {
    AppendNumber(statement->Number(column++), field.bytes, value);
  }
  value->append(statement->Bytes(column));
}

class SqliteStore : public Store {
 public:
  SqliteStore(Schema schema, const std::string& directory)
      : schema_(std::move(schema)), path_(directory + "/db"), connection_(path_) {
    std::string columns;
    for (const NumberField& field : schema_.fields) {
      absl::StrAppend(&columns, field.name, " INTEGER NOT NULL, ");
    }
    connection_.Execute(
        absl::StrCat("CREATE TABLE t (id INTEGER PRIMARY KEY, ", columns, "rest BLOB NOT NULL)"));
    std::string parameters = "?, ?";
    for (size_t i = 0; i < schema_.fields.size(); ++i) parameters += ", ?";
    insert_ = Prepare(absl::StrCat("INSERT INTO t VALUES (", parameters, ")"));
    update_ = Prepare(absl::StrCat("UPDATE t SET ", SqliteAssignments(schema_), " WHERE id = ?"));
    delete_ = Prepare("DELETE FROM t WHERE id = ?");
    begin_ = Prepare("BEGIN IMMEDIATE");
    commit_ = Prepare("COMMIT");
  }

  void Insert(absl::Span<const Row> rows) override {
    begin_->Step();
    for (const Row& row : rows) {
      insert_->Bind(0, row.key);
      BindValue(schema_, row.value, 1, insert_.get());
      insert_->Step();
    }
    commit_->Step();
  }

  void Update(absl::Span<const Row> rows) override {
    begin_->Step();
    for (const Row& row : rows) {
      BindValue(schema_, row.value, 0, update_.get());
      update_->Bind(static_cast<int>(schema_.fields.size()) + 1, row.key);
      update_->Step();
    }
    commit_->Step();
  }

  void Delete(absl::Span<const uint64_t> keys) override {
    begin_->Step();
    for (const uint64_t key : keys) {
      delete_->Bind(0, key);
      delete_->Step();
    }
    commit_->Step();
  }

  void CreateIndexes() override {
    for (size_t i = 0; i < schema_.indexes.size(); ++i) {
      connection_.Execute(
          absl::StrCat("CREATE INDEX index", i, " ON t (", SqliteFields(schema_, i), ")"));
    }
  }

  std::unique_ptr<StoreReader> NewReader() override;

  const Schema& schema() const { return schema_; }
  const std::string& path() const { return path_; }

 private:
  std::unique_ptr<SqliteStatement> Prepare(const std::string& sql) {
    return std::make_unique<SqliteStatement>(&connection_, sql);
  }

  const Schema schema_;
  const std::string path_;
  SqliteConnection connection_;
  std::unique_ptr<SqliteStatement> insert_, update_, delete_, begin_, commit_;
};

class SqliteReader : public StoreReader {
 public:
  explicit SqliteReader(const SqliteStore* store)
      : schema_(store->schema()),
        connection_(store->path()),
        get_(&connection_,
             absl::StrCat("SELECT ", SqliteColumns(schema_), " FROM t WHERE id = ?")) {
    for (size_t i = 0; i < schema_.indexes.size(); ++i) {
      ranges_.push_back(std::make_unique<SqliteStatement>(
          &connection_,
          absl::StrCat("SELECT id FROM t INDEXED BY index", i, " WHERE ", FirstName(i),
                       " >= ? ORDER BY ", SqliteFields(schema_, i), ", id LIMIT ?")));
    }
    if (!schema_.newest_first) return;
    newest_ = std::make_unique<SqliteStatement>(
        &connection_,
        absl::StrCat("SELECT id, ", SqliteColumns(schema_), " FROM t INDEXED BY index0 WHERE ",
                     FirstName(0), " = ? ORDER BY id DESC LIMIT ?"));
  }

  bool Get(uint64_t key, std::string* value) override {
    get_.Bind(0, key);
    if (!get_.Step()) return false;
    ReadValue(schema_, 0, &get_, value);
    while (get_.Step()) continue;
    return true;
  }

  void Range(size_t index, uint64_t from, size_t limit, std::vector<uint64_t>* keys) override {
    SqliteStatement& range = *ranges_[index];
    range.Bind(0, from);
    range.Bind(1, limit);
    keys->clear();
    while (range.Step()) keys->push_back(range.Number(0));
  }

  void Newest(uint64_t value, size_t limit, std::vector<Row>* rows) override {
    newest_->Bind(0, value);
    newest_->Bind(1, limit);
    rows->clear();
    while (newest_->Step()) {
      Row& row = rows->emplace_back();
      row.key = newest_->Number(0);
      ReadValue(schema_, 1, newest_.get(), &row.value);
    }
  }

 private:
  const char* FirstName(size_t index) const {
    return schema_.fields[schema_.indexes[index][0]].name;
  }

  const Schema& schema_;
  SqliteConnection connection_;
  SqliteStatement get_;
  std::vector<std::unique_ptr<SqliteStatement>> ranges_;
  std::unique_ptr<SqliteStatement> newest_;
};

std::unique_ptr<StoreReader> SqliteStore::NewReader() {
  return std::make_unique<SqliteReader>(this);
}

}  // namespace

std::unique_ptr<Store> OpenSqliteStore(const Schema& schema, const std::string& directory) {
  return std::make_unique<SqliteStore>(schema, directory);
}

}  // namespace cairn::bench
