#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "cairn/column.h"
#include "cairn/index_spec.h"
#include "engine/rows/row_table_file.h"
#include "index/columns/column_file.h"
#include "index/files/index_directory.h"
#include "index/files/manifest.h"
#include "index/files/run_file.h"

namespace cairn {

// The description of a base in a manifest.
struct WrittenBase {
  ManifestFile run;
  ManifestFile row_table;
  std::optional<ManifestFile> columns;  // if the index includes any
  uint64_t rows = 0;                    // in the row table
  uint64_t entries = 0;
  uint64_t distinct_keys = 0;

  // Sets the manifest's counts to those of the base, and its files to only those of the base.
  void Describe(Manifest* manifest) const;
};

// Writes the files of one base under new names in an index's directory. Its methods may be called
// in any order, and those for different files concurrently. Errors: those of the writers. Throws
// std::bad_alloc.
class BaseFiles {
 public:
  // `directory` must outlive this object. `prebuild_search_structure`: also store leaves in the run
  // (WriteLeaves).
  BaseFiles(IndexDirectory* directory, bool prebuild_search_structure)
      : directory_(directory), store_leaves_(prebuild_search_structure) {}
  BaseFiles(const BaseFiles&) = delete;
  BaseFiles& operator=(const BaseFiles&) = delete;
  // Removes the files, unless Take was called.
  ~BaseFiles();

  // Returns a writer for the entries, which this object owns. Call FinishRun after the last entry.
  absl::StatusOr<RunFileWriter*> BeginRun(PhysicalType kind);
  absl::Status FinishRun(int threads);

  // Sets *primary_keys to the primary keys of `rows`.
  using PrimaryKeysOf =
      absl::FunctionRef<absl::Status(absl::Span<const RowId> rows, StringList* primary_keys)>;
  // Writes the complete run, from the entries that `yield` passes to its sink. AlreadyExists,
  // naming key and rows: the index is unique and two rows have the same key.
  absl::Status WriteRun(const IndexSpec& spec, int threads, PrimaryKeysOf primary_keys_of,
                        absl::FunctionRef<absl::Status(EntrySink*)> yield);

  // Returns a writer of `parts` parts, which this object owns. Call FinishRows after the parts are
  // filled.
  absl::StatusOr<RowTableWriter*> BeginRows(size_t parts);
  absl::Status FinishRows();
  // Uses the row table that `other` has written for this base, too.
  absl::Status ShareRows(const BaseFiles& other);
  // Returns the row table's path. Requires that the table is finished.
  std::string rows_path() const { return directory_->PathOf(written_.row_table.name); }

  // `write` appends the rows and finishes the file.
  absl::Status WriteColumns(absl::Span<const ColumnSchema> columns,
                            absl::FunctionRef<absl::Status(ColumnFileWriter*)> write);

  // Returns the description of the files written so far.
  const WrittenBase& written() const { return written_; }
  // Passes ownership of the files to the caller, which publishes them.
  WrittenBase Take();

 private:
  IndexDirectory* const directory_;
  const bool store_leaves_;
  WrittenBase written_;
  std::string run_name_, rows_name_;
  std::unique_ptr<RunFileWriter> run_;
  std::unique_ptr<RowTableFileWriter> rows_;
};

}  // namespace cairn
