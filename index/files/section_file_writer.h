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

// Fills one section of a file from its beginning to its end. Belongs to a SectionFileWriter; used
// by one thread at a time, but any number of sections may be filled side by side.
//
// Bytes go through a buffer of at most kBlockBytes; blocks are written as they fill up, and sent on
// their way to the disk, so that the sync at the end finds little left to do. After an
// error nothing more is taken: every further call with bytes in it returns that error.
class SectionWriter {
 public:
  static constexpr size_t kBlockBytes = size_t{1} << 20;

  // Internal where it would outgrow the size that was promised; ResourceExhausted where the disk is
  // full.
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

  // Where it starts in the file.
  uint64_t offset() const { return section_.offset; }
  // Bytes appended so far.
  uint64_t size() const { return written_ + used_; }

  // Ends the section: writes what the buffer holds. Internal where fewer bytes came than promised.
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
  std::optional<uint64_t> promised_;  // the section's final size, where it was known
  AlignedBuffer<char> buffer_;
  size_t used_ = 0;       // bytes in buffer_
  uint64_t room_;         // bytes that may still be appended; 0 once it is closed or has failed
  uint64_t written_ = 0;  // bytes that left the buffer
  uint64_t started_ = 0;  // bytes that are on their way to the disk
  StreamingChecksum checksum_;
  absl::Status status_;
  bool closed_ = false;
};

// Writes a section file under a new name in a file system, which must outlive it. Add sections,
// fill and close each, Finish. Unless Finish has succeeded, the destructor removes the file. Its
// own methods are called by one thread at a time, which may go on adding sections while others fill
// theirs.
class SectionFileWriter {
 public:
  // How many sections the table of a file has room for.
  static constexpr uint32_t kMaxSections = 30;

  // AlreadyExists where the name is taken, NotFound where its directory is missing.
  static absl::StatusOr<std::unique_ptr<SectionFileWriter>> Create(
      const std::string& path, const FileFormat& format, FileSystem* files = FileSystem::Posix());

  SectionFileWriter(const SectionFileWriter&) = delete;
  SectionFileWriter& operator=(const SectionFileWriter&) = delete;
  ~SectionFileWriter();

  // Starts the next section, which will have exactly `size` bytes. The result lives as long as
  // this. Internal for an id that is in use, beyond kMaxSections, or while a section of unknown
  // size is open.
  absl::StatusOr<SectionWriter*> AddSection(uint32_t id, uint64_t size);
  // Likewise for a section that ends where Close finds it.
  absl::StatusOr<SectionWriter*> AddSectionOfUnknownSize(uint32_t id);

  // The file as far as it is written: the sections that are closed, at their offsets; what else
  // there is, the header too, may be anything. Errors as FileSystem::Map's.
  absl::StatusOr<FileBytes> MapWritten() const;

  // Once every section is closed: writes the header and waits for the disk. The name in the
  // directory is made durable by IndexDirectory::Publish.
  absl::Status Finish();

  const std::string& path() const { return path_; }
  // After Finish, what a manifest records of the file.
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
  uint64_t end_;                      // where the next section starts
  SectionWriter* growing_ = nullptr;  // the section behind which end_ is not known yet
  uint64_t header_checksum_ = 0;
  bool finished_ = false;
};

}  // namespace cairn
