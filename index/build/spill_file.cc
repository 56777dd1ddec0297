#include "index/build/spill_file.h"

#include <xxhash.h>

#include <algorithm>
#include <bit>
#include <utility>

#include "absl/strings/str_format.h"
#include "index/machine/status_macros.h"

namespace cairn {

absl::StatusOr<std::unique_ptr<SpillFile>> SpillFile::Create(const std::string& directory,
                                                             FileSystem* files) {
  ASSIGN_OR_RETURN(std::unique_ptr<TemporaryFile> file, files->CreateTemporary(directory));
  return std::unique_ptr<SpillFile>(new SpillFile(std::move(file), directory));
}

absl::StatusOr<SpillBlock> SpillFile::Write(absl::Span<const char> bytes, uint64_t entries) {
  SpillBlock block;
  block.offset = end_.fetch_add(bytes.size());
  block.bytes = bytes.size();
  block.entries = entries;
  block.hash = XXH3_64bits(bytes.data(), bytes.size());
  RETURN_IF_ERROR(file_->WriteAt(block.offset, bytes.data(), bytes.size()));
  return block;
}

absl::Status SpillFile::Read(const SpillBlock& block, char* to) const {
  RETURN_IF_ERROR(file_->ReadAt(block.offset, to, block.bytes));
  const uint64_t hash = XXH3_64bits(to, block.bytes);
  if (hash != block.hash) {
    return absl::DataLossError(absl::StrFormat(
        "spill file in %s: block of %d bytes at offset %d: expected checksum %016x, found %016x",
        directory_, block.bytes, block.offset, block.hash, hash));
  }
  return absl::OkStatus();
}

void SpillFile::WillRead(const SpillBlock& block) const {
  file_->WillRead(block.offset, block.bytes);
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
    RETURN_IF_ERROR(WriteBlock(n));
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
    RETURN_IF_ERROR(WriteBlock(end - begin));
  }
  return absl::OkStatus();
}

}  // namespace cairn
