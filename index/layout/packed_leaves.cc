#include "index/layout/packed_leaves.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <numeric>
#include <vector>

#include "absl/strings/str_format.h"
#include "index/machine/parallel.h"
#include "index/machine/status_macros.h"

namespace cairn {
namespace {

constexpr size_t kEntriesATask = size_t{1} << 16;

template <typename Key>
class Packer {
 public:
  Packer(absl::Span<const Key> keys, int bits)
      : keys_(keys),
        low_mask_(bits == kKeyBits ? std::numeric_limits<Key>::max() : (Key{1} << bits) - 1),
        entries_(bits == 16   ? LeafLayout<16>::kEntries
                 : bits == 32 ? LeafLayout<32>::kEntries
                              : LeafLayout<64>::kEntries) {}

  size_t tasks() const { return (keys_.size() + kEntriesATask - 1) / kEntriesATask; }

  // Calls leaf(first, end, separator) for the leaves whose first entry is one of task's, in order:
  // the entries [first, end), none for an empty leaf. The last leaf's separator is unused.
  template <typename Emit>
  void ForEachLeaf(size_t task, Emit leaf) const {
    const size_t begin = task * kEntriesATask, end = std::min(begin + kEntriesATask, keys_.size());
    if (begin == 0 && BlockOf(keys_[0]) != 0) leaf(0, 0, BlockOf(keys_[0]) - 1);
    for (size_t i = begin; i < end;) {
      const Key block = BlockOf(keys_[i]);
      const size_t block_begin = i == begin ? BlockBegin(block) : i;
      const size_t block_end = BlockEnd(i);
      // Leaves start at every entries_-th entry of the block.
      i = block_begin + (i - block_begin + entries_ - 1) / entries_ * entries_;
      for (; i < std::min(block_end, end); i += entries_) {
        const size_t leaf_end = std::min(i + entries_, block_end);
        if (leaf_end < block_end) {
          leaf(i, leaf_end, SeparatorBetween(keys_[leaf_end - 1], keys_[leaf_end]));
          continue;
        }
        leaf(i, leaf_end, block | low_mask_);
        // The blocks up to the next entry's, or to the end of the key space.
        const Key following = (block | low_mask_) + 1;  // 0 after the last block
        if (leaf_end == keys_.size() ? following != 0 : BlockOf(keys_[leaf_end]) != following) {
          leaf(leaf_end, leaf_end, leaf_end == keys_.size() ? 0 : BlockOf(keys_[leaf_end]) - 1);
        }
      }
      i = std::min(i, end);
      if (block_end < end) i = block_end;
    }
  }

  size_t CountLeaves(size_t task) const {
    size_t leaves = 0;
    ForEachLeaf(task, [&](size_t, size_t, Key) { ++leaves; });
    return leaves;
  }

  // The numbers of leaves before each task, and of all.
  std::vector<size_t> LeavesBefore(int threads) const {
    std::vector<size_t> before(tasks() + 1);
    ParallelFor(threads, tasks(), [&](size_t task) { before[task + 1] = CountLeaves(task); });
    for (size_t task = 0; task < tasks(); ++task) before[task + 1] += before[task];
    return before;
  }

 private:
  static constexpr int kKeyBits = static_cast<int>(sizeof(Key)) * 8;

  Key BlockOf(Key key) const { return key & ~low_mask_; }
  size_t BlockBegin(Key block) const {
    return static_cast<size_t>(std::lower_bound(keys_.begin(), keys_.end(), block) - keys_.begin());
  }
  // The end of entry i's block, galloping: most blocks are short, or span all.
  size_t BlockEnd(size_t i) const {
    const Key last = keys_[i] | low_mask_;
    if (keys_.back() <= last) return keys_.size();
    if (keys_[i + 1] > last) return i + 1;
    size_t step = entries_;
    while (i + step < keys_.size() && keys_[i + step] <= last) step *= 2;
    const auto stop = keys_.begin() + static_cast<ptrdiff_t>(std::min(i + step, keys_.size()));
    const auto from = keys_.begin() + static_cast<ptrdiff_t>(step == entries_ ? i : i + step / 2);
    return static_cast<size_t>(std::upper_bound(from, stop, last) - keys_.begin());
  }

