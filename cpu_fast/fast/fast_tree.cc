#include "cpu_fast/fast/fast_tree.h"

#include <algorithm>
#include <atomic>
#include <limits>
#include <utility>

#include "absl/strings/str_format.h"
#include "index/machine/parallel.h"
#include "index/machine/status_macros.h"
#include "index/machine/topology.h"
#include "index/query/host_index.h"

namespace cairn {
namespace {

// Nodes that one task fills.
constexpr size_t kNodeGrain = 16384;

std::string_view PageName(PageBlocking page) {
  switch (page) {
    case PageBlocking::k4K:
      return "4k";
    case PageBlocking::k2M:
      return "2m";
    case PageBlocking::kNone:
      break;
  }
  return "none";
}

template <typename Key>
class FastTree final : public HostIndex {
 public:
  FastTree(SortedRun run, PageBlocking page, SimdLevel level)
      : HostIndex(std::move(run)),
        page_(page),
        level_(level),
        nodes_(this->run().template keys<Key>(), this->run().row_ids(), page, level) {}

  std::string description() const override {
    return absl::StrFormat("cpu:fast,page=%s,simd=%s", PageName(page_), SimdLevelName(level_));
  }
  uint64_t memory_bytes() const override { return nodes_.memory_bytes(); }
  uint64_t huge_page_bytes() const override { return nodes_.huge_page_bytes(); }

 private:
  void LowerBound(KeyBatch keys, Position* positions) const override {
    nodes_.LowerBound(keys.as<Key>(), positions);
  }
  void FindFirst(KeyBatch keys, RowId* row_ids) const override {
    nodes_.FindFirst(keys.as<Key>(), row_ids);
  }

