#include "gpu/packed/packed_size.h"

#include <algorithm>

#include "absl/strings/str_format.h"
#include "gpu/packed/kary_directory.h"
#include "gpu/packed/leaf_packing.h"
#include "gpu/packed/rank_bitmap.h"
#include "index/layout/packed_leaves.h"
#include "index/layout/wide_key.h"

namespace cairn::gpu {
namespace {

// An upper bound of the memory of CUB's scans of `items` items.
constexpr uint64_t ScanBytes(uint64_t items) {
  return (uint64_t{64} << 10) + items / 16;
}

// Maximum numbers of leaves under one of the directories.
struct MostLeaves {
  uint64_t primary = 0, linked = 0;

  uint64_t cut_bytes() const {
    return (primary + 1) * sizeof(Position) + linked * sizeof(LinkedLeaf);
  }
  uint64_t leaf_bytes() const { return (primary + linked) * sizeof(Leaf); }
};

template <typename Key>
class Sizes {
 public:
  // For leaves of all entries, or of distinct keys.
  Sizes(size_t entries, const KeySurvey<Key>& survey, const PackedIndexOptions& options,
        bool of_entries)
      : entries_(entries),
        keys_(of_entries ? entries : survey.distinct),
        row_column_(options.row_column),
        equal_(of_entries ? entries - survey.distinct : 0) {
    constexpr int kKeyBits = static_cast<int>(sizeof(Key)) * 8;
    const int bits = options.bits != 0 ? options.bits : survey.BestLeafBits(keys_);
    capacity_ = static_cast<uint64_t>(LeafEntries(bits));
    const bool blocks = bits < kKeyBits;
    const int width = bits / 16 - 1;
    // Counts the places where a leaf must end, and leaves without keys: one per gap, and one after
    // all keys.
    blocks_ = blocks ? survey.blocks[width] : 1;
    gaps_ = blocks ? survey.gaps[width] : 0;
    pieces_ = keys_ / kLeafTile + 1 + blocks_;
    empty_ = blocks ? gaps_ + 1 : 0;
  }

  // Each block begins a leaf, and each gap needs one.
  uint64_t LeastLeaves() const {
    const uint64_t full = (keys_ + capacity_ - 1) / capacity_;
    return std::max(full, blocks_) + gaps_;
  }

  uint64_t LeastBuilding() const {
    return std::max(distinct(), base() + LeastLeaves() * (sizeof(Leaf) + sizeof(Position)));
  }

  // The steps are: find distinct keys, cut leaves, fill them.
  uint64_t MostBuilding(LeafDirectory directory) const {
    uint64_t most = distinct() + ScanBytes(entries_);
    if (directory != LeafDirectory::kTree) {
      most = std::max({most, CutUnderBitmap(), FillUnderBitmap()});
    }
    if (directory != LeafDirectory::kBitmap) {
      const uint64_t under_tree = base() + tree_bytes() + leaves_under_tree().cut_bytes();
      most = std::max({most, under_tree + cutting(),
                       under_tree + leaves_under_tree().leaf_bytes() + sample_bytes()});
    }
    return most;
  }

  uint64_t MostResident(LeafDirectory directory) const {
    const uint64_t rows = (repeats() ? first_entry_bytes() : 0) +
                          (repeats() || row_column_ ? row_bytes() : sample_bytes());
    const uint64_t bitmap = bitmap_bytes() + leaves_under_bitmap().leaf_bytes();
    const uint64_t tree = tree_bytes() + leaves_under_tree().leaf_bytes();
    return rows + (directory == LeafDirectory::kBitmap ? bitmap
                   : directory == LeafDirectory::kTree ? tree
                                                       : std::max(bitmap, tree));
  }

 private:
  bool repeats() const { return keys_ != entries_; }
  uint64_t row_bytes() const { return entries_ * sizeof(RowId); }
  uint64_t key_bytes() const { return keys_ * sizeof(Key); }
  uint64_t first_entry_bytes() const { return (keys_ + 1) * sizeof(Position); }
  uint64_t sample_bytes() const {
    return repeats() || row_column_ ? 0 : (keys_ / 32 + 2) * sizeof(uint32_t);
  }

  // The data from which leaves are filled.
  uint64_t base() const {
    return key_bytes() + row_bytes() + (repeats() ? first_entry_bytes() : 0);
  }
  // The run, a rank for each of its entries, and the arrays made from the ranks.
  uint64_t distinct() const {
    const uint64_t run = entries_ * (sizeof(Key) + sizeof(RowId));
    if (!repeats()) return run;
    return run + entries_ * sizeof(Position) + key_bytes() + first_entry_bytes();
  }
  // Marks, and data of tiles.
  uint64_t cutting() const {
    return 2 * MarkWords(keys_) * sizeof(uint32_t) + (keys_ / kLeafTile + 1) * 16 +
           ScanBytes(keys_ / kLeafTile);
  }

