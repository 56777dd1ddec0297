#include "index/mapped_file.h"

#include <sys/mman.h>

#include <cerrno>
#include <cstdint>

#include "index/posix_file.h"

namespace cairn {

absl::StatusOr<std::shared_ptr<const MappedFile>> MappedFile::Open(const std::string& path) {
  uint64_t size = 0;
  absl::StatusOr<FileDescriptor> file = OpenRegularFile(path, &size);
  if (!file.ok()) return file.status();
  if (size > PTRDIFF_MAX) return ErrnoStatus(EFBIG, "map", path);
  void* data = nullptr;
  if (size > 0) {
    data = mmap(nullptr, size, PROT_READ, MAP_SHARED, file->get(), 0);
    if (data == MAP_FAILED) return ErrnoStatus(errno, "map", path);
  }
  return std::shared_ptr<const MappedFile>(new MappedFile(data, size));
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) munmap(data_, size_);
}

}  // namespace cairn
