#include "engine/delta_files/delta_file.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <numeric>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "engine/delta/update_rows.h"
#include "engine/rows/row_table_writer.h"
#include "engine/util/sorted_order.h"
#include "index/files/section_file_writer.h"
#include "index/keys/escaped_text.h"
#include "index/machine/status_macros.h"
#include "index/query/physical_key.h"

namespace cairn {
namespace {

constexpr std::string_view kSectionNames[] = {
    "properties",  "primary keys", "primary key lengths", "key counts", "keys",
    "key lengths", "range ends",   "range end lengths",   "tuples",     "tuple lengths"};

uint32_t Id(DeltaSection section) {
  return static_cast<uint32_t>(section);
}

uint64_t BeginOfKeys(const RowUpdates& updates, size_t row) {
  return row == 0 ? 0 : updates.row_ends[row - 1];
}

absl::Status CheckUpdates(const RowUpdates& updates) {
  RETURN_IF_ERROR(CheckColumns(updates));
  if (updates.rows() > kMaxEntries || updates.keys.size() > kMaxEntries ||
      updates.deleted_from.size() > kMaxEntries / 2) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "updates of %d rows with %d keys and %d deleted ranges: expected at most %d rows, %d "
        "keys and %d ranges",
        updates.rows(), updates.keys.size(), updates.deleted_from.size(), kMaxEntries, kMaxEntries,
        kMaxEntries / 2));
  }
  return absl::OkStatus();
}

// Returns the order of the rows by primary key; empty if they are already in that order.
absl::StatusOr<std::vector<uint32_t>> OrderOfRows(const StringList& primary_keys) {
  std::vector<std::string_view> keys(primary_keys.size());
  for (size_t i = 0; i < keys.size(); ++i) {
    keys[i] = primary_keys[i];
    if (keys[i].size() > RowTableWriter::kMaxPrimaryKeyBytes) {
      return absl::InvalidArgumentError(
          absl::StrFormat("a primary key has %d bytes, expected at most %d", keys[i].size(),
                          RowTableWriter::kMaxPrimaryKeyBytes));
    }
  }
  const auto descend = [](std::string_view a, std::string_view b) { return a >= b; };
  if (std::adjacent_find(keys.begin(), keys.end(), descend) == keys.end()) {
    return std::vector<uint32_t>();
  }
  std::vector<uint32_t> order = SortedOrder<std::string_view>(keys);
  const auto twice = std::adjacent_find(order.begin(), order.end(),
                                        [&](uint32_t a, uint32_t b) { return keys[a] == keys[b]; });
  if (twice != order.end()) {
    return absl::InvalidArgumentError(
        absl::StrFormat("updates name the row '%s' twice", EscapeBytes(keys[*twice])));
  }
  return order;
}

// Writes the sections of one delta file, one after the other. After an error it writes nothing
// more.
class DeltaSections {
 public:
  explicit DeltaSections(SectionFileWriter* file) : file_(file) {}

  // Writes `count` numbers or strings; the i-th is `element(i)`.
  template <typename Element>
  void Write(DeltaSection id, size_t count, Element element) {
    using T = decltype(element(size_t{0}));
    constexpr bool kStrings = std::is_same_v<T, std::string_view>;
    uint64_t bytes = count * sizeof(T);
    if constexpr (kStrings) {
      bytes = 0;
      for (size_t i = 0; i < count; ++i) bytes += element(i).size();
    }
    if (!status_.ok()) return;
    absl::StatusOr<SectionWriter*> section = file_->AddSection(Id(id), bytes);
    status_ = section.status();
    for (size_t i = 0; i < count && status_.ok(); ++i) {
      const T value = element(i);
      if constexpr (kStrings) {
        status_ = (*section)->Append(value.data(), value.size());
      } else {
        status_ = (*section)->Append(&value, sizeof value);
      }
    }
    if (status_.ok()) status_ = (*section)->Close();
  }
  // Writes `count` strings, and a section of their lengths.
  template <typename Element>
  void WriteStrings(DeltaSection id, DeltaSection lengths_id, size_t count, Element element) {
    for (size_t i = 0; i < count && status_.ok(); ++i) {
      if (element(i).size() <= UINT32_MAX) continue;
      status_ = absl::InvalidArgumentError(absl::StrFormat(
          "a key has %d bytes, expected at most %d", element(i).size(), UINT32_MAX));
    }
    Write(id, count, element);
    Write(lengths_id, count, [&](size_t i) { return static_cast<uint32_t>(element(i).size()); });
  }

