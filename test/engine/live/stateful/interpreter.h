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

// Runs one program. steps.h (sessions, files, families) and this header (rows, indexes, checks)
// define what each command must do.
//
// The rule: after each command, every index either has the results that follow from the database's
// rows, or refuses with Unavailable or FailedPrecondition. At a check it must be ready again, at
// the latest after RebuildIndex. A valid write succeeds, and one that creates a duplicate fails.
class Interpreter {
 public:
  explicit Interpreter(const Program& program) : program_(program), database_(program.world) {}

  // Returns the error, if there is one.
  std::optional<std::string> Run();
  // The number of events by name.
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
  void Churn(size_t family, bool by_range);

  // Sessions.
  bool Open(const Database::Special& special = {});
  void Reopen(const Command& command);
  void FilterLog(uint32_t how);
  void PlainSession(const Command& command);
  void Copy(uint32_t slot);
  void Restore(uint32_t slot, uint32_t what);
  void LoseFile(uint32_t file, uint32_t how);
  void LoseLog(uint32_t file, uint32_t how);
  void Repair();

  // Files and families.
  void Ingest(const Command& command);
  void FailingIngest(size_t family);
  void ReopenAfterFailedWrite();
  void DeleteFile(uint32_t number);
  void MakeFamily(uint32_t how);
  void RemakeFamily(size_t family, bool past);
  void ManyFiles(uint32_t hundreds);
  std::string WriteTable(size_t family, const std::string& key, const std::string& value,
                         size_t rows);

  // Indexes.
  void CreateIndex(size_t index);
  void DropIndex(size_t index);
  void Rebuild(size_t index);
  void RaceRows(size_t family, const std::string& key);
  void BuildBesideWrites(size_t index, uint32_t key);
  absl::Status AwaitReady(size_t index);
  absl::Status AskIndex(size_t index, uint64_t salt);
  void AskIndexes(uint64_t salt);
  void AskIndexesAt(uint64_t salt, const rocksdb::Snapshot* snapshot,
                    rocksdb::Transaction* transaction);
  void Check(uint64_t salt);
  void ReconcileIndexes(bool may_be_older);
  std::optional<IndexInfo> Info(size_t index);

  // The current rows, which must be those of the model if it is sure of them.
  const Rows& ScanRows(size_t family);
  void Forget() { sure_.fill(false); }
  // Whether the index is not ready with the database's current options.
  bool Refuses(size_t index) const {
    return database_.is_special() || RefusesIndexes(database_.world()) ||
           (DropsRows(database_.world()) && ignores_dropped_.count(index) == 0);
  }
  static bool IsRefusal(const absl::Status& status) {
    return absl::IsFailedPrecondition(status) || absl::IsInvalidArgument(status);
  }
  // The rows for which the index is queried, if compactions have dropped or changed rows.
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
  std::array<bool, kFamilies> sure_ = {};  // whether the model knows the rows
  std::array<Rows, kFamilies> scanned_;

  How how_ = kPlainly;
  uint32_t group_left_ = 0;
  std::vector<RowOp> group_;

  std::set<size_t> created_;          // existing indexes
  std::set<size_t> lost_family_;      // those whose column family was dropped
  std::set<size_t> ignores_dropped_;  // those with dropped_rows=ignore
  bool values_changed_ = false;       // possibly, by a compaction filter
  bool had_duplicates_ = false;       // possibly, since the unique index was last ready
  bool failed_write_ = false;         // since the database was opened
  bool deleted_file_ = false;         // since then: RocksDB may report that later
  bool was_full_ = false;             // an index that cannot be marked may be given up
  bool imported_ = false;             // RocksDB 7.8 does not sync imported files
  std::array<std::vector<std::string>, kFamilies> singles_;  // rows for kSingle
  uint32_t single_rows_ = 0;
  uint32_t tables_ = 0;
  uint32_t transactions_ = 0;
  uint32_t resumed_ = 0;
};

}  // namespace cairn::stateful
