#include "index/aggregates/range_extremes.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <utility>
#include <vector>

#include "index/aggregates/batches.h"
#include "index/aggregates/entry_values.h"
#include "index/aggregates/lanes.h"
#include "index/machine/aligned_buffer.h"
#include "index/machine/guard.h"
#include "index/machine/parallel.h"
#include "index/machine/prefetch.h"
#include "index/machine/status_macros.h"

namespace cairn {
namespace {

// Entries per block: about a cache line. That is few enough to compare them one by one if the
// target has no vector comparison.
template <typename T>
inline constexpr size_t kBlock = sizeof(T) == 8 ? 16 : kCacheLineBytes / sizeof(T);
constexpr size_t kGroup = 16;  // blocks

// The min of key(numbers[begin]) … key(numbers[end - 1]) of kLanes numbers; all ones if the range
// is empty.
template <size_t kLanes, typename T, typename KeyOf>
T LeastOf(const T* numbers, size_t begin, size_t end, KeyOf key) {
  const T* const before = LaneMasks<T, kLanes>::First(begin);
  const T* const until = LaneMasks<T, kLanes>::First(end);
  T least = static_cast<T>(~T{0});
#pragma GCC unroll 1  // GCC does not vectorize a loop that it unrolls completely
  for (size_t i = 0; i < kLanes; ++i) {
    const T outside = static_cast<T>(before[i] | static_cast<T>(~until[i]));
    least = std::min(least, static_cast<T>(key(numbers[i]) | outside));
  }
  return least;
}

// The first entry of [begin, end) that has this key; requires that there be one.
template <typename T, typename KeyOf>
size_t FirstWith(const T* numbers, size_t begin, size_t end, T wanted, KeyOf key) {
  size_t i = begin;
  while (i + 1 < end && key(numbers[i]) != wanted) ++i;
  return i;
}

// The extremes of blocks, and of groups of blocks, in one direction. Keys are such that the extreme
// is the lowest key.
template <typename T>
class Summary {
 public:
  // least(block, &offset) returns the lowest key of a block, and sets the offset of its first
  // occurrence.
  template <typename LeastOfBlock>
  Summary(size_t blocks, int threads, LeastOfBlock least)
      : keys_((blocks + kGroup - 1) / kGroup * kGroup),
        offsets_(blocks),
        group_keys_(keys_.size() / kGroup),
        group_positions_(keys_.size() / kGroup) {
    std::fill(keys_.begin() + blocks, keys_.end(), static_cast<T>(~T{0}));
    constexpr size_t kGroupsPerTask = kEntriesPerTask / kBlock<T> / kGroup;
    const size_t groups = group_keys_.size();
    ParallelFor(threads, (groups + kGroupsPerTask - 1) / kGroupsPerTask, [&](size_t task) {
      const size_t end = std::min(groups, (task + 1) * kGroupsPerTask);
      for (size_t group = task * kGroupsPerTask; group < end; ++group) {
        const size_t first = group * kGroup;
        for (size_t i = first; i < std::min(blocks, first + kGroup); ++i) {
          keys_[i] = least(i, &offsets_[i]);
        }
        const auto best = static_cast<size_t>(
            std::min_element(&keys_[first], &keys_[first] + kGroup) - &keys_[0]);
        group_keys_[group] = keys_[best];
        group_positions_[group] = PositionIn(best);
      }
    });
    BuildTable();
  }

  void Prefetch(size_t block) const { cairn::Prefetch(keys_.data() + block); }

  // The lowest key of some blocks. It occurs first in blocks [begin, end), which are in one group.
  struct Found {
    T key;
    size_t begin;
    size_t end;
  };

  // The first occurrence of the lowest key in blocks [begin, end); requires at least one block.
  Found Least(size_t begin, size_t end) const {
    const size_t first = begin / kGroup;
    const size_t last = end / kGroup;
    if (first == last) return {LeastInGroup(first, begin % kGroup, end % kGroup), begin, end};
    Found found = {LeastInGroup(first, begin % kGroup, kGroup), begin, (first + 1) * kGroup};
    if (first + 1 < last) {
      const size_t group = LeastGroup(first + 1, last);
      if (group_keys_[group] < found.key) {
        found = {group_keys_[group], group * kGroup, (group + 1) * kGroup};
      }
    }
    if (end % kGroup != 0) {
      const T key = LeastInGroup(last, 0, end % kGroup);
      if (key < found.key) found = {key, last * kGroup, end};
    }
    return found;
  }

  Position PositionOf(const Found& found) const {
    if (found.end - found.begin == kGroup) return group_positions_[found.begin / kGroup];
    return PositionIn(FirstWith(keys_.data(), found.begin, found.end, found.key, kSame));
  }

  uint64_t memory_bytes() const {
    uint64_t bytes = keys_.size() * (sizeof(T) + 1) + group_keys_.size() * (sizeof(T) + 4);
    for (const std::vector<uint32_t>& level : table_) bytes += level.size() * sizeof(uint32_t);
    return bytes;
  }

