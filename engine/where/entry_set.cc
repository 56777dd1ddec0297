#include "engine/where/entry_set.h"

#include <utility>

#include "absl/types/span.h"
#include "index/machine/status_macros.h"

namespace cairn {
namespace {

using Ranges = std::vector<PositionRange>;

// Appends a range that does not begin before the last one.
void Append(PositionRange range, Ranges* ranges) {
  if (range.begin >= range.end) return;
  if (!ranges->empty() && range.begin <= ranges->back().end) {
    ranges->back().end = std::max(ranges->back().end, range.end);
  } else {
    ranges->push_back(range);
  }
}

// Sorts and merges ranges in any order.
Ranges UnionOf(Ranges found) {
  std::sort(found.begin(), found.end(),
            [](const PositionRange& a, const PositionRange& b) { return a.begin < b.begin; });
  Ranges ranges;
  for (const PositionRange& range : found) Append(range, &ranges);
  return ranges;
}

Ranges FromPositions(absl::Span<const Position> begin, absl::Span<const Position> end) {
  Ranges found;
  for (size_t i = 0; i < begin.size(); ++i) found.push_back({begin[i], end[i]});
  return UnionOf(std::move(found));
}

Ranges IntersectionOf(const Ranges& a, const Ranges& b) {
  Ranges ranges;
  for (size_t i = 0, j = 0; i < a.size() && j < b.size();) {
    Append({std::max(a[i].begin, b[j].begin), std::min(a[i].end, b[j].end)}, &ranges);
    if (a[i].end < b[j].end) {
      ++i;
    } else {
      ++j;
    }
  }
  return ranges;
}

Ranges ComplementOf(const Ranges& ranges, Position size) {
  Ranges others;
  Position begin = 0;
  for (const PositionRange& range : ranges) {
    Append({begin, range.begin}, &others);
    begin = range.end;
  }
  Append({begin, size}, &others);
  return others;
}

}  // namespace

absl::StatusOr<EntrySet> EntrySet::Of(const IndexVersion& version, const RangeBatch& ranges) {
  EntrySet set(*version.delta);
  if (ranges.size() == 0) return set;
  std::vector<Position> begin(ranges.size()), end(ranges.size());
  const Batch batch = Batch::Positions(ranges, absl::MakeSpan(begin), absl::MakeSpan(end));
  RETURN_IF_ERROR(version.base->router->Execute(batch));
  set.runs_[0] = FromPositions(begin, end);
  for (size_t i = 0; i < version.delta->parts.size(); ++i) {
    RETURN_IF_ERROR(version.delta->parts[i].segment->index().Execute(batch));
    set.runs_[i + 1] = FromPositions(begin, end);
  }
  return set;
}

uint64_t EntrySet::Count(const Delta& delta) const {
  uint64_t entries = 0;
  for (size_t run = 0; run < runs_.size(); ++run) {
    const PositionSet& removed = run == 0 ? delta.removed : delta.parts[run - 1].removed;
    for (const PositionRange& range : runs_[run]) {
      entries += range.end - range.begin - removed.Count(range.begin, range.end);
    }
  }
  return entries;
}

bool EntrySet::empty() const {
  return std::all_of(runs_.begin(), runs_.end(), [](const Ranges& run) { return run.empty(); });
}

EntrySet EntrySet::Union(std::vector<EntrySet> sets) {
  EntrySet any = std::move(sets[0]);
  if (sets.size() == 1) return any;
  for (size_t run = 0; run < any.runs_.size(); ++run) {
    Ranges all = std::move(any.runs_[run]);
    for (size_t i = 1; i < sets.size(); ++i) {
      all.insert(all.end(), sets[i].runs_[run].begin(), sets[i].runs_[run].end());
    }
    any.runs_[run] = UnionOf(std::move(all));
  }
  return any;
}

EntrySet EntrySet::Intersection(std::vector<EntrySet> sets) {
  // Intersects pairs, then pairs of the results, and so on.
  while (sets.size() > 1) {
    const size_t half = (sets.size() + 1) / 2;
    for (size_t i = 0; half + i < sets.size(); ++i) sets[i] = sets[i].Intersection(sets[half + i]);
    sets.resize(half);
  }
  return std::move(sets[0]);
}

EntrySet EntrySet::Intersection(const EntrySet& other) const {
  EntrySet both;
  for (size_t i = 0; i < runs_.size(); ++i) {
    both.runs_.push_back(IntersectionOf(runs_[i], other.runs_[i]));
  }
  return both;
}

EntrySet EntrySet::Complement(const Delta& delta) const {
  EntrySet others;
  for (size_t i = 0; i < runs_.size(); ++i) {
    const size_t size = i == 0 ? delta.base_run.size() : delta.parts[i - 1].segment->size();
    others.runs_.push_back(ComplementOf(runs_[i], static_cast<Position>(size)));
  }
  return others;
}

}  // namespace cairn
