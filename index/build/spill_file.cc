#include "index/build/spill_file.h"

#include <xxhash.h>

#include <algorithm>
#include <bit>
#include <utility>

#include "absl/strings/str_format.h"
#include "index/machine/status_macros.h"
#include "index/sort/sort_entry.h"

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

absl::Status SpillWriter::WriteBlock(size_t entries, SpillFirst first) {
  absl::StatusOr<SpillBlock> block = file_->Write(block_, entries);
  block_.clear();
  if (!block.ok()) return block.status();
  block->first = std::move(first);
  run_.blocks.push_back(*std::move(block));
  run_.entries += entries;
  return absl::OkStatus();
}

// Batches are large (EntryBatch), so each is cut into separate blocks.
template <typename Key>
absl::Status SpillWriter::AppendColumns(absl::Span<const Key> keys,
                                        absl::Span<const RowId> row_ids) {
  constexpr size_t kEntries = std::bit_floor(kBlockBytes / (sizeof(Key) + sizeof(RowId)));
  for (size_t begin = 0; begin < keys.size(); begin += kEntries) {
    const size_t n = std::min(kEntries, keys.size() - begin);
    PutColumn(&keys[begin], n * sizeof(Key));
    PutColumn(&row_ids[begin], n * sizeof(RowId));
    RETURN_IF_ERROR(WriteBlock(n, {keys[begin], {}, row_ids[begin]}));
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
  for (size_t i = 0; i < keys.size();) {
    SpillFirst first{0, std::string(keys[i].substr(0, SpillFirst::kMaxBytes)), row_ids[i]};
    const size_t begin = i;
    do {
      const size_t at = block_.size();
      block_.resize(at + KeyRecord::Bytes(keys[i].size()));
      KeyRecord::Write(keys[i], row_ids[i], block_.data() + at);
      ++i;
    } while (i < keys.size() && block_.size() + KeyRecord::Bytes(keys[i].size()) <= kBlockBytes);
    RETURN_IF_ERROR(WriteBlock(i - begin, std::move(first)));
  }
  return absl::OkStatus();
}

}  // namespace cairn
