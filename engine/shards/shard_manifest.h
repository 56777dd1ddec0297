#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cairn/options.h"
#include "cairn/sharding.h"
#include "cairn/types.h"
#include "engine/shards/shard_bound.h"

namespace cairn {

// The record of one shard of an index in the file SHARDS.
struct ShardRecord {
  std::string directory;  // relative to the index's: letters, digits, '_', '-', '.' and '/'
  uint64_t version = 0;   // of the shard's own manifest
  uint64_t manifest_checksum = 0;  // the ManifestChecksum of that
  std::string database_id;
  SequenceNumber sequence = 0;
  uint64_t rows = 0;
  uint64_t entries = 0;
  // ShardMode::kKeyRange: the entries from `lower` on, before `upper`. Nothing means no limit.
  std::optional<ShardBound> lower, upper;

  bool operator==(const ShardRecord&) const = default;
};

// One generation of a sharded index. Plain data.
struct ShardManifest {
  uint64_t generation = 0;  // the number of publishes: 1 for the first
  ShardMode mode = ShardMode::kKeyRange;
  std::string spec;  // IndexSpec::ToString()
  std::vector<ShardRecord> shards;

  bool operator==(const ShardManifest&) const = default;
};

inline constexpr size_t kMaxShards = size_t{1} << 16;
inline constexpr uint64_t kMaxShardManifestBytes = uint64_t{64} << 20;

// Formats a manifest as text: lines "key value", and a last line with a checksum of all lines
// before it. InvalidArgument: CheckShards rejects the manifest, or the text exceeds
// kMaxShardManifestBytes.
absl::StatusOr<std::string> FormatShardManifest(const ShardManifest& manifest);

// Reads exactly the output of FormatShardManifest. DataLoss, with `path` and the line, for anything
// else; FailedPrecondition for another major version. Unknown keys are ignored if a newer minor
// version wrote the manifest.
absl::StatusOr<ShardManifest> ParseShardManifest(std::string_view text, std::string_view path);

// Checks that there are 1 to kMaxShards shards, and that their directories are distinct and within
// that of the index. Otherwise returns InvalidArgument, naming the shard. For key ranges, bounds
// must ascend, and each shard must begin at the end of the previous one; the first has no lower
// bound, and the last no upper one.
absl::Status CheckShards(const ShardManifest& manifest);

// Write and read the lines "lower …" or "upper …" of a bound.
void AppendBoundLine(std::string_view name, const std::optional<ShardBound>& bound,
                     std::string* text);
bool ParseBound(std::string_view value, std::optional<ShardBound>* bound);

}  // namespace cairn
