#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/types/span.h"
#include "cairn/query.h"
#include "cairn/types.h"
#include "engine/shards/shard_manifest.h"

namespace cairn {

// Shards first … last, which may have results; none if last < first.
struct ShardInterval {
  uint32_t first = 0;
  uint32_t last = 0;

  bool empty() const { return last < first; }
  bool operator==(const ShardInterval&) const = default;
};

// The shards that can have entries of a key or a range. Immutable; thread-safe.
class ShardRouting {
 public:
  ShardRouting() = default;  // one shard
  ShardRouting(ShardRouting&&) = default;
  ShardRouting& operator=(ShardRouting&&) = default;

  // Requires that CheckShards accept the manifest. Returns false if a bound's key is not of that
  // kind.
  static bool Create(const ShardManifest& manifest, PhysicalType kind, ShardRouting* routing);

  size_t shards() const { return shards_; }
  // Whether every shard gets all queries (ShardMode::kSource).
  bool asks_all() const { return asks_all_; }

  // Sets one interval per key or range; requires that the batch be of the kind.
  void RouteKeys(KeyBatch keys, absl::Span<ShardInterval> intervals) const;
  void RouteRanges(const RangeBatch& ranges, absl::Span<ShardInterval> intervals) const;
  // For key ranges: the shard that has the entry of key i and this row, if any has it.
  uint32_t ShardOfEntry(const KeyBatch& keys, size_t i, std::string_view primary_key) const;

 private:
  template <typename Key>
  class Cuts;

  ShardInterval All() const { return {0, static_cast<uint32_t>(shards_ - 1)}; }
  // If nothing distinguishes shards, sets all intervals to all shards and returns true.
  bool RouteToAll(absl::Span<ShardInterval> intervals) const;

  size_t shards_ = 1;
  bool asks_all_ = false;
  // The lower bounds of all shards except the first: keys, rows, and whether all rows of the key
  // are after the bound.
  EncodedKeys keys_;
  std::vector<std::string> primary_keys_;
  std::vector<std::string> bytes_;       // the same if they are bytes,
  std::vector<std::string_view> views_;  // and views of these, which never move
  std::vector<uint8_t> whole_;
};

// The queries of a batch by shard: shard s gets queries query_of[i], i in [begin[s], begin[s + 1]),
// ascending.
struct ShardAssignment {
  std::vector<size_t> begin;       // [shards + 1]
  std::vector<uint32_t> query_of;  // a query is listed under each shard of its interval

  absl::Span<const uint32_t> queries(size_t shard) const {
    return absl::MakeConstSpan(query_of).subspan(begin[shard], begin[shard + 1] - begin[shard]);
  }
};

// Throws std::bad_alloc.
ShardAssignment Assign(absl::Span<const ShardInterval> intervals, size_t shards);

}  // namespace cairn
