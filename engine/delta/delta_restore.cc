#include "engine/delta/delta_restore.h"

#include <algorithm>
#include <cstdint>
#include <new>
#include <string_view>
#include <utility>

#include "absl/strings/str_format.h"
#include "engine/delta/delta_file.h"
#include "index/index_directory.h"

namespace cairn {
namespace {

// Rows that are applied at a time: enough to find theirs among the base's in passing, few enough
// that a long file is not held in memory twice.
constexpr size_t kRowsAtATime = size_t{1} << 20;

bool IsDelta(const ManifestFile& file) {
  std::string_view prefix, extension;
  uint64_t number = 0;
  return ParseIndexFileName(file.name, &prefix, &number, &extension) && prefix == "delta";
}

// Checks that a file goes on from the sequence number `before`, or later, and applies it.
absl::Status ApplyFile(const DeltaFile& delta, KeyKind kind, SequenceNumber before,
                       SequenceNumber end, DeltaWriter* writer) {
  const DeltaProperties& properties = delta.properties;
  if (properties.kind() != kind) {
    return absl::DataLossError(absl::StrFormat("delta file '%s' has %s keys, its base has %s keys",
                                               delta.file.path(), KeyKindName(properties.kind()),
                                               KeyKindName(kind)));
  }
  if (properties.after < before || properties.sequence > end) {
    return absl::DataLossError(absl::StrFormat(
        "delta file '%s' goes from sequence number %d to %d, expected one within %d to %d",
        delta.file.path(), properties.after, properties.sequence, before, end));
  }
  DeltaReader reader(delta);
  RowUpdates updates(kind);
  while (reader.Next(kRowsAtATime, &updates)) {
    if (absl::Status s = writer->Apply(updates).status(); !s.ok()) return s;
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<DeltaWriter>> RestoreDelta(const std::string& directory,
                                                          const Manifest& manifest,
                                                          SortedRun base_run, RowTable base_rows,
                                                          VerifyLevel verify, int threads,
                                                          FileSystem* files) try {
  const KeyKind kind = base_run.kind();
  absl::StatusOr<std::unique_ptr<DeltaWriter>> writer =
      DeltaWriter::Create(std::move(base_run), std::move(base_rows), threads);
  if (!writer.ok()) return writer;
  SequenceNumber before = 0;
  for (const ManifestFile& file : manifest.files) {
    if (!IsDelta(file)) continue;
    const absl::StatusOr<DeltaFile> delta =
        OpenDelta(directory + "/" + file.name, verify, threads, files);
    if (!delta.ok()) return delta.status();
    absl::Status s = CheckIsManifestFile(file, delta->file);
    if (s.ok()) s = ApplyFile(*delta, kind, before, manifest.sequence, writer->get());
    if (!s.ok()) return s;
    before = delta->properties.sequence;
  }
  return writer;
} catch (const std::bad_alloc&) {
  return absl::ResourceExhaustedError(
      absl::StrFormat("index '%s': no memory for its delta files", directory));
}

}  // namespace cairn