  absl::Status Finish() { return status_.ok() ? file_->Finish() : status_; }

 private:
  SectionFileWriter* const file_;
  absl::Status status_;
};

absl::Status Damaged(const SectionFile& file, DeltaSection section, uint64_t offset_in_section,
                     std::string_view what) {
  return absl::DataLossError(absl::StrFormat(
      "%s '%s' is damaged at offset %d, in section '%s': %s", kDeltaFileFormat.name, file.path(),
      file.Find(Id(section))->offset + offset_in_section, file.SectionName(Id(section)), what));
}

absl::StatusOr<DeltaProperties> ReadProperties(const SectionFile& file) {
  ASSIGN_OR_RETURN(const auto bytes, file.Array<DeltaProperties>(Id(DeltaSection::kProperties), 1));
  RETURN_IF_ERROR(file.VerifySection(*file.Find(Id(DeltaSection::kProperties))));
  const DeltaProperties properties = bytes.front();
  const auto damaged = [&](size_t offset, std::string_view what) {
    return Damaged(file, DeltaSection::kProperties, offset, what);
  };
  if (properties.key_kind < static_cast<uint32_t>(PhysicalType::kU32) ||
      properties.key_kind > static_cast<uint32_t>(PhysicalType::kBytes)) {
    return damaged(0, absl::StrFormat("unknown kind of keys %d", properties.key_kind));
  }
  if (properties.rows > kMaxEntries) {
    return damaged(offsetof(DeltaProperties, rows), absl::StrFormat("%d rows", properties.rows));
  }
  if (properties.keys > kMaxEntries) {
    return damaged(offsetof(DeltaProperties, keys), absl::StrFormat("%d keys", properties.keys));
  }
  if (properties.deleted_ranges > kMaxEntries / 2) {
    return damaged(offsetof(DeltaProperties, deleted_ranges),
                   absl::StrFormat("%d deleted ranges", properties.deleted_ranges));
  }
  if (properties.after > properties.sequence) {
    return damaged(offsetof(DeltaProperties, sequence),
                   absl::StrFormat("updates from sequence number %d back to %d", properties.after,
                                   properties.sequence));
  }
  return properties;
}

// Checks that the numbers of a section add up to `total`.
absl::Status CheckSum(const SectionFile& file, DeltaSection id, absl::Span<const uint32_t> numbers,
                      uint64_t total) {
  const uint64_t sum = std::accumulate(numbers.begin(), numbers.end(), uint64_t{0});
  if (sum == total) return absl::OkStatus();
  return Damaged(file, id, 0, absl::StrFormat("a sum of %d, expected %d", sum, total));
}

absl::Status ReadStrings(const SectionFile& file, DeltaSection id, DeltaSection lengths_id,
                         uint64_t count, PackedStrings* strings) {
  const Section* section = file.Find(Id(id));
  ASSIGN_OR_RETURN(const auto bytes,
                   file.Array<char>(Id(id), section == nullptr ? 0 : section->size));
  ASSIGN_OR_RETURN(const auto lengths, file.Array<uint32_t>(Id(lengths_id), count));
  *strings = {{bytes.data(), bytes.size()}, lengths};
  return CheckSum(file, lengths_id, lengths, bytes.size());
}

absl::Status ReadKeys(DeltaFile* delta) {
  const uint64_t keys = delta->properties.keys;
  if (delta->properties.kind() == PhysicalType::kBytes) {
    return ReadStrings(delta->file, DeltaSection::kKeys, DeltaSection::kKeyLengths, keys,
                       &delta->keys);
  }
  const auto read = [&](auto number) -> absl::Status {
    ASSIGN_OR_RETURN(const auto numbers,
                     delta->file.Array<decltype(number)>(Id(DeltaSection::kKeys), keys));
    delta->keys.bytes = {reinterpret_cast<const char*>(numbers.data()), keys * sizeof number};
    return absl::OkStatus();
  };
  return delta->properties.kind() == PhysicalType::kU32 ? read(uint32_t{}) : read(uint64_t{});
}

