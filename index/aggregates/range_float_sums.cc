#include "index/aggregates/range_float_sums.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstring>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "cairn/columns/column_values.h"
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

// Numbers below one of the tree.
constexpr size_t kFanOut = 16;

// The sum of numbers [begin, end) of kFanOut, whatever the others are: as integers they become +0.
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

// An array of whole groups of kFanOut, zeros behind the last number.
template <typename T>
AlignedBuffer<T> Groups(size_t numbers) {
  AlignedBuffer<T> groups((numbers + kFanOut - 1) / kFanOut * kFanOut);
  std::fill(groups.begin() + numbers, groups.end(), T{0});
  return groups;
}

template <typename T>
class FloatSumsOf final : public RangeFloatSums {
 public:
  absl::Status Fill(const ColumnTable& table, size_t column, absl::Span<const RowId> row_ids,
                    int threads);

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
    for (const AlignedBuffer<double>& sums : levels_) bytes += sums.size() * sizeof(double);
    return bytes;
  }

 private:
  void PrefetchAt(size_t position) const {
    constexpr size_t kGroup = kFanOut - 1;
    if (nulls_ != 0) present_.PrefetchRank(position);
    PrefetchBytes(values_.data() + (position & ~kGroup), kFanOut * sizeof(T));
    position /= kFanOut;
    // Those above stay in a cache.
    for (size_t level = 0; level < std::min<size_t>(2, levels_.size()); ++level) {
      PrefetchBytes(levels_[level].data() + (position & ~kGroup), kFanOut * sizeof(double));
      position /= kFanOut;
    }
  }

  double SumOf(size_t begin, size_t end) const {
    double sum = 0;
    if (Level(values_.data(), &begin, &end, &sum)) return sum;
    for (const AlignedBuffer<double>& sums : levels_) {
      if (Level(sums.data(), &begin, &end, &sum)) break;
    }
    return sum;
  }

  // Adds what of [*begin, *end) the level above has not, and makes them positions there. Whether
  // that was all.
  template <typename Number>
  static bool Level(const Number* numbers, size_t* begin, size_t* end, double* sum) {
    const size_t first = *begin / kFanOut;
    const size_t last = *end / kFanOut;
    if (first == last) {
      *sum += SumOfSome(numbers + first * kFanOut, *begin % kFanOut, *end % kFanOut);
      return true;
    }
    const size_t from = *begin % kFanOut;
    if (from != 0) *sum += SumOfSome(numbers + first * kFanOut, from, kFanOut);
    const size_t to = *end % kFanOut;
    if (to != 0) *sum += SumOfSome(numbers + last * kFanOut, 0, to);
    *begin = first + (from != 0 ? 1 : 0);
    *end = last;
    return *begin == *end;
  }

  AlignedBuffer<T> values_;                    // 0 where null
  std::vector<AlignedBuffer<double>> levels_;  // levels_[0][i] is the sum of values_ group i, …
  RankedBits present_;                         // in use where there are nulls
  uint64_t nulls_ = 0;
};

template <typename T>
absl::Status FloatSumsOf<T>::Fill(const ColumnTable& table, size_t column,
                                  absl::Span<const RowId> row_ids, int threads) {
  const size_t entries = row_ids.size();
  values_ = Groups<T>(entries);
  const bool nullable = table.null_count(column) != 0;
  if (nullable) present_ = RankedBits(entries);
  const size_t tasks = (entries + kEntriesPerTask - 1) / kEntriesPerTask;
  std::vector<absl::Status> statuses(tasks);
  std::vector<uint64_t> nulls(tasks);
  ParallelFor(threads, tasks, [&](size_t task) {
    const size_t first = task * kEntriesPerTask;
    const size_t count = std::min(kEntriesPerTask, entries - first);
    ColumnValues some(table.columns()[column].type);
    statuses[task] = table.Gather(column, row_ids.subspan(first, count), &some);
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

  // Up to the one that is the sum of all, so that every range ends at some level.
  for (size_t nodes = values_.size() / kFanOut; nodes > 0;) {
    AlignedBuffer<double> sums = Groups<double>(nodes);
    const AlignedBuffer<double>* const below = levels_.empty() ? nullptr : &levels_.back();
    ParallelFor(threads, (nodes + kEntriesPerTask - 1) / kEntriesPerTask, [&](size_t task) {
      const size_t end = std::min(nodes, (task + 1) * kEntriesPerTask);
      for (size_t i = task * kEntriesPerTask; i < end; ++i) {
        sums[i] = below == nullptr ? SumOfSome(values_.data() + i * kFanOut, 0, kFanOut)
                                   : SumOfSome(below->data() + i * kFanOut, 0, kFanOut);
      }
    });
    levels_.push_back(std::move(sums));
    nodes = nodes == 1 ? 0 : levels_.back().size() / kFanOut;
  }
  return absl::OkStatus();
}

template <typename T>
absl::StatusOr<std::unique_ptr<const RangeFloatSums>> MakeFloatSums(const ColumnTable& table,
                                                                    size_t column,
                                                                    absl::Span<const RowId> row_ids,
                                                                    int threads) {
  auto sums = std::make_unique<FloatSumsOf<T>>();
  RETURN_IF_ERROR(sums->Fill(table, column, row_ids, threads));
  return sums;
}

}  // namespace

absl::StatusOr<std::unique_ptr<const RangeFloatSums>> RangeFloatSums::Build(
    const ColumnTable& table, size_t column, absl::Span<const RowId> row_ids, int threads) try {
  if (column >= table.columns().size()) {
    ColumnValues none;
    return table.Gather(column, {}, &none);  // says so
  }
  const KeyType type = table.columns()[column].type;
  if (type == KeyType::kF32) return MakeFloatSums<float>(table, column, row_ids, threads);
  if (type == KeyType::kF64) return MakeFloatSums<double>(table, column, row_ids, threads);
  return absl::InvalidArgumentError(absl::StrFormat(
      "column '%s' is of %s, expected floats", table.columns()[column].name, KeyTypeName(type)));
} catch (...) {
  return StatusOfException("summing a column");
}

}  // namespace cairn
