#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "rocksdb/env.h"
#include "rocksdb/file_system.h"
#include "test/engine/faults/crash_file_system.h"

// The disk of the stateful test.

namespace cairn::stateful {

inline constexpr char kPath[] = "/db", kIndexPath[] = "/db.indexes";

// A file system in memory that stops like a CrashFileSystem. Its write-ahead logs may find the disk
// full for a while, and it may be slow to create files of indexes.
class Disk final : public rocksdb::FileSystemWrapper {
 public:
  using IOStatus = rocksdb::IOStatus;
  using IOOptions = rocksdb::IOOptions;
  using Debug = rocksdb::IODebugContext;

  explicit Disk(std::shared_ptr<CrashFileSystem> files)
      : FileSystemWrapper(files), files_(std::move(files)) {}
  const char* Name() const override { return "StatefulDisk"; }

  CrashFileSystem& files() { return *files_; }
  std::atomic<bool> append_fails{false}, sync_fails{false};
  // the first one is for indexes
  std::atomic<bool> is_slow{false}, log_is_slow{false}, is_full{false};

  IOStatus NewWritableFile(const std::string& path, const rocksdb::FileOptions& options,
                           std::unique_ptr<rocksdb::FSWritableFile>* file, Debug* d) override {
    TakeTime(path);
    if (IsFull(path)) return Full();
    IOStatus s = FileSystemWrapper::NewWritableFile(path, options, file, d);
    if (s.ok() && path.ends_with(".log")) *file = std::make_unique<Log>(this, std::move(*file));
    if (s.ok() && path.starts_with(kIndexPath)) {
      *file = std::make_unique<IndexFile>(this, std::move(*file));
    }
    return s;
  }
  IOStatus NewRandomRWFile(const std::string& path, const rocksdb::FileOptions& options,
                           std::unique_ptr<rocksdb::FSRandomRWFile>* file, Debug* d) override {
    TakeTime(path);
    if (IsFull(path)) return Full();
    IOStatus s = FileSystemWrapper::NewRandomRWFile(path, options, file, d);
    if (s.ok() && path.starts_with(kIndexPath)) {
      *file = std::make_unique<IndexSlots>(this, std::move(*file));
    }
    return s;
  }

 private:
  class Log final : public rocksdb::FSWritableFileOwnerWrapper {
   public:
    Log(Disk* disk, std::unique_ptr<rocksdb::FSWritableFile> file)
        : FSWritableFileOwnerWrapper(std::move(file)), disk_(disk) {}
    IOStatus Append(const rocksdb::Slice& bytes, const IOOptions& options, Debug* d) override {
      if (disk_->append_fails) return IOStatus::IOError("made to fail");
      disk_->TakeTimeOfLog();
      return FSWritableFileOwnerWrapper::Append(bytes, options, d);
    }
    IOStatus Append(const rocksdb::Slice& bytes, const IOOptions& options,
                    const rocksdb::DataVerificationInfo& info, Debug* d) override {
      if (disk_->append_fails) return IOStatus::IOError("made to fail");
      disk_->TakeTimeOfLog();
      return FSWritableFileOwnerWrapper::Append(bytes, options, info, d);
    }
    IOStatus Sync(const IOOptions& options, Debug* d) override {
      return disk_->sync_fails ? FailedSync() : FSWritableFileOwnerWrapper::Sync(options, d);
    }
    IOStatus Fsync(const IOOptions& options, Debug* d) override {
      return disk_->sync_fails ? FailedSync() : FSWritableFileOwnerWrapper::Fsync(options, d);
    }

   private:
    Disk* const disk_;
  };
  class IndexFile final : public rocksdb::FSWritableFileOwnerWrapper {
   public:
    IndexFile(Disk* disk, std::unique_ptr<rocksdb::FSWritableFile> file)
        : FSWritableFileOwnerWrapper(std::move(file)), disk_(disk) {}
    IOStatus Append(const rocksdb::Slice& bytes, const IOOptions& options, Debug* d) override {
      return disk_->is_full ? Full() : FSWritableFileOwnerWrapper::Append(bytes, options, d);
    }
    IOStatus Append(const rocksdb::Slice& bytes, const IOOptions& options,
                    const rocksdb::DataVerificationInfo& info, Debug* d) override {
      return disk_->is_full ? Full() : FSWritableFileOwnerWrapper::Append(bytes, options, info, d);
    }

   private:
    Disk* const disk_;
  };
  class IndexSlots final : public rocksdb::FSRandomRWFileOwnerWrapper {
   public:
    IndexSlots(Disk* disk, std::unique_ptr<rocksdb::FSRandomRWFile> file)
        : FSRandomRWFileOwnerWrapper(std::move(file)), disk_(disk) {}
    IOStatus Write(uint64_t offset, const rocksdb::Slice& bytes, const IOOptions& options,
                   Debug* d) override {
      return disk_->is_full ? Full() : FSRandomRWFileOwnerWrapper::Write(offset, bytes, options, d);
    }

   private:
    Disk* const disk_;
  };

  // RocksDB resumes within milliseconds after this error. After NoSpace it waits until the file
  // system reports free space, and looks every five seconds. After a failed append the database is
  // closed, so that error is not retryable: RocksDB 7.8 may wait forever if it is closed while it
  // resumes.
  static IOStatus FailedSync() {
    IOStatus s = IOStatus::IOError("made to fail");
    s.SetRetryable(true);
    return s;
  }
  static IOStatus Full() {
    IOStatus s = IOStatus::NoSpace("made to be full");
    s.SetRetryable(true);
    return s;
  }
  bool IsFull(const std::string& path) const { return is_full && path.starts_with(kIndexPath); }
  void TakeTimeOfLog() const {
    if (log_is_slow) std::this_thread::sleep_for(std::chrono::microseconds(500));
  }

  void TakeTime(const std::string& path) const {
    if (is_slow && path.starts_with(kIndexPath)) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  }

  const std::shared_ptr<CrashFileSystem> files_;
};

// Removes a file, or a directory with its contents.
inline void RemoveAll(rocksdb::Env* env, const std::string& path) {
  std::vector<std::string> names;
  if (env->GetChildren(path, &names).ok()) {
    for (const std::string& name : names) RemoveAll(env, path + "/" + name);
    env->DeleteDir(path).PermitUncheckedError();
  } else {
    env->DeleteFile(path).PermitUncheckedError();
  }
}

// Copies a file or directory, if it exists.
inline void CopyAll(rocksdb::Env* env, const std::string& from, const std::string& to) {
  std::vector<std::string> names;
  if (env->GetChildren(from, &names).ok()) {
    env->CreateDirIfMissing(to).PermitUncheckedError();
    for (const std::string& name : names) CopyAll(env, from + "/" + name, to + "/" + name);
    return;
  }
  std::string bytes;
  if (rocksdb::ReadFileToString(env, from, &bytes).ok()) {
    rocksdb::WriteStringToFile(env, bytes, to, /*should_sync=*/true).PermitUncheckedError();
  }
}

}  // namespace cairn::stateful
