#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"

// The file system of an index. Every file of an index is created, written, read, renamed and
// removed through it only. docs/internals/formats.md lists the guarantees that it must give.
namespace cairn {

// A file that is open for reading. Thread-safe.
class ReadableFile {
 public:
  virtual ~ReadableFile() = default;

  // In bytes, when the file was opened.
  virtual uint64_t size() const = 0;
  // Reads exactly `size` bytes at `offset`. DataLoss if the file ends before that.
  virtual absl::Status ReadAt(uint64_t offset, void* data, size_t size) const = 0;
};

// A file that is being written. Thread-safe.
class WritableFile {
 public:
  virtual ~WritableFile() = default;

  // Writes all `size` bytes at `offset`, which may be past the end. Bytes in gaps between written
  // ranges are unspecified. ResourceExhausted if there is no space.
  virtual absl::Status WriteAt(uint64_t offset, const void* data, size_t size) = 0;
  // Waits until the written bytes are durable. The file's name is durable after SyncDirectory.
  virtual absl::Status Sync() = 0;
  // Hints that these bytes should be written to the disk now, so that Sync waits less.
  virtual void WillSync(uint64_t /*offset*/, uint64_t /*size*/) {}
};

// A file for this process only; it is removed when it is closed. Thread-safe.
class TemporaryFile : public WritableFile {
 public:
  // As ReadableFile::ReadAt.
  virtual absl::Status ReadAt(uint64_t offset, void* data, size_t size) const = 0;
  // Hints that these bytes will be read soon.
  virtual void WillRead(uint64_t /*offset*/, uint64_t /*size*/) const {}
};

// A lock, held for the lifetime of the object or the process, whichever is shorter.
class FileLock {
 public:
  virtual ~FileLock() = default;
  // Whether this lock created the lock file.
  virtual bool made_file() const = 0;
};

// All bytes of a file, which stay valid while `owner` lives, even if the name is removed. They
// start at a multiple of 64 bytes. Up to the next such multiple after their end, zeros are
// readable.
struct FileBytes {
  absl::Span<const char> bytes;
  std::shared_ptr<const void> owner;
};

enum class IfExists : uint8_t {
  kFail,      // AlreadyExists
  kTruncate,  // the file is emptied
};

// Thread-safe. Errors are NotFound, AlreadyExists and PermissionDenied; FailedPrecondition: the
// name is of another kind, such as a directory; ResourceExhausted: no space, no memory or too many
// open files; otherwise Internal. All name the path: "cannot write 100 bytes at offset 0 of
// '/data/x': No space left on device".
class FileSystem {
 public:
  // The local file system, which lives as long as the process. Its files are mapped: access raises
  // SIGBUS if a file is truncated while in use, or if the disk can no longer be read.
  static FileSystem* Posix();

  virtual ~FileSystem() = default;

  // Opens a regular file.
  virtual absl::StatusOr<std::unique_ptr<ReadableFile>> OpenForReading(const std::string& path) = 0;
  virtual absl::StatusOr<std::unique_ptr<WritableFile>> Create(const std::string& path,
                                                               IfExists if_exists) = 0;
  // If `directory` does not support unnamed files, the file is *.tmp in there, and remains if the
  // process is killed.
  virtual absl::StatusOr<std::unique_ptr<TemporaryFile>> CreateTemporary(
      const std::string& directory) = 0;
  // Returns a regular file's bytes. This implementation reads them into memory; a file system that
  // can map files overrides it.
  virtual absl::StatusOr<FileBytes> Map(const std::string& path);

  // Atomic and safe against power loss: at any instant, `to` is either its old file or the new one.
  virtual absl::Status Rename(const std::string& from, const std::string& to) = 0;
  virtual absl::Status Remove(const std::string& path) = 0;
  // Gives the file a second name, or makes a durable copy if links are not supported. AlreadyExists
  // if `to` exists.
  virtual absl::Status LinkOrCopy(const std::string& from, const std::string& to) = 0;

  // Does not create parents. AlreadyExists if the directory exists.
  virtual absl::Status MakeDirectory(const std::string& path) = 0;
  // Removes an empty directory.
  virtual absl::Status RemoveDirectory(const std::string& path) = 0;
  // The names in a directory, except "." and "..", in any order.
  virtual absl::StatusOr<std::vector<std::string>> List(const std::string& directory) = 0;
  // Waits until the names in a directory are durable.
  virtual absl::Status SyncDirectory(const std::string& path) = 0;

  // Takes the lock of this file, which it creates if it is missing. Errors: Unavailable, with the
  // holder if it is known: another lock is held, in this process or another one that uses this file
  // system; NotFound: the directory is missing.
  virtual absl::StatusOr<std::unique_ptr<FileLock>> Lock(const std::string& path) = 0;

 protected:
  // The fallback of LinkOrCopy without links.
  absl::Status Copy(const std::string& from, const std::string& to);
};

// Returns a small file's bytes. DataLoss, before any allocation, if it has more than `most` bytes.
absl::StatusOr<std::string> ReadSmallFile(FileSystem* files, const std::string& path,
                                          uint64_t most);
// Creates or replaces a small file. Its bytes are durable on return, but its name may not be.
absl::Status WriteSmallFile(FileSystem* files, const std::string& path, std::string_view bytes);

}  // namespace cairn