  // Linked leaves in the chains of single keys that do not fit one leaf.
  uint64_t chained() const { return 2 * equal_ / (capacity_ - 1); }
  // With cells of one key each, leaves are full, with two exceptions: the last of a piece, and
  // those before a repeated key, which lack fewer entries than that key has.
  MostLeaves leaves_under_tree() const {
    return {(keys_ + equal_) / capacity_ + pieces_ + empty_, chained()};
  }
  uint64_t tree_bytes() const {
    // The top may be half as large if there is one separator too many for it.
    return KaryDirectory<Key>::PredictBytes(leaves_under_tree().primary) +
           KaryDirectory<Key>::kTopBytes;
  }

  // Two adjacent leaves of a piece together have more keys than fit one leaf; otherwise they would
  // be one. A linked leaf has at least two keys.
  MostLeaves leaves_under_bitmap() const {
    return {2 * keys_ / (capacity_ + 1) + 1 + pieces_ + empty_,
            MostChainedKeys(keys_) / 2 + chained()};
  }
  uint64_t bitmap_bytes() const {
    return RankBitmapView<Key>::kMaxRegions * sizeof(uint32_t) +
           MostBitmapNodes(keys_) * sizeof(RankNode);
  }
  uint64_t CutUnderBitmap() const {
    // Cutting shows whether keys suit a bitmap; until then, any number of leaves may be linked.
    MostLeaves leaves = leaves_under_bitmap();
    leaves.linked = keys_ / (capacity_ - 1) + chained();
    const uint64_t planning =
        RankBitmapView<Key>::kMaxRegions * (sizeof(uint8_t) + sizeof(uint64_t)) +
        ScanBytes(RankBitmapView<Key>::kMaxRegions);
    const uint64_t ranking =
        MostBitmapNodes(keys_) * sizeof(uint32_t) + ScanBytes(MostBitmapNodes(keys_));
    return base() + bitmap_bytes() + leaves.cut_bytes() + planning + cutting() + ranking;
  }
  uint64_t FillUnderBitmap() const {
    const MostLeaves leaves = leaves_under_bitmap();
    return base() + bitmap_bytes() + leaves.cut_bytes() + leaves.leaf_bytes() + sample_bytes();
  }

  const uint64_t entries_, keys_;
  const bool row_column_;
  const uint64_t equal_;   // entries in leaves whose key equals the key before
  uint64_t capacity_ = 0;  // keys per leaf
  uint64_t blocks_ = 0;  // blocks that have keys; the keys of a block agree above the leaves' bits
  uint64_t gaps_ = 0;    // blocks without keys directly before a block with keys
  uint64_t pieces_ = 0;  // pieces of keys that leaves do not cross
  uint64_t empty_ = 0;   // leaves without keys
};

}  // namespace

template <typename Key>
PackedBounds BoundPackedBytes(size_t entries, const KeySurvey<Key>& survey,
                              const PackedIndexOptions& options) {
  const bool of_entries = MayHoldEntries(entries, survey);
  if (of_entries && options.directory != LeafDirectory::kBitmap) {
    const Sizes<Key> all(entries, survey, options, true);
    return {all.LeastBuilding(), all.MostBuilding(options.directory),
            all.MostResident(options.directory), all.LeastLeaves()};
  }
  const Sizes<Key> distinct(entries, survey, options, false);
  PackedBounds bounds = {distinct.LeastBuilding(), distinct.MostBuilding(options.directory),
                         distinct.MostResident(options.directory), distinct.LeastLeaves()};
  if (of_entries) {
    // The build chooses one or the other, depending on how keys suit the bitmap.
    const Sizes<Key> all(entries, survey, options, true);
    bounds.min_building = std::min(bounds.min_building, all.LeastBuilding());
    bounds.max_building = std::max(bounds.max_building, all.MostBuilding(options.directory));
    bounds.max_resident = std::max(bounds.max_resident, all.MostResident(options.directory));
    bounds.min_leaves = std::min(bounds.min_leaves, all.LeastLeaves());
  }
  return bounds;
}

PackedBounds BoundPackedText(const SortedRun& run, const TextCode& code,
                             const PackedIndexOptions& options, int threads) {
  PackedBounds bounds;
  if (!run.empty()) {
    bounds = code.is_narrow()
                 ? BoundPackedBytes(run.size(), SurveyNumbers<uint64_t>(code, run.bytes(), threads),
                                    options)
                 : BoundPackedBytes(run.size(), SurveyNumbers<WideKey>(code, run.bytes(), threads),
                                    options);
  }
  const uint64_t table = code.table_bytes();
  bounds.min_building += table;
  bounds.max_building += table;
  bounds.max_resident += table;
  return bounds;
}

absl::Status CheckLeafCount(uint64_t leaves, int bits) {
  if (leaves <= kMaxLeaves) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrFormat("the keys need %d packed leaves of %d bits, more than the maximum of %d",
                      leaves, bits, kMaxLeaves));
}

template PackedBounds BoundPackedBytes(size_t, const KeySurvey<uint32_t>&,
                                       const PackedIndexOptions&);
template PackedBounds BoundPackedBytes(size_t, const KeySurvey<uint64_t>&,
                                       const PackedIndexOptions&);
template PackedBounds BoundPackedBytes(size_t, const KeySurvey<WideKey>&,
                                       const PackedIndexOptions&);

}  // namespace cairn::gpu