  const PageBlocking page_;
  const SimdLevel level_;
  const FastTreeNodes<Key> nodes_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<OrderedIndex>> MakeFastTree(SortedRun run,
                                                           const FastTreeOptions& options) {
  ASSIGN_OR_RETURN(const SimdLevel level, ChooseSimdLevel(options.simd));
  switch (run.kind()) {
    case PhysicalType::kU32:
      return std::make_unique<FastTree<uint32_t>>(std::move(run), options.page, level);
    case PhysicalType::kU64:
      return std::make_unique<FastTree<uint64_t>>(std::move(run), options.page, level);
    case PhysicalType::kBytes:
      break;
  }
  return absl::UnimplementedError(
      "cpu:fast: expected u32 or u64 keys, got byte strings; use cpu:strings");
}

template <typename Key>
FastTreeNodes<Key>::FastTreeNodes(absl::Span<const Key> keys, absl::Span<const RowId> row_ids,
                                  PageBlocking page, SimdLevel level)
    : search_(&FastTreeSearchFor<Key>(level)) {
  constexpr Key kFlip = Key{1} << (sizeof(Key) * 8 - 1);
  constexpr Key kGreatest = std::numeric_limits<Key>::max();
  view_.layout = Layout(keys.size(), page);
  view_.keys = keys.data();
  view_.row_ids = row_ids.data();
  const Layout& layout = view_.layout;
  if (keys.empty()) return;

  // Nodes come first, so that page blocks start on pages. An allocation of at least 2 MiB is
  // aligned to 2 MiB; in a smaller one only 4 KiB blocks can be aligned.
  constexpr size_t kLineKeys = Layout::kLineKeys;
  const size_t slack = page == PageBlocking::kNone ? 0 : PageBytes(PageBlocking::k4K) / sizeof(Key);
  memory_ = AlignedBuffer<Key>(slack + (layout.lines() + 1) * kLineKeys);
  Topology::Get().InterleaveMemory(memory_.data(), memory_.size() * sizeof(Key));
  Key* nodes = memory_.data();
  if (slack != 0) {
    const uintptr_t page_bytes = PageBytes(PageBlocking::k4K);
    const uintptr_t over = reinterpret_cast<uintptr_t>(nodes) % page_bytes;
    if (over != 0) nodes += (page_bytes - over) / sizeof(Key);
  }
  view_.nodes = reinterpret_cast<const typename FastTreeView<Key>::Signed*>(nodes);

  const int threads = Topology::Get().cores();
  for (int l = 0; l < layout.levels(); ++l) {
    const size_t grains = (layout.nodes(l) + kNodeGrain - 1) / kNodeGrain;
    ParallelFor(threads, grains, [&](size_t grain) {
      const size_t end = std::min((grain + 1) * kNodeGrain, layout.nodes(l));
      for (size_t node = grain * kNodeGrain; node < end; ++node) {
        Key* line = nodes + layout.Line(l, node) * kLineKeys;
        for (size_t slot = 0; slot < kLineKeys; ++slot) {
          const uint64_t entry = layout.SeparatorEntry(l, node, slot);
          line[slot] = (entry < keys.size() ? keys[entry] : kGreatest) ^ kFlip;
        }
      }
    });
  }
  SetLastLine(keys, nodes + layout.lines() * kLineKeys);
}

template <typename Key>
void FastTreeNodes<Key>::SetLastLine(absl::Span<const Key> keys, Key* line) {
  const size_t first = (view_.layout.leaves() - 1) * Layout::kLineKeys;
  std::fill_n(line, Layout::kLineKeys, std::numeric_limits<Key>::max());
  std::copy(keys.begin() + first, keys.end(), line);
  view_.last_line = line;
}

template <typename Key>
FastTreeNodes<Key>::FastTreeNodes(absl::Span<const Key> keys, absl::Span<const Key> nodes,
                                  SimdLevel level)
    : search_(&FastTreeSearchFor<Key>(level)) {
  view_.layout = Layout(keys.size(), PageBlocking::kNone);
  view_.keys = keys.data();
  view_.nodes = reinterpret_cast<const typename FastTreeView<Key>::Signed*>(nodes.data());
  if (keys.empty()) return;
  memory_ = AlignedBuffer<Key>(Layout::kLineKeys);
  SetLastLine(keys, memory_.data());
}

template <typename Key>
bool FastTreeNodes<Key>::AreSafe(size_t keys, absl::Span<const Key> nodes, int threads) {
  // A child outside the tree is safe only if its separator is padding, because no query is above
  // it.
  constexpr Key kPadding =
      std::numeric_limits<Key>::max() ^ static_cast<Key>(Key{1} << (sizeof(Key) * 8 - 1));
  const Layout layout(keys, PageBlocking::kNone);
  std::atomic<bool> safe{true};
  for (int l = 0; l < layout.levels(); ++l) {
    const size_t below = l + 1 < layout.levels() ? layout.nodes(l + 1) : layout.leaves();
    const size_t grains = (layout.nodes(l) + kNodeGrain - 1) / kNodeGrain;
    ParallelFor(threads, grains, [&](size_t grain) {
      const size_t end = std::min((grain + 1) * kNodeGrain, layout.nodes(l));
      bool all = true;
      for (size_t node = grain * kNodeGrain; node < end; ++node) {
        const Key* line = nodes.data() + layout.Line(l, node) * Layout::kLineKeys;
        const size_t children = std::min(Layout::kFanOut, below - node * Layout::kFanOut);
        for (size_t slot = children - 1; slot < Layout::kLineKeys; ++slot) {
          all &= line[slot] == kPadding;
        }
      }
      if (!all) safe.store(false, std::memory_order_relaxed);
    });
  }
  return safe;
}

template <typename Key>
void FastTreeNodes<Key>::LowerBound(absl::Span<const Key> queries, Position* positions) const {
  if (view_.layout.entries() == 0) {
    std::fill_n(positions, queries.size(), 0);
  } else {
    search_->lower_bound(view_, queries, positions);
  }
}

template <typename Key>
void FastTreeNodes<Key>::FindFirst(absl::Span<const Key> queries, RowId* row_ids) const {
  if (view_.layout.entries() == 0) {
    std::fill_n(row_ids, queries.size(), kNoRow);
  } else {
    search_->find_first(view_, queries, row_ids);
  }
}

template class FastTreeNodes<uint32_t>;
template class FastTreeNodes<uint64_t>;

}  // namespace cairn