absl::Status CheckPrimaryKeys(const DeltaFile& delta) {
  std::string_view before;
  uint64_t offset = 0;
  for (size_t row = 0; row < delta.primary_keys.lengths.size(); ++row) {
    const uint32_t length = delta.primary_keys.lengths[row];
    if (length > RowTableWriter::kMaxPrimaryKeyBytes) {
      return Damaged(delta.file, DeltaSection::kPrimaryKeyLengths, row * sizeof length,
                     absl::StrFormat("a primary key of %d bytes", length));
    }
    const std::string_view key = delta.primary_keys.bytes.substr(offset, length);
    if (row > 0 && key <= before) {
      return Damaged(
          delta.file, DeltaSection::kPrimaryKeys, offset,
          absl::StrFormat("the primary keys of rows %d and %d do not ascend", row - 1, row));
    }
    before = key;
    offset += length;
  }
  return absl::OkStatus();
}

// Returns string `i`, which starts at *offset, and moves *offset past its end.
std::string_view NextString(const PackedStrings& strings, uint64_t i, uint64_t* offset) {
  const std::string_view string = strings.bytes.substr(*offset, strings.lengths[i]);
  *offset += string.size();
  return string;
}

}  // namespace

constinit const FileFormat kDeltaFileFormat = {"delta file", "CAIRNDLT", 1, 0, kSectionNames};

absl::StatusOr<ManifestFile> WriteDelta(IndexDirectory* directory, const RowUpdates& updates,
                                        SequenceNumber after, SequenceNumber sequence) {
  RETURN_IF_ERROR(CheckUpdates(updates));
  if (after > sequence) {
    return absl::InvalidArgumentError(
        absl::StrFormat("updates from sequence number %d back to %d", after, sequence));
  }
  ASSIGN_OR_RETURN(const std::vector<uint32_t> order, OrderOfRows(updates.primary_keys));
  const auto row_at = [&](size_t i) { return order.empty() ? i : order[i]; };
  std::vector<uint32_t> order_of_keys;  // empty: in their stored order
  if (!order.empty()) {
    order_of_keys.reserve(updates.keys.size());
    for (uint32_t row : order) {
      for (uint64_t k = BeginOfKeys(updates, row); k < updates.row_ends[row]; ++k) {
        order_of_keys.push_back(static_cast<uint32_t>(k));
      }
    }
  }
  const auto key_at = [&](size_t i) { return order_of_keys.empty() ? i : order_of_keys[i]; };

  const std::string name = directory->NextFileName("delta", "upd");
  ASSIGN_OR_RETURN(
      std::unique_ptr<SectionFileWriter> file,
      SectionFileWriter::Create(directory->PathOf(name), kDeltaFileFormat, directory->files()));
  DeltaSections sections(file.get());
  const size_t rows = updates.rows();
  const size_t keys = updates.keys.size();
  const size_t ranges = updates.deleted_from.size();
  const PhysicalType kind = updates.keys.kind();
  sections.Write(DeltaSection::kProperties, 1, [&](size_t) {
    return DeltaProperties{static_cast<uint32_t>(kind), 0, rows, keys, ranges, after, sequence};
  });
  sections.WriteStrings(DeltaSection::kPrimaryKeys, DeltaSection::kPrimaryKeyLengths, rows,
                        [&](size_t i) { return updates.primary_keys[row_at(i)]; });
  sections.Write(DeltaSection::kKeyCounts, rows, [&](size_t i) {
    const size_t row = row_at(i);
    return static_cast<uint32_t>(updates.row_ends[row] - BeginOfKeys(updates, row));
  });
  WithPhysicalKey(kind, [&](auto type) {
    using Key = typename decltype(type)::type;
    const auto key = [&](size_t i) { return KeyAt<Key>(updates.keys, key_at(i)); };
    if constexpr (std::is_same_v<Key, std::string_view>) {
      sections.WriteStrings(DeltaSection::kKeys, DeltaSection::kKeyLengths, keys, key);
    } else {
      sections.Write(DeltaSection::kKeys, keys, key);
    }
  });
  sections.WriteStrings(
      DeltaSection::kRangeEnds, DeltaSection::kRangeEndLengths, 2 * ranges, [&](size_t i) {
        return i % 2 == 0 ? updates.deleted_from[i / 2] : updates.deleted_to[i / 2];
      });
  if (!updates.tuples.empty()) {
    sections.WriteStrings(DeltaSection::kTuples, DeltaSection::kTupleLengths, rows,
                          [&](size_t i) { return updates.tuples[row_at(i)]; });
  }
  RETURN_IF_ERROR(sections.Finish());
  return ManifestFile{name, file->size(), file->header_checksum()};
}

