#pragma once

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "rocksdb/sst_file_writer.h"
#include "rocksdb/utilities/ldb_cmd.h"
#include "rocksdb/wal_filter.h"
#include "test/engine/live/stateful/interpreter.h"

// The commands that close and open the database, or change its files or families.

namespace cairn::stateful {

// Drops the log's records with a row of city c1, or replaces them by rows of city c2.
class CityWalFilter final : public rocksdb::WalFilter {
 public:
  explicit CityWalFilter(uint32_t how) : how_(how) {}
  const char* Name() const override { return "CityWalFilter"; }
  WalProcessingOption LogRecordFound(unsigned long long, const std::string&,  // NOLINT
                                     const rocksdb::WriteBatch& batch,
                                     rocksdb::WriteBatch* new_batch, bool* changed) override {
    if (batch.Data().find("c1|") == std::string::npos) {
      return WalProcessingOption::kContinueProcessing;
    }
    if (how_ == 0) return WalProcessingOption::kIgnoreCurrentRecord;
    if (how_ == 1) return WalProcessingOption::kStopReplay;
    // With at most as many rows as the batch has.
    if (!new_batch->Put(RowKey(0), RowValue(2)).ok()) return WalProcessingOption::kCorruptedRecord;
    *changed = true;
    return WalProcessingOption::kContinueProcessing;
  }

