#include "gpu/aggregates/aggregate_directory.h"

#include <utility>

#include "gpu/packed/leaf_packing.h"
#include "gpu/packed/packed_size.h"
#include "index/machine/status_macros.h"

namespace cairn::gpu {
namespace {

// Average keys per cell of a bitmap, like those of packed leaves: fewer while the bitmap stays
// small. A cell with more keys than fit a leaf makes a chain, so small leaves need fewer keys per
// cell; large leaves are equally full with more.
constexpr double kLightCell = 1.25, kHeavyCell = 2.5;
constexpr double kLightBytes = 12 << 20;
constexpr double CellPart(int capacity) {
  if (capacity >= 12) return capacity / 8.0;
  return capacity > 3 ? 1 : capacity > 2 ? 0.5 : 0.25;
}

// Returns false if the keys do not suit a bitmap.
template <typename Key>
absl::StatusOr<bool> CutForBitmap(const Key* keys, size_t size, const KeySurvey<Key>& survey,
                                  AggregateDirectory<Key>* directory, cudaStream_t stream) {
  const double part = CellPart(directory->capacity);
  const double light_bytes =
      static_cast<double>(size) / (kLightCell * part) * 2 / RankNode::kCells * sizeof(RankNode);
  const double load = (light_bytes <= kLightBytes ? kLightCell : kHeavyCell) * part;
  ASSIGN_OR_RETURN(RankBitmap<Key> bitmap,
                   RankBitmap<Key>::Plan(keys, size, survey, directory->bits, load,
                                         MostBitmapNodes(size), stream));
  if (!bitmap.planned()) return false;
  ASSIGN_OR_RETURN(const KeyMarks marks, bitmap.Mark(keys, size, stream));
  ASSIGN_OR_RETURN(LeafCut cut, CutLeavesOf(directory->capacity, keys, size, directory->bits, marks,
                                            /*repeat=*/false, stream));
  if (cut.longest_chain > kLongestChain || cut.chained_keys > MostChainedKeys(size)) return false;
  RETURN_IF_ERROR(bitmap.SetLeaves(keys, size, cut, stream));
  directory->bitmap = std::move(bitmap);
  directory->cut = std::move(cut);
  return true;
}

}  // namespace

template <typename Key>
int AggregateLeafBits(AggregateKind kind, size_t size, const KeySurvey<Key>& survey) {
  const auto leaves = [&](int bits, double more) {
    return static_cast<double>(size) / AggregateLeafEntries(kind, bits / 8) + more;
  };
  constexpr int kAll = static_cast<int>(sizeof(Key)) * 8, kHalf = kAll / 2;
  // On average, a block's last leaf is half empty, and a gap before the block takes one leaf.
  const double blocks = 0.5 * static_cast<double>(survey.blocks[kHalf / 16 - 1]) +
                        static_cast<double>(survey.gaps[kHalf / 16 - 1]);
  return leaves(kHalf, blocks) < leaves(kAll, 0) ? kHalf : kAll;
}

template <typename Key>
absl::StatusOr<AggregateDirectory<Key>> MakeAggregateDirectory(const Key* keys, size_t size,
                                                               const KeySurvey<Key>& survey,
                                                               int bits, int capacity,
                                                               cudaStream_t stream) {
  AggregateDirectory<Key> directory;
  directory.bits = bits;
  directory.capacity = capacity;
  ASSIGN_OR_RETURN(const bool suits, CutForBitmap(keys, size, survey, &directory, stream));
  if (suits) return directory;
  ASSIGN_OR_RETURN(const KeyMarks marks, MarkBlocks(keys, size, bits, stream));
  ASSIGN_OR_RETURN(directory.cut,
                   CutLeavesOf(capacity, keys, size, bits, marks, /*repeat=*/false, stream));
  ASSIGN_OR_RETURN(DeviceBuffer<Key> separators, FindSeparators(keys, size, directory.cut, stream));
  ASSIGN_OR_RETURN(directory.tree, KaryDirectory<Key>::Build(std::move(separators), stream));
  return directory;
}

#define CAIRN_INSTANTIATE(Key)                                                  \
  template int AggregateLeafBits(AggregateKind, size_t, const KeySurvey<Key>&); \
  template absl::StatusOr<AggregateDirectory<Key>> MakeAggregateDirectory(      \
      const Key*, size_t, const KeySurvey<Key>&, int, int, cudaStream_t)
CAIRN_INSTANTIATE(uint32_t);
CAIRN_INSTANTIATE(uint64_t);
#undef CAIRN_INSTANTIATE

}  // namespace cairn::gpu
