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

// The file system that holds an index: every file of an index is made, written, read, renamed and
// removed through this, and nothing of it in another way. docs/internals/formats.md says what it
// relies on.
namespace cairn {

// A file that is open for reading. Thread-safe.
class ReadableFile {
 public:
  virtual ~ReadableFile() = default;

  // In bytes, when it was opened.
  virtual uint64_t size() const = 0;
  // Reads exactly `size` bytes at `offset`; DataLoss where the file ends before.
  virtual absl::Status ReadAt(uint64_t offset, void* data, size_t size) const = 0;
};

// A file that is being written. Thread-safe.
class WritableFile {
 public:
  virtual ~WritableFile() = default;

  // Writes all `size` bytes at `offset`, wherever the file ends now. What lies between bytes that
  // were written may be anything. ResourceExhausted where there is no space.
  virtual absl::Status WriteAt(uint64_t offset, const void* data, size_t size) = 0;
  // Waits until what was written is on the disk; its name is, once SyncDirectory has returned.
  virtual absl::Status Sync() = 0;
  // Asks for what was written there to be on its way to the disk, so that Sync waits less.
  virtual void WillSync(uint64_t /*offset*/, uint64_t /*size*/) {}
};

// A file that nobody else knows, and that goes when it is closed. Thread-safe.
class TemporaryFile : public WritableFile {
 public:
  // As ReadableFile's.
  virtual absl::Status ReadAt(uint64_t offset, void* data, size_t size) const = 0;
  // Asks for these bytes to be in memory when they are read.
  virtual void WillRead(uint64_t /*offset*/, uint64_t /*size*/) const {}
};

// A lock that is held as long as the object lives, and the process.
class FileLock {
 public:
  virtual ~FileLock() = default;
  // Whether the lock's file was made for it.
  virtual bool made_file() const = 0;
};

// All bytes of a file. They start at a multiple of 64 bytes and are readable, and zero, up to the
// next such multiple behind their end, as long as `owner` lives, and whatever becomes of the name.
struct FileBytes {
  absl::Span<const char> bytes;
  std::shared_ptr<const void> owner;
};

enum class IfExists : uint8_t {
  kFail,      // AlreadyExists
  kTruncate,  // the file is emptied
};

// Thread-safe. Errors are NotFound, AlreadyExists and PermissionDenied for what they say,
// FailedPrecondition for a name that is of another kind of thing, ResourceExhausted for no space,
// too many open files or no memory, else Internal. All name the path: "cannot write 100 bytes at
// offset 0 of '/data/x': No space left on device".
class FileSystem {
 public:
  // The local one, which lives as long as the process. Its files are mapped: one that is cut short
  // while it is in use, or a disk that cannot be read any more, raises SIGBUS.
  static FileSystem* Posix();

  virtual ~FileSystem() = default;

  // A regular file.
  virtual absl::StatusOr<std::unique_ptr<ReadableFile>> OpenForReading(const std::string& path) = 0;
  virtual absl::StatusOr<std::unique_ptr<WritableFile>> Create(const std::string& path,
                                                               IfExists if_exists) = 0;
  // Where `directory` cannot have files without names, it is *.tmp in there, and stays when the
  // process is killed.
  virtual absl::StatusOr<std::unique_ptr<TemporaryFile>> CreateTemporary(
      const std::string& directory) = 0;
  // A regular file's bytes, for good. This reads them into memory; a file system that can maps
  // them.
  virtual absl::StatusOr<FileBytes> Map(const std::string& path);

  // At any instant, and after a loss of power, `to` is the file that it was or the one that it is
  // to be.
  virtual absl::Status Rename(const std::string& from, const std::string& to) = 0;
  virtual absl::Status Remove(const std::string& path) = 0;
  // Gives the file a second name, or, where that cannot be, makes a durable copy under it.
  // AlreadyExists where the name is taken.
  virtual absl::Status LinkOrCopy(const std::string& from, const std::string& to) = 0;

  // Not its parents. AlreadyExists where there is such a directory.
  virtual absl::Status MakeDirectory(const std::string& path) = 0;
  // An empty one.
  virtual absl::Status RemoveDirectory(const std::string& path) = 0;
  // The names in a directory, but for "." and "..", in any order.
  virtual absl::StatusOr<std::vector<std::string>> List(const std::string& directory) = 0;
  // Waits until the names in a directory are on the disk.
  virtual absl::Status SyncDirectory(const std::string& path) = 0;

  // Takes the lock that the file stands for, making it where it is missing. Unavailable where
  // another holds it, in this process or any that uses this file system, saying what is known of
  // the holder; NotFound where the directory is missing.
  virtual absl::StatusOr<std::unique_ptr<FileLock>> Lock(const std::string& path) = 0;

 protected:
  // What LinkOrCopy does where there are no links.
  absl::Status Copy(const std::string& from, const std::string& to);
};

// A small file's bytes; DataLoss, before anything is allocated, where it is larger than `most`.
absl::StatusOr<std::string> ReadSmallFile(FileSystem* files, const std::string& path,
                                          uint64_t most);
// Makes or replaces a small file; it is on the disk when this returns, its name perhaps not.
absl::Status WriteSmallFile(FileSystem* files, const std::string& path, std::string_view bytes);

}  // namespace cairn