absl::StatusOr<DeltaFile> OpenDelta(const std::string& path, VerifyLevel level, int threads,
                                    FileSystem* files) {
  ASSIGN_OR_RETURN(SectionFile file,
                   SectionFile::Open(path, kDeltaFileFormat, level, threads, files));
  return OpenDelta(std::move(file));
}

absl::StatusOr<DeltaFile> OpenDelta(SectionFile file) {
  ASSIGN_OR_RETURN(const DeltaProperties properties, ReadProperties(file));
  DeltaFile delta{std::move(file), properties, {}, {}, {}, {}, false, {}};
  RETURN_IF_ERROR(ReadStrings(delta.file, DeltaSection::kPrimaryKeys,
                              DeltaSection::kPrimaryKeyLengths, properties.rows,
                              &delta.primary_keys));
  RETURN_IF_ERROR(CheckPrimaryKeys(delta));
  ASSIGN_OR_RETURN(const auto counts,
                   delta.file.Array<uint32_t>(Id(DeltaSection::kKeyCounts), properties.rows));
  delta.key_counts = counts;
  RETURN_IF_ERROR(CheckSum(delta.file, DeltaSection::kKeyCounts, counts, properties.keys));
  RETURN_IF_ERROR(ReadKeys(&delta));
  RETURN_IF_ERROR(ReadStrings(delta.file, DeltaSection::kRangeEnds, DeltaSection::kRangeEndLengths,
                              2 * properties.deleted_ranges, &delta.range_ends));
  delta.has_tuples = delta.file.Find(Id(DeltaSection::kTuples)) != nullptr;
  if (delta.has_tuples) {
    RETURN_IF_ERROR(ReadStrings(delta.file, DeltaSection::kTuples, DeltaSection::kTupleLengths,
                                properties.rows, &delta.tuples));
  }
  return delta;
}

bool DeltaReader::Next(size_t rows, RowUpdates* updates) {
  const uint64_t left = file_.properties.rows - row_;
  if (std::exchange(started_, true) && left == 0) return false;
  updates->Clear();
  updates->keys.Clear(file_.properties.kind());
  if (row_ == 0) {
    uint64_t byte = 0;
    for (size_t i = 0; i < file_.range_ends.lengths.size(); i += 2) {
      const std::string_view from = NextString(file_.range_ends, i, &byte);
      updates->DeleteRange(from, NextString(file_.range_ends, i + 1, &byte));
    }
  }
  const uint64_t end = row_ + std::min<uint64_t>(rows, left);
  WithPhysicalKey(file_.properties.kind(), [&](auto type) {
    for (; row_ < end; ++row_) {
      ReadKeys<typename decltype(type)::type>(file_.key_counts[row_], &updates->keys);
      updates->EndRow(NextString(file_.primary_keys, row_, &primary_byte_));
      if (file_.has_tuples) updates->tuples.Append(NextString(file_.tuples, row_, &tuple_byte_));
    }
  });
  return true;
}

template <typename Key>
void DeltaReader::ReadKeys(uint64_t count, EncodedKeys* keys) {
  for (const uint64_t end = key_ + count; key_ < end; ++key_) {
    if constexpr (std::is_same_v<Key, std::string_view>) {
      keys->AppendBytes(NextString(file_.keys, key_, &key_byte_));
    } else {
      Key key;
      std::memcpy(&key, file_.keys.bytes.data() + key_ * sizeof key, sizeof key);
      if constexpr (sizeof key == 4) {
        keys->AppendU32(key);
      } else {
        keys->AppendU64(key);
      }
    }
  }
}

}  // namespace cairn
