#include "engine/shards/sharded_index.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "cairn/aggregate.h"
#include "cairn/options.h"
#include "cairn/query.h"
#include "cairn/secondary_index.h"
#include "cairn/sharding.h"
#include "engine/serve/catch_up.h"
#include "engine/serve/open_index.h"
#include "engine/shards/shard_aggregates.h"
#include "engine/shards/shard_batch.h"
#include "engine/shards/shard_directory.h"
#include "engine/shards/shard_fetch.h"
#include "engine/shards/shard_rows.h"
#include "engine/shards/shard_set.h"
#include "engine/shards/shard_stats.h"
#include "engine/util/rocksdb_file_system.h"
#include "engine/version/distinct_rows.h"
#include "engine/version/verify.h"
#include "engine/version/verify_source.h"
#include "index/machine/guard.h"
#include "index/machine/status_macros.h"
#include "index/machine/topology.h"
#include "index/query/batch_check.h"

namespace cairn {
namespace {

// One generation, as it was opened.
class ShardedIndex final : public SecondaryIndex {
 public:
  // `pinned`: the versions that it stays at; none: those of the moment.
  ShardedIndex(std::shared_ptr<const ShardSet> shards, std::shared_ptr<const ShardRouting> routing,
               std::shared_ptr<ShardAggregates> aggregates, const OpenOptions& options,
               ShardVersions pinned = {})
      : shards_(std::move(shards)),
        routing_(std::move(routing)),
        aggregates_(std::move(aggregates)),
        options_(options),
        threads_(Topology::Get().Threads(options.threads)),
        pinned_(std::move(pinned)) {}

  const IndexSpec& spec() const override { return shards_->spec(); }
  const KeyCodec& codec() const override { return shards_->codec(); }
  SequenceNumber sequence() const override {
    SequenceNumber least = version(0)->sequence;
    for (size_t s = 1; s < shards_->size(); ++s) least = std::min(least, version(s)->sequence);
    return least;
  }

  bool in_shards() const override { return true; }
  OpenShards shards() const { return {routing_->asks_all(), Versions()}; }
  absl::Status Execute(const Batch& batch) const override {
    return Guarded("answering a batch", [&] { return AnswerAt(Versions(), batch); });
  }
  absl::Duration PredictedTime(Operation operation, size_t queries) const override;
  size_t BestBatch(Operation operation) const override;

  absl::StatusOr<std::shared_ptr<const SecondaryIndex>> Pin() const override {
    return Guarded("pinning an index",
                   [&]() -> absl::StatusOr<std::shared_ptr<const SecondaryIndex>> {
                     return std::make_shared<ShardedIndex>(shards_, routing_, aggregates_, options_,
                                                           Versions());
                   });
  }
  absl::Status PrimaryKeys(absl::Span<const RowId> row_ids,
                           StringList* primary_keys) const override {
    if (shards_->size() > 1) return NamedAlone();
    return PrimaryKeys({}, row_ids, primary_keys);
  }
  absl::Status PrimaryKeys(absl::Span<const uint32_t> shards, absl::Span<const RowId> row_ids,
                           StringList* primary_keys) const override {
    return Guarded("reading primary keys",
                   [&] { return ShardedPrimaryKeys(Versions(), shards, row_ids, primary_keys); });
  }
  absl::Status Columns(absl::Span<const RowId> row_ids, absl::Span<const std::string> names,
                       std::vector<ColumnValues>* columns) const override {
    if (shards_->size() > 1) return NamedAlone();
    return Columns({}, row_ids, names, columns);
  }
  absl::Status Columns(absl::Span<const uint32_t> shards, absl::Span<const RowId> row_ids,
                       absl::Span<const std::string> names,
                       std::vector<ColumnValues>* columns) const override {
    return Guarded("reading included columns",
                   [&] { return ShardedColumns(Versions(), shards, row_ids, names, columns); });
  }
  absl::Status AggregateRanges(const RangeBatch& ranges, absl::Span<const Aggregate> aggregates,
                               std::vector<ColumnValues>* values) const override {
    return Guarded("computing aggregates", [&] {
      const ShardVersions versions = Versions();
      return aggregates_->Ranges({*routing_, versions, threads_}, ranges, aggregates, values);
    });
  }
  absl::Status AggregateGroups(const RangeBatch& ranges, size_t leading_parts,
                               absl::Span<const Aggregate> aggregates,
                               const AggregateGroupsOptions& options,
                               AggregateGroupsResult* groups) const override {
    return Guarded("computing aggregates of groups", [&] {
      const ShardVersions versions = Versions();
      return aggregates_->AggregateGroupsResult({*routing_, versions, threads_}, ranges,
                                                leading_parts, aggregates, options, groups);
    });
  }
  absl::Status Fetch(const SnapshotSource& source, const RangeBatch& ranges,
                     const QueryOptions& options, FetchResult* rows) const override;
  absl::Status Verify() const override;
  absl::Status VerifyAgainst(const SnapshotSource& source, size_t max_differences,
                             std::vector<std::string>* differences) const override;
  absl::StatusOr<IndexStats> Stats() const override {
    return Guarded("counting what an index holds", [&]() -> absl::StatusOr<IndexStats> {
      IndexStats stats = ShardedStats(*shards_, Versions());
      if (const uint64_t bytes = aggregates_->memory_bytes(); bytes != 0) {
        AddAggregates({"", bytes}, &stats);
      }
      return stats;
    });
  }

