#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace cairn {

// A regular file mapped for reading, all of it, for as long as the object lives; the file may be
// renamed or removed meanwhile. Immutable and thread-safe.
//
// Like any mapping it needs the file to keep its length, and the disk to be readable: a page that
// cannot be read raises SIGBUS.
class MappedFile {
 public:
  // NotFound, PermissionDenied, FailedPrecondition (no regular file), ResourceExhausted.
  static absl::StatusOr<std::shared_ptr<const MappedFile>> Open(const std::string& path);

  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile();

  // Starts on a page; what follows up to the end of the last page is readable and zero.
  absl::Span<const char> bytes() const { return {static_cast<const char*>(data_), size_}; }

 private:
  MappedFile(void* data, size_t size) : data_(data), size_(size) {}

  void* data_;  // null for an empty file
  size_t size_;
};

}  // namespace cairn
