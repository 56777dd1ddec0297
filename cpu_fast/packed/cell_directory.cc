#include "cpu_fast/packed/cell_directory.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <utility>
#include <vector>

#include "index/layout/packed_leaves.h"
#include "index/machine/parallel.h"
#include "index/machine/topology.h"

namespace cairn {
namespace {

// Separators that one task scans (kGrain) and groups (kCutGrain).
constexpr size_t kGrain = size_t{1} << 16;
constexpr size_t kCutGrain = size_t{1} << 18;

// A range of ascending separators, and the distances that determine how many cells it needs.
template <typename Key>
class Stretch {
 public:
  Stretch(absl::Span<const Key> separators, size_t first)
      : separators_(separators), first_(first) {}

  // Adds separators[i]. All separators between the first and it must have been added.
  void Add(size_t i) {
    const Key separator = separators_[i];
    descends_ |= i > first_ && separator < separators_[i - 1];
    ones_ = std::min(ones_, std::countr_one(separator));
    if (i >= first_ + Cell::kSeparators) Lower(&cell_span_, i, Cell::kSeparators);
    if (i >= first_ + kMaxTies) Lower(&step_span_, i, kMaxTies);
  }
  // Merges another range that begins with the same separator.
  void Add(const Stretch& other) {
    descends_ |= other.descends_;
    ones_ = std::min(ones_, other.ones_);
    cell_span_ = std::min(cell_span_, other.cell_span_);
    step_span_ = std::min(step_span_, other.step_span_);
  }

  bool descends() const { return descends_; }

  // Makes one group of the separators up to `end`. Requires !descends(). Returns nullopt if that
  // needs more than `max_cells` cells.
  std::optional<CellGroup<Key>> Group(size_t end, bool exact, uint64_t max_cells) const {
    // A search cannot distinguish keys up to the first separator from each other, nor keys past the
    // last one. Each of the two gets a step of its own, which shows that its keys are not near.
    // Steps that end at blocks of 2^ones_ keys do distinguish a separator from all keys above it.
    CellScale<Key> scale;
    const Key first = separators_[first_], last = separators_[end - 1];
    const Key margin = exact ? 0 : ((last - first) >> 15) + 1;
    const Key behind = std::max<Key>(margin, 1);
    scale.high = last > kGreatest - behind ? kGreatest : last + behind;
    scale.low = (first < margin ? 0 : first - margin) & ~Ones(ones_);
    const auto width = static_cast<Key>(scale.high - scale.low);
    scale.shift = static_cast<uint32_t>(std::countl_zero(width));

    // Separators kSeparators apart must be in different cells, so that no cell holds more than
    // kSeparators.
    uint64_t cells = 1;
    if (end - first_ > Cell::kSeparators) {
      if (cell_span_ == 0) return std::nullopt;
      cells += kGreatest / static_cast<Key>(cell_span_ << scale.shift);
    }
    const int bits = kKeyBits - 16 - static_cast<int>(scale.shift);  // for one step per key
    const uint64_t exact_cells = std::min(std::max(cells, PowerOfTwo(bits)),
                                          std::bit_ceil(std::max(cells, PowerOfTwo(bits - ones_))));
    if (exact || step_span_ == 0) {
      cells = exact_cells;
    } else if (end - first_ > kMaxTies && step_span_ <= kGreatest >> 16 >> scale.shift) {
      // Separators kMaxTies apart must be on different steps.
      const auto step_span = static_cast<Key>(step_span_ << scale.shift << 16);
      cells = std::min(exact_cells, std::max<uint64_t>(cells, kGreatest / step_span + 1));
    }
    if (cells > max_cells) return std::nullopt;
    scale.multiplier = static_cast<uint32_t>(cells);
    return CellGroup<Key>{scale, cells == exact_cells, end};
  }

 private:
  static constexpr size_t kMaxTies = CellDirectory<Key>::kMaxTies;
  static constexpr Key kGreatest = std::numeric_limits<Key>::max();
  static constexpr int kKeyBits = static_cast<int>(sizeof(Key)) * 8;

  static Key Ones(int count) { return count == kKeyBits ? kGreatest : (Key{1} << count) - 1; }
  // 2^exponent, but at least 1 and at most 2^40, which exceeds any number of cells.
  static uint64_t PowerOfTwo(int exponent) { return uint64_t{1} << std::clamp(exponent, 0, 40); }
  void Lower(Key* span, size_t i, size_t apart) const {
    *span = std::min(*span, static_cast<Key>(separators_[i] - separators_[i - apart]));
  }

