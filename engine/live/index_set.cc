#include "engine/live/index_set.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "engine/change_extractor.h"
#include "engine/live/live_index.h"
#include "engine/log/update_log.h"
#include "engine/open_index.h"
#include "engine/util/status.h"
#include "index/escaped_text.h"
#include "index/index_directory.h"
#include "index/topology.h"

namespace cairn {
namespace {

// A merge that fails is tried again after IndexedDBOptions::merge_interval, then after twice as
// long, and so on up to this.
constexpr absl::Duration kLongestMergeWait = absl::Minutes(1);

// The spec of an index, which may be damaged.
absl::StatusOr<IndexSpec> ReadSpec(const IndexCatalog& catalog, const std::string& name) {
  const std::string directory = catalog.DirectoryOf(name);
  const absl::StatusOr<Manifest> manifest = ReadManifest(directory, catalog.files());
  if (!manifest.ok()) return manifest.status();
  absl::StatusOr<IndexSpec> spec = IndexSpec::Parse(manifest->spec);
  if (!spec.ok()) return spec.status();
  if (spec->name != name) {
    return absl::FailedPreconditionError(absl::StrFormat(
        "the index in '%s' is %s: it was built elsewhere", directory, Quoted(spec->name)));
  }
  return spec;
}

// Whether an index with this spec can be built and followed, as far as can be told beforehand.
absl::Status CheckCanFollow(rocksdb::DB* db, rocksdb::ColumnFamilyHandle* column_family,
                            const IndexSpec& spec) {
  if (absl::Status s = ChangeExtractor::Create(spec).status(); !s.ok()) return s;
  if (absl::Status s = SnapshotSource::FromDb(db, column_family).status(); !s.ok()) return s;
  const SequenceNumber now = db->GetLatestSequenceNumber();
  return UpdateLog::Open(db, absl::MakeConstSpan(&column_family, 1), now, now).status();
}

}  // namespace

IndexSet::IndexSet(rocksdb::DB* db, IndexedDBOptions options, IndexCatalog catalog)
    : db_(db),
      options_(std::move(options)),
      catalog_(std::move(catalog)),
      follower_(std::make_shared<LogFollower>(
          db, [this](const std::shared_ptr<FollowedIndex>& index) { upkeep_.Repair(index); })),
      retention_(db),
      upkeep_(db, options_, &catalog_, follower_.get()),
      guard_(db, follower_.get()) {}

IndexSet::~IndexSet() {
  Close();
}

absl::Status IndexSet::Start(absl::Span<rocksdb::ColumnFamilyHandle* const> handles) {
  const absl::StatusOr<std::vector<IndexCatalog::Entry>> entries = catalog_.List();
  if (!entries.ok()) return entries.status();
  for (const IndexCatalog::Entry& entry : *entries) Open(entry, handles);
  following_ =
      std::make_unique<Periodically>(options_.follow_interval, [this] { FollowInBackground(); });
  storing_ =
      std::make_unique<Periodically>(options_.store_interval, [this] { StoreInBackground(); });
  merging_ = std::make_unique<Periodically>(options_.merge_interval, [this] { MergeWhatPays(); });
  return absl::OkStatus();
}

void IndexSet::Open(const IndexCatalog::Entry& entry,
                    absl::Span<rocksdb::ColumnFamilyHandle* const> handles) {
  const std::string directory = catalog_.DirectoryOf(entry.name);
  absl::StatusOr<IndexSpec> spec = ReadSpec(catalog_, entry.name);
  absl::StatusOr<KeyCodec> codec = spec.ok() ? spec->Codec() : spec.status();
  if (!codec.ok()) {
    // Something by its name must stand for it, to say why, and to be dropped.
    IndexSpec unknown;
    unknown.name = entry.name;
    unknown.parts.emplace_back();
    const auto index =
        std::make_shared<FollowedIndex>(unknown, *unknown.Codec(), directory, nullptr);
    index->Set(IndexState::kFailed, codec.status());
    return Add(index);
  }
  rocksdb::ColumnFamilyHandle* column_family = nullptr;
  if (spec->column_family == "default") column_family = db_->DefaultColumnFamily();
  for (rocksdb::ColumnFamilyHandle* handle : handles) {
    if (column_family == nullptr && handle->GetName() == spec->column_family)
      column_family = handle;
  }
  const auto index = std::make_shared<FollowedIndex>(*spec, *codec, directory, column_family);
  Add(index);
  if (column_family == nullptr) {
    index->Set(IndexState::kFailed,
               absl::FailedPreconditionError(absl::StrFormat(
                   "there is no handle of its column family %s", Quoted(spec->column_family))));
  } else if (!entry.stale.empty()) {
    index->disruptions = 1;
    index->Set(IndexState::kStale, absl::FailedPreconditionError(entry.stale));
    upkeep_.Repair(index);
  } else {
    upkeep_.CatchUp(index);
  }
}

void IndexSet::Close() {
  if (closed_.exchange(true)) return;
  const Indexes indexes = All();
  for (const auto& index : indexes) index->cancelled = true;
  following_ = nullptr;
  storing_ = nullptr;
  merging_ = nullptr;
  upkeep_.Stop();
  StoreIndexes().IgnoreError();  // what is not stored is read from the log
  follower_->Close();
  for (const auto& index : indexes) {
    index->Set(IndexState::kFailed, absl::FailedPreconditionError("the database has been closed"));
  }
}

absl::StatusOr<std::shared_ptr<FollowedIndex>> IndexSet::Find(const std::string& name) const {
  const std::lock_guard<std::mutex> lock(indexes_mutex_);
  const auto found = indexes_.find(name);
  if (found != indexes_.end()) return found->second;
  return absl::NotFoundError(
      absl::StrFormat("database '%s' has no index %s", db_->GetName(), Quoted(name)));
}

IndexSet::Indexes IndexSet::All() const {
  const std::lock_guard<std::mutex> lock(indexes_mutex_);
  Indexes all;
  for (const auto& [name, index] : indexes_) all.push_back(index);
  return all;
}

IndexSet::Indexes IndexSet::Of(
    absl::Span<rocksdb::ColumnFamilyHandle* const> column_families) const {
  Indexes found;
  for (const auto& index : All()) {
    for (const rocksdb::ColumnFamilyHandle* family : column_families) {
      if (family->GetID() != index->column_family_id()) continue;
      found.push_back(index);
      break;
    }
  }
  return found;
}

void IndexSet::Add(const std::shared_ptr<FollowedIndex>& index) {
  {
    const std::lock_guard<std::mutex> lock(indexes_mutex_);
    indexes_[index->name()] = index;
  }
  guard_.Watch(All());
}

absl::Status IndexSet::CreateIndex(const IndexSpec& spec,
                                   rocksdb::ColumnFamilyHandle* column_family) {
  if (absl::Status s = CheckIndexName(spec.name); !s.ok()) return s;
  if (column_family == nullptr || column_family->GetID() == 0) {
    column_family = db_->DefaultColumnFamily();  // which goes with the database
  }
  IndexSpec resolved = spec;
  if (spec.column_family == "default") resolved.column_family = column_family->GetName();
  if (resolved.column_family != column_family->GetName()) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "index %s is of column family %s, but the handle is of %s", Quoted(spec.name),
        Quoted(spec.column_family), Quoted(column_family->GetName())));
  }
  absl::StatusOr<KeyCodec> codec = resolved.Codec();
  if (!codec.ok()) return codec.status();
  // It is stored as text.
  if (const auto parsed = IndexSpec::Parse(resolved.ToString());
      !parsed.ok() || parsed->ToString() != resolved.ToString()) {
    return absl::InvalidArgumentError(
        absl::StrFormat("index %s has a spec that no text can say: %s", Quoted(spec.name),
                        parsed.ok() ? resolved.ToString() : parsed.status().message()));
  }
  if (absl::Status s = CheckCanFollow(db_, column_family, resolved); !s.ok()) return s;

  const std::lock_guard<std::mutex> lock(names_mutex_);
  if (closed_) return absl::FailedPreconditionError("the database has been closed");
  if (Find(spec.name).ok()) {
    return absl::AlreadyExistsError(absl::StrFormat("database '%s' has an index %s already",
                                                    db_->GetName(), Quoted(spec.name)));
  }
  if (absl::Status s = catalog_.MarkBuilding(spec.name); !s.ok()) return s;
  const auto index = std::make_shared<FollowedIndex>(
      std::move(resolved), *std::move(codec), catalog_.DirectoryOf(spec.name), column_family);
  Add(index);
  upkeep_.Build(index);
  return absl::OkStatus();
}

