#include "engine/live/index_set.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "engine/live/can_follow.h"
#include "engine/live/live_index.h"
#include "engine/shards/lookup.h"
#include "engine/shards/open_index.h"
#include "engine/source/db_source.h"
#include "engine/util/status.h"
#include "index/files/index_directory.h"
#include "index/keys/escaped_text.h"
#include "index/machine/guard.h"
#include "index/machine/status_macros.h"

namespace cairn {
namespace {

// Reads the spec of an index in the catalog; it may be damaged.
absl::StatusOr<IndexSpec> ReadSpec(const IndexCatalog& catalog, const FollowedIndex& index) {
  const std::string& directory = index.directory();
  std::string text = index.marked_spec();
  if (text.empty()) {
    ASSIGN_OR_RETURN(Manifest manifest, ReadManifest(directory, catalog.files()));
    text = manifest.spec;
  }
  ASSIGN_OR_RETURN(IndexSpec spec, IndexSpec::Parse(text));
  if (spec.name != index.name()) {
    return absl::FailedPreconditionError(absl::StrFormat(
        "directory '%s' contains the index %s, which was built in another directory", directory,
        Quoted(spec.name)));
  }
  return spec;
}

// Completes the spec of a new index with the name of the column family.
absl::StatusOr<IndexSpec> ResolveSpec(const IndexSpec& spec,
                                      const rocksdb::ColumnFamilyHandle& column_family) {
  RETURN_IF_ERROR(CheckIndexName(spec.name));
  IndexSpec resolved = spec;
  if (spec.column_family == "default") resolved.column_family = column_family.GetName();
  if (resolved.column_family != column_family.GetName()) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "index %s belongs to column family %s: pass CreateIndex its handle, not that of %s",
        Quoted(spec.name), Quoted(spec.column_family), Quoted(column_family.GetName())));
  }
  RETURN_IF_ERROR(resolved.Codec().status());
  // The spec is stored as text.
  if (const auto parsed = IndexSpec::Parse(resolved.ToString());
      !parsed.ok() || parsed->ToString() != resolved.ToString()) {
    return absl::InvalidArgumentError(
        absl::StrFormat("index %s: its spec cannot be written as text: %s", Quoted(spec.name),
                        parsed.ok() ? resolved.ToString() : parsed.status().message()));
  }
  return resolved;
}

// Returns the name of the first setting in which two specs of one name differ; empty if they are
// equal.
std::string SpecDifference(const IndexSpec& there, const IndexSpec& wanted) {
  if (there.ToString() == wanted.ToString()) return std::string();
  // Each function copies one setting. Specs are compared as text, which shows settings as users
  // write them.
  using Take = void (*)(const IndexSpec&, IndexSpec*);
  constexpr std::pair<const char*, Take> kSettings[] = {
      {"column family",
       [](const IndexSpec& from, IndexSpec* to) { to->column_family = from.column_family; }},
      {"key", [](const IndexSpec& from, IndexSpec* to) { to->parts = from.parts; }},
      {"unique", [](const IndexSpec& from, IndexSpec* to) { to->unique = from.unique; }},
      {"nulls", [](const IndexSpec& from, IndexSpec* to) { to->nulls = from.nulls; }},
      {"on_error", [](const IndexSpec& from, IndexSpec* to) { to->on_error = from.on_error; }},
      {"dropped_rows",
       [](const IndexSpec& from, IndexSpec* to) { to->dropped_rows = from.dropped_rows; }},
      {"included columns",
       [](const IndexSpec& from, IndexSpec* to) { to->include = from.include; }},
  };
  for (const auto& [name, take] : kSettings) {
    IndexSpec changed = there;
    take(wanted, &changed);
    if (changed.ToString() == there.ToString()) continue;
    return name;
  }
  return "spec";
}

// Returns the database to index. If the layers above the root database keep values, that is the
// root database.
rocksdb::DB* IndexedDatabaseOf(rocksdb::DB* db, const IndexedDBOptions& options) {
  return options.layers_keep_values ? db->GetRootDB() : db;
}

}  // namespace

