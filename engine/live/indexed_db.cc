#include "cairn/indexed_db.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/functional/function_ref.h"
#include "absl/strings/str_format.h"
#include "engine/live/database_listener.h"
#include "engine/live/index_catalog.h"
#include "engine/live/index_set.h"
#include "engine/log/older_logs.h"
#include "engine/log/wal_files.h"
#include "engine/route/open_devices.h"
#include "engine/shards/lookup.h"
#include "engine/util/rocksdb_compat.h"
#include "engine/util/rocksdb_file_system.h"
#include "engine/util/status.h"
#include "index/machine/guard.h"
#include "index/machine/mutex.h"
#include "index/machine/status_macros.h"
#include "index/machine/stop_flag.h"
#include "rocksdb/env.h"
#include "rocksdb/file_system.h"
#include "rocksdb/utilities/optimistic_transaction_db.h"
#include "rocksdb/utilities/transaction_db.h"
#include "rocksdb/write_batch.h"

namespace cairn {
namespace {

using rocksdb::ColumnFamilyHandle;
using rocksdb::Slice;
using rocksdb::WriteBatch;
using rocksdb::WriteOptions;

class IndexedDatabase final : public WatchedDb<IndexedDB> {
 public:
  IndexedDatabase(std::shared_ptr<rocksdb::DB> db, absl::Span<ColumnFamilyHandle* const> handles,
                  const IndexedDBOptions& options, IndexCatalog catalog)
      : WatchedDb(std::move(db)), indexes_(db_, handles, options, std::move(catalog)) {}

  absl::Status Start(absl::Span<ColumnFamilyHandle* const> handles) {
    return indexes_.Start(handles, /*reports_failed_writes=*/listener_ != nullptr);
  }
  ~IndexedDatabase() override {
    indexes_.Close();  // hears of the flushes that it makes
    if (listener_ != nullptr) listener_->Tell(nullptr);
  }
  // The database must have this listener. Must be called before Start.
  void Hear(std::shared_ptr<DatabaseListener> listener) {
    auto observer = std::make_shared<DatabaseListener::Observer>();
    observer->on_ingested = [this](const std::string& column_family, SequenceNumber sequence) {
      indexes_.NoteIngested(column_family, sequence, kIngested);
    };
    observer->on_flushed = [this](SequenceNumber sequence) { indexes_.NoteFlushed(sequence); };
    observer->on_failed_write = [this](bool in_memtable) { indexes_.NoteFailedWrite(in_memtable); };
    listener->Tell(std::move(observer));
    listener_ = std::move(listener);
  }
  // Makes this object the owner of the database, with these handles: Close closes it.
  void Own(absl::Span<ColumnFamilyHandle* const> handles) {
    const MutexLock lock(&handles_mutex_);
    owns_database_ = true;
    handles_.insert(handles.begin(), handles.end());
  }

  absl::Status CreateIndexes(absl::Span<const IndexSpec> specs, ColumnFamilyHandle* column_family,
                             const CreateIndexOptions& options) override {
    return Guarded("creating indexes",
                   [&] { return indexes_.CreateIndexes(specs, column_family, options); });
  }
  absl::Status RebuildIndex(const std::string& name) override {
    return Guarded("rebuilding an index", [&] { return indexes_.RebuildIndex(name); });
  }
  absl::Status DropIndex(const std::string& name) override {
    return Guarded("dropping an index", [&] { return indexes_.DropIndex(name); });
  }
  absl::Status CompactIndex(const std::string& name) override {
    return Guarded("merging an index", [&] { return indexes_.CompactIndex(name); });
  }
  absl::Status WaitUntilReady(const std::string& name, absl::Duration timeout) override {
    return Guarded("waiting for an index", [&] { return indexes_.WaitUntilReady(name, timeout); });
  }
  absl::StatusOr<FoundKeys> Lookup(const std::string& index, const KeyQuery& keys,
                                   const LookupOptions& options) const override {
    return Guarded("looking up keys", [&] { return indexes_.Lookup(index, keys, options); });
  }
  absl::StatusOr<FoundRows> LookupRows(const std::string& index, const KeyQuery& keys,
                                       const LookupOptions& options) const override {
    return Guarded("looking up rows", [&] { return indexes_.LookupRows(index, keys, options); });
  }
  absl::StatusOr<FoundRows> LookupForUpdate(const std::string& index, const KeyQuery& keys,
                                            const LookupOptions& options) const override {
    return Guarded("locking rows", [&] { return indexes_.LookupForUpdate(index, keys, options); });
  }
  absl::StatusOr<std::shared_ptr<const SecondaryIndex>> Index(
      const std::string& name) const override {
    return Guarded("opening an index", [&] { return indexes_.Index(name); });
  }
  absl::StatusOr<std::shared_ptr<const SecondaryIndex>> Pin(
      const std::string& name, const LookupOptions& options) const override {
    return Guarded("pinning an index", [&] { return indexes_.Pin(name, options); });
  }
  absl::StatusOr<std::shared_ptr<const IndexGroup>> PinGroup(
      absl::Span<const std::string> names, const LookupOptions& options) const override {
    return Guarded("pinning indexes", [&] { return indexes_.PinGroup(names, options); });
  }
  absl::StatusOr<std::shared_ptr<const SecondaryIndex>> PinStale(
      const std::string& name) const override {
    return Guarded("pinning an index", [&] { return indexes_.PinStale(name); });
  }
  std::vector<IndexInfo> ListIndexes() const override {
    std::vector<IndexInfo> infos;
    Guarded("listing indexes", [&] {
      indexes_.ListIndexes(&infos);
      return absl::OkStatus();
    }).IgnoreError();
    return infos;
  }
  BacklogStats Backlog() const override { return indexes_.Backlog(); }
  absl::Status FlushIndexes() override {
    return Guarded("storing indexes", [&] { return indexes_.FlushIndexes(); });
  }

