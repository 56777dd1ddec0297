#include "cpu_fast/batch/merge_search.h"

#include <algorithm>
#include <cstddef>
#include <type_traits>

#include "index/machine/aligned_buffer.h"
#include "index/run/run_columns.h"

namespace cairn {
namespace {

// A pass along ascending keys, which start on a cache line, that finds the lower bounds of
// ascending queries. It skips lines by comparing their last keys, then halves within a line, so no
// branch depends on the position of a key within its line.
template <typename Key>
class AscendingWalk {
  static constexpr size_t kLineKeys = kCacheLineBytes / sizeof(Key);

 public:
  // For queries that are at least `first`.
  AscendingWalk(absl::Span<const Key> keys, Key first)
      : keys_(keys), full_lines_(keys.size() / kLineKeys) {
    const auto at = std::lower_bound(keys.begin(), keys.end(), first);
    line_ = static_cast<size_t>(at - keys.begin()) / kLineKeys;
  }

  // The number of keys less than `query`. Requires that `query` is not less than the previous one.
  size_t LowerBound(Key query) {
    while (line_ < full_lines_ && keys_[line_ * kLineKeys + kLineKeys - 1] < query) ++line_;
    const size_t first = line_ * kLineKeys;
    const Key* line = keys_.data() + first;
    size_t less = 0;
    if (line_ < full_lines_) {
      for (size_t half = kLineKeys / 2; half > 0; half /= 2) {
        // A mask, because compilers turn a conditional into a branch.
        less += half & (0 - size_t{line[less + half - 1] < query});
      }
    } else {
      while (less < keys_.size() - first && line[less] < query) ++less;
    }
    return first + less;
  }

 private:
  const absl::Span<const Key> keys_;
  const size_t full_lines_;
  size_t line_;  // every earlier line ends with a key less than the last query
};

template <typename Key>
void FindLowerBounds(absl::Span<const Key> keys, absl::Span<const Key> queries,
                     Position* positions) {
  AscendingWalk walk(keys, queries[0]);
  for (size_t i = 0; i < queries.size(); ++i) {
    positions[i] = static_cast<Position>(walk.LowerBound(queries[i]));
  }
}

}  // namespace

void MergeSearch::LowerBound(KeyBatch keys, Position* positions) const {
  if (keys.empty()) return;
  if (run().kind() == PhysicalType::kU32) {
    FindLowerBounds(run().u32(), keys.u32(), positions);
  } else {
    FindLowerBounds(run().u64(), keys.u64(), positions);
  }
}

void MergeSearch::FindFirst(KeyBatch keys, RowId* row_ids) const {
  LowerBound(keys, row_ids);
  const absl::Span<const RowId> rows = run().row_ids();
  WithColumn(run(), [&](const auto& column) {
    const auto queries = column.Queries(keys);
    for (size_t i = 0; i < queries.size(); ++i) {
      const Position p = row_ids[i];
      row_ids[i] = p < rows.size() && column[p] == queries[i] ? rows[p] : kNoRow;
    }
  });
}

}  // namespace cairn
