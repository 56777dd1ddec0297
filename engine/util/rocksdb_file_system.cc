#include "engine/util/rocksdb_file_system.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "engine/util/status.h"
#include "index/machine/mutex.h"
#include "index/machine/status_macros.h"

namespace cairn {
namespace {

using rocksdb::FileOptions;
using rocksdb::IOOptions;
using rocksdb::IOStatus;

// FileSystem::Name() of RocksDB's local file system.
constexpr std::string_view kLocalName = "PosixFileSystem";

// The largest single read or write. An encrypted file system copies it.
constexpr size_t kMaxTransferBytes = size_t{1} << 20;

// Returns the status of a failed operation: "cannot write '/data/x': IO error: No space left on
// device".
absl::Status IoStatus(const IOStatus& status, std::string_view doing, std::string_view path) {
  return FromRocksDb(status, absl::StrFormat("cannot %s '%s'", doing, path));
}

// Number of attempts to open a file that is replaced concurrently.
constexpr int kOpenAttempts = 100;

// Reads `size` bytes with `read(offset, size, result, scratch)`.
template <typename Read>
absl::Status ReadAll(const std::string& path, uint64_t offset, void* data, size_t size, Read read) {
  char* to = static_cast<char*>(data);
  while (size > 0) {
    const size_t part = std::min(size, kMaxTransferBytes);
    rocksdb::Slice got;
    if (const IOStatus s = read(offset, part, &got, to); !s.ok()) {
      return IoStatus(s, absl::StrFormat("read %d bytes at offset %d of", part, offset), path);
    }
    if (got.empty()) {
      return absl::DataLossError(
          absl::StrFormat("'%s' ends at offset %d; expected %d more bytes", path, offset, size));
    }
    if (got.data() != to) std::memmove(to, got.data(), got.size());
    to += got.size();
    offset += got.size();
    size -= got.size();
  }
  return absl::OkStatus();
}

// Sets *ends_there to whether a file has `size` bytes. GetFileSize takes a name, which may refer to
// another file by now.
IOStatus EndsAt(const rocksdb::FSRandomAccessFile& file, uint64_t size, bool* ends_there) {
  char bytes[2];
  rocksdb::Slice got;
  const uint64_t last = size == 0 ? 0 : size - 1;
  const IOStatus s = file.Read(last, sizeof bytes, IOOptions(), &got, bytes, nullptr);
  *ends_there = got.size() == size - last;
  return s;
}

class RocksDbReadableFile final : public ReadableFile {
 public:
  RocksDbReadableFile(std::unique_ptr<rocksdb::FSRandomAccessFile> file, std::string path,
                      uint64_t size)
      : file_(std::move(file)), path_(std::move(path)), size_(size) {}

  uint64_t size() const override { return size_; }
  absl::Status ReadAt(uint64_t offset, void* data, size_t size) const override {
    return ReadAll(path_, offset, data, size, [&](uint64_t at, size_t n, auto* got, char* to) {
      return file_->Read(at, n, IOOptions(), got, to, nullptr);
    });
  }

 private:
  const std::unique_ptr<rocksdb::FSRandomAccessFile> file_;
  const std::string path_;
  const uint64_t size_;
};

// Serializes access to the file, as RocksDB requires. The destructor deletes the file if it is
// `temporary`.
class RocksDbWritableFile final : public TemporaryFile {
 public:
  RocksDbWritableFile(std::shared_ptr<rocksdb::FileSystem> files,
                      std::unique_ptr<rocksdb::FSRandomRWFile> file, std::string path,
                      bool temporary)
      : files_(std::move(files)),
        file_(std::move(file)),
        path_(std::move(path)),
        temporary_(temporary) {}
  ~RocksDbWritableFile() override {
    file_->Close(IOOptions(), nullptr).PermitUncheckedError();  // data that must not be lost has
                                                                // been synced
    if (temporary_) files_->DeleteFile(path_, IOOptions(), nullptr).PermitUncheckedError();
  }

