#include "index/files/file_system.h"

#include <algorithm>
#include <new>
#include <utility>

#include "absl/strings/str_format.h"
#include "index/machine/aligned_buffer.h"
#include "index/machine/status_macros.h"

namespace cairn {
namespace {

// Bytes per read and write of a copy.
constexpr uint64_t kCopyBytes = uint64_t{1} << 20;

}  // namespace

absl::StatusOr<FileBytes> FileSystem::Map(const std::string& path) {
  ASSIGN_OR_RETURN(const std::unique_ptr<ReadableFile> file, OpenForReading(path));
  std::shared_ptr<AlignedBuffer<char>> buffer;
  try {
    buffer = std::make_shared<AlignedBuffer<char>>(file->size());
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError(
        absl::StrFormat("cannot read '%s': no memory for its %d bytes", path, file->size()));
  }
  RETURN_IF_ERROR(file->ReadAt(0, buffer->data(), buffer->size()));
  const absl::Span<const char> bytes = std::as_const(*buffer).span();
  return FileBytes{bytes, std::move(buffer)};
}

absl::Status FileSystem::Copy(const std::string& from, const std::string& to) {
  ASSIGN_OR_RETURN(const std::unique_ptr<ReadableFile> source, OpenForReading(from));
  ASSIGN_OR_RETURN(const std::unique_ptr<WritableFile> copy, Create(to, IfExists::kFail));
  std::string block(std::min(source->size(), kCopyBytes), '\0');
  for (uint64_t offset = 0; offset < source->size(); offset += block.size()) {
    const size_t size = std::min<uint64_t>(block.size(), source->size() - offset);
    RETURN_IF_ERROR(source->ReadAt(offset, block.data(), size));
    RETURN_IF_ERROR(copy->WriteAt(offset, block.data(), size));
  }
  return copy->Sync();
}

absl::StatusOr<std::string> ReadSmallFile(FileSystem* files, const std::string& path,
                                          uint64_t most) {
  ASSIGN_OR_RETURN(const std::unique_ptr<ReadableFile> file, files->OpenForReading(path));
  const uint64_t size = file->size();
  if (size > most) {
    return absl::DataLossError(
        absl::StrFormat("'%s' has %d bytes, expected at most %d", path, size, most));
  }
  std::string bytes(size, '\0');
  RETURN_IF_ERROR(file->ReadAt(0, bytes.data(), bytes.size()));
  return bytes;
}

absl::Status WriteSmallFile(FileSystem* files, const std::string& path, std::string_view bytes) {
  ASSIGN_OR_RETURN(const std::unique_ptr<WritableFile> file,
                   files->Create(path, IfExists::kTruncate));
  RETURN_IF_ERROR(file->WriteAt(0, bytes.data(), bytes.size()));
  return file->Sync();
}

}  // namespace cairn
