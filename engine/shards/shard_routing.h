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

// Shards first … last, of which each may have an answer; none where last < first.
struct ShardInterval {
  uint32_t first = 0;
  uint32_t last = 0;

  bool empty() const { return last < first; }
  bool operator==(const ShardInterval&) const = default;
};

// Which shards can have entries of a key or a range. Immutable; thread-safe.
class ShardRouting {
 public:
  ShardRouting() = default;  // one shard
  ShardRouting(ShardRouting&&) = default;
  ShardRouting& operator=(ShardRouting&&) = default;

  // Requires that CheckShards has nothing against the manifest. False where a bound's key is none
  // of that kind.
  static bool Create(const ShardManifest& manifest, PhysicalType kind, ShardRouting* routing);

  size_t shards() const { return shards_; }
  // Whether every shard is asked everything (ShardMode::kSource).
  bool asks_all() const { return asks_all_; }

  // One interval a key, or a range; requires that the batch be of the kind.
  void RouteKeys(KeyBatch keys, absl::Span<ShardInterval> intervals) const;
  void RouteRanges(const RangeBatch& ranges, absl::Span<ShardInterval> intervals) const;
  // By key range, the shard that has the entry of key i and of this row, if any has.
  uint32_t ShardOfEntry(const KeyBatch& keys, size_t i, std::string_view primary_key) const;

 private:
  template <typename Key>
  class Cuts;

  ShardInterval All() const { return {0, static_cast<uint32_t>(shards_ - 1)}; }
  // Whether there is nothing to tell shards apart by, and then sets the intervals so.
  bool RouteToAll(absl::Span<ShardInterval> intervals) const;

  size_t shards_ = 1;
  bool asks_all_ = false;
  // The lower bounds of all shards but the first: keys, rows, and whether all rows of the key are
  // behind.
  EncodedKeys keys_;
  std::vector<std::string> primary_keys_;
  std::vector<std::string> bytes_;       // the same where they are bytes,
  std::vector<std::string_view> views_;  // and views of these, which stay where they are
  std::vector<uint8_t> whole_;
};

// The queries of a batch by the shards that are asked: shard s is asked queries query_of[i], i in
// [begin[s], begin[s + 1]), ascending.
struct ShardAssignment {
  std::vector<size_t> begin;       // [shards + 1]
  std::vector<uint32_t> query_of;  // a query stands under each shard of its interval

  absl::Span<const uint32_t> queries(size_t shard) const {
    return absl::MakeConstSpan(query_of).subspan(begin[shard], begin[shard + 1] - begin[shard]);
  }
};

// Throws std::bad_alloc.
ShardAssignment Assign(absl::Span<const ShardInterval> intervals, size_t shards);

}  // namespace cairn
