#include "engine/shards/sharded_index.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/str_format.h"
#include "absl/types/span.h"
#include "cairn/aggregate.h"
#include "cairn/column.h"
#include "cairn/options.h"
#include "cairn/query.h"
#include "cairn/secondary_index.h"
#include "cairn/sharding.h"
#include "cairn/snapshot_source.h"
#include "engine/aggregates/aggregate_plan.h"
#include "engine/aggregates/aggregate_results.h"
#include "engine/aggregates/shared_keys.h"
#include "engine/serve/catch_up.h"
#include "engine/serve/open_index.h"
#include "engine/shards/shard_batch.h"
#include "engine/shards/shard_directory.h"
#include "engine/shards/shard_rows.h"
#include "engine/shards/shard_set.h"
#include "engine/shards/shard_stats.h"
#include "engine/util/rocksdb_file_system.h"
#include "engine/version/distinct_rows.h"
#include "engine/version/fetch.h"
#include "engine/version/verify.h"
#include "engine/version/verify_source.h"
#include "index/machine/guard.h"
#include "index/machine/mutex.h"
#include "index/machine/status_macros.h"
#include "index/machine/stop_flag.h"
#include "index/machine/topology.h"
#include "index/query/batch_check.h"

namespace cairn {
namespace {

// Counts the rows of `matches` that were not returned for their ranges, each once per range, even
// if several shards have it.
absl::Status CountStale(const ShardVersions& versions, const FindResult& matches,
                        FetchResult* rows) {
  StringList primary_keys;
  RETURN_IF_ERROR(ShardedPrimaryKeys(versions, matches.shards, matches.row_ids, &primary_keys));
  std::unordered_set<std::string_view> distinct;  // in the current range
  rows->stale = 0;
  for (size_t i = 0; i < matches.size(); ++i) {
    distinct.clear();
    for (uint64_t j = matches.offsets[i]; j < matches.offsets[i + 1]; ++j) {
      distinct.insert(primary_keys[j]);
    }
    rows->stale += distinct.size() - (rows->offsets[i + 1] - rows->offsets[i]);
  }
  return absl::OkStatus();
}

// Reads the rows of `matches`, the results of `ranges` at those versions, from `source`, like
// FetchRows. Throws std::bad_alloc.
absl::Status FetchShardedRows(const ShardVersions& versions, const SnapshotSource& source,
                              const RangeBatch& ranges, const FindResult& matches,
                              const StopCondition& stop, FetchResult* rows) {
  std::vector<FetchResult> of_shard(versions.size());
  rows->stale = 0;
  for (uint32_t s = 0; s < versions.size(); ++s) {
    FindResult part;
    part.offsets.assign(1, 0);
    for (size_t i = 0; i < matches.size(); ++i) {
      for (uint64_t j = matches.offsets[i]; j < matches.offsets[i + 1]; ++j) {
        if (matches.shards[j] == s) part.row_ids.push_back(matches.row_ids[j]);
      }
      part.offsets.push_back(part.row_ids.size());
    }
    RETURN_IF_ERROR(FetchRows(*versions[s], source, ranges, part, stop, &of_shard[s]));
    rows->stale += of_shard[s].stale;
  }

  rows->offsets.assign(1, 0);
  rows->row_ids.clear();
  rows->shards.clear();
  rows->primary_keys.Clear();
  rows->values.Clear();
  std::vector<uint64_t> next(versions.size());
  std::unordered_set<std::string_view> returned;  // for the current range
  for (size_t i = 0; i < matches.size(); ++i) {
    returned.clear();
    for (uint64_t j = matches.offsets[i]; j < matches.offsets[i + 1]; ++j) {
      const uint32_t s = matches.shards[j];
      const FetchResult& from = of_shard[s];
      uint64_t& at = next[s];
      // Missing ones are stale, or were returned for the previous range.
      if (at == from.offsets[i + 1] || from.row_ids[at] != matches.row_ids[j]) continue;
      const uint64_t row = at++;
      // A row with several keys may be in several shards.
      if (!returned.insert(from.primary_keys[row]).second) continue;
      rows->row_ids.push_back(from.row_ids[row]);
      rows->shards.push_back(s);
      rows->primary_keys.Append(from.primary_keys[row]);
      rows->values.Append(from.values[row]);
    }
    rows->offsets.push_back(rows->row_ids.size());
  }
  return rows->stale == 0 ? absl::OkStatus() : CountStale(versions, matches, rows);
}

// Aggregates over the shards of one generation: combines each shard's exact results before
// computing final values. Thread-safe. All methods throw std::bad_alloc.
class ShardAggregates {
 public:
  // SecondaryIndex's methods AggregateRanges and AggregateGroups.
  absl::Status Ranges(const ShardedState& state, const RangeBatch& ranges,
                      absl::Span<const Aggregate> aggregates, const QueryOptions& options,
                      std::vector<ColumnValues>* values);
  absl::Status AggregateGroupsResult(const ShardedState& state, const RangeBatch& ranges,
                                     size_t leading_parts, absl::Span<const Aggregate> aggregates,
                                     const QueryOptions& options,
                                     cairn::AggregateGroupsResult* groups);

