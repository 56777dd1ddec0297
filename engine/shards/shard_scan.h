#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "cairn/query.h"
#include "engine/shards/shard_batch.h"

namespace cairn {

// What one shard has for one range of a scan: entries [begin, end) of its answer.
struct ScanPiece {
  uint32_t shard;
  const FindResult* matches;
  uint64_t begin, end;
};

// One scan over shards: asks them, collects what they have of each range in the scan's order, and
// writes that as one answer. By key range, a range's shards follow one another: with a limit, the
// next one is asked once one has no more. By source, all are asked, and merged by key.
class ShardScan {
 public:
  ShardScan(const ShardedState& state, const Batch& batch);

  // May throw std::bad_alloc.
  absl::Status Run();

 private:
  // Where a range of the batch is.
  struct RangeState {
    ShardInterval shards;  // that are still to be asked
    uint64_t left;         // of the limit
    bool goes_on = false;  // there is more than the limit
    std::vector<ScanPiece> pieces;
  };
  // One shard's part of a round.
  struct Part {
    GatheredRanges ranges;
    FindResult matches;
  };

  bool ascending() const { return batch_.options.order == Order::kAscending; }
  bool by_source() const { return state_.routing.asks_all(); }
  absl::Status Route();
  // The shards that the next round asks for range i.
  ShardInterval Next(const RangeState& range) const;
  absl::Status AskRound();
  // Has each of the part's ranges begin behind its cursor, in a shard by source.
  absl::Status GoOnBySource(size_t shard, absl::Span<const uint32_t> queries, Part* part);
  void TakeBySource(RangeState* range);
  void TakeByKeyRange(const FindResult& matches, size_t shard, size_t i, RangeState* range);
  absl::Status Write();
  // Appends the entries of a range's pieces. Returns the last one's piece and entry.
  struct Place {
    const ScanPiece* piece = nullptr;
    uint64_t entry = 0;
  };
  Place Append(const RangeState& range);
  template <typename Key>
  Place Merge(const RangeState& range);
  void AppendEntries(const ScanPiece& piece, uint64_t begin, uint64_t end);
  absl::Status WriteCursors(const std::vector<Place>& last);

  const ShardedState& state_;
  const Batch& batch_;
  const bool limited_;
  const bool in_pages_;
  std::vector<RangeState> ranges_;
  std::vector<std::unique_ptr<Part>> parts_;  // of all rounds
  std::vector<std::string> prefix_ends_;      // one a range, by source
  bool asked_ = false;                        // one round was
  absl::Status stopped_;                      // error of the stop condition, in Merge
};

}  // namespace cairn
