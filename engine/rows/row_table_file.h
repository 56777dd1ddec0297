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

// Row table files store a RowTable on disk. They are section files (index/files/section_file.h)
// with the sections of row_table_format.h. docs/internals/formats.md describes the bytes.
namespace cairn {

extern const FileFormat kRowTableFileFormat;

// Writes a row table file under a new name: fill table()'s parts, then call Finish. The destructor
// removes the file unless Finish has succeeded.
class RowTableFileWriter {
 public:
  // AlreadyExists: the file exists.
  static absl::StatusOr<std::unique_ptr<RowTableFileWriter>> Create(
      const std::string& path, size_t parts, FileSystem* files = FileSystem::Posix());
  ~RowTableFileWriter();

  RowTableWriter& table() { return table_; }

  // Writes the directory and the header, and syncs the file.
  absl::Status Finish();

  // After Finish: the file's size and checksum for a manifest.
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

// An open row table file. The table keeps the mapping alive, and copies share it.
struct RowTableFile {
  SectionFile file;
  RowTable table;
};

// Maps a row table. Both levels read every key (RowTable::Wrap), unless `check` is kLater; kFull
// also verifies the sections' checksums. `threads`: 0 means one per hardware thread. NotFound:
// there is no such file. DataLoss, naming file, offset, expected and found value: it is damaged.
// FailedPrecondition: it has another major version. Throws std::bad_alloc.
absl::StatusOr<RowTableFile> OpenRowTable(const std::string& path, VerifyLevel level,
                                          int threads = 0, FileSystem* files = FileSystem::Posix(),
                                          ContentCheck check = ContentCheck::kNow);

// The same for an open section file.
absl::StatusOr<RowTableFile> OpenRowTable(SectionFile file, int threads = 0,
                                          ContentCheck check = ContentCheck::kNow);

}  // namespace cairn