absl::Status IndexSet::RebuildIndex(const std::string& name) {
  const std::lock_guard<std::mutex> lock(names_mutex_);
  if (closed_) return absl::FailedPreconditionError("the database has been closed");
  absl::StatusOr<std::shared_ptr<FollowedIndex>> index = Find(name);
  if (!index.ok()) return index.status();
  if ((*index)->column_family() == nullptr || (*index)->cancelled) {
    return (*index)->Ready().status();
  }
  if ((*index)->writer() != nullptr) {
    if (absl::Status s = Disrupt(index->get(), "it was to be rebuilt"); !s.ok()) return s;
  }
  follower_->Leave(**index);
  (*index)->Set(IndexState::kStale, absl::UnavailableError("it is to be built anew"));
  upkeep_.Build(*index);
  return absl::OkStatus();
}

absl::Status IndexSet::DropIndex(const std::string& name) {
  const std::lock_guard<std::mutex> lock(names_mutex_);
  if (closed_) return absl::FailedPreconditionError("the database has been closed");
  absl::StatusOr<std::shared_ptr<FollowedIndex>> index = Find(name);
  if (!index.ok()) return index.status();
  (*index)->Drop();
  (*index)->cancelled = true;
  {
    const std::lock_guard<std::mutex> indexes_lock(indexes_mutex_);
    indexes_.erase(name);
  }
  guard_.Watch(All());
  follower_->Leave(**index);
  const std::lock_guard<std::mutex> work_lock((*index)->work_mutex);
  follower_->Leave(**index);  // where it has just joined
  absl::Status removed = catalog_.Remove(name);
  if (!removed.ok()) Add(*index);  // to be dropped again
  return removed;
}

