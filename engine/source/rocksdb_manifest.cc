#include "engine/source/rocksdb_manifest.h"

#include <algorithm>
#include <array>
#include <fstream>
#include <string_view>

#include "absl/strings/str_format.h"
#include "index/machine/status_macros.h"
#include "rocksdb/comparator.h"

namespace cairn {
namespace {

// Fields of a version edit.
constexpr uint32_t kComparatorField = 1;
constexpr uint32_t kLogNumberField = 2;
constexpr uint32_t kNextFileField = 3;
constexpr uint32_t kLastSequenceField = 4;
constexpr uint32_t kNewFileField = 100;  // with sequence numbers, without further attributes

// Value types in internal keys.
constexpr uint8_t kTypeDeletion = 0;
constexpr uint8_t kTypeRangeDeletion = 15;

// Log format.
constexpr size_t kBlockBytes = 32768;
constexpr size_t kHeaderBytes = 7;  // checksum (4), length (2), type (1)
enum RecordType : uint8_t { kFull = 1, kFirst = 2, kMiddle = 3, kLast = 4 };

constexpr std::string_view kManifestName = "MANIFEST-000001";

// CRC-32C (Castagnoli), reflected.
uint32_t Crc32c(std::string_view bytes) {
  static const std::array<uint32_t, 256> table = [] {
    std::array<uint32_t, 256> made{};
    for (uint32_t i = 0; i < made.size(); ++i) {
      uint32_t value = i;
      for (int bit = 0; bit < 8; ++bit)
        value = (value >> 1) ^ ((value & 1) != 0 ? 0x82F63B78u : 0u);
      made[i] = value;
    }
    return made;
  }();
  uint32_t crc = ~0u;
  for (char byte : bytes) crc = table[(crc ^ static_cast<uint8_t>(byte)) & 0xFF] ^ (crc >> 8);
  return ~crc;
}

// The log stores checksums rotated and shifted, because a checksum of checksums is weak.
uint32_t Masked(uint32_t crc) {
  return ((crc >> 15) | (crc << 17)) + 0xA282EAD8u;
}

void PutFixed(std::string* out, uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) out->push_back(static_cast<char>(value >> (8 * i)));
}

void PutVarint(std::string* out, uint64_t value) {
  for (; value >= 0x80; value >>= 7) out->push_back(static_cast<char>(value | 0x80));
  out->push_back(static_cast<char>(value));
}

void PutBytes(std::string* out, std::string_view bytes) {
  PutVarint(out, bytes.size());
  out->append(bytes);
}

// Internal keys ascend by user key, then descend by sequence number and type.
void PutInternalKey(std::string* out, std::string_view user_key, SequenceNumber sequence,
                    uint8_t type) {
  std::string key(user_key);
  PutFixed(&key, sequence << 8 | type, 8);
  PutBytes(out, key);
}

void AppendRecord(std::string_view record, std::string* log) {
  bool first = true;
  do {
    const size_t left = kBlockBytes - log->size() % kBlockBytes;
    if (left < kHeaderBytes) {
      log->append(left, '\0');
      continue;
    }
    const size_t length = std::min(record.size(), left - kHeaderBytes);
    const bool last = length == record.size();
    const RecordType type = first ? (last ? kFull : kFirst) : (last ? kLast : kMiddle);
    std::string checked(1, static_cast<char>(type));
    checked.append(record.substr(0, length));
    PutFixed(log, Masked(Crc32c(checked)), 4);
    PutFixed(log, length, 2);
    log->append(checked);
    record.remove_prefix(length);
    first = false;
    if (last) break;
  } while (true);
}

std::string FileEdit(const SstPlacement& file) {
  std::string edit;
  PutVarint(&edit, kNewFileField);
  PutVarint(&edit, static_cast<uint32_t>(file.level));
  PutVarint(&edit, file.number);
  PutVarint(&edit, file.bytes);
  // Writes the outermost internal keys that these user keys can have. RocksDB uses bounds as keys
  // when it iterates over range deletions, so bounds of two files must not be equal.
  PutInternalKey(&edit, file.smallest, kMaxSequenceNumber - file.number, kTypeRangeDeletion);
  if (file.largest_is_excluded) {
    PutInternalKey(&edit, file.largest, kMaxSequenceNumber, kTypeRangeDeletion);
  } else {
    PutInternalKey(&edit, file.largest, 0, kTypeDeletion);
  }
  PutVarint(&edit, file.smallest_sequence);
  PutVarint(&edit, file.largest_sequence);
  return edit;
}

absl::Status WriteFile(const std::string& path, std::string_view contents) {
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out.write(contents.data(), static_cast<std::streamsize>(contents.size()));
  out.close();
  if (out.fail()) return absl::InternalError(absl::StrFormat("cannot write '%s'", path));
  return absl::OkStatus();
}

}  // namespace

std::string TableFileName(uint64_t number) {
  return absl::StrFormat("%06d.sst", number);
}

absl::Status WriteRocksDbManifest(const std::string& directory,
                                  const rocksdb::Comparator* comparator,
                                  absl::Span<const SstPlacement> files) {
  uint64_t next_file = 2;
  for (const SstPlacement& file : files) next_file = std::max(next_file, file.number + 1);
  std::string edit;
  PutVarint(&edit, kComparatorField);
  PutBytes(&edit, comparator->Name());
  PutVarint(&edit, kLogNumberField);
  PutVarint(&edit, 0);
  PutVarint(&edit, kNextFileField);
  PutVarint(&edit, next_file);
  PutVarint(&edit, kLastSequenceField);
  PutVarint(&edit, kMaxSequenceNumber - 1);  // RocksDB uses the largest one for "unknown"

  std::string log;
  AppendRecord(edit, &log);
  for (const SstPlacement& file : files) AppendRecord(FileEdit(file), &log);
  RETURN_IF_ERROR(WriteFile(absl::StrFormat("%s/%s", directory, kManifestName), log));
  return WriteFile(directory + "/CURRENT", absl::StrFormat("%s\n", kManifestName));
}

}  // namespace cairn
