#include "index/aggregates/range_sums.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "absl/strings/str_format.h"
#include "index/aggregates/batches.h"
#include "index/aggregates/entry_values.h"
#include "index/aggregates/lanes.h"
#include "index/keys/key_number.h"
#include "index/machine/aligned_buffer.h"
#include "index/machine/guard.h"
#include "index/machine/parallel.h"
#include "index/machine/prefetch.h"
#include "index/machine/status_macros.h"

namespace cairn {
namespace {

__extension__ using Wide = unsigned __int128;
__extension__ using SignedWide = __int128;

// The sum of the first i of a block's values; the others have no effect. GCC does not vectorize
// loops that it unrolls completely.
template <typename T, size_t kLanes>
Wide SumOfFirst(const T* values, size_t i) {
  const T* const mask = LaneMasks<T, kLanes>::First(i);
  if constexpr (sizeof(T) == 8) {
    uint64_t low = 0, high = 0;
#pragma GCC unroll 1
    for (size_t j = 0; j < kLanes; ++j) {
      const uint64_t value = values[j] & mask[j];
      low += value & UINT32_MAX;
      high += value >> 32;
    }
    return (Wide{high} << 32) + low;
  } else {
    using Total = std::conditional_t<sizeof(T) == 4, uint64_t, uint32_t>;
    Total sum = 0;
#pragma GCC unroll 1
    for (size_t j = 0; j < kLanes; ++j) sum += static_cast<T>(values[j] & mask[j]);
    return sum;
  }
}

// Values of sizeof(T) bytes, in blocks of a cache line. A block has the sum of the blocks before
// it, its values, and a bit per value if there are nulls.
template <typename T, bool kNulls>
class SumsOf final : public RangeSums {
 public:
  // `base` is added to every value.
  SumsOf(const EntryValues& values, SignedWide base, int threads);

  void Sum(absl::Span<const Position> begin, absl::Span<const Position> end,
           absl::Span<IntegerSum> sums) const override {
    AnswerRanges(
        begin.size(),
        [&](size_t i) {
          PrefetchBlock(begin[i] / kEntries);
          PrefetchBlock(end[i] / kEntries);
        },
        [&](size_t i) { sums[i] = SumOf(begin[i], end[i]); });
  }

  uint64_t memory_bytes() const override { return blocks_.size() * sizeof(Block); }

 private:
  static constexpr size_t kEntries = kCacheLineBytes / sizeof(T);

  struct Present {
    uint64_t bits;
  };
  struct NoPresent {};
  struct Block : std::conditional_t<kNulls, Present, NoPresent> {
    // The sum of the blocks before: 2^32 entries of 2^64 each need 96 bits.
    uint64_t sum_low;
    uint32_t sum_high;
    uint32_t count;
    T values[kEntries];
  };

  // Prefetches the two or three cache lines of a block, without a branch.
  void PrefetchBlock(size_t i) const {
    const char* const block = reinterpret_cast<const char*>(&blocks_[i]);
    Prefetch(block);
    if constexpr (kNulls) Prefetch(block + kCacheLineBytes);
    Prefetch(block + sizeof(Block) - 1);
  }

  struct Before {
    Wide sum;
    uint64_t count;
  };
  Before At(Position position) const {
    const Block& block = blocks_[position / kEntries];
    const size_t i = position % kEntries;
    const Wide sum =
        (Wide{block.sum_high} << 64 | block.sum_low) + SumOfFirst<T, kEntries>(block.values, i);
    if constexpr (kNulls) {
      const uint64_t bits = block.bits & ((uint64_t{1} << i) - 1);
      return {sum, block.count + static_cast<uint64_t>(std::popcount(bits))};
    } else {
      return {sum, position};
    }
  }

  IntegerSum SumOf(Position begin, Position end) const {
    if (begin >= end) return {};
    const Before from = At(begin);
    const Before to = At(end);
    const uint64_t count = to.count - from.count;
    const SignedWide sum = static_cast<SignedWide>(to.sum - from.sum) + base_ * count;
    return {absl::MakeInt128(static_cast<int64_t>(sum >> 64), static_cast<uint64_t>(sum)), count};
  }

  void FillBlock(const EntryValues& values, size_t i);

