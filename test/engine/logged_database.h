#pragma once

#include <boost/test/unit_test.hpp>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/log/row_changes.h"
#include "engine/log/settled_changes.h"
#include "engine/log/update_log.h"
#include "engine/rows/row_cursor.h"
#include "engine/util/rocksdb_compat.h"
#include "index/machine/status_macros.h"
#include "rocksdb/db.h"
#include "rocksdb/merge_operator.h"
#include "rocksdb/utilities/transaction_db.h"
#include "test/require_ok.h"
#include "test/temporary_directory.h"

namespace cairn {

// Appends operands to the value, separated by commas; keeps the last 40 bytes.
class AppendOperator final : public rocksdb::AssociativeMergeOperator {
 public:
  bool Merge(const rocksdb::Slice& /*key*/, const rocksdb::Slice* value,
             const rocksdb::Slice& operand, std::string* merged,
             rocksdb::Logger* /*logger*/) const override {
    *merged = value == nullptr ? std::string() : value->ToString() + ",";
    merged->append(operand.data(), operand.size());
    if (merged->size() > 40) merged->erase(0, merged->size() - 40);
    return true;
  }
  const char* Name() const override { return "Append"; }
};

// Rows by primary key, as text: a value, or columns in brackets.
using TextRows = std::map<std::string, std::string>;

inline std::string RowText(const RowView& row) {
  if (row.columns.empty()) return std::string(row.value);
  std::string text = "[";
  for (const ColumnView& column : row.columns) {
    text += std::string(column.name) + ":" + std::string(column.value) + ";";
  }
  return text + "]";
}

// A database with the column families "default", "a" and "b", whose log is kept, and its rows at
// several points of time.
class LoggedDatabase {
 public:
  enum class Kind { kPlain, kTransactions };

  // The rows of all column families under a snapshot.
  struct Point {
    SequenceNumber sequence = 0;
    std::vector<TextRows> rows;
  };

  static rocksdb::Options DefaultOptions() {
    rocksdb::Options options;
    options.create_if_missing = true;
    options.create_missing_column_families = true;
    options.merge_operator = std::make_shared<AppendOperator>();
    options.WAL_ttl_seconds = 3600;
    return options;
  }

  explicit LoggedDatabase(rocksdb::Options options = DefaultOptions(), Kind kind = Kind::kPlain)
      : options_(std::move(options)), kind_(kind) {
    Open();
  }
  ~LoggedDatabase() { Close(); }
  LoggedDatabase(const LoggedDatabase&) = delete;
  LoggedDatabase& operator=(const LoggedDatabase&) = delete;

