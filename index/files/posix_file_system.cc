#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <system_error>
#include <utility>

#include "absl/strings/str_format.h"
#include "index/files/file_system.h"
#include "index/machine/status_macros.h"

namespace cairn {
namespace {

// The max size of a single read or write; Linux transfers at most 2 GiB less a page per call.
constexpr size_t kMaxTransferBytes = size_t{1} << 30;

// The max number of attempts at a lock whose holders remove its file.
constexpr int kLockAttempts = 100;

absl::StatusCode CodeOf(int error) {
  switch (error) {
    case ENOENT:
    case ENOTDIR:
      return absl::StatusCode::kNotFound;
    case EEXIST:
      return absl::StatusCode::kAlreadyExists;
    case EACCES:
    case EPERM:
    case EROFS:
      return absl::StatusCode::kPermissionDenied;
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
    case EMFILE:
    case ENFILE:
    case ENOMEM:
      return absl::StatusCode::kResourceExhausted;
    default:
      return absl::StatusCode::kInternal;
  }
}

// The status of a failed system call: "cannot write '/data/x': No space left on device".
absl::Status ErrnoStatus(int error, std::string_view doing, std::string_view path) {
  return absl::Status(CodeOf(error), absl::StrFormat("cannot %s '%s': %s", doing, path,
                                                     std::generic_category().message(error)));
}

// Returns the result of a system call, which it repeats if a signal interrupts it.
template <typename Call>
auto Uninterrupted(Call call) {
  auto result = call();
  while (result < 0 && errno == EINTR) result = call();
  return result;
}

// An open file's descriptor, closed by the destructor.
class FileDescriptor {
 public:
  explicit FileDescriptor(int fd) : fd_(fd) {}
  FileDescriptor(FileDescriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~FileDescriptor() {
    if (fd_ >= 0) close(fd_);
  }
  int get() const { return fd_; }

 private:
  int fd_;
};

absl::StatusOr<FileDescriptor> OpenFile(const std::string& path, int flags) {
  constexpr mode_t kMode = 0644;
  const int fd = Uninterrupted([&] { return open(path.c_str(), flags | O_CLOEXEC, kMode); });
  if (fd < 0) return ErrnoStatus(errno, (flags & O_CREAT) != 0 ? "create" : "open", path);
  return FileDescriptor(fd);
}

// Opens a file for reading, if it is a regular file, and sets *size to its bytes.
absl::StatusOr<FileDescriptor> OpenRegularFile(const std::string& path, uint64_t* size) {
  // Without O_NONBLOCK, opening a named pipe would wait for its writer.
  ASSIGN_OR_RETURN(FileDescriptor file, OpenFile(path, O_RDONLY | O_NONBLOCK));
  struct stat info;
  if (fstat(file.get(), &info) != 0) return ErrnoStatus(errno, "stat", path);
  if (!S_ISREG(info.st_mode)) {
    return absl::FailedPreconditionError(absl::StrFormat("'%s' is not a regular file", path));
  }
  *size = static_cast<uint64_t>(info.st_size);
  return file;
}

absl::Status SyncDescriptor(const FileDescriptor& file, const std::string& path) {
  const int result = Uninterrupted([&] { return fsync(file.get()); });
  return result == 0 ? absl::OkStatus() : ErrnoStatus(errno, "sync", path);
}

absl::Status ReadFrom(const FileDescriptor& file, const std::string& path, uint64_t offset,
                      void* data, size_t size) {
  char* to = static_cast<char*>(data);
  while (size > 0) {
    const ssize_t got = Uninterrupted([&] {
      return pread(file.get(), to, std::min(size, kMaxTransferBytes), static_cast<off_t>(offset));
    });
    if (got < 0) {
      const int error = errno;
      return ErrnoStatus(error, absl::StrFormat("read %d bytes at offset %d of", size, offset),
                         path);
    }
    if (got == 0) {
      return absl::DataLossError(
          absl::StrFormat("'%s' ends at offset %d, expected %d more bytes", path, offset, size));
    }
    to += got;
    offset += static_cast<uint64_t>(got);
    size -= static_cast<size_t>(got);
  }
  return absl::OkStatus();
}

class PosixReadableFile final : public ReadableFile {
 public:
  PosixReadableFile(FileDescriptor file, std::string path, uint64_t size)
      : file_(std::move(file)), path_(std::move(path)), size_(size) {}

  uint64_t size() const override { return size_; }
  absl::Status ReadAt(uint64_t offset, void* data, size_t size) const override {
    return ReadFrom(file_, path_, offset, data, size);
  }

 private:
  const FileDescriptor file_;
  const std::string path_;
  const uint64_t size_;
};

// A temporary file has no name; `path_` is then a description for messages.
class PosixWritableFile final : public TemporaryFile {
 public:
  PosixWritableFile(FileDescriptor file, std::string path)
      : file_(std::move(file)), path_(std::move(path)) {}

