#pragma once

#include <array>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "test/engine/live/stateful/database.h"
#include "test/engine/live/stateful/program.h"
#include "test/engine/live/stateful/questions.h"
#include "test/engine/live/stateful/rows.h"

namespace cairn::stateful {

// Runs one program. What each command must do is in steps.h (sessions, files, families) and here
// (rows, indexes, checks).
//
// The rule: after each command every index answers every question as the rows of the database have
// it, or refuses with Unavailable or FailedPrecondition. At a check it must be ready again, at the
// latest after RebuildIndex. A write that is valid succeeds, one that makes a duplicate does not.
class Interpreter {
 public:
  explicit Interpreter(const Program& program) : program_(program), database_(program.world) {}

  // What is wrong, if anything is.
  std::optional<std::string> Run();
  // How often something of these names happened.
  const std::map<std::string, uint64_t>& events() const { return events_; }

 private:
  struct RowOp {
    Op op;
    size_t family;
    std::string key, text;  // the value or operand, or the end of a range
  };

  void Execute(const Command& command);

  // Rows.
  void AddRowOp(const Command& command);
  void WriteGroup();
  bool Fill(rocksdb::WriteBatch* batch, const std::vector<RowOp>& ops);
  rocksdb::Status RunTransaction(How how, const std::vector<RowOp>& ops);
  void Apply(const std::vector<RowOp>& ops);
  rocksdb::Status FailWrite(How how, rocksdb::WriteBatch* batch);
  bool MakesDuplicate(const std::vector<RowOp>& ops);
  void FinishPrepared(bool commit);

  // Sessions.
  bool Open(const Database::Special& special = {});
  void Reopen(const Command& command);
  void FilterLog(uint32_t how);
  void PlainSession(const Command& command);
  void Copy(uint32_t slot);
  void Restore(uint32_t slot, uint32_t what);
  void LoseFile(uint32_t file, uint32_t how);
  void Repair();

  // Files and families.
  void Ingest(const Command& command);
  void FailingIngest(size_t family);
  void ReopenAfterFailedWrite();
  void DeleteFile(uint32_t number);
  void MakeFamily(uint32_t how);
  void RemakeFamily(size_t family, bool past);
  void ManyFiles(uint32_t hundreds);
  std::string WriteTable(const std::string& key, const std::string& value, size_t rows);

  // Indexes.
  void CreateIndex(size_t index);
  void DropIndex(size_t index);
  void Rebuild(size_t index);
  void RaceRows(size_t family, const std::string& key);
  void BuildBesideWrites(size_t index, uint32_t key);
  absl::Status AwaitReady(size_t index);
  void AskIndexes(uint64_t salt);
  void Check(uint64_t salt);
  void ReconcileIndexes(bool may_be_older);
  std::optional<IndexInfo> Info(size_t index);

  // The rows as they are, which must be those of the model where that is sure of them.
  const Rows& ScanRows(size_t family);
  void Forget() { sure_.fill(false); }
  // Whether the index is not ready, as the database is open.
  bool Refuses(size_t index) const {
    return database_.is_special() || RefusesIndexes(database_.world()) ||
           (DropsRows(database_.world()) && ignores_dropped_.count(index) == 0);
  }
  static bool IsRefusal(const absl::Status& status) {
    return absl::IsFailedPrecondition(status) || absl::IsInvalidArgument(status);
  }
  // Which rows the index is asked for, if compactions have dropped or changed rows.
  Losses LossesOf(size_t index) const {
    if (ignores_dropped_.count(index) == 0) return Losses::kNone;
    return values_changed_ ? Losses::kChanged : Losses::kRemoved;
  }
  static void Require(const rocksdb::Status& status, const std::string& doing);
  static void Require(const absl::Status& status, const std::string& doing);

  const Program& program_;
  Database database_;
  std::map<std::string, uint64_t> events_;

  std::array<Rows, kFamilies> model_;
  std::array<bool, kFamilies> sure_ = {};  // that the model has the rows
  std::array<Rows, kFamilies> scanned_;

  How how_ = kPlainly;
  uint32_t group_left_ = 0;
  std::vector<RowOp> group_;

  std::set<size_t> created_;          // indexes that there are
  std::set<size_t> lost_family_;      // of these, those whose column family was dropped
  std::set<size_t> ignores_dropped_;  // of these, those with dropped_rows=ignore
  bool values_changed_ = false;       // perhaps, by a compaction filter
  bool had_duplicates_ = false;       // perhaps, since the unique index was last ready
  bool failed_write_ = false;         // since the database was opened
  bool deleted_file_ = false;         // since then: RocksDB may show that a while later
  bool was_full_ = false;             // an index that cannot be marked is perhaps given up
  bool imported_ = false;             // RocksDB 7.8 does not sync what it imports
  std::array<std::vector<std::string>, kFamilies> singles_;  // rows of kSingle
  uint32_t single_rows_ = 0;
  uint32_t tables_ = 0;
  uint32_t resumed_ = 0;
};

}  // namespace cairn::stateful
