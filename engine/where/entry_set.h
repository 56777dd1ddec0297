#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cairn/query.h"
#include "cairn/types.h"
#include "engine/version/index_version.h"
#include "index/machine/stop_flag.h"

namespace cairn {

// Entries at positions [begin, end) of a run.
struct PositionRange {
  Position begin = 0;
  Position end = 0;
  bool operator==(const PositionRange&) const = default;
};

// Whole keys of a version, by where their entries are in each of its runs: the base's, then those
// of the delta's parts. Of each run ascending ranges that neither touch nor are empty. Entries that
// were removed are in it, too: who reads the version leaves them out.
class EntrySet {
 public:
  EntrySet() = default;  // for no version
  // No keys of a version.
  explicit EntrySet(const Delta& delta) : runs_(delta.parts.size() + 1) {}
  // The keys in these ranges. Errors as of BatchIndex::Count. Throws std::bad_alloc.
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
  // Entries of the version, without those removed.
  uint64_t Count(const Delta& delta) const;
  bool empty() const;

  // All of these require sets of one version. Throw std::bad_alloc.
  // What is in one of several sets, or in all of them, which are at least one: in O(n log n) for n
  // ranges together.
  static EntrySet Union(std::vector<EntrySet> sets);
  static EntrySet Intersection(std::vector<EntrySet> sets);
  EntrySet Intersection(const EntrySet& other) const;
  EntrySet Complement(const Delta& delta) const;

 private:
  std::vector<std::vector<PositionRange>> runs_;
};

// Calls body(position, row) for the entries of one of a version's runs that are in `set`, in their
// order. Returns Cancelled once `cancelled`, which may be null, is set.
template <typename Body>
absl::Status ForEachEntry(const Delta& delta, const EntrySet& set, size_t run,
                          const std::atomic<bool>* cancelled, Body body) {
  constexpr uint64_t kEntriesTogether = uint64_t{1} << 16;
  const PositionSet& removed = run == 0 ? delta.removed : delta.parts[run - 1].removed;
  const RowId* const rows =
      run == 0 ? delta.base_run.row_ids().data() : delta.parts[run - 1].segment->rows().data();
  for (const PositionRange& range : set.run(run)) {
    for (uint64_t p = range.begin; p < range.end;) {
      const absl::Status s = CheckNotCancelled(cancelled);
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