  absl::Status WriteAt(uint64_t offset, const void* data, size_t size) override {
    const char* from = static_cast<const char*>(data);
    while (size > 0) {
      const size_t part = std::min(size, kMaxTransferBytes);
      if (const IOStatus s = WritePart(offset, rocksdb::Slice(from, part)); !s.ok()) {
        return IoStatus(s, absl::StrFormat("write %d bytes at offset %d of", part, offset), path_);
      }
      from += part;
      offset += part;
      size -= part;
    }
    return absl::OkStatus();
  }
  absl::Status Sync() override {
    const MutexLock lock(&mutex_);
    return IoStatus(file_->Fsync(IOOptions(), nullptr), "sync", path_);
  }
  absl::Status ReadAt(uint64_t offset, void* data, size_t size) const override {
    return ReadAll(path_, offset, data, size, [&](uint64_t at, size_t n, auto* got, char* to) {
      const MutexLock lock(&mutex_);
      return file_->Read(at, n, IOOptions(), got, to, nullptr);
    });
  }

 private:
  IOStatus WritePart(uint64_t offset, const rocksdb::Slice& part) {
    const MutexLock lock(&mutex_);
    return file_->Write(offset, part, IOOptions(), nullptr);
  }

  const std::shared_ptr<rocksdb::FileSystem> files_;
  mutable Mutex mutex_;  // held while the file is used
  const std::unique_ptr<rocksdb::FSRandomRWFile> file_;
  const std::string path_;
  const bool temporary_;
};

class RocksDbFileLock final : public FileLock {
 public:
  RocksDbFileLock(std::shared_ptr<rocksdb::FileSystem> files, rocksdb::FileLock* lock,
                  bool made_file)
      : files_(std::move(files)), lock_(lock), made_file_(made_file) {}
  ~RocksDbFileLock() override {
    files_->UnlockFile(lock_, IOOptions(), nullptr).PermitUncheckedError();
  }
  bool made_file() const override { return made_file_; }

 private:
  const std::shared_ptr<rocksdb::FileSystem> files_;
  rocksdb::FileLock* const lock_;
  const bool made_file_;
};

class RocksDbFileSystem final : public FileSystem {
 public:
  explicit RocksDbFileSystem(std::shared_ptr<rocksdb::FileSystem> files)
      : files_(std::move(files)) {}

  absl::StatusOr<std::unique_ptr<ReadableFile>> OpenForReading(const std::string& path) override {
    for (int attempt = 0; attempt < kOpenAttempts; ++attempt) {
      uint64_t size = 0;
      std::unique_ptr<rocksdb::FSRandomAccessFile> file;
      IOStatus s = files_->GetFileSize(path, IOOptions(), &size, nullptr);
      if (s.ok()) s = files_->NewRandomAccessFile(path, FileOptions(), &file, nullptr);
      if (!s.ok()) {
        // If a part of the path is not a directory, the error is arbitrary, but FileExists reports
        // NotFound.
        const IOStatus exists = files_->FileExists(path, IOOptions(), nullptr);
        return IoStatus(exists.IsNotFound() ? exists : s, "open", path);
      }
      bool ends_there = false;
      s = EndsAt(*file, size, &ends_there);
      if (!s.ok()) return IoStatus(s, absl::StrFormat("read the end, at %d, of", size), path);
      if (ends_there) return std::make_unique<RocksDbReadableFile>(std::move(file), path, size);
    }
    return absl::UnavailableError(
        absl::StrFormat("'%s' was replaced repeatedly while it was opened", path));
  }
  absl::StatusOr<std::unique_ptr<WritableFile>> Create(const std::string& path,
                                                       IfExists if_exists) override {
    if (if_exists == IfExists::kFail) {
      RETURN_IF_ERROR(CheckIsFree(path));
    }
    return Make(path, /*temporary=*/false);
  }
  absl::StatusOr<std::unique_ptr<TemporaryFile>> CreateTemporary(
      const std::string& directory) override {
    return Make(absl::StrFormat("%s/spill-%d.tmp", directory, temporary_files_.fetch_add(1)),
                /*temporary=*/true);
  }

  absl::Status Rename(const std::string& from, const std::string& to) override {
    return IoStatus(files_->RenameFile(from, to, IOOptions(), nullptr),
                    absl::StrFormat("rename to '%s'", to), from);
  }
  absl::Status Remove(const std::string& path) override {
    return IoStatus(files_->DeleteFile(path, IOOptions(), nullptr), "remove", path);
  }
  absl::Status LinkOrCopy(const std::string& from, const std::string& to) override {
    RETURN_IF_ERROR(CheckIsFree(to));
    if (files_->LinkFile(from, to, IOOptions(), nullptr).ok()) return absl::OkStatus();
    return Copy(from, to);
  }

