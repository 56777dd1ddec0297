#pragma once

#include <cstddef>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "cairn/secondary_index.h"
#include "engine/shards/shard_batch.h"
#include "engine/shards/shard_set.h"
#include "engine/version/index_version.h"
#include "engine/version/index_writer.h"

namespace cairn {

// The versions of an index that a query sees now: one per shard.
struct IndexVersions {
  bool in_shards = false;
  bool by_source = false;  // sharded by database
  ShardVersions versions;
};

// An index over its shards, or an unsharded index, which has one. Each query uses the versions that
// are current when it starts, or the pinned ones.
class OpenIndex final : public SecondaryIndex {
 public:
  explicit OpenIndex(std::shared_ptr<const ShardSet> shards) : shards_(std::move(shards)) {}
  // Stays at one version of an unsharded index, and allocates no memory.
  explicit OpenIndex(std::shared_ptr<const IndexVersion> pinned)
      : OpenIndex(nullptr, ShardVersions(std::make_move_iterator(&pinned),
                                         std::make_move_iterator(&pinned + 1))) {}
  // Stays at `pinned`. `shards` is null for an unsharded index.
  OpenIndex(std::shared_ptr<const ShardSet> shards, ShardVersions pinned)
      : shards_(std::move(shards)), pinned_(std::move(pinned)) {}

  const IndexSpec& spec() const override {
    return pinned_.empty() ? shards_->spec() : pinned_[0]->spec();
  }
  const KeyCodec& codec() const override {
    return pinned_.empty() ? shards_->codec() : pinned_[0]->base->codec;
  }
  SequenceNumber sequence() const override;

  bool in_shards() const override { return shards_ != nullptr && shards_->is_sharded(); }
  IndexVersions versions() const;

  absl::Status Execute(const Batch& batch) const override;
  absl::Duration PredictedTime(Operation operation, size_t queries) const override;
  size_t BestBatch(Operation operation) const override;

  absl::StatusOr<std::shared_ptr<const SecondaryIndex>> Pin(
      const QueryOptions& options) const override;
  using SecondaryIndex::Lookup;
  absl::Status Lookup(const KeyQuery& keys, const LookupOptions& options,
                      FoundKeys* found) const override;
  absl::Status PrimaryKeys(RowSpan rows, StringList* primary_keys) const override;
  absl::Status Columns(RowSpan rows, absl::Span<const std::string> names,
                       std::vector<ColumnValues>* columns) const override;
  absl::Status AggregateRanges(const RangeBatch& ranges, absl::Span<const Aggregate> aggregates,
                               std::vector<ColumnValues>* values,
                               const QueryOptions& options) const override;
  absl::Status AggregateGroups(const RangeBatch& ranges, size_t leading_parts,
                               absl::Span<const Aggregate> aggregates, const QueryOptions& options,
                               AggregateGroupsResult* groups) const override;
  absl::Status Fetch(const SnapshotSource& source, const RangeBatch& ranges,
                     const QueryOptions& options, FetchResult* rows) const override;
  absl::Status Verify(const QueryOptions& options) const override;
  absl::Status VerifyAgainst(const SnapshotSource& source, size_t max_differences,
                             std::vector<std::string>* differences,
                             const QueryOptions& options) const override;
  absl::StatusOr<IndexStats> Stats() const override;

  absl::StatusOr<CatchUpReport> CatchUp(const SnapshotSource& source,
                                        const CatchUpOptions& options) override;
  absl::Status Compact(const CompactOptions& options) override;
  bool ShouldCompact() const override;

 private:
  size_t size() const { return pinned_.empty() ? shards_->size() : pinned_.size(); }
  size_t lanes() const { return in_shards() ? shards_->lanes() : 1; }
  // Returns whether each shard has its own database.
  bool by_source() const { return in_shards() && shards_->routing().asks_all(); }
  std::shared_ptr<const IndexVersion> version(size_t shard) const {
    return pinned_.empty() ? shards_->writer(shard)->version() : pinned_[shard];
  }
  // Throws std::bad_alloc.
  ShardVersions Versions() const { return pinned_.empty() ? shards_->Versions() : pinned_; }
  // Returns query(versions), without copying pinned ones.
  template <typename Query>
  absl::Status AtVersions(const Query& query) const {
    return pinned_.empty() ? query(shards_->Versions()) : query(pinned_);
  }
  // Requires that the index is sharded. `lanes`: the shards that are searched at a time, as they do
  // not compete for processor cores.
  ShardedState StateOf(const ShardVersions& versions, size_t lanes) const;
  absl::Status CheckNotPinned() const;
  absl::Status ExecuteAt(const ShardVersions& versions, const Batch& batch) const;
  absl::Status ExecuteOnShards(const ShardVersions& versions, const Batch& batch) const;
  absl::Status CheckIsDatabase(const ShardVersions& versions, const SnapshotSource& source) const;
  absl::StatusOr<CatchUpReport> CatchUpShard(const SnapshotSource& source,
                                             const CatchUpOptions& options);
  // Adds the name of the shard to an error.
  absl::Status Named(size_t shard, const absl::Status& status) const;

  const std::shared_ptr<const ShardSet> shards_;
  const ShardVersions pinned_;  // one per shard; empty: not pinned
};

// Makes an unsharded SecondaryIndex over the versions that `writer` makes.
std::unique_ptr<SecondaryIndex> OverWriter(std::shared_ptr<IndexWriter> writer);

// Makes a SecondaryIndex over one version of an unsharded index, which never changes. CatchUp and
// Compact return FailedPrecondition.
std::unique_ptr<SecondaryIndex> OverVersion(std::shared_ptr<const IndexVersion> version);

// Returns the versions of an index of OverWriter, OverVersion or SecondaryIndex::Open; nullopt for
// any other index. Throws std::bad_alloc.
std::optional<IndexVersions> VersionsOf(const SecondaryIndex& index);

}  // namespace cairn
