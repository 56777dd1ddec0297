#include "engine/shards/shard_set.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "engine/build/run_keys.h"
#include "engine/route/open_devices.h"
#include "engine/rows/row_table_file.h"
#include "engine/shards/shard_directory.h"
#include "engine/util/rocksdb_file_system.h"
#include "engine/version/base_columns.h"
#include "index/files/checksum.h"
#include "index/files/index_directory.h"
#include "index/files/run_file.h"
#include "index/machine/status_macros.h"
#include "index/machine/topology.h"

namespace cairn {
namespace {

// The position of an entry.
absl::StatusOr<ShardBound> PlaceOf(const ShardContents& contents, size_t entry) {
  EncodedKeys key(contents.run.kind());
  AppendKey(contents.run, entry, &key);
  StringList primary_key;
  RETURN_IF_ERROR(contents.rows.PrimaryKeys({contents.run.row_ids()[entry]}, &primary_key));
  return ShardBound{OrderedKeyBytes(key, 0), std::string(primary_key[0])};
}

std::string NameOfShard(const ShardManifest& shards, size_t shard) {
  return absl::StrFormat("shard %d ('%s')", shard, shards.shards[shard].directory);
}

}  // namespace

absl::Status CheckShardIndex(const Manifest& index, const ShardManifest& shards, size_t shard) {
  const ShardRecord& record = shards.shards[shard];
  const auto refuse = [&](std::string_view what, const std::string& expected,
                          const std::string& found) {
    return absl::DataLossError(absl::StrFormat(
        "it is not the published one: its %s is %s, expected %s", what, found, expected));
  };
  if (index.spec != shards.spec) return refuse("spec", shards.spec, index.spec);
  if (index.database_id != record.database_id) {
    return refuse("database id", record.database_id, index.database_id);
  }
  if (shards.mode == ShardMode::kSource && index.version > record.version) return absl::OkStatus();
  if (index.version != record.version) {
    return refuse("version", std::to_string(record.version), std::to_string(index.version));
  }
  const uint64_t checksum = ManifestChecksum(index);
  if (checksum != record.manifest_checksum) {
    return refuse("manifest's checksum", absl::StrFormat("%016x", record.manifest_checksum),
                  absl::StrFormat("%016x", checksum));
  }
  if (index.entries != record.entries || index.rows != record.rows ||
      index.sequence != record.sequence) {
    return refuse("size", absl::StrFormat("%d entries of %d rows", record.entries, record.rows),
                  absl::StrFormat("%d of %d", index.entries, index.rows));
  }
  return absl::OkStatus();
}

absl::StatusOr<ShardContents> OpenShardContents(const std::string& directory,
                                                const Manifest& manifest, VerifyLevel level,
                                                int threads, FileSystem* files) {
  const ManifestFile* const base = manifest.FindFile("base");
  const ManifestFile* const rows = manifest.FindFile("rows");
  if (base == nullptr || rows == nullptr) {
    return absl::DataLossError("its manifest does not name a run and a row table");
  }
  ASSIGN_OR_RETURN(const RunFile run_file,
                   OpenRun(directory + "/" + base->name, level, threads, files));
  RETURN_IF_ERROR(CheckIsManifestFile(*base, run_file.file));
  ASSIGN_OR_RETURN(const RowTableFile rows_file,
                   OpenRowTable(directory + "/" + rows->name, level, threads, files));
  RETURN_IF_ERROR(CheckIsManifestFile(*rows, rows_file.file));
  const absl::StatusOr<IndexSpec> spec = IndexSpec::Parse(manifest.spec);
  if (absl::IsResourceExhausted(spec.status())) return spec.status();
  if (!spec.ok()) return absl::DataLossError(spec.status().message());
  ASSIGN_OR_RETURN(KeyCodec codec, spec->Codec());
  if (run_file.run.kind() != codec.kind() || run_file.run.size() != manifest.entries ||
      rows_file.table.rows() != manifest.rows || run_file.properties.rows_bound > manifest.rows) {
    return absl::DataLossError("its files do not match its manifest");
  }
  ASSIGN_OR_RETURN(const std::optional<ColumnFile> columns,
                   OpenBaseColumns(directory, manifest, *spec, level, threads, files));
  return ShardContents{run_file.run, rows_file.table, std::move(codec),
                       columns.has_value() ? columns->table : ColumnTable()};
}

absl::Status CheckShardEntries(const ShardContents& contents, const ShardRecord& shard) {
  const size_t entries = contents.run.size();
  if (entries == 0) return absl::OkStatus();
  if (shard.lower) {
    ASSIGN_OR_RETURN(const ShardBound first, PlaceOf(contents, 0));
    if (first < *shard.lower) {
      return absl::DataLossError(absl::StrFormat("its first entry is %s, but its lower bound is %s",
                                                 BoundText(contents.codec, first),
                                                 BoundText(contents.codec, *shard.lower)));
    }
  }
  if (shard.upper) {
    ASSIGN_OR_RETURN(const ShardBound last, PlaceOf(contents, entries - 1));
    if (!(last < *shard.upper)) {
      return absl::DataLossError(absl::StrFormat("its last entry is %s, but its upper bound is %s",
                                                 BoundText(contents.codec, last),
                                                 BoundText(contents.codec, *shard.upper)));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<IndexWriter>> OpenPublishedShard(const std::string& directory,
                                                                const ShardManifest& shards,
                                                                size_t shard,
                                                                const OpenOptions& options) {
  const auto refuse = [&](const absl::Status& status) {
    const bool missing = absl::IsNotFound(status);
    return absl::Status(
        missing ? absl::StatusCode::kDataLoss : status.code(),
        absl::StrFormat("index '%s', %s%s: %s", directory, NameOfShard(shards, shard),
                        missing ? " is missing" : "", std::string(status.message())));
  };
  const ShardRecord& record = shards.shards[shard];
  absl::StatusOr<std::unique_ptr<IndexWriter>> writer =
      IndexWriter::Open(directory + "/" + record.directory, options);
  if (!writer.ok()) return refuse(writer.status());
  const Base& base = *(*writer)->version()->base;
  absl::Status checked = CheckShardIndex(base.manifest, shards, shard);
  if (checked.ok()) checked = CheckShardEntries({base.run(), base.rows(), base.codec}, record);
  if (!checked.ok()) return refuse(checked);
  return writer;
}

uint64_t SourcesChecksum(const ShardVersions& versions) {
  std::string sources;
  for (const auto& version : versions) {
    absl::StrAppend(&sources, version->base->manifest.database_id, "\n");
  }
  return std::max<uint64_t>(1, Checksum(sources.data(), sources.size()));
}

absl::StatusOr<std::unique_ptr<ShardSet>> ShardSet::Open(const std::string& directory,
                                                         const OpenOptions& options) {
  RETURN_IF_ERROR(CheckDevices(options));
  const std::shared_ptr<FileSystem> files = FileSystemOf(options.file_system);
  uint64_t generation_before = 0;
  while (true) {
    auto set = std::make_unique<ShardSet>();
    set->threads_ = Topology::Get().Threads(options.threads);
    ASSIGN_OR_RETURN(set->manifest_, ReadShardManifest(directory, files.get()));
    absl::Status opened = set->OpenAll(directory, options);
    if (opened.ok()) {
      if (ShardRouting::Create(set->manifest_, set->codec().kind(), &set->routing_)) return set;
      return absl::DataLossError(absl::StrFormat(
          "index '%s': a shard's bound is not a key of the index's kind", directory));
    }
    // The next generation may have been published concurrently, and this one's shards removed.
    const bool same = set->manifest_.generation == generation_before;
    if (same) return opened;
    generation_before = set->manifest_.generation;
  }
}

absl::Status ShardSet::OpenAll(const std::string& directory, const OpenOptions& options) {
  const size_t shards = manifest_.shards.size();
  for (size_t i = 0; i < shards; ++i) {
    ASSIGN_OR_RETURN(
        std::unique_ptr<IndexWriter> writer,
        OpenPublishedShard(directory, manifest_, i, OptionsOfShard(options, i, shards)));
    for (const ResidentIndex& index : writer->version()->base->resident.indexes) {
      if (index.on_gpu && !options.devices.empty()) lanes_ = options.devices.size();
    }
    Add(std::move(writer));
  }
  return absl::OkStatus();
}

std::shared_ptr<const ShardSet> ShardSet::OfOne(std::shared_ptr<IndexWriter> writer) {
  auto set = std::make_shared<ShardSet>();
  set->Add(std::move(writer));
  return set;
}

void ShardSet::Add(std::shared_ptr<IndexWriter> writer) {
  const std::shared_ptr<const IndexVersion> version = writer->version();
  if (!spec_.has_value()) spec_ = version->spec();
  if (!codec_.has_value()) codec_ = version->base->codec;
  writers_.push_back(std::move(writer));
}

std::string ShardSet::NameOf(size_t shard) const {
  return NameOfShard(manifest_, shard);
}

ShardVersions ShardSet::Versions() const {
  ShardVersions versions;
  versions.reserve(writers_.size());
  for (const auto& writer : writers_) versions.push_back(writer->version());
  return versions;
}

}  // namespace cairn
