// Handles indexes whose column families change past the log, or are dropped.

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "engine/live/index_set.h"
#include "engine/util/status.h"
#include "index/machine/guard.h"
#include "index/machine/status_macros.h"
#include "rocksdb/transaction_log.h"

namespace cairn {

IndexList::Indexes IndexSet::In(const PastLogChanges::Scope& scope) const {
  IndexList::Indexes found = indexes_.All();
  std::erase_if(found, [&](const auto& index) { return !index->MayBeIn(scope); });
  return found;
}

bool IndexSet::HasChangedNothing(const rocksdb::Status& error) {
  // RocksDB checks arguments, and reads and links the files that it ingests, before it writes to
  // its MANIFEST. After an I/O error of the MANIFEST, parts of the change may be on disk.
  if (error.IsIOError() && !error.IsPathNotFound()) return false;
  // After such an error the database accepts no writes until its MANIFEST is written again.
  return WriteNothing().ok();
}

rocksdb::Status IndexSet::WriteNothing() {
  rocksdb::WriteOptions options;
  options.no_slowdown = true;
  rocksdb::WriteBatch nothing;
  return db_->GetRootDB()->Write(options, &nothing);
}

rocksdb::Status IndexSet::ChangePastLog(const PastLogChanges::Scope& scope, const std::string& why,
                                        bool is_atomic,
                                        absl::FunctionRef<rocksdb::Status()> change) {
  if (absl::Status s = CheckOpen(); !s.ok()) return ToRocksDb(s);
  const absl::Status stale = absl::FailedPreconditionError(why);
  const auto is_in_scope = [&](const FollowedIndex& index) { return index.MayBeIn(scope); };
  std::vector<uint64_t> counts;  // of `scope.families`, after the end of this change
  counts.reserve(scope.families.size());
  for (const std::string& family : scope.families) counts.push_back(past_log_.Count(family) + 2);
  // IndexUpkeep repeats a build that is in progress or begins before the end of this change.
  past_log_.Begin(scope);
  bool open = true;
  if (is_atomic) follower_->unlogged().BeginIngestion();
  const auto end = [&] {
    if (!open) return;
    open = false;
    past_log_.End(scope);
    if (is_atomic) follower_->unlogged().EndIngestion();
  };
  const absl::Cleanup end_in_any_case = end;
  // No index that this misses can become ready before the end.
  const IndexList::Indexes affected = In(scope);
  IndexList::Indexes marked;
  marked.reserve(affected.size());
  for (const auto& index : affected) index->Suspend();
  const absl::Cleanup resume = [&] {
    for (const auto& index : affected) index->Resume();
  };
  // The mark comes first, so that no index seems current after a crash.
  absl::Status ready;
  for (size_t i = 0; i < affected.size() && ready.ok(); ++i) {
    bool is_new = false;
    ready = affected[i]->MarkStale(why, &is_new);
    if (is_new) marked.push_back(affected[i]);
  }
  const rocksdb::Status changed = ready.ok() ? change() : ToRocksDb(ready);
  end();
  if (!changed.ok() && is_atomic && (!ready.ok() || HasChangedNothing(changed))) {
    const auto is_disturbed = [&] {
      for (size_t i = 0; i < counts.size(); ++i) {
        if (past_log_.AnySince(scope.families[i], counts[i])) return true;
      }
      return false;
    };
    absl::Status restored;
    for (const auto& index : marked) {
      restored.Update(index->MarkFollowing(IndexMark::Kind::kStale, is_disturbed));
    }
    if (restored.ok()) return changed;
  }
  // The rest happens in any case, even if steps fail. The first marks may have missed indexes that
  // have been created and become ready since.
  if (ready.ok()) Distrust(is_in_scope, why);  // otherwise nothing has changed
  follower_->Fail(is_in_scope, stale);
  // For all other indexes, the sequence numbers that the change has taken are a gap in the log. The
  // follower must detect the gap now.
  follower_->Follow().IgnoreError();
  return changed.ok() ? ToRocksDb(ready) : changed;
}

void IndexSet::NoteIngested(const std::string& column_family, SequenceNumber sequence,
                            std::string_view why) {
  // Each step is made even if others fail.
  Guarded("noting an ingested file", [&] {
    if (sequence > 0) follower_->unlogged().NoteIngested(sequence);
    return absl::OkStatus();
  }).IgnoreError();  // then the number is detected as a gap in the log
  bool by_this_object = false;
  const absl::Status noted = Guarded("noting an ingested file", [&] {
    by_this_object = past_log_.Note(column_family);
    return absl::OkStatus();
  });
  if (by_this_object) return;  // ChangePastLog marks the indexes
  if (!noted.ok()) past_log_.NoteAny();
  const auto is_of_family = [&](const FollowedIndex& index) {
    return !index.is_defined() || index.spec().column_family == column_family;
  };
  Distrust(is_of_family, why);
  const absl::Status lost = Guarded("losing stale indexes", [&] {
    follower_->Fail(is_of_family, absl::FailedPreconditionError(std::string(why)));
    return absl::OkStatus();
  });
  if (!lost.ok()) follower_->Doubt();
  // The number is a gap in the log for all other indexes. They must notice it now.
  follower_->Follow().IgnoreError();
}

void IndexSet::Distrust(absl::FunctionRef<bool(const FollowedIndex&)> is_affected,
                        std::string_view why) {
  for (auto index = indexes_.After(nullptr); index != nullptr; index = indexes_.After(&*index)) {
    if (!is_affected(*index)) continue;
    Guarded("marking an index as stale", [&] {
      index->Distrust(why);
      return absl::OkStatus();
    }).IgnoreError();
  }
}

void IndexSet::CheckFailedWrite(const rocksdb::Status& failed) {
  // A refused write has not begun. An I/O error is an error of the log: RocksDB then applies
  // nothing and assigns the sequence numbers again. Memtables report none, because a merge operand
  // whose row cannot be read (max_successive_merges) is stored as it is.
  const bool is_refused =
      failed.IsIncomplete() || failed.IsTryAgain() || failed.IsBusy() || failed.IsTimedOut();
  if (is_refused || failed.IsIOError() || closed_) return;
  const rocksdb::Status again = WriteNothing();
  if (!again.ok() && !again.IsIncomplete()) NoteFailedWrite(/*in_memtable=*/true);
}

void IndexSet::NoteFailedWrite(bool in_memtable) {
  // A record that could not be applied keeps its numbers.
  if (failed_writes_show_ && !in_memtable) return;
  uint64_t log_number = 1;
  Guarded("noting a failed write", [&] {
    std::unique_ptr<rocksdb::LogFile> current;
    if (db_->GetCurrentWalFile(&current).ok()) log_number = current->LogNumber();
    return absl::OkStatus();
  }).IgnoreError();
  // No index becomes ready before all are marked.
  const PastLogChanges::Scope any_rows = {{}, true};
  past_log_.Begin(any_rows);
  const absl::Cleanup end = [&] { past_log_.End(any_rows); };
  follower_->Doubt();
  past_log_.NoteFailedWrite(log_number);
  Distrust([](const FollowedIndex&) { return true; },
           "a write to the database failed, but its record may be in the log");
}

void IndexSet::DetachFamily(const std::string& column_family, const std::string& why) {
  {  // An index that is not defined yet finds none of these then.
    const MutexLock lock(&handles_mutex_);
    handles_.erase(column_family);
  }
  for (const auto& index : indexes_.All()) {
    if (index->is_defined() && index->spec().column_family == column_family) Detach(index, why);
  }
}

void IndexSet::DetachHandle(rocksdb::ColumnFamilyHandle* handle) {
  {
    const MutexLock lock(&handles_mutex_);
    std::erase_if(handles_, [&](const auto& entry) { return entry.second == handle; });
  }
  for (const auto& index : indexes_.All()) {
    if (handle != nullptr && index->column_family() == handle) {
      Detach(index, "the handle of its column family was destroyed");
    }
  }
}

void IndexSet::Detach(const std::shared_ptr<FollowedIndex>& index, const std::string& why) {
  if (closed_) return;
  index->Cancel();
  const MutexLock lock(index->work_mutex());
  Guarded("storing an index", [&] {
    index->work_mutex()->AssertHeld();
    return follower_->Current(*index).ok() ? work_.Store(index.get()) : absl::OkStatus();
  }).IgnoreError();
  follower_->Leave(*index);
  index->LetGoOfDirectory();
  const absl::Status gone = absl::FailedPreconditionError(why);
  index->GiveUp(gone);
  index->End(gone);
}

}  // namespace cairn
