#include "engine/rows/row_table_file.h"

#include <string_view>
#include <utility>

#include "absl/strings/str_format.h"
#include "index/machine/status_macros.h"

namespace cairn {
namespace {

constexpr std::string_view kSectionNames[] = {"blocks", "parts", "block offsets", "separator ends",
                                              "separators"};

uint32_t Id(RowTableSection section) {
  return static_cast<uint32_t>(section);
}

// Returns a section as an array of numbers of type T.
template <typename T>
absl::StatusOr<absl::Span<const T>> Numbers(const SectionFile& file, RowTableSection id) {
  const Section* section = file.Find(Id(id));
  return file.Array<T>(Id(id), section == nullptr ? 0 : section->size / sizeof(T));
}

absl::StatusOr<std::string_view> Bytes(const SectionFile& file, RowTableSection id) {
  ASSIGN_OR_RETURN(absl::Span<const char> bytes, Numbers<char>(file, id));
  return std::string_view(bytes.data(), bytes.size());
}

}  // namespace

const FileFormat kRowTableFileFormat = {"row table", "CAIRNTBL", 1, 0, kSectionNames};

// Writes each section of the table as a section of the file whose size is known only at its end.
class RowTableFileWriter::Sink : public RowTableSink {
 public:
  explicit Sink(SectionFileWriter* file) : file_(file) {}

  absl::Status BeginSection(RowTableSection section) override {
    RETURN_IF_ERROR(Close());
    ASSIGN_OR_RETURN(section_, file_->AddSectionOfUnknownSize(Id(section)));
    return absl::OkStatus();
  }
  absl::Status Append(std::string_view bytes) override {
    return section_->Append(bytes.data(), bytes.size());
  }
  // Ends the current section, if there is one.
  absl::Status Close() {
    return section_ == nullptr ? absl::OkStatus() : std::exchange(section_, nullptr)->Close();
  }

 private:
  SectionFileWriter* const file_;
  SectionWriter* section_ = nullptr;
};

absl::StatusOr<std::unique_ptr<RowTableFileWriter>> RowTableFileWriter::Create(
    const std::string& path, size_t parts, FileSystem* files) {
  ASSIGN_OR_RETURN(std::unique_ptr<SectionFileWriter> file,
                   SectionFileWriter::Create(path, kRowTableFileFormat, files));
  auto sink = std::make_unique<Sink>(file.get());
  return std::unique_ptr<RowTableFileWriter>(
      new RowTableFileWriter(std::move(file), std::move(sink), parts));
}

RowTableFileWriter::RowTableFileWriter(std::unique_ptr<SectionFileWriter> file,
                                       std::unique_ptr<Sink> sink, size_t parts)
    : file_(std::move(file)), sink_(std::move(sink)), table_(parts, sink_.get()) {}

RowTableFileWriter::~RowTableFileWriter() = default;

absl::Status RowTableFileWriter::Finish() {
  RETURN_IF_ERROR(table_.Finish());
  RETURN_IF_ERROR(sink_->Close());
  return file_->Finish();
}

absl::StatusOr<RowTableFile> OpenRowTable(const std::string& path, VerifyLevel level, int threads,
                                          FileSystem* files, ContentCheck check) {
  ASSIGN_OR_RETURN(SectionFile file,
                   SectionFile::Open(path, kRowTableFileFormat, level, threads, files));
  return OpenRowTable(std::move(file), threads, check);
}

absl::StatusOr<RowTableFile> OpenRowTable(SectionFile file, int threads, ContentCheck check) {
  const auto blocks = Bytes(file, RowTableSection::kBlocks);
  const auto parts = Numbers<RowTablePart>(file, RowTableSection::kParts);
  const auto block_offsets = Numbers<uint64_t>(file, RowTableSection::kBlockOffsets);
  const auto separator_ends = Numbers<uint64_t>(file, RowTableSection::kSeparatorEnds);
  const auto separators = Bytes(file, RowTableSection::kSeparators);
  for (const absl::Status& s : {blocks.status(), parts.status(), block_offsets.status(),
                                separator_ends.status(), separators.status()}) {
    if (!s.ok()) return s;
  }
  ASSIGN_OR_RETURN(RowTable table,
                   RowTable::Wrap({*blocks, *parts, *block_offsets, *separator_ends, *separators},
                                  file.path(), file.CheckThreads(threads), file.owner(), check));
  return RowTableFile{std::move(file), std::move(table)};
}

}  // namespace cairn
