#include "engine/shards/shard_routing.h"

#include <algorithm>

#include "index/query/physical_key.h"

namespace cairn {

// The cuts between shards, for one type of keys.
template <typename Key>
class ShardRouting::Cuts {
 public:
  explicit Cuts(const ShardRouting& routing) : whole_(routing.whole_) {
    if constexpr (std::is_same_v<Key, uint32_t>) {
      keys_ = routing.keys_.u32();
    } else if constexpr (std::is_same_v<Key, uint64_t>) {
      keys_ = routing.keys_.u64();
    } else {
      keys_ = routing.views_;
    }
  }

  uint32_t last_shard() const { return static_cast<uint32_t>(keys_.size()); }

  // The shards that may have entries with a key, or greater ones, and the first of these.
  uint32_t First(const Key& key) const {
    const uint32_t below = CountBelow<false>(key);
    // If a cut is before all rows of the key, no shard before the cut can have it.
    return below + (below < keys_.size() && whole_[below] && keys_[below] == key ? 1 : 0);
  }
  // The last shard that may have entries with a key or lower ones, or the first one with greater
  // ones.
  uint32_t Last(const Key& key) const { return CountBelow<true>(key); }
  // The last shard that may have entries with lower keys.
  uint32_t LastBelow(const Key& key) const { return CountBelow<false>(key); }
  // The last shard that may have keys with this prefix.
  uint32_t LastOfPrefix(std::string_view prefix) const {
    if constexpr (std::is_same_v<Key, std::string_view>) {
      const auto behind = std::partition_point(keys_.begin(), keys_.end(), [&](const Key& cut) {
        return cut.substr(0, prefix.size()) <= prefix;
      });
      return static_cast<uint32_t>(behind - keys_.begin());
    } else {
      return last_shard();
    }
  }

 private:
  // The number of cuts whose keys are below `key`, or equal to it.
  template <bool kOrEqual>
  uint32_t CountBelow(const Key& key) const {
    // The number of steps is the same for every key, and no branch depends on the key.
    const Key* at = keys_.data();
    const auto is_below = [&](const Key& cut) { return kOrEqual ? cut <= key : cut < key; };
    size_t size = keys_.size();
    while (size > 1) {
      const size_t half = size / 2;
      at += half * static_cast<size_t>(is_below(at[half - 1]));
      size -= half;
    }
    const size_t last = size == 1 && is_below(*at) ? 1 : 0;
    return static_cast<uint32_t>(at - keys_.data()) + static_cast<uint32_t>(last);
  }

  absl::Span<const Key> keys_;
  const std::vector<uint8_t>& whole_;
};

bool ShardRouting::Create(const ShardManifest& manifest, PhysicalType kind, ShardRouting* routing) {
  routing->shards_ = manifest.shards.size();
  routing->asks_all_ = manifest.mode == ShardMode::kSource;
  routing->keys_.Clear(kind);
  routing->whole_.clear();
  routing->primary_keys_.clear();
  for (const ShardRecord& shard : manifest.shards) {
    if (!shard.lower) continue;
    if (!AppendOrderedKey(shard.lower->key, &routing->keys_)) return false;
    routing->whole_.push_back(shard.lower->primary_key.empty() ? 1 : 0);
    routing->primary_keys_.push_back(shard.lower->primary_key);
  }
  routing->bytes_.clear();
  routing->views_.clear();
  for (size_t i = 0; kind == PhysicalType::kBytes && i < routing->keys_.size(); ++i) {
    routing->bytes_.emplace_back(routing->keys_.bytes(i));
  }
  routing->views_.assign(routing->bytes_.begin(), routing->bytes_.end());
  return true;
}

bool ShardRouting::RouteToAll(absl::Span<ShardInterval> intervals) const {
  if (!asks_all_ && shards_ > 1) return false;
  std::fill(intervals.begin(), intervals.end(), All());
  return true;
}

void ShardRouting::RouteKeys(KeyBatch keys, absl::Span<ShardInterval> intervals) const {
  if (RouteToAll(intervals)) return;
  WithPhysicalKey(keys_.kind(), [&](auto type) {
    using Key = typename decltype(type)::type;
    const Cuts<Key> cuts(*this);
    const absl::Span<const Key> of = keys.as<Key>();
    for (size_t i = 0; i < of.size(); ++i) intervals[i] = {cuts.First(of[i]), cuts.Last(of[i])};
  });
}

void ShardRouting::RouteRanges(const RangeBatch& ranges,
                               absl::Span<ShardInterval> intervals) const {
  if (RouteToAll(intervals)) return;
  WithPhysicalKey(keys_.kind(), [&](auto type) {
    using Key = typename decltype(type)::type;
    const Cuts<Key> cuts(*this);
    const absl::Span<const Key> lower = ranges.lower.as<Key>();
    const absl::Span<const Key> upper = ranges.upper.as<Key>();
    for (size_t i = 0; i < ranges.size(); ++i) {
      ShardInterval interval = All();
      const Bound from = ranges.lower_bound_of(i), to = ranges.upper_bound_of(i);
      if (from == Bound::kInclusive) interval.first = cuts.First(lower[i]);
      if (from == Bound::kExclusive) interval.first = cuts.Last(lower[i]);
      if (to == Bound::kInclusive) interval.last = cuts.Last(upper[i]);
      if (to == Bound::kExclusive) interval.last = cuts.LastBelow(upper[i]);
      if constexpr (std::is_same_v<Key, std::string_view>) {
        if (to == Bound::kPrefix) interval.last = cuts.LastOfPrefix(lower[i]);
      }
      intervals[i] = interval;
    }
  });
}

uint32_t ShardRouting::ShardOfEntry(const KeyBatch& keys, size_t i,
                                    std::string_view primary_key) const {
  ShardInterval interval;
  RouteKeys(keys.Slice(i, 1), absl::MakeSpan(&interval, 1));
  // Cuts within the key's rows.
  while (interval.first < interval.last && primary_keys_[interval.first] <= primary_key) {
    ++interval.first;
  }
  return interval.first;
}

ShardAssignment Assign(absl::Span<const ShardInterval> intervals, size_t shards) {
  ShardAssignment assignment;
  assignment.begin.assign(shards + 1, 0);
  for (const ShardInterval& interval : intervals) {
    for (uint64_t s = interval.first; s <= interval.last; ++s) ++assignment.begin[s + 1];
  }
  for (size_t s = 0; s < shards; ++s) assignment.begin[s + 1] += assignment.begin[s];
  assignment.query_of.resize(assignment.begin[shards]);
  std::vector<size_t> next(assignment.begin.begin(), assignment.begin.end() - 1);
  for (size_t i = 0; i < intervals.size(); ++i) {
    for (uint64_t s = intervals[i].first; s <= intervals[i].last; ++s) {
      assignment.query_of[next[s]++] = static_cast<uint32_t>(i);
    }
  }
  return assignment;
}

}  // namespace cairn