  const absl::Span<const Key> keys_;
  const Key low_mask_;
  const size_t entries_;  // of a full leaf
};

// The leaves of a few tasks, spread over the run.
template <typename Key>
size_t SampledLeaves(const Packer<Key>& packer, int threads) {
  constexpr size_t kSampledTasks = 16;
  const size_t tasks = std::min(kSampledTasks, packer.tasks());
  std::vector<size_t> leaves(tasks);
  ParallelFor(threads, tasks,
              [&](size_t i) { leaves[i] = packer.CountLeaves(i * packer.tasks() / tasks); });
  return std::accumulate(leaves.begin(), leaves.end(), size_t{0});
}

// The number of leaves that keep all bits of a key; all except the last are full.
template <typename Key>
size_t FewestLeaves(size_t keys) {
  constexpr size_t kEntries = LeafLayout<static_cast<int>(sizeof(Key)) * 8>::kEntries;
  return (keys + kEntries - 1) / kEntries;
}

template <int kBits, typename Key>
void FillLeaf(absl::Span<const Key> keys, absl::Span<const RowId> row_ids, size_t first,
              Leaf* leaf) {
  LeafWords<kBits> words(static_cast<Position>(first));
  for (size_t i = 0; i < keys.size(); ++i) {
    words.SetKey(static_cast<int>(i), keys[i]);
    words.SetRow(static_cast<int>(i), row_ids[i]);
  }
  std::memcpy(leaf->bytes, words.words, sizeof(leaf->bytes));
}

}  // namespace

template <typename Key>
size_t CountPackedLeaves(absl::Span<const Key> keys, int bits, int threads) {
  return keys.empty() ? 1 : Packer<Key>(keys, bits).LeavesBefore(threads).back();
}

template <typename Key>
int ChooseLeafBits(absl::Span<const Key> keys, int threads) {
  constexpr int kKeyBits = static_cast<int>(sizeof(Key)) * 8;
  int best = kKeyBits;
  size_t fewest = SampledLeaves(Packer<Key>(keys, best), threads);
  for (int bits = best / 2; bits >= 16; bits /= 2) {
    const size_t leaves = SampledLeaves(Packer<Key>(keys, bits), threads);
    if (leaves < fewest) best = bits, fewest = leaves;
  }
  // A sample may miss places with sparse keys, where each key has one leaf or two.
  if (best != kKeyBits && CountPackedLeaves(keys, best, threads) > FewestLeaves<Key>(keys.size())) {
    return kKeyBits;
  }
  return best;
}

absl::Status CheckLeafCount(uint64_t leaves, int bits) {
  if (leaves <= kMaxEntries) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrFormat("leaves that keep %d bits of a key would be %d here, more than %d", bits,
                      leaves, kMaxEntries));
}

template <typename Key>
absl::StatusOr<LeafCuts<Key>> CutLeaves(absl::Span<const Key> keys, int bits, int threads) {
  LeafCuts<Key> cuts;
  cuts.bits = bits;
  const Packer<Key> packer(keys, bits);
  cuts.leaves_before = packer.LeavesBefore(threads);
  cuts.leaves = std::max<size_t>(cuts.leaves_before.back(), 1);
  RETURN_IF_ERROR(CheckLeafCount(cuts.leaves, bits));
  cuts.separators = AlignedBuffer<Key>(cuts.leaves - 1);
  ParallelFor(threads, packer.tasks(), [&](size_t task) {
    size_t leaf = cuts.leaves_before[task];
    packer.ForEachLeaf(task, [&](size_t, size_t, Key separator) {
      if (leaf + 1 < cuts.leaves) cuts.separators[leaf] = separator;
      ++leaf;
    });
  });
  return cuts;
}

template <typename Key>
void FillLeaves(absl::Span<const Key> keys, absl::Span<const RowId> row_ids,
                const LeafCuts<Key>& cuts, size_t first_task, size_t last_task, int threads,
                Leaf* leaves) {
  const auto fill = [&](size_t leaf, size_t first, size_t end) {
    const auto leaf_keys = keys.subspan(first, end - first);
    const auto leaf_rows = row_ids.subspan(first, end - first);
    switch (cuts.bits) {
      case 16:
        return FillLeaf<16>(leaf_keys, leaf_rows, first, &leaves[leaf]);
      case 32:
        return FillLeaf<32>(leaf_keys, leaf_rows, first, &leaves[leaf]);
      default:
        return FillLeaf<64>(leaf_keys, leaf_rows, first, &leaves[leaf]);
    }
  };
  if (keys.empty()) return fill(0, 0, 0);
  const Packer<Key> packer(keys, cuts.bits);
  ParallelFor(threads, last_task - first_task, [&](size_t i) {
    const size_t task = first_task + i;
    size_t leaf = cuts.leaves_before[task] - cuts.leaves_before[first_task];
    packer.ForEachLeaf(task, [&](size_t first, size_t end, Key) { fill(leaf++, first, end); });
  });
}

template <typename Key>
AlignedBuffer<Leaf> FillLeaves(absl::Span<const Key> keys, absl::Span<const RowId> row_ids,
                               const LeafCuts<Key>& cuts, int threads) {
  AlignedBuffer<Leaf> leaves(cuts.leaves);
  FillLeaves(keys, row_ids, cuts, 0, cuts.leaves_before.size() - 1, threads, leaves.data());
  return leaves;
}

template size_t CountPackedLeaves(absl::Span<const uint32_t>, int, int);
template size_t CountPackedLeaves(absl::Span<const uint64_t>, int, int);
template int ChooseLeafBits(absl::Span<const uint32_t>, int);
template int ChooseLeafBits(absl::Span<const uint64_t>, int);
template absl::StatusOr<LeafCuts<uint32_t>> CutLeaves(absl::Span<const uint32_t>, int, int);
template absl::StatusOr<LeafCuts<uint64_t>> CutLeaves(absl::Span<const uint64_t>, int, int);
template void FillLeaves(absl::Span<const uint32_t>, absl::Span<const RowId>,
                         const LeafCuts<uint32_t>&, size_t, size_t, int, Leaf*);
template void FillLeaves(absl::Span<const uint64_t>, absl::Span<const RowId>,
                         const LeafCuts<uint64_t>&, size_t, size_t, int, Leaf*);
template AlignedBuffer<Leaf> FillLeaves(absl::Span<const uint32_t>, absl::Span<const RowId>,
                                        const LeafCuts<uint32_t>&, int);
template AlignedBuffer<Leaf> FillLeaves(absl::Span<const uint64_t>, absl::Span<const RowId>,
                                        const LeafCuts<uint64_t>&, int);

}  // namespace cairn