IndexSet::IndexSet(rocksdb::DB* db, absl::Span<rocksdb::ColumnFamilyHandle* const> handles,
                   IndexedDBOptions options, IndexCatalog catalog)
    : db_(IndexedDatabaseOf(db, options)),
      options_(std::move(options)),
      catalog_(std::move(catalog)),
      event_log_(db->GetDBOptions().info_log, options_.listeners),
      indexes_(db->GetName()),
      follower_(std::make_shared<LogFollower>(
          db_, LiveLog::Of(db_, handles),
          [this](const std::shared_ptr<FollowedIndex>& index, const absl::Status& why) {
            upkeep_.Lost(index, why);
          })),
      retention_(db_, options_.log_retention_megabytes << 20),
      upkeep_(
          db_, options_, &catalog_, follower_.get(), &retention_, &past_log_,
          [this](FollowedIndex* index) { return Define(index); },
          [this](FollowedIndex* index, absl::FunctionRef<absl::Status()> make_ready) {
            return guard_.Admit(index, make_ready);
          }),
      guard_(db, db_, follower_.get()),
      work_(db_, options_, &indexes_, follower_.get(), &retention_, &views_) {}

IndexSet::~IndexSet() {
  Close();
}

absl::Status IndexSet::Start(absl::Span<rocksdb::ColumnFamilyHandle* const> handles,
                             bool reports_failed_writes) {
  failed_writes_show_ = !FailedWritesKeepNumbers(db_->GetDBOptions());
  // MakeDurable needs the listener's reports of flushes, too. A layer that turns writes into
  // transactions writes another batch, whose number is unknown.
  follows_unlogged_ = reports_failed_writes && guard_.db() == guard_.db()->GetRootDB();
  refused_ = CheckDatabaseOptions(db_, reports_failed_writes);
  ASSIGN_OR_RETURN(const std::vector<IndexCatalog::Entry> entries, catalog_.List());
  {
    const MutexLock lock(&handles_mutex_);
    for (rocksdb::ColumnFamilyHandle* handle : handles) handles_.emplace(handle->GetName(), handle);
    handles_["default"] = db_->DefaultColumnFamily();  // owned by the database
  }
  IndexList::Indexes indexes;
  for (const IndexCatalog::Entry& entry : entries) {
    const auto index =
        std::make_shared<FollowedIndex>(entry.name, &catalog_, entry.mark, &event_log_);
    Add(index);
    if (refused_.ok()) {
      indexes.push_back(index);
      continue;
    }
    // A later opening of the database must not use the stored state either.
    Define(index.get()).IgnoreError();
    index->Distrust(std::string(refused_.message()));
    index->Set(IndexState::kFailed, refused_);
  }
  upkeep_.Start(indexes);
  work_.Start();
  return absl::OkStatus();
}

absl::Status IndexSet::Define(FollowedIndex* index) {
  ASSIGN_OR_RETURN(IndexSpec spec, ReadSpec(catalog_, *index));
  ASSIGN_OR_RETURN(KeyCodec codec, spec.Codec());
  const std::string family = spec.column_family;
  rocksdb::ColumnFamilyHandle* handle = nullptr;
  std::optional<uint32_t> id;  // from the MANIFEST, if there is no handle
  for (bool defined = false; !defined;) {
    {
      const MutexLock lock(&handles_mutex_);
      const auto found = handles_.find(family);
      handle = found == handles_.end() ? nullptr : found->second;
      defined = handle != nullptr || id.has_value();
      if (defined) {
        index->Define(spec, codec, handle, handle == nullptr ? *id : handle->GetID());
      }
    }
    if (!defined) {
      ASSIGN_OR_RETURN(id, follower_->FamilyId(family));
    }
  }
  WatchUnique();  // also without a handle: rows that cannot be checked are refused
  if (handle != nullptr) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrFormat("there is no handle of its column family %s", Quoted(family)));
}

void IndexSet::Close() {
  EndWork();
  event_log_.Stop(/*deliver=*/true);
}

void IndexSet::EndWork() {
  const MutexLock lock(&names_mutex_);
  if (closed_) return;
  closed_ = true;
  EndThreads();
  FlushIfNoLogIsKept();
  // Changes that are not stored are read from the log later.
  Guarded("storing indexes", [&] { return work_.StoreAll(); }).IgnoreError();
  for (auto index = indexes_.After(nullptr); index != nullptr; index = indexes_.After(&*index)) {
    const MutexLock work_lock(index->work_mutex());
    index->End(absl::FailedPreconditionError("the database has been closed"));
    index->LetGoOfDirectory();
  }
  follower_->Close();
  retention_.Close();
  groups_.Clear();
  views_.Clear();
}

