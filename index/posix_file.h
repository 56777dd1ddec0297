#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace cairn {

// An open file's descriptor, closed at the end of its life. Movable; not thread-safe.
class FileDescriptor {
 public:
  FileDescriptor() = default;
  explicit FileDescriptor(int fd) : fd_(fd) {}
  FileDescriptor(FileDescriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~FileDescriptor();

  bool is_open() const { return fd_ >= 0; }
  int get() const { return fd_; }

 private:
  int fd_ = -1;
};

// The status of a failed system call: "cannot write '/data/x': No space left on device".
// NotFound, AlreadyExists and PermissionDenied for what they say; ResourceExhausted for no space, a
// size limit, too many open files or no memory; else Internal.
absl::Status ErrnoStatus(int error, std::string_view doing, std::string_view path);

// open(2) with O_CLOEXEC, again when interrupted.
absl::StatusOr<FileDescriptor> OpenFile(const std::string& path, int flags);
// Likewise for reading a file whose kind is not known: only a regular one opens (else
// FailedPrecondition), and *size is set to its bytes.
absl::StatusOr<FileDescriptor> OpenRegularFile(const std::string& path, uint64_t* size);

// Writes all `size` bytes at `offset`; `path` is for the message. Safe from several threads.
absl::Status WriteAt(const FileDescriptor& file, const std::string& path, uint64_t offset,
                     const void* data, size_t size);

// Reads exactly `size` bytes at `offset`; DataLoss where the file ends before.
absl::Status ReadAt(const FileDescriptor& file, const std::string& path, uint64_t offset,
                    void* data, size_t size);

// Waits until what was written is on the disk.
absl::Status SyncFile(const FileDescriptor& file, const std::string& path);
// Likewise for the names in a directory.
absl::Status SyncDirectory(const std::string& path);

// Gives the file `from` a second name, or where the file systems do not allow that, makes a durable
// copy under it. AlreadyExists where the name is taken.
absl::Status LinkOrCopyFile(const std::string& from, const std::string& to);

// A small file's bytes; DataLoss, before anything is allocated, where it is larger than `most`.
absl::StatusOr<std::string> ReadSmallFile(const std::string& path, uint64_t most);

}  // namespace cairn
