#include "engine/delta/row_positions.h"

#include <algorithm>
#include <atomic>
#include <vector>

#include "absl/strings/str_format.h"
#include "index/machine/parallel.h"

namespace cairn {
namespace {

// Entries or rows per task.
constexpr size_t kGrain = size_t{1} << 20;

// Calls body(begin, end) for parts of [0, size), on several threads.
template <typename Body>
void ForEachGrain(int threads, size_t size, Body body) {
  ParallelFor(threads, (size + kGrain - 1) / kGrain,
              [&](size_t grain) { body(grain * kGrain, std::min(size, (grain + 1) * kGrain)); });
}

std::atomic_ref<uint32_t> Shared(uint32_t& value) {
  return std::atomic_ref<uint32_t>(value);
}

}  // namespace

absl::StatusOr<std::shared_ptr<const RowPositions>> RowPositions::Build(const SortedRun& run,
                                                                        uint64_t rows,
                                                                        int threads) {
  std::atomic<uint64_t> bad{run.size()};
  ForEachGrain(threads, run.size(), [&](size_t begin, size_t end) {
    for (size_t p = begin; p < end; ++p) {
      if (run.row_ids()[p] >= rows) bad.store(p, std::memory_order_relaxed);
    }
  });
  if (const uint64_t p = bad.load(); p < run.size()) {
    return absl::DataLossError(absl::StrFormat(
        "entry %d of the base has row id %d, expected less than %d", p, run.row_ids()[p], rows));
  }
  auto positions = std::make_shared<RowPositions>();
  if (!positions->Single(run, rows, threads)) positions->Several(run, rows, threads);
  return std::shared_ptr<const RowPositions>(std::move(positions));
}

bool RowPositions::Single(const SortedRun& run, uint64_t rows, int threads) {
  positions_ = AlignedBuffer<Position>(rows);
  ForEachGrain(threads, rows, [&](size_t begin, size_t end) {
    std::fill(positions_.begin() + begin, positions_.begin() + end, kNone);
  });
  std::atomic<bool> single{true};
  ForEachGrain(threads, run.size(), [&](size_t begin, size_t end) {
    for (size_t p = begin; p < end && single.load(std::memory_order_relaxed); ++p) {
      // Two threads may store positions of the same row. Then one of them sees the other's
      // position, or the count below reveals the lost one.
      std::atomic_ref<uint32_t> position = Shared(positions_[run.row_ids()[p]]);
      if (position.load(std::memory_order_relaxed) != kNone) {
        single.store(false, std::memory_order_relaxed);
      }
      position.store(static_cast<Position>(p), std::memory_order_relaxed);
    }
  });
  if (!single.load()) return false;
  std::atomic<uint64_t> present{0};
  ForEachGrain(threads, rows, [&](size_t begin, size_t end) {
    uint64_t count = 0;
    for (size_t row = begin; row < end; ++row) count += positions_[row] != kNone;
    present.fetch_add(count);
  });
  return present.load() == run.size();
}

void RowPositions::Several(const SortedRun& run, uint64_t rows, int threads) {
  // First ends_ has counts, then the start of each row. Storing a row's positions moves its value
  // from the start to the end.
  positions_ = AlignedBuffer<Position>(run.size());
  ends_ = AlignedBuffer<uint32_t>(rows);
  ForEachGrain(threads, rows, [&](size_t begin, size_t end) {
    std::fill(ends_.begin() + begin, ends_.begin() + end, 0);
  });
  const auto for_each_entry = [&](auto body) {
    ForEachGrain(threads, run.size(), [&](size_t begin, size_t end) {
      for (size_t p = begin; p < end; ++p) body(p, Shared(ends_[run.row_ids()[p]]));
    });
  };
  for_each_entry([](size_t, auto end) { end.fetch_add(1, std::memory_order_relaxed); });
  uint32_t begin = 0;
  for (uint32_t& end : ends_) begin += std::exchange(end, begin);
  for_each_entry([&](size_t p, auto end) {
    positions_[end.fetch_add(1, std::memory_order_relaxed)] = static_cast<Position>(p);
  });
  ForEachGrain(threads, rows, [&](size_t first, size_t last) {
    for (size_t row = first; row < last; ++row) {
      const uint32_t from = row == 0 ? 0 : ends_[row - 1];
      if (ends_[row] - from > 1) std::sort(&positions_[from], positions_.data() + ends_[row]);
    }
  });
}

}  // namespace cairn
