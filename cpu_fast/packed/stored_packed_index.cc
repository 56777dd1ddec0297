#include "cpu_fast/packed/stored_packed_index.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "cpu_fast/packed/packed_index_base.h"
#include "index/machine/parallel.h"
#include "index/machine/status_macros.h"
#include "index/machine/topology.h"

namespace cairn {
namespace {

// Results that are checked while they are still in the L1 cache.
constexpr size_t kCheckedAtATime = 4096;
// Bytes that one task copies.
constexpr size_t kCopyGrain = size_t{4} << 20;

// Copies `values` to `memory` and makes `values` point to the copy.
template <typename T>
void CopyTo(AlignedBuffer<T>* memory, absl::Span<const T>* values) {
  *memory = AlignedBuffer<T>(values->size());
  const size_t bytes = values->size() * sizeof(T);
  ParallelFor(Topology::Get().cores(), (bytes + kCopyGrain - 1) / kCopyGrain, [&](size_t task) {
    const size_t begin = task * kCopyGrain;
    std::memcpy(reinterpret_cast<char*>(memory->data()) + begin,
                reinterpret_cast<const char*>(values->data()) + begin,
                std::min(kCopyGrain, bytes - begin));
  });
  *values = std::as_const(*memory).span();
}

// Leaves and a directory whose bytes are untrusted. Results are limited to values that are valid
// for the run.
template <typename Key>
class StoredPackedIndex final : public PackedIndexBase<Key> {
 public:
  static absl::StatusOr<std::unique_ptr<OrderedIndex>> Open(SortedRun run,
                                                            const StoredLeaves& stored,
                                                            LeafMemory memory, SimdLevel level) {
    std::unique_ptr<StoredPackedIndex> index(new StoredPackedIndex(std::move(run), stored, level));
    RETURN_IF_ERROR(index->Use(memory));
    return index;
  }

  uint64_t memory_bytes() const override {
    return leaves_.size() * sizeof(Leaf) + cells_.size() * sizeof(Cell) +
           scales_.size() * sizeof(CellScale<Key>) + tree_.memory_bytes() +
           (bounds_.size() + far_bounds_.size() + separators_.size() + nodes_.size()) * sizeof(Key);
  }
  uint64_t huge_page_bytes() const override {
    return leaves_.huge_page_bytes() + cells_.huge_page_bytes() + separators_.huge_page_bytes() +
           nodes_.huge_page_bytes();
  }
  uint64_t mapped_bytes() const override { return mapped_bytes_; }

 private:
  using PackedIndexBase<Key>::tree_;
  using PackedIndexBase<Key>::view_;

  StoredPackedIndex(SortedRun run, const StoredLeaves& stored, SimdLevel level)
      : PackedIndexBase<Key>(std::move(run), level),
        stored_(stored),
        entries_(static_cast<Position>(this->run().size())),
        rows_bound_(stored.run.rows_bound) {}

  absl::Status Use(LeafMemory memory) {
    ASSIGN_OR_RETURN(LeafSections<Key> sections, SectionsOf<Key>(stored_));
    if (memory == LeafMemory::kCopied) {
      CopyTo(&leaves_, &sections.leaves);
    } else {
      mapped_bytes_ = sections.leaves.size() * sizeof(Leaf);
    }
    view_.leaves = sections.leaves.data();
    view_.leaf_count = sections.leaves.size();
    const bool cells = stored_.directory() == StoredDirectory::kCells;
    RETURN_IF_ERROR(cells ? UseCells(memory, sections) : UseTree(memory, sections));
    this->ChooseSearch(static_cast<int>(stored_.properties.bits),
                       !cells || stored_.properties.exact != 0, LeafTrust::kNone);
    return absl::OkStatus();
  }