  // The memory for counting distinct keys.
  uint64_t memory_bytes() const;

 private:
  // The keys that several shards have in these versions. Cached for the most recent versions.
  std::shared_ptr<const SharedKeys> SharedOf(const ShardedState& state);

  mutable Mutex mutex_;
  std::vector<std::weak_ptr<const IndexVersion>> versions_ ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<const SharedKeys> shared_ ABSL_GUARDED_BY(mutex_);
};

// The number of ranges whose results are in memory at a time.
constexpr size_t kRangesAtOnce = size_t{1} << 16;

bool CountsKeys(absl::Span<const Aggregate> aggregates) {
  return std::any_of(aggregates.begin(), aggregates.end(), [](const Aggregate& aggregate) {
    return aggregate.function == AggregateFunction::kCountDistinct;
  });
}

// Appends the values of some ranges; the first one is number `at` of the caller's.
absl::Status AppendValues(const ShardedState& state, const RangeBatch& ranges, size_t at,
                          const AggregatePlan& plan, const SharedKeys* shared,
                          const StopCondition& stop, std::vector<ColumnValues>* values) {
  std::vector<ShardInterval> intervals(ranges.size());
  state.routing.RouteRanges(ranges, absl::MakeSpan(intervals));
  const ShardAssignment assignment = Assign(intervals, state.routing.shards());
  std::vector<PartialResults> parts(state.routing.shards(), {AggregateResults(plan), {}});
  RETURN_IF_ERROR(ForEachAskedShard(state, assignment, [&](size_t s) {
    return Guarded("computing aggregates of a shard", [&] {
      const absl::Span<const uint32_t> queries = assignment.queries(s);
      GatheredRanges of_shard;
      of_shard.Gather(ranges, queries);
      parts[s].ranges.assign(queries.begin(), queries.end());
      return state.versions[s]->AggregateRanges(of_shard.Batch(), plan, state.threads, stop,
                                                &parts[s].results);
    });
  }));
  AggregateResults results = CombineResults(plan, parts, ranges.size());
  for (size_t i = 0; i < results.keys.size(); ++i) {
    results.keys[i] -= shared->Repeats(shared->Find(ranges, i));
  }
  return results.Output(
      plan, ranges.size(), [&](size_t i) { return absl::StrFormat("range %d", at + i); },
      absl::MakeSpan(*values));
}

std::shared_ptr<const SharedKeys> ShardAggregates::SharedOf(const ShardedState& state) {
  const MutexLock lock(&mutex_);
  const bool there = shared_ != nullptr &&
                     std::equal(versions_.begin(), versions_.end(), state.versions.begin(),
                                state.versions.end(), [](const auto& made_of, const auto& version) {
                                  return made_of.lock() == version;
                                });
  if (there) return shared_;
  std::vector<const Delta*> deltas;
  for (const auto& version : state.versions) deltas.push_back(version->delta.get());
  std::vector<std::weak_ptr<const IndexVersion>> versions(state.versions.begin(),
                                                          state.versions.end());
  shared_ = state.routing.asks_all() ? SharedKeys::Of(deltas) : SharedKeys::OfNeighbours(deltas);
  versions_ = std::move(versions);
  return shared_;
}

uint64_t ShardAggregates::memory_bytes() const {
  const MutexLock lock(&mutex_);
  return shared_ == nullptr ? 0 : shared_->memory_bytes();
}

absl::Status ShardAggregates::Ranges(const ShardedState& state, const RangeBatch& ranges,
                                     absl::Span<const Aggregate> aggregates,
                                     const QueryOptions& options,
                                     std::vector<ColumnValues>* values) {
  const StopCondition stop = StopCondition::Of(options);
  const IndexVersion& first = *state.versions[0];
  if (state.versions.size() == 1) {
    return first.AggregateRanges(ranges, aggregates, state.threads, stop, values);
  }
  if (!ranges.after.empty()) {
    return absl::InvalidArgumentError("expected no cursors: aggregates cover whole ranges");
  }
  ASSIGN_OR_RETURN(const AggregatePlan plan,
                   AggregatePlan::Make(first.delta->base_columns.columns(), aggregates));
  RETURN_IF_ERROR(CheckQueries(first.base->codec.kind(), Batch::Count(ranges, {})));
  *values = plan.Columns();
  RETURN_IF_ERROR(stop.Check());
  const auto shared = plan.counts_keys ? SharedOf(state) : nullptr;
  for (size_t at = 0; at < ranges.size(); at += kRangesAtOnce) {
    const RangeBatch some = ranges.Slice(at, std::min(kRangesAtOnce, ranges.size() - at));
    RETURN_IF_ERROR(AppendValues(state, some, at, plan, shared.get(), stop, values));
  }
  return absl::OkStatus();
}

absl::Status ShardAggregates::AggregateGroupsResult(const ShardedState& state,
                                                    const RangeBatch& ranges, size_t leading_parts,
                                                    absl::Span<const Aggregate> aggregates,
                                                    const QueryOptions& options,
                                                    cairn::AggregateGroupsResult* groups) {
  std::vector<const IndexVersion*> versions;
  for (const auto& version : state.versions) versions.push_back(version.get());
  const auto shared = versions.size() > 1 && CountsKeys(aggregates) ? SharedOf(state) : nullptr;
  return AggregateGroupsOf(versions, shared.get(), ranges, leading_parts, aggregates, options,
                           state.threads, groups);
}

// One generation, as it was opened.
class ShardedIndex final : public SecondaryIndex {
 public:
  // `pinned`: the versions of a pinned index; empty: the current ones.
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

