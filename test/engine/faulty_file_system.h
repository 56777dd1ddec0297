#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "rocksdb/file_system.h"

namespace cairn {

// RocksDB's local file system with injected failures. A test sets the number of the operation that
// fails, so that it can fail each operation in turn. Thread-safe.
class FaultyFileSystem final : public rocksdb::FileSystemWrapper {
 public:
  using IOStatus = rocksdb::IOStatus;
  using IOOptions = rocksdb::IOOptions;
  using FileOptions = rocksdb::FileOptions;
  using Debug = rocksdb::IODebugContext;

  enum class Fault {
    kWriteError,  // operations that change something: create, write, sync, rename, link, remove …
    kNoSpace,     // operations that need space: create, write, link, make a directory
    kReadError,   // operations that read: open, read, list, get sizes
  };
  enum class Lasting { kOnce, kUntilRepaired };

  FaultyFileSystem() : FileSystemWrapper(rocksdb::FileSystem::Default()) {}
  const char* Name() const override { return "FaultyFileSystem"; }

  // Makes the k-th operation from now on that the fault concerns fail, 1 being the next.
  void Break(Fault fault, uint64_t k, Lasting lasting) {
    fault_ = fault;
    lasting_ = lasting;
    failed_ = 0;
    left_ = static_cast<int64_t>(k);
    broken_ = true;
  }
  void Repair() { broken_ = false; }
  // Operations that have failed since Break.
  uint64_t failed() const { return failed_; }

  IOStatus NewWritableFile(const std::string& path, const FileOptions& options,
                           std::unique_ptr<rocksdb::FSWritableFile>* file, Debug* d) override {
    if (IOStatus s = Change("create", path, true); !s.ok()) return s;
    return target()->NewWritableFile(path, options, file, d);
  }
  IOStatus NewRandomRWFile(const std::string& path, const FileOptions& options,
                           std::unique_ptr<rocksdb::FSRandomRWFile>* file, Debug* d) override {
    if (IOStatus s = Change("open for writing", path, false); !s.ok()) return s;
    std::unique_ptr<rocksdb::FSRandomRWFile> opened;
    IOStatus s = target()->NewRandomRWFile(path, options, &opened, d);
    if (s.ok()) *file = std::make_unique<File>(this, path, std::move(opened));
    return s;
  }
  IOStatus NewRandomAccessFile(const std::string& path, const FileOptions& options,
                               std::unique_ptr<rocksdb::FSRandomAccessFile>* file,
                               Debug* d) override {
    if (IOStatus s = Look("open", path); !s.ok()) return s;
    std::unique_ptr<rocksdb::FSRandomAccessFile> opened;
    IOStatus s = target()->NewRandomAccessFile(path, options, &opened, d);
    if (s.ok()) *file = std::make_unique<ReadFile>(this, path, std::move(opened));
    return s;
  }
  IOStatus NewDirectory(const std::string& path, const IOOptions& options,
                        std::unique_ptr<rocksdb::FSDirectory>* directory, Debug* d) override {
    if (IOStatus s = Change("sync", path, false); !s.ok()) return s;
    return target()->NewDirectory(path, options, directory, d);
  }
  IOStatus RenameFile(const std::string& from, const std::string& to, const IOOptions& options,
                      Debug* d) override {
    if (IOStatus s = Change("rename", from, false); !s.ok()) return s;
    IOStatus s = target()->RenameFile(from, to, options, d);
    // Some file systems report an error after the rename is done.
    return s.ok() ? Change("rename", from, false) : s;
  }
  IOStatus LinkFile(const std::string& from, const std::string& to, const IOOptions& options,
                    Debug* d) override {
    if (IOStatus s = Change("link", to, true); !s.ok()) return s;
    return target()->LinkFile(from, to, options, d);
  }
  IOStatus DeleteFile(const std::string& path, const IOOptions& options, Debug* d) override {
    if (IOStatus s = Change("remove", path, false); !s.ok()) return s;
    return target()->DeleteFile(path, options, d);
  }
  IOStatus CreateDirIfMissing(const std::string& path, const IOOptions& options,
                              Debug* d) override {
    if (IOStatus s = Change("make", path, true); !s.ok()) return s;
    return target()->CreateDirIfMissing(path, options, d);
  }
  IOStatus DeleteDir(const std::string& path, const IOOptions& options, Debug* d) override {
    if (IOStatus s = Change("remove", path, false); !s.ok()) return s;
    return target()->DeleteDir(path, options, d);
  }
  IOStatus LockFile(const std::string& path, const IOOptions& options, rocksdb::FileLock** lock,
                    Debug* d) override {
    if (IOStatus s = Change("lock", path, false); !s.ok()) return s;
    return target()->LockFile(path, options, lock, d);
  }
  IOStatus FileExists(const std::string& path, const IOOptions& options, Debug* d) override {
    if (IOStatus s = Look("look for", path); !s.ok()) return s;
    return target()->FileExists(path, options, d);
  }
  IOStatus GetFileSize(const std::string& path, const IOOptions& options, uint64_t* size,
                       Debug* d) override {
    if (IOStatus s = Look("stat", path); !s.ok()) return s;
    return target()->GetFileSize(path, options, size, d);
  }
  IOStatus GetChildren(const std::string& path, const IOOptions& options,
                       std::vector<std::string>* names, Debug* d) override {
    if (IOStatus s = Look("list", path); !s.ok()) return s;
    return target()->GetChildren(path, options, names, d);
  }