  absl::Status WriteAt(uint64_t offset, const void* data, size_t size) override {
    const char* from = static_cast<const char*>(data);
    while (size > 0) {
      const ssize_t written = Uninterrupted([&] {
        return pwrite(file_.get(), from, std::min(size, kMaxTransferBytes),
                      static_cast<off_t>(offset));
      });
      if (written <= 0) {
        const int error = written < 0 ? errno : EIO;
        return ErrnoStatus(error, absl::StrFormat("write %d bytes at offset %d of", size, offset),
                           path_);
      }
      from += written;
      offset += static_cast<uint64_t>(written);
      size -= static_cast<size_t>(written);
    }
    return absl::OkStatus();
  }
  absl::Status Sync() override { return SyncDescriptor(file_, path_); }
  void WillSync(uint64_t offset, uint64_t size) override {
    sync_file_range(file_.get(), static_cast<off_t>(offset), static_cast<off_t>(size),
                    SYNC_FILE_RANGE_WRITE);
  }
  absl::Status ReadAt(uint64_t offset, void* data, size_t size) const override {
    return ReadFrom(file_, path_, offset, data, size);
  }
  void WillRead(uint64_t offset, uint64_t size) const override {
    posix_fadvise(file_.get(), static_cast<off_t>(offset), static_cast<off_t>(size),
                  POSIX_FADV_WILLNEED);
  }

 private:
  const FileDescriptor file_;
  const std::string path_;
};

// Holds a flock, which the kernel releases whenever the process ends.
class PosixFileLock final : public FileLock {
 public:
  PosixFileLock(FileDescriptor file, bool made_file)
      : file_(std::move(file)), made_file_(made_file) {}
  bool made_file() const override { return made_file_; }

 private:
  const FileDescriptor file_;
  const bool made_file_;
};

// The holder of a lock, from its file: "pid 123".
std::string HolderOf(const FileDescriptor& lock) {
  char pid[32] = {};
  const ssize_t got = pread(lock.get(), pid, sizeof(pid) - 1, 0);
  return got > 0 ? std::string(pid, strcspn(pid, "\n")) : "unknown";
}

// Writes the holder into the lock file, only for messages; the lock works without it if the disk is
// full.
void SayWhoHolds(const FileDescriptor& lock) {
  const std::string pid = absl::StrFormat("pid %d\n", getpid());
  [[maybe_unused]] const bool written =
      ftruncate(lock.get(), 0) == 0 && pwrite(lock.get(), pid.data(), pid.size(), 0) > 0;
}

// Reports whether `path` is still the name of an open file.
bool IsStillAt(const FileDescriptor& file, const std::string& path) {
  struct stat open, named;
  return fstat(file.get(), &open) == 0 && stat(path.c_str(), &named) == 0 &&
         open.st_dev == named.st_dev && open.st_ino == named.st_ino;
}

class PosixFileSystem final : public FileSystem {
 public:
  absl::StatusOr<std::unique_ptr<ReadableFile>> OpenForReading(const std::string& path) override {
    uint64_t size = 0;
    ASSIGN_OR_RETURN(FileDescriptor file, OpenRegularFile(path, &size));
    return std::make_unique<PosixReadableFile>(std::move(file), path, size);
  }
  absl::StatusOr<std::unique_ptr<WritableFile>> Create(const std::string& path,
                                                       IfExists if_exists) override {
    const int flag = if_exists == IfExists::kFail ? O_EXCL : O_TRUNC;
    ASSIGN_OR_RETURN(FileDescriptor file, OpenFile(path, O_WRONLY | O_CREAT | flag));
    try {
      return std::make_unique<PosixWritableFile>(std::move(file), path);
    } catch (...) {
      if (if_exists == IfExists::kFail) unlink(path.c_str());  // this call created it
      throw;
    }
  }
  absl::StatusOr<std::unique_ptr<TemporaryFile>> CreateTemporary(
      const std::string& directory) override;
  absl::StatusOr<FileBytes> Map(const std::string& path) override;

  absl::Status Rename(const std::string& from, const std::string& to) override {
    if (rename(from.c_str(), to.c_str()) == 0) return absl::OkStatus();
    const int error = errno;
    return ErrnoStatus(error, absl::StrFormat("rename to '%s'", to), from);
  }
  absl::Status Remove(const std::string& path) override {
    return unlink(path.c_str()) == 0 ? absl::OkStatus() : ErrnoStatus(errno, "remove", path);
  }
  absl::Status LinkOrCopy(const std::string& from, const std::string& to) override {
    if (link(from.c_str(), to.c_str()) == 0) return absl::OkStatus();
    if (errno == EEXIST) return ErrnoStatus(errno, "link", to);
    return Copy(from, to);
  }

