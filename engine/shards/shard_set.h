#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cairn/index_spec.h"
#include "cairn/key_codec.h"
#include "cairn/options.h"
#include "cairn/sharding.h"
#include "cairn/sorted_run.h"
#include "engine/rows/row_table.h"
#include "engine/shards/shard_manifest.h"
#include "engine/version/index_version.h"
#include "engine/version/index_writer.h"
#include "index/columns/column_table.h"
#include "index/files/file_system.h"
#include "index/files/manifest.h"

namespace cairn {

// The versions that a query sees, one a shard.
using ShardVersions = std::vector<std::shared_ptr<const IndexVersion>>;

// The shards of one generation, opened. Thread-safe.
class ShardSet {
 public:
  // Opens all shards that the directory's SHARDS names. NotFound where there is no such file;
  // DataLoss, naming the shard, for one that is missing or damaged, is not the index that was
  // published, or has entries beyond its bounds.
  static absl::StatusOr<std::unique_ptr<ShardSet>> Open(const std::string& directory,
                                                        const OpenOptions& options);

  const std::string& directory() const { return directory_; }
  const ShardManifest& manifest() const { return manifest_; }
  ShardMode mode() const { return manifest_.mode; }
  const IndexSpec& spec() const { return writers_[0]->version()->spec(); }
  const KeyCodec& codec() const { return writers_[0]->version()->base->codec; }

  size_t size() const { return writers_.size(); }
  // What a shard was opened with.
  OpenOptions OptionsOf(size_t shard) const;
  // The places in OpenOptions::devices, of which shard s is on place s % lanes(): shards of
  // different ones do not wait for each other. 1 where none is on such a device.
  size_t lanes() const { return lanes_; }
  IndexWriter* writer(size_t shard) const { return writers_[shard].get(); }
  // Shard i's, for messages: "shard 3 ('shard-3.1f00c0ffee15900d')".
  std::string NameOf(size_t shard) const;
  std::string PathOf(size_t shard) const;
  // Of this moment. Throws std::bad_alloc.
  ShardVersions Versions() const;

 private:
  absl::Status OpenAll();

  std::string directory_;
  OpenOptions options_;  // of all
  ShardManifest manifest_;
  std::vector<std::unique_ptr<IndexWriter>> writers_;
  size_t lanes_ = 1;
};

// Opens one shard of the index in `directory`. Errors as ShardSet::Open's, but NotFound.
absl::StatusOr<std::unique_ptr<IndexWriter>> OpenPublishedShard(const std::string& directory,
                                                                const ShardManifest& shards,
                                                                size_t shard,
                                                                const OpenOptions& options);

// DataLoss where a shard's index is not the one that its record says: another spec, database,
// version or number of entries. A shard by source may be a later version, which it has caught up
// to.
absl::Status CheckShardIndex(const Manifest& index, const ShardManifest& shards, size_t shard);

// What stands in a shard's files.
struct ShardContents {
  SortedRun run;
  RowTable rows;
  KeyCodec codec;
  ColumnTable columns = {};  // what the spec includes
};

// Maps the files that a shard's manifest names. DataLoss where they do not belong together.
absl::StatusOr<ShardContents> OpenShardContents(const std::string& directory,
                                                const Manifest& manifest, VerifyLevel level,
                                                int threads, FileSystem* files);

// DataLoss where a shard has entries beyond its bounds.
absl::Status CheckShardEntries(const ShardContents& contents, const ShardRecord& shard);

}  // namespace cairn
