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

// What a batch is answered with.
struct ShardedState {
  const ShardRouting& routing;
  const ShardVersions& versions;
  int threads;       // at least 1
  size_t lanes = 1;  // ShardSet::lanes
};

// Some keys of a batch, one behind the other. Reusable; not thread-safe.
class GatheredKeys {
 public:
  // Throws std::bad_alloc.
  void Gather(const KeyBatch& keys, absl::Span<const uint32_t> queries);
  // Puts another key, the only one of `key`, in place i. Its bytes are not copied.
  void Set(size_t i, const KeyBatch& key);
  // Valid until the next call, and as long as the batch's own keys.
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

  // To change before Batch(), one a range.
  std::vector<Bound>& lower_bounds() { return lower_bounds_; }
  std::vector<Bound>& upper_bounds() { return upper_bounds_; }
  std::vector<std::string>& after() { return after_; }
  // Has range i begin, or end, at this key, which must outlive the use.
  void SetLower(size_t i, const KeyBatch& key) { lower_.Set(i, key); }
  void SetUpper(size_t i, const KeyBatch& key) { upper_.Set(i, key); }

 private:
  GatheredKeys lower_, upper_;
  std::vector<Bound> lower_bounds_, upper_bounds_;
  std::vector<std::string> after_;  // empty: all ranges start at their beginning
};

// Calls body(shard) for each shard that is asked something: on several threads where there is
// little for each or shards are on different devices, one after the other where a shard's own
// search is spread over threads. Returns the first shard's error. The body must not throw.
absl::Status ForEachAskedShard(const ShardedState& state, const ShardAssignment& assignment,
                               absl::FunctionRef<absl::Status(size_t shard)> body);

// Calls answer(state, slice) for the slices that a batch is cut into, several at a time, where it
// is large: sending queries to shards and putting answers back takes longer than searching. Of
// operations with a result of one size for each query (Batch::Slice). Returns the first slice's
// error.
absl::Status AnswerInSlices(
    const ShardedState& state, const Batch& batch,
    absl::FunctionRef<absl::Status(const ShardedState&, const Batch&)> answer);

// The parts of SecondaryIndex::Execute for checked batches. May throw std::bad_alloc.
absl::Status AnswerShardedPoints(const ShardedState& state, const Batch& batch);
absl::Status AnswerShardedRanges(const ShardedState& state, const Batch& batch);

// What the shards say of how they answered their parts of a batch, as one.
void CombineExplains(const Batch& batch, absl::Span<const Explain> explains,
                     const ShardAssignment& assignment, size_t lanes);

}  // namespace cairn