  absl::Status MakeDirectory(const std::string& path) override;
  absl::Status RemoveDirectory(const std::string& path) override {
    if (rmdir(path.c_str()) == 0) return absl::OkStatus();
    return ErrnoStatus(errno, "remove directory", path);
  }
  absl::StatusOr<std::vector<std::string>> List(const std::string& directory) override;
  absl::Status SyncDirectory(const std::string& path) override {
    const absl::StatusOr<FileDescriptor> directory = OpenFile(path, O_RDONLY | O_DIRECTORY);
    return directory.ok() ? SyncDescriptor(*directory, path) : directory.status();
  }

  absl::StatusOr<std::unique_ptr<FileLock>> Lock(const std::string& path) override;
};

absl::StatusOr<std::unique_ptr<TemporaryFile>> PosixFileSystem::CreateTemporary(
    const std::string& directory) {
  constexpr mode_t kMode = 0600;
  int fd = open(directory.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, kMode);
  if (fd < 0 && (errno == EOPNOTSUPP || errno == EISDIR || errno == EINVAL)) {
    // The file system does not support unnamed files.
    std::string name = directory + "/temporary-XXXXXX";
    fd = mkostemp(name.data(), O_CLOEXEC);
    if (fd >= 0) unlink(name.c_str());
  }
  if (fd < 0) return ErrnoStatus(errno, "create temporary file in", directory);
  return std::make_unique<PosixWritableFile>(FileDescriptor(fd), directory + "/(temporary file)");
}

absl::StatusOr<FileBytes> PosixFileSystem::Map(const std::string& path) {
  uint64_t size = 0;
  ASSIGN_OR_RETURN(const FileDescriptor file, OpenRegularFile(path, &size));
  if (size > PTRDIFF_MAX) return ErrnoStatus(EFBIG, "map", path);
  if (size == 0) return FileBytes{};
  void* const data = mmap(nullptr, size, PROT_READ, MAP_SHARED, file.get(), 0);
  if (data == MAP_FAILED) return ErrnoStatus(errno, "map", path);
  const std::shared_ptr<const void> owner(data, [size](void* p) { munmap(p, size); });
  return FileBytes{{static_cast<const char*>(data), size}, owner};
}

absl::Status PosixFileSystem::MakeDirectory(const std::string& path) {
  if (mkdir(path.c_str(), 0755) == 0) return absl::OkStatus();
  const int error = errno;
  struct stat info;
  if (error == EEXIST && stat(path.c_str(), &info) == 0 && !S_ISDIR(info.st_mode)) {
    return absl::FailedPreconditionError(absl::StrFormat("'%s' is not a directory", path));
  }
  return ErrnoStatus(error, "make directory", path);
}

absl::StatusOr<std::vector<std::string>> PosixFileSystem::List(const std::string& path) {
  const auto close = [](DIR* opened) { closedir(opened); };
  const std::unique_ptr<DIR, decltype(close)> directory(opendir(path.c_str()), close);
  if (directory == nullptr) return ErrnoStatus(errno, "read directory", path);
  std::vector<std::string> names;
  for (;;) {
    errno = 0;
    const dirent* const entry = readdir(directory.get());
    if (entry == nullptr) break;
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") names.emplace_back(name);
  }
  if (errno != 0) return ErrnoStatus(errno, "read directory", path);
  return names;
}

absl::StatusOr<std::unique_ptr<FileLock>> PosixFileSystem::Lock(const std::string& path) {
  for (int attempt = 0; attempt < kLockAttempts; ++attempt) {
    absl::StatusOr<FileDescriptor> file = OpenFile(path, O_RDWR | O_CREAT | O_EXCL);
    const bool made_file = file.ok();
    if (absl::IsAlreadyExists(file.status())) file = OpenFile(path, O_RDWR | O_CREAT);
    if (!file.ok()) return file.status();
    if (Uninterrupted([&] { return flock(file->get(), LOCK_EX | LOCK_NB); }) != 0) {
      const int error = errno;
      if (error != EWOULDBLOCK) return ErrnoStatus(error, "lock", path);
      return absl::UnavailableError(
          absl::StrFormat("'%s' is held by another process (%s)", path, HolderOf(*file)));
    }
    // The previous holder may have removed the file that is locked now.
    if (!IsStillAt(*file, path)) continue;
    SayWhoHolds(*file);
    return std::make_unique<PosixFileLock>(*std::move(file), made_file);
  }
  return absl::UnavailableError(
      absl::StrFormat("'%s' is being created and removed by other processes", path));
}

}  // namespace

FileSystem* FileSystem::Posix() {
  static PosixFileSystem file_system;
  return &file_system;
}

}  // namespace cairn
