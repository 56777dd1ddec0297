#include "index/files/section_file_writer.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_format.h"
#include "index/machine/status_macros.h"

namespace cairn {
namespace {

// Bytes of a section per early write-back to the disk.
constexpr uint64_t kWritebackBytes = uint64_t{8} << 20;

constexpr uint32_t kHeaderBytes =
    sizeof(FileHeader) + SectionFileWriter::kMaxSections * sizeof(Section);
static_assert(kHeaderBytes == 1024);

// Files are shorter than this, so that no sum of an offset and a promised size overflows.
constexpr uint64_t kMaxFileBytes = uint64_t{1} << 62;

}  // namespace

SectionWriter::SectionWriter(WritableFile* file, const std::string* path, Section section,
                             std::optional<uint64_t> promised)
    : file_(file),
      path_(path),
      section_(section),
      promised_(promised),
      buffer_(std::min<uint64_t>(promised.value_or(kBlockBytes), kBlockBytes)),
      room_(promised.value_or(kMaxFileBytes - section.offset)) {}

absl::Status SectionWriter::AppendSlow(const char* data, size_t size) {
  if (!status_.ok()) return status_;
  if (closed_ || size > room_) {
    return Fail(absl::InternalError(absl::StrFormat(
        "'%s': section %d, %s, would grow by %d to more than the promised %d bytes", *path_,
        section_.id, closed_ ? "closed" : "open", size, this->size() + room_)));
  }
  room_ -= size;
  while (size > 0) {
    if (used_ == 0 && size >= buffer_.size()) {  // a whole block is written without a copy
      RETURN_IF_ERROR(WriteBlock(data, buffer_.size()));
      data += buffer_.size();
      size -= buffer_.size();
      continue;
    }
    const size_t part = std::min(size, buffer_.size() - used_);
    std::memcpy(buffer_.data() + used_, data, part);
    used_ += part;
    data += part;
    size -= part;
    if (used_ == buffer_.size()) {
      RETURN_IF_ERROR(Flush());
    }
  }
  return absl::OkStatus();
}

absl::Status SectionWriter::Flush() {
  const size_t size = std::exchange(used_, 0);
  return size == 0 ? absl::OkStatus() : WriteBlock(buffer_.data(), size);
}

absl::Status SectionWriter::WriteBlock(const void* data, size_t size) {
  checksum_.Update(data, size);
  absl::Status s = file_->WriteAt(section_.offset + written_, data, size);
  if (!s.ok()) return Fail(std::move(s));
  written_ += size;
  if (written_ - started_ >= kWritebackBytes) {
    file_->WillSync(section_.offset + started_, written_ - started_);
    started_ = written_;
  }
  return absl::OkStatus();
}

absl::Status SectionWriter::Close() {
  if (!status_.ok() || closed_) return status_;
  if (promised_.has_value() && size() != *promised_) {
    return Fail(absl::InternalError(absl::StrFormat("'%s': section %d has %d bytes, expected %d",
                                                    *path_, section_.id, size(), *promised_)));
  }
  RETURN_IF_ERROR(Flush());
  section_.size = written_;
  section_.checksum = checksum_.Digest();
  const char zeros[kSectionAlignment] = {};
  if (const uint64_t padding = AlignSection(written_) - written_; padding > 0) {
    absl::Status s = file_->WriteAt(section_.offset + written_, zeros, padding);
    if (!s.ok()) return Fail(std::move(s));
  }
  closed_ = true;
  room_ = 0;
  buffer_ = AlignedBuffer<char>();
  return absl::OkStatus();
}

absl::Status SectionWriter::Fail(absl::Status status) {
  status_ = std::move(status);
  room_ = 0;
  return status_;
}

absl::StatusOr<std::unique_ptr<SectionFileWriter>> SectionFileWriter::Create(
    const std::string& path, const FileFormat& format, FileSystem* files) {
  if (format.magic.size() != sizeof(FileHeader::magic)) {
    return absl::InternalError(
        absl::StrFormat("the magic of a %s does not have 8 bytes", format.name));
  }
  ASSIGN_OR_RETURN(std::unique_ptr<WritableFile> file, files->Create(path, IfExists::kFail));
  try {
    return std::unique_ptr<SectionFileWriter>(
        new SectionFileWriter(path, format, files, std::move(file)));
  } catch (...) {
    files->Remove(path).IgnoreError();
    throw;
  }
}

SectionFileWriter::SectionFileWriter(std::string path, const FileFormat& format, FileSystem* files,
                                     std::unique_ptr<WritableFile> file)
    : path_(std::move(path)),
      format_(format),
      files_(files),
      file_(std::move(file)),
      end_(kHeaderBytes) {}

SectionFileWriter::~SectionFileWriter() {
  if (!finished_) files_->Remove(path_).IgnoreError();
}

absl::StatusOr<SectionWriter*> SectionFileWriter::AddSection(uint32_t id, uint64_t size) {
  return Add(id, size);
}

absl::StatusOr<SectionWriter*> SectionFileWriter::AddSectionOfUnknownSize(uint32_t id) {
  return Add(id, std::nullopt);
}

absl::StatusOr<SectionWriter*> SectionFileWriter::Add(uint32_t id, std::optional<uint64_t> size) {
  if (growing_ != nullptr) {
    if (!growing_->closed_) {
      return absl::InternalError(
          absl::StrFormat("'%s': section %d is still open", path_, growing_->section_.id));
    }
    end_ += AlignSection(growing_->size());
    growing_ = nullptr;
  }
  if (finished_ || sections_.size() == kMaxSections) {
    return absl::InternalError(absl::StrFormat("'%s': no room for section %d", path_, id));
  }
  for (const auto& section : sections_) {
    if (section->section_.id == id) {
      return absl::InternalError(absl::StrFormat("'%s': section id %d occurs twice", path_, id));
    }
  }
  if (size.value_or(0) > kMaxFileBytes - end_) {
    return absl::ResourceExhaustedError(absl::StrFormat(
        "'%s': section %d of %d bytes at offset %d is too large", path_, id, *size, end_));
  }
  Section section{};
  section.id = id;
  section.offset = end_;
  sections_.push_back(
      std::unique_ptr<SectionWriter>(new SectionWriter(file_.get(), &path_, section, size)));
  if (size.has_value()) {
    end_ += AlignSection(*size);
  } else {
    growing_ = sections_.back().get();
  }
  return sections_.back().get();
}

absl::StatusOr<FileBytes> SectionFileWriter::MapWritten() const {
  return files_->Map(path_);
}

absl::Status SectionFileWriter::Finish() {
  if (finished_) return absl::InternalError(absl::StrFormat("'%s' is finished", path_));
  for (const auto& section : sections_) {
    if (!section->status_.ok()) return section->status_;
    if (!section->closed_) {
      return absl::InternalError(
          absl::StrFormat("'%s': section %d is still open", path_, section->section_.id));
    }
  }
  if (growing_ != nullptr) end_ += AlignSection(std::exchange(growing_, nullptr)->size());
  RETURN_IF_ERROR(WriteHeader());
  RETURN_IF_ERROR(file_->Sync());
  finished_ = true;
  return absl::OkStatus();
}

absl::Status SectionFileWriter::WriteHeader() {
  std::vector<char> bytes(kHeaderBytes, 0);
  FileHeader header{};
  std::memcpy(header.magic, format_.magic.data(), sizeof(header.magic));
  header.major_version = format_.major_version;
  header.minor_version = format_.minor_version;
  header.header_bytes = kHeaderBytes;
  header.section_count = static_cast<uint32_t>(sections_.size());
  header.file_size = end_;
  std::memcpy(bytes.data(), &header, sizeof(header));
  for (size_t i = 0; i < sections_.size(); ++i) {
    std::memcpy(bytes.data() + sizeof(header) + i * sizeof(Section), &sections_[i]->section_,
                sizeof(Section));
  }
  header.checksum = header_checksum_ = HeaderChecksum(bytes);
  std::memcpy(bytes.data(), &header, sizeof(header));
  return file_->WriteAt(0, bytes.data(), bytes.size());
}

}  // namespace cairn
