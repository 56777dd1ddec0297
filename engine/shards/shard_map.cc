#include "cairn/sharding.h"

#include <optional>
#include <utility>

#include "absl/strings/str_format.h"
#include "cairn/options.h"
#include "cairn/secondary_index.h"
#include "engine/aggregates/aggregate_part.h"
#include "engine/aggregates/aggregate_plan.h"
#include "engine/aggregates/aggregate_results.h"
#include "engine/aggregates/combined_parts.h"
#include "engine/aggregates/group_results.h"
#include "engine/extract/included_columns.h"
#include "engine/shards/open_index.h"
#include "engine/shards/shard_directory.h"
#include "engine/shards/shard_routing.h"
#include "engine/shards/shard_set.h"
#include "engine/shards/shard_stats.h"
#include "engine/util/rocksdb_file_system.h"
#include "engine/version/index_version.h"
#include "index/machine/guard.h"
#include "index/machine/status_macros.h"
#include "index/query/batch_check.h"

namespace cairn {
namespace {

class PublishedShards final : public ShardMap {
 public:
  PublishedShards(std::string directory, ShardManifest manifest, IndexSpec spec, KeyCodec codec)
      : directory_(std::move(directory)),
        manifest_(std::move(manifest)),
        spec_(std::move(spec)),
        codec_(std::move(codec)) {
    for (size_t s = 0; s < manifest_.shards.size(); ++s) {
      const ShardRecord& shard = manifest_.shards[s];
      shards_.push_back({shard.directory, ShardBoundsText(codec_, manifest_, s), shard.rows,
                         shard.entries, shard.sequence, shard.database_id});
    }
  }

  // Returns false if a bound is not a key of the codec's kind.
  bool CreateRouting() { return ShardRouting::Create(manifest_, codec_.kind(), &routing_); }

  uint64_t generation() const override { return manifest_.generation; }
  ShardMode mode() const override { return manifest_.mode; }
  const IndexSpec& spec() const override { return spec_; }
  const KeyCodec& codec() const override { return codec_; }
  const std::vector<IndexStats::Shard>& shards() const override { return shards_; }

  absl::Status RouteKeys(KeyBatch keys, ShardQueries* queries) const override;
  absl::Status RouteRanges(const RangeBatch& ranges, ShardQueries* queries) const override;
  absl::StatusOr<std::unique_ptr<SecondaryIndex>> OpenShard(
      uint32_t shard, const OpenOptions& options) const override;
  absl::StatusOr<std::string> AggregateRangesPart(
      const SecondaryIndex& shard, const RangeBatch& ranges,
      absl::Span<const Aggregate> aggregates) const override;
  absl::StatusOr<std::string> AggregateGroupsPart(const SecondaryIndex& shard,
                                                  const RangeBatch& ranges, size_t leading_parts,
                                                  absl::Span<const Aggregate> aggregates,
                                                  const QueryOptions& options) const override;
  absl::Status CombineRanges(size_t ranges, absl::Span<const Aggregate> aggregates,
                             absl::Span<const AggregatePart> parts,
                             std::vector<ColumnValues>* values) const override;
  absl::Status CombineGroups(size_t ranges, size_t leading_parts,
                             absl::Span<const Aggregate> aggregates, const QueryOptions& options,
                             absl::Span<const AggregatePart> parts,
                             AggregateGroupsResult* groups) const override;

 private:
  // The aggregates that each shard computes. Keys are listed if other shards may have them, too.
  absl::StatusOr<AggregatePlan> PlanOf(absl::Span<const Aggregate> aggregates) const {
    ASSIGN_OR_RETURN(AggregatePlan plan, AggregatePlan::Make(IncludedColumns(spec_), aggregates));
    if (plan.counts_keys && shards_.size() > 1) {
      plan.lists_keys = mode() == ShardMode::kSource ? KeyList::kAll : KeyList::kEnds;
    }
    return plan;
  }
  static absl::StatusOr<std::shared_ptr<const IndexVersion>> VersionOfShard(
      const SecondaryIndex& shard) {
    const std::optional<IndexVersions> open = VersionsOf(shard);
    if (open.has_value() && !open->in_shards) return open->versions[0];
    return absl::InvalidArgumentError("expected an index that ShardMap::OpenShard opened");
  }
  absl::Status Spread(const std::vector<ShardInterval>& intervals, ShardQueries* queries) const {
    ShardAssignment assignment = Assign(intervals, shards_.size());
    queries->begin.assign(assignment.begin.begin(), assignment.begin.end());
    queries->query_of = std::move(assignment.query_of);
    return absl::OkStatus();
  }
  absl::Status CheckSize(size_t queries) const {
    if (queries <= UINT32_MAX) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrFormat("the batch has %d queries, expected at most %d", queries, UINT32_MAX));
  }