  absl::StatusOr<std::shared_ptr<const SecondaryIndex>> Pin(
      const QueryOptions& options) const override {
    RETURN_IF_ERROR(StopCondition::Of(options).Check());
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
                               std::vector<ColumnValues>* values,
                               const QueryOptions& options) const override {
    return Guarded("computing aggregates", [&] {
      const ShardVersions versions = Versions();
      return aggregates_->Ranges({*routing_, versions, threads_}, ranges, aggregates, options,
                                 values);
    });
  }
  absl::Status AggregateGroups(const RangeBatch& ranges, size_t leading_parts,
                               absl::Span<const Aggregate> aggregates, const QueryOptions& options,
                               AggregateGroupsResult* groups) const override {
    return Guarded("computing aggregates of groups", [&] {
      const ShardVersions versions = Versions();
      return aggregates_->AggregateGroupsResult({*routing_, versions, threads_}, ranges,
                                                leading_parts, aggregates, options, groups);
    });
  }
  absl::Status Fetch(const SnapshotSource& source, const RangeBatch& ranges,
                     const QueryOptions& options, FetchResult* rows) const override;
  absl::Status Verify(const QueryOptions& options) const override;
  absl::Status VerifyAgainst(const SnapshotSource& source, size_t max_differences,
                             std::vector<std::string>* differences,
                             const QueryOptions& options) const override;
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
  // The current versions, or the pinned ones. Throws std::bad_alloc.
  ShardVersions Versions() const { return pinned_.empty() ? shards_->Versions() : pinned_; }
  absl::Status CheckNotPinned() const {
    if (pinned_.empty()) return absl::OkStatus();
    return absl::FailedPreconditionError("a pinned version of an index cannot be changed");
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
  const std::shared_ptr<ShardAggregates> aggregates_;  // of this index and its pinned ones
  const OpenOptions options_;
  const int threads_;
  const ShardVersions pinned_;
};

absl::Status ShardedIndex::NamedAlone() {
  return absl::InvalidArgumentError("rows of a sharded index require their shards");
}

absl::Status ShardedIndex::AnswerAt(const ShardVersions& versions, const Batch& batch) const {
  if (static_cast<size_t>(batch.operation) >= kIndexOperations) {
    return absl::InvalidArgumentError(
        absl::StrFormat("%s is for an ordered index: a secondary index has no positions",
                        OperationName(batch.operation)));
  }
  RETURN_IF_ERROR(CheckBatch(codec().kind(), batch));
  RETURN_IF_ERROR(BeginColumns(batch));
  const StopCondition stop = StopCondition::Of(batch.options);
  RETURN_IF_ERROR(stop.Check());
  if (batch.options.columns.empty()) return AnswerEntries(versions, batch);
  Batch entries = batch;
  entries.options.columns.clear();
  RETURN_IF_ERROR(AnswerEntries(versions, entries));
  RETURN_IF_ERROR(stop.Check());
  FindResult& matches = *batch.matches;
  return ShardedColumns(versions, matches.shards, matches.row_ids, batch.options.columns,
                        &matches.columns);
}

absl::Status ShardedIndex::AnswerEntries(const ShardVersions& versions, const Batch& batch) const {
  if (batch.size() > UINT32_MAX) {
    return absl::InvalidArgumentError(
        absl::StrFormat("the batch has %d queries, expected at most %d", batch.size(), UINT32_MAX));
  }
  const ShardedState state{*routing_, versions, threads_, shards_->lanes()};
  if (batch.takes_ranges()) return AnswerShardedRanges(state, batch);
  const bool by_key = batch.options.result_order == ResultOrder::kKey;
  if (by_key || !batch.query_of.empty()) {
    RETURN_IF_ERROR(CheckOutput(batch.size(), batch.query_of.size(), "query_of"));
  }
  if (batch.operation == Operation::kFindFirst && batch.shards.size() != batch.size()) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "FindFirst of %d keys in a sharded index requires room for that many shards "
        "(Batch::shards), found %d",
        batch.size(), batch.shards.size()));
  }
  return AnswerShardedPoints(state, batch);
}

