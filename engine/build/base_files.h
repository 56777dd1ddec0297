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

// What a manifest lists of a base.
struct WrittenBase {
  ManifestFile run;
  ManifestFile row_table;
  std::optional<ManifestFile> columns;  // if the index includes any
  uint64_t rows = 0;                    // of the row table
  uint64_t entries = 0;
  uint64_t distinct_keys = 0;

  // Makes the base the manifest's: its counts, and its files as the only ones.
  void Describe(Manifest* manifest) const;
};

// Writes the files of one base under new names of an index's directory. Its methods may be called
// in any order; those of different files may run at the same time. Errors: those of the writers.
// Throws std::bad_alloc.
class BaseFiles {
 public:
  // `directory` must outlive it. `prebuild_search_structure`: the run has stored leaves
  // (WriteLeaves).
  BaseFiles(IndexDirectory* directory, bool prebuild_search_structure)
      : directory_(directory), store_leaves_(prebuild_search_structure) {}
  BaseFiles(const BaseFiles&) = delete;
  BaseFiles& operator=(const BaseFiles&) = delete;
  // Removes the files, unless they have been taken.
  ~BaseFiles();

  // Gives the entries to the writer that is returned, which stays this object's; then FinishRun.
  absl::StatusOr<RunFileWriter*> BeginRun(PhysicalType kind);
  absl::Status FinishRun(int threads);

  // Sets *primary_keys to those of rows.
  using PrimaryKeysOf =
      absl::FunctionRef<absl::Status(absl::Span<const RowId> rows, StringList* primary_keys)>;
  // The run as a whole: of the entries that `yield` gives to its sink. AlreadyExists, naming key
  // and rows, if the index is unique and two rows have one key.
  absl::Status WriteRun(const IndexSpec& spec, int threads, PrimaryKeysOf primary_keys_of,
                        absl::FunctionRef<absl::Status(EntrySink*)> yield);

  // Fill the parts of the table that is returned, which stays this object's; then FinishRows.
  absl::StatusOr<RowTableWriter*> BeginRows(size_t parts);
  absl::Status FinishRows();
  // Makes the row table that `other` has written this base's as well.
  absl::Status ShareRows(const BaseFiles& other);
  // The row table's path, once it is finished.
  std::string rows_path() const { return directory_->PathOf(written_.row_table.name); }

  // `write` appends the rows and finishes the file.
  absl::Status WriteColumns(absl::Span<const ColumnSchema> columns,
                            absl::FunctionRef<absl::Status(ColumnFileWriter*)> write);

  // What has been written so far.
  const WrittenBase& written() const { return written_; }
  // Leaves the files to the caller, who publishes them.
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
