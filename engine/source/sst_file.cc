#include "engine/source/sst_file.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "engine/source/read_only_database.h"
#include "engine/source/rocksdb_manifest.h"
#include "engine/util/rocksdb_compat.h"
#include "engine/util/status.h"
#include "index/machine/status_macros.h"
#include "rocksdb/comparator.h"
#include "rocksdb/sst_file_reader.h"
#include "rocksdb/table_properties.h"

namespace cairn {
namespace {

namespace fs = std::filesystem;

// Properties that SstFileWriter adds: a format version (4 bytes) and, from version 2 on, the place
// where an ingestion may write the sequence number of all entries (8 bytes).
constexpr char kWriterVersionProperty[] = "rocksdb.external_sst_file.version";
constexpr char kGlobalSequenceProperty[] = "rocksdb.external_sst_file.global_seqno";

// Keys of at least this many 0xFF bytes are unlikely. If a file has one, its bound grows.
constexpr size_t kUsualSentinelBytes = 64;

uint64_t DecodeFixed(const std::string& bytes, size_t width) {
  uint64_t value = 0;
  for (size_t i = 0; i < width && i < bytes.size(); ++i) {
    value |= static_cast<uint64_t>(static_cast<uint8_t>(bytes[i])) << (8 * i);
  }
  return value;
}

absl::Status ReadOrigin(const rocksdb::TableProperties& properties, SstFile* file) {
  const auto& collected = properties.user_collected_properties;
  const auto version = collected.find(kWriterVersionProperty);
  if (version == collected.end()) return absl::OkStatus();
  if (version->second.size() < 4) {
    return absl::DataLossError(absl::StrFormat("'%s': property %s has %d bytes, expected 4",
                                               file->path, kWriterVersionProperty,
                                               version->second.size()));
  }
  // Files of version 1 cannot be renumbered: their entries have sequence number 0.
  if (DecodeFixed(version->second, 4) < 2) return absl::OkStatus();
  file->origin = SstOrigin::kWriter;
  const auto sequence = collected.find(kGlobalSequenceProperty);
  if (sequence == collected.end()) return absl::OkStatus();
  if (sequence->second.size() < 8) {
    return absl::DataLossError(absl::StrFormat("'%s': property %s has %d bytes, expected 8",
                                               file->path, kGlobalSequenceProperty,
                                               sequence->second.size()));
  }
  file->global_sequence = DecodeFixed(sequence->second, 8);
  if (file->global_sequence >= kMaxSequenceNumber) {
    return absl::DataLossError(
        absl::StrFormat("'%s': property %s: expected a sequence number, got %d", file->path,
                        kGlobalSequenceProperty, file->global_sequence));
  }
  if (file->global_sequence != 0) file->origin = SstOrigin::kDatabase;
  return absl::OkStatus();
}

// Returns a user key that is greater than all keys of the database.
absl::StatusOr<std::string> KeyAboveAll(rocksdb::DB* db, KeyOrder order, const SstFile& file) {
  size_t longest = kUsualSentinelBytes - 1;
  const std::string usual(kUsualSentinelBytes, '\xFF');
  // In reverse order, the keys above the usual sentinel are the first ones.
  const bool is_reverse = order == KeyOrder::kReverseBytewise;
  std::optional<std::string> from;
  if (!is_reverse) from = usual;
  std::vector<rocksdb::KeyVersion> chunk;
  size_t limit = EntriesPerChunk(file.raw_bytes, file.entries);
  for (bool more = true; more;) {
    const rocksdb::Status status =
        GetKeyVersionsFrom(db, from.has_value() ? &*from : nullptr, limit, &chunk);
    if (!status.ok()) {
      return FromRocksDb(status, absl::StrFormat("cannot read the last keys of '%s'", file.path));
    }
    more = chunk.size() == limit;
    for (const rocksdb::KeyVersion& entry : chunk) {
      if (entry.user_key >= usual) {
        longest = std::max(longest, entry.user_key.size());
      } else {
        more = false;
      }
    }
    if (!more) break;
    // Several versions of one key may fill a chunk.
    if (chunk.back().user_key == from) limit *= 2;
    from = chunk.back().user_key;
  }
  return std::string(longest + 1, '\xFF');
}

// Finds the outermost user keys of all entries, including tombstones.
absl::Status FindPointBounds(rocksdb::DB* db, KeyOrder order, SstFile* file) {
  const std::string what = absl::StrFormat("cannot read the outermost keys of '%s'", file->path);
  std::vector<rocksdb::KeyVersion> chunk;
  rocksdb::Status status = GetKeyVersionsFrom(db, nullptr, 1, &chunk);
  if (!status.ok()) return FromRocksDb(status, what);
  if (chunk.empty()) {
    return absl::DataLossError(
        absl::StrFormat("'%s' has %d entries according to its properties, but none can be read",
                        file->path, file->entries));
  }
  std::string first = chunk.front().user_key;
  std::string last = first;
  rocksdb::ReadOptions options;
  options.total_order_seek = true;
  const std::unique_ptr<rocksdb::Iterator> iterator(db->NewIterator(options));
  iterator->SeekToLast();
  if (!iterator->status().ok()) return FromRocksDb(iterator->status(), what);
  if (iterator->Valid()) last = iterator->key().ToString();
  // After the last row there may be tombstones.
  size_t limit = EntriesPerChunk(file->raw_bytes, file->entries);
  // In reverse order, no key is after the empty one.
  while (order == KeyOrder::kBytewise || !last.empty()) {
    status = GetKeyVersionsFrom(db, &last, limit, &chunk);
    if (!status.ok()) return FromRocksDb(status, what);
    if (chunk.empty()) break;
    const bool moved = chunk.back().user_key != last;
    last = chunk.back().user_key;
    if (chunk.size() < limit) break;
    if (!moved) limit *= 2;
  }
  if (order == KeyOrder::kReverseBytewise) std::swap(first, last);
  file->smallest = std::move(first);
  file->largest = std::move(last);
  return absl::OkStatus();
}

}  // namespace

size_t EntriesPerChunk(uint64_t raw_bytes, uint64_t entries) {
  constexpr uint64_t kChunkBytes = uint64_t{8} << 20;
  const uint64_t entry_bytes = std::max<uint64_t>(1, raw_bytes / std::max<uint64_t>(1, entries));
  return std::clamp<uint64_t>(kChunkBytes / entry_bytes, 16, 4096);
}

absl::StatusOr<SstFile> InspectSstFile(const std::string& path, const rocksdb::Options& options) {
  std::error_code error;
  SstFile file;
  file.path = fs::canonical(path, error).string();
  if (error) return absl::NotFoundError(absl::StrFormat("'%s': %s", path, error.message()));
  if (!fs::is_regular_file(file.path, error)) {
    return absl::InvalidArgumentError(absl::StrFormat("'%s' is not a file", path));
  }
  file.bytes = fs::file_size(file.path, error);
  if (error) return absl::InternalError(absl::StrFormat("'%s': %s", path, error.message()));

  rocksdb::SstFileReader reader(options);
  const rocksdb::Status status = reader.Open(file.path);
  if (!status.ok()) {
    const absl::Status found =
        FromRocksDb(status, absl::StrFormat("'%s' is not a readable SST file", path));
    return absl::IsDataLoss(found) ? absl::InvalidArgumentError(found.message()) : found;
  }
  const std::shared_ptr<const rocksdb::TableProperties> properties = reader.GetTableProperties();
  file.comparator = properties->comparator_name;
  if (!file.comparator.empty() && file.comparator != options.comparator->Name() &&
      !KeyOrderOfName(file.comparator).has_value()) {
    return UnknownComparator(absl::StrFormat("SST file '%s'", path), file.comparator);
  }
  file.entries = properties->num_entries;
  file.range_deletions = properties->num_range_deletions;
  file.merge_operands = properties->num_merge_operands;
  file.raw_bytes = properties->raw_key_size + properties->raw_value_size;
  if (properties->merge_operator_name != "nullptr") {
    file.merge_operator = properties->merge_operator_name;
  }
  RETURN_IF_ERROR(ReadOrigin(*properties, &file));
  // For a file of SstFileWriter, these properties do not tell where it belongs.
  if (properties->user_collected_properties.count(kWriterVersionProperty) == 0) {
    file.column_family = properties->column_family_name;
    file.database_id = properties->db_id;
  }
  if (!properties->db_session_id.empty()) {
    file.unique_id = absl::StrFormat("%s/%s/%d", properties->db_id, properties->db_session_id,
                                     properties->orig_file_number);
  }
  return file;
}

void SetBounds(KeyOrder order, const std::string& smallest, const std::string& largest,
               bool largest_is_excluded, SstPlacement* placed) {
  const bool is_reverse = order == KeyOrder::kReverseBytewise;
  placed->smallest = is_reverse ? largest : smallest;
  placed->largest = is_reverse ? smallest : largest;
  placed->largest_is_excluded = largest_is_excluded && !is_reverse;
}

absl::Status FindKeyBounds(const rocksdb::Options& options, KeyOrder order,
                           const std::string& scratch_directory, SstFile* file) {
  constexpr uint64_t kNumber = 2;
  SstPlacement placed;
  placed.level = 0;  // where RocksDB does not check a file's bounds before it reads it
  placed.number = kNumber;
  placed.bytes = file->bytes;
  SetBounds(order, "", std::string(kUsualSentinelBytes, '\xFF'), /*largest_is_excluded=*/true,
            &placed);
  placed.largest_sequence =
      file->origin == SstOrigin::kWriter
          ? 1
          : (file->global_sequence != 0 ? file->global_sequence : kMaxSequenceNumber - 1);
  placed.smallest_sequence = file->global_sequence;
  std::error_code error;
  const std::string link = scratch_directory + "/" + TableFileName(kNumber);
  fs::create_symlink(file->path, link, error);
  if (error) {
    return absl::InternalError(
        absl::StrFormat("cannot make the link '%s': %s", link, error.message()));
  }
  absl::Status found =
      WriteRocksDbManifest(scratch_directory, options.comparator, absl::MakeConstSpan(&placed, 1));
  if (found.ok()) {
    absl::StatusOr<std::unique_ptr<ReadOnlyDatabase>> database = ReadOnlyDatabase::Open(
        scratch_directory, options, rocksdb::kDefaultColumnFamilyName, options, options);
    if (!database.ok()) {
      found = database.status();
    } else if (file->IsWide()) {
      absl::StatusOr<std::string> above = KeyAboveAll((*database)->db(), order, *file);
      found = above.status();
      if (above.ok()) file->largest = *std::move(above);
    } else {
      found = FindPointBounds((*database)->db(), order, file);
    }
  }
  for (const fs::directory_entry& entry : fs::directory_iterator(scratch_directory, error)) {
    fs::remove(entry.path(), error);
  }
  return found;
}

}  // namespace cairn
