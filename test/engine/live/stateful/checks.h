#pragma once

#include <algorithm>
#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "absl/time/clock.h"
#include "test/engine/indexed_database.h"
#include "test/engine/live/stateful/interpreter.h"

// The commands for indexes, and the checks after each command.

namespace cairn::stateful {

// Long enough for slow machines.
inline constexpr absl::Duration kLongestWait = absl::Seconds(60);
// A permanent reason is reported at once.
inline constexpr absl::Duration kLongestRefusal = absl::Seconds(8);
// The number of consecutive builds without a ready index after which the index counts as being
// rebuilt forever.
inline constexpr uint64_t kMaxBuilds = 4;

inline std::optional<IndexInfo> Interpreter::Info(size_t index) {
  for (IndexInfo& info : database_->ListIndexes()) {
    if (info.spec.name == IndexKinds()[index].name) return info;
  }
  return std::nullopt;
}

inline const Rows& Interpreter::ScanRows(size_t family) {
  scanned_[family] = database_.Scan(family);
  Require(database_.scan_status(), "reading the database");
  if (sure_[family] && scanned_[family] != model_[family]) {
    std::string rows;
    for (const auto& [key, value] : scanned_[family]) absl::StrAppend(&rows, " ", key, "=", value);
    absl::StrAppend(&rows, "; expected");
    for (const auto& [key, value] : model_[family]) absl::StrAppend(&rows, " ", key, "=", value);
    throw Failure(absl::StrCat("column family ", kFamilyNames[family], " has", rows));
  }
  model_[family] = scanned_[family];
  sure_[family] = !deleted_file_ && database_.world()[kFilter] == kNoFilter &&
                  database_.world()[kStyle] != kFifo;
  return scanned_[family];
}

// Queries an index, which must have the rows that were scanned last.
inline absl::Status Interpreter::AskIndex(size_t index, uint64_t salt) {
  const IndexKind& kind = IndexKinds()[index];
  while (true) {
    const Rows rows = scanned_[kind.family];
    try {
      return Questions(database_.get(), kind, rows, database_.world()[kExtractor], salt + index,
                       LossesOf(index))
          .AskAll();
    } catch (const Failure&) {
      // A compaction may have dropped rows since the scan.
      if (!DropsRows(database_.world()) || ScanRows(kind.family) == rows) throw;
    }
  }
}

// Queries all indexes in their current state. If an index was dropped with its column family, its
// only correct rows are those of the family that was created in its place.
inline void Interpreter::AskIndexes(uint64_t salt) {
  if (!database_.is_open()) return;
  for (size_t family = 0; family < kFamilies; ++family) ScanRows(family);
  const uint32_t extractor = database_.world()[kExtractor];
  for (const size_t index : created_) {
    const absl::Status refusal = AskIndex(index, salt);
    ++events_[refusal.ok() ? "indexes that answered" : "indexes that refused"];
  }
  const std::vector<size_t> indexes(created_.begin(), created_.end());
  for (size_t i = 1; i < indexes.size(); ++i) {
    const IndexKind &a = IndexKinds()[indexes[i - 1]], &b = IndexKinds()[indexes[i]];
    if (a.family != b.family || LossesOf(indexes[i - 1]) != Losses::kNone ||
        LossesOf(indexes[i]) != Losses::kNone) {
      continue;
    }
    AskTogether(database_.get(), a, b, scanned_[a.family], extractor, salt);
  }
  if (database_.snapshot() != nullptr) AskIndexesAt(salt, database_.snapshot(), nullptr);
}

// Queries all indexes at a snapshot and in a transaction. Either may be null. Compactions drop rows
// without regard to snapshots.
inline void Interpreter::AskIndexesAt(uint64_t salt, const rocksdb::Snapshot* snapshot,
                                      rocksdb::Transaction* transaction) {
  if (DropsRows(database_.world()) || values_changed_) return;
  std::array<Rows, kFamilies> rows;
  for (size_t family = 0; family < kFamilies; ++family) {
    rows[family] = database_.Scan(family, snapshot, transaction);
    Require(database_.scan_status(), "reading the database at a snapshot");
  }
  LookupOptions at;
  at.snapshot = snapshot;
  at.transaction = transaction;
  const std::string where = transaction != nullptr ? "in a transaction" : "at a snapshot";
  const uint32_t extractor = database_.world()[kExtractor];
  const IndexKind* before = nullptr;
  for (const size_t index : created_) {
    const IndexKind& kind = IndexKinds()[index];
    if (ignores_dropped_.count(index) > 0) continue;
    const absl::Status refusal = Questions(database_.get(), kind, rows[kind.family], extractor,
                                           salt + index, Losses::kNone, at)
                                     .AskAll();
    ++events_[(refusal.ok() ? "indexes that answered " : "indexes that refused ") + where];
    if (before != nullptr && before->family == kind.family) {
      AskTogether(database_.get(), *before, kind, rows[kind.family], extractor, salt, at);
    }
    before = &kind;
  }
}

// Waits for an index, unless it is rebuilt repeatedly or cannot be built.
inline absl::Status Interpreter::AwaitReady(size_t index) {
  const absl::Time begin = absl::Now();
  const auto before = Info(index);
  while (true) {
    const absl::Status status =
        database_->WaitUntilReady(IndexKinds()[index].name, absl::Milliseconds(50));
    if (!absl::IsDeadlineExceeded(status)) return status;
    // While the indexes' disk is full, nothing can be built.
    if (database_.disk().is_full && absl::Now() - begin > absl::Milliseconds(200)) return status;
    const auto info = Info(index);
    if (info.has_value() && before.has_value() && info->builds >= before->builds + kMaxBuilds) {
      throw Failure(absl::StrCat(
          IndexKinds()[index].name, " was built ", info->builds - before->builds, " times and is ",
          std::string(IndexStateName(info->state)), ": ", info->status.ToString()));
    }
    if (absl::Now() - begin > (Refuses(index) ? kLongestRefusal : kLongestWait)) {
      throw Failure(absl::StrCat(IndexKinds()[index].name, " is not ready after ",
                                 absl::FormatDuration(absl::Now() - begin)));
    }
  }
}

// Every index must become ready, or be rejected for a valid reason.
inline void Interpreter::Check(uint64_t salt) {
  if (!database_.is_open()) return;
  database_.disk().is_slow = database_.disk().log_is_slow = database_.disk().is_full = false;
  for (size_t index = 0; index < IndexKinds().size(); ++index) {
    if (created_.count(index) == 0) continue;
    const IndexKind& kind = IndexKinds()[index];
    if (lost_family_.count(index) > 0) {
      Require(database_->DropIndex(kind.name), "dropping an index whose column family was dropped");
      created_.erase(index);
      CreateIndex(index);
      if (created_.count(index) == 0) continue;
    }
    absl::Status status = AwaitReady(index);
    if (Refuses(index)) {
      if (IsRefusal(status)) continue;
      throw Failure(absl::StrCat(kind.name, ": refused options: ", status.ToString()));
    }
    if (kind.unique && (HasDuplicates(kind, ScanRows(kind.family)) || had_duplicates_)) {
      // Deletes rows until no two have the same key.
      std::set<Key> keys;
      for (const auto& [row, value] : Rows(scanned_[kind.family])) {
        for (const Key& key : kind.keys(row, value, 0)) {
          if (keys.insert(key).second) continue;
          Require(database_.base()->Delete({}, database_.family(kind.family), row), "deleting");
          model_[kind.family].erase(row);
        }
      }
      Require(database_->RebuildIndex(kind.name), "rebuilding");
      status = AwaitReady(index);
      had_duplicates_ = false;
    }
    if (!status.ok()) {
      ++events_["cures"];
      const absl::Status why = status;
      Require(database_->RebuildIndex(kind.name), "rebuilding");
      status = AwaitReady(index);
      if (!status.ok()) {
        throw Failure(absl::StrCat(kind.name, " is not ready, nor after RebuildIndex: ",
                                   why.ToString(), "; ", status.ToString()));
      }
    }
    absl::Status refusal;
    for (int attempt = 0; attempt < 20; ++attempt) {
      ScanRows(kind.family);
      refusal = AskIndex(index, salt);
      if (refusal.ok()) break;
      // The query may have shown that its log has expired.
      if (!AwaitReady(index).ok()) Require(database_->RebuildIndex(kind.name), "rebuilding");
    }
    if (!refusal.ok()) {
      throw Failure(absl::StrCat(kind.name, " is ready, and refuses: ", refusal.ToString()));
    }
  }
}

// The earlier indexes exist; after a stop or a restored copy, some of them.
inline void Interpreter::ReconcileIndexes(bool may_be_older) {
  std::set<std::string> names;
  ignores_dropped_.clear();
  for (const IndexInfo& info : database_->ListIndexes()) {
    names.insert(info.spec.name);
    for (size_t index = 0; index < IndexKinds().size(); ++index) {
      if (info.spec.name == IndexKinds()[index].name &&
          info.spec.dropped_rows == DroppedRows::kIgnore) {
        ignores_dropped_.insert(index);
      }
    }
  }
  std::set<size_t> there;
  for (size_t index = 0; index < IndexKinds().size(); ++index) {
    if (names.count(IndexKinds()[index].name) > 0) there.insert(index);
  }
  if (!may_be_older && !was_full_ && there != created_)
    throw Failure("after opening there are other indexes");
  created_ = there;
  if (may_be_older) {
    // Possibly of a column family that was dropped later.
    for (const size_t index : created_) {
      if (!database_.has(IndexKinds()[index].family)) lost_family_.insert(index);
    }
  }
  std::erase_if(lost_family_, [&](size_t index) { return created_.count(index) == 0; });
  had_duplicates_ = true;
}

inline void Interpreter::CreateIndex(size_t index) {
  const IndexKind& kind = IndexKinds()[index];
  if (created_.count(index) > 0 || !database_.has(kind.family)) return;
  // If compactions drop rows, half of the indexes ignore that, and the others are rejected.
  ignores_dropped_.erase(index);
  if (DropsRows(database_.world()) && index % 2 == 0) ignores_dropped_.insert(index);
  IndexSpec spec = SpecOf(kind.spec);
  if (ignores_dropped_.count(index) > 0) spec.dropped_rows = DroppedRows::kIgnore;
  const absl::Status status = database_->CreateIndex(spec, database_.family(kind.family));
  lost_family_.erase(index);
  if (status.ok() && !Refuses(index)) {
    created_.insert(index);
    if (kind.unique) had_duplicates_ = true;
    return;
  }
  if ((Refuses(index) && IsRefusal(status)) || (database_.disk().is_full && !status.ok())) return;
  throw Failure(absl::StrCat("creating index ", kind.name, ": ", status.ToString()));
}

inline void Interpreter::DropIndex(size_t index) {
  if (created_.count(index) == 0) return;
  const absl::Status status = database_->DropIndex(IndexKinds()[index].name);
  if (!status.ok() && database_.disk().is_full) return;  // it may be dropped again
  created_.erase(index);
  lost_family_.erase(index);
  Require(status, "dropping an index");
}

inline void Interpreter::Rebuild(size_t index) {
  const absl::Status status = database_->RebuildIndex(IndexKinds()[index].name);
  if (!status.ok() && database_.disk().is_full) return;
  database_.disk().is_slow = true;
  if (!Refuses(index) || !IsRefusal(status)) Require(status, "rebuilding");
}

// A row that has one of two keys at each moment is found whenever both are queried.
inline void Interpreter::RaceRows(size_t family, const std::string& key) {
  if (!database_.has(family)) return;
  for (const size_t index : created_) {
    const IndexKind& kind = IndexKinds()[index];
    if (kind.family != family || kind.keys != CityOf || lost_family_.count(index) > 0 ||
        LossesOf(index) != Losses::kNone)
      continue;
    if (Refuses(index) || !AwaitReady(index).ok()) return;
    std::atomic<bool> stop = false;
    // With cities that no other row has.
    const std::string values[] = {"x1|1|m1000|t1", "x2|1|m1001|t1"};
    Require(database_->Put({}, database_.family(family), key, values[0]), "writing");
    std::thread writer([&] {
      for (int i = 1; !stop; ++i) {
        database_->Put({}, database_.family(family), key, values[i % 2]).PermitUncheckedError();
      }
    });
    std::string wrong;
    // And many other keys, so that the call takes a while.
    std::vector<std::string> asked = {"x1", "x2"};
    for (int i = 0; i < 1000; ++i) asked.push_back(absl::StrCat("y", i));
    const absl::Time end = absl::Now() + absl::Milliseconds(300);
    while (absl::Now() < end && wrong.empty()) {
      const auto found = database_->LookupRows(kind.name, asked);
      const auto keys = database_->Lookup(kind.name, asked);
      if (found.ok() && found->size() != 1) {
        wrong = absl::StrCat("LookupRows found ", found->size(), " rows where there is one");
      }
      for (size_t i = 0; found.ok() && i < asked.size(); ++i) {
        for (const FoundRow& row : found->of(i)) {
          if (row.value.starts_with(asked[i] + "|")) continue;
          wrong = absl::StrCat("LookupRows found the row ", std::string(row.value), " for key ",
                               asked[i]);
        }
      }
      if (keys.ok() && keys->size() != 1) {
        wrong = absl::StrCat("Lookup found ", keys->size(), " rows where there is one");
      }
    }
    stop = true;
    writer.join();
    Require(database_->Delete({}, database_.family(family), key), "deleting");
    sure_[family] = false;
    had_duplicates_ = true;
    if (!wrong.empty()) throw Failure(wrong);
    return;
  }
}

// A build that takes a while, with concurrent writes; results must be correct or refused.
inline void Interpreter::BuildBesideWrites(size_t index, uint32_t key) {
  if (created_.count(index) == 0 || lost_family_.count(index) > 0) return;
  Check(key);
  const IndexKind& kind = IndexKinds()[index];
  Rebuild(index);
  for (uint32_t i = 0; i < 20; ++i) {
    group_.push_back({i % 4 == 3 ? kDelete : kPut, kind.family, RowKey((key + i) % kRowKeys),
                      RowValue((key + 5 * i) % kRowValues)});
    WriteGroup();
    if (i % 5 == 0) AskIndexes(i);
  }
  database_.disk().is_slow = false;
}

inline void Interpreter::Execute(const Command& command) {
  const auto& args = command.args;
  switch (command.op) {
    case kPut:
    case kDelete:
    case kDeleteRange:
    case kMergeOperand:
    case kPutEntity:
    case kSingle:
      AddRowOp(command);
      if (group_left_ > 0 && --group_left_ > 0) return;
      return WriteGroup();
    case kWrite:
      // The world may have changed by now.
      how_ = Allows(database_.world(), command) ? static_cast<How>(args[0]) : kPlainly;
      group_left_ = 1 + args[1];
      return;
    case kFinishPrepared:
      return FinishPrepared(args[0] == 0);
    case kHoldSnapshot:
      return database_.HoldSnapshot();
    case kReleaseSnapshot:
      return database_.ReleaseSnapshot();
    case kFlush:
      if (database_.has(args[0])) {
        Require(database_->Flush({}, database_.family(args[0])), "flushing");
      }
      return;
    case kCompact:
      if (database_.has(args[0])) {
        Require(database_->CompactRange({}, database_.family(args[0]), nullptr, nullptr),
                "compacting");
      }
      return;
    case kFlushLog:
      return Require(database_->FlushWAL(args[0] == 1), "flushing the log");
    case kStoreIndexes:
      return database_->FlushIndexes().IgnoreError();
    case kMergeIndex:
      if (created_.count(args[0]) > 0) {
        database_->CompactIndex(IndexKinds()[args[0]].name).IgnoreError();
      }
      return;
    case kCreateIndex:
      return CreateIndex(args[0]);
    case kDropIndex:
      return DropIndex(args[0]);
    case kRebuildIndex:
      if (created_.count(args[0]) > 0 && lost_family_.count(args[0]) == 0) {
        Rebuild(args[0]);
      }
      return;
    case kCheck:
      return Check(args[0]);
    case kIngest:
      return Ingest(command);
    case kFailingIngest:
      return FailingIngest(args[0]);
    case kDeleteFile:
      return DeleteFile(args[0]);
    case kMakeFamily:
      return MakeFamily(args[0]);
    case kRemakeFamily:
      return RemakeFamily(args[0], args[1] == 1);
    case kReopen:
      return Reopen(command);
    case kCrash:
      if (args[3] == 1) {  // recovery gives its number to another write
        group_.push_back({kDeleteRange, 0, RowKey(1), RowKey(1)});
        if (database_.transactions() != nullptr || database_.optimistic() != nullptr)
          group_.clear();
        WriteGroup();
      }
      database_.Stop(args[1] == 0 ? 0 : args[0], args[1] == 2 && !imported_, args[2]);
      Forget();
      if (Open()) ReconcileIndexes(/*may_be_older=*/true);
      return;
    case kFilterLog:
      return FilterLog(args[0]);
    case kPlainSession:
      return PlainSession(command);
    case kCopy:
      return Copy(args[0]);
    case kRestore:
      return Restore(args[0], args[1]);
    case kLoseFile:
      return LoseFile(args[0], args[1]);
    case kChurn:
      return Churn(args[0], args[1] == 1);
    case kLoseLog:
      return LoseLog(args[0], args[1]);
    case kRepair:
      return Repair();
    case kDisk:
      database_.disk().is_slow = args[0] == kSlowForIndexes;
      database_.disk().log_is_slow = args[0] == kSlowForLog;
      database_.disk().is_full = args[0] == kFullForIndexes;
      was_full_ |= database_.disk().is_full;
      return;
    case kIdle:
      // Waits until the log has expired.
      if (database_.world()[kArchive] == kShortArchive) absl::SleepFor(absl::Milliseconds(1200));
      return;
    case kRaceRows:
      return RaceRows(args[0], RowKey(args[1]));
    case kBuildBesideWrites:
      return BuildBesideWrites(args[0], args[1]);
    case kManyFiles:
      return ManyFiles(args[0]);
    case kOps:
      return;
  }
}

inline std::optional<std::string> Interpreter::Run() {
  const auto is_row = [](const Command& command) { return command.op <= kSingle; };
  size_t at = 0;
  try {
    if (!Open()) return std::nullopt;
    // RocksDB 7.8 loses rows to a snapshot of sequence number 0.
    Require(database_->Put({}, "zz", RowValue(99)), "writing");
    for (size_t index = 0; index < IndexKinds().size(); ++index) {
      if ((program_.indexes >> index & 1) != 0) CreateIndex(index);
    }
    if (program_.world[kBuffer] != 1) Check(0);
    for (; at < program_.commands.size() && database_.is_open(); ++at) {
      const Command& command = program_.commands[at];
      if (!is_row(command)) WriteGroup();
      Execute(command);
      if (group_left_ == 0) AskIndexes(at);
    }
    if (database_.is_open()) WriteGroup();
    Check(1);
  } catch (const Failure& failure) {
    return absl::StrCat("at command ", at, ": ", failure.what());
  }
  return std::nullopt;
}

}  // namespace cairn::stateful
