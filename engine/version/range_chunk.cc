#include "engine/version/range_chunk.h"

#include <compare>
#include <utility>

#include "index/machine/status_macros.h"

namespace cairn {

absl::StatusOr<RangeCursors> RangeCursors::Of(const Delta& delta, const RangeBatch& ranges,
                                              Order order, uint64_t index) {
  RangeCursors found;
  std::vector<std::string_view> primary_keys;
  for (size_t i = 0; i < ranges.after.size(); ++i) {
    if (ranges.after[i].empty()) continue;
    ASSIGN_OR_RETURN(const ScanCursor cursor,
                     ScanCursor::DecodeFor(CursorTag::OfScan(index, ranges, i, order), ranges, i));
    found.ranges.push_back(i);
    found.cursors.push_back(cursor);
    primary_keys.push_back(cursor.primary_key);
  }
  // The cursor's row may be deleted, or the base may have changed, so only its place counts.
  found.places.resize(found.ranges.size());
  RETURN_IF_ERROR(delta.base_rows.Places(primary_keys, absl::MakeSpan(found.places)));
  return found;
}

template <typename Key>
bool RangeChunk<Key>::BelowLower(size_t i, const Key& key) const {
  switch (ranges_.lower_bound_of(i)) {
    case Bound::kInclusive:
      return key < ranges_.lower.as<Key>()[i];
    case Bound::kExclusive:
      return key <= ranges_.lower.as<Key>()[i];
    default:
      return false;
  }
}

template <typename Key>
bool RangeChunk<Key>::BelowUpper(size_t i, const Key& key) const {
  switch (ranges_.upper_bound_of(i)) {
    case Bound::kInclusive:
      return key <= ranges_.upper.as<Key>()[i];
    case Bound::kExclusive:
      return key < ranges_.upper.as<Key>()[i];
    case Bound::kPrefix:
      if constexpr (std::is_same_v<Key, std::string_view>) {
        const std::string_view prefix = ranges_.lower.bytes()[i];
        return key < prefix || StartsWith(key, prefix);
      }
      break;
    case Bound::kOpen:
      break;
  }
  return true;
}

template <typename Key>
void RangeChunk<Key>::Take(size_t first, absl::Span<const Position> begin,
                           absl::Span<const Position> end) {
  first_ = first;
  count_ = begin.size();
  std::copy(begin.begin(), begin.end(), this->begin(0));
  std::copy(end.begin(), end.end(), this->end(0));
  if (delta_.removed_positions == nullptr) {
    for (size_t i = 0; i < count_; ++i) delta_.removed.Prefetch(begin[i]);
    for (size_t i = 0; i < count_; ++i) delta_.removed.Prefetch(end[i]);
  } else {
    FindRemoved(0, count_);
  }
  for (size_t run = 1; run < runs_.size(); ++run) FindInPart(run);
}

template <typename Key>
void RangeChunk<Key>::FindRemoved(size_t i, size_t count) {
  const absl::Span<uint32_t> equal = absl::MakeSpan(equal_);
  const SlottedArray& removed = *delta_.removed_positions;
  removed.LowerBound({begin(0) + i, count}, {removed_.data() + i, count}, equal);
  removed.LowerBound({end(0) + i, count}, {removed_.data() + most_ + i, count}, equal);
}

template <typename Key>
void RangeChunk<Key>::FindInPart(size_t run) {
  const SlottedArray& places = *runs_[run].places;
  const auto column = ColumnOf<Key>(*runs_[run].run);
  const absl::Span<const Position> base_begin(begin(0), count_), base_end(end(0), count_);
  const absl::Span<Position> from(begin(run), count_), to(end(run), count_);
  // Returns the position after the entries with place `place`; `at` is the first of them, and
  // `below` is true for those to skip.
  const auto skip = [&](Position at, Position place, auto below) {
    return static_cast<Position>(Gallop(
        at, places.size(), [&](size_t p) { return places[p] == place && below(column[p]); }));
  };
  size_t equal = places.LowerBound(base_begin, from, absl::MakeSpan(equal_));
  for (const uint32_t i : absl::MakeSpan(equal_).first(equal)) {
    from[i] =
        skip(from[i], base_begin[i], [&](const Key& key) { return BelowLower(first_ + i, key); });
  }
  equal = places.LowerBound(base_end, to, absl::MakeSpan(equal_));
  for (const uint32_t i : absl::MakeSpan(equal_).first(equal)) {
    to[i] = skip(to[i], base_end[i], [&](const Key& key) { return BelowUpper(first_ + i, key); });
  }
  // Crossed ends contain nothing.
  for (size_t i = 0; i < count_; ++i) to[i] = std::max(from[i], to[i]);
}

template <typename Key>
void RangeChunk<Key>::PrefetchRows(size_t i, Order order, uint64_t limit) const {
  // Alternating runs are mispredicted repeatedly, so the processor does not read ahead into the
  // next lines, as it would for a copy.
  constexpr uint64_t kMaxRows = 256;
  constexpr uint64_t kLine = 64 / sizeof(RowId);
  if (i >= count_) return;
  const uint64_t rows = std::min({uint64_t{end(0)[i] - begin(0)[i]}, limit, kMaxRows});
  const RowId* const first =
      runs_[0].rows + (order == Order::kAscending ? begin(0)[i] : end(0)[i] - rows);
  for (uint64_t row = 0; row < rows + kLine; row += kLine) Prefetch(first + row);
  for (size_t r = 1; r < runs_.size(); ++r) {
    Prefetch(runs_[r].rows + (order == Order::kAscending ? begin(r)[i] : end(r)[i]));
  }
}

template <typename Key>
void RangeChunk<Key>::GoOn(const RangeCursors& cursors, Order order) {
  const auto from = std::lower_bound(cursors.ranges.begin(), cursors.ranges.end(), first_);
  for (auto at = from; at != cursors.ranges.end() && *at < first_ + count_; ++at) {
    const auto c = static_cast<size_t>(at - cursors.ranges.begin());
    const Key key = cursors.cursors[c].key<Key>();
    for (size_t r = 0; r < runs_.size(); ++r) {
      const auto column = ColumnOf<Key>(*runs_[r].run);
      Position& from = begin(r)[*at - first_];
      Position& to = end(r)[*at - first_];
      // The first entry that is not before (if ascending: that is after) the cursor's.
      const Position first = PartitionPoint(from, to, [&](Position p) {
        const Key at = column[p];
        if (at != key) return at < key;
        const RowId row = runs_[r].rows[p];
        // Unverified entries may have any row id.
        if (row >= delta_.end_row) return false;
        const std::strong_ordering by_row = delta_.rows->Compare(row, cursors.places[c]);
        return order == Order::kAscending ? by_row <= 0 : by_row < 0;
      });
      (order == Order::kAscending ? from : to) = first;
    }
    if (delta_.removed_positions != nullptr) FindRemoved(*at - first_, 1);
  }
}

template class RangeChunk<uint32_t>;
template class RangeChunk<uint64_t>;
template class RangeChunk<std::string_view>;

}  // namespace cairn