  absl::StatusOr<CatchUpReport> CatchUp(const SnapshotSource& source,
                                        const CatchUpOptions& options) override {
    return Guarded("catching up", [&] { return CatchUpShard(source, options); });
  }
  absl::Status Compact(const CompactOptions& options) override;
  bool ShouldCompact() const override {
    bool pays = false;
    for (size_t s = 0; s < shards_->size(); ++s) pays |= shards_->writer(s)->ShouldCompact();
    return pays && pinned_.empty();
  }

 private:
  std::shared_ptr<const IndexVersion> version(size_t shard) const {
    return pinned_.empty() ? shards_->writer(shard)->version() : pinned_[shard];
  }
  // Of this moment, or those that it is pinned to. Throws std::bad_alloc.
  ShardVersions Versions() const { return pinned_.empty() ? shards_->Versions() : pinned_; }
  absl::Status CheckNotPinned() const {
    if (pinned_.empty()) return absl::OkStatus();
    return absl::FailedPreconditionError("a pinned version of an index stays what it is");
  }
  static absl::Status NamedAlone();
  absl::Status AnswerAt(const ShardVersions& versions, const Batch& batch) const;
  absl::Status AnswerEntries(const ShardVersions& versions, const Batch& batch) const;
  absl::Status CheckIsDatabase(const ShardVersions& versions, const SnapshotSource& source) const;
  absl::StatusOr<CatchUpReport> CatchUpShard(const SnapshotSource& source,
                                             const CatchUpOptions& options);
  // An error of one shard, with its name.
  absl::Status Named(size_t shard, const absl::Status& status) const {
    return absl::Status(status.code(), absl::StrFormat("%s: %s", shards_->NameOf(shard),
                                                       std::string(status.message())));
  }

  const std::shared_ptr<const ShardSet> shards_;
  const std::shared_ptr<const ShardRouting> routing_;
  const std::shared_ptr<ShardAggregates> aggregates_;  // of this and its pins
  const OpenOptions options_;
  const int threads_;
  const ShardVersions pinned_;
};

absl::Status ShardedIndex::NamedAlone() {
  return absl::InvalidArgumentError(
      "the rows of an index in shards are to be named with their shards");
}

absl::Status ShardedIndex::AnswerAt(const ShardVersions& versions, const Batch& batch) const {
  if (static_cast<size_t>(batch.operation) >= kIndexOperations) {
    return absl::InvalidArgumentError(
        absl::StrFormat("%s is for an ordered index: a secondary index has no positions",
                        OperationName(batch.operation)));
  }
  RETURN_IF_ERROR(CheckBatch(codec().kind(), batch));
  RETURN_IF_ERROR(BeginColumns(batch));
  if (batch.options.columns.empty()) return AnswerEntries(versions, batch);
  Batch entries = batch;
  entries.options.columns.clear();
  RETURN_IF_ERROR(AnswerEntries(versions, entries));
  FindResult& matches = *batch.matches;
  return ShardedColumns(versions, matches.shards, matches.row_ids, batch.options.columns,
                        &matches.columns);
}

absl::Status ShardedIndex::AnswerEntries(const ShardVersions& versions, const Batch& batch) const {
  if (batch.size() > UINT32_MAX) {
    return absl::InvalidArgumentError(
        absl::StrFormat("a batch of %d queries, of at most %d", batch.size(), UINT32_MAX));
  }
  const ShardedState state{*routing_, versions, threads_, shards_->lanes()};
  if (batch.takes_ranges()) return AnswerShardedRanges(state, batch);
  const bool by_key = batch.options.result_order == ResultOrder::kKey;
  if (by_key || !batch.query_of.empty()) {
    RETURN_IF_ERROR(CheckOutput(batch.size(), batch.query_of.size(), "query_of"));
  }
  if (batch.operation == Operation::kFindFirst && batch.shards.size() != batch.size()) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "the first rows of %d keys in an index in shards need as many places for their shards "
        "(Batch::shards), found %d",
        batch.size(), batch.shards.size()));
  }
  return AnswerShardedPoints(state, batch);
}

