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

// What differs between the versions of RocksDB that Cairn is built against, 7.8 to 11.8. Nothing
// else asks which one it is.

#define CAIRN_ROCKSDB_FROM(major, minor) \
  (ROCKSDB_MAJOR > (major) || (ROCKSDB_MAJOR == (major) && ROCKSDB_MINOR >= (minor)))

namespace cairn {

// From 11.0 on RocksDB opens a database into a unique_ptr, before into a pointer.
// `DB::Open(options, path, Into(&db))` takes either; `db` has it when the statement ends.
class Into {
 public:
  explicit Into(std::unique_ptr<rocksdb::DB>* db) : db_(db) {}
  Into(const Into&) = delete;
  Into& operator=(const Into&) = delete;

  // Implicit, as it stands for what Open wants. NOLINTBEGIN(google-explicit-constructor)
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

// All entries of the keys from `from` on, up to `limit` of them. From 10.1 on no text means "no
// end", and an empty one is a key.
inline rocksdb::Status GetKeyVersionsFrom(rocksdb::DB* db, const std::string& from, size_t limit,
                                          std::vector<rocksdb::KeyVersion>* entries) {
#if CAIRN_ROCKSDB_FROM(10, 1)
  return rocksdb::GetAllKeyVersions(db, from, rocksdb::OptSlice(), limit, entries);
#else
  return rocksdb::GetAllKeyVersions(db, from, "", limit, entries);
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

// Sets options that not all versions have as a reader of what is there needs them.
inline void ResetForReading(rocksdb::DBOptions* options) {
#if !CAIRN_ROCKSDB_FROM(11, 0)
  options->skip_checking_sst_file_sizes_on_db_open = false;  // from 11.0 on always so
#endif
#if CAIRN_ROCKSDB_FROM(9, 11)
  options->track_and_verify_wals = false;  // it wants a log in every copy
#endif
#if CAIRN_ROCKSDB_FROM(11, 1)
  options->open_files_async = false;  // it says later that a file is missing
#endif
}

// Reads write batches, of whichever records a version writes.
class WriteBatchHandler : public rocksdb::WriteBatch::Handler {
#if CAIRN_ROCKSDB_FROM(9, 1)
 public:
  // When a row was written matters to RocksDB's tiers of files alone.
  rocksdb::Status TimedPutCF(uint32_t id, const rocksdb::Slice& key, const rocksdb::Slice& value,
                             uint64_t /*write_time*/) override {
    return PutCF(id, key, value);
  }
#endif
};

// A database over another (`Base` is a StackableDB) by which no change goes unseen, whichever calls
// a version has for it: they come to the functions below, which every version has.
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

  // Makes a change of the rows of column families, by name, that the log does not contain; `why`
  // describes it. If it `is_atomic`, a change that fails has either changed nothing or everything.
  virtual Status ChangePastLog(std::vector<std::string> families, const char* why, bool is_atomic,
                               absl::FunctionRef<Status()> change) = 0;
  // There is a handle more.
  virtual void AddHandle(rocksdb::ColumnFamilyHandle* handle) = 0;
  // Ends one DisableFileDeletions of the callers', or all.
  virtual Status EnableCallersFileDeletions(bool all) = 0;

 private:
#if !CAIRN_ROCKSDB_FROM(9, 11)
  // A table file takes rows with it, an archived log file does not.
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
