#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "cpu_fast/packed/cell_directory.h"
#include "index/files/run_file.h"
#include "index/layout/packed_leaves.h"

// Packed leaves and their directory as sections of a run file: what a PackedIndex builds, byte by
// byte as it searches it, so that opening the file takes no build. docs/internals/formats.md
// describes them.
namespace cairn {

// What the section of leaf properties says; 40 bytes, as they stand there.
struct LeafProperties {
  uint32_t version;    // how the leaves were cut and their directory made; kLeavesVersion
  uint32_t bits;       // of a key that leaves keep: 16, 32 or 64
  uint32_t directory;  // a StoredDirectory
  uint32_t exact;      // of cells: CellDirectory::exact(), 0 or 1; else 0
  uint64_t leaves;     // at least 1, at most kMaxEntries
  uint64_t cells;      // 0 where the directory is a tree, as the following
  uint64_t groups;
};
static_assert(sizeof(LeafProperties) == 40);

// To be raised whenever other leaves, or another directory, would be made of the same keys: a
// reader makes its own then.
inline constexpr uint32_t kLeavesVersion = 1;

enum class StoredDirectory : uint32_t { kCells = 1, kTree = 2 };

// A CellScale of either kind of keys as it stands in the file.
struct StoredGroup {
  uint64_t low;
  uint64_t high;
  uint32_t multiplier;
  uint32_t first_cell;
  uint32_t shift;
  uint32_t reserved;  // 0
};
static_assert(sizeof(StoredGroup) == 32);

// The leaves that a run file has; keeps its mapping alive.
struct StoredLeaves {
  SectionFile file;
  RunProperties run;
  LeafProperties properties;

  StoredDirectory directory() const { return static_cast<StoredDirectory>(properties.directory); }
};

// None where the file has no leaves, or has some of another version. DataLoss, naming file and
// offset, where their properties are damaged.
absl::StatusOr<std::optional<StoredLeaves>> FindStoredLeaves(const RunFile& file);

// Its sections, whose sizes are right; their contents may be anything. Keys are those of the run.
template <typename Key>
struct LeafSections {
  absl::Span<const Leaf> leaves;
  // Cells, or
  absl::Span<const Cell> cells;
  absl::Span<const StoredGroup> groups;
  absl::Span<const Key> bounds;
  // a tree.
  absl::Span<const Key> separators;
  absl::Span<const Key> nodes;
};

// DataLoss where a section is missing or of another size.
template <typename Key>
absl::StatusOr<LeafSections<Key>> SectionsOf(const StoredLeaves& stored);

// The scales of groups. DataLoss where one of them could place a key behind the last of the cells.
template <typename Key>
absl::StatusOr<AlignedBuffer<CellScale<Key>>> ScalesOf(const StoredLeaves& stored,
                                                       absl::Span<const StoredGroup> groups);

// DataLoss at a place in a section that the file has.
absl::Status DamagedLeaves(const StoredLeaves& stored, RunSection section, uint64_t offset,
                           std::string_view what);

}  // namespace cairn