absl::Status IndexSet::Store(FollowedIndex* index) {
  absl::Status s = index->writer()->Store();
  if (s.ok()) ++index->stores;
  index->NoteStore(s);
  return s;
}

absl::Status IndexSet::MergeIndex(const std::string& name) {
  absl::StatusOr<std::shared_ptr<FollowedIndex>> index = Find(name);
  return index.ok() ? Merge(index->get()) : index.status();
}

absl::Status IndexSet::Merge(FollowedIndex* index) {
  const std::lock_guard<std::mutex> lock(index->work_mutex);
  if (absl::Status s = index->Ready().status(); !s.ok()) return s;
  MergeOptions options;
  options.threads = options_.merge_threads > 0 ? options_.merge_threads
                                               : std::max(1, Topology::Get().cores() / 2);
  options.max_bytes_per_second = options_.merge_bytes_per_second;
  options.cancelled = &index->cancelled;
  absl::Status s = index->writer()->Merge(options);
  if (s.ok()) ++index->merges;
  index->NoteMerge(s);
  return s;
}

absl::Status IndexSet::WaitUntilReady(const std::string& name, absl::Duration timeout) const {
  absl::StatusOr<std::shared_ptr<FollowedIndex>> index = Find(name);
  return index.ok() ? (*index)->Wait(absl::Now() + timeout) : index.status();
}

absl::StatusOr<std::shared_ptr<const SecondaryIndex>> IndexSet::Index(
    const std::string& name) const {
  absl::StatusOr<std::shared_ptr<FollowedIndex>> index = Find(name);
  if (!index.ok()) return index.status();
  return LiveIndex(*std::move(index), follower_);
}

absl::StatusOr<std::shared_ptr<const SecondaryIndex>> IndexSet::Pin(const std::string& name) const {
  absl::StatusOr<std::shared_ptr<FollowedIndex>> index = Find(name);
  if (!index.ok()) return index.status();
  if (absl::Status s = follower_->Current(**index).status(); !s.ok()) return s;
  return OverVersion((*index)->writer()->version(), options_.open);
}

absl::StatusOr<std::shared_ptr<const SecondaryIndex>> IndexSet::PinAsItIs(
    const std::string& name) const {
  absl::StatusOr<std::shared_ptr<FollowedIndex>> index = Find(name);
  if (!index.ok()) return index.status();
  const std::shared_ptr<IndexWriter> writer = (*index)->writer();
  if (writer == nullptr) {
    return absl::UnavailableError(absl::StrFormat("index %s has not been built yet", Quoted(name)));
  }
  return OverVersion(writer->version(), options_.open);
}

std::vector<IndexInfo> IndexSet::ListIndexes() const {
  std::vector<IndexInfo> infos;
  const absl::Time current_at = follower_->current_at();
  for (const auto& index : All()) {
    IndexInfo info = index->Info();
    const SequenceNumber latest = closed_ ? info.sequence : db_->GetLatestSequenceNumber();
    info.lag = latest - std::min(latest, info.sequence);
    if (info.state == IndexState::kReady) {
      info.behind = info.lag == 0 ? absl::ZeroDuration() : absl::Now() - current_at;
    }
    infos.push_back(std::move(info));
  }
  return infos;
}

