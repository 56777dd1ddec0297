#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/types/span.h"
#include "cairn/query.h"
#include "engine/shards/shard_routing.h"
#include "engine/shards/shard_set.h"

namespace cairn {

// The state on which a batch executes.
struct ShardedState {
  const ShardRouting& routing;
  const ShardVersions& versions;
  int threads;       // at least 1
  size_t lanes = 1;  // ShardSet::lanes
};

// Some keys of a batch, contiguous. Reusable; not thread-safe.
class GatheredKeys {
 public:
  // Throws std::bad_alloc.
  void Gather(const KeyBatch& keys, absl::Span<const uint32_t> queries);
  // Replaces key i by the only key of `key`. Does not copy its bytes.
  void Set(size_t i, const KeyBatch& key);
  // Valid until the next call, and during the lifetime of the batch's own keys.
  KeyBatch Batch() const;

 private:
  PhysicalType kind_ = PhysicalType::kU32;
  std::vector<uint32_t> u32_;
  std::vector<uint64_t> u64_;
  std::vector<std::string_view> bytes_;
};

// Some ranges of a batch.
class GatheredRanges {
 public:
  // Throws std::bad_alloc.
  void Gather(const RangeBatch& ranges, absl::Span<const uint32_t> queries);
  RangeBatch Batch() const;

  // The bounds, one per range; change them before Batch().
  std::vector<Bound>& lower_bounds() { return lower_bounds_; }
  std::vector<Bound>& upper_bounds() { return upper_bounds_; }
  std::vector<std::string>& after() { return after_; }
  // Makes range i begin or end at this key, which must outlive the use.
  void SetLower(size_t i, const KeyBatch& key) { lower_.Set(i, key); }
  void SetUpper(size_t i, const KeyBatch& key) { upper_.Set(i, key); }

 private:
  GatheredKeys lower_, upper_;
  std::vector<Bound> lower_bounds_, upper_bounds_;
  std::vector<std::string> after_;  // empty: all ranges start at their beginning
};

// Calls body(shard) for each shard that has queries. Uses several threads if each has few queries
// or shards are on different devices. If a shard's own search uses several threads, shards are
// processed one after the other. Returns the first shard's error. The body must not throw.
absl::Status ForEachAskedShard(const ShardedState& state, const ShardAssignment& assignment,
                               absl::FunctionRef<absl::Status(size_t shard)> body);

// If a batch is large, cuts it into slices and calls answer(state, slice) for several at a time,
// since routing queries and combining results take longer than searching. Only for operations with
// a result of fixed size per query (Batch::Slice). Returns the first slice's error.
absl::Status AnswerInSlices(
    const ShardedState& state, const Batch& batch,
    absl::FunctionRef<absl::Status(const ShardedState&, const Batch&)> answer);

// The parts of SecondaryIndex::Execute for checked batches. May throw std::bad_alloc.
absl::Status AnswerShardedPoints(const ShardedState& state, const Batch& batch);
absl::Status AnswerShardedRanges(const ShardedState& state, const Batch& batch);

// Combines the shards' explanations of their parts of a batch.
void CombineExplains(const Batch& batch, absl::Span<const Explain> explains,
                     const ShardAssignment& assignment, size_t lanes);

}  // namespace cairn
