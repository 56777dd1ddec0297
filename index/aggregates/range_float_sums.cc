#include "index/aggregates/range_float_sums.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstring>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "cairn/column.h"
#include "index/aggregates/batches.h"
#include "index/aggregates/lanes.h"
#include "index/aggregates/ranked_bits.h"
#include "index/keys/key_number.h"
#include "index/machine/aligned_buffer.h"
#include "index/machine/guard.h"
#include "index/machine/parallel.h"
#include "index/machine/prefetch.h"
#include "index/machine/status_macros.h"

namespace cairn {
namespace {

// Children per node of the tree.
constexpr size_t kFanOut = 16;

// The sum of numbers [begin, end) of kFanOut numbers. The others, masked as integers, become +0.
template <typename T>
double SumOfSome(const T* numbers, size_t begin, size_t end) {
  using Bits = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;
  const Bits* const before = LaneMasks<Bits, kFanOut>::First(begin);
  const Bits* const until = LaneMasks<Bits, kFanOut>::First(end);
  double lanes[4] = {};
  for (size_t i = 0; i < kFanOut; i += 4) {
    for (size_t lane = 0; lane < 4; ++lane) {
      const Bits mask = until[i + lane] & ~before[i + lane];
      const Bits bits = std::bit_cast<Bits>(numbers[i + lane]) & mask;
      lanes[lane] += static_cast<double>(std::bit_cast<T>(bits));
    }
  }
  return (lanes[0] + lanes[1]) + (lanes[2] + lanes[3]);
}

// An array of whole groups of kFanOut numbers, with zeros after the last one.
template <typename T>
AlignedBuffer<T> AggregateGroupsResult(size_t numbers) {
  AlignedBuffer<T> groups((numbers + kFanOut - 1) / kFanOut * kFanOut);
  std::fill(groups.begin() + numbers, groups.end(), T{0});
  return groups;
}

template <typename T>
class FloatSumsOf final : public RangeFloatSums {
 public:
  // gather(first, count, &some) appends the values of entries [first, first + count).
  template <typename Gather>
  absl::Status Fill(size_t entries, DataType type, bool nullable, int threads, Gather gather);

  void Sum(absl::Span<const Position> begin, absl::Span<const Position> end,
           absl::Span<FloatSum> sums) const override {
    AnswerRanges(
        begin.size(),
        [&](size_t i) {
          PrefetchAt(begin[i]);
          PrefetchAt(end[i]);
        },
        [&](size_t i) {
          if (begin[i] >= end[i]) {
            sums[i] = {};
            return;
          }
          sums[i] = {
              SumOf(begin[i], end[i]),
              nulls_ == 0 ? end[i] - begin[i] : present_.Rank(end[i]) - present_.Rank(begin[i])};
        });
  }

  uint64_t memory_bytes() const override {
    uint64_t bytes = values_.size() * sizeof(T) + (nulls_ == 0 ? 0 : present_.memory_bytes());
    for (const Level& level : levels_) bytes += level.sums.size() * 3 * sizeof(double);
    return bytes;
  }

 private:
  // A level of the tree, in whole groups: for each node the sum of its children, and the sums of
  // its group's nodes up to it and from it on. So each end of a range takes one read per level.
  struct Level {
    AlignedBuffer<double> sums, from_here, up_to_here;

    explicit Level(size_t nodes)
        : sums(AggregateGroupsResult<double>(nodes)),
          from_here(AggregateGroupsResult<double>(nodes)),
          up_to_here(AggregateGroupsResult<double>(nodes)) {}
    void Accumulate(size_t group) {
      double before = 0, behind = 0;
      for (size_t i = 0; i < kFanOut; ++i) {
        const size_t forth = group * kFanOut + i;
        const size_t back = group * kFanOut + (kFanOut - 1 - i);
        up_to_here[forth] = before += sums[forth];
        from_here[back] = behind += sums[back];
      }
    }
  };
  void PrefetchAt(size_t position) const {
    constexpr size_t kGroup = kFanOut - 1;
    if (nulls_ != 0) present_.PrefetchRank(position);
    PrefetchBytes(values_.data() + (position & ~kGroup), kFanOut * sizeof(T));
    position /= kFanOut;
    // Higher levels stay in a cache.
    for (size_t level = 0; level < std::min<size_t>(2, levels_.size()); ++level) {
      Prefetch(levels_[level].from_here.data() + position);
      Prefetch(levels_[level].up_to_here.data() + position);
      position /= kFanOut;
    }
  }

  double SumOf(size_t begin, size_t end) const {
    size_t first = begin / kFanOut;
    size_t last = end / kFanOut;
    size_t from = begin % kFanOut;
    size_t to = end % kFanOut;
    const T* const values = values_.data();
    if (first == last) return SumOfSome(values + first * kFanOut, from, to);
    double left = 0, right = 0;
    if (from != 0) left = SumOfSome(values + first * kFanOut, from, kFanOut);
    if (to != 0) right = SumOfSome(values + last * kFanOut, 0, to);
    begin = first + (from != 0 ? 1 : 0);
    end = last;
    for (const Level& level : levels_) {
      if (begin == end) break;
      first = begin / kFanOut;
      last = end / kFanOut;
      from = begin % kFanOut;
      to = end % kFanOut;
      if (first == last) return left + SumOfSome(&level.sums[first * kFanOut], from, to) + right;
      if (from != 0) left += level.from_here[begin];
      if (to != 0) right += level.up_to_here[end - 1];
      begin = first + (from != 0 ? 1 : 0);
      end = last;
    }
    return left + right;
  }

