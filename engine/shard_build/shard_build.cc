#include "cairn/options.h"
#include "cairn/sharding.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_format.h"
#include "engine/build/index_builder.h"
#include "engine/log/wal_files.h"
#include "engine/shard_build/segment.h"
#include "engine/shard_build/shard_plan.h"
#include "engine/shard_build/shard_publish.h"
#include "engine/shard_build/shard_writer.h"
#include "engine/shard_build/sharded_build.h"
#include "engine/shard_build/source_range.h"
#include "engine/shards/shard_directory.h"
#include "engine/source/db_source.h"
#include "engine/util/rocksdb_file_system.h"
#include "index/files/index_directory.h"
#include "index/machine/guard.h"
#include "index/machine/status_macros.h"
#include "index/machine/topology.h"

namespace cairn {
namespace {

absl::StatusOr<ShardPlan> ReadPlan(const std::string& path, FileSystem* files) {
  ASSIGN_OR_RETURN(const std::string text, ReadSmallFile(files, path, kMaxShardManifestBytes));
  return ParseShardPlan(text, path);
}

// The segments of a plan, as they were when it was made.
absl::StatusOr<Segments> OpenSegmentsOf(const ShardPlan& plan, int threads, FileSystem* files) {
  std::vector<std::string> directories;
  for (const ShardPlan::Input& segment : plan.segments) directories.push_back(segment.directory);
  ASSIGN_OR_RETURN(Segments segments, OpenSegments(directories, threads, files));
  for (size_t i = 0; i < segments.size(); ++i) {
    if (ManifestChecksum(segments[i].manifest) == plan.segments[i].manifest_checksum) continue;
    return absl::FailedPreconditionError(
        absl::StrFormat("segment '%s' is not the one that the plan was made of", directories[i]));
  }
  return segments;
}

ShardWriterOptions WriterOptions(const BuildOptions& options, FileSystem* files) {
  ShardWriterOptions of_writer;
  of_writer.threads = Topology::Get().Threads(options.threads);
  of_writer.files = files;
  of_writer.cancelled = options.cancelled;
  of_writer.prebuild_search_structure = options.prebuild_search_structure;
  return of_writer;
}

// The index would be ahead of a database whose machine failed, if its log were not on the disk.
absl::Status SyncLogOf(const SnapshotSource& source) {
  const auto* const database = dynamic_cast<const DbSource*>(&source);
  if (database == nullptr || !database->has_log() || database->changes_values()) {
    return absl::OkStatus();
  }
  return SyncLog(database->db(), database->snapshot() == nullptr);
}

absl::Status WritePlan(const ShardPlan& plan, const std::string& path, FileSystem* files) {
  const std::string text = FormatShardPlan(plan);
  if (text.size() > kMaxShardManifestBytes) {
    return absl::InvalidArgumentError(
        absl::StrFormat("a plan of %d bytes, of at most %d: keys are too long", text.size(),
                        kMaxShardManifestBytes));
  }
  // Of two attempts at a time, each has its own.
  const std::string temporary =
      absl::StrFormat("%s.%s.tmp", path, ShardDirectory::NewName("plan", 0));
  absl::Status written = ReplaceFile(files, path, temporary, text);
  if (!written.ok()) files->Remove(temporary).IgnoreError();
  return written;
}

}  // namespace

std::string ShardDirectoryName(uint32_t shard) {
  return ShardDirectory::NewName("shard", shard);
}

std::string SegmentDirectoryName(uint32_t segment) {
  return ShardDirectory::NewName("segment", segment);
}

absl::StatusOr<BuildReport> ExtractSegment(const SnapshotSource& source,
                                           const PrimaryKeyRange& range, const IndexSpec& spec,
                                           const std::string& directory,
                                           const BuildOptions& options) try {
  const BuildTarget target{spec, directory};
  BuildOptions of_segment = options;
  of_segment.prebuild_search_structure = false;  // nobody searches it
  absl::StatusOr<std::vector<BuildReport>> reports;
  if (range.lower.empty() && range.open) {
    reports = BuildIndexes(source, absl::MakeConstSpan(&target, 1), of_segment);
  } else {
    reports = BuildIndexes(SourceRange(source, range), absl::MakeConstSpan(&target, 1), of_segment);
    if (reports.ok()) RETURN_IF_ERROR(SyncLogOf(source));
  }
  if (!reports.ok()) return reports.status();
  RETURN_IF_ERROR(MarkSegment(range, directory, FileSystemOf(options.file_system).get()));
  return std::move((*reports)[0]);
} catch (...) {
  return StatusOfException("extracting a segment");
}

absl::Status SplitSegments(absl::Span<const std::string> segments, uint32_t shards,
                           const std::string& plan, const BuildOptions& options) try {
  const std::shared_ptr<FileSystem> files = FileSystemOf(options.file_system);
  ASSIGN_OR_RETURN(const Segments opened,
                   OpenSegments(segments, Topology::Get().Threads(options.threads), files.get()));
  ASSIGN_OR_RETURN(const ShardPlan made, MakeShardPlan(opened, shards));
  return WritePlan(made, plan, files.get());
} catch (...) {
  return StatusOfException("splitting segments");
}

absl::StatusOr<uint32_t> ShardsOfPlan(const std::string& plan, const BuildOptions& options) try {
  ASSIGN_OR_RETURN(const ShardPlan read, ReadPlan(plan, FileSystemOf(options.file_system).get()));
  return static_cast<uint32_t>(read.shards.size());
} catch (...) {
  return StatusOfException("reading a plan");
}

absl::StatusOr<BuildReport> BuildShard(const std::string& plan, uint32_t shard,
                                       const std::string& directory,
                                       const BuildOptions& options) try {
  const std::shared_ptr<FileSystem> files = FileSystemOf(options.file_system);
  ASSIGN_OR_RETURN(const ShardPlan read, ReadPlan(plan, files.get()));
  if (shard >= read.shards.size()) {
    return absl::InvalidArgumentError(
        absl::StrFormat("shard %d, of %d", shard, read.shards.size()));
  }
  const ShardWriterOptions writer = WriterOptions(options, files.get());
  ASSIGN_OR_RETURN(const Segments segments, OpenSegmentsOf(read, writer.threads, files.get()));
  return WriteShard(segments, read, shard, directory, writer);
} catch (...) {
  return StatusOfException("building a shard");
}

absl::StatusOr<BuildReport> BuildSharded(const SnapshotSource& source, const IndexSpec& spec,
                                         const std::string& directory,
                                         const ShardedBuildOptions& options) try {
  return ShardedBuild(source, spec, directory, options).Run();
} catch (...) {
  return StatusOfException("building an index in shards");
}

absl::Status PublishShards(const std::string& plan, const std::string& directory,
                           const BuildOptions& options) try {
  const std::shared_ptr<FileSystem> files = FileSystemOf(options.file_system);
  ASSIGN_OR_RETURN(const ShardPlan read, ReadPlan(plan, files.get()));
  return PublishPlan(read, directory, options.threads, files.get());
} catch (...) {
  return StatusOfException("publishing shards");
}

absl::Status PublishSources(absl::Span<const std::string> names, const std::string& directory,
                            const BuildOptions& options) try {
  return PublishIndexes(names, directory, options.threads, FileSystemOf(options.file_system).get());
} catch (...) {
  return StatusOfException("publishing shards");
}

}  // namespace cairn