void IndexSet::FlushIfNoLogIsKept() {
  const rocksdb::DBOptions options = db_->GetDBOptions();
  if (options.WAL_ttl_seconds > 0 || options.WAL_size_limit_MB > 0) return;
  // Must happen before a flush makes the log obsolete. Otherwise the index is rebuilt when the
  // database is opened the next time, which is not an error of Close.
  follower_->Follow().IgnoreError();
  for (auto index = indexes_.After(nullptr); index != nullptr; index = indexes_.After(&*index)) {
    const auto column_family = index->HoldColumnFamily();
    if (!index->Ready().ok()) continue;
    const rocksdb::Status flushed = db_->Flush(rocksdb::FlushOptions(), index->column_family());
    flushed.PermitUncheckedError();
  }
}

void IndexSet::EndThreads() {
  const MutexLock lock(&threads_mutex_);
  for (auto index = indexes_.After(nullptr); index != nullptr; index = indexes_.After(&*index)) {
    index->Cancel();
  }
  work_.Stop();
  upkeep_.Stop();
}

bool IndexSet::LimitBacklog(const rocksdb::WriteOptions& options) {
  work_.ExpectWrite();
  if (options_.max_backlog <= absl::ZeroDuration()) return true;
  absl::Duration waited;
  if (!follower_->LimitBacklog(options_.max_backlog, /*may_wait=*/!options.no_slowdown, &waited)) {
    event_log_.NoteRefusal();
    return false;
  }
  if (waited > absl::ZeroDuration()) event_log_.NoteWait(waited);
  return true;
}

absl::Status IndexSet::CheckOpen() const {
  return closed_ ? absl::FailedPreconditionError("the database has been closed") : absl::OkStatus();
}

absl::Status IndexSet::CheckMayBuild() const {
  RETURN_IF_ERROR(CheckOpen());
  return refused_;
}

void IndexSet::Add(const std::shared_ptr<FollowedIndex>& index) {
  IndexList::Indexes all = indexes_.All();
  all.push_back(index);
  upkeep_.MakeRoomFor(all.size());
  const MutexLock lock(&watch_mutex_);
  guard_.Watch(all);  // an index that is then not added is harmless
  indexes_.Add(index);
}

void IndexSet::WatchUnique() {
  const MutexLock lock(&watch_mutex_);
  guard_.Watch(indexes_.All());
}

absl::StatusOr<bool> IndexSet::IsThere(const IndexSpec& spec,
                                       const CreateIndexOptions& options) const {
  const auto found = indexes_.Find(spec.name);
  if (!found.ok()) return false;
  const FollowedIndex& index = **found;
  if (!options.if_not_exists) {
    return absl::AlreadyExistsError(absl::StrFormat("database '%s' has an index %s already",
                                                    db_->GetName(), Quoted(spec.name)));
  }
  if (index.wanted() == IndexMark::Kind::kRemoved) {
    return absl::AlreadyExistsError(
        absl::StrFormat("index %s was dropped, and its files could not be removed; drop it again",
                        Quoted(spec.name)));
  }
  if (!index.is_defined()) {
    return absl::AlreadyExistsError(
        absl::StrFormat("index %s exists, and its spec cannot be read: %s", Quoted(spec.name),
                        index.why().message()));
  }
  const std::string difference = SpecDifference(index.spec(), spec);
  if (difference.empty()) return true;
  return absl::AlreadyExistsError(
      absl::StrFormat("index %s exists with a different %s: expected '%s', got '%s'",
                      Quoted(spec.name), difference, index.spec().ToString(), spec.ToString()));
}

absl::StatusOr<std::shared_ptr<FollowedIndex>> IndexSet::MakeIndex(
    IndexSpec spec, rocksdb::ColumnFamilyHandle* column_family) {
  ASSIGN_OR_RETURN(KeyCodec codec, spec.Codec());
  RETURN_IF_ERROR(CheckCanFollow(db_, column_family, spec));
  return std::make_shared<FollowedIndex>(std::move(spec), std::move(codec), &catalog_, IndexMark(),
                                         column_family, &event_log_);
}

