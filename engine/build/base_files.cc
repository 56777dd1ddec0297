#include "engine/build/base_files.h"

#include <utility>

#include "cpu_fast/packed/leaves_writer.h"
#include "engine/build/unique_filter.h"
#include "index/machine/status_macros.h"

namespace cairn {

void WrittenBase::Describe(Manifest* manifest) const {
  manifest->rows = rows;
  manifest->entries = entries;
  manifest->counts["distinct_keys"] = distinct_keys;
  manifest->files = {run, row_table};
  if (columns.has_value()) manifest->files.push_back(*columns);
}

BaseFiles::~BaseFiles() {
  const auto remove = [&](const ManifestFile& file) {
    if (file.name.empty()) return;
    directory_->files()->Remove(directory_->PathOf(file.name)).IgnoreError();
  };
  remove(written_.run);
  remove(written_.row_table);
  if (written_.columns.has_value()) remove(*written_.columns);
}

absl::StatusOr<RunFileWriter*> BaseFiles::BeginRun(PhysicalType kind) {
  run_name_ = directory_->NextFileName("base", "run");
  ASSIGN_OR_RETURN(
      run_, RunFileWriter::Create(directory_->PathOf(run_name_), kind, {}, directory_->files()));
  return run_.get();
}

absl::Status BaseFiles::FinishRun(int threads) {
  if (store_leaves_) RETURN_IF_ERROR(WriteLeaves(run_.get(), threads));
  RETURN_IF_ERROR(run_->Finish());
  written_.entries = run_->properties().entries;
  written_.distinct_keys = run_->properties().distinct_keys;
  written_.run = {std::move(run_name_), run_->file().size(), run_->file().header_checksum()};
  run_ = nullptr;
  return absl::OkStatus();
}

absl::Status BaseFiles::WriteRun(const IndexSpec& spec, int threads, PrimaryKeysOf primary_keys_of,
                                 absl::FunctionRef<absl::Status(EntrySink*)> yield) {
  ASSIGN_OR_RETURN(KeyCodec codec, spec.Codec());
  ASSIGN_OR_RETURN(RunFileWriter* const file, BeginRun(codec.kind()));
  UniqueFilter unique(file, codec, [&](const EncodedKeys& key, RowId first, RowId second) {
    StringList primary_keys;
    const RowId rows[] = {first, second};
    RETURN_IF_ERROR(primary_keys_of(rows, &primary_keys));
    return DuplicateKey(codec, key, 0, primary_keys[0], primary_keys[1]);
  });
  EntrySink* sink = file;
  if (spec.unique) sink = &unique;
  RETURN_IF_ERROR(yield(sink));
  return FinishRun(threads);
}

absl::StatusOr<RowTableWriter*> BaseFiles::BeginRows(size_t parts) {
  rows_name_ = directory_->NextFileName("rows", "tbl");
  ASSIGN_OR_RETURN(rows_, RowTableFileWriter::Create(directory_->PathOf(rows_name_), parts,
                                                     directory_->files()));
  return &rows_->table();
}

absl::Status BaseFiles::FinishRows() {
  RETURN_IF_ERROR(rows_->Finish());
  written_.rows = rows_->table().FirstRows().back();
  written_.row_table = {std::move(rows_name_), rows_->size(), rows_->header_checksum()};
  rows_ = nullptr;
  return absl::OkStatus();
}

absl::Status BaseFiles::ShareRows(const BaseFiles& other) {
  std::string name = directory_->NextFileName("rows", "tbl");
  RETURN_IF_ERROR(directory_->files()->LinkOrCopy(other.rows_path(), directory_->PathOf(name)));
  written_.rows = other.written_.rows;
  written_.row_table = other.written_.row_table;
  written_.row_table.name = std::move(name);
  return absl::OkStatus();
}

absl::Status BaseFiles::WriteColumns(absl::Span<const ColumnSchema> columns,
                                     absl::FunctionRef<absl::Status(ColumnFileWriter*)> write) {
  std::string name = directory_->NextFileName("columns", "col");
  ASSIGN_OR_RETURN(
      const std::unique_ptr<ColumnFileWriter> file,
      ColumnFileWriter::Create(directory_->PathOf(name), columns, directory_->files()));
  RETURN_IF_ERROR(write(file.get()));
  written_.columns = {std::move(name), file->size(), file->header_checksum()};
  return absl::OkStatus();
}

WrittenBase BaseFiles::Take() {
  return std::exchange(written_, WrittenBase());
}

}  // namespace cairn