  const std::string directory_;
  const ShardManifest manifest_;
  const IndexSpec spec_;
  const KeyCodec codec_;
  std::vector<IndexStats::Shard> shards_;
  ShardRouting routing_;
};

absl::Status PublishedShards::RouteKeys(KeyBatch keys, ShardQueries* queries) const try {
  RETURN_IF_ERROR(CheckSize(keys.size()));
  RETURN_IF_ERROR(CheckQueries(codec_.kind(), {Operation::kFind, keys}));
  std::vector<ShardInterval> intervals(keys.size());
  routing_.RouteKeys(keys, absl::MakeSpan(intervals));
  return Spread(intervals, queries);
} catch (...) {
  return StatusOfException("routing a batch");
}

absl::Status PublishedShards::RouteRanges(const RangeBatch& ranges, ShardQueries* queries) const
    try {
  RETURN_IF_ERROR(CheckSize(ranges.size()));
  RETURN_IF_ERROR(CheckQueries(codec_.kind(), {Operation::kScan, {}, ranges}));
  std::vector<ShardInterval> intervals(ranges.size());
  routing_.RouteRanges(ranges, absl::MakeSpan(intervals));
  return Spread(intervals, queries);
} catch (...) {
  return StatusOfException("routing a batch");
}

absl::StatusOr<std::unique_ptr<SecondaryIndex>> PublishedShards::OpenShard(
    uint32_t shard, const OpenOptions& options) const try {
  if (shard >= shards_.size()) {
    return absl::OutOfRangeError(absl::StrFormat("index '%s' has %d shards, found shard %d",
                                                 directory_, shards_.size(), shard));
  }
  absl::StatusOr<std::unique_ptr<IndexWriter>> writer =
      OpenPublishedShard(directory_, manifest_, shard, options);
  if (writer.ok()) return OverWriter(*std::move(writer));
  const absl::StatusOr<ShardManifest> now =
      ReadShardManifest(directory_, FileSystemOf(options.file_system).get());
  if (!now.ok() || now->generation == manifest_.generation) return writer.status();
  return absl::FailedPreconditionError(
      absl::StrFormat("generation %d of index '%s' was replaced: %d has been published",
                      manifest_.generation, directory_, now->generation));
} catch (...) {
  return StatusOfException("opening a shard");
}

absl::StatusOr<std::string> PublishedShards::AggregateRangesPart(
    const SecondaryIndex& shard, const RangeBatch& ranges,
    absl::Span<const Aggregate> aggregates) const try {
  ASSIGN_OR_RETURN(const AggregatePlan plan, PlanOf(aggregates));
  ASSIGN_OR_RETURN(const auto version, VersionOfShard(shard));
  RETURN_IF_ERROR(CheckQueries(codec_.kind(), Batch::Count(ranges, {})));
  AggregateResults results(plan);
  RETURN_IF_ERROR(
      version->AggregateRanges(ranges, plan, version->base->options.threads, {}, &results));
  return EncodePart(plan, codec_.kind(), ranges.size(), results);
} catch (...) {
  return StatusOfException("computing aggregates of a shard");
}

absl::StatusOr<std::string> PublishedShards::AggregateGroupsPart(
    const SecondaryIndex& shard, const RangeBatch& ranges, size_t leading_parts,
    absl::Span<const Aggregate> aggregates, const QueryOptions& options) const try {
  ASSIGN_OR_RETURN(const AggregatePlan plan, PlanOf(aggregates));
  ASSIGN_OR_RETURN(const auto version, VersionOfShard(shard));
  GroupResults results(plan);
  RETURN_IF_ERROR(version->AggregateGroups(ranges, leading_parts, plan, options,
                                           version->base->options.threads, &results));
  return EncodePart(plan, codec_.kind(), results);
} catch (...) {
  return StatusOfException("computing aggregates of a shard's groups");
}

absl::Status PublishedShards::CombineRanges(size_t ranges, absl::Span<const Aggregate> aggregates,
                                            absl::Span<const AggregatePart> parts,
                                            std::vector<ColumnValues>* values) const try {
  RETURN_IF_ERROR(CheckSize(ranges));
  ASSIGN_OR_RETURN(const AggregatePlan plan, PlanOf(aggregates));
  return CombineRangeParts(plan, codec_, ranges, parts, values);
} catch (...) {
  return StatusOfException("combining aggregates of shards");
}

absl::Status PublishedShards::CombineGroups(size_t ranges, size_t leading_parts,
                                            absl::Span<const Aggregate> aggregates,
                                            const QueryOptions& options,
                                            absl::Span<const AggregatePart> parts,
                                            AggregateGroupsResult* groups) const try {
  RETURN_IF_ERROR(CheckSize(ranges));
  RETURN_IF_ERROR(CheckLeadingParts(codec_, leading_parts));
  ASSIGN_OR_RETURN(const AggregatePlan plan, PlanOf(aggregates));
  return CombineGroupParts(plan, codec_, ranges, leading_parts, options, parts, groups);
} catch (...) {
  return StatusOfException("combining groups of shards");
}

}  // namespace

absl::StatusOr<std::unique_ptr<ShardMap>> ShardMap::Open(
    const std::string& directory, std::shared_ptr<rocksdb::FileSystem> file_system) try {
  const std::shared_ptr<FileSystem> files = FileSystemOf(std::move(file_system));
  ASSIGN_OR_RETURN(ShardManifest manifest, ReadShardManifest(directory, files.get()));
  absl::StatusOr<IndexSpec> spec = IndexSpec::Parse(manifest.spec);
  if (absl::IsResourceExhausted(spec.status())) return spec.status();
  if (!spec.ok()) {
    return absl::DataLossError(
        absl::StrFormat("index '%s': %s", directory, std::string(spec.status().message())));
  }
  ASSIGN_OR_RETURN(KeyCodec codec, spec->Codec());
  auto map = std::make_unique<PublishedShards>(directory, std::move(manifest), *std::move(spec),
                                               std::move(codec));
  if (!map->CreateRouting()) {
    return absl::DataLossError(
        absl::StrFormat("index '%s': a shard's bound is not a key of the index's kind", directory));
  }
  return map;
} catch (...) {
  return StatusOfException("reading the shards of an index");
}

}  // namespace cairn
