#include "index/files/section_file.h"

#include <cstring>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_format.h"
#include "index/files/checksum.h"
#include "index/machine/parallel.h"
#include "index/machine/status_macros.h"

namespace cairn {
namespace {

// Below this size, waking threads takes longer than hashing everything on one.
constexpr uint64_t kMinParallelBytes = uint64_t{1} << 20;

constexpr size_t kChecksumOffset = offsetof(FileHeader, checksum);

std::string Quoted(std::string_view bytes) {
  return absl::CHexEscape(absl::string_view(bytes.data(), bytes.size()));
}

}  // namespace

uint64_t HeaderChecksum(absl::Span<const char> header) {
  StreamingChecksum checksum;
  checksum.Update(header.data(), kChecksumOffset);
  checksum.Update(header.data() + sizeof(FileHeader), header.size() - sizeof(FileHeader));
  return checksum.Digest();
}

absl::StatusOr<SectionFile> SectionFile::Open(const std::string& path, const FileFormat& format,
                                              VerifyLevel level, int threads, FileSystem* files) {
  ASSIGN_OR_RETURN(FileBytes mapped, files->Map(path));
  return FromMemory(mapped.bytes, std::move(mapped.owner), path, format, level, threads);
}

absl::StatusOr<SectionFile> SectionFile::FromMemory(absl::Span<const char> bytes,
                                                    std::shared_ptr<const void> owner,
                                                    std::string path, const FileFormat& format,
                                                    VerifyLevel level, int threads) {
  SectionFile file;
  file.path_ = std::move(path);
  file.format_ = format;
  file.bytes_ = bytes;
  file.owner_ = std::move(owner);
  RETURN_IF_ERROR(file.ReadHeader());
  if (level == VerifyLevel::kFull) {
    RETURN_IF_ERROR(file.Verify(threads));
  }
  return file;
}

absl::Status SectionFile::ReadHeader() {
  if (bytes_.size() < sizeof(FileHeader)) {
    return Damaged(0, absl::StrFormat("the file has %d bytes, its header takes %d", bytes_.size(),
                                      sizeof(FileHeader)));
  }
  FileHeader header;
  std::memcpy(&header, bytes_.data(), sizeof(header));
  const std::string_view magic(header.magic, sizeof(header.magic));
  if (magic != format_.magic) {
    return Damaged(0, absl::StrFormat("expected the magic \"%s\", found \"%s\"",
                                      Quoted(format_.magic), Quoted(magic)));
  }
  if (header.header_bytes < sizeof(FileHeader) || header.header_bytes > kMaxHeaderBytes ||
      header.header_bytes % kSectionAlignment != 0 || header.header_bytes > bytes_.size()) {
    return Damaged(offsetof(FileHeader, header_bytes),
                   absl::StrFormat("the header has %d bytes", header.header_bytes));
  }
  // Verify the checksum before the version, so that a flipped bit is reported as damage, not as
  // another version.
  const uint64_t checksum = HeaderChecksum(bytes_.first(header.header_bytes));
  if (checksum != header.checksum) {
    return Damaged(kChecksumOffset,
                   absl::StrFormat("the header's checksum is %016x, expected %016x",
                                   header.checksum, checksum));
  }
  header_checksum_ = checksum;
  if (header.major_version != format_.major_version) {
    return absl::FailedPreconditionError(absl::StrFormat(
        "'%s' is a %s of format version %d.%d; this build reads versions %d.x%s", path_,
        format_.name, header.major_version, header.minor_version, format_.major_version,
        header.major_version > format_.major_version ? ": use a newer build, or rebuild the index"
                                                     : ": rebuild the index"));
  }
  if (header.file_size != bytes_.size()) {
    return Damaged(
        offsetof(FileHeader, file_size),
        absl::StrFormat("the file has %d bytes, expected %d", bytes_.size(), header.file_size));
  }
  return ReadTable(header);
}

absl::Status SectionFile::ReadTable(const FileHeader& header) {
  const uint64_t room = (header.header_bytes - sizeof(FileHeader)) / sizeof(Section);
  if (header.section_count > room) {
    return Damaged(offsetof(FileHeader, section_count),
                   absl::StrFormat("%d sections, expected at most %d", header.section_count, room));
  }
  sections_.resize(header.section_count);
  if (!sections_.empty()) {
    std::memcpy(sections_.data(), bytes_.data() + sizeof(FileHeader),
                sections_.size() * sizeof(Section));
  }
  uint64_t end = header.header_bytes;  // at most the file's size, a multiple of kSectionAlignment
  for (size_t i = 0; i < sections_.size(); ++i) {
    const Section& section = sections_[i];
    const uint64_t record = sizeof(FileHeader) + i * sizeof(Section);
    if (Find(section.id) != &section) {
      return Damaged(record, absl::StrFormat("section id %d occurs twice", section.id));
    }
    if (section.offset != end) {
      return Damaged(record, absl::StrFormat("section '%s' is at offset %d, expected %d",
                                             SectionName(section.id), section.offset, end));
    }
    const uint64_t rest = bytes_.size() - end;
    if (section.size > rest || AlignSection(section.size) > rest) {
      return Damaged(record, absl::StrFormat("section '%s' has %d bytes, but only %d follow",
                                             SectionName(section.id), section.size, rest));
    }
    end += AlignSection(section.size);
    for (uint64_t at = section.offset + section.size; at < end; ++at) {
      if (bytes_[at] == 0) continue;
      return Damaged(
          at, absl::StrFormat("expected zero after section '%s', found %d", SectionName(section.id),
                              static_cast<unsigned char>(bytes_[at])));
    }
  }
  if (end != bytes_.size()) {
    return Damaged(end, absl::StrFormat("%d bytes after the last section", bytes_.size() - end));
  }
  return absl::OkStatus();
}

absl::Status SectionFile::VerifySection(const Section& section) const {
  const uint64_t checksum = Checksum(bytes_.data() + section.offset, section.size);
  if (checksum == section.checksum) return absl::OkStatus();
  return Damaged(
      section.offset,
      absl::StrFormat("the checksum of section '%s' (%d bytes) is %016x, expected %016x",
                      SectionName(section.id), section.size, checksum, section.checksum));
}

int SectionFile::CheckThreads(int wanted) const {
  const int cores = static_cast<int>(std::thread::hardware_concurrency());
  return size() < kMinParallelBytes ? 1 : wanted > 0 ? wanted : cores;
}

absl::Status SectionFile::Verify(int threads) const {
  std::vector<absl::Status> results(sections_.size());
  ParallelFor(CheckThreads(threads), sections_.size(),
              [&](size_t i) { results[i] = VerifySection(sections_[i]); });
  for (absl::Status& result : results) {
    if (!result.ok()) return std::move(result);
  }
  return absl::OkStatus();
}

const Section* SectionFile::Find(uint32_t id) const {
  for (const Section& section : sections_) {
    if (section.id == id) return &section;
  }
  return nullptr;
}

absl::StatusOr<absl::Span<const char>> SectionFile::Exactly(uint32_t id, uint64_t count,
                                                            size_t width) const {
  const Section* section = Find(id);
  if (section == nullptr) {
    return Damaged(sizeof(FileHeader), absl::StrFormat("no section '%s'", SectionName(id)));
  }
  if (section->size % width != 0 || section->size / width != count) {
    return Damaged(section->offset,
                   absl::StrFormat("section '%s' has %d bytes, expected %d times %d",
                                   SectionName(id), section->size, count, width));
  }
  return BytesOf(*section);
}

std::string SectionFile::SectionName(uint32_t id) const {
  if (id >= 1 && id <= format_.section_names.size()) {
    return std::string(format_.section_names[id - 1]);
  }
  if (id >= kFirstExtraSection && id - kFirstExtraSection < format_.extra_section_names.size()) {
    return std::string(format_.extra_section_names[id - kFirstExtraSection]);
  }
  return absl::StrFormat("section %d", id);
}

absl::Status SectionFile::Damaged(uint64_t offset, std::string_view what) const {
  return absl::DataLossError(
      absl::StrFormat("%s '%s' is damaged at offset %d: %s", format_.name, path_, offset, what));
}

}  // namespace cairn
