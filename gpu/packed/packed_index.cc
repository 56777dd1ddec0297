#include "gpu/packed/packed_index.h"

#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include "absl/strings/str_format.h"
#include "gpu/packed/kary_directory.h"
#include "gpu/packed/leaf_packing.h"
#include "gpu/packed/packed_rows.h"
#include "gpu/packed/packed_search.h"
#include "gpu/packed/packed_size.h"
#include "gpu/packed/rank_bitmap.h"
#include "gpu/run/range_rows.h"
#include "gpu/runtime/cuda_status.h"
#include "gpu/runtime/device_memory.h"
#include "gpu/text/text_run.h"
#include "index/layout/packed_leaves.h"
#include "index/layout/wide_key.h"
#include "index/machine/status_macros.h"

namespace cairn::gpu {
namespace {

// Average keys per cell of a bitmap. Fewer keys give fuller leaves; more keys give a smaller
// bitmap, which should stay in the second-level cache.
constexpr double kLightLoad = 1.25, kHeavyLoad = 2.5;
constexpr size_t kLightBitmapBytes = size_t{12} << 20;
// Leaves of three keys would often overflow with such cells, and use half of that.
constexpr double LoadPart(int bits) {
  return LeafEntries(bits) > 3 ? 1 : 0.5;
}

bool HasShortChains(const LeafCut& cut, size_t keys) {
  return cut.longest_chain <= kLongestChain && cut.chained_keys <= MostChainedKeys(keys);
}
// Whether chains hold keys in short runs: a run of keys that does not fit a leaf has its own chain.
bool HasChainsOfRuns(const LeafCut& cut, size_t keys) {
  const size_t full = keys / static_cast<size_t>(LeafEntries(cut.bits));
  return cut.longest_chain <= kLongestChain && cut.links_followed <= keys &&
         cut.leaves() <= full + full / 4;
}
// From this number of leaves on, such chains are better than a tree. A tree would have separators
// inside runs. These hardly differ from the keys next to them, so nearly every query would read
// some full separators in addition to its leaf. Caches are too small for these.
constexpr size_t kMinLeavesOfRuns = size_t{1} << 24;

// Bits of a key in leaves of `keys` keys.
template <typename Key>
int LeafBits(size_t keys, const KeySurvey<Key>& survey, const PackedIndexOptions& options) {
  return options.bits != 0 ? options.bits : survey.BestLeafBits(keys);
}

// Keys that leaves store directly.
template <typename Key>
class NumbersThemselves {
 public:
  using Queries = NumberQueries<Key>;
  static constexpr PhysicalType kKind =
      std::is_same_v<Key, uint32_t> ? PhysicalType::kU32 : PhysicalType::kU64;

  Queries QueriesFor(DeviceKeys keys, TextEdge edge) const {
    return {static_cast<const Key*>(keys.data()), edge == TextEdge::kLower ? Key{0} : Key{1}};
  }
  size_t memory_bytes() const { return 0; }
};

// Byte-string keys that a code encodes as numbers.
template <typename Key>
class NumbersOfText {
 public:
  using Queries = TextQueries<Key>;
  static constexpr PhysicalType kKind = PhysicalType::kBytes;

  // Waits.
  absl::Status SetCode(const TextCode& code, cudaStream_t stream) {
    RETURN_IF_ERROR(Upload(code.positions(), &positions_, stream));
    RETURN_IF_ERROR(Upload(code.shares(), &shares_, stream));
    CAIRN_RETURN_IF_CUDA_FAILS(cudaStreamSynchronize(stream));
    shortest_ = code.shortest();
    plain_ = code.is_plain();
    shares_.SetStream(AfterAllUses());
    positions_.SetStream(AfterAllUses());
    return absl::OkStatus();
  }
  Queries QueriesFor(DeviceKeys keys, TextEdge edge) const {
    return {keys.bytes(),
            keys.offsets(),
            positions_.data(),
            shares_.data(),
            static_cast<uint32_t>(positions_.size()),
            static_cast<uint32_t>(shares_.size()),
            shortest_,
            plain_,
            edge};
  }
  size_t memory_bytes() const { return positions_.bytes() + shares_.bytes(); }

