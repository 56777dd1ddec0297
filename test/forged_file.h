#pragma once

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>

#include "index/files/checksum.h"
#include "index/files/section_file.h"
#include "index/machine/aligned_buffer.h"

namespace cairn {

// Corrects every checksum of a section file, as far as its header and table can be followed, so
// that other faults must be found by other checks.
inline void RepairChecksums(std::string* file) {
  if (file->size() < sizeof(FileHeader)) return;
  FileHeader header;
  std::memcpy(&header, file->data(), sizeof(header));
  if (header.header_bytes < sizeof(FileHeader) || header.header_bytes > file->size()) return;
  const uint64_t room = (header.header_bytes - sizeof(FileHeader)) / sizeof(Section);
  for (uint64_t i = 0; i < std::min<uint64_t>(header.section_count, room); ++i) {
    char* record = file->data() + sizeof(FileHeader) + i * sizeof(Section);
    Section section;
    std::memcpy(&section, record, sizeof(section));
    if (section.offset > file->size() || section.size > file->size() - section.offset) continue;
    section.checksum = Checksum(file->data() + section.offset, section.size);
    std::memcpy(record, &section, sizeof(section));
  }
  header.checksum = HeaderChecksum(absl::MakeConstSpan(*file).first(header.header_bytes));
  std::memcpy(file->data(), &header, sizeof(header));
}

// Opens bytes as if they were a file. They are copied to separate memory of exactly their size, so
// that a sanitizer finds reads past their end.
inline absl::StatusOr<SectionFile> OpenBytes(std::string_view bytes, const FileFormat& format,
                                             VerifyLevel level) {
  auto copy = std::make_shared<AlignedBuffer<char>>(bytes.size());
  if (!bytes.empty()) std::memcpy(copy->data(), bytes.data(), bytes.size());
  const AlignedBuffer<char>& memory = *copy;
  return SectionFile::FromMemory(memory.span(), copy, "forged", format, level, 1);
}

}  // namespace cairn