  absl::Status UseCells(LeafMemory memory, LeafSections<Key> sections) {
    // Groups and bounds are few. They are copied, so that they cannot change after they were
    // checked.
    constexpr size_t kNear = CellDirectory<Key>::kNearBounds;
    ASSIGN_OR_RETURN(scales_, ScalesOf<Key>(stored_, sections.groups));
    const size_t bounds = sections.bounds.size();
    bounds_ = AlignedBuffer<Key>(bounds + kNear);
    std::copy(sections.bounds.begin(), sections.bounds.end(), bounds_.data());
    std::fill_n(bounds_.data() + bounds, kNear, std::numeric_limits<Key>::max());
    view_.groups = std::as_const(scales_).span();
    view_.bounds = std::as_const(bounds_).span().first(bounds);
    far_bounds_ = CellDirectory<Key>::FarBounds(view_.bounds);
    view_.far_bounds = std::as_const(far_bounds_).span();
    if (memory == LeafMemory::kCopied) {
      CopyTo(&cells_, &sections.cells);
    } else {
      mapped_bytes_ += sections.cells.size() * sizeof(Cell);
    }
    view_.cells = sections.cells.data();
    return absl::OkStatus();
  }

  absl::Status UseTree(LeafMemory memory, LeafSections<Key> sections) {
    if (memory == LeafMemory::kCopied) {
      CopyTo(&separators_, &sections.separators);
      CopyTo(&nodes_, &sections.nodes);
    } else {
      mapped_bytes_ += (sections.separators.size() + sections.nodes.size()) * sizeof(Key);
    }
    if (!FastTreeNodes<Key>::AreSafe(sections.separators.size(), sections.nodes,
                                     Topology::Get().cores())) {
      return DamagedLeaves(stored_, RunSection::kLeafTree, 0,
                           "a tree node leads past the last child");
    }
    tree_ = FastTreeNodes<Key>(sections.separators, sections.nodes, this->level());
    return absl::OkStatus();
  }

  void LowerBound(KeyBatch keys, Position* positions) const override {
    const absl::Span<const Key> queries = keys.as<Key>();
    for (size_t first = 0; first < queries.size(); first += kCheckedAtATime) {
      const auto some = queries.subspan(first, kCheckedAtATime);
      this->SearchPositions(some, positions + first);
      for (size_t i = first; i < first + some.size(); ++i) {
        positions[i] = std::min(positions[i], entries_);
      }
    }
  }
  void FindFirst(KeyBatch keys, RowId* row_ids) const override {
    const absl::Span<const Key> queries = keys.as<Key>();
    for (size_t first = 0; first < queries.size(); first += kCheckedAtATime) {
      const auto some = queries.subspan(first, kCheckedAtATime);
      this->SearchRows(some, row_ids + first);
      for (size_t i = first; i < first + some.size(); ++i) {
        row_ids[i] = row_ids[i] < rows_bound_ ? row_ids[i] : kNoRow;
      }
    }
  }

  const StoredLeaves stored_;  // keeps the mapping alive
  const Position entries_;
  const uint64_t rows_bound_;
  uint64_t mapped_bytes_ = 0;
  AlignedBuffer<CellScale<Key>> scales_;
  AlignedBuffer<Key> bounds_;
  AlignedBuffer<Key> far_bounds_;
  // Empty if the file's own arrays are searched.
  AlignedBuffer<Leaf> leaves_;
  AlignedBuffer<Cell> cells_;
  AlignedBuffer<Key> separators_;
  AlignedBuffer<Key> nodes_;
};

}  // namespace

bool AreLeavesOf(const StoredLeaves& stored, const PackedIndexOptions& options) {
  if (options.bits != 0 && options.bits != static_cast<int>(stored.properties.bits)) return false;
  switch (options.directory) {
    case LeafDirectory::kAuto:
      return true;
    case LeafDirectory::kCells:
      return stored.directory() == StoredDirectory::kCells;
    case LeafDirectory::kTree:
      return stored.directory() == StoredDirectory::kTree;
  }
  return false;
}

absl::StatusOr<std::unique_ptr<OrderedIndex>> OpenPackedIndex(SortedRun run,
                                                              const PackedIndexOptions& options,
                                                              const StoredLeaves& stored,
                                                              LeafMemory memory) {
  ASSIGN_OR_RETURN(const SimdLevel level, ChooseSimdLevel(options.simd));
  if (run.kind() != stored.run.kind() || run.size() != stored.run.entries) {
    return absl::InternalError("OpenPackedIndex: the leaves belong to another run");
  }
  return run.kind() == PhysicalType::kU32
             ? StoredPackedIndex<uint32_t>::Open(std::move(run), stored, memory, level)
             : StoredPackedIndex<uint64_t>::Open(std::move(run), stored, memory, level);
}

}  // namespace cairn