  void Open() {
    std::vector<rocksdb::ColumnFamilyDescriptor> descriptors;
    for (const char* name : {"default", "a", "b"}) descriptors.emplace_back(name, options_);
    rocksdb::Status s;
    if (kind_ == Kind::kPlain) {
      s = rocksdb::DB::Open(options_, path(), descriptors, &families_, Into(&db_));
    } else {
      rocksdb::TransactionDB* db = nullptr;
      s = rocksdb::TransactionDB::Open(options_, rocksdb::TransactionDBOptions(), path(),
                                       descriptors, &families_, &db);
      db_.reset(db);
    }
    RequireOk(s);
  }
  void Close() {
    ReleaseSnapshot();
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
  rocksdb::Options& options() { return options_; }  // for the next Reopen

  rocksdb::DB* db() { return db_.get(); }
  rocksdb::TransactionDB* transactions() { return static_cast<rocksdb::TransactionDB*>(db_.get()); }
  const std::vector<rocksdb::ColumnFamilyHandle*>& families() const { return families_; }
  std::string path() const { return directory_ / "db"; }
  std::string Beside(const std::string& name) const { return directory_ / name; }

  void Put(const std::string& key, const std::string& value, size_t family = 0) {
    RequireOk(db_->Put({}, families_[family], key, value));
  }
  // Flushes all families. Waits for background work, which removes log files after a flush.
  void Flush() {
    for (rocksdb::ColumnFamilyHandle* family : families_) {
      RequireOk(db_->Flush({}, family));
    }
    RequireOk(db_->PauseBackgroundWork());
    RequireOk(db_->ContinueBackgroundWork());
  }
  SequenceNumber sequence() { return db_->GetLatestSequenceNumber(); }

  // The current rows. Holds a snapshot until the next call, for lookups of rows.
  Point Now() {
    ReleaseSnapshot();
    snapshot_ = db_->GetSnapshot();
    Point point;
    point.sequence = snapshot_->GetSequenceNumber();
    for (rocksdb::ColumnFamilyHandle* family : families_) {
      TextRows& rows = point.rows.emplace_back();
      Walk(family, [&](const RowView& row) { rows[std::string(row.primary_key)] = RowText(row); });
    }
    return point;
  }

  // Applies an UpdateLog to `rows` slice by slice, either settled or change by change.
  // `until` must be the last Now().
  absl::Status Apply(UpdateLog* log, size_t slice_bytes, bool settle, std::vector<TextRows>* rows) {
    std::vector<RowChanges> changes(families_.size());
    SettledChanges settled;
    while (!log->done()) {
      const SequenceNumber before = log->sequence();
      for (RowChanges& c : changes) c.Clear();
      RETURN_IF_ERROR(log->Read(slice_bytes, absl::MakeSpan(changes)));
      BOOST_REQUIRE(log->sequence() >= before);
      for (size_t i = 0; i < changes.size(); ++i) {
        if (!settle) {
          for (size_t c = 0; c < changes[i].size(); ++c) ApplyOne(changes[i][c], i, &(*rows)[i]);
          continue;
        }
        settled.Settle(changes[i]);
        for (const SettledChanges::Range& range : settled.deleted_ranges()) {
          ApplyOne({RowChangeKind::kDeleteRange, range.lower, range.upper}, i, &(*rows)[i]);
        }
        for (const RowChange& change : settled.rows()) ApplyOne(change, i, &(*rows)[i]);
      }
    }
    return absl::OkStatus();
  }

  // Reads the log from one point to another, the last Now(), and requires that the result be its
  // rows. Returns the position to continue from.
  LogPosition Follow(const Point& from, const Point& to, LogPosition position = {},
                     size_t slice_bytes = 1 << 20) {
    for (bool settle : {true, false}) {
      auto log = RequireOk(UpdateLog::Open(db(), families_, from.sequence, to.sequence, position));
      std::vector<TextRows> rows = from.rows;
      RequireOk(Apply(log.get(), slice_bytes, settle, &rows));
      BOOST_REQUIRE_EQUAL(log->sequence(), to.sequence);
      for (size_t i = 0; i < rows.size(); ++i) {
        const bool same = rows[i] == to.rows[i];
        BOOST_REQUIRE_MESSAGE(same, "rows of " << families_[i]->GetName() << " differ from "
                                               << from.sequence << " to " << to.sequence);
      }
      if (!settle) return log->position();
    }
    return {};
  }

  // The error of reading everything between two sequence numbers, or OK.
  absl::Status Error(SequenceNumber after, SequenceNumber until, LogPosition position = {}) {
    ASSIGN_OR_RETURN(auto log, UpdateLog::Open(db(), families_, after, until, position));
    std::vector<RowChanges> changes(families_.size());
    return log->Read(SIZE_MAX, absl::MakeSpan(changes));
  }

 private:
  void ReleaseSnapshot() {
    if (snapshot_ != nullptr) db_->ReleaseSnapshot(snapshot_);
    snapshot_ = nullptr;
  }

  template <typename Visitor>
  void Walk(rocksdb::ColumnFamilyHandle* family, const Visitor& visitor) {
    rocksdb::ReadOptions options;
    options.snapshot = snapshot_;
    const std::unique_ptr<rocksdb::Iterator> iterator(db_->NewIterator(options, family));
    std::vector<ColumnView> scratch;
    RowView row;
    for (iterator->SeekToFirst(); iterator->Valid(); iterator->Next()) {
      SetRowAt(*iterator, RowForm::kStored, &scratch, &row);
      visitor(row);
    }
    RequireOk(iterator->status());
  }

  void ApplyOne(const RowChange& change, size_t family, TextRows* rows) {
    const std::string key(change.key);
    std::vector<ColumnView> scratch;
    RowView row;
    switch (change.kind) {
      case RowChangeKind::kPut:
      case RowChangeKind::kPutEntity:
        SetRow(change, &scratch, &row);
        (*rows)[key] = RowText(row);
        break;
      case RowChangeKind::kDelete:
        rows->erase(key);
        break;
      case RowChangeKind::kLookUp: {
        rocksdb::ReadOptions options;
        options.snapshot = snapshot_;
        const std::unique_ptr<rocksdb::Iterator> iterator(
            db_->NewIterator(options, families_[family]));
        iterator->Seek(key);
        if (iterator->Valid() && iterator->key() == key) {
          SetRowAt(*iterator, RowForm::kStored, &scratch, &row);
          (*rows)[key] = RowText(row);
        } else {
          rows->erase(key);
        }
        break;
      }
      case RowChangeKind::kDeleteRange:
        rows->erase(rows->lower_bound(key), rows->lower_bound(std::string(change.value)));
        break;
    }
  }

  TemporaryDirectory directory_;
  rocksdb::Options options_;
  const Kind kind_;
  std::unique_ptr<rocksdb::DB> db_;
  std::vector<rocksdb::ColumnFamilyHandle*> families_;
  const rocksdb::Snapshot* snapshot_ = nullptr;
};

}  // namespace cairn
