#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "cairn/column.h"
#include "cairn/types.h"
#include "index/columns/column_table.h"
#include "index/files/file_system.h"
#include "index/files/section_file.h"
#include "index/files/section_file_writer.h"

// Column files: a ColumnTable on disk, a section file (index/files/section_file.h) of the sections
// that column_format.h names. docs/internals/formats.md describes the bytes.
namespace cairn {

extern const FileFormat kColumnFileFormat;

// Writes a column file under a new name, in one pass: append rows in their order, then Finish.
// Unless that has succeeded, the destructor removes the file. Used by one thread at a time.
//
// Memory, for each column: the rows of a block, 16 bytes for each block before it, and for text and
// bytes at most 4 MiB of distinct values.
//
// No exception leaves: want of memory is ResourceExhausted. After an error the file cannot be
// finished.
class ColumnFileWriter {
 public:
  // CheckColumns' error; AlreadyExists where the name is taken.
  static absl::StatusOr<std::unique_ptr<ColumnFileWriter>> Create(
      const std::string& path, absl::Span<const ColumnSchema> columns,
      FileSystem* files = FileSystem::Posix());
  ~ColumnFileWriter();

  absl::Span<const ColumnSchema> columns() const { return columns_; }
  uint64_t rows() const { return rows_; }

  // Appends rows: a piece of each column, of its type, all of one size. InvalidArgument, naming the
  // column, where they are not; ResourceExhausted beyond kMaxEntries rows or where the disk is
  // full.
  absl::Status Append(absl::Span<const ColumnValues> values);
  // The same of columns that stand in different places.
  absl::Status Append(absl::Span<const ColumnValues* const> values);

  // Writes what is left, the directory and the header, and waits for the disk.
  absl::Status Finish();

  // After Finish, what a manifest records of the file.
  uint64_t size() const { return file_->size(); }
  uint64_t header_checksum() const { return file_->header_checksum(); }

 private:
  struct Column;

  ColumnFileWriter(std::vector<ColumnSchema> columns, std::unique_ptr<SectionFileWriter> file);
  absl::Status CheckPieces(absl::Span<const ColumnValues* const> values) const;
  absl::Status Keep(absl::Status status);
  absl::Status AppendPieces(absl::Span<const ColumnValues* const> values);
  absl::Status WriteBlock(size_t column, const ColumnValues& values, size_t first, size_t count);
  absl::Status WriteDirectory();

  const std::vector<ColumnSchema> columns_;
  const std::unique_ptr<SectionFileWriter> file_;
  SectionWriter* blocks_ = nullptr;
  std::vector<Column> written_;        // what the directory will say, one a column
  std::vector<ColumnValues> pending_;  // rows of the block to come, one a column
  std::string encoded_;                // scratch
  uint64_t rows_ = 0;
  absl::Status status_;  // the first error
};

// An open column file. The table keeps the mapping alive; copies share it.
struct ColumnFile {
  SectionFile file;
  ColumnTable table;
};

// Maps a column file. NotFound where there is no such file; DataLoss, naming file, section, column
// and block, where it is damaged; FailedPrecondition where its major version is another. Both
// levels check the directory; kFull also reads every block and checks the sections' checksums.
// `threads`: 0 is one a hardware thread. Throws std::bad_alloc.
absl::StatusOr<ColumnFile> OpenColumnFile(const std::string& path, VerifyLevel level,
                                          int threads = 0, FileSystem* files = FileSystem::Posix());

// The same for a section file that is open, whose checksums are not looked at.
absl::StatusOr<ColumnFile> OpenColumnFile(SectionFile file, VerifyLevel level, int threads = 0);

}  // namespace cairn