 private:
  static constexpr auto kSame = [](T key) { return key; };

  Position PositionIn(size_t block) const {
    const size_t offset = block < offsets_.size() ? offsets_[block] : 0;
    return static_cast<Position>(block * kBlock<T> + offset);
  }

  T LeastInGroup(size_t group, size_t begin, size_t end) const {
    return LeastOf<kGroup>(&keys_[group * kGroup], begin, end, kSame);
  }

  // table_[k][i] is the group with the first lowest key among groups [i, i + 2^(k + 1)).
  void BuildTable() {
    const size_t groups = group_keys_.size();
    const auto better = [&](uint32_t a, uint32_t b) {
      return group_keys_[b] < group_keys_[a] ? b : a;
    };
    for (size_t width = 2; width <= groups; width *= 2) {
      std::vector<uint32_t> level(groups - width + 1);
      for (size_t i = 0; i < level.size(); ++i) {
        const size_t right = i + width / 2;
        level[i] = table_.empty() ? better(static_cast<uint32_t>(i), static_cast<uint32_t>(right))
                                  : better(table_.back()[i], table_.back()[right]);
      }
      table_.push_back(std::move(level));
    }
  }

  size_t LeastGroup(size_t begin, size_t end) const {
    const auto log2 = static_cast<size_t>(std::bit_width(end - begin)) - 1;
    if (log2 == 0) return begin;
    const std::vector<uint32_t>& level = table_[log2 - 1];
    const size_t a = level[begin];
    const size_t b = level[end - (size_t{1} << log2)];
    return group_keys_[b] < group_keys_[a] ? b : a;
  }

  AlignedBuffer<T> keys_;           // of blocks, padded to whole groups
  AlignedBuffer<uint8_t> offsets_;  // offset of each key in its block
  AlignedBuffer<T> group_keys_;     // of groups
  AlignedBuffer<uint32_t> group_positions_;
  std::vector<std::vector<uint32_t>> table_;
};

// Values of sizeof(T) bytes: codes, which are differences from the lowest value. If there are
// nulls, the codes of values are one more, and null is 0.
template <typename T, bool kNulls>
class ExtremesOf final : public RangeExtremes {
 public:
  ExtremesOf(const EntryValues& values, int threads)
      : entries_(values.numbers.size()),
        codes_(MakeCodes(values, threads)),
        least_(Blocks(), threads, LeastOfBlock<LeastFirst>()),
        greatest_(Blocks(), threads, LeastOfBlock<GreatestFirst>()) {}

  void Find(Extreme extreme, absl::Span<const Position> begin, absl::Span<const Position> end,
            absl::Span<Position> found) const override {
    if (extreme == Extreme::kMin) {
      FindAll<LeastFirst>(least_, begin, end, found);
    } else {
      FindAll<GreatestFirst>(greatest_, begin, end, found);
    }
  }

  uint64_t Code(Position position) const override { return codes_[position]; }

  uint64_t memory_bytes() const override {
    return codes_.size() * sizeof(T) + least_.memory_bytes() + greatest_.memory_bytes();
  }

 private:
  static constexpr size_t kEntries = kBlock<T>;

  // Keys for which the extreme is the lowest; null is all ones.
  struct LeastFirst {
    T operator()(T code) const { return static_cast<T>(code - (kNulls ? 1 : 0)); }
  };
  struct GreatestFirst {
    T operator()(T code) const { return static_cast<T>(~code); }
  };

  size_t Blocks() const { return (entries_ + kEntries - 1) / kEntries; }

  static AlignedBuffer<T> MakeCodes(const EntryValues& values, int threads) {
    const size_t entries = values.numbers.size();
    AlignedBuffer<T> codes((entries + kEntries - 1) / kEntries * kEntries);
    std::fill(codes.begin() + entries, codes.end(), T{0});
    ParallelFor(threads, (entries + kEntriesPerTask - 1) / kEntriesPerTask, [&](size_t task) {
      const size_t end = std::min(entries, (task + 1) * kEntriesPerTask);
      for (size_t i = task * kEntriesPerTask; i < end; ++i) {
        const uint64_t code = values.numbers[i] - values.least + (kNulls ? 1 : 0);
        codes[i] = static_cast<T>(kNulls && values.is_null(i) ? 0 : code);
      }
    });
    return codes;
  }

  template <typename KeyOf>
  auto LeastOfBlock() const {
    return [this](size_t block, uint8_t* offset) {
      const T* const codes = &codes_[block * kEntries];
      const size_t count = std::min(kEntries, entries_ - block * kEntries);
      const T least = LeastOf<kEntries>(codes, 0, count, KeyOf());
      *offset = static_cast<uint8_t>(FirstWith(codes, 0, count, least, KeyOf()));
      return least;
    };
  }

  void PrefetchCodes(const Summary<T>& summary, size_t position) const {
    const size_t block = position / kEntries;
    Prefetch(codes_.data() + block * kEntries);
    if constexpr (kEntries * sizeof(T) > kCacheLineBytes) {
      Prefetch(codes_.data() + block * kEntries + kCacheLineBytes / sizeof(T));
    }
    summary.Prefetch(block);
  }

