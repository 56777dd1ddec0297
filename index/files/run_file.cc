#include "index/files/run_file.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>

#include "absl/strings/str_format.h"
#include "index/machine/status_macros.h"
#include "index/run/entry_order.h"

namespace cairn {
namespace {

constexpr std::string_view kSectionNames[] = {"properties", "keys", "key heap", "key offsets",
                                              "row ids"};
constexpr std::string_view kExtraSectionNames[] = {
    "leaf properties", "leaves",          "cells",    "cell groups",
    "group bounds",    "leaf separators", "leaf tree"};

// The max sum of key lengths: beyond any disk, and far from overflow.
constexpr uint64_t kMaxKeyHeapBytes = uint64_t{1} << 56;

absl::Status Damaged(const SectionFile& file, RunSection section, uint64_t offset_in_section,
                     std::string_view what) {
  const auto id = static_cast<uint32_t>(section);
  return absl::DataLossError(absl::StrFormat(
      "%s '%s' is damaged at offset %d, in section '%s': %s", kRunFileFormat.name, file.path(),
      file.Find(id)->offset + offset_in_section, file.SectionName(id), what));
}

template <typename T>
absl::StatusOr<absl::Span<const T>> Column(const SectionFile& file, RunSection section,
                                           uint64_t count) {
  return file.Array<T>(static_cast<uint32_t>(section), count);
}

// Reads the properties, and checks everything that needs no columns.
absl::StatusOr<RunProperties> ReadProperties(const SectionFile& file) {
  ASSIGN_OR_RETURN(auto bytes, Column<RunProperties>(file, RunSection::kProperties, 1));
  const auto id = static_cast<uint32_t>(RunSection::kProperties);
  RETURN_IF_ERROR(file.VerifySection(*file.Find(id)));
  const RunProperties properties = bytes.front();
  const auto damaged = [&](size_t offset, std::string_view what) {
    return Damaged(file, RunSection::kProperties, offset, what);
  };
  const bool strings = properties.key_kind == static_cast<uint32_t>(PhysicalType::kBytes);
  if (!strings && properties.key_kind != static_cast<uint32_t>(PhysicalType::kU32) &&
      properties.key_kind != static_cast<uint32_t>(PhysicalType::kU64)) {
    return damaged(0, absl::StrFormat("%d is not a kind of key", properties.key_kind));
  }
  if (strings ? properties.offset_bytes != 4 && properties.offset_bytes != 8
              : properties.offset_bytes != 0) {
    return damaged(offsetof(RunProperties, offset_bytes),
                   absl::StrFormat("offsets have %d bytes", properties.offset_bytes));
  }
  if (properties.entries > kMaxEntries) {
    return damaged(
        offsetof(RunProperties, entries),
        absl::StrFormat("%d entries, expected at most %d", properties.entries, kMaxEntries));
  }
  if (properties.distinct_keys > properties.entries ||
      (properties.distinct_keys == 0) != (properties.entries == 0)) {
    return damaged(offsetof(RunProperties, distinct_keys),
                   absl::StrFormat("%d distinct keys in %d entries", properties.distinct_keys,
                                   properties.entries));
  }
  if (properties.rows_bound > uint64_t{kNoRow} ||
      (properties.rows_bound == 0) != (properties.entries == 0)) {
    return damaged(offsetof(RunProperties, rows_bound),
                   absl::StrFormat("the highest row id is %d - 1", properties.rows_bound));
  }
  const uint64_t key_bytes = properties.entries * (properties.kind() == PhysicalType::kU32 ? 4 : 8);
  if (!strings && properties.key_bytes != key_bytes) {
    return damaged(
        offsetof(RunProperties, key_bytes),
        absl::StrFormat("%d bytes of keys, expected %d", properties.key_bytes, key_bytes));
  }
  return properties;
}

// Offsets must start at 0, ascend, and end at the heap's end.
template <typename Offset>
absl::StatusOr<BytesColumn> ReadStrings(const SectionFile& file, const RunProperties& properties,
                                        int threads) {
  ASSIGN_OR_RETURN(auto heap, Column<char>(file, RunSection::kKeyHeap, properties.key_bytes));
  ASSIGN_OR_RETURN(auto offsets,
                   Column<Offset>(file, RunSection::kKeyOffsets, properties.entries + 1));
  if (offsets.front() != 0 || offsets.back() != heap.size()) {
    return Damaged(file, RunSection::kKeyOffsets, 0,
                   absl::StrFormat("offsets from %d to %d, expected 0 to %d", offsets.front(),
                                   offsets.back(), heap.size()));
  }
  if (const std::optional<size_t> i = FirstDescent(offsets, threads); i.has_value()) {
    return Damaged(file, RunSection::kKeyOffsets, *i * sizeof(Offset),
                   absl::StrFormat("offset %d follows %d", offsets[*i], offsets[*i - 1]));
  }
  return BytesColumn(heap.data(), offsets);
}

template <typename Key>
absl::StatusOr<SortedRun> FixedWidthRun(const SectionFile& file, uint64_t entries,
                                        absl::Span<const RowId> row_ids) {
  ASSIGN_OR_RETURN(auto keys, Column<Key>(file, RunSection::kKeys, entries));
  return SortedRun::Wrap(keys, row_ids, file.owner());
}

absl::StatusOr<SortedRun> WrapColumns(const SectionFile& file, const RunProperties& properties,
                                      absl::Span<const RowId> row_ids, int threads) {
  switch (properties.kind()) {
    case PhysicalType::kU32:
      return FixedWidthRun<uint32_t>(file, properties.entries, row_ids);
    case PhysicalType::kU64:
      return FixedWidthRun<uint64_t>(file, properties.entries, row_ids);
    case PhysicalType::kBytes:
      break;
  }
  ASSIGN_OR_RETURN(BytesColumn keys, properties.offset_bytes == 4
                                         ? ReadStrings<uint32_t>(file, properties, threads)
                                         : ReadStrings<uint64_t>(file, properties, threads));
  return SortedRun::Wrap(keys, row_ids, file.owner());
}

// Reads all entries once; checks their order, and that they agree with the properties.
absl::Status CheckColumns(const SectionFile& file, const RunProperties& properties,
                          const SortedRun& run, int threads) {
  const EntryOrder order = OrderOf(run, threads);
  if (!order.ascends) {
    const bool strings = run.kind() == PhysicalType::kBytes;
    const uint64_t width = strings                            ? properties.offset_bytes
                           : run.kind() == PhysicalType::kU32 ? sizeof(uint32_t)
                                                              : sizeof(uint64_t);
    return Damaged(file, strings ? RunSection::kKeyOffsets : RunSection::kKeys,
                   *FirstOutOfOrder(run) * width, std::string(run.CheckOrder().message()));
  }
  const uint64_t rows_bound = run.empty() ? 0 : uint64_t{order.highest_row} + 1;
  if (rows_bound != properties.rows_bound) {
    return Damaged(file, RunSection::kProperties, offsetof(RunProperties, rows_bound),
                   absl::StrFormat("the highest row id is %d - 1, expected %d - 1", rows_bound,
                                   properties.rows_bound));
  }
  if (order.distinct != properties.distinct_keys) {
    return Damaged(file, RunSection::kProperties, offsetof(RunProperties, distinct_keys),
                   absl::StrFormat("there are %d distinct keys, expected %d", order.distinct,
                                   properties.distinct_keys));
  }
  return absl::OkStatus();
}

}  // namespace

constinit const FileFormat kRunFileFormat = {"run file", "CAIRNRUN",    1,
                                             0,          kSectionNames, kExtraSectionNames};

absl::StatusOr<std::unique_ptr<RunFileWriter>> RunFileWriter::Create(const std::string& path,
                                                                     PhysicalType kind,
                                                                     RunFileOptions options,
                                                                     FileSystem* files) {
  ASSIGN_OR_RETURN(auto file, SectionFileWriter::Create(path, kRunFileFormat, files));
  return std::unique_ptr<RunFileWriter>(new RunFileWriter(std::move(file), kind, options));
}

RunFileWriter::RunFileWriter(std::unique_ptr<SectionFileWriter> file, PhysicalType kind,
                             RunFileOptions options)
    : file_(std::move(file)), options_(options) {
  properties_.key_kind = static_cast<uint32_t>(kind);
}

absl::Status RunFileWriter::Begin(uint64_t entries, uint64_t key_bytes) {
  if (!status_.ok()) return status_;
  if (begun_)
    return Fail(absl::InternalError(absl::StrFormat("'%s': a second Begin", file_->path())));
  if (entries > kMaxEntries) {
    return Fail(absl::ResourceExhaustedError(absl::StrFormat(
        "'%s': a run has at most %d entries, found %d", file_->path(), kMaxEntries, entries)));
  }
  if (absl::Status s = AddColumns(entries, key_bytes); !s.ok()) return Fail(std::move(s));
  promised_entries_ = entries;
  begun_ = true;
  return absl::OkStatus();
}

absl::Status RunFileWriter::AddColumns(uint64_t entries, uint64_t key_bytes) {
  const auto add = [this](RunSection id, uint64_t size, SectionWriter** section) {
    absl::StatusOr<SectionWriter*> added = file_->AddSection(static_cast<uint32_t>(id), size);
    if (added.ok()) *section = *added;
    return added.status();
  };
  if (properties_.kind() == PhysicalType::kBytes) {
    if (key_bytes > kMaxKeyHeapBytes) {
      return absl::ResourceExhaustedError(
          absl::StrFormat("'%s': %d bytes of keys", file_->path(), key_bytes));
    }
    properties_.offset_bytes = options_.wide_offsets || key_bytes > UINT32_MAX ? 8 : 4;
    RETURN_IF_ERROR(add(RunSection::kKeyHeap, key_bytes, &keys_));
    const uint64_t bytes = (entries + 1) * properties_.offset_bytes;
    RETURN_IF_ERROR(add(RunSection::kKeyOffsets, bytes, &offsets_));
    const uint64_t first_offset = 0;
    RETURN_IF_ERROR(offsets_->Append(&first_offset, properties_.offset_bytes));
  } else {
    const uint64_t width = properties_.kind() == PhysicalType::kU32 ? 4 : 8;
    RETURN_IF_ERROR(add(RunSection::kKeys, entries * width, &keys_));
  }
  return add(RunSection::kRowIds, entries * sizeof(RowId), &row_ids_);
}

absl::Status RunFileWriter::CheckBatch(PhysicalType kind, size_t keys, size_t row_ids) {
  if (!status_.ok()) return status_;
  if (!begun_ || kind != properties_.kind() || keys != row_ids) {
    return Fail(absl::InternalError(
        absl::StrFormat("'%s': %d keys of %s and %d row ids %s a run of %s", file_->path(), keys,
                        PhysicalTypeName(kind), row_ids, begun_ ? "for" : "before Begin of",
                        PhysicalTypeName(properties_.kind()))));
  }
  if (keys > promised_entries_ - properties_.entries) {
    return Fail(
        absl::InternalError(absl::StrFormat("'%s': expected %d entries, got %d", file_->path(),
                                            properties_.entries + keys, promised_entries_)));
  }
  return absl::OkStatus();
}

template <typename Key>
absl::Status RunFileWriter::CountAndCheckOrder(absl::Span<const Key> keys,
                                               absl::Span<const RowId> row_ids, Key last_key) {
  EntryOrder order = OrderOf(keys.data(), row_ids, 0, keys.size());
  if (properties_.entries != 0 && !(last_key < keys[0])) {
    --order.distinct;
    order.ascends &= last_key == keys[0] && last_row_id_ < row_ids[0];
  }
  if (!order.ascends) {
    return Fail(absl::InternalError(absl::StrFormat(
        "'%s': entries %d to %d do not ascend from the one before them", file_->path(),
        properties_.entries, properties_.entries + keys.size() - 1)));
  }
  if (order.highest_row == kNoRow) {
    return Fail(
        absl::InternalError(absl::StrFormat("'%s': %d is not a row id", file_->path(), kNoRow)));
  }
  properties_.entries += keys.size();
  properties_.distinct_keys += order.distinct;
  properties_.rows_bound = std::max(properties_.rows_bound, uint64_t{order.highest_row} + 1);
  last_row_id_ = row_ids.back();
  return absl::OkStatus();
}

template <typename Key>
absl::Status RunFileWriter::AppendFixedWidth(absl::Span<const Key> keys,
                                             absl::Span<const RowId> row_ids) {
  constexpr PhysicalType kKind = sizeof(Key) == 4 ? PhysicalType::kU32 : PhysicalType::kU64;
  RETURN_IF_ERROR(CheckBatch(kKind, keys.size(), row_ids.size()));
  if (keys.empty()) return absl::OkStatus();
  absl::Status s = CountAndCheckOrder(keys, row_ids, static_cast<Key>(last_key_));
  if (!s.ok()) return s;
  last_key_ = keys.back();
  properties_.key_bytes += keys.size() * sizeof(Key);
  s = keys_->AppendArray(keys);
  if (s.ok()) s = row_ids_->AppendArray(row_ids);
  return s.ok() ? s : Fail(std::move(s));
}

absl::Status RunFileWriter::Append(absl::Span<const uint32_t> keys,
                                   absl::Span<const RowId> row_ids) {
  return AppendFixedWidth(keys, row_ids);
}

absl::Status RunFileWriter::Append(absl::Span<const uint64_t> keys,
                                   absl::Span<const RowId> row_ids) {
  return AppendFixedWidth(keys, row_ids);
}

absl::Status RunFileWriter::Append(absl::Span<const std::string_view> keys,
                                   absl::Span<const RowId> row_ids) {
  RETURN_IF_ERROR(CheckBatch(PhysicalType::kBytes, keys.size(), row_ids.size()));
  if (keys.empty()) return absl::OkStatus();
  absl::Status s = CountAndCheckOrder(keys, row_ids, std::string_view(last_bytes_));
  if (!s.ok()) return s;
  last_bytes_ = keys.back();
  s = AppendStrings(keys, row_ids);
  return s.ok() ? s : Fail(std::move(s));
}

absl::Status RunFileWriter::AppendStrings(absl::Span<const std::string_view> keys,
                                          absl::Span<const RowId> row_ids) {
  // The heap comes before the offsets: it refuses more bytes than were promised, so that offsets
  // fit.
  for (std::string_view key : keys) {
    RETURN_IF_ERROR(keys_->Append(key.data(), key.size()));
  }
  const absl::Status s =
      properties_.offset_bytes == 4 ? AppendOffsets<uint32_t>(keys) : AppendOffsets<uint64_t>(keys);
  return s.ok() ? row_ids_->AppendArray(row_ids) : s;
}

template <typename Offset>
absl::Status RunFileWriter::AppendOffsets(absl::Span<const std::string_view> keys) {
  for (std::string_view key : keys) {
    properties_.key_bytes += key.size();
    const auto offset = static_cast<Offset>(properties_.key_bytes);
    RETURN_IF_ERROR(offsets_->Append(&offset, sizeof(offset)));
  }
  return absl::OkStatus();
}

absl::Status RunFileWriter::CloseColumns() {
  if (!status_.ok()) return status_;
  if (!begun_)
    return Fail(absl::InternalError(absl::StrFormat("'%s': Finish before Begin", file_->path())));
  // Closing a section fails if it has fewer entries or bytes than promised.
  for (SectionWriter* section : {keys_, offsets_, row_ids_}) {
    if (section == nullptr) continue;
    if (absl::Status s = section->Close(); !s.ok()) return Fail(std::move(s));
  }
  return absl::OkStatus();
}

absl::StatusOr<SortedRun> RunFileWriter::ReadBack() {
  RETURN_IF_ERROR(CloseColumns());
  absl::StatusOr<FileBytes> file = file_->MapWritten();
  if (!file.ok()) return Fail(file.status());
  uint64_t end = 0;  // of the bytes written so far
  for (const SectionWriter* section : {keys_, offsets_, row_ids_}) {
    if (section == nullptr || section->size() == 0) continue;
    end = section->offset() + AlignSection(section->size());
  }
  if (file->bytes.size() < end) {
    return Fail(absl::InternalError(absl::StrFormat("'%s': %d bytes, %d were written",
                                                    file_->path(), file->bytes.size(), end)));
  }
  const auto column = [&]<typename T>(const SectionWriter* section, T) {
    if (section->size() == 0) return absl::Span<const T>();
    return absl::Span<const T>(reinterpret_cast<const T*>(file->bytes.data() + section->offset()),
                               section->size() / sizeof(T));
  };
  const auto row_ids = column(row_ids_, RowId());
  switch (properties_.kind()) {
    case PhysicalType::kU32:
      return SortedRun::Wrap(column(keys_, uint32_t()), row_ids, file->owner);
    case PhysicalType::kU64:
      return SortedRun::Wrap(column(keys_, uint64_t()), row_ids, file->owner);
    case PhysicalType::kBytes:
      break;
  }
  const char* const heap = column(keys_, char()).data();
  return properties_.offset_bytes == 4
             ? SortedRun::Wrap(BytesColumn(heap, column(offsets_, uint32_t())), row_ids,
                               file->owner)
             : SortedRun::Wrap(BytesColumn(heap, column(offsets_, uint64_t())), row_ids,
                               file->owner);
}

absl::Status RunFileWriter::Finish() {
  RETURN_IF_ERROR(CloseColumns());
  const auto id = static_cast<uint32_t>(RunSection::kProperties);
  absl::StatusOr<SectionWriter*> section = file_->AddSection(id, sizeof(properties_));
  absl::Status s = section.status();
  if (s.ok()) s = (*section)->Append(&properties_, sizeof(properties_));
  if (s.ok()) s = (*section)->Close();
  if (s.ok()) s = file_->Finish();
  return s.ok() ? s : Fail(std::move(s));
}

absl::Status RunFileWriter::Fail(absl::Status status) {
  status_ = std::move(status);
  return status_;
}

absl::StatusOr<RunFile> OpenRun(const std::string& path, VerifyLevel level, int threads,
                                FileSystem* files) {
  ASSIGN_OR_RETURN(SectionFile file,
                   SectionFile::Open(path, kRunFileFormat, level, threads, files));
  return OpenRun(std::move(file), threads);
}

absl::StatusOr<RunFile> OpenRun(SectionFile file, int threads, ContentCheck check) {
  ASSIGN_OR_RETURN(RunProperties properties, ReadProperties(file));
  ASSIGN_OR_RETURN(auto row_ids, Column<RowId>(file, RunSection::kRowIds, properties.entries));
  const int workers = file.CheckThreads(threads);
  ASSIGN_OR_RETURN(SortedRun run, WrapColumns(file, properties, row_ids, workers));
  RunFile opened{std::move(file), properties, std::move(run)};
  if (check == ContentCheck::kNow || properties.kind() == PhysicalType::kBytes) {
    RETURN_IF_ERROR(CheckEntries(opened, threads));
  }
  return opened;
}

absl::Status CheckEntries(const RunFile& file, int threads) {
  return CheckColumns(file.file, file.properties, file.run, file.file.CheckThreads(threads));
}

}  // namespace cairn
