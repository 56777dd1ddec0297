#include "index/files/file_system.h"

#include <algorithm>
#include <new>
#include <utility>

#include "absl/strings/str_format.h"
#include "index/machine/aligned_buffer.h"

namespace cairn {
namespace {

// What a copy reads and writes at a time.
constexpr uint64_t kCopyBytes = uint64_t{1} << 20;

}  // namespace

absl::StatusOr<FileBytes> FileSystem::Map(const std::string& path) {
  const absl::StatusOr<std::unique_ptr<ReadableFile>> file = OpenForReading(path);
  if (!file.ok()) return file.status();
  std::shared_ptr<AlignedBuffer<char>> buffer;
  try {
    buffer = std::make_shared<AlignedBuffer<char>>((*file)->size());
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError(
        absl::StrFormat("cannot read '%s': no memory for its %d bytes", path, (*file)->size()));
  }
  if (absl::Status s = (*file)->ReadAt(0, buffer->data(), buffer->size()); !s.ok()) return s;
  const absl::Span<const char> bytes = std::as_const(*buffer).span();
  return FileBytes{bytes, std::move(buffer)};
}

absl::Status FileSystem::Copy(const std::string& from, const std::string& to) {
  const absl::StatusOr<std::unique_ptr<ReadableFile>> source = OpenForReading(from);
  if (!source.ok()) return source.status();
  const absl::StatusOr<std::unique_ptr<WritableFile>> copy = Create(to, IfExists::kFail);
  if (!copy.ok()) return copy.status();
  std::string block(std::min((*source)->size(), kCopyBytes), '\0');
  for (uint64_t offset = 0; offset < (*source)->size(); offset += block.size()) {
    const size_t size = std::min<uint64_t>(block.size(), (*source)->size() - offset);
    if (absl::Status s = (*source)->ReadAt(offset, block.data(), size); !s.ok()) return s;
    if (absl::Status s = (*copy)->WriteAt(offset, block.data(), size); !s.ok()) return s;
  }
  return (*copy)->Sync();
}

absl::StatusOr<std::string> ReadSmallFile(FileSystem* files, const std::string& path,
                                          uint64_t most) {
  const absl::StatusOr<std::unique_ptr<ReadableFile>> file = files->OpenForReading(path);
  if (!file.ok()) return file.status();
  const uint64_t size = (*file)->size();
  if (size > most) {
    return absl::DataLossError(
        absl::StrFormat("'%s' has %d bytes, expected at most %d", path, size, most));
  }
  std::string bytes(size, '\0');
  if (absl::Status s = (*file)->ReadAt(0, bytes.data(), bytes.size()); !s.ok()) return s;
  return bytes;
}

absl::Status WriteSmallFile(FileSystem* files, const std::string& path, std::string_view bytes) {
  const absl::StatusOr<std::unique_ptr<WritableFile>> file =
      files->Create(path, IfExists::kTruncate);
  if (!file.ok()) return file.status();
  if (absl::Status s = (*file)->WriteAt(0, bytes.data(), bytes.size()); !s.ok()) return s;
  return (*file)->Sync();
}

}  // namespace cairn
