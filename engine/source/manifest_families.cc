#include "engine/source/manifest_families.h"

#include <cstddef>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "absl/strings/str_format.h"
#include "engine/util/crc32c.h"
#include "engine/util/status.h"
#include "index/machine/status_macros.h"
#include "rocksdb/file_system.h"

namespace cairn {
namespace {

// A MANIFEST is a file in the log format, whose records are version edits: tags with values. The
// edits that add or drop a column family do nothing else to files, so that the tags of files end
// the reading of an edit.
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

// Takes a varint off the bytes; nothing if they end within it.
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

bool SkipEditText(std::string_view* bytes) {
  const std::optional<uint64_t> size = TakeEditVarint(bytes);
  if (!size.has_value() || *size > bytes->size()) return false;
  bytes->remove_prefix(*size);
  return true;
}

void ApplyEdit(std::string_view edit, std::set<uint32_t>* ids) {
  uint32_t id = 0;  // the default column family's is not written
  bool adds = false, drops = false;
  while (!edit.empty()) {
    const std::optional<uint64_t> tag = TakeEditVarint(&edit);
    if (!tag.has_value()) return;
    bool read = true;
    switch (*tag) {
      case EditTag::kLogNumber:
      case EditTag::kNextFileNumber:
      case EditTag::kLastSequence:
      case EditTag::kPrevLogNumber:
      case EditTag::kMinLogNumberToKeep:
      case EditTag::kMaxColumnFamily:
      case EditTag::kInAtomicGroup:
        read = TakeEditVarint(&edit).has_value();
        break;
      case EditTag::kColumnFamily: {
        const std::optional<uint64_t> value = TakeEditVarint(&edit);
        read = value.has_value();
        id = static_cast<uint32_t>(value.value_or(0));
        break;
      }
      case EditTag::kColumnFamilyAdd:
        adds = true;
        read = SkipEditText(&edit);
        break;
      case EditTag::kColumnFamilyDrop:
        drops = true;
        break;
      default:
        read = (*tag == EditTag::kComparator || (*tag & EditTag::kMayBeIgnored) != 0) &&
               SkipEditText(&edit);
        break;
    }
    if (!read) return;  // an edit of files
  }
  if (adds) ids->insert(id);
  if (drops) ids->erase(id);
}

// Applies the edits of a MANIFEST's blocks, one after the other.
class EditReader {
 public:
  explicit EditReader(std::set<uint32_t>* ids) : ids_(ids) {}

  // False at the end of what has been written.
  bool ReadBlock(std::string_view block) {
    while (block.size() >= kEditsHeaderBytes) {
      uint32_t checksum;
      std::memcpy(&checksum, block.data(), sizeof checksum);
      const size_t length = static_cast<uint8_t>(block[4]) | (static_cast<uint8_t>(block[5]) << 8);
      const auto type = static_cast<uint8_t>(block[6]);
      if (block.size() < kEditsHeaderBytes + length ||
          MaskedCrc32c(Crc32c(block.substr(kEditsHeaderBytes - 1, 1 + length))) != checksum) {
        return false;
      }
      const std::string_view bytes = block.substr(kEditsHeaderBytes, length);
      if (type == EditFragment::kFull || type == EditFragment::kFirst) record_.clear();
      record_.append(bytes);
      if (type == EditFragment::kFull || type == EditFragment::kLast) ApplyEdit(record_, ids_);
      block.remove_prefix(kEditsHeaderBytes + length);
    }
    return true;
  }

 private:
  std::set<uint32_t>* const ids_;
  std::string record_;
};

}  // namespace

absl::StatusOr<std::set<uint32_t>> LiveColumnFamilyIds(rocksdb::DB* db) {
  rocksdb::FileSystem* const files = db->GetFileSystem();
  const auto opened = [&](const rocksdb::Status& s) {
    return FromRocksDb(s,
                       absl::StrFormat("cannot read the MANIFEST of database '%s'", db->GetName()));
  };
  absl::Status last;
  constexpr int kTries = 3;  // a new MANIFEST may take the old one's place at any time
  for (int i = 0; i < kTries; ++i) {
    std::string name;
    RETURN_IF_ERROR(opened(rocksdb::ReadFileToString(files, db->GetName() + "/CURRENT", &name)));
    if (name.empty() || name.back() != '\n') {
      return absl::DataLossError(
          absl::StrFormat("'%s/CURRENT' does not name a MANIFEST", db->GetName()));
    }
    name.pop_back();
    std::unique_ptr<rocksdb::FSSequentialFile> file;
    const std::string path = db->GetName() + "/" + name;
    last = opened(files->NewSequentialFile(path, rocksdb::FileOptions(), &file, nullptr));
    if (absl::IsNotFound(last)) continue;
    RETURN_IF_ERROR(last);
    std::set<uint32_t> ids = {0};
    EditReader edits(&ids);
    std::string buffer(kEditsBlockBytes, '\0');
    while (true) {
      size_t filled = 0;
      while (filled < kEditsBlockBytes) {
        rocksdb::Slice read;
        RETURN_IF_ERROR(opened(file->Read(kEditsBlockBytes - filled, rocksdb::IOOptions(), &read,
                                          buffer.data() + filled, nullptr)));
        if (read.empty()) break;
        if (read.data() != buffer.data() + filled) {
          std::memmove(buffer.data() + filled, read.data(), read.size());
        }
        filled += read.size();
      }
      if (!edits.ReadBlock({buffer.data(), filled}) || filled < kEditsBlockBytes) return ids;
    }
  }
  return last;
}

}  // namespace cairn