absl::Status IndexSet::CreateIndexes(absl::Span<const IndexSpec> specs,
                                     rocksdb::ColumnFamilyHandle* column_family,
                                     const CreateIndexOptions& options) {
  if (column_family == nullptr || column_family->GetID() == 0) {
    column_family = db_->DefaultColumnFamily();  // owned by the database
  }
  IndexList::Indexes indexes;
  for (const IndexSpec& spec : specs) {
    ASSIGN_OR_RETURN(IndexSpec resolved, ResolveSpec(spec, *column_family));
    for (const auto& other : indexes) {
      if (other->name() != resolved.name) continue;
      return absl::AlreadyExistsError(
          absl::StrFormat("index %s is listed twice", Quoted(resolved.name)));
    }
    {
      const MutexLock lock(&names_mutex_);
      ASSIGN_OR_RETURN(const bool is_there, IsThere(resolved, options));
      if (is_there) continue;
    }
    ASSIGN_OR_RETURN(std::shared_ptr<FollowedIndex> index,
                     MakeIndex(std::move(resolved), column_family));
    indexes.push_back(std::move(index));
  }
  if (indexes.empty()) return CheckOpen();
  // Some databases, such as secondary instances, return snapshots that they cannot read.
  RETURN_IF_ERROR(SnapshotSource::FromDb(db_, column_family).status());

  const MutexLock lock(&names_mutex_);
  RETURN_IF_ERROR(CheckMayBuild());
  for (size_t i = 0; i < indexes.size();) {
    ASSIGN_OR_RETURN(const bool is_there, IsThere(indexes[i]->spec(), options));
    if (is_there) {  // another call has created it concurrently
      indexes.erase(indexes.begin() + static_cast<std::ptrdiff_t>(i));
    } else {
      ++i;
    }
  }
  absl::Status s = Guarded("creating an index", [&] {
    for (const auto& index : indexes) RETURN_IF_ERROR(index->MarkBuild("it was created"));
    upkeep_.MakeRoomFor(indexes_.All().size() + indexes.size());
    for (const auto& index : indexes) Add(index);
    return absl::OkStatus();
  });
  if (!s.ok()) {
    for (const auto& index : indexes) {
      indexes_.Remove(index->name());
      Guarded("creating an index", [&] {
        return catalog_.Mark(index->name(), IndexMark());
      }).IgnoreError();
    }
    return s;
  }
  upkeep_.Work(indexes);
  return absl::OkStatus();
}

absl::Status IndexSet::RebuildIndex(const std::string& name) {
  const MutexLock lock(&names_mutex_);
  RETURN_IF_ERROR(CheckMayBuild());
  ASSIGN_OR_RETURN(std::shared_ptr<FollowedIndex> index, indexes_.Find(name));
  if (index->column_family() == nullptr || index->cancelled()) return index->Ready().status();
  const absl::Status why = absl::UnavailableError("RebuildIndex was called");
  RETURN_IF_ERROR(index->MarkRebuild(std::string(why.message())));
  upkeep_.Rebuild(index, why);
  return absl::OkStatus();
}

absl::Status IndexSet::DropIndex(const std::string& name) {
  const MutexLock lock(&names_mutex_);
  RETURN_IF_ERROR(CheckOpen());
  ASSIGN_OR_RETURN(std::shared_ptr<FollowedIndex> index, indexes_.Find(name));
  absl::Status dropped = absl::NotFoundError(absl::StrFormat("index %s was dropped", Quoted(name)));
  // From here on the index does not come back.
  RETURN_IF_ERROR(index->MarkRemoved());
  index->End(std::move(dropped));
  index->Cancel();
  follower_->Leave(*index);
  const MutexLock work_lock(index->work_mutex());
  follower_->Leave(*index);  // if it has just joined
  index->LetGoOfDirectory();
  groups_.Clear();
  views_.Clear();
  RETURN_IF_ERROR(catalog_.Remove(name));  // if this fails, the index can be dropped again
  indexes_.Remove(name);
  // The index is no longer ready, so it is harmless if it stays watched.
  const auto stop_watching = [&] { return WatchUnique(), absl::OkStatus(); };
  Guarded("dropping an index", stop_watching).IgnoreError();
  return absl::OkStatus();
}

absl::Status IndexSet::CompactIndex(const std::string& name) {
  absl::StatusOr<std::shared_ptr<FollowedIndex>> index = indexes_.Find(name);
  return index.ok() ? work_.Compact(index->get()) : index.status();
}

absl::Status IndexSet::WaitUntilReady(const std::string& name, absl::Duration timeout) const {
  ASSIGN_OR_RETURN(const std::shared_ptr<FollowedIndex> index, indexes_.Find(name));
  const absl::Time deadline = absl::Now() + timeout;
  const StopCondition stop{nullptr, deadline};
  while (true) {
    RETURN_IF_ERROR(index->Wait(deadline));
    if (timeout <= absl::ZeroDuration()) return absl::OkStatus();
    const auto current = follower_->CurrentIfReady(*index, stop);
    if (absl::IsDeadlineExceeded(current.status())) {
      return absl::DeadlineExceededError(absl::StrFormat(
          "index %s is ready, but has not read the log up to the call", Quoted(name)));
    }
    if (!current.ok()) return current.status();
    if (*current != nullptr) return absl::OkStatus();
    // The log has what makes the index stale. Its repair has begun, or there is none.
  }
}

