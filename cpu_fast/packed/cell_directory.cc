#include "cpu_fast/packed/cell_directory.h"

#include <algorithm>
#include <atomic>
#include <limits>
#include <vector>

#include "index/machine/parallel.h"
#include "index/machine/topology.h"

namespace cairn {
namespace {

// Separators that one task looks at.
constexpr size_t kGrain = size_t{1} << 16;

// The least distance between separators kSeparators apart, as coordinates; 0 where separators
// descend.
template <typename Key>
Key LeastSpan(absl::Span<const Key> separators, const CellScale<Key>& scale, int threads) {
  constexpr size_t kApart = Cell::kSeparators;
  constexpr Key kGreatest = std::numeric_limits<Key>::max();
  const size_t size = separators.size();
  const size_t tasks = (size + kGrain - 1) / kGrain;
  std::vector<Key> least(tasks, kGreatest);
  ParallelFor(threads, tasks, [&](size_t task) {
    const size_t first = task * kGrain, end = std::min(first + kGrain, size);
    bool descend = false;
    for (size_t i = std::max<size_t>(first, 1); i < end; ++i) {
      descend |= separators[i] < separators[i - 1];
    }
    Key span = descend ? 0 : kGreatest;
    for (size_t i = std::max(first, kApart); i < end; ++i) {
      span = std::min(span, static_cast<Key>(separators[i] - separators[i - kApart]));
    }
    least[task] = span;
  });
  const Key span = *std::min_element(least.begin(), least.end());
  return span == kGreatest ? span : static_cast<Key>(span << scale.shift);
}

}  // namespace

template <typename Key>
std::optional<CellDirectory<Key>> CellDirectory<Key>::Build(absl::Span<const Key> separators,
                                                            bool exact, int threads) {
  constexpr Key kGreatest = std::numeric_limits<Key>::max();
  constexpr int kKeyBits = static_cast<int>(sizeof(Key)) * 8;
  if (separators.empty()) return std::nullopt;
  CellDirectory directory;
  CellScale<Key>& scale = directory.scale_;
  // All keys up to the first separator are one to a search, and all behind the last one.
  scale.low = separators.front();
  scale.high = separators.back() == kGreatest ? kGreatest : separators.back() + 1;
  const Key width = static_cast<Key>(scale.high - scale.low);
  if (width == 0) return std::nullopt;
  while ((width << scale.shift >> (kKeyBits - 1) & 1) == 0) ++scale.shift;

  // Separators kSeparators apart must fall in different cells: no cell then holds more.
  const Key span = LeastSpan(separators, scale, threads);
  if (span == 0) return std::nullopt;
  // Compared before 1 is added: with 64-bit keys and a span of 1 the sum is beyond 64 bits.
  const uint64_t most_cells = separators.size() / kMinFill + 64;
  if (kGreatest / span >= most_cells) return std::nullopt;
  uint64_t cells = uint64_t{kGreatest / span} + 1;
  if (exact) {
    const int bits = kKeyBits - 16 - scale.shift;
    if (bits > 32) return std::nullopt;
    cells = std::max(cells, bits <= 0 ? 1 : uint64_t{1} << bits);
  }
  if (cells > most_cells) return std::nullopt;
  scale.multiplier = cells;

  directory.cells_ = AlignedBuffer<Cell>(scale.PlaceOf(scale.high).cell + size_t{1});
  Topology::Get().InterleaveMemory(directory.cells_.data(), directory.memory_bytes());
  const auto begin_cells = [&](size_t first_cell, size_t end_cell, size_t first) {
    for (size_t c = first_cell; c < end_cell; ++c) {
      Cell& cell = directory.cells_[c];
      cell.first = static_cast<uint32_t>(first);
      std::fill_n(cell.separators, Cell::kSeparators, UINT16_MAX);
    }
  };
  const size_t size = separators.size();
  std::atomic<bool> refused = false;
  // A task fills the cells whose first separator is one of its own, and the empty ones before each.
  ParallelFor(threads, (size + kGrain - 1) / kGrain, [&](size_t task) {
    const auto place = [&](size_t i) { return scale.PlaceOf(separators[i]); };
    size_t i = task * kGrain;
    const size_t end = std::min(i + kGrain, size);
    while (i > 0 && i < end && place(i).cell == place(i - 1).cell) ++i;
    while (i < end) {
      const size_t first = i, cell = place(i).cell;
      begin_cells(i == 0 ? 0 : place(i - 1).cell + size_t{1}, cell + 1, i);
      size_t ties = 0;
      for (; i < size && place(i).cell == cell; ++i) {
        const uint16_t step = place(i).step;
        directory.cells_[cell].separators[i - first] = step;
        const bool tie = i > first && place(i - 1).step == step;
        if (ties = tie ? ties + 1 : 0; ties > kMostTies && !scale.Exact()) refused = true;
      }
    }
  });
  begin_cells(scale.PlaceOf(separators.back()).cell + size_t{1}, directory.cells_.size(), size);
  if (refused) return std::nullopt;
  return directory;
}

template class CellDirectory<uint32_t>;
template class CellDirectory<uint64_t>;

}  // namespace cairn