  const rocksdb::Snapshot* GetSnapshot() override {
    const rocksdb::Snapshot* snapshot = nullptr;
    Guarded("taking a snapshot", [&] {
      snapshot = indexes_.GetSnapshot();
      return absl::OkStatus();
    }).IgnoreError();
    return snapshot;
  }
  void ReleaseSnapshot(const rocksdb::Snapshot* snapshot) override {
    if (!indexes_.ReleaseSnapshot(snapshot)) db_->ReleaseSnapshot(snapshot);
  }

  using StackableDB::Put;
  Status Put(const WriteOptions& options, ColumnFamilyHandle* family, const Slice& key,
             const Slice& value) override {
    return WriteOne(
        options, [&] { return db_->Put(options, family, key, value); },
        [&](WriteBatch* batch) { return batch->Put(family, key, value); });
  }
  using WatchedDb::PutEntity;
  Status PutEntity(const WriteOptions& options, ColumnFamilyHandle* family, const Slice& key,
                   const rocksdb::WideColumns& columns) override {
    return WriteOne(
        options, [&] { return db_->PutEntity(options, family, key, columns); },
        [&](WriteBatch* batch) { return batch->PutEntity(family, key, columns); });
  }
  using StackableDB::Delete;
  Status Delete(const WriteOptions& options, ColumnFamilyHandle* family,
                const Slice& key) override {
    return WriteOne(
        options, [&] { return db_->Delete(options, family, key); },
        [&](WriteBatch* batch) { return batch->Delete(family, key); });
  }
  using StackableDB::SingleDelete;
  Status SingleDelete(const WriteOptions& options, ColumnFamilyHandle* family,
                      const Slice& key) override {
    return WriteOne(
        options, [&] { return db_->SingleDelete(options, family, key); },
        [&](WriteBatch* batch) { return batch->SingleDelete(family, key); });
  }
  using StackableDB::DeleteRange;
  Status DeleteRange(const WriteOptions& options, ColumnFamilyHandle* family, const Slice& lower,
                     const Slice& upper) override {
    return WriteOne(
        options, [&] { return db_->DeleteRange(options, family, lower, upper); },
        [&](WriteBatch* batch) { return batch->DeleteRange(family, lower, upper); });
  }
  using StackableDB::Merge;
  Status Merge(const WriteOptions& options, ColumnFamilyHandle* family, const Slice& key,
               const Slice& operand) override {
    return WriteOne(
        options, [&] { return db_->Merge(options, family, key, operand); },
        [&](WriteBatch* batch) { return batch->Merge(family, key, operand); });
  }
  Status Write(const WriteOptions& options, WriteBatch* batch) override {
    return BeginWrite(
        options, [&] { return db_->Write(options, batch); },
        [&] { return indexes_.Write(options, batch); });
  }

