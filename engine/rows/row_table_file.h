#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cairn/types.h"
#include "engine/rows/row_table.h"
#include "engine/rows/row_table_writer.h"
#include "index/files/file_system.h"
#include "index/files/section_file.h"
#include "index/files/section_file_writer.h"

// Row table files: a RowTable on disk, a section file (index/files/section_file.h) of the sections
// that row_table_format.h names. docs/internals/formats.md describes the bytes.
namespace cairn {

extern const FileFormat kRowTableFileFormat;

// Writes a row table under a new name: fill table()'s parts, then Finish. Unless that has
// succeeded, the destructor removes the file.
class RowTableFileWriter {
 public:
  // AlreadyExists where the name is taken.
  static absl::StatusOr<std::unique_ptr<RowTableFileWriter>> Create(
      const std::string& path, size_t parts, FileSystem* files = FileSystem::Posix());
  ~RowTableFileWriter();

  RowTableWriter& table() { return table_; }

  // Writes the directory and the header and waits for the disk.
  absl::Status Finish();

  // After Finish, what a manifest records of the file.
  uint64_t size() const { return file_->size(); }
  uint64_t header_checksum() const { return file_->header_checksum(); }

 private:
  class Sink;
  RowTableFileWriter(std::unique_ptr<SectionFileWriter> file, std::unique_ptr<Sink> sink,
                     size_t parts);

  std::unique_ptr<SectionFileWriter> file_;
  std::unique_ptr<Sink> sink_;
  RowTableWriter table_;
};

// An open row table file. The table keeps the mapping alive; copies share it.
struct RowTableFile {
  SectionFile file;
  RowTable table;
};

// Maps a row table. NotFound where there is no such file; DataLoss, naming file, offset, expected
// and found, where it is damaged; FailedPrecondition where its major version is another. Both
// levels read every key (RowTable::Wrap) unless that is left for later; kFull also checks the
// sections' checksums. `threads`: 0 is one a hardware thread. Throws std::bad_alloc.
absl::StatusOr<RowTableFile> OpenRowTable(const std::string& path, VerifyLevel level,
                                          int threads = 0, FileSystem* files = FileSystem::Posix(),
                                          ContentCheck check = ContentCheck::kNow);

// The same for a section file that is open.
absl::StatusOr<RowTableFile> OpenRowTable(SectionFile file, int threads = 0,
                                          ContentCheck check = ContentCheck::kNow);

}  // namespace cairn
