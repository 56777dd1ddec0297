#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/shard_build/segment.h"
#include "engine/shards/shard_manifest.h"

namespace cairn {

// How segments are cut into shards. Plain data.
struct ShardPlan {
  struct Input {
    std::string directory;  // as it was given
    uint64_t manifest_checksum = 0;
    bool operator==(const Input&) const = default;
  };
  struct Shard {
    uint64_t entries = 0;
    std::optional<ShardBound> lower, upper;
    bool operator==(const Shard&) const = default;
  };
  std::string spec;
  std::string database_id;
  SequenceNumber sequence = 0;
  std::vector<Input> segments;
  std::vector<Shard> shards;

  bool operator==(const ShardPlan&) const = default;
};

// Cuts the segments' entries into shards of sizes that differ by one at most; into fewer where
// there are fewer entries. AlreadyExists, naming the key, where a unique index would have it twice.
absl::StatusOr<ShardPlan> MakeShardPlan(const Segments& segments, uint32_t shards);

// As text, and back: exactly what FormatShardPlan writes, else DataLoss, naming `path`;
// FailedPrecondition for another version.
std::string FormatShardPlan(const ShardPlan& plan);
absl::StatusOr<ShardPlan> ParseShardPlan(std::string_view text, std::string_view path);

// What a shard is known by to be of a plan: stands in its manifest's counts under "shard_plan".
uint64_t PlanChecksum(const ShardPlan& plan);

}  // namespace cairn