absl::Status IndexSet::StoreIndexes() {
  absl::Status first;
  for (const auto& index : All()) {
    const std::lock_guard<std::mutex> lock(index->work_mutex);
    if (!follower_->Current(*index).ok()) continue;
    first.Update(Store(index.get()));
  }
  return first;
}

rocksdb::Status IndexSet::Write(const rocksdb::WriteOptions& options, rocksdb::WriteBatch* batch) {
  const rocksdb::Status written = guard_.Write(options, batch);
  if (options.disableWAL && written.ok()) {
    follower_->Fail(nullptr, absl::FailedPreconditionError(
                                 "the database was written to with WriteOptions::disableWAL"));
  }
  return written;
}

absl::Status IndexSet::Disrupt(FollowedIndex* index, const std::string& why) {
  const std::lock_guard<std::mutex> lock(index->disruptions_mutex);
  ++index->disruptions;
  // One that has not been built yet is marked so, and has nothing to be wrong about.
  if (index->writer() == nullptr) return absl::OkStatus();
  return catalog_.MarkStale(index->name(), why);
}

rocksdb::Status IndexSet::ChangePastLog(
    absl::Span<rocksdb::ColumnFamilyHandle* const> column_families, const std::string& why,
    const std::function<rocksdb::Status()>& change) {
  // Before, so that a crash in between leaves no index that is taken for current; and after, for
  // one that has been built meanwhile. That a change fails is rare enough to build anew for it.
  const Indexes indexes = Of(column_families);
  for (const auto& index : indexes) {
    if (absl::Status s = Disrupt(index.get(), why); !s.ok()) return ToRocksDb(s);
  }
  const rocksdb::Status changed = change();
  absl::Status marked;
  for (const auto& index : indexes) marked.Update(Disrupt(index.get(), why));
  for (rocksdb::ColumnFamilyHandle* family : column_families) {
    follower_->Fail(family, absl::FailedPreconditionError(why));
  }
  // What took sequence numbers leaves a gap in the log for all others, who are to know it now.
  follower_->Follow().IgnoreError();
  return changed.ok() ? ToRocksDb(marked) : changed;
}

void IndexSet::DetachFamilies(absl::Span<rocksdb::ColumnFamilyHandle* const> column_families,
                              const std::string& why) {
  for (const auto& index : Of(column_families)) Detach(index, why);
}

void IndexSet::DetachHandle(rocksdb::ColumnFamilyHandle* handle) {
  for (const auto& index : All()) {
    if (handle != nullptr && index->column_family() == handle) {
      Detach(index, "the handle of its column family was destroyed");
    }
  }
}

void IndexSet::Detach(const std::shared_ptr<FollowedIndex>& index, const std::string& why) {
  index->cancelled = true;
  const std::lock_guard<std::mutex> lock(index->work_mutex);
  if (follower_->Current(*index).ok()) Store(index.get()).IgnoreError();
  follower_->Leave(*index);
  index->Set(IndexState::kFailed, absl::FailedPreconditionError(why));
}

void IndexSet::FollowInBackground() {
  if (!follower_->Follow().ok()) return;
  retention_.Release(follower_->log_number());
}

void IndexSet::StoreInBackground() {
  StoreIndexes().IgnoreError();  // the next time does what this one could not
}

absl::Status IndexSet::MergeDeltaFiles(FollowedIndex* index) {
  const std::lock_guard<std::mutex> lock(index->work_mutex);
  if (absl::Status s = index->Ready().status(); !s.ok()) return s;
  return index->writer()->MergeDeltaFiles();
}

void IndexSet::MergeWhatPays() {
  for (const auto& index : All()) {
    const auto ready = index->Ready();
    if (!ready.ok() || absl::Now() < index->merge_due) continue;
    if (((*ready)->MergePays() ? Merge(index.get()) : MergeDeltaFiles(index.get())).ok()) {
      index->merge_wait = absl::ZeroDuration();
    } else {
      // On a full disk it writes in vain until that is seen.
      index->merge_wait =
          std::min(std::max(2 * index->merge_wait, options_.merge_interval), kLongestMergeWait);
      index->merge_due = absl::Now() + index->merge_wait;
    }
  }
}

}  // namespace cairn