  template <typename KeyOf>
  void FindAll(const Summary<T>& summary, absl::Span<const Position> begin,
               absl::Span<const Position> end, absl::Span<Position> found) const {
    AnswerRanges(
        begin.size(),
        [&](size_t i) {
          PrefetchCodes(summary, begin[i]);
          PrefetchCodes(summary, end[i]);
        },
        [&](size_t i) {
          found[i] = begin[i] < end[i] ? FindOne<KeyOf>(summary, begin[i], end[i]) : kNoPosition;
        });
  }

  template <typename KeyOf>
  Position FindOne(const Summary<T>& summary, size_t begin, size_t end) const {
    constexpr T kNothing = static_cast<T>(~T{0});
    const size_t first = begin / kEntries;
    const size_t last = end / kEntries;
    const T* const left = &codes_[first * kEntries];
    const size_t left_end = first == last ? end % kEntries : kEntries;
    T least = LeastOf<kEntries>(left, begin % kEntries, left_end, KeyOf());
    // Which of the three it is, and its position, is found once.
    enum { kLeft, kMiddle, kRight } where = kLeft;
    typename Summary<T>::Found middle = {};
    if (first + 1 < last) {
      middle = summary.Least(first + 1, last);
      if (middle.key < least) {
        least = middle.key;
        where = kMiddle;
      }
    }
    if (first != last && end % kEntries != 0) {
      const T key = LeastOf<kEntries>(&codes_[last * kEntries], 0, end % kEntries, KeyOf());
      if (key < least) {
        least = key;
        where = kRight;
      }
    }
    if (kNulls && least == kNothing) return kNoPosition;
    if (where == kMiddle) return summary.PositionOf(middle);
    if (where == kRight) {
      return static_cast<Position>(
          last * kEntries + FirstWith(&codes_[last * kEntries], 0, end % kEntries, least, KeyOf()));
    }
    return static_cast<Position>(first * kEntries +
                                 FirstWith(left, begin % kEntries, left_end, least, KeyOf()));
  }

  const size_t entries_;
  const AlignedBuffer<T> codes_;  // padded to whole blocks
  const Summary<T> least_;
  const Summary<T> greatest_;
};

template <typename T>
std::unique_ptr<const RangeExtremes> MakeExtremes(const EntryValues& values, int threads) {
  if (values.nulls == 0) return std::make_unique<ExtremesOf<T, false>>(values, threads);
  return std::make_unique<ExtremesOf<T, true>>(values, threads);
}

// Replaces the values by their ranks, if they leave no number free for null.
void MakeRanks(EntryValues* values) {
  std::vector<uint64_t> distinct;
  for (size_t i = 0; i < values->numbers.size(); ++i) {
    if (!values->is_null(i)) distinct.push_back(values->numbers[i]);
  }
  std::sort(distinct.begin(), distinct.end());
  distinct.erase(std::unique(distinct.begin(), distinct.end()), distinct.end());
  for (size_t i = 0; i < values->numbers.size(); ++i) {
    if (values->is_null(i)) continue;
    values->numbers[i] = static_cast<uint64_t>(
        std::lower_bound(distinct.begin(), distinct.end(), values->numbers[i]) - distinct.begin());
  }
  values->least = 0;
  values->most = distinct.size() - 1;
}

std::unique_ptr<const RangeExtremes> ExtremesOfEntries(EntryValues values, int threads) {
  if (values.least > values.most) values.least = values.most = 0;
  if (values.nulls != 0 && values.most - values.least == UINT64_MAX) MakeRanks(&values);
  const uint64_t range = values.most - values.least + (values.nulls == 0 ? 0 : 1);
  if (range <= UINT8_MAX) return MakeExtremes<uint8_t>(values, threads);
  if (range <= UINT16_MAX) return MakeExtremes<uint16_t>(values, threads);
  if (range <= UINT32_MAX) return MakeExtremes<uint32_t>(values, threads);
  return MakeExtremes<uint64_t>(values, threads);
}

}  // namespace

absl::StatusOr<std::unique_ptr<const RangeExtremes>> RangeExtremes::Build(
    const ColumnTable& table, size_t column, absl::Span<const RowId> row_ids, int threads) try {
  ASSIGN_OR_RETURN(EntryValues values, GatherEntries(table, column, row_ids, threads));
  return ExtremesOfEntries(std::move(values), threads);
} catch (...) {
  return StatusOfException("finding extremes of a column");
}

absl::StatusOr<std::unique_ptr<const RangeExtremes>> RangeExtremes::Build(
    const ColumnValues& values, int threads) try {
  ASSIGN_OR_RETURN(EntryValues ordered, OrderEntries(values, threads));
  return ExtremesOfEntries(std::move(ordered), threads);
} catch (...) {
  return StatusOfException("finding extremes of a column");
}

}  // namespace cairn
