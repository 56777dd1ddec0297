#include "engine/delta_files/delta_files.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <string_view>
#include <utility>

#include "absl/strings/str_format.h"
#include "engine/delta_files/update_merge.h"
#include "index/machine/guard.h"
#include "index/machine/status_macros.h"

namespace cairn {
namespace {

// A file is kept if it is at least this many times as large as those after it together.
constexpr uint64_t kFileRatio = 2;
// The maximum number of bytes that AddDelta writes again.
constexpr uint64_t kMaxBytesAgain = 32 << 10;
// Size of a file without rows.
constexpr uint64_t kBytesOfFile = 1 << 10;

bool IsDelta(const ManifestFile& file) {
  std::string_view prefix, extension;
  uint64_t number = 0;
  return ParseIndexFileName(file.name, &prefix, &number, &extension) && prefix == "delta";
}

// Returns the first of the last files that together have at most kMaxBytesAgain bytes.
size_t FirstSmall(absl::Span<const ManifestFile> deltas) {
  size_t first = deltas.size();
  for (uint64_t bytes = 0; first > 0; --first) {
    bytes += deltas[first - 1].size;
    if (bytes > kMaxBytesAgain) break;
  }
  return first;
}

// Returns the first file of those to merge with the `bytes` bytes that follow them.
size_t FirstToMerge(absl::Span<const ManifestFile> deltas, uint64_t bytes) {
  size_t first = deltas.size();
  for (size_t i = deltas.size(); i-- > 0;) {
    if (deltas[i].size < kFileRatio * bytes) first = i;
    bytes += deltas[i].size;
  }
  return first;
}

uint64_t BytesOf(const RowUpdates& updates) {
  uint64_t bytes = kBytesOfFile + updates.rows() * 2 * sizeof(uint32_t);
  for (size_t i = 0; i < updates.rows(); ++i) bytes += updates.primary_keys[i].size();
  bytes += updates.tuples.heap().size() + updates.tuples.size() * sizeof(uint32_t);
  for (size_t k = 0; k < updates.keys.size(); ++k) {
    bytes += updates.keys.kind() == PhysicalType::kBytes
                 ? updates.keys.bytes(k).size() + sizeof(uint32_t)
                 : sizeof(uint64_t);
  }
  return bytes;
}

absl::Status CheckBelongs(const DeltaFile& delta, PhysicalType kind, SequenceNumber before,
                          SequenceNumber end) {
  const DeltaProperties& properties = delta.properties;
  if (properties.kind() != kind) {
    return absl::DataLossError(
        absl::StrFormat("delta file '%s' has %s keys, its base has %s keys", delta.file.path(),
                        PhysicalTypeName(properties.kind()), PhysicalTypeName(kind)));
  }
  if (properties.after < before || properties.sequence > end) {
    return absl::DataLossError(absl::StrFormat(
        "delta file '%s' goes from sequence number %d to %d, expected one within %d to %d",
        delta.file.path(), properties.after, properties.sequence, before, end));
  }
  return absl::OkStatus();
}

// Opens `deltas` and checks all of their bytes. Damage would go unnoticed after the merge.
absl::StatusOr<std::vector<DeltaFile>> OpenToMerge(absl::Span<const ManifestFile> deltas,
                                                   PhysicalType kind, SequenceNumber end,
                                                   IndexDirectory* directory) {
  return OpenDeltas(directory->path(), deltas, kind, end, VerifyLevel::kFull, 1,
                    directory->files());
}

// Removes the rows without keys that the base lacks: they undo nothing.
absl::Status LeaveOutRowsThatWent(const RowTable& base_rows, RowUpdates* updates) {
  std::vector<std::string_view> gone;
  for (size_t i = 0, begin = 0; i < updates->rows(); begin = updates->row_ends[i++]) {
    if (updates->row_ends[i] == begin) gone.push_back(updates->primary_keys[i]);
  }
  std::vector<RowPlace> places(gone.size());
  RETURN_IF_ERROR(base_rows.Places(gone, absl::MakeSpan(places)));
  RowUpdates left(updates->keys.kind());
  size_t next = 0;
  for (size_t i = 0, begin = 0; i < updates->rows(); begin = updates->row_ends[i++]) {
    if (updates->row_ends[i] == begin && !places[next++].found) continue;
    left.primary_keys.Append(updates->primary_keys[i]);
    if (!updates->tuples.empty()) left.tuples.Append(updates->tuples[i]);
    left.row_ends.push_back(updates->row_ends[i]);  // removed rows have no keys
  }
  left.keys = std::move(updates->keys);
  left.deleted_from = std::move(updates->deleted_from);
  left.deleted_to = std::move(updates->deleted_to);
  *updates = std::move(left);
  return absl::OkStatus();
}

}  // namespace

std::vector<ManifestFile> DeltaFilesOf(const Manifest& manifest) {
  std::vector<ManifestFile> deltas;
  std::copy_if(manifest.files.begin(), manifest.files.end(), std::back_inserter(deltas), IsDelta);
  return deltas;
}

void RemoveFiles(absl::Span<const ManifestFile> files, Manifest* manifest) {
  const auto is_one = [&](const ManifestFile& named) {
    return std::any_of(files.begin(), files.end(),
                       [&](const ManifestFile& file) { return file.name == named.name; });
  };
  manifest->files.erase(std::remove_if(manifest->files.begin(), manifest->files.end(), is_one),
                        manifest->files.end());
}

absl::StatusOr<std::vector<DeltaFile>> OpenDeltas(const std::string& directory,
                                                  absl::Span<const ManifestFile> deltas,
                                                  PhysicalType kind, SequenceNumber end,
                                                  VerifyLevel verify, int threads,
                                                  FileSystem* files) {
  std::vector<DeltaFile> opened;
  SequenceNumber before = 0;
  for (const ManifestFile& file : deltas) {
    ASSIGN_OR_RETURN(DeltaFile delta,
                     OpenDelta(directory + "/" + file.name, verify, threads, files));
    RETURN_IF_ERROR(CheckIsManifestFile(file, delta.file));
    RETURN_IF_ERROR(CheckBelongs(delta, kind, before, end));
    before = delta.properties.sequence;
    opened.push_back(std::move(delta));
  }
  return opened;
}

absl::Status AddDelta(RowUpdates updates, SequenceNumber after, SequenceNumber sequence,
                      IndexDirectory* directory, Manifest* next) try {
  const std::vector<ManifestFile> deltas = DeltaFilesOf(*next);
  const auto small = absl::MakeConstSpan(deltas).subspan(FirstSmall(deltas));
  const auto again = small.subspan(FirstToMerge(small, BytesOf(updates)));
  if (!again.empty()) {
    const PhysicalType kind = updates.keys.kind();
    ASSIGN_OR_RETURN(const std::vector<DeltaFile> opened,
                     OpenToMerge(again, kind, after, directory));
    after = opened.front().properties.after;
    UpdateMerge merge(kind);
    for (const DeltaFile& file : opened) merge.Add(file);
    merge.Add(std::exchange(updates, RowUpdates(kind)));
    merge.Next(SIZE_MAX, &updates);
  }
  ASSIGN_OR_RETURN(ManifestFile file, WriteDelta(directory, updates, after, sequence));
  RemoveFiles(again, next);
  next->files.push_back(std::move(file));
  return absl::OkStatus();
} catch (...) {
  return StatusOfException("adding a delta file");
}

bool MergedDeltas::Replace(Manifest* next) const {
  auto& files = next->files;
  const auto first = std::find(files.begin(), files.end(), merged.front());
  if (first == files.end()) return false;
  *first = file;
  const size_t left = files.size() - (merged.size() - 1);
  RemoveFiles(merged, next);
  return files.size() == left;
}

absl::StatusOr<std::optional<MergedDeltas>> MergeDeltas(const Manifest& manifest, PhysicalType kind,
                                                        IndexDirectory* directory,
                                                        const RowTable* base_rows) try {
  std::vector<ManifestFile> deltas = DeltaFilesOf(manifest);
  deltas.resize(FirstSmall(deltas));
  const size_t first = FirstToMerge(deltas, 0);
  deltas.erase(deltas.begin(), deltas.begin() + static_cast<ptrdiff_t>(first));
  if (deltas.empty()) return std::nullopt;
  RowUpdates updates(kind);
  SequenceNumber after = 0, sequence = 0;
  {
    ASSIGN_OR_RETURN(const std::vector<DeltaFile> opened,
                     OpenToMerge(deltas, kind, manifest.sequence, directory));
    after = opened.front().properties.after;
    sequence = opened.back().properties.sequence;
    UpdateMerge merge(kind);
    for (const DeltaFile& file : opened) merge.Add(file);
    merge.Next(SIZE_MAX, &updates);
  }
  if (first == 0 && base_rows != nullptr) {
    RETURN_IF_ERROR(LeaveOutRowsThatWent(*base_rows, &updates));
  }
  ASSIGN_OR_RETURN(ManifestFile file, WriteDelta(directory, updates, after, sequence));
  return MergedDeltas{std::move(deltas), std::move(file)};
} catch (...) {
  return StatusOfException("merging delta files");
}

}  // namespace cairn