void IndexSet::ListIndexes(std::vector<IndexInfo>* infos) const {
  const absl::Time current_at = follower_->current_at();
  for (const auto& index : indexes_.All()) {
    IndexInfo info = index->Info();
    const absl::StatusOr<SequenceNumber> latest = follower_->Latest();  // fails once closed
    if (latest.ok()) info.sequence_lag = *latest - std::min(*latest, info.sequence);
    if (info.state == IndexState::kReady) {
      info.time_lag = info.sequence_lag == 0 ? absl::ZeroDuration() : absl::Now() - current_at;
    }
    infos->push_back(std::move(info));
  }
}

absl::Status IndexSet::FlushIndexes() {
  RETURN_IF_ERROR(CheckOpen());
  return work_.StoreAll();
}

rocksdb::Status IndexSet::Write(const rocksdb::WriteOptions& options, rocksdb::WriteBatch* batch,
                                std::shared_ptr<const rocksdb::WriteBatch> same) {
  if (!options.disableWAL || batch == nullptr) return guard_.Write(options, batch);
  if (follows_unlogged_) {
    if (!begun_unlogged_) [[unlikely]] {
      if (absl::Status s = BeginUnlogged(); !s.ok()) return ToRocksDb(s);
    }
    return guard_.Write(options, batch,
                        [&] { return WriteUnlogged(options, batch, std::move(same)); });
  }
  // Unique indexes check the batch before they are suspended. If the write fails, some of its rows
  // may still be applied.
  return guard_.Write(options, batch, [&] {
    return ChangePastLog({{}, /*all=*/true},
                         "the database was written to with WriteOptions::disableWAL",
                         /*is_atomic=*/false, [&] { return guard_.db()->Write(options, batch); });
  });
}

absl::Status IndexSet::BeginUnlogged() {
  const MutexLock lock(&unlogged_mutex_);
  if (begun_unlogged_) return absl::OkStatus();
  const LiveLog& live = follower_->live_log();
  const bool may_repeat = !live.HasAllNumbers(db_).value_or(false);
  for (const auto& index : indexes_.All()) {
    if (index->wanted() != IndexMark::Kind::kNone) continue;
    const auto is_stored = [&] {
      const absl::StatusOr<std::shared_ptr<IndexWriter>> ready = index->Ready();
      return ready.ok() && (*ready)->stored_sequence() >= live.sequence;
    };
    if (!may_repeat && is_stored()) continue;
    if (!may_repeat && index->Ready().ok() && index->work_mutex()->TryLock()) {
      const MutexLock work_lock(index->work_mutex(), std::adopt_lock);
      if (follower_->Current(*index).ok() && work_.Store(index.get()).ok() && is_stored()) continue;
    }
    RETURN_IF_ERROR(index->MarkStale(
        "the database was written to with WriteOptions::disableWAL, and the write may have the "
        "number of one in the log"));
  }
  begun_unlogged_ = true;
  return absl::OkStatus();
}

rocksdb::Status IndexSet::WriteUnlogged(const rocksdb::WriteOptions& options,
                                        rocksdb::WriteBatch* batch,
                                        std::shared_ptr<const rocksdb::WriteBatch> same) {
  if (absl::Status s = CheckOpen(); !s.ok()) return ToRocksDb(s);
  if (same == nullptr) same = std::make_shared<const rocksdb::WriteBatch>(batch->Data());
  UnloggedWrites::Write write(&follower_->unlogged(), std::move(same));
  const SequenceNumber before = db_->GetLatestSequenceNumber();
  rocksdb::Status written = guard_.db()->Write(options, batch);
  // If a failed write has taken numbers, they are missing, which the follower notices.
  if (!written.ok() || batch->Count() == 0) return written;
  // RocksDB stores the number of the first record in the batch.
  SequenceNumber first = 0;
  std::memcpy(&first, batch->Data().data(), sizeof first);
  if (first > before && first + batch->Count() - 1 <= db_->GetLatestSequenceNumber()) {
    write.Succeed(first);
  } else {
    follower_->Doubt();
  }
  return written;
}

}  // namespace cairn