  using StackableDB::IngestExternalFile;
  Status IngestExternalFile(ColumnFamilyHandle* family, const std::vector<std::string>& files,
                            const rocksdb::IngestExternalFileOptions& options) override {
    return ChangePastLog({family->GetName()}, kIngested, /*is_atomic=*/true,
                         [&] { return db_->IngestExternalFile(family, files, options); });
  }
  Status IngestExternalFiles(const std::vector<rocksdb::IngestExternalFileArg>& args) override {
    return GuardedWrite("ingesting files", [&] {
      std::vector<std::string> families;
      for (const auto& arg : args) families.push_back(arg.column_family->GetName());
      return ChangePastLog(std::move(families), kIngested, /*is_atomic=*/true,
                           [&] { return db_->IngestExternalFiles(args); });
    });
  }

  Status DropColumnFamily(ColumnFamilyHandle* family) override {
    const std::string why = FamilyWasDropped(family->GetName());
    const Status dropped = ChangePastLog({family->GetName()}, why.c_str(), /*is_atomic=*/true,
                                         [&] { return db_->DropColumnFamily(family); });
    if (!dropped.ok()) return dropped;
    return GuardedWrite("dropping a column family", [&] {
      indexes_.DetachFamily(family->GetName(), why);
      return dropped;
    });
  }
  // RocksDB also drops them one after the other, up to the first failure.
  Status DropColumnFamilies(const std::vector<ColumnFamilyHandle*>& families) override {
    for (ColumnFamilyHandle* family : families) {
      if (const Status dropped = DropColumnFamily(family); !dropped.ok()) return dropped;
    }
    return Status::OK();
  }
  using StackableDB::CreateColumnFamily;
  Status CreateColumnFamily(const rocksdb::ColumnFamilyOptions& options, const std::string& name,
                            ColumnFamilyHandle** handle) override {
    const Status created = db_->CreateColumnFamily(options, name, handle);
    if (created.ok()) AddHandle(*handle);
    return created;
  }
  Status CreateColumnFamilies(const rocksdb::ColumnFamilyOptions& options,
                              const std::vector<std::string>& names,
                              std::vector<ColumnFamilyHandle*>* handles) override {
    const Status created = db_->CreateColumnFamilies(options, names, handles);
    AddHandles(*handles);
    return created;
  }
  Status CreateColumnFamilies(const std::vector<rocksdb::ColumnFamilyDescriptor>& families,
                              std::vector<ColumnFamilyHandle*>* handles) override {
    const Status created = db_->CreateColumnFamilies(families, handles);
    AddHandles(*handles);
    return created;
  }
  Status DestroyColumnFamilyHandle(ColumnFamilyHandle* family) override {
    const Status detached = GuardedWrite("letting go of a column family", [&] {
      indexes_.DetachHandle(family);
      return Status::OK();
    });
    if (!detached.ok()) return detached;
    const Status destroyed = db_->DestroyColumnFamilyHandle(family);
    const MutexLock lock(&handles_mutex_);
    if (destroyed.ok()) handles_.erase(family);
    const Status closed = CloseUnusedDatabase();
    return destroyed.ok() ? closed : destroyed;
  }

  // RocksDB counts the callers that disable file deletions, and lets one caller reset the count.
  // Indexes disable file deletions, too. So this object counts its own callers, and enables file
  // deletions only that many times.
  Status DisableFileDeletions() override {
    const MutexLock lock(&file_deletions_mutex_);
    const Status disabled = db_->DisableFileDeletions();
    if (disabled.ok()) ++file_deletions_disabled_;
    return disabled;
  }

  Status Close() override {
    indexes_.Close();
    const MutexLock lock(&handles_mutex_);
    return CloseUnusedDatabase();
  }

 private:
  Status EnableCallersFileDeletions(bool all) override {
    const MutexLock lock(&file_deletions_mutex_);
    Status enabled;
    while (file_deletions_disabled_ > 0 && enabled.ok()) {
      --file_deletions_disabled_;
      enabled = EndDisabledFileDeletions(db_);
      if (!all) break;
    }
    return enabled;
  }