absl::Duration ShardedIndex::PredictedTime(Operation operation, size_t queries) const {
  // The shards of a lane are used in turn, each with its share; for sources, each with all.
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
  RETURN_IF_ERROR(
      FetchShardedRows(versions, source, ranges, matches, StopCondition::Of(options), rows));
  rows->cursors = std::move(matches.cursors);
  return absl::OkStatus();
} catch (...) {
  return StatusOfException("fetching rows");
}

absl::Status ShardedIndex::Verify(const QueryOptions& query) const try {
  const StopCondition stop = StopCondition::Of(query);
  // Reads from disk again, since the mapped files may have been opened without verifying checksums.
  for (size_t s = 0; s < shards_->size(); ++s) {
    OpenOptions options = shards_->OptionsOf(s);
    options.verify = VerifyLevel::kFull;
    RETURN_IF_ERROR(stop.Check());
    const absl::StatusOr<std::unique_ptr<IndexWriter>> opened =
        IndexWriter::Open(shards_->PathOf(s), options);
    if (!opened.ok()) return Named(s, opened.status());
    const Base& base = *(*opened)->version()->base;
    absl::Status status = CheckShardIndex(base.manifest, shards_->manifest(), s);
    if (status.ok())
      status =
          CheckShardEntries({base.run(), base.rows(), base.codec}, shards_->manifest().shards[s]);
    if (status.ok()) status = VerifyStructure(base, stop);
    if (!status.ok()) return Named(s, status);
  }
  return absl::OkStatus();
} catch (...) {
  return StatusOfException("verifying an index");
}

absl::Status ShardedIndex::VerifyAgainst(const SnapshotSource& source, size_t max_differences,
                                         std::vector<std::string>* differences,
                                         const QueryOptions& options) const try {
  const ShardVersions versions = Versions();
  RETURN_IF_ERROR(CheckIsDatabase(versions, source));
  if (routing_->asks_all() && versions.size() > 1) {
    return absl::FailedPreconditionError(
        "the index has several sources: verify each shard against its own source");
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
      source, threads_, max_differences, StopCondition::Of(options), differences);
} catch (...) {
  return StatusOfException("comparing an index with its database");
}

absl::StatusOr<CatchUpReport> ShardedIndex::CatchUpShard(const SnapshotSource& source,
                                                         const CatchUpOptions& options) {
  RETURN_IF_ERROR(CheckNotPinned());
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

absl::Status ShardedIndex::Compact(const CompactOptions& options) {
  RETURN_IF_ERROR(CheckNotPinned());
  if (shards_->mode() != ShardMode::kSource) {
    return absl::FailedPreconditionError(
        "an index sharded by key range has nothing to compact: build its next generation");
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
        absl::StrFormat("index '%s': a shard's bound is not a key of the index's kind", directory));
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
  return OverWriter(std::move(writer));
} catch (...) {
  return StatusOfException("opening an index");
}

}  // namespace cairn