absl::Duration ShardedIndex::PredictedTime(Operation operation, size_t queries) const {
  // All shards of a lane in turn, each with its share; by source each with all.
  const size_t share =
      routing_->asks_all() ? queries : (queries + shards_->size() - 1) / shards_->size();
  std::vector<absl::Duration> sums(shards_->lanes());
  for (size_t s = 0; s < shards_->size(); ++s) {
    sums[s % sums.size()] += version(s)->base->router->router().PredictedTime(operation, share);
  }
  return *std::max_element(sums.begin(), sums.end());
}

size_t ShardedIndex::BestBatch(Operation operation) const {
  size_t most = 1, sum = 0;
  for (size_t s = 0; s < shards_->size(); ++s) {
    const size_t best = version(s)->base->router->router().BestBatch(operation);
    most = std::max(most, best);
    sum += best;
  }
  return routing_->asks_all() || most == 1 ? most : sum;
}

absl::Status ShardedIndex::CheckIsDatabase(const ShardVersions& versions,
                                           const SnapshotSource& source) const {
  for (size_t s = 0; s < versions.size(); ++s) {
    const absl::Status same = CheckSameDatabase(*versions[s]->base, source);
    if (!same.ok()) return Named(s, same);
  }
  return absl::OkStatus();
}

absl::Status ShardedIndex::Fetch(const SnapshotSource& source, const RangeBatch& ranges,
                                 const QueryOptions& options, FetchResult* rows) const try {
  const ShardVersions versions = Versions();
  RETURN_IF_ERROR(CheckIsDatabase(versions, source));
  FindResult matches;
  RETURN_IF_ERROR(ScanDistinctRows(
      versions, routing_->asks_all(), [&](const Batch& batch) { return AnswerAt(versions, batch); },
      ranges, options, &matches));
  RETURN_IF_ERROR(FetchShardedRows(versions, source, ranges, matches, rows));
  rows->cursors = std::move(matches.cursors);
  return absl::OkStatus();
} catch (...) {
  return StatusOfException("fetching rows");
}

absl::Status ShardedIndex::Verify() const try {
  // Once more from the disk: what is mapped was perhaps opened without looking at the checksums.
  for (size_t s = 0; s < shards_->size(); ++s) {
    OpenOptions options = shards_->OptionsOf(s);
    options.verify = VerifyLevel::kFull;
    const absl::StatusOr<std::unique_ptr<IndexWriter>> opened =
        IndexWriter::Open(shards_->PathOf(s), options);
    if (!opened.ok()) return Named(s, opened.status());
    const Base& base = *(*opened)->version()->base;
    absl::Status status = CheckShardIndex(base.manifest, shards_->manifest(), s);
    if (status.ok())
      status =
          CheckShardEntries({base.run(), base.rows(), base.codec}, shards_->manifest().shards[s]);
    if (status.ok()) status = VerifyStructure(base);
    if (!status.ok()) return Named(s, status);
  }
  return absl::OkStatus();
} catch (...) {
  return StatusOfException("verifying an index");
}

