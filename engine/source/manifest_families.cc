#include "engine/source/manifest_families.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "engine/util/crc32c.h"
#include "engine/util/status.h"
#include "index/machine/status_macros.h"
#include "rocksdb/file_system.h"
#include "rocksdb/options.h"
#include "rocksdb/write_batch.h"

namespace cairn {
namespace {

// A MANIFEST is a file in the log format. Its records are version edits: tags with values. Edits
// that add or drop a column family have no tags of files, so the reader ignores an edit at its
// first such tag.
constexpr size_t kEditsBlockBytes = 32768;
constexpr size_t kEditsHeaderBytes = 7;  // checksum (4), length (2), type (1)
struct EditFragment {
  enum : uint8_t { kFull = 1, kFirst = 2, kMiddle = 3, kLast = 4 };
};

struct EditTag {
  enum : uint32_t {
    kComparator = 1,
    kLogNumber = 2,
    kNextFileNumber = 3,
    kLastSequence = 4,
    kPrevLogNumber = 9,
    kMinLogNumberToKeep = 10,
    kColumnFamily = 200,
    kColumnFamilyAdd = 201,
    kColumnFamilyDrop = 202,
    kMaxColumnFamily = 203,
    kInAtomicGroup = 300,
    kMayBeIgnored = 1 << 13,  // a bit of tags whose values have a length
  };
};

// Removes a varint from the front of `bytes`; returns nullopt if they end within it.
std::optional<uint64_t> TakeEditVarint(std::string_view* bytes) {
  uint64_t value = 0;
  for (int shift = 0; shift < 64 && !bytes->empty(); shift += 7) {
    const auto byte = static_cast<uint8_t>(bytes->front());
    bytes->remove_prefix(1);
    value |= uint64_t{byte & 0x7fu} << shift;
    if (byte < 0x80) return value;
  }
  return std::nullopt;
}

bool TakeEditText(std::string_view* bytes, std::string_view* text) {
  const std::optional<uint64_t> size = TakeEditVarint(bytes);
  if (!size.has_value() || *size > bytes->size()) return false;
  *text = bytes->substr(0, *size);
  bytes->remove_prefix(*size);
  return true;
}

void ApplyEdit(std::string_view edit, std::map<uint32_t, std::string>* names,
               std::map<uint32_t, std::string>* comparators, uint64_t* min_log_to_keep) {
  uint32_t id = 0;  // the id of the default column family is not written
  bool adds = false, drops = false;
  std::string_view name, comparator, skipped;
  while (!edit.empty()) {
    const std::optional<uint64_t> tag = TakeEditVarint(&edit);
    if (!tag.has_value()) return;
    bool read = true;
    switch (*tag) {
      case EditTag::kLogNumber:
      case EditTag::kNextFileNumber:
      case EditTag::kLastSequence:
      case EditTag::kPrevLogNumber:
      case EditTag::kMaxColumnFamily:
      case EditTag::kInAtomicGroup:
        read = TakeEditVarint(&edit).has_value();
        break;
      case EditTag::kMinLogNumberToKeep: {
        const std::optional<uint64_t> value = TakeEditVarint(&edit);
        read = value.has_value();
        *min_log_to_keep = std::max(*min_log_to_keep, value.value_or(0));
        break;
      }
      case EditTag::kColumnFamily: {
        const std::optional<uint64_t> value = TakeEditVarint(&edit);
        read = value.has_value();
        id = static_cast<uint32_t>(value.value_or(0));
        break;
      }
      case EditTag::kComparator:
        read = TakeEditText(&edit, &comparator);
        break;
      case EditTag::kColumnFamilyAdd:
        adds = true;
        read = TakeEditText(&edit, &name);
        break;
      case EditTag::kColumnFamilyDrop:
        drops = true;
        break;
      default:
        read = (*tag & EditTag::kMayBeIgnored) != 0 && TakeEditText(&edit, &skipped);
        break;
    }
    if (!read) return;  // an edit of files
  }
  if (adds) (*names)[id] = name;
  if (!comparator.empty()) (*comparators)[id] = comparator;
  if (drops) {
    names->erase(id);
    comparators->erase(id);
  }
}

// Returns the first fragment of `bytes`; nullopt if it is incomplete, as at the end of the written
// part.
struct EditsFragment {
  uint8_t type;
  std::string_view bytes;
};
std::optional<EditsFragment> FirstFragment(std::string_view bytes) {
  if (bytes.size() < kEditsHeaderBytes) return std::nullopt;
  uint32_t checksum;
  std::memcpy(&checksum, bytes.data(), sizeof checksum);
  const size_t length = static_cast<uint8_t>(bytes[4]) | (static_cast<uint8_t>(bytes[5]) << 8);
  if (bytes.size() < kEditsHeaderBytes + length ||
      MaskedCrc32c(Crc32c(bytes.substr(kEditsHeaderBytes - 1, 1 + length))) != checksum) {
    return std::nullopt;
  }
  return EditsFragment{static_cast<uint8_t>(bytes[6]), bytes.substr(kEditsHeaderBytes, length)};
}

}  // namespace

absl::Status ManifestFamilies::FromFile(const rocksdb::Status& status) const {
  return FromRocksDb(status, absl::StrFormat("cannot read the MANIFEST of database '%s'", path_));
}

absl::StatusOr<std::map<uint32_t, std::string>> ManifestFamilies::Read() {
  absl::Status last;
  constexpr int kTries = 3;  // a new MANIFEST may take the old one's place at any time
  for (int i = 0; i < kTries; ++i) {
    std::string current;
    RETURN_IF_ERROR(FromFile(rocksdb::ReadFileToString(files_, path_ + "/CURRENT", &current)));
    if (current.empty() || current.back() != '\n') {
      return absl::DataLossError(absl::StrFormat("'%s/CURRENT' does not name a MANIFEST", path_));
    }
    current.pop_back();
    // The name stays empty after an error or an exception, so that the next call starts at the
    // beginning of the MANIFEST.
    if (current != std::exchange(name_, std::string())) {
      offset_ = 0;
      record_.clear();
      names_ = {{0, rocksdb::kDefaultColumnFamilyName}};
      comparators_.clear();
      min_log_to_keep_ = 0;
    }
    last = ReadOn(current);
    if (last.ok()) {
      name_ = std::move(current);
      return names_;
    }
    if (!absl::IsNotFound(last)) return last;
  }
  return last;
}

absl::Status ManifestFamilies::ReadOn(const std::string& name) {
  ASSIGN_OR_RETURN(const bool whole, ReadFragments(name));
  if (whole || db_ == nullptr) return absl::OkStatus();
  // The rest is being written, or it is damaged. RocksDB knows how much has been written.
  std::vector<std::string> live;
  uint64_t written = 0;
  const rocksdb::Status listed = db_->GetLiveFiles(live, &written, /*flush_memtable=*/false);
  if (listed.IsNotSupported()) return absl::OkStatus();
  RETURN_IF_ERROR(FromFile(listed));
  if (std::find(live.begin(), live.end(), "/" + name) == live.end()) {
    return absl::NotFoundError(
        absl::StrFormat("'%s/%s' was replaced while it was read", path_, name));
  }
  if (written <= offset_) return absl::OkStatus();
  RETURN_IF_ERROR(ReadFragments(name).status());
  if (written <= offset_ || IsReadOnly()) return absl::OkStatus();
  return absl::DataLossError(
      absl::StrFormat("'%s/%s' is damaged at byte %d of %d, so the column families of the database "
                      "are unknown; RocksDB may not be able to open the database again",
                      path_, name, offset_, written));
}

// For such a database, another process may be writing the MANIFEST, or its end was cut off in a
// crash. RocksDB does not open a database with any other damage.
bool ManifestFamilies::IsReadOnly() const {
  rocksdb::WriteOptions options;
  options.no_slowdown = true;
  rocksdb::WriteBatch nothing;
  return db_->GetRootDB()->Write(options, &nothing).IsNotSupported();
}

absl::StatusOr<bool> ManifestFamilies::ReadFragments(const std::string& name) {
  const std::string path = path_ + "/" + name;
  uint64_t size = 0;
  RETURN_IF_ERROR(FromFile(files_->GetFileSize(path, rocksdb::IOOptions(), &size, nullptr)));
  if (size <= offset_) return size == offset_;
  std::unique_ptr<rocksdb::FSSequentialFile> file;
  RETURN_IF_ERROR(
      FromFile(files_->NewSequentialFile(path, rocksdb::FileOptions(), &file, nullptr)));
  RETURN_IF_ERROR(FromFile(file->Skip(offset_)));
  std::string buffer(kEditsBlockBytes, '\0');
  while (true) {
    const size_t wanted = kEditsBlockBytes - offset_ % kEditsBlockBytes;
    size_t filled = 0;
    while (filled < wanted) {
      rocksdb::Slice read;
      RETURN_IF_ERROR(FromFile(file->Read(wanted - filled, rocksdb::IOOptions(), &read,
                                          buffer.data() + filled, nullptr)));
      if (read.empty()) break;
      if (read.data() != buffer.data() + filled) {
        std::memmove(buffer.data() + filled, read.data(), read.size());
      }
      filled += read.size();
    }
    std::string_view block(buffer.data(), filled);
    while (const std::optional<EditsFragment> fragment = FirstFragment(block)) {
      const uint8_t type = fragment->type;
      if (type == EditFragment::kFull || type == EditFragment::kFirst) record_.clear();
      record_.append(fragment->bytes);
      if (type == EditFragment::kFull || type == EditFragment::kLast) {
        ApplyEdit(record_, &names_, &comparators_, &min_log_to_keep_);
      }
      block.remove_prefix(kEditsHeaderBytes + fragment->bytes.size());
      offset_ += kEditsHeaderBytes + fragment->bytes.size();
    }
    // Every block except the last one ends with fewer bytes than a header.
    if (filled < wanted || block.size() >= kEditsHeaderBytes) return block.empty();
    offset_ += block.size();
  }
}

}  // namespace cairn
