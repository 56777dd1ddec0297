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

// How segments are divided into shards. Plain data.
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

// Divides the segments' entries into shards whose sizes differ by at most one. If there are fewer
// entries than shards, there is one shard per entry. Errors: AlreadyExists, with the key, if a
// unique index would have a key twice.
absl::StatusOr<ShardPlan> MakeShardPlan(const Segments& segments, uint32_t shards);

// Converts a plan to text and back. Errors: DataLoss, with `path`, for any text that
// FormatShardPlan does not write; FailedPrecondition for another version.
std::string FormatShardPlan(const ShardPlan& plan);
absl::StatusOr<ShardPlan> ParseShardPlan(std::string_view text, std::string_view path);

// Identifies the plan of a shard. A shard's manifest stores it in its counts under "shard_plan".
uint64_t PlanChecksum(const ShardPlan& plan);

}  // namespace cairn