  absl::Status MakeDirectory(const std::string& path) override {
    const absl::Status free = CheckIsFree(path);
    bool is_directory = true;  // unless it is known not to be one
    if (absl::IsAlreadyExists(free)) {
      files_->IsDirectory(path, IOOptions(), &is_directory, nullptr).PermitUncheckedError();
    }
    if (!is_directory) {
      return absl::FailedPreconditionError(absl::StrFormat("'%s' is not a directory", path));
    }
    if (!free.ok()) return free;
    return IoStatus(files_->CreateDirIfMissing(path, IOOptions(), nullptr), "make directory", path);
  }
  absl::Status RemoveDirectory(const std::string& path) override {
    return IoStatus(files_->DeleteDir(path, IOOptions(), nullptr), "remove directory", path);
  }
  absl::StatusOr<std::vector<std::string>> List(const std::string& directory) override {
    std::vector<std::string> names;
    const IOStatus s = files_->GetChildren(directory, IOOptions(), &names, nullptr);
    if (!s.ok()) return IoStatus(s, "read directory", directory);
    const auto is_no_entry = [](const std::string& name) { return name == "." || name == ".."; };
    names.erase(std::remove_if(names.begin(), names.end(), is_no_entry), names.end());
    return names;
  }
  absl::Status SyncDirectory(const std::string& path) override {
    std::unique_ptr<rocksdb::FSDirectory> directory;
    IOStatus s = files_->NewDirectory(path, IOOptions(), &directory, nullptr);
    if (s.ok()) s = directory->Fsync(IOOptions(), nullptr);
    return IoStatus(s, "sync directory", path);
  }

  absl::StatusOr<std::unique_ptr<FileLock>> Lock(const std::string& path) override {
    const absl::Status free = CheckIsFree(path);
    if (!free.ok() && !absl::IsAlreadyExists(free)) return free;
    rocksdb::FileLock* lock = nullptr;
    const IOStatus s = files_->LockFile(path, IOOptions(), &lock, nullptr);
    if (s.ok()) return std::make_unique<RocksDbFileLock>(files_, lock, /*made_file=*/free.ok());
    const absl::Status status = IoStatus(s, "lock", path);
    return absl::IsInternal(status) ? absl::UnavailableError(status.message()) : status;
  }

 private:
  // AlreadyExists: a file or directory with this name exists.
  absl::Status CheckIsFree(const std::string& path) const {
    const IOStatus s = files_->FileExists(path, IOOptions(), nullptr);
    if (s.ok()) return absl::AlreadyExistsError(absl::StrFormat("'%s' already exists", path));
    return s.IsNotFound() ? absl::OkStatus() : IoStatus(s, "look for", path);
  }
  absl::StatusOr<std::unique_ptr<RocksDbWritableFile>> Make(const std::string& path,
                                                            bool temporary);

  const std::shared_ptr<rocksdb::FileSystem> files_;
  std::atomic<uint64_t> temporary_files_{0};
};

// NewRandomRWFile requires an existing file.
absl::StatusOr<std::unique_ptr<RocksDbWritableFile>> RocksDbFileSystem::Make(
    const std::string& path, bool temporary) {
  std::unique_ptr<rocksdb::FSWritableFile> empty;
  IOStatus s = files_->NewWritableFile(path, FileOptions(), &empty, nullptr);
  if (s.ok()) s = empty->Close(IOOptions(), nullptr);
  if (!s.ok()) return IoStatus(s, "create", path);
  std::unique_ptr<rocksdb::FSRandomRWFile> file;
  s = files_->NewRandomRWFile(path, FileOptions(), &file, nullptr);
  if (!s.ok()) {
    files_->DeleteFile(path, IOOptions(), nullptr).PermitUncheckedError();
    return IoStatus(s, "create", path);
  }
  return std::make_unique<RocksDbWritableFile>(files_, std::move(file), path, temporary);
}

}  // namespace

std::shared_ptr<FileSystem> FileSystemOf(std::shared_ptr<rocksdb::FileSystem> file_system) {
  const bool is_local = file_system == nullptr ||
                        (file_system->Inner() == nullptr && file_system->Name() == kLocalName);
  if (is_local) return {std::shared_ptr<FileSystem>(), FileSystem::Posix()};
  return std::make_shared<RocksDbFileSystem>(std::move(file_system));
}

}  // namespace cairn
