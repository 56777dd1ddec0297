#pragma once

#include <cstddef>
#include <memory>
#include <optional>
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

// The versions that a query sees, one per shard.
using ShardVersions = std::vector<std::shared_ptr<const IndexVersion>>;

// The shards of one generation, opened. Thread-safe.
class ShardSet {
 public:
  // Opens all shards that the directory's SHARDS lists. Errors: NotFound: there is no such file;
  // DataLoss, naming the shard: it is missing or damaged, is not the published index, or has
  // entries outside of its bounds.
  static absl::StatusOr<std::unique_ptr<ShardSet>> Open(const std::string& directory,
                                                        const OpenOptions& options);

  const std::string& directory() const { return directory_; }
  const ShardManifest& manifest() const { return manifest_; }
  ShardMode mode() const { return manifest_.mode; }
  // Those of all versions. They live as long as this set, while versions come and go.
  const IndexSpec& spec() const { return spec_; }
  const KeyCodec& codec() const { return *codec_; }

  size_t size() const { return writers_.size(); }
  // The options with which a shard was opened.
  OpenOptions OptionsOf(size_t shard) const;
  // The number of lanes. Shard s is in lane s % lanes(), an index into OpenOptions::devices; shards
  // of different lanes do not wait for each other. 1 if no shard is on such a device.
  size_t lanes() const { return lanes_; }
  IndexWriter* writer(size_t shard) const { return writers_[shard].get(); }
  // The name of shard i for messages: "shard 3 ('shard-3.1f00c0ffee15900d')".
  std::string NameOf(size_t shard) const;
  std::string PathOf(size_t shard) const;
  // The current versions. Throws std::bad_alloc.
  ShardVersions Versions() const;

 private:
  absl::Status OpenAll();

  std::string directory_;
  OpenOptions options_;  // for all shards
  ShardManifest manifest_;
  IndexSpec spec_;
  std::optional<KeyCodec> codec_;  // set by OpenAll
  std::vector<std::unique_ptr<IndexWriter>> writers_;
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
