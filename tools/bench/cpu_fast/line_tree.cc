#include "tools/bench/cpu_fast/line_tree.h"
#include "index/machine/prefetch.h"

#include <immintrin.h>

#include <algorithm>
#include <limits>
#include <utility>

namespace cairn::bench {
namespace {

constexpr size_t kGroup = 32;

// The number of a line's keys that are less than the query.
__attribute__((target("avx512f,popcnt"))) inline uint32_t CountLess(const uint32_t* line,
                                                                    uint32_t query) {
  return static_cast<uint32_t>(__builtin_popcount(_mm512_cmplt_epu32_mask(
      _mm512_load_si512(line), _mm512_set1_epi32(static_cast<int>(query)))));
}
__attribute__((target("avx512f,popcnt"))) inline uint32_t CountLess(const uint64_t* line,
                                                                    uint64_t query) {
  return static_cast<uint32_t>(__builtin_popcount(_mm512_cmplt_epu64_mask(
      _mm512_load_si512(line), _mm512_set1_epi64(static_cast<int64_t>(query)))));
}

}  // namespace

template <typename Key>
LineTree<Key>::LineTree(absl::Span<const Key> keys) : keys_(keys) {
  constexpr Key kGreatest = std::numeric_limits<Key>::max();
  const size_t leaves = (keys.size() + kLine - 1) / kLine;
  AlignedBuffer<Key> last(kLine);
  std::fill_n(last.data(), kLine, kGreatest);
  std::copy(keys.begin() + static_cast<ptrdiff_t>((leaves - 1) * kLine), keys.end(), last.data());
  levels_.push_back(std::move(last));
  size_t span = kLine;  // keys below one child
  for (size_t children = leaves; children > 1; span *= kLine) {
    const size_t nodes = (children + kLine - 1) / kLine;
    AlignedBuffer<Key> level(nodes * kLine);
    for (size_t child = 0; child < nodes * kLine; ++child) {
      const bool separates = child % kLine + 1 < kLine && (child + 1) * span < keys.size();
      level[child] = separates ? keys[(child + 1) * span - 1] : kGreatest;
    }
    levels_.insert(levels_.begin(), std::move(level));
    children = nodes;
  }
}

template <typename Key>
__attribute__((target("avx512f,popcnt"))) void LineTree<Key>::LowerBound(
    absl::Span<const Key> queries, Position* positions) const {
  const size_t inner = levels_.size() - 1;
  const size_t last = (keys_.size() - 1) / kLine;
  const size_t groups = (queries.size() + kGroup - 1) / kGroup;
  const auto first_of = [](size_t group) { return group * kGroup; };
  const auto end_of = [&](size_t group) { return std::min(first_of(group + 1), queries.size()); };
  // positions[] temporarily holds each query's node.
  for (size_t round = 0; round < groups + inner; ++round) {
    for (size_t level = inner + 1; level-- > 0;) {
      if (level > round || round - level >= groups) continue;
      const size_t group = round - level;
      for (size_t i = first_of(group); i < end_of(group); ++i) {
        const size_t node = level == 0 ? 0 : positions[i];
        const Key* line = level < inner  ? levels_[level].data() + node * kLine
                          : node == last ? levels_[inner].data()
                                         : keys_.data() + node * kLine;
        const size_t next = node * kLine + CountLess(line, queries[i]);
        positions[i] = static_cast<Position>(next);
        if (level < inner) {
          const Key* below = level + 1 == inner ? keys_.data() : levels_[level + 1].data();
          Prefetch(below + next * kLine);
        }
      }
    }
  }
}

template <typename Key>
uint64_t LineTree<Key>::memory_bytes() const {
  uint64_t bytes = 0;
  for (const auto& level : levels_) bytes += level.size() * sizeof(Key);
  return bytes;
}

template class LineTree<uint32_t>;
template class LineTree<uint64_t>;

}  // namespace cairn::bench
