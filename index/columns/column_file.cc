#include "index/columns/column_file.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "absl/strings/str_format.h"
#include "index/columns/column_dictionary.h"
#include "index/columns/column_encoder.h"
#include "index/columns/column_type.h"
#include "index/machine/guard.h"
#include "index/machine/status_macros.h"

namespace cairn {
namespace {

constexpr std::string_view kWriting = "writing columns";

constexpr std::string_view kColumnSectionNames[] = {
    "properties", "columns", "names", "blocks", "directory", "dictionary ends", "dictionary heap"};

uint32_t SectionId(ColumnSection section) {
  return static_cast<uint32_t>(section);
}

// Returns a section's bytes as elements of type T.
template <typename T>
absl::StatusOr<absl::Span<const T>> Elements(const SectionFile& file, ColumnSection id) {
  const Section* section = file.Find(SectionId(id));
  return file.Array<T>(SectionId(id), section == nullptr ? 0 : section->size / sizeof(T));
}

template <typename T>
absl::Status WriteSection(SectionFileWriter* file, ColumnSection id, absl::Span<const T> elements) {
  ASSIGN_OR_RETURN(SectionWriter* const section,
                   file->AddSection(SectionId(id), elements.size() * sizeof(T)));
  RETURN_IF_ERROR(section->AppendArray(elements));
  return section->Close();
}

}  // namespace

const FileFormat kColumnFileFormat = {"column file", "CAIRNCOL", 1, 0, kColumnSectionNames};

struct ColumnFileWriter::Column {
  std::unique_ptr<ColumnDictionary> dictionary;  // if the column is of text or bytes
  std::vector<ColumnBlock> directory;
  uint64_t nulls = 0;
};

absl::StatusOr<std::unique_ptr<ColumnFileWriter>> ColumnFileWriter::Create(
    const std::string& path, absl::Span<const ColumnSchema> columns, FileSystem* files) try {
  RETURN_IF_ERROR(CheckColumns(columns));
  std::vector<ColumnSchema> copies(columns.begin(), columns.end());
  ASSIGN_OR_RETURN(std::unique_ptr<SectionFileWriter> file,
                   SectionFileWriter::Create(path, kColumnFileFormat, files));
  std::unique_ptr<ColumnFileWriter> writer(
      new ColumnFileWriter(std::move(copies), std::move(file)));
  ASSIGN_OR_RETURN(writer->blocks_,
                   writer->file_->AddSectionOfUnknownSize(SectionId(ColumnSection::kBlocks)));
  return writer;
} catch (...) {
  return StatusOfException(kWriting);
}

ColumnFileWriter::ColumnFileWriter(std::vector<ColumnSchema> columns,
                                   std::unique_ptr<SectionFileWriter> file)
    : columns_(std::move(columns)), file_(std::move(file)), written_(columns_.size()) {
  for (size_t i = 0; i < columns_.size(); ++i) {
    pending_.emplace_back(columns_[i].type);
    if (IsTextOrBytes(columns_[i].type)) {
      written_[i].dictionary = std::make_unique<ColumnDictionary>();
    }
  }
}

ColumnFileWriter::~ColumnFileWriter() = default;

// Keeps the first error, which all further calls return.
absl::Status ColumnFileWriter::Keep(absl::Status status) {
  if (status_.ok()) status_ = std::move(status);
  return status_;
}

absl::Status ColumnFileWriter::CheckPieces(absl::Span<const ColumnValues* const> values) const {
  if (values.size() != columns_.size()) {
    return absl::InvalidArgumentError(
        absl::StrFormat("expected %d columns, found %d", columns_.size(), values.size()));
  }
  for (size_t i = 0; i < values.size(); ++i) {
    if (values[i]->type() != columns_[i].type || values[i]->size() != values[0]->size()) {
      return absl::InvalidArgumentError(
          absl::StrFormat("column '%s': expected %d values of %s, found %d of %s", columns_[i].name,
                          values[0]->size(), DataTypeName(columns_[i].type), values[i]->size(),
                          DataTypeName(values[i]->type())));
    }
  }
  if (values[0]->size() > kMaxEntries - rows_) {
    return absl::ResourceExhaustedError(
        absl::StrFormat("an index holds at most %d rows, found more", kMaxEntries));
  }
  return absl::OkStatus();
}

absl::Status ColumnFileWriter::WriteBlock(size_t column, const ColumnValues& values, size_t first,
                                          size_t count) {
  Column& written = written_[column];
  encoded_.clear();
  ColumnBlock block;
  EncodeBlock(values, first, count, written.dictionary.get(), &encoded_, &block);
  block.set_offset(blocks_->size());
  written.directory.push_back(block);
  return blocks_->Append(encoded_.data(), encoded_.size());
}

// Encodes whole blocks directly from the pieces, and others through pending_.
absl::Status ColumnFileWriter::AppendPieces(absl::Span<const ColumnValues* const> values) {
  const size_t rows = values[0]->size();
  for (size_t i = 0; i < values.size(); ++i) written_[i].nulls += values[i]->null_count();
  for (size_t first = 0; first < rows;) {
    const size_t waiting = pending_[0].size();
    const size_t count = std::min<size_t>(kRowsPerColumnBlock - waiting, rows - first);
    for (size_t i = 0; i < values.size(); ++i) {
      if (count == kRowsPerColumnBlock) {
        RETURN_IF_ERROR(WriteBlock(i, *values[i], first, count));
        continue;
      }
      pending_[i].AppendFrom(*values[i], first, count);
      if (pending_[i].size() == kRowsPerColumnBlock) {
        RETURN_IF_ERROR(WriteBlock(i, pending_[i], 0, kRowsPerColumnBlock));
        pending_[i].Clear();
      }
    }
    first += count;
  }
  rows_ += rows;
  return absl::OkStatus();
}

absl::Status ColumnFileWriter::Append(absl::Span<const ColumnValues* const> values) try {
  RETURN_IF_ERROR(status_);
  RETURN_IF_ERROR(Keep(CheckPieces(values)));
  return Keep(AppendPieces(values));
} catch (...) {
  return Keep(StatusOfException(kWriting));
}

absl::Status ColumnFileWriter::Append(absl::Span<const ColumnValues> values) try {
  std::vector<const ColumnValues*> columns;
  for (const ColumnValues& column : values) columns.push_back(&column);
  return Append(absl::MakeConstSpan(columns));
} catch (...) {
  return Keep(StatusOfException(kWriting));
}

absl::Status ColumnFileWriter::WriteDirectory() {
  ColumnFileProperties properties = {};
  properties.rows = rows_;
  properties.columns = static_cast<uint32_t>(columns_.size());
  properties.block_rows = kRowsPerColumnBlock;
  std::vector<ColumnRecord> records;
  std::vector<ColumnBlock> directory;
  std::vector<uint32_t> ends;
  std::string names, heap;
  for (size_t i = 0; i < columns_.size(); ++i) {
    const Column& written = written_[i];
    ColumnRecord record = {};
    record.type = static_cast<uint32_t>(columns_[i].type);
    record.name_bytes = static_cast<uint32_t>(columns_[i].name.size());
    record.nulls = written.nulls;
    if (written.dictionary != nullptr) {
      record.dictionary_values = written.dictionary->size();
      record.dictionary_bytes = static_cast<uint32_t>(written.dictionary->heap().size());
      ends.insert(ends.end(), written.dictionary->ends().begin(), written.dictionary->ends().end());
      heap.append(written.dictionary->heap());
    }
    records.push_back(record);
    names.append(columns_[i].name);
    directory.insert(directory.end(), written.directory.begin(), written.directory.end());
  }
  SectionFileWriter* const file = file_.get();
  RETURN_IF_ERROR(
      WriteSection(file, ColumnSection::kProperties, absl::MakeConstSpan(&properties, 1)));
  RETURN_IF_ERROR(WriteSection(file, ColumnSection::kColumns, absl::MakeConstSpan(records)));
  RETURN_IF_ERROR(WriteSection(file, ColumnSection::kNames, absl::MakeConstSpan(names)));
  RETURN_IF_ERROR(WriteSection(file, ColumnSection::kDirectory, absl::MakeConstSpan(directory)));
  RETURN_IF_ERROR(WriteSection(file, ColumnSection::kDictionaryEnds, absl::MakeConstSpan(ends)));
  return WriteSection(file, ColumnSection::kDictionaryHeap, absl::MakeConstSpan(heap));
}

absl::Status ColumnFileWriter::Finish() try {
  RETURN_IF_ERROR(status_);
  for (size_t i = 0; i < columns_.size(); ++i) {
    if (pending_[i].empty()) continue;
    RETURN_IF_ERROR(Keep(WriteBlock(i, pending_[i], 0, pending_[i].size())));
    pending_[i].Clear();
  }
  constexpr char kZeros[kBlockSlack] = {};
  RETURN_IF_ERROR(Keep(blocks_->Append(kZeros, sizeof kZeros)));
  RETURN_IF_ERROR(Keep(blocks_->Close()));
  RETURN_IF_ERROR(Keep(WriteDirectory()));
  return Keep(file_->Finish());
} catch (...) {
  return Keep(StatusOfException(kWriting));
}

absl::StatusOr<ColumnFile> OpenColumnFile(SectionFile file, VerifyLevel level, int threads) {
  ColumnTable::Sections sections;
  ASSIGN_OR_RETURN(const absl::Span<const ColumnFileProperties> properties,
                   file.Array<ColumnFileProperties>(SectionId(ColumnSection::kProperties), 1));
  sections.properties = properties[0];
  ASSIGN_OR_RETURN(sections.columns, Elements<ColumnRecord>(file, ColumnSection::kColumns));
  ASSIGN_OR_RETURN(const auto names, Elements<char>(file, ColumnSection::kNames));
  sections.names = {names.data(), names.size()};
  ASSIGN_OR_RETURN(sections.blocks, Elements<char>(file, ColumnSection::kBlocks));
  ASSIGN_OR_RETURN(sections.directory, Elements<ColumnBlock>(file, ColumnSection::kDirectory));
  ASSIGN_OR_RETURN(sections.dictionary_ends,
                   Elements<uint32_t>(file, ColumnSection::kDictionaryEnds));
  ASSIGN_OR_RETURN(const auto heap, Elements<char>(file, ColumnSection::kDictionaryHeap));
  sections.dictionary_heap = {heap.data(), heap.size()};
  ASSIGN_OR_RETURN(ColumnTable table, ColumnTable::Wrap(sections, file.path(), level,
                                                        file.CheckThreads(threads), file.owner()));
  return ColumnFile{std::move(file), std::move(table)};
}

absl::StatusOr<ColumnFile> OpenColumnFile(const std::string& path, VerifyLevel level, int threads,
                                          FileSystem* files) {
  ASSIGN_OR_RETURN(SectionFile file,
                   SectionFile::Open(path, kColumnFileFormat, level, threads, files));
  return OpenColumnFile(std::move(file), level, threads);
}

}  // namespace cairn
