#include "index/spill_file.h"

#include <fcntl.h>
#include <unistd.h>
#include <xxhash.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "absl/strings/str_format.h"

namespace cairn {
namespace {

// `what` went wrong in a spill file of `directory`.
absl::Status FileError(int error, const std::string& what, const std::string& directory) {
  const std::string message =
      absl::StrFormat("spill file in %s: %s: %s", directory, what, std::strerror(error));
  switch (error) {
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
      return absl::ResourceExhaustedError(message);
    case ENOENT:
    case ENOTDIR:
      return absl::NotFoundError(message);
    case EACCES:
    case EPERM:
    case EROFS:
      return absl::PermissionDeniedError(message);
    default:
      return absl::InternalError(message);
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<SpillFile>> SpillFile::Create(const std::string& directory) {
  int fd = open(directory.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (fd < 0 && (errno == EOPNOTSUPP || errno == EISDIR || errno == EINVAL)) {
    // A file system without unnamed files.
    std::string name = directory + "/spill-XXXXXX";
    fd = mkostemp(name.data(), O_CLOEXEC);
    if (fd >= 0) unlink(name.c_str());
  }
  if (fd < 0) return FileError(errno, "cannot create", directory);
  return std::unique_ptr<SpillFile>(new SpillFile(fd, directory));
}

SpillFile::~SpillFile() {
  close(fd_);
}

absl::StatusOr<SpillBlock> SpillFile::Write(absl::Span<const char> bytes, uint64_t entries) {
  SpillBlock block;
  block.offset = end_.fetch_add(bytes.size());
  block.bytes = bytes.size();
  block.entries = entries;
  block.hash = XXH3_64bits(bytes.data(), bytes.size());
  for (size_t done = 0; done < bytes.size();) {
    const uint64_t offset = block.offset + done;
    const ssize_t n =
        pwrite(fd_, bytes.data() + done, bytes.size() - done, static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      const int error = errno;
      return FileError(
          error, absl::StrFormat("cannot write %d bytes at offset %d", bytes.size() - done, offset),
          directory_);
    }
    done += static_cast<size_t>(n);
  }
  return block;
}

absl::Status SpillFile::Read(const SpillBlock& block, char* to) const {
  for (uint64_t done = 0; done < block.bytes;) {
    const uint64_t offset = block.offset + done;
    const ssize_t n = pread(fd_, to + done, block.bytes - done, static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      const int error = errno;
      return FileError(
          error, absl::StrFormat("cannot read %d bytes at offset %d", block.bytes - done, offset),
          directory_);
    }
    if (n == 0) {
      return absl::DataLossError(
          absl::StrFormat("spill file in %s: block of %d bytes at offset %d ends after %d",
                          directory_, block.bytes, block.offset, done));
    }
    done += static_cast<uint64_t>(n);
  }
  const uint64_t hash = XXH3_64bits(to, block.bytes);
  if (hash != block.hash) {
    return absl::DataLossError(absl::StrFormat(
        "spill file in %s: block of %d bytes at offset %d: expected checksum %016x, found %016x",
        directory_, block.bytes, block.offset, block.hash, hash));
  }
  return absl::OkStatus();
}

void SpillFile::WillRead(const SpillBlock& block) const {
  posix_fadvise(fd_, static_cast<off_t>(block.offset), static_cast<off_t>(block.bytes),
                POSIX_FADV_WILLNEED);
}

absl::Status SpillWriter::Begin(uint64_t /*entries*/, uint64_t /*key_bytes*/) {
  return absl::OkStatus();
}

void SpillWriter::PutColumn(const void* data, size_t bytes) {
  const char* const begin = static_cast<const char*>(data);
  block_.insert(block_.end(), begin, begin + bytes);
}

absl::Status SpillWriter::WriteBlock(size_t entries) {
  absl::StatusOr<SpillBlock> block = file_->Write(block_, entries);
  block_.clear();
  if (!block.ok()) return block.status();
  run_.blocks.push_back(*block);
  run_.entries += entries;
  return absl::OkStatus();
}

// Batches are large (EntryBatch), so each is cut into blocks of its own.
template <typename Key>
absl::Status SpillWriter::AppendColumns(absl::Span<const Key> keys,
                                        absl::Span<const RowId> row_ids) {
  constexpr size_t kEntries = std::bit_floor(kBlockBytes / (sizeof(Key) + sizeof(RowId)));
  for (size_t begin = 0; begin < keys.size(); begin += kEntries) {
    const size_t n = std::min(kEntries, keys.size() - begin);
    PutColumn(&keys[begin], n * sizeof(Key));
    PutColumn(&row_ids[begin], n * sizeof(RowId));
    if (absl::Status s = WriteBlock(n); !s.ok()) return s;
  }
  return absl::OkStatus();
}

absl::Status SpillWriter::Append(absl::Span<const uint32_t> keys, absl::Span<const RowId> row_ids) {
  return AppendColumns(keys, row_ids);
}

absl::Status SpillWriter::Append(absl::Span<const uint64_t> keys, absl::Span<const RowId> row_ids) {
  return AppendColumns(keys, row_ids);
}

absl::Status SpillWriter::Append(absl::Span<const std::string_view> keys,
                                 absl::Span<const RowId> row_ids) {
  size_t end = 0;
  for (size_t begin = 0; begin < keys.size(); begin = end) {
    lengths_.clear();
    size_t bytes = 0;
    for (end = begin; end < keys.size(); ++end) {
      const size_t more = sizeof(RowId) + sizeof(uint32_t) + keys[end].size();
      if (end > begin && bytes + more > kBlockBytes) break;
      bytes += more;
      lengths_.push_back(static_cast<uint32_t>(keys[end].size()));
    }
    PutColumn(&row_ids[begin], (end - begin) * sizeof(RowId));
    PutColumn(lengths_.data(), lengths_.size() * sizeof(uint32_t));
    for (size_t i = begin; i < end; ++i) PutColumn(keys[i].data(), keys[i].size());
    if (absl::Status s = WriteBlock(end - begin); !s.ok()) return s;
  }
  return absl::OkStatus();
}

}  // namespace cairn
