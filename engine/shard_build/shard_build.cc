#include "cairn/options.h"
#include "cairn/sharding.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_format.h"
#include "cairn/snapshot_source.h"
#include "engine/build/index_builder.h"
#include "engine/log/wal_files.h"
#include "engine/shard_build/segment.h"
#include "engine/shard_build/shard_plan.h"
#include "engine/shard_build/shard_publish.h"
#include "engine/shard_build/shard_writer.h"
#include "engine/shards/shard_directory.h"
#include "engine/source/db_source.h"
#include "engine/util/progress_meter.h"
#include "engine/util/rocksdb_file_system.h"
#include "index/files/file_system.h"
#include "index/files/index_directory.h"
#include "index/machine/guard.h"
#include "index/machine/mutex.h"
#include "index/machine/parallel.h"
#include "index/machine/status_macros.h"
#include "index/machine/topology.h"

namespace cairn {
namespace {

// The rows of one range of a source, as a separate source. The source must outlive it.
class SourceRange final : public SnapshotSource {
 public:
  SourceRange(const SnapshotSource& source, PrimaryKeyRange range)
      : source_(source), range_(std::move(range)) {}

  absl::StatusOr<std::vector<PrimaryKeyRange>> Split(int parts) const override;
  absl::StatusOr<std::unique_ptr<RowCursor>> Scan(const PrimaryKeyRange& range) const override {
    return source_.Scan(range);
  }
  absl::Status Get(
      absl::Span<const std::string_view> primary_keys,
      const std::function<absl::Status(size_t, const RowView&)>& visitor) const override {
    return source_.Get(primary_keys, visitor);
  }
  SequenceNumber sequence() const override { return source_.sequence(); }
  const std::string& database_id() const override { return source_.database_id(); }
  const std::string& column_family() const override { return source_.column_family(); }
  const std::string& description() const override { return source_.description(); }
  uint64_t approximate_rows() const override { return source_.approximate_rows(); }
  uint64_t approximate_bytes() const override { return source_.approximate_bytes(); }

 private:
  const SnapshotSource& source_;
  const PrimaryKeyRange range_;
};

absl::StatusOr<std::vector<PrimaryKeyRange>> SourceRange::Split(int parts) const {
  // The source splits all its rows; the cuts within the range apply here.
  ASSIGN_OR_RETURN(const std::vector<PrimaryKeyRange> all, source_.Split(parts));
  std::vector<PrimaryKeyRange> within;
  for (PrimaryKeyRange part : all) {
    part.lower = std::max(part.lower, range_.lower);
    if (!range_.open && (part.open || range_.upper < part.upper)) {
      part.upper = range_.upper;
      part.open = false;
    }
    if (part.open || part.lower < part.upper) within.push_back(std::move(part));
  }
  // An empty range has one part, as any other range has at least one.
  if (within.empty()) within.push_back({range_.lower, range_.lower, false});
  return within;
}

// BuildSharded: all steps in one process, which holds the directory's lock. Can be used once.
class ShardedBuild {
 public:
  ShardedBuild(const SnapshotSource& source, const IndexSpec& spec, const std::string& directory,
               const ShardedBuildOptions& options);

  // May throw std::bad_alloc.
  absl::StatusOr<BuildReport> Run();

 private:
  absl::Status Extract(BuildReport* report);
  absl::Status WriteShards();

