#include "engine/live/unique_guard.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <thread>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_format.h"
#include "absl/types/span.h"
#include "cairn/snapshot_source.h"
#include "engine/live/event_log.h"
#include "engine/log/settled_changes.h"
#include "engine/log/write_batch_reader.h"
#include "engine/serve/change_extractor.h"
#include "engine/serve/existing_rows.h"
#include "engine/util/status.h"
#include "engine/version/unique_check.h"
#include "index/keys/escaped_text.h"
#include "index/keys/key_nulls.h"
#include "index/machine/status_macros.h"

namespace cairn {
namespace {

// How often an index that waits to be ready checks whether it has been cancelled.
constexpr std::chrono::milliseconds kCancelledInterval(10);

// Returns a key of an index as one string.
std::string ReservedKey(const FollowedIndex& index, const EncodedKeys& keys, size_t i) {
  std::string text = index.name();
  text += '\0';
  const auto append = [&](auto number) {
    text.append(reinterpret_cast<const char*>(&number), sizeof number);
  };
  switch (keys.kind()) {
    case PhysicalType::kU32:
      append(keys.u32(i));
      break;
    case PhysicalType::kU64:
      append(keys.u64(i));
      break;
    case PhysicalType::kBytes:
      text.append(keys.bytes(i));
      break;
  }
  return text;
}

absl::Status OfIndex(const FollowedIndex& index, const absl::Status& status) {
  return absl::Status(status.code(),
                      absl::StrFormat("index %s: %s", Quoted(index.name()), status.message()));
}

// Extracts the rows that the changes put, with their keys.
absl::Status ExtractRows(const FollowedIndex& index, const SettledChanges& settled,
                         RowUpdates* updates) {
  for (const RowChange& row : settled.rows()) {
    if (row.kind != RowChangeKind::kLookUp) continue;
    return absl::UnimplementedError(
        "the index is unique, and the result of a merge operand is unknown before the write; write "
        "the value");
  }
  ASSIGN_OR_RETURN(ChangeExtractor extractor, ChangeExtractor::Create(index.spec()));
  return extractor.Extract(settled, nullptr, updates);
}

}  // namespace

void UniqueGuard::Watch(const std::vector<std::shared_ptr<FollowedIndex>>& indexes) {
  auto unique = std::make_shared<Indexes>();
  for (const auto& index : indexes) {
    if (index->spec().unique) unique->push_back(index);
  }
  const MutexLock lock(&watched_mutex_);
  std::erase_if(former_, [](const auto& list) { return list.expired(); });
  if (watched_ != nullptr) former_.push_back(watched_);
  watched_ = std::move(unique);
  idle_.store(watched_->empty());
}

rocksdb::Status UniqueGuard::Write(const rocksdb::WriteOptions& options, rocksdb::WriteBatch* batch,
                                   absl::FunctionRef<rocksdb::Status()> write) {
  if (batch == nullptr) return write();  // writes nothing
  if (BeginPast()) {
    const absl::Cleanup end = [&] { EndPast(); };
    return write();
  }
  const std::shared_ptr<const Indexes> indexes = watched();
  std::vector<Rows> rows;
  if (absl::Status s = ReadRows(*indexes, *batch, &rows); !s.ok()) return ToRocksDb(s);
  if (rows.empty()) return write();

  Hold hold;
  if (!Reserve(rows, !options.no_slowdown, &hold)) {
    return rocksdb::Status::Incomplete(
        "another write of the same key of a unique index is in progress (no_slowdown)");
  }
  const absl::Cleanup release = [&] { Release(hold); };
  for (const Rows& of_index : rows) {
    const bool unchecked = std::find(hold.unchecked.begin(), hold.unchecked.end(),
                                     of_index.index) != hold.unchecked.end();
    if (unchecked) continue;
    if (rocksdb::Status s = Check(of_index); !s.ok()) return s;
  }
  return write();
}

absl::Status UniqueGuard::ReadRows(const Indexes& indexes, const rocksdb::WriteBatch& batch,
                                   std::vector<Rows>* rows) const {
  std::vector<uint32_t> families;
  for (const auto& index : indexes) families.push_back(index->column_family_id());
  std::sort(families.begin(), families.end());
  families.erase(std::unique(families.begin(), families.end()), families.end());
  std::vector<RowChanges> changes(families.size());
  const OrderOfFamily order_of = OrdersOfFamilies(stored_);
  std::vector<FollowedFamily> followed;
  for (const uint32_t id : families) {
    const auto index = std::find_if(indexes.begin(), indexes.end(), [&](const auto& other) {
      return other->column_family_id() == id && other->order().has_value();
    });
    followed.push_back({id, index == indexes.end() ? order_of(id) : *(*index)->order()});
  }
  WriteBatchReader reader(std::move(followed), nullptr, order_of);
  RETURN_IF_ERROR(reader.Read(batch, absl::MakeSpan(changes)).status());
  for (const auto& index : indexes) {
    const auto family = std::find(families.begin(), families.end(), index->column_family_id());
    const RowChanges& its_changes = changes[static_cast<size_t>(family - families.begin())];
    if (its_changes.empty()) continue;
    SettledChanges settled;
    settled.Settle(its_changes);
    if (std::all_of(settled.rows().begin(), settled.rows().end(),
                    [](const RowChange& row) { return row.kind == RowChangeKind::kDelete; })) {
      continue;
    }
    Rows of_index{index.get(), RowUpdates(index->codec().kind()), absl::OkStatus()};
    of_index.status = ExtractRows(*index, settled, &of_index.updates);
    rows->push_back(std::move(of_index));
  }
  return absl::OkStatus();
}

bool UniqueGuard::MustWait(const std::vector<Rows>& rows,
                           const std::vector<std::string>& keys) const {
  for (const std::string& key : keys) {
    if (reserved_.contains(key)) return true;
  }
  for (const Rows& of_index : rows) {
    const auto found = std::find(admitting_.begin(), admitting_.end(), of_index.index);
    if (found != admitting_.end()) return true;
  }
  return false;
}

bool UniqueGuard::Reserve(const std::vector<Rows>& rows, bool may_wait, Hold* hold) {
  std::vector<std::string> keys;
  for (const Rows& of_index : rows) {
    if (!of_index.status.ok()) continue;
    const EncodedKeys& column = of_index.updates.keys;
    const KeyCodec& codec = of_index.index->codec();
    for (size_t i = 0; i < column.size(); ++i) {
      // A key with a null is not equal to any key.
      if (codec.nulls() != NullPolicy::kSkip && HasNull(codec, column, i).value_or(false)) continue;
      keys.push_back(ReservedKey(*of_index.index, column, i));
    }
  }
  std::sort(keys.begin(), keys.end());
  keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
  std::vector<const FollowedIndex*> unchecked;
  unchecked.reserve(rows.size());

  MutexLock lock(&mutex_);
  while (MustWait(rows, keys)) {
    if (!may_wait) return false;
    released_.Wait(&lock);
  }
  for (const Rows& of_index : rows) {
    if (of_index.index->has_been_ready()) continue;
    unchecked_.try_emplace(of_index.index, 0);  // 0 counts as none
    unchecked.push_back(of_index.index);
  }
  for (size_t i = 0; i < keys.size(); ++i) {
    try {
      reserved_.insert(keys[i]);
    } catch (...) {
      while (i > 0) reserved_.erase(keys[--i]);
      throw;
    }
  }
  for (const FollowedIndex* index : unchecked) ++unchecked_[index];
  hold->keys = std::move(keys);
  hold->unchecked = std::move(unchecked);
  return true;
}

void UniqueGuard::Release(const Hold& hold) {
  const MutexLock lock(&mutex_);
  for (const std::string& key : hold.keys) reserved_.erase(key);
  for (const FollowedIndex* index : hold.unchecked) {
    const auto count = unchecked_.find(index);
    if (--count->second == 0) unchecked_.erase(count);
  }
  released_.NotifyAll();
}

bool UniqueGuard::IsMissedByWrites(const FollowedIndex& index) {
  if (past_.load() > 0) return true;
  const MutexLock lock(&watched_mutex_);
  return std::any_of(former_.begin(), former_.end(), [&](const auto& former) {
    const std::shared_ptr<const Indexes> list = former.lock();
    return list != nullptr && std::none_of(list->begin(), list->end(),
                                           [&](const auto& i) { return i.get() == &index; });
  });
}

absl::Status UniqueGuard::Admit(FollowedIndex* index,
                                absl::FunctionRef<absl::Status()> make_ready) {
  if (!index->spec().unique) return make_ready();
  // New writes are not delayed yet: a write that is awaited here may wait for another admission.
  while (IsMissedByWrites(*index) && !index->cancelled()) {
    std::this_thread::sleep_for(kCancelledInterval);
  }
  {
    MutexLock lock(&mutex_);
    admitting_.push_back(index);
    const auto is_written_to = [&] {
      mutex_.AssertHeld();
      const auto count = unchecked_.find(index);
      return count != unchecked_.end() && count->second > 0;
    };
    while (is_written_to() && !index->cancelled()) {
      released_.WaitUntil(&lock, std::chrono::steady_clock::now() + kCancelledInterval);
    }
  }
  const absl::Cleanup admitted = [&] {
    const MutexLock lock(&mutex_);
    admitting_.erase(std::find(admitting_.begin(), admitting_.end(), index));
    released_.NotifyAll();
  };
  if (index->cancelled()) return absl::CancelledError("the index was cancelled");
  RETURN_IF_ERROR(follower_->Follow());
  if (index->state() != IndexState::kCatchingUp) {
    return absl::AbortedError("the index was lost as it became ready");
  }
  return make_ready();
}

rocksdb::Status UniqueGuard::Check(const Rows& rows) {
  const FollowedIndex& index = *rows.index;
  const auto column_family = index.HoldColumnFamily();  // must outlive `source`
  const absl::StatusOr<std::shared_ptr<const IndexVersion>> version = follower_->Current(index);
  if (!version.ok()) {
    return rocksdb::Status::TryAgain(
        absl::StrFormat("rows cannot be written, because unique index %s cannot check them: %s",
                        Quoted(index.name()), version.status().message()));
  }
  if (!rows.status.ok()) return ToRocksDb(OfIndex(index, ShownError(db_, rows.status)));
  // Reads the row that already has the key before reporting it, because a compaction filter may
  // have removed or changed it.
  std::unique_ptr<SnapshotSource> source;
  const auto row_has_key = [&](std::string_view primary_key, const EncodedKeys& keys,
                               size_t i) -> absl::StatusOr<bool> {
    if (source == nullptr) {
      ASSIGN_OR_RETURN(source, SnapshotSource::FromDb(stored_, index.column_family()));
    }
    return ExistingRowHasKey(*source, index.spec(), primary_key, keys, i);
  };
  absl::Status s = CheckUnique(**version, *(*version)->delta, rows.updates, row_has_key);
  return s.ok() ? rocksdb::Status::OK() : ToRocksDb(OfIndex(index, ShownError(db_, s)));
}

}  // namespace cairn
