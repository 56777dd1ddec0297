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

// One shard of an index, as the file SHARDS says it is.
struct ShardRecord {
  std::string directory;           // within the index's: letters, digits, '_', '-', '.' and '/'
  uint64_t version = 0;            // of the shard's own manifest
  uint64_t manifest_checksum = 0;  // ManifestChecksum of that
  std::string database_id;
  SequenceNumber sequence = 0;
  uint64_t rows = 0;
  uint64_t entries = 0;
  // ShardMode::kKeyRange: the entries from `lower` on, before `upper`. None: no limit.
  std::optional<ShardBound> lower, upper;

  bool operator==(const ShardRecord&) const = default;
};

// What an index in shards is: one generation of it. Plain data.
struct ShardManifest {
  uint64_t generation = 0;  // counts publishes: 1 for the first
  ShardMode mode = ShardMode::kKeyRange;
  std::string spec;  // IndexSpec::ToString()
  std::vector<ShardRecord> shards;

  bool operator==(const ShardManifest&) const = default;
};

inline constexpr size_t kMaxShards = size_t{1} << 16;
inline constexpr uint64_t kMaxShardManifestBytes = uint64_t{64} << 20;

// As text: lines "key value", the last of them a checksum of all before it. InvalidArgument where
// CheckShards has something against it, or beyond kMaxShardManifestBytes.
absl::StatusOr<std::string> FormatShardManifest(const ShardManifest& manifest);

// Reads exactly what FormatShardManifest writes: DataLoss, naming `path` and the line, for anything
// else; FailedPrecondition for another major version. Lines with unknown keys are passed over where
// a newer minor version wrote them.
absl::StatusOr<ShardManifest> ParseShardManifest(std::string_view text, std::string_view path);

// InvalidArgument, naming the shard, unless there is at least one, none more than kMaxShards, their
// directories are different ones within the index's and, by key range, their bounds ascend and each
// begins where the one before ends: the first from the beginning, the last to the end.
absl::Status CheckShards(const ShardManifest& manifest);

// The lines "lower …" or "upper …" of a bound, and back.
void AppendBoundLine(std::string_view name, const std::optional<ShardBound>& bound,
                     std::string* text);
bool ParseBound(std::string_view value, std::optional<ShardBound>* bound);

}  // namespace cairn