  const SnapshotSource& source_;
  const IndexSpec& spec_;
  const std::string path_;
  const ShardedBuildOptions& options_;
  const std::shared_ptr<FileSystem> files_;
  const int threads_;
  std::unique_ptr<ShardDirectory> directory_;
  std::vector<std::string> segments_;  // paths
  ShardPlan plan_;
  std::vector<std::string> shards_;  // names
};

// Rows per segment, unless the caller sets another number. Assumes that rows have only a few keys
// each.
constexpr uint64_t kRowsOfSegment = uint64_t{1} << 28;

ShardedBuild::ShardedBuild(const SnapshotSource& source, const IndexSpec& spec,
                           const std::string& directory, const ShardedBuildOptions& options)
    : source_(source),
      spec_(spec),
      path_(directory),
      options_(options),
      files_(FileSystemOf(options.build.file_system)),
      threads_(Topology::Get().Threads(options.build.threads)) {}

absl::StatusOr<BuildReport> ShardedBuild::Run() {
  if (options_.shards == 0 || options_.shards > kMaxShards) {
    return absl::InvalidArgumentError(
        absl::StrFormat("%d shards, expected 1 to %d", options_.shards, kMaxShards));
  }
  ASSIGN_OR_RETURN(directory_, ShardDirectory::OpenForWrite(path_, files_.get()));
  // Leftovers are from interrupted attempts; at the end, they are this build's segments.
  directory_->RemoveLeftovers();
  const auto clean = absl::MakeCleanup([&] { directory_->RemoveLeftovers(); });
  BuildReport report;
  RETURN_IF_ERROR(Extract(&report));
  RETURN_IF_ERROR(WriteShards());
  RETURN_IF_ERROR(PublishNamed(plan_, shards_, threads_, directory_.get()));
  return report;
}

absl::Status ShardedBuild::Extract(BuildReport* report) {
  const uint64_t wanted =
      options_.segments != 0 ? options_.segments : source_.approximate_rows() / kRowsOfSegment + 1;
  ASSIGN_OR_RETURN(const std::vector<PrimaryKeyRange> ranges,
                   source_.Split(static_cast<int>(std::min<uint64_t>(wanted, kMaxShards))));
  for (size_t i = 0; i < ranges.size(); ++i) {
    const std::string segment = directory_->PathOf(SegmentDirectoryName(static_cast<uint32_t>(i)));
    ASSIGN_OR_RETURN(const BuildReport of_one,
                     ExtractSegment(source_, ranges[i], spec_, segment, options_.build));
    segments_.push_back(segment);
    report->rows += of_one.rows;
    report->entries += of_one.entries;
    report->rows_skipped += of_one.rows_skipped;
    report->rows_without_key += of_one.rows_without_key;
    if (report->first_skipped.empty()) report->first_skipped = of_one.first_skipped;
  }
  return absl::OkStatus();
}

absl::Status ShardedBuild::WriteShards() {
  ASSIGN_OR_RETURN(const Segments segments, OpenSegments(segments_, threads_, files_.get()));
  ASSIGN_OR_RETURN(plan_, MakeShardPlan(segments, options_.shards));
  ProgressMeter progress(options_.build.on_progress);
  progress.Start(Progress::Phase::kWrite, segments.entries);
  const uint64_t budget = options_.build.memory_budget != 0 ? options_.build.memory_budget
                                                            : Topology::Get().memory_bytes() / 2;
  const auto at_once = static_cast<int>(std::clamp<uint64_t>(
      budget / ShardWriterMemory(segments), 1,
      std::min<uint64_t>(static_cast<uint64_t>(threads_), plan_.shards.size())));
  ShardWriterOptions writer;
  writer.threads = std::max(1, threads_ / at_once);
  writer.files = files_.get();
  writer.cancelled = options_.build.cancelled;
  writer.prebuild_search_structure = options_.build.prebuild_search_structure;
  writer.on_progress = [&progress](uint64_t entries) { progress.Add(entries); };
  for (size_t i = 0; i < plan_.shards.size(); ++i) {
    shards_.push_back(ShardDirectoryName(static_cast<uint32_t>(i)));
  }
  Mutex mutex;
  absl::Status status;
  std::atomic<bool> failed = false;
  ParallelFor(at_once, plan_.shards.size(), [&](size_t i) {
    if (failed) return;
    const absl::Status written = WriteShard(segments, plan_, static_cast<uint32_t>(i),
                                            directory_->PathOf(shards_[i]), writer)
                                     .status();
    if (written.ok()) return;
    failed = true;
    const MutexLock lock(&mutex);
    status.Update(written);
  });
  return status;
}

absl::StatusOr<ShardPlan> ReadPlan(const std::string& path, FileSystem* files) {
  ASSIGN_OR_RETURN(const std::string text, ReadSmallFile(files, path, kMaxShardManifestBytes));
  return ParseShardPlan(text, path);
}

// Opens the segments of a plan, which must be unchanged since the plan was made.
absl::StatusOr<Segments> OpenSegmentsOf(const ShardPlan& plan, int threads, FileSystem* files) {
  std::vector<std::string> directories;
  for (const ShardPlan::Input& segment : plan.segments) directories.push_back(segment.directory);
  ASSIGN_OR_RETURN(Segments segments, OpenSegments(directories, threads, files));
  for (size_t i = 0; i < segments.size(); ++i) {
    if (ManifestChecksum(segments[i].manifest) == plan.segments[i].manifest_checksum) continue;
    return absl::FailedPreconditionError(
        absl::StrFormat("segment '%s' has changed since the plan was made", directories[i]));
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

// Syncs the log to disk. Otherwise the index could be ahead of a database whose machine failed.
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
        absl::StrFormat("the plan has %d bytes, expected at most %d: keys are too long",
                        text.size(), kMaxShardManifestBytes));
  }
  // Concurrent attempts each have their own file.
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
  of_segment.prebuild_search_structure = false;  // it is not searched
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
        absl::StrFormat("shard %d: expected less than %d", shard, read.shards.size()));
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
  return StatusOfException("building a sharded index");
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
