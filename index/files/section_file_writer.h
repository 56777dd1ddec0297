#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "index/files/checksum.h"
#include "index/files/file_system.h"
#include "index/files/section_file.h"
#include "index/machine/aligned_buffer.h"
#include "index/machine/byte_copy.h"

namespace cairn {

// Fills one section of a file from its beginning to its end. Belongs to a SectionFileWriter. Used
// by one thread at a time, but several sections may be filled in parallel.
//
// Bytes go through a buffer of at most kBlockBytes. Full blocks are written and their write-back
// started, so that the sync at the end is short. After an error, every further call with bytes
// returns that error.
// error nothing more is taken: every further call with bytes in it returns that error.
class SectionWriter {
 public:
  static constexpr size_t kBlockBytes = size_t{1} << 20;

  // Internal if the section would exceed the promised size; ResourceExhausted if the disk is full.
  absl::Status Append(const void* data, size_t size) {
    if (size <= buffer_.size() - used_ && size <= room_) {
      CopyBytes({static_cast<const char*>(data), size}, buffer_.data() + used_);
      used_ += size;
      room_ -= size;
      return absl::OkStatus();
    }
    return AppendSlow(static_cast<const char*>(data), size);
  }
  template <typename T>
  absl::Status AppendArray(absl::Span<const T> values) {
    static_assert(std::is_trivially_copyable_v<T>);
    return Append(values.data(), values.size() * sizeof(T));
  }

  // Its offset in the file.
  uint64_t offset() const { return section_.offset; }
  // Bytes appended so far.
  uint64_t size() const { return written_ + used_; }

  // Ends the section and writes the buffer. Internal if it has fewer bytes than promised.
  absl::Status Close();

 private:
  friend class SectionFileWriter;
  SectionWriter(WritableFile* file, const std::string* path, Section section,
                std::optional<uint64_t> promised);

  absl::Status AppendSlow(const char* data, size_t size);
  absl::Status Flush();
  absl::Status WriteBlock(const void* data, size_t size);
  absl::Status Fail(absl::Status status);

  WritableFile* file_;
  const std::string* path_;
  Section section_;
  std::optional<uint64_t> promised_;  // the section's final size, if it was known
  AlignedBuffer<char> buffer_;
  size_t used_ = 0;       // bytes in buffer_
  uint64_t room_;         // bytes that may still be appended; 0 after Close or an error
  uint64_t written_ = 0;  // bytes written from the buffer
  uint64_t started_ = 0;  // bytes whose write-back has started
  StreamingChecksum checksum_;
  absl::Status status_;
  bool closed_ = false;
};

// Writes a section file under a new name in a file system, which must outlive it. Add sections,
// fill and close each, then call Finish. If Finish has not succeeded, the destructor removes the
// file. One thread at a time calls its own methods; it may add sections while other threads fill
// theirs.
class SectionFileWriter {
 public:
  // The max number of sections in a file's table.
  static constexpr uint32_t kMaxSections = 30;

  // AlreadyExists if `path` exists; NotFound if its directory is missing.
  static absl::StatusOr<std::unique_ptr<SectionFileWriter>> Create(
      const std::string& path, const FileFormat& format, FileSystem* files = FileSystem::Posix());

  SectionFileWriter(const SectionFileWriter&) = delete;
  SectionFileWriter& operator=(const SectionFileWriter&) = delete;
  ~SectionFileWriter();

  // Starts the next section, which will have exactly `size` bytes. The result lives as long as this
  // object. Internal for an id in use, more than kMaxSections, or while a section of unknown size
  // is open.
  absl::StatusOr<SectionWriter*> AddSection(uint32_t id, uint64_t size);
  // As AddSection, for a section whose size is known when it is closed.
  absl::StatusOr<SectionWriter*> AddSectionOfUnknownSize(uint32_t id);

  // Maps the file as written so far: closed sections are at their offsets, and all other bytes,
  // including the header, are unspecified. Errors: those of FileSystem::Map.
  absl::StatusOr<FileBytes> MapWritten() const;

  // Called when every section is closed: writes the header and syncs the file.
  // IndexDirectory::Publish makes the name in the directory durable.
  absl::Status Finish();

  const std::string& path() const { return path_; }
  // After Finish: the values that a manifest records for the file.
  uint64_t size() const { return end_; }
  uint64_t header_checksum() const { return header_checksum_; }

 private:
  SectionFileWriter(std::string path, const FileFormat& format, FileSystem* files,
                    std::unique_ptr<WritableFile> file);
  absl::StatusOr<SectionWriter*> Add(uint32_t id, std::optional<uint64_t> size);
  absl::Status WriteHeader();

  std::string path_;
  FileFormat format_;
  FileSystem* const files_;
  const std::unique_ptr<WritableFile> file_;
  std::vector<std::unique_ptr<SectionWriter>> sections_;
  uint64_t end_;                      // the offset of the next section
  SectionWriter* growing_ = nullptr;  // the section whose end, and so end_, is not known yet
  uint64_t header_checksum_ = 0;
  bool finished_ = false;
};

}  // namespace cairn
