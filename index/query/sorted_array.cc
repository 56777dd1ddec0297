#include "index/query/sorted_array.h"

#include <algorithm>

#include "index/machine/prefetch.h"
#include "index/run/run_columns.h"

namespace cairn {
namespace {

// The number of searches that advance together.
constexpr size_t kGroup = 32;

// The state of a search is the first position that may be the answer; all searches have `length`
// positions left. A step continues in the upper half if the last key of the lower half is less than
// the query.
template <typename Key>
void SearchGroup(absl::Span<const Key> keys, absl::Span<const Key> queries, Position* positions) {
  const Key* base[kGroup];
  std::fill_n(base, queries.size(), keys.data());
  size_t length = keys.size();
  while (length > 1) {
    const size_t half = length / 2;
    length -= half;
    const size_t next = length / 2 - (length > 1);
    for (size_t j = 0; j < queries.size(); ++j) {
      // A mask, since compilers turn a conditional into a branch.
      const size_t less = base[j][half - 1] < queries[j];
      base[j] += half & (0 - less);
      Prefetch(base[j] + next);
    }
  }
  for (size_t j = 0; j < queries.size(); ++j) {
    const size_t behind = length == 1 && *base[j] < queries[j];
    positions[j] = static_cast<Position>(base[j] - keys.data() + behind);
  }
}

// As above, for byte strings: a key takes two prefetches, of its offsets and then of its bytes.
void SearchGroup(const BytesColumn& keys, absl::Span<const std::string_view> queries,
                 Position* positions) {
  const StringColumn column{keys};
  size_t base[kGroup] = {};
  size_t length = keys.size();
  while (length > 0) {
    const size_t half = (length + 1) / 2;
    length -= half;
    for (size_t j = 0; j < queries.size(); ++j) column.PrefetchKey(base[j] + half - 1);
    for (size_t j = 0; j < queries.size(); ++j) column.PrefetchHeap(base[j] + half - 1);
    for (size_t j = 0; j < queries.size(); ++j) {
      base[j] += keys[base[j] + half - 1] < queries[j] ? half : 0;
    }
  }
  for (size_t j = 0; j < queries.size(); ++j) positions[j] = static_cast<Position>(base[j]);
}

}  // namespace

void SortedArray::LowerBound(KeyBatch keys, Position* positions) const {
  for (size_t first = 0; first < keys.size(); first += kGroup) {
    const size_t count = std::min(kGroup, keys.size() - first);
    Position* out = positions + first;
    WithColumn(run(), [&](const auto& column) {
      using Column = std::decay_t<decltype(column)>;
      SearchGroup(column.keys, Column::Queries(keys).subspan(first, count), out);
    });
  }
}

}  // namespace cairn
