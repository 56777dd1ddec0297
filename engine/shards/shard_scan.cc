#include "engine/shards/shard_scan.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <queue>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "cairn/types.h"
#include "engine/shards/shard_cursor.h"
#include "engine/util/scan_cursor.h"
#include "index/machine/guard.h"
#include "index/machine/status_macros.h"
#include "index/machine/stop_flag.h"
#include "index/query/match_rows.h"
#include "index/query/physical_key.h"

namespace cairn {
namespace {

constexpr uint64_t kNoLimit = std::numeric_limits<uint64_t>::max();
constexpr ShardInterval kNone = {1, 0};

// The first key after all with the prefix; empty if there is none.
std::string EndOfPrefix(std::string_view prefix) {
  std::string end(prefix);
  while (!end.empty() && end.back() == '\xff') end.pop_back();
  if (!end.empty()) end.back() = static_cast<char>(static_cast<uint8_t>(end.back()) + 1);
  return end;
}

template <typename Key>
Key KeyOfBatch(const KeyBatch& keys, size_t i) {
  return keys.as<Key>()[i];
}

}  // namespace

ShardScan::ShardScan(const ShardedState& state, const Batch& batch)
    : state_(state),
      batch_(batch),
      limited_(batch.options.limit != kNoLimit),
      in_pages_(limited_ || !batch.ranges.after.empty()),
      ranges_(batch.size()) {}

absl::Status ShardScan::Run() {
  RETURN_IF_ERROR(Route());
  while (true) {
    bool asks = false;
    for (const RangeState& range : ranges_) asks |= !range.shards.empty();
    if (!asks) break;
    RETURN_IF_ERROR(AskRound());
  }
  return Write();
}

absl::Status ShardScan::Route() {
  std::vector<ShardInterval> intervals(ranges_.size());
  state_.routing.RouteRanges(batch_.ranges, absl::MakeSpan(intervals));
  for (size_t i = 0; i < ranges_.size(); ++i) {
    ranges_[i].shards = batch_.options.limit == 0 ? kNone : intervals[i];
    ranges_[i].left = batch_.options.limit;
  }
  const PhysicalType kind = batch_.ranges.kind();
  prefix_ends_.resize(by_source() ? batch_.ranges.after.size() : 0);
  for (size_t i = 0; i < prefix_ends_.size(); ++i) {
    if (batch_.ranges.upper_bound_of(i) != Bound::kPrefix) continue;
    prefix_ends_[i] = EndOfPrefix(batch_.ranges.lower.bytes()[i]);
  }
  for (size_t i = 0; i < batch_.ranges.after.size(); ++i) {
    if (batch_.ranges.after[i].empty()) continue;
    if (by_source()) {
      RETURN_IF_ERROR(ReadSourceCursor(i).status());
      continue;
    }
    // Shards that end before the cursor have nothing after it.
    ASSIGN_OR_RETURN(const ScanCursor cursor, ScanCursor::DecodeFor(TagOf(i), batch_.ranges, i));
    ShardInterval of_key;
    WithPhysicalKey(kind, [&](auto type) {
      using Key = typename decltype(type)::type;
      const Key key = cursor.key<Key>();
      state_.routing.RouteKeys(absl::MakeConstSpan(&key, 1), absl::MakeSpan(&of_key, 1));
    });
    ShardInterval& shards = ranges_[i].shards;
    if (ascending()) {
      shards.first = std::max(shards.first, of_key.first);
    } else {
      shards.last = std::min(shards.last, of_key.last);
    }
  }
  return absl::OkStatus();
}

CursorTag ShardScan::TagOf(size_t i) const {
  return CursorTag::OfScan(index_checksum(), batch_.ranges, i, batch_.options.order,
                           by_source() ? SourcesChecksum(state_.versions) : 0);
}

absl::StatusOr<SourceCursor> ShardScan::ReadSourceCursor(size_t i) const {
  return SourceCursor::DecodeFor(TagOf(i), batch_.ranges, i, state_.routing.shards());
}

ShardInterval ShardScan::Next(const RangeState& range) const {
  if (range.shards.empty() || by_source() || !limited_) return range.shards;
  const uint32_t next = ascending() ? range.shards.first : range.shards.last;
  return {next, next};
}

absl::Status ShardScan::AskRound() {
  const size_t shards = state_.routing.shards();
  std::vector<ShardInterval> intervals(ranges_.size());
  uint64_t limit = 0;
  for (size_t i = 0; i < ranges_.size(); ++i) {
    intervals[i] = Next(ranges_[i]);
    // For a full range, one more entry shows whether there are more.
    if (!intervals[i].empty()) limit = std::max({limit, ranges_[i].left, uint64_t{1}});
  }
  const ShardAssignment assignment = Assign(intervals, shards);
  const size_t first_part = parts_.size();
  for (size_t s = 0; s < shards; ++s) parts_.push_back(std::make_unique<Part>());
  std::vector<Explain> explains(batch_.explain == nullptr || asked_ ? 0 : shards);
  RETURN_IF_ERROR(ForEachAskedShard(state_, assignment, [&](size_t s) {
    return Guarded("scanning a shard", [&]() -> absl::Status {
      Part& part = *parts_[first_part + s];
      const absl::Span<const uint32_t> queries = assignment.queries(s);
      part.ranges.Gather(batch_.ranges, queries);
      if (by_source() && !batch_.ranges.after.empty()) {
        RETURN_IF_ERROR(GoOnBySource(s, queries, &part));
      }
      Batch scan = Batch::Scan(part.ranges.Batch(), &part.matches, batch_.options);
      scan.options.limit = limit;
      scan.options.with_keys |= limited_ || by_source();
      if (!explains.empty()) scan.explain = &explains[s];
      return state_.versions[s]->Execute(scan, state_.threads);
    });
  }));
  if (!explains.empty()) CombineExplains(batch_, explains, assignment, state_.lanes);
  asked_ = true;
  for (size_t n = 0; n < shards; ++n) {
    const size_t s = ascending() || by_source() ? n : shards - 1 - n;
    const absl::Span<const uint32_t> queries = assignment.queries(s);
    for (size_t i = 0; i < queries.size(); ++i) {
      TakeByKeyRange(parts_[first_part + s]->matches, s, i, &ranges_[queries[i]]);
    }
  }
  if (by_source()) {
    for (RangeState& range : ranges_) TakeBySource(&range);
  }
  return absl::OkStatus();
}

// Takes a shard's entries of one range. If sharded by source, takes all: Write merges and cuts
// them.
void ShardScan::TakeByKeyRange(const FindResult& matches, size_t shard, size_t i,
                               RangeState* range) {
  const uint64_t begin = matches.offsets[i], entries = matches.offsets[i + 1] - begin;
  const bool has_more = !matches.cursors.empty() && !matches.cursors[i].empty();
  const uint64_t taken = by_source() ? entries : std::min(entries, range->left);
  if (taken != 0) {
    range->pieces.push_back({static_cast<uint32_t>(shard), &matches, begin, begin + taken});
  }
  if (by_source()) {
    range->goes_on |= has_more;
    return;
  }
  if (range->left != kNoLimit) range->left -= taken;
  if (has_more || taken < entries) {
    range->goes_on = true;
    range->shards = kNone;
  } else if (!limited_ || range->shards.first == range->shards.last) {
    range->shards = kNone;
  } else if (ascending()) {
    ++range->shards.first;
  } else {
    --range->shards.last;
  }
}

void ShardScan::TakeBySource(RangeState* range) {
  range->shards = kNone;
  uint64_t entries = 0;
  for (const ScanPiece& piece : range->pieces) entries += piece.end - piece.begin;
  range->goes_on |= entries > range->left;
}

absl::Status ShardScan::GoOnBySource(size_t shard, absl::Span<const uint32_t> queries, Part* part) {
  const RangeBatch& ranges = batch_.ranges;
  return WithPhysicalKey(ranges.kind(), [&](auto type) -> absl::Status {
    using Key = typename decltype(type)::type;
    for (size_t i = 0; i < queries.size(); ++i) {
      const uint32_t query = queries[i];
      std::string& after = part->ranges.after()[i];
      if (after.empty()) continue;
      ASSIGN_OR_RETURN(const SourceCursor cursor, ReadSourceCursor(query));
      if (shard == cursor.shard) {
        // The range of the shard is the batch's.
        after = cursor.entry.EncodeFor(
            CursorTag::OfScan(index_checksum(), ranges, query, batch_.options.order));
        continue;
      }
      after.clear();
      // For the cursor's key, shards before the cursor's have been read, and those after it have
      // not.
      const bool read = ascending() ? shard < cursor.shard : shard > cursor.shard;
      const Bound bound = read ? Bound::kExclusive : Bound::kInclusive;
      const Key key = cursor.entry.key<Key>();
      Bound& lower = part->ranges.lower_bounds()[i];
      Bound& upper = part->ranges.upper_bounds()[i];
      if (ascending()) {
        const Key begin = KeyOfBatch<Key>(ranges.lower, query);
        if (lower != Bound::kOpen &&
            (key < begin || (key == begin && (lower == Bound::kExclusive || !read)))) {
          continue;
        }
        if constexpr (std::is_same_v<Key, std::string_view>) {
          // The end of a prefix range depends on its beginning.
          if (upper == Bound::kPrefix) {
            const std::string_view end = prefix_ends_[query];
            upper = end.empty() ? Bound::kOpen : Bound::kExclusive;
            part->ranges.SetUpper(i, absl::MakeConstSpan(&end, 1));
          }
        }
        lower = bound;
        part->ranges.SetLower(i, absl::MakeConstSpan(&key, 1));
      } else {
        const Key end = KeyOfBatch<Key>(ranges.upper, query);
        if (upper == Bound::kPrefix) {
          // All keys with the prefix that are after the cursor; the cursor is within the prefix or
          // before it.
          if constexpr (std::is_same_v<Key, std::string_view>) {
            const std::string_view prefix = KeyOfBatch<Key>(ranges.lower, query);
            if (key.substr(0, prefix.size()) > prefix) continue;
          }
        } else if (upper != Bound::kOpen &&
                   (end < key || (key == end && (upper == Bound::kExclusive || !read)))) {
          continue;
        }
        upper = bound;
        part->ranges.SetUpper(i, absl::MakeConstSpan(&key, 1));
      }
    }
    return absl::OkStatus();
  });
}

absl::Status ShardScan::Write() {
  FindResult& all = *batch_.matches;
  RETURN_IF_ERROR(BeginMatches(batch_.ranges.kind(), ranges_.size(), &all));
  if (in_pages_) all.cursors.resize(ranges_.size());
  std::vector<Place> last(ranges_.size());
  for (size_t i = 0; i < ranges_.size(); ++i) {
    const RangeState& range = ranges_[i];
    const Place end = range.pieces.size() > 1 && by_source()
                          ? WithPhysicalKey(batch_.ranges.kind(),
                                            [&](auto type) {
                                              return Merge<typename decltype(type)::type>(range);
                                            })
                          : Append(range);
    RETURN_IF_ERROR(stopped_);
    if (range.goes_on) last[i] = end;
    all.offsets[i + 1] = all.row_ids.size();
  }
  return limited_ ? WriteCursors(last) : absl::OkStatus();
}

void ShardScan::AppendEntries(const ScanPiece& piece, uint64_t begin, uint64_t end) {
  FindResult& all = *batch_.matches;
  const auto rows = piece.matches->row_ids.begin();
  all.row_ids.insert(all.row_ids.end(), rows + static_cast<ptrdiff_t>(begin),
                     rows + static_cast<ptrdiff_t>(end));
  all.shards.resize(all.row_ids.size(), piece.shard);
  if (!batch_.options.with_keys) return;
  WithPhysicalKey(batch_.ranges.kind(), [&](auto type) {
    using Key = typename decltype(type)::type;
    for (uint64_t i = begin; i < end; ++i) {
      AppendKey<Key>(KeyAt<Key>(piece.matches->keys, i), &all.keys);
    }
  });
}

ShardScan::Place ShardScan::Append(const RangeState& range) {
  Place last;
  uint64_t left = by_source() ? range.left : kNoLimit;
  for (const ScanPiece& piece : range.pieces) {
    const uint64_t end = piece.begin + std::min(piece.end - piece.begin, left);
    AppendEntries(piece, piece.begin, end);
    left -= end - piece.begin;
    last = {&piece, end - 1};
  }
  return last;
}

template <typename Key>
ShardScan::Place ShardScan::Merge(const RangeState& range) {
  struct Head {
    const ScanPiece* piece;
    uint64_t at;
  };
  // Whether b comes first, so that the heap's top is the first of all.
  const auto later = [&](const Head& a, const Head& b) {
    const Key x = KeyAt<Key>(a.piece->matches->keys, a.at);
    const Key y = KeyAt<Key>(b.piece->matches->keys, b.at);
    if (x != y) return ascending() ? y < x : x < y;
    return ascending() ? b.piece->shard < a.piece->shard : a.piece->shard < b.piece->shard;
  };
  std::priority_queue heads(later, std::vector<Head>());
  for (const ScanPiece& piece : range.pieces) heads.push({&piece, piece.begin});
  Place last;
  const StopCondition stop = StopCondition::Of(batch_.options);
  for (uint64_t left = range.left; left > 0 && !heads.empty(); --left) {
    if (left % kStopRows == 0 && !(stopped_ = stop.Check()).ok()) break;
    Head head = heads.top();
    heads.pop();
    AppendEntries(*head.piece, head.at, head.at + 1);
    last = {head.piece, head.at};
    if (++head.at < head.piece->end) heads.push(head);
  }
  return last;
}

absl::Status ShardScan::WriteCursors(const std::vector<Place>& last) {
  FindResult& all = *batch_.matches;
  std::vector<size_t> which;
  std::vector<RowId> rows;
  for (uint32_t s = 0; s < state_.routing.shards(); ++s) {
    which.clear();
    rows.clear();
    for (size_t i = 0; i < last.size(); ++i) {
      if (last[i].piece == nullptr || last[i].piece->shard != s) continue;
      which.push_back(i);
      rows.push_back(last[i].piece->matches->row_ids[last[i].entry]);
    }
    StringList primary_keys;
    RETURN_IF_ERROR(state_.versions[s]->delta->PrimaryKeys(rows, &primary_keys));
    for (size_t j = 0; j < which.size(); ++j) {
      const Place& place = last[which[j]];
      const SourceCursor cursor{
          s, ScanCursor::After(place.piece->matches->keys, place.entry, primary_keys[j])};
      const CursorTag tag = TagOf(which[j]);
      all.cursors[which[j]] = by_source() ? cursor.EncodeFor(tag) : cursor.entry.EncodeFor(tag);
    }
  }
  return absl::OkStatus();
}

}  // namespace cairn