  // Writes by `direct` if there is nothing to check, so that the write costs the same as without
  // indexes. Otherwise writes by `checked`.
  template <typename Direct, typename Checked>
  Status BeginWrite(const WriteOptions& options, const Direct& direct, const Checked& checked) {
    if (!indexes_.LimitBacklog(options)) {
      return Status::Incomplete(
          "the write would have to wait for the indexes, but must not (no_slowdown)");
    }
    if (!options.disableWAL && indexes_.BeginUncheckedWrite()) {
      const absl::Cleanup end = [&] { indexes_.EndUncheckedWrite(); };
      return CheckWritten(direct());
    }
    return CheckWritten(GuardedWrite("writing", checked));
  }
  Status CheckWritten(Status written) {
    if (!written.ok() && listener_ == nullptr) [[unlikely]] {
      GuardedWrite("checking a failed write", [&] {
        indexes_.CheckFailedWrite(written);
        return Status::OK();
      }).PermitUncheckedError();
    }
    return written;
  }
  template <typename Direct, typename Fill>
  Status WriteOne(const WriteOptions& options, const Direct& direct, const Fill& fill) {
    return BeginWrite(options, direct, [&] {
      const auto batch = std::make_shared<WriteBatch>();
      const Status filled = fill(batch.get());
      return filled.ok() ? indexes_.Write(options, batch.get(), batch) : filled;
    });
  }
  Status ChangePastLog(std::vector<std::string> families, const char* why, bool is_atomic,
                       absl::FunctionRef<Status()> change) override {
    return GuardedWrite("changing rows past the log", [&] {
      std::sort(families.begin(), families.end());
      families.erase(std::unique(families.begin(), families.end()), families.end());
      return indexes_.ChangePastLog({std::move(families)}, why, is_atomic, change);
    });
  }

  void AddHandle(ColumnFamilyHandle* handle) override {
    const MutexLock lock(&handles_mutex_);
    handles_.insert(handle);
  }
  void AddHandles(absl::Span<ColumnFamilyHandle* const> handles) {
    const MutexLock lock(&handles_mutex_);
    handles_.insert(handles.begin(), handles.end());
  }
  // RocksDB cannot close a database that has handles.
  Status CloseUnusedDatabase() ABSL_EXCLUSIVE_LOCKS_REQUIRED(handles_mutex_) {
    return owns_database_ && indexes_.closed() && handles_.empty() ? db_->Close() : Status::OK();
  }

