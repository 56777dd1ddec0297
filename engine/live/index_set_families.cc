// What becomes of indexes when their column families change past the log, or go.

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "engine/live/index_set.h"
#include "engine/util/status.h"
#include "index/machine/guard.h"
#include "index/machine/status_macros.h"

namespace cairn {

IndexList::Indexes IndexSet::Of(
    absl::Span<rocksdb::ColumnFamilyHandle* const> column_families) const {
  IndexList::Indexes found;
  for (const auto& index : indexes_.All()) {
    if (std::any_of(column_families.begin(), column_families.end(),
                    [&](auto* family) { return index->MayBeOf(family); })) {
      found.push_back(index);
    }
  }
  return found;
}

absl::Status IndexSet::MarkStale(absl::Span<rocksdb::ColumnFamilyHandle* const> column_families,
                                 const std::string& why) const {
  for (const auto& index : Of(column_families)) {
    RETURN_IF_ERROR(index->MarkStale(why));
  }
  return absl::OkStatus();
}

rocksdb::Status IndexSet::ChangePastLog(
    absl::Span<rocksdb::ColumnFamilyHandle* const> column_families, const std::string& why,
    absl::FunctionRef<rocksdb::Status()> change) {
  if (absl::Status s = CheckOpen(); !s.ok()) return ToRocksDb(s);
  std::vector<std::string> names;  // as a handle may go with its column family
  for (rocksdb::ColumnFamilyHandle* family : column_families) names.push_back(family->GetName());
  const absl::Status stale = absl::FailedPreconditionError(why);
  // Whoever is building such an index by now, or begins to before the end, builds it again.
  size_t begun = 0;
  const auto end = [&] {
    while (begun > 0) past_log_.End(names[--begun]);
  };
  absl::Cleanup end_in_any_case = end;
  for (; begun < names.size(); ++begun) past_log_.Begin(names[begun]);
  // Before, so that a crash in between leaves no index that is taken for current. That a change
  // fails is rare enough to build anew for it.
  absl::Status marked = MarkStale(column_families, why);
  const rocksdb::Status changed = marked.ok() ? change() : ToRocksDb(marked);
  end();
  // From here on all is done, whatever fails. First those that have come meanwhile and were ready
  // at once.
  marked.Update(
      Guarded("marking indexes as stale", [&] { return MarkStale(column_families, why); }));
  for (rocksdb::ColumnFamilyHandle* family : column_families) follower_->Fail(family, stale);
  // What took sequence numbers leaves a gap in the log for all others, who are to know it now.
  follower_->Follow().IgnoreError();
  return changed.ok() ? ToRocksDb(marked) : changed;
}

void IndexSet::NoteChangePastLog(const std::string& column_family, const std::string& why) {
  // Who makes one here says so when it is made.
  if (past_log_.IsOpen(column_family)) return;
  rocksdb::ColumnFamilyHandle* handle = nullptr;
  {
    const MutexLock lock(&handles_mutex_);
    const auto found = handles_.find(column_family);
    if (found == handles_.end()) return;  // and so no index of it follows
    handle = found->second;
  }
  ChangePastLog(absl::MakeConstSpan(&handle, 1), why, [] {
    return rocksdb::Status::OK();
  }).PermitUncheckedError();
}

void IndexSet::DetachFamilies(absl::Span<rocksdb::ColumnFamilyHandle* const> column_families,
                              const std::string& why) {
  {  // An index that is not defined yet finds none of these then.
    const MutexLock lock(&handles_mutex_);
    for (rocksdb::ColumnFamilyHandle* family : column_families) handles_.erase(family->GetName());
  }
  for (const auto& index : Of(column_families)) {
    if (index->is_defined()) Detach(index, why);
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
  index->End(absl::FailedPreconditionError(why));
}

}  // namespace cairn
