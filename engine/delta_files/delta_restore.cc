#include "engine/delta_files/delta_restore.h"

#include <cstddef>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "engine/delta_files/delta_files.h"
#include "engine/delta_files/update_merge.h"
#include "index/columns/tuple.h"
#include "index/machine/guard.h"
#include "index/machine/status_macros.h"

namespace cairn {
namespace {

// Rows that are applied at a time. Batches of this size find their rows in one pass over the base,
// and a long file is not held in memory twice.
constexpr size_t kUpdatesAtATime = size_t{1} << 20;

// Returns DataLoss unless each row with keys has a tuple of these types; without types, no row may
// have a tuple.
absl::Status CheckTuples(const DeltaFile& file, absl::Span<const DataType> types) {
  if (file.properties.rows == 0) return absl::OkStatus();
  if (file.has_tuples == types.empty()) {
    return absl::DataLossError(absl::StrFormat(
        "delta file '%s' has %s, but its index includes %s", file.file.path(),
        file.has_tuples ? "tuples" : "no tuples", types.empty() ? "no columns" : "columns"));
  }
  if (types.empty()) return absl::OkStatus();
  std::vector<DataValue> values(types.size());
  uint64_t byte = 0;
  for (size_t row = 0; row < file.tuples.lengths.size(); ++row) {
    const std::string_view tuple = file.tuples.bytes.substr(byte, file.tuples.lengths[row]);
    byte += tuple.size();
    const bool is_one =
        file.key_counts[row] == 0 ? tuple.empty() : ReadTuple(types, tuple, absl::MakeSpan(values));
    if (is_one) continue;
    return absl::DataLossError(absl::StrFormat(
        "delta file '%s': the tuple of row %d does not have the index's included columns",
        file.file.path(), row));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<DeltaWriter>> RestoreDelta(
    const std::string& directory, const Manifest& manifest, SortedRun base_run, RowTable base_rows,
    VerifyLevel verify, int threads, FileSystem* files, ColumnTable base_columns) try {
  const PhysicalType kind = base_run.kind();
  std::vector<DataType> types;
  for (const ColumnSchema& column : base_columns.columns()) types.push_back(column.type);
  ASSIGN_OR_RETURN(std::unique_ptr<DeltaWriter> writer,
                   DeltaWriter::Create(std::move(base_run), std::move(base_rows), threads,
                                       std::move(base_columns)));
  ASSIGN_OR_RETURN(const std::vector<DeltaFile> deltas,
                   OpenDeltas(directory, DeltaFilesOf(manifest), kind, manifest.sequence, verify,
                              threads, files));
  if (deltas.empty()) return writer;
  // The merge yields each row once, even if several files have it.
  UpdateMerge merge(kind);
  for (const DeltaFile& file : deltas) {
    RETURN_IF_ERROR(CheckTuples(file, types));
    merge.Add(file);
  }
  RowUpdates updates(kind);
  while (merge.Next(kUpdatesAtATime, &updates)) {
    RETURN_IF_ERROR(writer->Apply(updates).status());
  }
  return writer;
} catch (...) {
  return StatusOfException("reading an index's delta files");
}

}  // namespace cairn
