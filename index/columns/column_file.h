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

// Column files: a ColumnTable on disk. A column file is a section file (index/files/section_file.h)
// with the sections of column_format.h. docs/internals/formats.md describes the bytes.
namespace cairn {

extern const FileFormat kColumnFileFormat;

// Writes a column file under a new name, in one pass: append rows in order, then call Finish. If
// Finish has not succeeded, the destructor removes the file. Used by one thread at a time.
//
// Memory per column: the rows of one block, 16 bytes per earlier block, and for text and bytes at
// most 4 MiB of distinct values.
//
// No exception leaves a method: if memory runs out, the error is ResourceExhausted. After an error
// the file cannot be finished.
class ColumnFileWriter {
 public:
  // Errors: those of CheckColumns; AlreadyExists: the file exists.
  static absl::StatusOr<std::unique_ptr<ColumnFileWriter>> Create(
      const std::string& path, absl::Span<const ColumnSchema> columns,
      FileSystem* files = FileSystem::Posix());
  ~ColumnFileWriter();

  absl::Span<const ColumnSchema> columns() const { return columns_; }
  uint64_t rows() const { return rows_; }

  // Appends rows: one piece per column, of the column's type, and all of the same size. Errors:
  // InvalidArgument, with the column's name: the pieces do not match; ResourceExhausted: more than
  // kMaxEntries rows, or the disk is full.
  absl::Status Append(absl::Span<const ColumnValues> values);
  // As above, for pieces that are not contiguous.
  absl::Status Append(absl::Span<const ColumnValues* const> values);

  // Writes the remaining rows, the directory and the header, and syncs the file.
  absl::Status Finish();

  // After Finish: the values that a manifest records for the file.
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
  std::vector<Column> written_;        // one record per column, for the directory
  std::vector<ColumnValues> pending_;  // rows of the next block, one element per column
  std::string encoded_;                // scratch
  uint64_t rows_ = 0;
  absl::Status status_;  // the first error
};

// An open column file. The table keeps the mapping alive; copies share it.
struct ColumnFile {
  SectionFile file;
  ColumnTable table;
};

// Maps a column file. kFull also reads every block and checks the sections' checksums; both levels
// check the directory. `threads`: 0 means one per hardware thread. Errors: NotFound: there is no
// such file; DataLoss, with file, section, column and block: it is damaged; FailedPrecondition: it
// has another major version. Throws std::bad_alloc.
absl::StatusOr<ColumnFile> OpenColumnFile(const std::string& path, VerifyLevel level,
                                          int threads = 0, FileSystem* files = FileSystem::Posix());

// As above, for an open section file; its checksums are not verified.
absl::StatusOr<ColumnFile> OpenColumnFile(SectionFile file, VerifyLevel level, int threads = 0);

}  // namespace cairn
