#include "engine/version/base.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "absl/strings/str_format.h"
#include "engine/route/open_devices.h"
#include "engine/route/ordered_index_factory.h"
#include "engine/rows/row_table_file.h"
#include "engine/util/cursor_tag.h"
#include "engine/util/rocksdb_file_system.h"
#include "engine/version/base_columns.h"
#include "index/machine/guard.h"
#include "index/machine/status_macros.h"
#include "index/machine/topology.h"
#include "index/query/physical_key.h"
#include "index/run/copy_run.h"

namespace cairn {
namespace {

absl::Status Mismatch(const std::string& directory, const char* what, uint64_t expected,
                      uint64_t found) {
  return absl::DataLossError(absl::StrFormat(
      "index '%s': the manifest has %d %s, the files have %d", directory, expected, what, found));
}

// Opens one of the manifest's files with `open`; a missing file is DataLoss.
template <typename Open>
auto OpenLiveFile(const std::string& directory, const Manifest& manifest, std::string_view prefix,
                  Open open) -> decltype(open(std::string(), ManifestFile())) {
  const ManifestFile* file = manifest.FindFile(prefix);
  if (file == nullptr) {
    return absl::DataLossError(
        absl::StrFormat("index '%s': the manifest lists no %s file", directory, prefix));
  }
  return open(directory + "/" + file->name, *file);
}

// The base's file number, which is unique among all bases of the index.
uint64_t BaseNumber(const Manifest& manifest) {
  std::string_view prefix, extension;
  uint64_t number = 0;
  const ManifestFile* const file = manifest.FindFile("base");
  return file != nullptr && ParseIndexFileName(file->name, &prefix, &number, &extension) ? number
                                                                                         : 0;
}

// Whether only stored leaves will be searched, which may have any entries: the decision of
// MakeResidentIndexes.
bool SearchesLeavesAlone(const SectionFile& file, uint64_t entries, const OpenOptions& options) {
  if (options.verify != VerifyLevel::kMetadata || options.device != SearchDevice::kCpu) {
    return false;
  }
  const bool packed = std::all_of(
      options.ordered_indexes.begin(), options.ordered_indexes.end(), [](const std::string& name) {
        return name == "auto" || name == "cpu:auto" || name == "cpu:packed";
      });
  return packed && entries >= kMinPackedEntries &&
         file.Find(static_cast<uint32_t>(RunSection::kLeafProperties)) != nullptr;
}

absl::StatusOr<std::shared_ptr<const Base>> OpenVersion(const std::shared_ptr<FileSystem>& files,
                                                        const std::string& directory,
                                                        const Manifest& manifest,
                                                        const OpenOptions& options) {
  absl::StatusOr<IndexSpec> spec = IndexSpec::Parse(manifest.spec);
  if (absl::IsResourceExhausted(spec.status())) return spec.status();
  if (!spec.ok()) {
    return absl::DataLossError(absl::StrFormat("index '%s': its spec cannot be read: %s", directory,
                                               std::string(spec.status().message())));
  }
  ASSIGN_OR_RETURN(KeyCodec codec, spec->Codec());
  ContentCheck check = ContentCheck::kNow;
  absl::StatusOr<RunFile> run = OpenLiveFile(
      directory, manifest, "base",
      [&](const std::string& path, const ManifestFile& file) -> absl::StatusOr<RunFile> {
        ASSIGN_OR_RETURN(
            SectionFile sections,
            SectionFile::Open(path, kRunFileFormat, options.verify, options.threads, files.get()));
        RETURN_IF_ERROR(CheckIsManifestFile(file, sections));
        if (SearchesLeavesAlone(sections, manifest.entries, options)) check = ContentCheck::kLater;
        return OpenRun(std::move(sections), options.threads, check);
      });
  if (!run.ok()) return run.status();
  absl::StatusOr<RowTableFile> rows = OpenLiveFile(
      directory, manifest, "rows",
      [&](const std::string& path, const ManifestFile& file) -> absl::StatusOr<RowTableFile> {
        ASSIGN_OR_RETURN(RowTableFile opened,
                         OpenRowTable(path, options.verify, options.threads, files.get(), check));
        RETURN_IF_ERROR(CheckIsManifestFile(file, opened.file));
        return opened;
      });
  if (!rows.ok()) return rows.status();

  absl::StatusOr<std::optional<ColumnFile>> columns =
      OpenBaseColumns(directory, manifest, *spec, options.verify, options.threads, files.get());
  if (!columns.ok()) return columns.status();

  if (run->run.size() != manifest.entries) {
    return Mismatch(directory, "entries", manifest.entries, run->run.size());
  }
  if (rows->table.rows() != manifest.rows) {
    return Mismatch(directory, "rows", manifest.rows, rows->table.rows());
  }
  if (run->properties.rows_bound > manifest.rows) {
    return Mismatch(directory, "rows", manifest.rows, run->properties.rows_bound);
  }
  if (run->run.kind() != codec.kind()) {
    return absl::DataLossError(
        absl::StrFormat("index '%s': its spec has %s keys, its run has %s keys", directory,
                        PhysicalTypeName(codec.kind()), PhysicalTypeName(run->run.kind())));
  }
  ASSIGN_OR_RETURN(const std::optional<StoredLeaves> leaves, LeavesOf(*run, options));
  if (!leaves.has_value() && check == ContentCheck::kLater) {  // leaves of another version
    check = ContentCheck::kNow;
    RETURN_IF_ERROR(CheckEntries(*run, options.threads));
    RETURN_IF_ERROR(rows->table.CheckKeys(Topology::Get().Threads(options.threads)));
  }
  if (options.load_into_memory) {
    ASSIGN_OR_RETURN(run->run, Guarded("copying an index's entries", [&] {
                       return absl::StatusOr<SortedRun>(
                           CopyRun(run->run, Topology::Get().Threads(options.threads)));
                     }));
  }
  ASSIGN_OR_RETURN(ResidentIndexes resident, MakeResidentIndexes(options, run->run, leaves));
  const auto base = std::make_shared<Base>(Base{
      files, directory, options, manifest, *std::move(spec), std::move(codec), *std::move(run),
      *std::move(rows), *std::move(columns), std::move(resident), nullptr, nullptr, 0, nullptr});
  base->cursor_checksum = CursorTag::OfIndex(base->spec);
  if (leaves.has_value() && options.verify == VerifyLevel::kMetadata) {
    base->unproven = std::make_unique<Base::Unproven>();
    base->unproven->leaves = leaves;
    base->unproven->entries = check == ContentCheck::kLater;
  }
  const RunProperties& properties = base->run_file.properties;
  const double rows_per_key =
      properties.distinct_keys == 0
          ? 0
          : static_cast<double>(properties.entries) / static_cast<double>(properties.distinct_keys);
  base->router = std::make_unique<const IndexRouter>(
      base->resident, base->run(), rows_per_key,
      IndexRouterOptions{options.calibration, Topology::Get().Threads(options.threads), directory,
                         BaseNumber(manifest), files.get()});
  base->aggregates = std::make_unique<const BaseAggregates>(base->run(), base->columns());
  if (!options.aggregates.empty()) {
    const int threads = Topology::Get().Threads(options.threads);
    RETURN_IF_ERROR(base->Prove(threads));
    RETURN_IF_ERROR(base->aggregates->Make(options.aggregates, threads));
  }
  return base;
}

}  // namespace

absl::StatusOr<std::shared_ptr<const Base>> Base::Open(const std::string& directory,
                                                       const OpenOptions& options) {
  RETURN_IF_ERROR(CheckDevices(options));
  const std::shared_ptr<FileSystem> files = FileSystemOf(options.file_system);
  std::shared_ptr<const Base> base;
  bool manifest_read = false;
  const absl::Status status = OpenCurrentVersion(
      directory,
      [&](const Manifest& manifest) -> absl::Status {
        manifest_read = true;
        ASSIGN_OR_RETURN(base, OpenVersion(files, directory, manifest, options));
        return absl::OkStatus();
      },
      files.get());
  if (absl::IsNotFound(status) && manifest_read) {
    return absl::DataLossError(
        absl::StrFormat("index '%s': a file that its manifest lists is missing: %s", directory,
                        std::string(status.message())));
  }
  if (!status.ok()) return status;
  return base;
}

absl::Status Base::Prove(int threads) const {
  if (is_proven()) return absl::OkStatus();
  const MutexLock lock(&unproven->mutex);
  if (is_proven()) return absl::OkStatus();
  if (unproven->entries) {
    RETURN_IF_ERROR(CheckEntries(run_file, threads));
    RETURN_IF_ERROR(rows().CheckKeys(threads));
  }
  RETURN_IF_ERROR(CheckLeaves(run_file, *unproven->leaves, threads));
  unproven->proven = true;
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<const RowPositions>> Base::Positions(int threads) const {
  const MutexLock lock(&inverse->mutex);
  if (inverse->positions == nullptr) {
    ASSIGN_OR_RETURN(inverse->positions, RowPositions::Build(run(), rows().rows(), threads));
  }
  return inverse->positions;
}

std::shared_ptr<const RowCodes> Base::Codes() const {
  const MutexLock lock(&inverse->mutex);
  if (!inverse->has_looked_for_codes) {
    inverse->codes = RowCodes::Build(run(), rows().rows());
    inverse->has_looked_for_codes = true;
  }
  return inverse->codes;
}

absl::Status CheckSameDatabase(const Base& base, const SnapshotSource& source) {
  const Manifest& manifest = base.manifest;
  if (manifest.column_family != source.column_family()) {
    return absl::FailedPreconditionError(
        absl::StrFormat("index '%s' is of column family '%s', not of '%s'", base.directory,
                        manifest.column_family, source.column_family()));
  }
  if (!manifest.database_id.empty() && !source.database_id().empty() &&
      manifest.database_id != source.database_id()) {
    return absl::FailedPreconditionError(absl::StrFormat(
        "index '%s' was built from the database with the id %s, but %s has the id %s",
        base.directory, manifest.database_id, source.description(), source.database_id()));
  }
  return absl::OkStatus();
}

namespace {

// The start of each key, for at most `most` + 1 keys.
std::vector<Position> KeyBegins(const SortedRun& run, size_t most) {
  std::vector<Position> begins;
  WithPhysicalKey(run.kind(), [&](auto type) {
    const auto keys = ColumnOf<typename decltype(type)::type>(run);
    for (size_t p = 0; p < run.size() && begins.size() <= most; ++p) {
      if (p == 0 || keys[p] != keys[p - 1]) begins.push_back(static_cast<Position>(p));
    }
  });
  return begins;
}

template <typename Code>
AlignedBuffer<Code> Codes(const SortedRun& run, uint64_t rows,
                          const std::vector<Position>& begins) {
  AlignedBuffer<Code> codes(rows);
  std::fill(codes.begin(), codes.end(), std::numeric_limits<Code>::max());
  for (size_t key = 0; key < begins.size(); ++key) {
    const size_t end = key + 1 < begins.size() ? begins[key + 1] : run.size();
    for (size_t p = begins[key]; p < end; ++p) codes[run.row_ids()[p]] = static_cast<Code>(key);
  }
  return codes;
}

}  // namespace

std::shared_ptr<const RowCodes> RowCodes::Build(const SortedRun& run, uint64_t rows) {
  auto built = std::make_shared<RowCodes>();
  built->begins_ = KeyBegins(run, kMax16);
  if (built->begins_.size() > kMax16) return nullptr;
  if (built->begins_.size() <= kMax8) {
    built->codes8_ = Codes<uint8_t>(run, rows, built->begins_);
  } else {
    built->codes16_ = Codes<uint16_t>(run, rows, built->begins_);
  }
  return built;
}

uint32_t RowCodes::CodeOf(Position position) const {
  return static_cast<uint32_t>(std::lower_bound(begins_.begin(), begins_.end(), position) -
                               begins_.begin());
}

}  // namespace cairn