  Mutex handles_mutex_;
  bool owns_database_ ABSL_GUARDED_BY(handles_mutex_) = false;
  std::shared_ptr<DatabaseListener> listener_;  // null if the caller opened the database
  // Handles that are not destroyed.
  std::set<ColumnFamilyHandle*> handles_ ABSL_GUARDED_BY(handles_mutex_);
  Mutex file_deletions_mutex_;
  // The number of times that callers have disabled them.
  int file_deletions_disabled_ ABSL_GUARDED_BY(file_deletions_mutex_) = 0;
  IndexSet indexes_;
};

std::string WithoutTrailingSlashes(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return path;
}

std::string IndexDirectoryOf(const std::string& path, const IndexedDBOptions& options) {
  return options.index_directory.empty() ? WithoutTrailingSlashes(path) + ".indexes"
                                         : options.index_directory;
}

// Returns Unavailable if the database at `path` is open.
absl::Status CheckNotOpen(const std::string& path, rocksdb::FileSystem* files) {
  const std::string lock_path = path + "/LOCK";
  if (!files->FileExists(lock_path, rocksdb::IOOptions(), nullptr).ok()) return absl::OkStatus();
  rocksdb::FileLock* lock = nullptr;
  if (const auto s = files->LockFile(lock_path, rocksdb::IOOptions(), &lock, nullptr); !s.ok()) {
    return absl::UnavailableError(absl::StrFormat("database '%s' is open: %s", path, s.ToString()));
  }
  files->UnlockFile(lock, rocksdb::IOOptions(), nullptr).PermitUncheckedError();
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<IndexedDatabase>> AttachTo(
    std::shared_ptr<rocksdb::DB> db, absl::Span<ColumnFamilyHandle* const> handles,
    const IndexedDBOptions& options, std::shared_ptr<DatabaseListener> listener) {
  if (db == nullptr) return absl::InvalidArgumentError("Attach: expected a database, got null");
  RETURN_IF_ERROR(CheckDevices(options.open));
  IndexedDBOptions resolved = options;
  if (resolved.open.file_system == nullptr) {
    resolved.open.file_system = db->GetEnv()->GetFileSystem();
  }
  ASSIGN_OR_RETURN(IndexCatalog catalog,
                   IndexCatalog::Open(IndexDirectoryOf(db->GetName(), options),
                                      FileSystemOf(resolved.open.file_system)));
  if (listener == nullptr) {  // otherwise this was done before the database was opened
    RETURN_IF_ERROR(LostLogMarks(catalog).Make(OlderLogCheck(db.get())));
  }
  auto indexed =
      std::make_unique<IndexedDatabase>(std::move(db), handles, resolved, std::move(catalog));
  if (listener != nullptr) indexed->Hear(std::move(listener));
  RETURN_IF_ERROR(indexed->Start(handles));
  return indexed;
}

// Opens the database by `open`, which gets the options to use.
absl::StatusOr<std::unique_ptr<IndexedDB>> OpenWithIndexes(
    const rocksdb::DBOptions& db_options, const std::string& path,
    std::vector<ColumnFamilyHandle*>* handles, const IndexedDBOptions& options,
    absl::FunctionRef<rocksdb::Status(const rocksdb::DBOptions&, std::unique_ptr<rocksdb::DB>*)>
        open) {
  rocksdb::DBOptions archiving = db_options;
  if (archiving.WAL_ttl_seconds == 0 && archiving.WAL_size_limit_MB == 0) {
    archiving.WAL_size_limit_MB = options.log_retention_megabytes;
  }
  auto listener = std::make_shared<DatabaseListener>();
  // Our listener comes before those of the application, so that an ingested number is noted before
  // anything looks for it.
  archiving.listeners.insert(archiving.listeners.begin(), listener);
  std::unique_ptr<rocksdb::DB> opened;
  handles->clear();
  // When RocksDB opens the database, it removes evidence.
  const std::shared_ptr<rocksdb::FileSystem> files =
      (archiving.env != nullptr ? archiving.env : rocksdb::Env::Default())->GetFileSystem();
  const auto index_files = options.open.file_system != nullptr ? options.open.file_system : files;
  const OlderLogCheck check(files.get(), path, LogDirectory(archiving, path));
  LostLogMarks marks(
      IndexCatalog::View(IndexDirectoryOf(path, options), FileSystemOf(index_files)));
  absl::Status was_opened;
  if (files->FileExists(path + "/CURRENT", rocksdb::IOOptions(), nullptr).ok()) {
    was_opened = marks.Make(check);
  }
  if (was_opened.ok()) {
    was_opened =
        FromRocksDb(open(archiving, &opened), absl::StrFormat("cannot open database '%s'", path));
  }
  if (!was_opened.ok()) {
    marks.Undo(check);
    return was_opened;
  }
  std::shared_ptr<rocksdb::DB> db;
  absl::Cleanup let_go = [handles, base = opened.get()] {
    for (ColumnFamilyHandle* handle : *handles) {
      base->DestroyColumnFamilyHandle(handle).PermitUncheckedError();
    }
    handles->clear();
  };
  db = std::move(opened);
  const absl::Cleanup allow_compactions = [&listener] { listener->AllowCompactions(); };
  ASSIGN_OR_RETURN(std::unique_ptr<IndexedDatabase> indexed,
                   AttachTo(db, *handles, options, listener));
  indexed->Own(*handles);
  std::move(let_go).Cancel();
  return indexed;
}

// Opens a TransactionDB or OptimisticTransactionDB.
template <typename Database, typename Options>
absl::StatusOr<std::unique_ptr<IndexedDB>> OpenTransactional(
    const rocksdb::DBOptions& db_options, const Options& transaction_db_options,
    const std::string& path, const std::vector<rocksdb::ColumnFamilyDescriptor>& column_families,
    std::vector<ColumnFamilyHandle*>* handles, const IndexedDBOptions& options) {
  const auto open = [&](const rocksdb::DBOptions& with_listener,
                        std::unique_ptr<rocksdb::DB>* opened) {
    Database* db = nullptr;
    rocksdb::Status s =
        Database::Open(with_listener, transaction_db_options, path, column_families, handles, &db);
    opened->reset(db);
    return s;
  };
  return Guarded("opening a database",
                 [&] { return OpenWithIndexes(db_options, path, handles, options, open); });
}

}  // namespace

absl::Status DestroyIndexes(const std::string& path, const IndexedDBOptions& options) {
  return Guarded("destroying indexes", [&] {
    std::shared_ptr<rocksdb::FileSystem> files = options.open.file_system;
    if (files == nullptr) files = rocksdb::FileSystem::Default();
    RETURN_IF_ERROR(CheckNotOpen(path, files.get()));
    return IndexCatalog::Destroy(IndexDirectoryOf(path, options),
                                 FileSystemOf(options.open.file_system));
  });
}

absl::Status IndexedDB::CreateIndex(std::string_view spec, ColumnFamilyHandle* column_family,
                                    const CreateIndexOptions& options) {
  absl::StatusOr<IndexSpec> parsed = IndexSpec::Parse(spec);
  return parsed.ok() ? CreateIndex(*parsed, column_family, options) : parsed.status();
}

absl::StatusOr<std::vector<uint64_t>> IndexedDB::Count(const std::string& index,
                                                       const KeyQuery& keys,
                                                       const LookupOptions& options) const {
  ASSIGN_OR_RETURN(const std::shared_ptr<const SecondaryIndex> pinned, Pin(index, options));
  return pinned->Count(keys, StopCondition::Of(options).As<LookupOptions>());
}

absl::StatusOr<std::vector<bool>> IndexedDB::Contains(const std::string& index,
                                                      const KeyQuery& keys,
                                                      const LookupOptions& options) const {
  ASSIGN_OR_RETURN(const std::shared_ptr<const SecondaryIndex> pinned, Pin(index, options));
  return pinned->Contains(keys, StopCondition::Of(options).As<LookupOptions>());
}

IndexIterator IndexedDB::NewIndexIterator(const std::string& index,
                                          const IteratorOptions& options) const {
  LookupOptions pin = StopCondition::Of(options).As<LookupOptions>();
  pin.snapshot = options.snapshot;
  pin.transaction = options.transaction;
  absl::StatusOr<std::shared_ptr<const SecondaryIndex>> pinned = Pin(index, pin);
  return pinned.ok() ? IterateVersion(*std::move(pinned), options) : IndexIterator(pinned.status());
}

absl::StatusOr<std::unique_ptr<IndexedDB>> IndexedDB::Attach(
    std::shared_ptr<rocksdb::DB> db, absl::Span<ColumnFamilyHandle* const> handles,
    const IndexedDBOptions& options) {
  return Guarded("attaching to a database", [&]() -> absl::StatusOr<std::unique_ptr<IndexedDB>> {
    return AttachTo(std::move(db), handles, options, /*listener=*/nullptr);
  });
}

absl::StatusOr<std::unique_ptr<IndexedDB>> IndexedDB::Open(
    const rocksdb::DBOptions& db_options, const std::string& path,
    const std::vector<rocksdb::ColumnFamilyDescriptor>& column_families,
    std::vector<ColumnFamilyHandle*>* handles, const IndexedDBOptions& options) {
  return Guarded("opening a database", [&] {
    return OpenWithIndexes(
        db_options, path, handles, options, [&](const auto& with_listener, auto* opened) {
          return rocksdb::DB::Open(with_listener, path, column_families, handles, Into(opened));
        });
  });
}

absl::StatusOr<std::unique_ptr<IndexedDB>> IndexedDB::Open(
    const rocksdb::DBOptions& db_options,
    const rocksdb::TransactionDBOptions& transaction_db_options, const std::string& path,
    const std::vector<rocksdb::ColumnFamilyDescriptor>& column_families,
    std::vector<ColumnFamilyHandle*>* handles, const IndexedDBOptions& options) {
  return OpenTransactional<rocksdb::TransactionDB>(db_options, transaction_db_options, path,
                                                   column_families, handles, options);
}

absl::StatusOr<std::unique_ptr<IndexedDB>> IndexedDB::Open(
    const rocksdb::DBOptions& db_options,
    const rocksdb::OptimisticTransactionDBOptions& transaction_db_options, const std::string& path,
    const std::vector<rocksdb::ColumnFamilyDescriptor>& column_families,
    std::vector<ColumnFamilyHandle*>* handles, const IndexedDBOptions& options) {
  return OpenTransactional<rocksdb::OptimisticTransactionDB>(
      db_options, transaction_db_options, path, column_families, handles, options);
}

absl::StatusOr<std::unique_ptr<IndexedDB>> IndexedDB::Open(const rocksdb::Options& db_options,
                                                           const std::string& path,
                                                           const IndexedDBOptions& options) {
  std::vector<ColumnFamilyHandle*> handles;
  ASSIGN_OR_RETURN(
      std::unique_ptr<IndexedDB> indexed,
      Open(rocksdb::DBOptions(db_options), path,
           {{rocksdb::kDefaultColumnFamilyName, rocksdb::ColumnFamilyOptions(db_options)}},
           &handles, options));
  // The default column family also has the database's own handle.
  indexed->DestroyColumnFamilyHandle(handles[0]).PermitUncheckedError();
  return indexed;
}

}  // namespace cairn
