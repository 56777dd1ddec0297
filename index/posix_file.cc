#include "index/posix_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

#include "absl/strings/str_format.h"

namespace cairn {
namespace {

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

// The largest single read or write; Linux transfers at most 2 GiB less a page at once.
constexpr size_t kMaxTransferBytes = size_t{1} << 30;

// What a copy reads and writes at a time.
constexpr uint64_t kCopyBytes = uint64_t{1} << 20;

}  // namespace

FileDescriptor::~FileDescriptor() {
  if (fd_ >= 0) close(fd_);
}

absl::Status ErrnoStatus(int error, std::string_view doing, std::string_view path) {
  return absl::Status(CodeOf(error), absl::StrFormat("cannot %s '%s': %s", doing, path,
                                                     std::generic_category().message(error)));
}

absl::StatusOr<FileDescriptor> OpenFile(const std::string& path, int flags) {
  constexpr mode_t kMode = 0644;
  int fd;
  do {
    fd = open(path.c_str(), flags | O_CLOEXEC, kMode);
  } while (fd < 0 && errno == EINTR);
  if (fd < 0) {
    return ErrnoStatus(errno, (flags & O_CREAT) != 0 ? "create" : "open", path);
  }
  return FileDescriptor(fd);
}

absl::StatusOr<FileDescriptor> OpenRegularFile(const std::string& path, uint64_t* size) {
  // Without O_NONBLOCK a named pipe would wait for its writer.
  absl::StatusOr<FileDescriptor> file = OpenFile(path, O_RDONLY | O_NONBLOCK);
  if (!file.ok()) return file;
  struct stat info;
  if (fstat(file->get(), &info) != 0) return ErrnoStatus(errno, "stat", path);
  if (!S_ISREG(info.st_mode)) {
    return absl::FailedPreconditionError(absl::StrFormat("'%s' is no regular file", path));
  }
  *size = static_cast<uint64_t>(info.st_size);
  return file;
}

absl::Status WriteAt(const FileDescriptor& file, const std::string& path, uint64_t offset,
                     const void* data, size_t size) {
  const char* from = static_cast<const char*>(data);
  while (size > 0) {
    const ssize_t written =
        pwrite(file.get(), from, std::min(size, kMaxTransferBytes), static_cast<off_t>(offset));
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) {
      const int error = written < 0 ? errno : EIO;
      return ErrnoStatus(error, absl::StrFormat("write %d bytes at offset %d of", size, offset),
                         path);
    }
    from += written;
    offset += static_cast<uint64_t>(written);
    size -= static_cast<size_t>(written);
  }
  return absl::OkStatus();
}

absl::Status ReadAt(const FileDescriptor& file, const std::string& path, uint64_t offset,
                    void* data, size_t size) {
  char* to = static_cast<char*>(data);
  while (size > 0) {
    const ssize_t got =
        pread(file.get(), to, std::min(size, kMaxTransferBytes), static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) {
      const int error = errno;
      return ErrnoStatus(error, absl::StrFormat("read %d bytes at offset %d of", size, offset),
                         path);
    }
    if (got == 0) {
      return absl::DataLossError(absl::StrFormat(
          "'%s' ends at offset %d, where %d more bytes were expected", path, offset, size));
    }
    to += got;
    offset += static_cast<uint64_t>(got);
    size -= static_cast<size_t>(got);
  }
  return absl::OkStatus();
}

absl::Status SyncFile(const FileDescriptor& file, const std::string& path) {
  int result;
  do {
    result = fsync(file.get());
  } while (result != 0 && errno == EINTR);
  return result == 0 ? absl::OkStatus() : ErrnoStatus(errno, "sync", path);
}

absl::Status SyncDirectory(const std::string& path) {
  absl::StatusOr<FileDescriptor> directory = OpenFile(path, O_RDONLY | O_DIRECTORY);
  if (!directory.ok()) return directory.status();
  return SyncFile(*directory, path);
}

absl::Status LinkOrCopyFile(const std::string& from, const std::string& to) {
  if (link(from.c_str(), to.c_str()) == 0) return absl::OkStatus();
  if (errno == EEXIST) return ErrnoStatus(errno, "link", to);
  uint64_t left = 0;
  absl::StatusOr<FileDescriptor> source = OpenRegularFile(from, &left);
  if (!source.ok()) return source.status();
  absl::StatusOr<FileDescriptor> copy = OpenFile(to, O_WRONLY | O_CREAT | O_EXCL);
  if (!copy.ok()) return copy.status();
  std::string block(std::min(left, kCopyBytes), '\0');
  for (uint64_t offset = 0; left > 0;) {
    const size_t size = std::min(left, kCopyBytes);
    if (absl::Status s = ReadAt(*source, from, offset, block.data(), size); !s.ok()) return s;
    if (absl::Status s = WriteAt(*copy, to, offset, block.data(), size); !s.ok()) return s;
    offset += size;
    left -= size;
  }
  return SyncFile(*copy, to);
}

absl::StatusOr<std::string> ReadSmallFile(const std::string& path, uint64_t most) {
  uint64_t size = 0;
  absl::StatusOr<FileDescriptor> file = OpenRegularFile(path, &size);
  if (!file.ok()) return file.status();
  if (size > most) {
    return absl::DataLossError(
        absl::StrFormat("'%s' has %d bytes, expected at most %d", path, size, most));
  }
  std::string bytes(size, '\0');
  if (absl::Status s = ReadAt(*file, path, 0, bytes.data(), bytes.size()); !s.ok()) return s;
  return bytes;
}

}  // namespace cairn