 private:
  DeviceBuffer<TextPosition> positions_;
  DeviceBuffer<uint32_t> shares_;
  uint32_t shortest_ = 0;
  bool plain_ = false;
};

template <typename Key, typename Numbers>
class PackedIndex : public DeviceIndex {
 public:
  PackedIndex(size_t size, int device) : DeviceIndex(Numbers::kKind, size, device) {}

  absl::Status Build(DeviceRun<Key> run, const PackedIndexOptions& options, cudaStream_t stream);
  Numbers& numbers() { return numbers_; }

  bool writes_results_once() const override { return true; }
  bool has_distinct_keys() const override { return !view_.repeats && first_entry_.size() == 0; }
  std::string description() const override {
    return absl::StrFormat("gpu:packed,directory=%s,bits=%d%s",
                           bitmap_.has_value() ? "bitmap" : "tree", view_.bits,
                           row_column_ ? ",rows" : "");
  }
  uint64_t memory_bytes() const override {
    return numbers_.memory_bytes() + leaves_.bytes() + first_entry_.bytes() + row_ids_.bytes() +
           samples_.bytes() + (bitmap_.has_value() ? bitmap_->memory_bytes() : 0) +
           (tree_.has_value() ? tree_->memory_bytes() : 0);
  }

 private:
  // Cuts leaves under a bitmap into *cut; returns false if the keys do not suit a bitmap. Chains of
  // runs are only used for at least `min_of_runs` leaves.
  absl::StatusOr<bool> CutUnderBitmap(const DistinctKeys<Key>& keys, const KeySurvey<Key>& survey,
                                      int bits, size_t min_of_runs, LeafCut* cut,
                                      cudaStream_t stream);
  // Cuts leaves under a tree into *cut; returns false if keys repeat too often for leaves of
  // entries.
  absl::StatusOr<bool> CutUnderTree(const DistinctKeys<Key>& keys, int bits, LeafCut* cut,
                                    cudaStream_t stream);
  // Cuts leaves under the directory that suits the keys; returns false if no allowed directory
  // does.
  absl::StatusOr<bool> Cut(const DistinctKeys<Key>& keys, const KeySurvey<Key>& survey,
                           LeafDirectory directory, LeafCut* cut, cudaStream_t stream);
  absl::Status Search(Operation query, DeviceKeys keys, void* results,
                      DeviceStream stream) const override;
  absl::Status FindEqualRanges(DeviceKeys keys, Position* begin, Position* end,
                               DeviceStream stream) const override;
  absl::Status FindPrefixEnds(DeviceKeys prefixes, Position* ends,
                              DeviceStream stream) const override;
  absl::Status Search(PackedAnswer answer, DeviceKeys keys, TextEdge edge, void* results,
                      Position* ends, cudaStream_t stream) const {
    const PackedBatch<typename Numbers::Queries> batch = {numbers_.QueriesFor(keys, edge),
                                                          keys.size(), results, ends};
    return bitmap_.has_value() ? SearchUnderBitmap(view_, bitmap_->view(), answer, batch, stream)
                               : SearchUnderTree(view_, *tree_, answer, batch, stream);
  }
  absl::Status GatherRows(const Position* begin, const uint64_t* offsets, size_t queries,
                          uint64_t rows, Order order, RowId* row_ids,
                          DeviceStream stream) const override;

