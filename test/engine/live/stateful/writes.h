#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "rocksdb/utilities/transaction.h"
#include "rocksdb/write_batch.h"
#include "test/engine/live/stateful/interpreter.h"

// The commands that write rows.

namespace cairn::stateful {

inline void Interpreter::Require(const rocksdb::Status& status, const std::string& doing) {
  if (!status.ok()) throw Failure(absl::StrCat(doing, ": ", status.ToString()));
}
inline void Interpreter::Require(const absl::Status& status, const std::string& doing) {
  if (!status.ok()) throw Failure(absl::StrCat(doing, ": ", status.ToString()));
}

inline void Interpreter::AddRowOp(const Command& command) {
  RowOp op = {command.op, command.args[0], RowKey(command.args[1]), ""};
  if (!database_.has(op.family)) return;
  if (database_.transactions() != nullptr) {  // which does not support all calls
    if (op.op == kPutEntity) op.op = kPut;
    if (op.op == kDeleteRange) return;
  }
  if (op.op == kDeleteRange && database_.optimistic() != nullptr) return;
  switch (command.op) {
    case kSingle: {
      // Not of a city that filters use: they leave deletions, which RocksDB does not support there.
      std::vector<std::string>& rows = singles_[op.family];
      if (command.args[1] == 1 && !rows.empty()) {
        op.key = rows.front();
        rows.erase(rows.begin());
        if (database_.transactions() != nullptr) op.op = kDelete;  // which does not support it
        break;
      }
      op.op = kPut;
      op.key = absl::StrCat("y", ++single_rows_);
      op.text = RowValue(command.args[2] % 5 == 3 ? command.args[2] + 1 : command.args[2]);
      rows.push_back(op.key);
      break;
    }
    case kDeleteRange:
      op.text = RowKey(command.args[2]);
      break;
    case kMergeOperand:
      op.key = RowKey(command.args[1] % kPlainKeys);
      op.text = Operand(command.args[2]);
      break;
    case kPutEntity:
      op.key = RowKey(kPlainKeys + command.args[1] % (kRowKeys - kPlainKeys));
      [[fallthrough]];
    default:
      op.text = RowValue(command.args[2]);
  }
  group_.push_back(std::move(op));
}

inline bool Interpreter::Fill(rocksdb::WriteBatch* batch, const std::vector<RowOp>& ops) {
  for (const RowOp& op : ops) {
    rocksdb::ColumnFamilyHandle* const family = database_.family(op.family);
    rocksdb::Status s;
    if (op.op == kPut) s = batch->Put(family, op.key, op.text);
    if (op.op == kDelete) s = batch->Delete(family, op.key);
    if (op.op == kDeleteRange) s = batch->DeleteRange(family, op.key, op.text);
    if (op.op == kMergeOperand) s = batch->Merge(family, op.key, op.text);
    if (op.op == kSingle) s = batch->SingleDelete(family, op.key);
    if (op.op == kPutEntity) {
      s = batch->PutEntity(family, op.key,
                           {{rocksdb::kDefaultWideColumnName, op.text}, {"other", "x"}});
    }
    if (!s.ok()) return false;
  }
  return true;
}

inline void Interpreter::Apply(const std::vector<RowOp>& ops) {
  for (const RowOp& op : ops) {
    Rows& rows = model_[op.family];
    if (op.op == kDelete || op.op == kSingle) {
      rows.erase(op.key);
    } else if (op.op == kDeleteRange) {
      if (database_.order(op.family) == KeyOrder::kBytewise) {
        if (op.key < op.text) rows.erase(rows.lower_bound(op.key), rows.lower_bound(op.text));
      } else if (op.text < op.key) {
        rows.erase(rows.upper_bound(op.text), rows.upper_bound(op.key));
      }
    } else if (op.op == kMergeOperand) {
      const auto row = rows.find(op.key);
      rows[op.key] =
          Merged(row == rows.end() ? nullptr : &row->second, op.text, database_.world()[kOperator]);
    } else {
      rows[op.key] = op.text;
    }
  }
}

// Whether the writes would make a key of the unique index occur twice.
inline bool Interpreter::MakesDuplicate(const std::vector<RowOp>& ops) {
  const IndexKind& kind = IndexKinds()[kMailIndex];
  const Rows before = ScanRows(kind.family);
  model_[kind.family] = before;
  std::vector<RowOp> of_family = ops;
  std::erase_if(of_family, [&](const RowOp& op) { return op.family != kind.family; });
  Apply(of_family);
  const Rows after = std::exchange(model_[kind.family], before);
  for (const RowOp& op : ops) {
    const auto row = after.find(op.key);
    if (op.family != kind.family || row == after.end()) continue;
    for (const Key& key : kind.keys(row->first, row->second, 0)) {
      for (const auto& [other, value] : after) {
        if (other == op.key) continue;
        for (const Key& its_key : kind.keys(other, value, 0)) {
          if (key == its_key) return true;
        }
      }
    }
  }
  return false;
}

inline rocksdb::Status Interpreter::RunTransaction(How how, const std::vector<RowOp>& ops) {
  std::unique_ptr<rocksdb::Transaction> transaction;
  if (rocksdb::TransactionDB* const db = database_.transactions()) {
    transaction.reset(db->BeginTransaction({}));
  } else {
    transaction.reset(database_.optimistic()->BeginTransaction({}));
  }
  for (const RowOp& op : ops) {
    rocksdb::ColumnFamilyHandle* const family = database_.family(op.family);
    rocksdb::Status s;
    if (op.op == kDelete) {
      s = transaction->Delete(family, op.key);
    } else if (op.op == kSingle) {
      s = transaction->SingleDelete(family, op.key);
    } else if (op.op == kMergeOperand) {
      s = transaction->Merge(family, op.key, op.text);
    } else if (op.op != kDeleteRange) {
      s = transaction->Put(family, op.key, op.text);
    }
    if (!s.ok()) return s;
  }
  ++transactions_;
  AskIndexesAt(transactions_, nullptr, transaction.get());
  if (database_.snapshot() != nullptr) {
    AskIndexesAt(transactions_, database_.snapshot(), transaction.get());
  }
  if (how == kRolledBack) return transaction->Rollback();
  if (how != kCommitted && database_.transactions() != nullptr) {
    rocksdb::Status s = transaction->SetName(absl::StrCat("t", ++tables_));
    if (s.ok()) s = transaction->Prepare();
    if (!s.ok()) return s;
    if (how == kLeftPrepared) {
      database_.prepared().push_back(transaction.release());
      return rocksdb::Status::OK();
    }
  }
  return transaction->Commit();
}

// Commits or rolls back the prepared transactions.
inline void Interpreter::FinishPrepared(bool commit) {
  for (rocksdb::Transaction* transaction : database_.prepared()) {
    Require(commit ? transaction->Commit() : transaction->Rollback(), "finishing a transaction");
    delete transaction;
    if (commit) Forget();
  }
  database_.prepared().clear();
  had_duplicates_ |= commit;
}

// A write for which the log has no space; then there is space, and writing continues.
inline rocksdb::Status Interpreter::FailWrite(How how, rocksdb::WriteBatch* batch) {
  rocksdb::WriteOptions options;
  options.sync = true;
  // RocksDB 7.8 ends the process if a write fails with memtables that are empty, or have ranges.
  for (size_t family = 0; family < kFamilies; ++family) {
    if (database_.has(family)) {
      Require(database_->Flush({}, database_.family(family)), "flushing");
      Require(database_.base()->Put(options, database_.family(family), "zz",
                                    RowValue(100 + resumed_++)),
              "writing");
    }
  }
  (how == kFailingSync ? database_.disk().sync_fails : database_.disk().append_fails) = true;
  const rocksdb::Status failed = database_->Write(options, batch);
  database_.disk().sync_fails = database_.disk().append_fails = false;
  ++events_[failed.ok() ? "writes that were to fail" : "failed writes"];
  Forget();
  if (how == kFailingAppend) {
    // RocksDB 7.8 ends the process itself, later on, if the log's file has had an error.
    database_.Stop(0, /*loses_power=*/false, 0);
    if (Open()) ReconcileIndexes(/*may_be_older=*/true);
    return failed;
  }
  // RocksDB resumes automatically. A concurrent DB::Resume may wait forever in RocksDB 7.8.
  rocksdb::Status resumed;
  for (int i = 0; i < 200; ++i) {
    resumed = database_->Put(options, database_.family(0), "zz", RowValue(100 + resumed_));
    if (resumed.ok()) resumed = database_->Flush({}, database_.family(0));
    if (resumed.ok()) break;
    absl::SleepFor(absl::Milliseconds(2));
  }
  failed_write_ = true;
  ++resumed_;
  ++events_[resumed.ok() ? "writes after a failed one" : "databases that a failed write ended"];
  if (!resumed.ok()) {
    database_.Close();
    if (Open()) ReconcileIndexes(/*may_be_older=*/true);
  }
  return failed;
}

// Writes 11,000 rows and deletes them. Indexes then renumber the rows of their deltas.
inline void Interpreter::Churn(size_t family, bool by_range) {
  if (!database_.has(family)) return;
  constexpr uint32_t kRows = 11'000;
  rocksdb::ColumnFamilyHandle* const handle = database_.family(family);
  by_range &= database_.transactions() == nullptr && database_.optimistic() == nullptr;
  rocksdb::WriteBatch rows, deletions;
  rocksdb::Status s;
  for (uint32_t i = 0; i < kRows && s.ok(); ++i) {
    const std::string key = absl::StrCat("q", i);
    s = rows.Put(handle, key, absl::StrCat("q", i % 9, "|1|q", i, "|t1"));
    if (s.ok() && !by_range) s = deletions.Delete(handle, key);
  }
  const bool is_reverse = database_.order(family) == KeyOrder::kReverseBytewise;
  if (s.ok() && by_range) {
    s = deletions.DeleteRange(handle, is_reverse ? "r" : "q", is_reverse ? "q" : "r");
  }
  Require(s, "filling a batch");
  s = database_->Write({}, &rows);
  // A unique index that is not ready refuses rows.
  if (s.IsTryAgain() && created_.count(kMailIndex) > 0) return;
  Require(s, "writing many rows");
  for (const size_t index : created_) {  // so that they have the rows before these are deleted
    database_->Pin(IndexKinds()[index].name).status().IgnoreError();
  }
  Require(database_->Write({}, &deletions), "deleting many rows");
  if (DropsRows(database_.world())) Forget();
}

// Writes the collected rows.
inline void Interpreter::WriteGroup() {
  std::vector<RowOp> ops = std::exchange(group_, {});
  How how = std::exchange(how_, kPlainly);
  group_left_ = 0;
  if (ops.empty()) return;
  const bool is_transaction = how >= kCommitted;
  if (is_transaction && database_.transactions() == nullptr && database_.optimistic() == nullptr) {
    how = kPlainly;
  } else if ((how == kPreparedAndCommitted || how == kLeftPrepared) &&
             database_.transactions() == nullptr) {
    how = kCommitted;
  }
  if (how == kFailingAppend && database_.world()[kWritePath] != kPlainPath) how = kFailingSync;
  if (how >= kCommitted) {
    std::vector<RowOp> made = ops;
    std::erase_if(made, [](const RowOp& op) { return op.op == kDeleteRange; });
    for (RowOp& op : made) op.op = op.op == kPutEntity ? kPut : op.op;
    const bool duplicates = MakesDuplicate(made);
    const rocksdb::Status s = RunTransaction(how, made);
    // A row may be locked by a prepared transaction.
    if (!s.ok() && !s.IsTimedOut() && !s.IsBusy()) Require(s, "a transaction");
    if (s.ok() && how != kRolledBack && how != kLeftPrepared) {
      had_duplicates_ |= duplicates;
      Apply(made);
    }
    return;
  }
  rocksdb::WriteBatch batch;
  if (how == kFailingSync || how == kFailingAppend) {
    std::erase_if(ops, [](const RowOp& op) { return op.key.starts_with("y"); });
    for (RowOp& op : ops) op.op = op.op == kDeleteRange ? kDelete : op.op;
    if (ops.empty()) return;
  }
  if (!Fill(&batch, ops)) throw Failure("a batch cannot be filled");
  const bool has_unique = created_.count(kMailIndex) > 0 && lost_family_.count(kMailIndex) == 0;
  const bool duplicates = MakesDuplicate(ops);
  if (how == kFailingSync || how == kFailingAppend) {
    FailWrite(how, &batch).PermitUncheckedError();
    had_duplicates_ |= duplicates;
    return;
  }
  bool was_ready = true;
  bool merges = false, inverted = false;
  for (const RowOp& op : ops) {
    inverted |= op.op == kDeleteRange && IsBefore(database_.order(op.family), op.text, op.key);
    merges |= op.op == kMergeOperand && op.family == IndexKinds()[kMailIndex].family;
  }
  if (has_unique) {
    const auto info = Info(kMailIndex);
    was_ready = info.has_value() && info->state == IndexState::kReady;
  }
  rocksdb::WriteOptions options;
  options.sync = how == kSynced;
  options.disableWAL = how == kUnlogged;
  rocksdb::DB* const db = how == kPastObject ? database_.base() : database_.get();
  rocksdb::Status s;
  if (ops.size() == 1 && how != kPastObject) {
    const RowOp& op = ops[0];
    rocksdb::ColumnFamilyHandle* const family = database_.family(op.family);
    if (op.op == kPut) s = db->Put(options, family, op.key, op.text);
    if (op.op == kDelete) s = db->Delete(options, family, op.key);
    if (op.op == kDeleteRange) s = db->Write(options, &batch);
    if (op.op == kMergeOperand) s = db->Merge(options, family, op.key, op.text);
    if (op.op == kSingle) s = db->SingleDelete(options, family, op.key);
    if (op.op == kPutEntity) {
      s = db->PutEntity(options, family, op.key,
                        {{rocksdb::kDefaultWideColumnName, op.text}, {"other", "x"}});
    }
  } else {
    s = db->Write(options, &batch);
  }
  if (s.ok()) {
    const bool had_duplicates = std::exchange(had_duplicates_, had_duplicates_ || duplicates);
    if (duplicates && has_unique && how != kPastObject && !had_duplicates &&
        (was_ready || IsOn("unique_while_building"))) {
      throw Failure(absl::StrCat("a write was not refused that gives a key of the unique index to ",
                                 "two rows, while the index was ",
                                 was_ready ? "ready" : "not ready"));
    }
    Apply(ops);
    return;
  }
  ++events_["refused writes"];
  if (inverted) {
    // RocksDB has the write in its log, and accepts no other write until the database is reopened.
    database_.Close();
    Forget();
    if (Open()) ReconcileIndexes(/*may_be_older=*/true);
    return;
  }
  if (s.IsTimedOut() && !database_.prepared().empty()) return;
  // Indexes cannot be marked either.
  if (how == kUnlogged && database_.disk().is_full) return Forget();
  // After a failed write, the index becomes stale once the follower reaches the gap in the log.
  const bool may_become_stale = failed_write_ && s.IsTryAgain();
  const bool may_refuse =
      created_.count(kMailIndex) > 0 &&
      (duplicates || merges || !was_ready || had_duplicates_ || may_become_stale) &&
      (s.IsInvalidArgument() || s.IsTryAgain() || (merges && s.IsNotSupported()));
  if (!may_refuse) throw Failure(absl::StrCat("a valid write was refused: ", s.ToString()));
}

}  // namespace cairn::stateful