 private:
  class File final : public rocksdb::FSRandomRWFileOwnerWrapper {
   public:
    File(FaultyFileSystem* files, std::string path, std::unique_ptr<rocksdb::FSRandomRWFile> file)
        : FSRandomRWFileOwnerWrapper(std::move(file)), files_(files), path_(std::move(path)) {}
    IOStatus Write(uint64_t offset, const rocksdb::Slice& bytes, const IOOptions& options,
                   Debug* d) override {
      IOStatus s = files_->Change("write", path_, true);
      if (s.ok()) return FSRandomRWFileOwnerWrapper::Write(offset, bytes, options, d);
      // Writes half of it.
      const rocksdb::Slice half(bytes.data(), bytes.size() / 2);
      FSRandomRWFileOwnerWrapper::Write(offset, half, options, d).PermitUncheckedError();
      return s;
    }
    IOStatus Read(uint64_t offset, size_t n, const IOOptions& options, rocksdb::Slice* result,
                  char* scratch, Debug* d) const override {
      if (IOStatus s = files_->Look("read", path_); !s.ok()) return s;
      return FSRandomRWFileOwnerWrapper::Read(offset, n, options, result, scratch, d);
    }
    IOStatus Fsync(const IOOptions& options, Debug* d) override {
      if (IOStatus s = files_->Change("sync", path_, false); !s.ok()) return s;
      return FSRandomRWFileOwnerWrapper::Fsync(options, d);
    }

   private:
    FaultyFileSystem* const files_;
    const std::string path_;
  };

  class ReadFile final : public rocksdb::FSRandomAccessFileOwnerWrapper {
   public:
    ReadFile(FaultyFileSystem* files, std::string path,
             std::unique_ptr<rocksdb::FSRandomAccessFile> file)
        : FSRandomAccessFileOwnerWrapper(std::move(file)), files_(files), path_(std::move(path)) {}
    IOStatus Read(uint64_t offset, size_t n, const IOOptions& options, rocksdb::Slice* result,
                  char* scratch, Debug* d) const override {
      if (IOStatus s = files_->Look("read", path_); !s.ok()) return s;
      return FSRandomAccessFileOwnerWrapper::Read(offset, n, options, result, scratch, d);
    }

   private:
    FaultyFileSystem* const files_;
    const std::string path_;
  };

  IOStatus Change(const char* doing, const std::string& path, bool takes_space) {
    if (fault_ == Fault::kReadError || (fault_ == Fault::kNoSpace && !takes_space)) {
      return IOStatus::OK();
    }
    return Count(doing, path);
  }
  IOStatus Look(const char* doing, const std::string& path) {
    return fault_ == Fault::kReadError ? Count(doing, path) : IOStatus::OK();
  }
  IOStatus Count(const char* doing, const std::string& path) {
    if (!broken_) return IOStatus::OK();
    const int64_t left = left_.fetch_sub(1) - 1;
    if (left > 0 || (left < 0 && lasting_ == Lasting::kOnce)) return IOStatus::OK();
    ++failed_;
    if (fault_ == Fault::kNoSpace) return IOStatus::NoSpace(path, "made to be full");
    return IOStatus::IOError(std::string("made to fail to ") + doing + " " + path);
  }

  std::atomic<Fault> fault_{Fault::kWriteError};
  std::atomic<Lasting> lasting_{Lasting::kOnce};
  std::atomic<bool> broken_{false};
  std::atomic<int64_t> left_{0};
  std::atomic<uint64_t> failed_{0};
};

}  // namespace cairn
