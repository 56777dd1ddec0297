#include "engine/live/unique_guard.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_format.h"
#include "absl/types/span.h"
#include "engine/log/settled_changes.h"
#include "engine/log/write_batch_reader.h"
#include "engine/serve/change_extractor.h"
#include "engine/util/status.h"
#include "engine/version/unique_check.h"
#include "index/keys/escaped_text.h"
#include "index/machine/status_macros.h"

namespace cairn {

void UniqueGuard::Watch(const std::vector<std::shared_ptr<FollowedIndex>>& indexes) {
  auto unique = std::make_shared<Indexes>();
  for (const auto& index : indexes) {
    if (index->spec().unique) unique->push_back(index);
  }
  const MutexLock lock(&watched_mutex_);
  idle_.store(unique->empty(), std::memory_order_release);
  watched_ = std::move(unique);
}

rocksdb::Status UniqueGuard::Write(const rocksdb::WriteOptions& options,
                                   rocksdb::WriteBatch* batch) {
  if (idle() || batch == nullptr) return db_->Write(options, batch);
  const std::shared_ptr<const Indexes> indexes = watched();
  std::optional<MutexLock> lock;
  std::vector<uint32_t> families;
  for (const auto& index : *indexes) families.push_back(index->column_family_id());
  std::sort(families.begin(), families.end());
  families.erase(std::unique(families.begin(), families.end()), families.end());
  std::vector<RowChanges> changes(families.size());
  WriteBatchReader reader(families);
  if (absl::Status s = reader.Read(*batch, absl::MakeSpan(changes)).status(); !s.ok()) {
    return ToRocksDb(s);
  }
  if (std::any_of(changes.begin(), changes.end(), [](const auto& c) { return !c.empty(); })) {
    lock.emplace(&write_mutex_);
    if (absl::Status s = Check(*indexes, families, changes); !s.ok()) return ToRocksDb(s);
  }
  return db_->Write(options, batch);
}

absl::Status UniqueGuard::Check(const Indexes& indexes, const std::vector<uint32_t>& families,
                                const std::vector<RowChanges>& changes) {
  for (const auto& index : indexes) {
    const auto family = std::find(families.begin(), families.end(), index->column_family_id());
    const RowChanges& its_changes = changes[static_cast<size_t>(family - families.begin())];
    if (its_changes.empty()) continue;
    if (absl::Status s = CheckIndex(*index, its_changes); !s.ok()) {
      return absl::Status(s.code(),
                          absl::StrFormat("index %s: %s", Quoted(index->name()), s.message()));
    }
  }
  return absl::OkStatus();
}

absl::Status UniqueGuard::CheckIndex(const FollowedIndex& index, const RowChanges& changes) {
  if (!follower_->Current(index).ok()) return absl::OkStatus();  // not ready
  SettledChanges settled;
  settled.Settle(changes);
  for (const RowChange& row : settled.rows()) {
    if (row.kind != RowChangeKind::kLookUp) continue;
    return absl::UnimplementedError(absl::StrFormat(
        "it is unique, and what a merge operand makes of row %s cannot be told before it is "
        "written: write the value",
        Quoted(row.key)));
  }
  ASSIGN_OR_RETURN(ChangeExtractor extractor, ChangeExtractor::Create(index.spec()));
  RowUpdates updates(index.codec().kind());
  RETURN_IF_ERROR(extractor.Extract(settled, nullptr, &updates));
  const std::shared_ptr<const IndexVersion> version = index.writer()->version();
  return CheckUnique(*version, *version->delta, updates);
}

}  // namespace cairn