  const SignedWide base_;
  AlignedBuffer<Block> blocks_;  // one more than the values need, so that each end has one
};

template <typename T, bool kNulls>
SumsOf<T, kNulls>::SumsOf(const EntryValues& values, SignedWide base, int threads)
    : base_(base), blocks_(values.numbers.size() / kEntries + 1) {
  constexpr size_t kBlocksPerTask = kEntriesPerTask / kEntries;
  ParallelFor(threads, (blocks_.size() + kBlocksPerTask - 1) / kBlocksPerTask, [&](size_t task) {
    const size_t end = std::min(blocks_.size(), (task + 1) * kBlocksPerTask);
    for (size_t i = task * kBlocksPerTask; i < end; ++i) FillBlock(values, i);
  });
  // Replaces each block's own sum and count by those of the blocks before it.
  Wide sum = 0;
  uint32_t count = 0;
  for (Block& block : blocks_) {
    const Wide own = Wide{block.sum_high} << 64 | block.sum_low;
    block.sum_low = static_cast<uint64_t>(sum);
    block.sum_high = static_cast<uint32_t>(sum >> 64);
    count += std::exchange(block.count, count);
    sum += own;
  }
}

// Sets a block's values, and their sum and count.
template <typename T, bool kNulls>
void SumsOf<T, kNulls>::FillBlock(const EntryValues& values, size_t i) {
  Block& block = blocks_[i];
  std::memset(static_cast<void*>(&block), 0, sizeof block);
  const size_t first = i * kEntries;
  const size_t count = std::min(kEntries, values.numbers.size() - first);
  uint64_t present = 0;
  for (size_t j = 0; j < count; ++j) {
    if (values.is_null(first + j)) continue;
    block.values[j] = static_cast<T>(values.numbers[first + j] - values.least);
    present |= uint64_t{1} << j;
  }
  if constexpr (kNulls) block.bits = present;
  const Wide sum = SumOfFirst<T, kEntries>(block.values, count);
  block.sum_low = static_cast<uint64_t>(sum);
  block.sum_high = static_cast<uint32_t>(sum >> 64);
  block.count = static_cast<uint32_t>(std::popcount(present));
}

// All values are equal, and none is null.
class EqualSums final : public RangeSums {
 public:
  explicit EqualSums(SignedWide value) : value_(value) {}
  void Sum(absl::Span<const Position> begin, absl::Span<const Position> end,
           absl::Span<IntegerSum> sums) const override {
    for (size_t i = 0; i < begin.size(); ++i) {
      const uint64_t count = begin[i] < end[i] ? end[i] - begin[i] : 0;
      const SignedWide sum = value_ * count;
      sums[i] = {absl::MakeInt128(static_cast<int64_t>(sum >> 64), static_cast<uint64_t>(sum)),
                 count};
    }
  }
  uint64_t memory_bytes() const override { return 0; }

 private:
  const SignedWide value_;
};

template <typename T>
std::unique_ptr<const RangeSums> MakeSums(const EntryValues& values, SignedWide base, int threads) {
  if (values.nulls == 0) return std::make_unique<SumsOf<T, false>>(values, base, threads);
  return std::make_unique<SumsOf<T, true>>(values, base, threads);
}

// Sums of values of this type.
std::unique_ptr<const RangeSums> SumsOfEntries(EntryValues values, DataType type, int threads) {
  const bool empty = values.least > values.most;
  if (empty) values.least = 0;
  const uint64_t range = empty ? 0 : values.most - values.least;
  const SignedWide base = empty ? 0
                          : IsSigned(type)
                              ? SignedWide{static_cast<int64_t>(values.least ^ uint64_t{1} << 63)}
                              : SignedWide{values.least};
  if (range == 0 && values.nulls == 0) return std::make_unique<EqualSums>(base);
  if (range <= UINT8_MAX) return MakeSums<uint8_t>(values, base, threads);
  if (range <= UINT16_MAX) return MakeSums<uint16_t>(values, base, threads);
  if (range <= UINT32_MAX) return MakeSums<uint32_t>(values, base, threads);
  return MakeSums<uint64_t>(values, base, threads);
}

absl::Status CheckIntegers(std::string_view name, DataType type) {
  if (IsUnsigned(type) || IsSigned(type)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrFormat("column '%s' is of %s, expected integers", name, DataTypeName(type)));
}

}  // namespace

absl::StatusOr<std::unique_ptr<const RangeSums>> RangeSums::Build(const ColumnTable& table,
                                                                  size_t column,
                                                                  absl::Span<const RowId> row_ids,
                                                                  int threads) try {
  if (column < table.columns().size()) {
    RETURN_IF_ERROR(CheckIntegers(table.columns()[column].name, table.columns()[column].type));
  }
  ASSIGN_OR_RETURN(EntryValues values, GatherEntries(table, column, row_ids, threads));
  return SumsOfEntries(std::move(values), table.columns()[column].type, threads);
} catch (...) {
  return StatusOfException("summing a column");
}

absl::StatusOr<std::unique_ptr<const RangeSums>> RangeSums::Build(const ColumnValues& values,
                                                                  int threads) try {
  RETURN_IF_ERROR(CheckIntegers("", values.type()));
  ASSIGN_OR_RETURN(EntryValues ordered, OrderEntries(values, threads));
  return SumsOfEntries(std::move(ordered), values.type(), threads);
} catch (...) {
  return StatusOfException("summing a column");
}

absl::StatusOr<std::unique_ptr<const RangeSums>> RangeSums::BuildCounts(
    const ColumnTable& table, size_t column, absl::Span<const RowId> row_ids, int threads) try {
  ASSIGN_OR_RETURN(EntryValues values, GatherPresent(table, column, row_ids, threads));
  return SumsOfEntries(std::move(values), DataType::kU8, threads);
} catch (...) {
  return StatusOfException("counting a column's values");
}

absl::StatusOr<std::unique_ptr<const RangeSums>> RangeSums::BuildCounts(const ColumnValues& values,
                                                                        int threads) try {
  return SumsOfEntries(PresentOf(values, threads), DataType::kU8, threads);
} catch (...) {
  return StatusOfException("counting a column's values");
}

}  // namespace cairn