  absl::Span<const Key> separators_;
  size_t first_;
  bool descends_ = false;
  int ones_ = kKeyBits;  // minimum number of trailing one bits over all separators
  // Minimum distances between separators Cell::kSeparators and kMaxTies apart.
  Key cell_span_ = kGreatest;
  Key step_span_ = kGreatest;
};

template <typename Key>
Stretch<Key> StretchOfAll(absl::Span<const Key> separators, int threads) {
  std::vector<Stretch<Key>> parts((separators.size() + kGrain - 1) / kGrain,
                                  Stretch<Key>(separators, 0));
  ParallelFor(threads, parts.size(), [&](size_t task) {
    const size_t end = std::min((task + 1) * kGrain, separators.size());
    for (size_t i = task * kGrain; i < end; ++i) parts[task].Add(i);
  });
  Stretch<Key> all = parts[0];
  for (const Stretch<Key>& part : parts) all.Add(part);
  return all;
}

// Cuts the separators in [begin, end) into groups, each as long as it needs at most one cell per
// `fill` separators. Stops once there are more than `most` groups.
template <typename Key>
std::vector<CellGroup<Key>> CutGroups(absl::Span<const Key> separators, size_t begin, size_t end,
                                      bool exact, size_t fill, size_t most) {
  std::vector<CellGroup<Key>> groups;
  while (begin < end && groups.size() <= most) {
    Stretch<Key> stretch(separators, begin);
    stretch.Add(begin);
    // One separator takes one cell.
    CellGroup<Key> group = *stretch.Group(begin + 1, exact, 1);
    for (size_t i = begin + 1; i < end; ++i) {
      stretch.Add(i);
      const auto longer = stretch.Group(i + 1, exact, (i + 1 - begin) / fill + 1);
      if (!longer.has_value()) break;
      group = *longer;
    }
    groups.push_back(group);
    begin = group.end;
  }
  return groups;
}

// The same for all separators, on several threads.
template <typename Key>
std::vector<CellGroup<Key>> CutGroups(absl::Span<const Key> separators, bool exact, size_t fill,
                                      size_t most, int threads) {
  std::vector<std::vector<CellGroup<Key>>> parts((separators.size() + kCutGrain - 1) / kCutGrain);
  ParallelFor(threads, parts.size(), [&](size_t task) {
    const size_t begin = task * kCutGrain;
    const size_t end = std::min(begin + kCutGrain, separators.size());
    parts[task] = CutGroups(separators, begin, end, exact, fill, most);
  });
  std::vector<CellGroup<Key>> groups;
  for (const auto& part : parts) groups.insert(groups.end(), part.begin(), part.end());
  return groups;
}

}  // namespace

template <typename Key>
std::optional<CellDirectory<Key>> CellDirectory<Key>::Build(absl::Span<const Key> separators,
                                                            bool exact, int threads) {
  if (separators.empty()) return std::nullopt;
  const Stretch<Key> all = StretchOfAll(separators, threads);
  if (all.descends()) return std::nullopt;
  const size_t size = separators.size();
  if (const auto group = all.Group(size, exact, size / kMinFill + 64); group.has_value()) {
    return Fill(separators, {*group}, threads);
  }
  // Slightly emptier cells make fewer groups, which is an advantage if this leaves only few.
  const size_t most = std::min(size / kMinGroup, kMaxGroups);
  auto groups = CutGroups(separators, exact, kMinFill, most, threads);
  if (groups.size() > kFewGroups) {
    auto fewer = CutGroups(separators, exact, kMinFill - 1, kFewGroups, threads);
    if (fewer.size() <= kFewGroups) groups = std::move(fewer);
  }
  if (groups.size() > most) return std::nullopt;
  return Fill(separators, groups, threads);
}

template <typename Key>
CellDirectory<Key> CellDirectory<Key>::Fill(absl::Span<const Key> separators,
                                            absl::Span<const CellGroup<Key>> groups, int threads) {
  CellDirectory directory;
  directory.groups_ = AlignedBuffer<CellScale<Key>>(groups.size());
  const size_t size = separators.size(), bounds = groups.size() - 1;
  directory.bounds_ = AlignedBuffer<Key>(bounds + kNearBounds);
  std::fill_n(directory.bounds_.data() + bounds, kNearBounds, std::numeric_limits<Key>::max());
  directory.exact_ = true;
  size_t cells = 0;
  for (size_t g = 0; g < groups.size(); ++g) {
    CellScale<Key>& scale = directory.groups_[g];
    scale = groups[g].scale;
    scale.first_cell = static_cast<uint32_t>(cells);
    cells = scale.PlaceOf(scale.high).cell + size_t{1};
    directory.exact_ &= groups[g].exact;
    const size_t end = groups[g].end;
    if (end < size) directory.bounds_[g] = SeparatorBetween(separators[end - 1], separators[end]);
  }
  directory.far_bounds_ = FarBounds(directory.bounds());
  directory.cells_ = AlignedBuffer<Cell>(cells);
  Topology::Get().InterleaveMemory(directory.cells_.data(), cells * sizeof(Cell));
  const auto begin_cells = [&](size_t first_cell, size_t end_cell, size_t first) {
    for (size_t c = first_cell; c < end_cell; ++c) {
      Cell& cell = directory.cells_[c];
      cell.first = static_cast<uint32_t>(first);
      std::fill_n(cell.separators, Cell::kSeparators, UINT16_MAX);
    }
  };
  // A task fills the cells whose first separator is in its range, and the empty cells before each.
  ParallelFor(threads, (size + kGrain - 1) / kGrain, [&](size_t task) {
    size_t i = task * kGrain, g = 0;
    const size_t end = std::min(i + kGrain, size);
    const auto place = [&](size_t separator) {
      while (g > 0 && separator < groups[g - 1].end) --g;
      while (separator >= groups[g].end) ++g;
      return directory.groups_[g].PlaceOf(separators[separator]);
    };
    while (i > 0 && i < end && place(i).cell == place(i - 1).cell) ++i;
    while (i < end) {
      const size_t first = i, cell = place(i).cell;
      begin_cells(i == 0 ? 0 : place(i - 1).cell + size_t{1}, cell + 1, i);
      for (; i < size && place(i).cell == cell; ++i) {
        directory.cells_[cell].separators[i - first] = place(i).step;
      }
    }
  });
  begin_cells(directory.PlaceOf(separators.back()).cell + size_t{1}, cells, size);
  return directory;
}

template <typename Key>
AlignedBuffer<Key> CellDirectory<Key>::FarBounds(absl::Span<const Key> bounds) {
  if (bounds.size() < kFewGroups) return AlignedBuffer<Key>();
  AlignedBuffer<Key> far(bounds.size() / kNearBounds);
  for (size_t i = 0; i < far.size(); ++i) far[i] = bounds[(i + 1) * kNearBounds - 1];
  return far;
}

template class CellDirectory<uint32_t>;
template class CellDirectory<uint64_t>;

}  // namespace cairn