  Numbers numbers_;
  PackedView view_;
  DeviceBuffer<Leaf> leaves_;
  std::optional<RankBitmap<Key>> bitmap_;   // either this
  std::optional<KaryDirectory<Key>> tree_;  // or this
  DeviceBuffer<Position> first_entry_;      // DistinctKeys::first_entry, if keys repeat
  // The source of the rows of ranges: a column of all row ids, or the leaves themselves.
  DeviceBuffer<RowId> row_ids_;
  DeviceBuffer<uint32_t> samples_;  // SampleLeaves
  bool row_column_ = false;         // PackedIndexOptions
};

template <typename Key, typename Numbers>
absl::StatusOr<bool> PackedIndex<Key, Numbers>::CutUnderBitmap(const DistinctKeys<Key>& keys,
                                                               const KeySurvey<Key>& survey,
                                                               int bits, size_t min_of_runs,
                                                               LeafCut* cut, cudaStream_t stream) {
  const size_t size = keys.size();
  // Nodes if all regions are alike, one per 96 cells, plus one per region.
  const double light = kLightLoad * LoadPart(bits), heavy = kHeavyLoad * LoadPart(bits);
  const double light_bytes = static_cast<double>(size) / light * 2 / RankNode::kCells * 16;
  const double load = light_bytes <= static_cast<double>(kLightBitmapBytes) ? light : heavy;
  ASSIGN_OR_RETURN(RankBitmap<Key> bitmap,
                   RankBitmap<Key>::Plan(keys.keys.data(), size, survey, bits, load,
                                         MostBitmapNodes(size), stream));
  if (!bitmap.planned()) return false;
  ASSIGN_OR_RETURN(const KeyMarks marks, bitmap.Mark(keys.keys.data(), size, stream));
  ASSIGN_OR_RETURN(LeafCut leaves,
                   CutLeaves(keys.keys.data(), size, bits, marks, view_.repeats, stream));
  if (!HasShortChains(leaves, size) &&
      !(leaves.leaves() >= min_of_runs && HasChainsOfRuns(leaves, size))) {
    return false;
  }
  RETURN_IF_ERROR(bitmap.SetLeaves(keys.keys.data(), size, leaves, stream));
  bitmap_ = std::move(bitmap);
  *cut = std::move(leaves);
  return true;
}

template <typename Key, typename Numbers>
absl::StatusOr<bool> PackedIndex<Key, Numbers>::CutUnderTree(const DistinctKeys<Key>& keys,
                                                             int bits, LeafCut* cut,
                                                             cudaStream_t stream) {
  const size_t size = keys.size();
  ASSIGN_OR_RETURN(const KeyMarks marks, MarkBlocks(keys.keys.data(), size, bits, stream));
  ASSIGN_OR_RETURN(LeafCut leaves,
                   CutLeaves(keys.keys.data(), size, bits, marks, view_.repeats, stream));
  if (!HasShortChains(leaves, size)) return false;
  ASSIGN_OR_RETURN(DeviceBuffer<Key> separators,
                   FindSeparators(keys.keys.data(), size, leaves, stream));
  ASSIGN_OR_RETURN(tree_, KaryDirectory<Key>::Build(std::move(separators), stream));
  *cut = std::move(leaves);
  return true;
}

template <typename Key, typename Numbers>
absl::StatusOr<bool> PackedIndex<Key, Numbers>::Cut(const DistinctKeys<Key>& keys,
                                                    const KeySurvey<Key>& survey,
                                                    LeafDirectory directory, LeafCut* cut,
                                                    cudaStream_t stream) {
  if (directory != LeafDirectory::kTree) {
    ASSIGN_OR_RETURN(
        const bool suits,
        CutUnderBitmap(keys, survey, view_.bits,
                       directory == LeafDirectory::kBitmap ? 0 : kMinLeavesOfRuns, cut, stream));
    if (suits || directory == LeafDirectory::kBitmap) return suits;
  }
  return CutUnderTree(keys, view_.bits, cut, stream);
}

template <typename Key, typename Numbers>
absl::Status PackedIndex<Key, Numbers>::Build(DeviceRun<Key> run, const PackedIndexOptions& options,
                                              cudaStream_t stream) {
  constexpr int kKeyBits = static_cast<int>(sizeof(Key)) * 8;
  if (options.bits < 0 || options.bits > kKeyBits || options.bits % 16 != 0 ||
      (options.bits == 48 && kKeyBits == 32) ||
      (options.bits != 0 && options.bits < 64 && kKeyBits == 128)) {
    return absl::InvalidArgumentError(
        absl::StrFormat("bits: got %d, but the keys have %d bits", options.bits, kKeyBits));
  }
  view_.bits = options.bits != 0 ? options.bits : kKeyBits;
  row_column_ = options.row_column;
  if (run.size() == 0) return absl::OkStatus();
  ASSIGN_OR_RETURN(KeySurvey<Key> survey,
                   run.survey.has_value()
                       ? *run.survey
                       : SurveyKeys(run.keys.data(), run.row_ids.data(), run.size(), stream));
  const size_t run_bytes = run.keys.bytes() + run.row_ids.bytes();
  const PackedBounds bounds = BoundPackedBytes(run.size(), survey, options);
  RETURN_IF_ERROR(CheckLeafCount(bounds.min_leaves, LeafBits(run.size(), survey, options)));
  RETURN_IF_ERROR(CheckDeviceMemory(bounds.min_building - run_bytes, "building packed leaves"));

  DistinctKeys<Key> distinct;
  LeafCut cut;
  bool suits = false;
  view_.repeats = MayHoldEntries(run.size(), survey);
  if (view_.repeats) {
    distinct.keys = std::move(run.keys);
    distinct.row_ids = std::move(run.row_ids);
    view_.bits = LeafBits(distinct.size(), survey, options);
    ASSIGN_OR_RETURN(suits, Cut(distinct, survey, options.directory, &cut, stream));
    view_.repeats = suits;
    if (!suits) {
      run.keys = std::move(distinct.keys);
      run.row_ids = std::move(distinct.row_ids);
    }
  }
  if (!suits) {
    view_.bits = LeafBits(survey.distinct, survey, options);
    ASSIGN_OR_RETURN(distinct, FindDistinctKeys(std::move(run), survey.distinct, stream));
    ASSIGN_OR_RETURN(suits, Cut(distinct, survey, options.directory, &cut, stream));
  }
  if (!suits) {
    return absl::FailedPreconditionError(
        "directory=bitmap: the keys are too unevenly distributed; use directory=auto or "
        "directory=tree");
  }

  ASSIGN_OR_RETURN(leaves_, FillLeaves(distinct, cut, stream));
  view_.links = cut.linked.size() != 0;
  view_.distinct = static_cast<Position>(distinct.size());
  view_.leaves = leaves_.data();
  if (distinct.repeats() || options.row_column) {
    first_entry_ = std::move(distinct.first_entry);
    view_.first_entry = first_entry_.data();  // null if keys do not repeat
    row_ids_ = std::move(distinct.row_ids);
  } else {
    ASSIGN_OR_RETURN(samples_, SampleLeaves(cut, distinct.size(), stream));
  }
  CAIRN_RETURN_IF_CUDA_FAILS(cudaStreamSynchronize(stream));
  leaves_.SetStream(AfterAllUses());
  samples_.SetStream(AfterAllUses());
  first_entry_.SetStream(AfterAllUses());
  row_ids_.SetStream(AfterAllUses());
  if (bitmap_.has_value()) bitmap_->Detach();
  return absl::OkStatus();
}

template <typename Key, typename Numbers>
absl::Status PackedIndex<Key, Numbers>::Search(Operation query, DeviceKeys keys, void* results,
                                               DeviceStream stream) const {
  if (size() == 0) {
    const bool row = query == Operation::kFindFirst;
    const size_t bytes = keys.size() * (query == Operation::kContains ? 1 : 4);
    CAIRN_RETURN_IF_CUDA_FAILS(cudaMemsetAsync(results, row ? 0xff : 0, bytes, stream));
    return absl::OkStatus();
  }
  const PackedAnswer answer = query == Operation::kFindFirst  ? PackedAnswer::kRow
                              : query == Operation::kContains ? PackedAnswer::kFound
                                                              : PackedAnswer::kPosition;
  const TextEdge edge = query == Operation::kUpperBound ? TextEdge::kUpper : TextEdge::kLower;
  return Search(answer, keys, edge, results, nullptr, stream);
}

template <typename Key, typename Numbers>
absl::Status PackedIndex<Key, Numbers>::FindEqualRanges(DeviceKeys keys, Position* begin,
                                                        Position* end, DeviceStream stream) const {
  if (size() == 0) {
    RETURN_IF_ERROR(Search(Operation::kLowerBound, keys, begin, stream));
    return Search(Operation::kUpperBound, keys, end, stream);
  }
  return Search(PackedAnswer::kRange, keys, TextEdge::kLower, begin, end, stream);
}

template <typename Key, typename Numbers>
absl::Status PackedIndex<Key, Numbers>::FindPrefixEnds(DeviceKeys prefixes, Position* ends,
                                                       DeviceStream stream) const {
  if (Numbers::kKind != PhysicalType::kBytes) {
    return absl::UnimplementedError("prefixes: expected byte-string keys");
  }
  if (size() == 0) return Search(Operation::kUpperBound, prefixes, ends, stream);
  return Search(PackedAnswer::kPosition, prefixes, TextEdge::kPrefixEnd, ends, nullptr, stream);
}

template <typename Key, typename Numbers>
absl::Status PackedIndex<Key, Numbers>::GatherRows(const Position* begin, const uint64_t* offsets,
                                                   size_t queries, uint64_t rows, Order order,
                                                   RowId* row_ids, DeviceStream stream) const {
  if (row_ids_.size() != 0) {
    return CopyRowsFromColumn({row_ids_.data(), 1}, begin, offsets, queries, rows, order, row_ids,
                              stream);
  }
  return CopyRowsFromLeaves(view_, samples_.data(), begin, offsets, queries, rows, order, row_ids,
                            stream);
}

}  // namespace

namespace {

template <typename Key>
absl::StatusOr<std::unique_ptr<DeviceIndex>> BuildOfNumbers(const SortedRun& run,
                                                            const TextCode& code,
                                                            const PackedIndexOptions& options,
                                                            int threads, cudaStream_t stream) {
  int device = 0;
  CAIRN_RETURN_IF_CUDA_FAILS(cudaGetDevice(&device));
  auto index = std::make_unique<PackedIndex<Key, NumbersOfText<Key>>>(run.size(), device);
  ASSIGN_OR_RETURN(DeviceRun<Key> uploaded, UploadNumbers<Key>(run, code, threads, stream));
  RETURN_IF_ERROR(index->numbers().SetCode(code, stream));
  RETURN_IF_ERROR(index->Build(std::move(uploaded), options, stream));
  return std::unique_ptr<DeviceIndex>(std::move(index));
}

}  // namespace

absl::StatusOr<std::unique_ptr<DeviceIndex>> BuildPackedTextIndex(const SortedRun& run,
                                                                  const TextCode& code,
                                                                  const PackedIndexOptions& options,
                                                                  int threads,
                                                                  cudaStream_t stream) {
  return code.is_narrow() ? BuildOfNumbers<uint64_t>(run, code, options, threads, stream)
                          : BuildOfNumbers<WideKey>(run, code, options, threads, stream);
}

template <typename Key>
absl::StatusOr<std::unique_ptr<DeviceIndex>> BuildPackedIndex(DeviceRun<Key> run,
                                                              const PackedIndexOptions& options,
                                                              cudaStream_t stream) {
  int device = 0;
  CAIRN_RETURN_IF_CUDA_FAILS(cudaGetDevice(&device));
  auto index = std::make_unique<PackedIndex<Key, NumbersThemselves<Key>>>(run.size(), device);
  RETURN_IF_ERROR(index->Build(std::move(run), options, stream));
  return std::unique_ptr<DeviceIndex>(std::move(index));
}

template absl::StatusOr<std::unique_ptr<DeviceIndex>> BuildPackedIndex(DeviceRun<uint32_t>,
                                                                       const PackedIndexOptions&,
                                                                       cudaStream_t);
template absl::StatusOr<std::unique_ptr<DeviceIndex>> BuildPackedIndex(DeviceRun<uint64_t>,
                                                                       const PackedIndexOptions&,
                                                                       cudaStream_t);

}  // namespace cairn::gpu
