#include "engine/shard_build/sharded_build.h"

#include <algorithm>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_format.h"
#include "engine/shard_build/segment.h"
#include "engine/shard_build/shard_publish.h"
#include "engine/shard_build/shard_writer.h"
#include "engine/util/progress_meter.h"
#include "engine/util/rocksdb_file_system.h"
#include "index/machine/mutex.h"
#include "index/machine/parallel.h"
#include "index/machine/status_macros.h"
#include "index/machine/topology.h"

namespace cairn {
namespace {

// Rows of a segment, unless the caller says otherwise: rows have a few keys each at most.
constexpr uint64_t kRowsOfSegment = uint64_t{1} << 28;

}  // namespace

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
  // Of attempts that were interrupted; and, at the end, this one's segments.
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

}  // namespace cairn
