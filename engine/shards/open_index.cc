#include "engine/shards/open_index.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/strings/str_format.h"
#include "absl/types/span.h"
#include "cairn/aggregate.h"
#include "cairn/column.h"
#include "cairn/index_spec.h"
#include "cairn/key_codec.h"
#include "cairn/options.h"
#include "cairn/query.h"
#include "cairn/sharding.h"
#include "cairn/snapshot_source.h"
#include "cairn/types.h"
#include "engine/build/index_builder.h"
#include "engine/serve/catch_up.h"
#include "engine/shards/lookup.h"
#include "engine/shards/shard_batch.h"
#include "engine/shards/shard_rows.h"
#include "engine/shards/shard_stats.h"
#include "engine/util/rocksdb_file_system.h"
#include "engine/version/distinct_rows.h"
#include "engine/version/fetch.h"
#include "engine/version/verify.h"
#include "engine/version/verify_source.h"
#include "index/machine/guard.h"
#include "index/machine/status_macros.h"
#include "index/machine/stop_flag.h"
#include "index/machine/topology.h"
#include "index/query/batch_check.h"

namespace cairn {

SequenceNumber OpenIndex::sequence() const {
  SequenceNumber least = version(0)->sequence;
  for (size_t s = 1; s < size(); ++s) least = std::min(least, version(s)->sequence);
  return least;
}

IndexVersions OpenIndex::versions() const {
  return {in_shards(), by_source(), Versions()};
}

ShardedState OpenIndex::StateOf(const ShardVersions& versions, size_t lanes) const {
  return {shards_->routing(), versions, shards_->threads(), lanes};
}

absl::Status OpenIndex::CheckNotPinned() const {
  if (pinned_.empty()) return absl::OkStatus();
  return absl::FailedPreconditionError("a pinned version of an index cannot be changed");
}

absl::Status OpenIndex::Named(size_t shard, const absl::Status& status) const {
  if (!in_shards() || status.ok()) return status;
  return absl::Status(status.code(),
                      absl::StrFormat("%s: %s", shards_->NameOf(shard), status.message()));
}

absl::Status OpenIndex::Execute(const Batch& batch) const {
  return Guarded("answering a batch", [&] {
    return AtVersions([&](const ShardVersions& versions) { return ExecuteAt(versions, batch); });
  });
}

absl::StatusOr<std::shared_ptr<const SecondaryIndex>> OpenIndex::Pin(
    const QueryOptions& options) const {
  RETURN_IF_ERROR(StopCondition::Of(options).Check());
  return Guarded("pinning an index",
                 [&]() -> absl::StatusOr<std::shared_ptr<const SecondaryIndex>> {
                   return std::make_shared<OpenIndex>(in_shards() ? shards_ : nullptr, Versions());
                 });
}

absl::Status OpenIndex::Lookup(const KeyQuery& keys, const LookupOptions& options,
                               FoundKeys* found) const {
  absl::Status s = Guarded("looking up keys", [&]() -> absl::Status {
    RETURN_IF_ERROR(CheckHasOwnState(options));
    if (!pinned_.empty()) return LookUpKeys(*this, keys, options, found);
    return LookUpKeys(OpenIndex(shards_, Versions()), keys, options, found);
  });
  if (!s.ok()) *found = {};
  return s;
}

absl::Status OpenIndex::PrimaryKeys(RowSpan rows, StringList* primary_keys) const {
  return Guarded("reading primary keys", [&] {
    return AtVersions([&](const ShardVersions& versions) {
      return ShardedPrimaryKeys(versions, rows, primary_keys);
    });
  });
}

absl::Status OpenIndex::Columns(RowSpan rows, absl::Span<const std::string> names,
                                std::vector<ColumnValues>* columns) const {
  return Guarded("reading included columns", [&] {
    return AtVersions([&](const ShardVersions& versions) {
      return ShardedColumns(versions, rows, names, columns);
    });
  });
}

absl::Status OpenIndex::AggregateRanges(const RangeBatch& ranges,
                                        absl::Span<const Aggregate> aggregates,
                                        std::vector<ColumnValues>* values,
                                        const QueryOptions& options) const {
  return Guarded("computing aggregates", [&] {
    const ShardVersions versions = Versions();
    if (in_shards()) {
      return shards_->aggregates().OfRanges(StateOf(versions, 1), ranges, aggregates, options,
                                            values);
    }
    const IndexVersion& only = *versions[0];
    return only.AggregateRanges(ranges, aggregates, only.base->options.threads,
                                StopCondition::Of(options), values);
  });
}

absl::Status OpenIndex::AggregateGroups(const RangeBatch& ranges, size_t leading_parts,
                                        absl::Span<const Aggregate> aggregates,
                                        const QueryOptions& options,
                                        AggregateGroupsResult* groups) const {
  return Guarded("computing aggregates of groups", [&] {
    const ShardVersions versions = Versions();
    if (in_shards()) {
      return shards_->aggregates().OfGroups(StateOf(versions, 1), ranges, leading_parts, aggregates,
                                            options, groups);
    }
    const IndexVersion& only = *versions[0];
    return only.AggregateGroups(ranges, leading_parts, aggregates, options,
                                only.base->options.threads, groups);
  });
}

absl::StatusOr<IndexStats> OpenIndex::Stats() const {
  return Guarded("counting what an index holds", [&]() -> absl::StatusOr<IndexStats> {
    return in_shards() ? ShardedStats(*shards_, Versions()) : StatsOf(*version(0));
  });
}

absl::StatusOr<CatchUpReport> OpenIndex::CatchUp(const SnapshotSource& source,
                                                 const CatchUpOptions& options) {
  return Guarded("catching up", [&] { return CatchUpShard(source, options); });
}

bool OpenIndex::ShouldCompact() const {
  bool pays = false;
  for (size_t s = 0; pinned_.empty() && s < size(); ++s) {
    pays |= shards_->writer(s)->ShouldCompact();
  }
  return pays;
}

absl::Status OpenIndex::ExecuteAt(const ShardVersions& versions, const Batch& batch) const {
  if (!in_shards()) return versions[0]->Execute(batch, versions[0]->base->options.threads);
  if (static_cast<size_t>(batch.operation) >= kIndexOperations) {
    return absl::InvalidArgumentError(
        absl::StrFormat("%s is for an ordered index: a secondary index has no positions",
                        OperationName(batch.operation)));
  }
  if (batch.operation == Operation::kFindFirst) {
    RETURN_IF_ERROR(CheckQueries(codec().kind(), batch));
    if (!batch.values.empty()) {
      return absl::InvalidArgumentError(
          "find_first: expected Batch::rows, because rows of a sharded index have 64-bit ids; got "
          "values");
    }
    RETURN_IF_ERROR(CheckOutput(batch.size(), batch.rows.size(), "rows"));
  } else {
    RETURN_IF_ERROR(CheckBatch(codec().kind(), batch));
  }
  RETURN_IF_ERROR(BeginColumns(batch));
  const StopCondition stop = StopCondition::Of(batch.options);
  RETURN_IF_ERROR(stop.Check());
  if (batch.options.columns.empty()) return ExecuteOnShards(versions, batch);
  Batch entries = batch;
  entries.options.columns.clear();
  RETURN_IF_ERROR(ExecuteOnShards(versions, entries));
  RETURN_IF_ERROR(stop.Check());
  return ShardedColumns(versions, *batch.matches, batch.options.columns, &batch.matches->columns);
}

absl::Status OpenIndex::ExecuteOnShards(const ShardVersions& versions, const Batch& batch) const {
  if (batch.size() > UINT32_MAX) {
    return absl::InvalidArgumentError(
        absl::StrFormat("the batch has %d queries, expected at most %d", batch.size(), UINT32_MAX));
  }
  const ShardedState state = StateOf(versions, lanes());
  if (batch.takes_ranges()) return AnswerShardedRanges(state, batch);
  if (batch.options.result_order == ResultOrder::kKey || !batch.query_of.empty()) {
    RETURN_IF_ERROR(CheckOutput(batch.size(), batch.query_of.size(), "query_of"));
  }
  return AnswerShardedPoints(state, batch);
}

absl::Duration OpenIndex::PredictedTime(Operation operation, size_t queries) const {
  // The shards of a lane are searched one after the other, each with its share of the queries. If
  // the index is sharded by database, each is searched for all queries.
  const size_t share = by_source() ? queries : (queries + size() - 1) / size();
  absl::InlinedVector<absl::Duration, 1> sums(lanes());
  for (size_t s = 0; s < size(); ++s) {
    sums[s % sums.size()] += version(s)->base->router->router().PredictedTime(operation, share);
  }
  return *std::max_element(sums.begin(), sums.end());
}

size_t OpenIndex::BestBatch(Operation operation) const {
  size_t most = 1, sum = 0;
  for (size_t s = 0; s < size(); ++s) {
    const size_t best = version(s)->base->router->router().BestBatch(operation);
    most = std::max(most, best);
    sum += best;
  }
  return by_source() || most == 1 ? most : sum;
}

absl::Status OpenIndex::CheckIsDatabase(const ShardVersions& versions,
                                        const SnapshotSource& source) const {
  for (size_t s = 0; s < versions.size(); ++s) {
    RETURN_IF_ERROR(Named(s, CheckSameDatabase(*versions[s]->base, source)));
  }
  return absl::OkStatus();
}

absl::Status OpenIndex::Fetch(const SnapshotSource& source, const RangeBatch& ranges,
                              const QueryOptions& options, FetchResult* rows) const try {
  const ShardVersions versions = Versions();
  RETURN_IF_ERROR(CheckIsDatabase(versions, source));
  FindResult matches;
  RETURN_IF_ERROR(ScanDistinctRows(
      versions, by_source(), [&](const Batch& batch) { return ExecuteAt(versions, batch); }, ranges,
      options, &matches));
  const StopCondition stop = StopCondition::Of(options);
  RETURN_IF_ERROR(in_shards() ? FetchShardedRows(versions, source, ranges, matches, stop, rows)
                              : FetchRows(*versions[0], source, ranges, matches, stop, rows));
  rows->cursors = std::move(matches.cursors);
  return absl::OkStatus();
} catch (...) {
  return StatusOfException("fetching rows");
}

absl::Status OpenIndex::Verify(const QueryOptions& query) const try {
  const StopCondition stop = StopCondition::Of(query);
  // Reads the files again, because checksums may not have been verified when they were mapped.
  const ShardVersions versions = Versions();
  for (size_t s = 0; s < versions.size(); ++s) {
    RETURN_IF_ERROR(stop.Check());
    OpenOptions options = versions[s]->base->options;
    options.verify = VerifyLevel::kFull;
    const absl::StatusOr<std::unique_ptr<IndexWriter>> opened =
        IndexWriter::Open(versions[s]->base->directory, options);
    if (!opened.ok()) return Named(s, opened.status());
    const Base& base = *(*opened)->version()->base;
    if (in_shards()) {
      const ShardManifest& manifest = shards_->manifest();
      RETURN_IF_ERROR(Named(s, CheckShardIndex(base.manifest, manifest, s)));
      RETURN_IF_ERROR(
          Named(s, CheckShardEntries({base.run(), base.rows(), base.codec}, manifest.shards[s])));
    }
    RETURN_IF_ERROR(Named(s, VerifyStructure(base, stop)));
  }
  return absl::OkStatus();
} catch (...) {
  return StatusOfException("verifying an index");
}

absl::Status OpenIndex::VerifyAgainst(const SnapshotSource& source, size_t max_differences,
                                      std::vector<std::string>* differences,
                                      const QueryOptions& options) const try {
  const StopCondition stop = StopCondition::Of(options);
  const ShardVersions versions = Versions();
  RETURN_IF_ERROR(CheckIsDatabase(versions, source));
  if (versions.size() == 1) {
    return VerifyAgainstSource(*versions[0], source,
                               Topology::Get().Threads(versions[0]->base->options.threads),
                               max_differences, stop, differences);
  }
  if (by_source()) {
    return absl::FailedPreconditionError(
        "the index is sharded by database: verify each shard against its own database");
  }
  std::vector<const IndexVersion*> pointers;
  for (const auto& version : versions) pointers.push_back(version.get());
  return VerifyAgainstSource(
      pointers,
      [&](KeyBatch keys, absl::Span<const uint32_t> row_of_key, const StringList& primary_keys,
          absl::Span<uint32_t> version_of) {
        for (size_t i = 0; i < version_of.size(); ++i) {
          version_of[i] = shards_->routing().ShardOfEntry(keys, i, primary_keys[row_of_key[i]]);
        }
      },
      source, shards_->threads(), max_differences, stop, differences);
} catch (...) {
  return StatusOfException("comparing an index with its database");
}

absl::StatusOr<CatchUpReport> OpenIndex::CatchUpShard(const SnapshotSource& source,
                                                      const CatchUpOptions& options) {
  RETURN_IF_ERROR(CheckNotPinned());
  if (!in_shards()) return cairn::CatchUp(source, options, shards_->writer(0));
  if (shards_->mode() != ShardMode::kSource) {
    return absl::FailedPreconditionError(
        "an index sharded by key range cannot catch up: build its next generation");
  }
  const ShardVersions versions = Versions();
  size_t found = versions.size();
  for (size_t s = 0; s < versions.size(); ++s) {
    if (!CheckSameDatabase(*versions[s]->base, source).ok()) continue;
    if (found != versions.size()) {
      return absl::FailedPreconditionError(
          absl::StrFormat("%s may be the database of %s and of %s: its identity is unknown",
                          source.description(), shards_->NameOf(found), shards_->NameOf(s)));
    }
    found = s;
  }
  if (found == versions.size()) {
    return absl::FailedPreconditionError(
        absl::StrFormat("%s is not the database of any shard", source.description()));
  }
  absl::StatusOr<CatchUpReport> report = cairn::CatchUp(source, options, shards_->writer(found));
  if (!report.ok()) return Named(found, report.status());
  return report;
}

absl::Status OpenIndex::Compact(const CompactOptions& options) {
  RETURN_IF_ERROR(CheckNotPinned());
  if (in_shards() && shards_->mode() != ShardMode::kSource) {
    return absl::FailedPreconditionError(
        "an index sharded by key range has nothing to compact: build its next generation");
  }
  return Guarded("merging", [&] {
    for (size_t s = 0; s < shards_->size(); ++s) {
      RETURN_IF_ERROR(Named(s, shards_->writer(s)->Compact(options)));
    }
    return absl::OkStatus();
  });
}

namespace {

// Returns whether a directory contains a sharded index. Errors: that cannot be determined.
absl::StatusOr<bool> IsSharded(const std::string& directory, FileSystem* files) {
  absl::Status opened = files->OpenForReading(directory + "/SHARDS").status();
  if (absl::IsResourceExhausted(opened) || absl::IsPermissionDenied(opened)) return opened;
  return opened.ok();
}

}  // namespace

std::unique_ptr<SecondaryIndex> OverWriter(std::shared_ptr<IndexWriter> writer) {
  return std::make_unique<OpenIndex>(ShardSet::OfOne(std::move(writer)));
}

std::unique_ptr<SecondaryIndex> OverVersion(std::shared_ptr<const IndexVersion> version) {
  return std::make_unique<OpenIndex>(std::move(version));
}

std::optional<IndexVersions> VersionsOf(const SecondaryIndex& index) {
  const auto* const open = dynamic_cast<const OpenIndex*>(&index);
  if (open == nullptr) return std::nullopt;
  return open->versions();
}

absl::StatusOr<std::unique_ptr<SecondaryIndex>> SecondaryIndex::Open(
    const std::string& directory, const OpenOptions& options) try {
  ASSIGN_OR_RETURN(const bool sharded,
                   IsSharded(directory, FileSystemOf(options.file_system).get()));
  if (sharded) {
    ASSIGN_OR_RETURN(std::unique_ptr<ShardSet> shards, ShardSet::Open(directory, options));
    return std::make_unique<OpenIndex>(std::move(shards));
  }
  ASSIGN_OR_RETURN(std::unique_ptr<IndexWriter> writer, IndexWriter::Open(directory, options));
  return OverWriter(std::move(writer));
} catch (...) {
  return StatusOfException("opening an index");
}

absl::StatusOr<std::vector<BuildReport>> SecondaryIndex::BuildAll(
    const SnapshotSource& source, absl::Span<const BuildTarget> targets,
    const BuildOptions& options) try {
  return BuildIndexes(source, targets, options);
} catch (...) {
  return StatusOfException("building indexes");
}

absl::StatusOr<std::unique_ptr<SecondaryIndex>> SecondaryIndex::Build(
    const SnapshotSource& source, const IndexSpec& spec, const std::string& directory,
    const BuildOptions& options) try {
  const BuildTarget target{spec, directory};
  absl::StatusOr<std::vector<BuildReport>> reports =
      BuildIndexes(source, absl::MakeConstSpan(&target, 1), options);
  if (!reports.ok()) return reports.status();
  OpenOptions open;
  open.verify = VerifyLevel::kMetadata;  // just written
  open.threads = options.threads;
  open.file_system = options.file_system;
  return Open(directory, open);
} catch (...) {
  return StatusOfException("building an index");
}

PhysicalType SecondaryIndex::kind() const {
  return codec().kind();
}

}  // namespace cairn
