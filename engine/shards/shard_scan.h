#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cairn/query.h"
#include "engine/shards/shard_batch.h"
#include "engine/shards/shard_cursor.h"
#include "engine/util/cursor_tag.h"

namespace cairn {

// One shard's entries of one range of a scan: [begin, end) of its result.
struct ScanPiece {
  uint32_t shard;
  const FindResult* matches;
  uint64_t begin, end;
};

// One scan over shards: queries them, collects their entries of each range in the order of the
// scan, and writes one result. For key ranges, a range's shards follow one another. With a limit,
// the next one is queried when one has no more entries. For sources, all are queried, and merged by
// key.
class ShardScan {
 public:
  ShardScan(const ShardedState& state, const Batch& batch);

  // May throw std::bad_alloc.
  absl::Status Run();

 private:
  // The progress of a range of the batch.
  struct RangeState {
    ShardInterval shards;  // not queried yet
    uint64_t left;         // rest of the limit
    bool goes_on = false;  // there are more entries than the limit
    std::vector<ScanPiece> pieces;
  };
  // One shard's part of a round.
  struct Part {
    GatheredRanges ranges;
    FindResult matches;
  };

  bool ascending() const { return batch_.options.order == Order::kAscending; }
  bool by_source() const { return state_.routing.asks_all(); }
  uint64_t index_checksum() const { return state_.versions[0]->base->cursor_checksum; }
  // The tag of range i's cursors; and its cursor, if the index is sharded by source.
  CursorTag TagOf(size_t i) const;
  absl::StatusOr<SourceCursor> ReadSourceCursor(size_t i) const;
  absl::Status Route();
  // The shards to query for range i in the next round.
  ShardInterval Next(const RangeState& range) const;
  absl::Status AskRound();
  // For an index sharded by source: makes each of the part's ranges begin after its cursor.
  absl::Status GoOnBySource(size_t shard, absl::Span<const uint32_t> queries, Part* part);
  void TakeBySource(RangeState* range);
  void TakeByKeyRange(const FindResult& matches, size_t shard, size_t i, RangeState* range);
  absl::Status Write();
  // Appends the entries of a range's pieces. Returns the piece and the entry of the last one.
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
  std::vector<std::unique_ptr<Part>> parts_;  // in all rounds
  std::vector<std::string> prefix_ends_;      // one per range, if sharded by source
  bool asked_ = false;                        // the first round is done
  absl::Status stopped_;                      // error of the stop condition, in Merge
};

}  // namespace cairn