  AlignedBuffer<T> values_;  // 0 where null
  // the first is over groups of values_, each next one over groups of the level before
  std::vector<Level> levels_;
  RankedBits present_;  // used if there are nulls
  uint64_t nulls_ = 0;
};

template <typename T>
template <typename Gather>
absl::Status FloatSumsOf<T>::Fill(size_t entries, DataType type, bool nullable, int threads,
                                  Gather gather) {
  values_ = AggregateGroupsResult<T>(entries);
  if (nullable) present_ = RankedBits(entries);
  const size_t tasks = (entries + kEntriesPerTask - 1) / kEntriesPerTask;
  std::vector<absl::Status> statuses(tasks);
  std::vector<uint64_t> nulls(tasks);
  ParallelFor(threads, tasks, [&](size_t task) {
    const size_t first = task * kEntriesPerTask;
    const size_t count = std::min(kEntriesPerTask, entries - first);
    ColumnValues some(type);
    statuses[task] = gather(first, count, &some);
    if (!statuses[task].ok()) return;
    const absl::Span<const T> numbers = some.numbers<T>();
    std::copy(numbers.begin(), numbers.end(), values_.begin() + first);
    nulls[task] = some.null_count();
    for (size_t i = 0; nullable && i < count; i += 64) {
      uint64_t word = 0;
      for (size_t j = i; j < std::min(count, i + 64); ++j) {
        word |= static_cast<uint64_t>(!some.is_null(j)) << (j - i);
      }
      present_.SetWord((first + i) / 64, word);
    }
  });
  for (size_t task = 0; task < tasks; ++task) {
    RETURN_IF_ERROR(statuses[task]);
    nulls_ += nulls[task];
  }
  if (nullable) present_.Finish();

  // Builds levels up to a single node, the sum of all values, so that SumOf ends at some level for
  // every range.
  for (size_t nodes = values_.size() / kFanOut; nodes > 0;) {
    Level level(nodes);
    const Level* const below = levels_.empty() ? nullptr : &levels_.back();
    const size_t groups = level.sums.size() / kFanOut;
    constexpr size_t kGroupsPerTask = kEntriesPerTask / kFanOut;
    ParallelFor(threads, (groups + kGroupsPerTask - 1) / kGroupsPerTask, [&](size_t task) {
      const size_t end = std::min(groups, (task + 1) * kGroupsPerTask);
      for (size_t group = task * kGroupsPerTask; group < end; ++group) {
        for (size_t i = group * kFanOut; i < std::min(nodes, (group + 1) * kFanOut); ++i) {
          level.sums[i] = below == nullptr ? SumOfSome(values_.data() + i * kFanOut, 0, kFanOut)
                                           : SumOfSome(&below->sums[i * kFanOut], 0, kFanOut);
        }
        level.Accumulate(group);
      }
    });
    levels_.push_back(std::move(level));
    nodes = nodes == 1 ? 0 : groups;
  }
  return absl::OkStatus();
}

template <typename Gather>
absl::StatusOr<std::unique_ptr<const RangeFloatSums>> MakeFloatSums(size_t entries, DataType type,
                                                                    bool nullable, int threads,
                                                                    Gather gather) {
  const auto make = [&](auto sums) -> absl::StatusOr<std::unique_ptr<const RangeFloatSums>> {
    RETURN_IF_ERROR(sums->Fill(entries, type, nullable, threads, gather));
    return sums;
  };
  if (type == DataType::kF32) return make(std::make_unique<FloatSumsOf<float>>());
  return make(std::make_unique<FloatSumsOf<double>>());
}

absl::Status CheckFloats(std::string_view name, DataType type) {
  if (IsFloat(type)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrFormat("column '%s' is of %s, expected floats", name, DataTypeName(type)));
}

}  // namespace

absl::StatusOr<std::unique_ptr<const RangeFloatSums>> RangeFloatSums::Build(
    const ColumnTable& table, size_t column, absl::Span<const RowId> row_ids, int threads) try {
  if (column >= table.columns().size()) {
    ColumnValues none;
    return table.Gather(column, {}, &none);  // returns the error
  }
  const auto& [name, type] = table.columns()[column];
  RETURN_IF_ERROR(CheckFloats(name, type));
  return MakeFloatSums(row_ids.size(), type, table.null_count(column) != 0, threads,
                       [&](size_t first, size_t count, ColumnValues* some) {
                         return table.Gather(column, row_ids.subspan(first, count), some);
                       });
} catch (...) {
  return StatusOfException("summing a column");
}

absl::StatusOr<std::unique_ptr<const RangeFloatSums>> RangeFloatSums::Build(
    const ColumnValues& values, int threads) try {
  RETURN_IF_ERROR(CheckFloats("", values.type()));
  return MakeFloatSums(values.size(), values.type(), values.null_count() != 0, threads,
                       [&](size_t first, size_t count, ColumnValues* some) {
                         some->AppendFrom(values, first, count);
                         return absl::OkStatus();
                       });
} catch (...) {
  return StatusOfException("summing a column");
}

}  // namespace cairn
