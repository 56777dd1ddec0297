#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/match.h"
#include "engine/util/status.h"
#include "rocksdb/db.h"
#include "rocksdb/options.h"
#include "rocksdb/utilities/debug.h"
#include "rocksdb/version.h"
#include "rocksdb/write_batch.h"

// The differences between the versions of RocksDB that Cairn can be built against, 7.8 to 11.8. No
// other code depends on the version.

#define CAIRN_ROCKSDB_FROM(major, minor) \
  (ROCKSDB_MAJOR > (major) || (ROCKSDB_MAJOR == (major) && ROCKSDB_MINOR >= (minor)))

namespace cairn {

// Since 11.0, RocksDB opens a database into a unique_ptr, earlier versions into a pointer.
// `DB::Open(options, path, Into(&db))` supports both; `db` is set when the statement ends.
class Into {
 public:
  explicit Into(std::unique_ptr<rocksdb::DB>* db) : db_(db) {}
  Into(const Into&) = delete;
  Into& operator=(const Into&) = delete;

  // Implicit, since it converts to the argument of Open. NOLINTBEGIN(google-explicit-constructor)
#if CAIRN_ROCKSDB_FROM(11, 0)
  operator std::unique_ptr<rocksdb::DB>*() {
    return db_;
  }
#else
  ~Into() {
    if (opened_ != nullptr) db_->reset(opened_);
  }
  operator rocksdb::DB**() {
    return &opened_;
  }
#endif
  // NOLINTEND(google-explicit-constructor)

 private:
  std::unique_ptr<rocksdb::DB>* const db_;
#if !CAIRN_ROCKSDB_FROM(11, 0)
  rocksdb::DB* opened_ = nullptr;
#endif
};

// Returns up to `limit` entries of keys from `from` on, in RocksDB's order; null: from the first
// key on. Since 10.1, no text means "no bound", and an empty text is a key; before, it meant "no
// bound", too. So *from must not be empty if the empty key is not the first one.
inline rocksdb::Status GetKeyVersionsFrom(rocksdb::DB* db, const std::string* from, size_t limit,
                                          std::vector<rocksdb::KeyVersion>* entries) {
#if CAIRN_ROCKSDB_FROM(10, 1)
  const rocksdb::OptSlice begin = from == nullptr ? rocksdb::OptSlice() : rocksdb::OptSlice(*from);
  return rocksdb::GetAllKeyVersions(db, begin, rocksdb::OptSlice(), limit, entries);
#else
  return rocksdb::GetAllKeyVersions(db, from == nullptr ? "" : *from, "", limit, entries);
#endif
}

// Ends one DisableFileDeletions.
inline rocksdb::Status EndDisabledFileDeletions(rocksdb::DB* db) {
#if CAIRN_ROCKSDB_FROM(9, 0)
  return db->EnableFileDeletions();
#else
  return db->EnableFileDeletions(/*force=*/false);
#endif
}

// Sets options that only some versions have, for opening an existing database as it is.
inline void ResetForReading(rocksdb::DBOptions* options) {
#if !CAIRN_ROCKSDB_FROM(11, 0)
  options->skip_checking_sst_file_sizes_on_db_open = false;  // always so since 11.0
#endif
#if CAIRN_ROCKSDB_FROM(9, 11)
  options->track_and_verify_wals = false;  // it requires a log in every copy
#endif
#if CAIRN_ROCKSDB_FROM(11, 1)
  options->open_files_async = false;  // otherwise a missing file is reported too late
#endif
}

// Reads the records of write batches, including those that only some versions write.
class WriteBatchHandler : public rocksdb::WriteBatch::Handler {
#if CAIRN_ROCKSDB_FROM(9, 1)
 public:
  // The write time only matters for RocksDB's tiered storage.
  rocksdb::Status TimedPutCF(uint32_t id, const rocksdb::Slice& key, const rocksdb::Slice& value,
                             uint64_t /*write_time*/) override {
    return PutCF(id, key, value);
  }
#endif
};

// A database on top of another one (`Base` is a StackableDB) that intercepts every change. Calls
// that only some versions have are forwarded to the functions below, which all versions have.
template <typename Base>
class WatchedDb : public Base {
 public:
  using Base::Base;
  using Status = rocksdb::Status;

#if CAIRN_ROCKSDB_FROM(8, 9)
  using Base::PutEntity;
  Status PutEntity(const rocksdb::WriteOptions& options, const rocksdb::Slice& key,
                   const rocksdb::AttributeGroups& groups) override {
    return GuardedWrite("writing", [&] {
      rocksdb::WriteBatch batch;
      const Status filled = batch.PutEntity(key, groups);
      return filled.ok() ? this->Write(options, &batch) : filled;
    });
  }
#endif