absl::Status ShardedIndex::VerifyAgainst(const SnapshotSource& source, size_t max_differences,
                                         std::vector<std::string>* differences) const try {
  const ShardVersions versions = Versions();
  RETURN_IF_ERROR(CheckIsDatabase(versions, source));
  if (routing_->asks_all() && versions.size() > 1) {
    return absl::FailedPreconditionError(
        "the index is of several sources: each shard is to be verified against its own");
  }
  std::vector<const IndexVersion*> pointers;
  for (const auto& version : versions) pointers.push_back(version.get());
  return VerifyAgainstSource(
      pointers,
      [&](KeyBatch keys, absl::Span<const uint32_t> row_of_key, const StringList& primary_keys,
          absl::Span<uint32_t> version_of) {
        for (size_t i = 0; i < version_of.size(); ++i) {
          version_of[i] = routing_->ShardOfEntry(keys, i, primary_keys[row_of_key[i]]);
        }
      },
      source, threads_, max_differences, differences);
} catch (...) {
  return StatusOfException("comparing an index with its database");
}

absl::StatusOr<CatchUpReport> ShardedIndex::CatchUpShard(const SnapshotSource& source,
                                                         const CatchUpOptions& options) {
  RETURN_IF_ERROR(CheckNotPinned());
  if (shards_->mode() != ShardMode::kSource) {
    return absl::FailedPreconditionError(
        "an index in shards by key range is not caught up: build its next generation");
  }
  const ShardVersions versions = Versions();
  size_t found = versions.size();
  for (size_t s = 0; s < versions.size(); ++s) {
    if (!CheckSameDatabase(*versions[s]->base, source).ok()) continue;
    if (found != versions.size()) {
      return absl::FailedPreconditionError(
          absl::StrFormat("%s may be the database of %s and of %s: it does not say which",
                          source.description(), shards_->NameOf(found), shards_->NameOf(s)));
    }
    found = s;
  }
  if (found == versions.size()) {
    return absl::FailedPreconditionError(
        absl::StrFormat("%s is the database of no shard", source.description()));
  }
  absl::StatusOr<CatchUpReport> report = cairn::CatchUp(source, options, shards_->writer(found));
  if (!report.ok()) return Named(found, report.status());
  return report;
}

absl::Status ShardedIndex::Compact(const CompactOptions& options) {
  RETURN_IF_ERROR(CheckNotPinned());
  if (shards_->mode() != ShardMode::kSource) {
    return absl::FailedPreconditionError(
        "an index in shards by key range has nothing to merge: build its next generation");
  }
  return Guarded("merging", [&] {
    for (size_t s = 0; s < shards_->size(); ++s) {
      if (absl::Status merged = shards_->writer(s)->Compact(options); !merged.ok()) {
        return Named(s, merged);
      }
    }
    return absl::OkStatus();
  });
}

}  // namespace

absl::StatusOr<bool> IsSharded(const std::string& directory, FileSystem* files) {
  absl::Status opened = files->OpenForReading(directory + "/SHARDS").status();
  if (absl::IsResourceExhausted(opened) || absl::IsPermissionDenied(opened)) return opened;
  return opened.ok();
}

absl::StatusOr<std::unique_ptr<SecondaryIndex>> OpenSharded(const std::string& directory,
                                                            const OpenOptions& options) {
  ASSIGN_OR_RETURN(std::unique_ptr<ShardSet> shards, ShardSet::Open(directory, options));
  auto routing = std::make_shared<ShardRouting>();
  if (!ShardRouting::Create(shards->manifest(), shards->codec().kind(), routing.get())) {
    return absl::DataLossError(
        absl::StrFormat("index '%s': a shard's bound is no key of the index's kind", directory));
  }
  return std::make_unique<ShardedIndex>(std::move(shards), std::move(routing),
                                        std::make_shared<ShardAggregates>(), options);
}

std::optional<OpenShards> ShardsOf(const SecondaryIndex& index) {
  const auto* const sharded = dynamic_cast<const ShardedIndex*>(&index);
  if (sharded == nullptr) return std::nullopt;
  return sharded->shards();
}

absl::StatusOr<std::unique_ptr<SecondaryIndex>> SecondaryIndex::Open(
    const std::string& directory, const OpenOptions& options) try {
  ASSIGN_OR_RETURN(const bool sharded,
                   IsSharded(directory, FileSystemOf(options.file_system).get()));
  if (sharded) return OpenSharded(directory, options);
  ASSIGN_OR_RETURN(std::unique_ptr<IndexWriter> writer, IndexWriter::Open(directory, options));
  return OverWriter(std::move(writer), options);
} catch (...) {
  return StatusOfException("opening an index");
}

}  // namespace cairn