 private:
  const uint32_t how_;
};

// Returns false if the database is lost, as RocksDB itself reports.
inline bool Interpreter::Open(const Database::Special& special) {
  if (database_.world()[kFilter] == kChangingFilter) values_changed_ = true;
  deleted_file_ = false;
  const absl::Status opened = database_.Open(special);
  // Writes past the log may be lost. Without paranoid checks, RocksDB reads such a log in another
  // way at each opening.
  if (failed_write_) Forget();
  failed_write_ &= database_.world()[kParanoid] != 0;
  if (opened.ok()) return true;
  if (absl::IsDataLoss(opened)) {
    ++events_["databases lost"];
    return false;
  }
  throw Failure(absl::StrCat("opening: ", opened.ToString()));
}

inline void Interpreter::Reopen(const Command& command) {
  const uint32_t field = command.args[0];
  database_.Close();
  const World before = database_.world();
  World& world = database_.world();
  if (field < kOrder) {
    world[field] = command.args[1] % static_cast<uint32_t>(FieldInfos()[field].values.size());
    if (!Allows(world)) world = before;
    // A TransactionDB must finish prepared transactions.
    if (before[kWrapper] == kAttachTransactions) world[kWrapper] = before[kWrapper];
    // FIFO compaction has one level.
    if ((before[kStyle] == kFifo) != (world[kStyle] == kFifo)) world[kStyle] = before[kStyle];
    MakePossible(&world);
    if (world[kOperator] != before[kOperator] || world[kStyle] != before[kStyle]) Forget();
  }
  if (DropsRows(world)) Forget();
  if (Open()) ReconcileIndexes(/*may_be_older=*/false);
}

// The log of a killed process, which a filter then changes during recovery. A filter in a session
// without indexes is not tested: no index can notice that, since the log keeps the original writes.
inline void Interpreter::FilterLog(uint32_t how) {
  // RocksDB 7.8 ends the process if a filter replaces records of a log that has prepared
  // transactions (an assertion in MemTableInserter).
  if (database_.world()[kWrapper] == kAttachTransactions) return;
  database_.Stop(0, /*loses_power=*/false, 0);
  Forget();
  // RocksDB calls Name() for as long as the database is open.
  static CityWalFilter filters[] = {CityWalFilter(0), CityWalFilter(1), CityWalFilter(2)};
  Database::Special special;
  special.wal_filter = &filters[how];
  if (Open(special)) ReconcileIndexes(/*may_be_older=*/true);
}

// Uses the database without its indexes.
inline void Interpreter::PlainSession(const Command& command) {
  database_.Close();
  Forget();
  const absl::Status done = database_.PlainSession({}, [&](rocksdb::DB* db, const auto& handles) {
    rocksdb::WriteOptions options;
    options.disableWAL = command.args[0] == 3;
    for (uint32_t i = 0; i < 2; ++i) {
      rocksdb::ColumnFamilyHandle* const handle = handles[i % handles.size()];
      Require(db->Put(options, handle, RowKey(command.args[1]), RowValue(command.args[2] + i)),
              "writing without indexes");
    }
    if (command.args[0] >= 1) Require(db->Flush({}, handles), "flushing");
    if (command.args[0] == 2) {
      Require(db->CompactRange({}, handles[0], nullptr, nullptr), "compacting");
    }
  });
  if (absl::IsDataLoss(done)) return;
  Require(done, "a session without indexes");
  if (Open()) ReconcileIndexes(/*may_be_older=*/false);
}

inline void Interpreter::Copy(uint32_t slot) {
  const std::string copy = absl::StrCat("/copy", slot);
  database_.Close();
  RemoveAll(database_.env(), copy);
  database_.env()->CreateDirIfMissing(copy).PermitUncheckedError();
  CopyAll(database_.env(), kPath, copy + kPath);
  CopyAll(database_.env(), kIndexPath, copy + kIndexPath);
  database_.disk().files().SyncAll();
  if (Open()) ReconcileIndexes(/*may_be_older=*/false);
}
// Restores a copy: everything, only the database, or only the indexes.
inline void Interpreter::Restore(uint32_t slot, uint32_t what) {
  const std::string copy = absl::StrCat("/copy", slot);
  if (!database_.env()->FileExists(copy).ok()) return;
  database_.Close();
  Forget();
  for (const char* path : {kPath, kIndexPath}) {
    if (what == (path == kPath ? 2u : 1u)) continue;
    RemoveAll(database_.env(), path);
    CopyAll(database_.env(), copy + path, path);
  }
  database_.disk().files().SyncAll();
  lost_family_.clear();
  if (Open()) ReconcileIndexes(/*may_be_older=*/true);
}

// Loses a table file, and makes the database open without it: by best-effort recovery, with or
// without its indexes, or by a tool. From 4 on, the process is killed before that, so the indexes
// do not know the newest files.
inline void Interpreter::LoseFile(uint32_t file, uint32_t how) {
  std::vector<rocksdb::LiveFileMetaData> files;
  database_.base()->GetLiveFilesMetaData(&files);
  if (files.empty()) return;
  const rocksdb::LiveFileMetaData& lost = files[file % files.size()];
  const bool is_killed = how >= 4;
  if (is_killed) {
    how -= 3;
    database_.Stop(0, /*loses_power=*/false, 0);
  } else {
    database_.Close();
  }
  Forget();
  if (how < 2) {
    database_.env()->DeleteFile(kPath + lost.name).PermitUncheckedError();
    Database::Special special;
    special.best_efforts_recovery = true;
    absl::Status opened;
    if (how == 0) {
      opened = database_.Open(special);
    } else {
      opened = database_.PlainSession(special, [](auto*, const auto&) {});
      if (opened.ok()) opened = database_.Open({});
    }
    if (absl::IsDataLoss(opened) || absl::IsNotFound(opened)) return;
    Require(opened, "opening by best efforts");
    return ReconcileIndexes(/*may_be_older=*/true);
  }
  const std::string number = lost.name.substr(1, lost.name.find('.') - 1);
  const rocksdb::Options options = database_.Options();
  const std::unique_ptr<rocksdb::LDBCommand> tool(rocksdb::LDBCommand::InitFromCmdLineArgs(
      {absl::StrCat("--db=", kPath), "unsafe_remove_sst_file", std::to_string(std::stoi(number))},
      options, rocksdb::LDBOptions(), nullptr));
  tool->Run();
  ++events_[tool->GetExecuteState().IsSucceed() ? "tables removed" : "tables that ldb kept"];
  if (Open()) ReconcileIndexes(/*may_be_older=*/is_killed);
}

// Removes, cuts off or damages a file of the log while the database is closed. Attached indexes may
// not notice that (docs/internals/continuity.md).
inline void Interpreter::LoseLog(uint32_t file, uint32_t how) {
  if (database_.world()[kWrapper] != kOpen) return;
  ReopenAfterFailedWrite();
  if (!database_.is_open()) return;
  // Begins another file, while rows of other families are only in the older ones.
  const size_t flushed = database_.has(file % kFamilies) ? file % kFamilies : 0;
  Require(database_->Flush({}, database_.family(flushed)), "flushing");
  Require(database_.base()->Put({}, database_.family(flushed), "zz", RowValue(97)), "writing");
  database_.disk().is_full = false;
  database_.Close();
  Forget();
  std::vector<std::string> names, logs;
  database_.env()->GetChildren(kPath, &names).PermitUncheckedError();
  for (const std::string& name : names) {
    if (name.ends_with(".log")) logs.push_back(absl::StrCat(kPath, "/", name));
  }
  std::sort(logs.begin(), logs.end());
  if (!logs.empty()) {
    const std::string& path = logs[file % logs.size()];
    std::string bytes;
    Require(rocksdb::ReadFileToString(database_.env(), path, &bytes), "reading the log");
    database_.env()->DeleteFile(path).PermitUncheckedError();
    if (how == 1) bytes.resize(bytes.size() / 2);
    if (how == 2 && !bytes.empty()) bytes[bytes.size() / 2] ^= 1;
    if (how > 0) {
      Require(rocksdb::WriteStringToFile(database_.env(), bytes, path), "damaging the log");
    }
    database_.disk().files().SyncAll();
    ++events_["damaged logs"];
  }
  if (Open()) ReconcileIndexes(/*may_be_older=*/true);
}

// Repairs the database with RocksDB, which makes tables of its log, and a new MANIFEST of the files
// that it finds.
inline void Interpreter::Repair() {
  // A RocksDB with assertions aborts while it repairs a log with prepared transactions.
  if (database_.world()[kWrapper] == kAttachTransactions) return;
  database_.Close();
  Forget();
  ++events_[database_.Repair().ok() ? "databases repaired" : "databases that were not repaired"];
  if (Open()) ReconcileIndexes(/*may_be_older=*/true);
}

inline std::string Interpreter::WriteTable(size_t family, const std::string& key,
                                           const std::string& value, size_t rows) {
  const std::string path = absl::StrCat("/table", ++tables_, ".sst");
  std::vector<std::string> keys;
  for (size_t i = 0; i < rows; ++i) keys.push_back(i == 0 ? key : absl::StrCat(key, "+", i));
  if (database_.order(family) == KeyOrder::kReverseBytewise) std::reverse(keys.begin(), keys.end());
  rocksdb::SstFileWriter writer(rocksdb::EnvOptions(), database_.Options(family));
  Require(writer.Open(path), "writing a table");
  for (const std::string& of_row : keys) Require(writer.Put(of_row, value), "writing a table");
  Require(writer.Finish(), "writing a table");
  return path;
}

// RocksDB 7.8 ends the process if files are ingested after a write has failed.
inline void Interpreter::ReopenAfterFailedWrite() {
  if (!failed_write_) return;
  database_.Close();
  if (Open()) ReconcileIndexes(/*may_be_older=*/false);
}

// Through the object, past it, or through it over rows that a snapshot sees.
inline void Interpreter::Ingest(const Command& command) {
  const size_t family = command.args[0];
  if (!database_.has(family)) return;
  ReopenAfterFailedWrite();
  const std::string key = RowKey(command.args[1]), value = RowValue(command.args[2]);
  const bool past = command.args[3] == 1;
  if (past && database_.world()[kWrapper] != kOpen) return;  // documented as undetected
  if (command.args[3] == 2) database_.HoldSnapshot();
  const std::string table = WriteTable(family, key, value, 1);
  rocksdb::DB* const db = past ? database_.base() : database_.get();
  const rocksdb::Status s = db->IngestExternalFile(database_.family(family), {table}, {});
  if (!s.ok() && database_.disk().is_full) return Forget();
  Require(s, "ingesting");
  model_[family][key] = value;
}

inline void Interpreter::FailingIngest(size_t family) {
  if (!database_.has(family)) return;
  ReopenAfterFailedWrite();
  std::vector<std::optional<IndexInfo>> before;
  for (const size_t index : created_) {
    if (Refuses(index) || lost_family_.count(index) > 0 || !AwaitReady(index).ok()) {
      before.emplace_back();
    } else {
      before.push_back(Info(index));
    }
  }
  const rocksdb::Status failed =
      database_->IngestExternalFile(database_.family(family), {"/no such table"}, {});
  if (failed.ok()) throw Failure("a table that is not there was ingested");
  size_t i = 0;
  for (const size_t index : created_) {
    if (before[i].has_value() && AwaitReady(index).ok() &&
        Info(index)->builds > before[i]->builds) {
      throw Failure(absl::StrCat(IndexKinds()[index].name,
                                 " was rebuilt, as an ingestion failed: nothing had changed"));
    }
    ++i;
  }
}

inline void Interpreter::DeleteFile(uint32_t number) {
  std::vector<rocksdb::LiveFileMetaData> files;
  database_.base()->GetLiveFilesMetaData(&files);
  if (files.empty()) return;
  const rocksdb::Status s = database_->DeleteFile(files[number % files.size()].name);
  deleted_file_ = true;
  ++events_[s.ok() ? "files deleted" : "files that were not deleted"];
  Forget();
}

// Creates column family b: through the object, past it, or from a table file of another database.
inline void Interpreter::MakeFamily(uint32_t how) {
  if (database_.has(2)) return;
  ReopenAfterFailedWrite();
  if (how == 2 && database_.transactions() != nullptr) how = 0;  // it would not know the family
  rocksdb::ColumnFamilyHandle* handle = nullptr;
  const rocksdb::Options options = database_.Options(2);
  if (how < 2) {
    rocksdb::DB* const db = how == 0 ? database_.get() : database_.base();
    Require(db->CreateColumnFamily(options, "b", &handle), "making a column family");
  } else {
    rocksdb::LiveFileMetaData table;
    table.db_path = "";
    table.name = WriteTable(2, RowKey(1), RowValue(1), 5);
    // As from a database with this many writes; this one's number is then as large.
    table.largest_seqno = 1000;
    rocksdb::ExportImportFilesMetaData files;
    files.db_comparator_name = options.comparator->Name();
    files.files = {table};
    imported_ = true;
    Require(database_->CreateColumnFamilyWithImport(
                options, "b", rocksdb::ImportColumnFamilyOptions(), files, &handle),
            "importing");
  }
  database_.SetFamily(2, handle);
  sure_[2] = false;
  for (size_t index = 0; index < IndexKinds().size(); ++index) {
    if (IndexKinds()[index].family == 2 && (program_.indexes >> index & 1) != 0) CreateIndex(index);
  }
}

inline void Interpreter::RemakeFamily(size_t family, bool past) {
  if (family == 0 || !database_.has(family)) return;
  past &= database_.world()[kWrapper] != kOpen;
  rocksdb::DB* const db = past ? database_.base() : database_.get();
  const rocksdb::Status dropped = db->DropColumnFamily(database_.family(family));
  // Refused: an index that cannot be marked stale keeps its family.
  if (!dropped.ok() && database_.disk().is_full) return;
  Require(dropped, "dropping a column family");
  rocksdb::ColumnFamilyHandle* handle = nullptr;
  Require(db->CreateColumnFamily(database_.Options(family), kFamilyNames[family], &handle),
          "making a column family again");
  database_.SetFamily(family, handle);
  model_[family].clear();
  // A family that was recreated past the object is undetected until something is written to it.
  if (past) {
    Require(database_.base()->Put({}, handle, "zz", RowValue(98)), "writing");
    model_[family]["zz"] = RowValue(98);
  }
  for (const size_t index : created_) {
    if (IndexKinds()[index].family == family) lost_family_.insert(index);
  }
}

// Table files of two rows each, which all overlap.
inline void Interpreter::ManyFiles(uint32_t hundreds) {
  for (uint32_t i = 0; i < 20 + 100 * hundreds; ++i) {
    Require(database_->Put({}, "k00", RowValue(i % kRowValues)), "writing");
    Require(database_->Put({}, "k11", RowValue(i % 7)), "writing");
    Require(database_->Flush({}), "flushing");
    model_[0]["k00"] = RowValue(i % kRowValues);
    model_[0]["k11"] = RowValue(i % 7);
  }
}

}  // namespace cairn::stateful