  using Base::CreateColumnFamilyWithImport;
  Status CreateColumnFamilyWithImport(const rocksdb::ColumnFamilyOptions& options,
                                      const std::string& name,
                                      const rocksdb::ImportColumnFamilyOptions& import,
                                      const rocksdb::ExportImportFilesMetaData& files,
                                      rocksdb::ColumnFamilyHandle** handle) override {
    const Status made =
        this->db_->CreateColumnFamilyWithImport(options, name, import, files, handle);
    if (made.ok()) AddHandle(*handle);
    return made;
  }
#if CAIRN_ROCKSDB_FROM(8, 4)
  Status CreateColumnFamilyWithImport(
      const rocksdb::ColumnFamilyOptions& options, const std::string& name,
      const rocksdb::ImportColumnFamilyOptions& import,
      const std::vector<const rocksdb::ExportImportFilesMetaData*>& files,
      rocksdb::ColumnFamilyHandle** handle) override {
    const Status made =
        this->db_->CreateColumnFamilyWithImport(options, name, import, files, handle);
    if (made.ok()) AddHandle(*handle);
    return made;
  }
#endif

#if CAIRN_ROCKSDB_FROM(8, 3)
  using Base::ClipColumnFamily;
  Status ClipColumnFamily(rocksdb::ColumnFamilyHandle* family, const rocksdb::Slice& begin,
                          const rocksdb::Slice& end) override {
    return ChangePastLog({family->GetName()}, "its column family was clipped", /*is_atomic=*/false,
                         [&] { return this->db_->ClipColumnFamily(family, begin, end); });
  }
#endif

#if !CAIRN_ROCKSDB_FROM(9, 11)
  Status DeleteFile(std::string name) override {
    return GuardedWrite("deleting a file", [&] { return DeleteTableFile(name); });
  }
#endif

#if CAIRN_ROCKSDB_FROM(11, 5)
  using Base::PrepareFileIngestion;
  Status PrepareFileIngestion(const std::vector<rocksdb::IngestExternalFileArg>& args,
                              std::unique_ptr<rocksdb::FileIngestionHandle>* handle) override {
    return GuardedWrite("preparing an ingestion", [&] {
      auto ingestion = std::make_unique<Ingestion>();
      for (const auto& arg : args) ingestion->families.push_back(arg.column_family->GetName());
      const Status status = this->db_->PrepareFileIngestion(args, &ingestion->prepared);
      if (status.ok()) *handle = std::move(ingestion);
      return status;
    });
  }
  using Base::CommitFileIngestionHandles;
  Status CommitFileIngestionHandles(
      std::vector<std::unique_ptr<rocksdb::FileIngestionHandle>> handles) override {
    return GuardedWrite("ingesting files", [&] {
      std::vector<std::string> families;
      for (auto& handle : handles) {
        auto* const ingestion = dynamic_cast<Ingestion*>(handle.get());
        if (ingestion == nullptr) {
          return Status::InvalidArgument("the ingestion was not prepared by this database object");
        }
        families.insert(families.end(), ingestion->families.begin(), ingestion->families.end());
        handle = std::move(ingestion->prepared);
      }
      return ChangePastLog(families, kIngested, /*is_atomic=*/true, [&] {
        return this->db_->CommitFileIngestionHandles(std::move(handles));
      });
    });
  }
#endif

#if CAIRN_ROCKSDB_FROM(9, 0)
  Status EnableFileDeletions() override {
    return EnableCallersFileDeletions(/*all=*/false);
  }
#else
  Status EnableFileDeletions(bool force) override {
    return EnableCallersFileDeletions(force);
  }
#endif

 protected:
  static constexpr char kIngested[] = "files were ingested into its column family";

  // Makes a change of rows that the log does not contain. `families` are the names of the changed
  // column families; `why` describes the change. If it `is_atomic`, a failed change has changed
  // either nothing or everything.
  virtual Status ChangePastLog(std::vector<std::string> families, const char* why, bool is_atomic,
                               absl::FunctionRef<Status()> change) = 0;
  // Called when there is a new handle.
  virtual void AddHandle(rocksdb::ColumnFamilyHandle* handle) = 0;
  // Ends one of the callers' DisableFileDeletions, or all of them.
  virtual Status EnableCallersFileDeletions(bool all) = 0;

 private:
#if !CAIRN_ROCKSDB_FROM(9, 11)
  // Deleting a table file removes rows; deleting an archived log file does not.
  Status DeleteTableFile(const std::string& name) {
    std::vector<rocksdb::LiveFileMetaData> files;
    this->db_->GetLiveFilesMetaData(&files);
    for (const rocksdb::LiveFileMetaData& file : files) {
      if (file.name != name && file.name != "/" + name) continue;
      return ChangePastLog({file.column_family_name}, "a table file was deleted",
                           /*is_atomic=*/true, [&] { return this->db_->DeleteFile(name); });
    }
    if (absl::EndsWith(name, ".log")) return this->db_->DeleteFile(name);
    return Status::InvalidArgument("no live file has this name", name);
  }
#endif

#if CAIRN_ROCKSDB_FROM(11, 5)
  struct Ingestion final : rocksdb::FileIngestionHandle {
    Status Abort() override { return prepared->Abort(); }

    std::unique_ptr<rocksdb::FileIngestionHandle> prepared;
    std::vector<std::string> families;
  };
#endif
};

}  // namespace cairn
