#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "cairn/aggregate.h"
#include "cairn/column.h"
#include "cairn/index_spec.h"
#include "cairn/key_codec.h"
#include "cairn/options.h"
#include "cairn/query.h"
#include "cairn/sharding.h"
#include "cairn/sorted_run.h"
#include "engine/aggregates/shared_keys.h"
#include "engine/rows/row_table.h"
#include "engine/shards/shard_manifest.h"
#include "engine/shards/shard_routing.h"
#include "engine/version/index_version.h"
#include "engine/version/index_writer.h"
#include "index/columns/column_table.h"
#include "index/files/file_system.h"
#include "index/files/manifest.h"
#include "index/machine/mutex.h"

namespace cairn {

// The versions that a query sees, one per shard. An unsharded index has one, and a query of it
// allocates no memory for this.
using ShardVersions = absl::InlinedVector<std::shared_ptr<const IndexVersion>, 1>;

struct ShardedState;

// Aggregates over the shards of one generation: the exact results of all shards are combined before
// values are made of them. Thread-safe. All methods throw std::bad_alloc.
class ShardAggregates {
 public:
  // SecondaryIndex::AggregateRanges and AggregateGroups.
  absl::Status OfRanges(const ShardedState& state, const RangeBatch& ranges,
                        absl::Span<const Aggregate> aggregates, const QueryOptions& options,
                        std::vector<ColumnValues>* values);
  absl::Status OfGroups(const ShardedState& state, const RangeBatch& ranges, size_t leading_parts,
                        absl::Span<const Aggregate> aggregates, const QueryOptions& options,
                        AggregateGroupsResult* groups);

  // The memory for counts of distinct keys.
  uint64_t memory_bytes() const;

 private:
  // The keys that several shards have in these versions. Made for the last versions that a query
  // used.
  std::shared_ptr<const SharedKeys> SharedOf(const ShardedState& state);

  mutable Mutex mutex_;
  std::vector<std::weak_ptr<const IndexVersion>> versions_ ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<const SharedKeys> shared_ ABSL_GUARDED_BY(mutex_);
};

// Returns a checksum of the databases of an index sharded by source, in the order of its shards,
// for cursors, which contain the number of a shard. Not 0.
uint64_t SourcesChecksum(const ShardVersions& versions);

// The open shards of one generation, or an unsharded index as one shard. Thread-safe.
class ShardSet {
 public:
  // Throws std::bad_alloc.
  static std::shared_ptr<const ShardSet> OfOne(std::shared_ptr<IndexWriter> writer);

  // Opens all shards that the directory's SHARDS lists. Errors: NotFound: there is no such file;
  // DataLoss: a bound is invalid; DataLoss, naming the shard: it is missing or damaged, is not the
  // published index, or has entries outside of its bounds.
  static absl::StatusOr<std::unique_ptr<ShardSet>> Open(const std::string& directory,
                                                        const OpenOptions& options);

  bool is_sharded() const { return !manifest_.shards.empty(); }
  const IndexSpec& spec() const { return *spec_; }
  const KeyCodec& codec() const { return *codec_; }
  size_t size() const { return writers_.size(); }
  IndexWriter* writer(size_t shard) const { return writers_[shard].get(); }
  // Returns the current versions. Throws std::bad_alloc.
  ShardVersions Versions() const;

  // The following methods are for a sharded index.

  const ShardManifest& manifest() const { return manifest_; }
  ShardMode mode() const { return manifest_.mode; }
  const ShardRouting& routing() const { return routing_; }
  ShardAggregates& aggregates() const { return aggregates_; }
  int threads() const { return threads_; }
  // The number of lanes. Shard s is in lane s % lanes(), an index into OpenOptions::devices; shards
  // of different lanes do not wait for each other. 1 if no shard is on such a device.
  size_t lanes() const { return lanes_; }
  // Returns the name of a shard for messages: "shard 3 ('shard-3.1f00c0ffee15900d')".
  std::string NameOf(size_t shard) const;

 private:
  absl::Status OpenAll(const std::string& directory, const OpenOptions& options);
  void Add(std::shared_ptr<IndexWriter> writer);

  ShardManifest manifest_;  // no shards: an unsharded index
  std::vector<std::shared_ptr<IndexWriter>> writers_;
  // The same for all versions. Copies, because versions are freed while the index is open.
  std::optional<IndexSpec> spec_;
  std::optional<KeyCodec> codec_;
  ShardRouting routing_;
  mutable ShardAggregates aggregates_;
  int threads_ = 1;
  size_t lanes_ = 1;
};

// Opens one shard of the index in `directory`. Errors: those of ShardSet::Open except NotFound.
absl::StatusOr<std::unique_ptr<IndexWriter>> OpenPublishedShard(const std::string& directory,
                                                                const ShardManifest& shards,
                                                                size_t shard,
                                                                const OpenOptions& options);

// DataLoss if a shard's index does not match its record: another spec, database, version or number
// of entries. A shard of a source may have a later version, from catching up.
absl::Status CheckShardIndex(const Manifest& index, const ShardManifest& shards, size_t shard);

// The contents of a shard's files.
struct ShardContents {
  SortedRun run;
  RowTable rows;
  KeyCodec codec;
  ColumnTable columns = {};  // included columns
};

// Maps the files that a shard's manifest lists. DataLoss if they do not belong together.
absl::StatusOr<ShardContents> OpenShardContents(const std::string& directory,
                                                const Manifest& manifest, VerifyLevel level,
                                                int threads, FileSystem* files);

// DataLoss if a shard has entries outside of its bounds.
absl::Status CheckShardEntries(const ShardContents& contents, const ShardRecord& shard);

}  // namespace cairn
