#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cairn/query.h"
#include "cairn/types.h"
#include "engine/version/index_version.h"
#include "index/machine/stop_flag.h"

namespace cairn {

// The entries at positions [begin, end) of a run.
struct PositionRange {
  Position begin = 0;
  Position end = 0;
  bool operator==(const PositionRange&) const = default;
};

// A set of whole keys of a version, as the positions of their entries in each run: the base, then
// the parts of the delta. For each run, the ranges ascend, do not touch, and are not empty. They
// include removed entries; a reader of the version must skip these.
class EntrySet {
 public:
  EntrySet() = default;  // belongs to no version
  // An empty set for a version.
  explicit EntrySet(const Delta& delta) : runs_(delta.parts.size() + 1) {}
  // Returns the keys in these ranges. Errors: those of BatchIndex::Count. Throws std::bad_alloc.
  static absl::StatusOr<EntrySet> Of(const IndexVersion& version, const RangeBatch& ranges);

  const std::vector<PositionRange>& run(size_t run) const { return runs_[run]; }
  bool Contains(size_t run, Position position) const {
    const std::vector<PositionRange>& ranges = runs_[run];
    if (ranges.size() == 1) return position - ranges[0].begin < ranges[0].end - ranges[0].begin;
    const auto behind =
        std::upper_bound(ranges.begin(), ranges.end(), position,
                         [](Position p, const PositionRange& range) { return p < range.begin; });
    return behind != ranges.begin() && position < std::prev(behind)->end;
  }
  // Returns the number of entries of the version in the set, without removed ones.
  uint64_t Count(const Delta& delta) const;
  bool empty() const;

  // The following functions require sets of one version, and throw std::bad_alloc. Union and
  // Intersection return the keys in at least one of the sets, or in all of them. They require at
  // least one set, and take O(n log n) for n ranges in total.
  static EntrySet Union(std::vector<EntrySet> sets);
  static EntrySet Intersection(std::vector<EntrySet> sets);
  EntrySet Intersection(const EntrySet& other) const;
  EntrySet Complement(const Delta& delta) const;

 private:
  std::vector<std::vector<PositionRange>> runs_;
};

// Calls body(position, row) for the entries of one of a version's runs that are in `set`, in order.
// Returns the error of `stop` once it has one.
template <typename Body>
absl::Status ForEachEntry(const Delta& delta, const EntrySet& set, size_t run,
                          const StopCondition& stop, Body body) {
  constexpr uint64_t kEntriesTogether = uint64_t{1} << 16;
  const PositionSet& removed = run == 0 ? delta.removed : delta.parts[run - 1].removed;
  const RowId* const rows =
      run == 0 ? delta.base_run.row_ids().data() : delta.parts[run - 1].segment->rows().data();
  for (const PositionRange& range : set.run(run)) {
    for (uint64_t p = range.begin; p < range.end;) {
      const absl::Status s = stop.Check();
      if (!s.ok()) return s;
      p = removed.FirstAbsent(p, range.end);
      const uint64_t end =
          removed.FirstMember(p, std::min<uint64_t>(range.end, p + kEntriesTogether));
      for (; p < end; ++p) body(static_cast<Position>(p), rows[p]);
    }
  }
  return absl::OkStatus();
}

}  // namespace cairn
