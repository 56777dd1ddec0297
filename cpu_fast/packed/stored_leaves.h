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

// Packed leaves and their directory as sections of a run file. They have the same bytes as those
// that PackedIndex builds and searches, so opening the file builds nothing.
// docs/internals/formats.md describes the sections.
namespace cairn {

// The content of the section of leaf properties; 40 bytes, as stored in the file.
struct LeafProperties {
  uint32_t version;    // of the algorithms that cut leaves and build the directory; kLeavesVersion
  uint32_t bits;       // bits of a key that leaves keep: 16, 32 or 64
  uint32_t directory;  // a StoredDirectory
  uint32_t exact;      // for cells: CellDirectory::exact(), 0 or 1; otherwise 0
  uint64_t leaves;     // at least 1, at most kMaxEntries
  uint64_t cells;      // cells and groups are 0 for a tree
  uint64_t groups;
};
static_assert(sizeof(LeafProperties) == 40);

// Must be raised whenever the same keys would produce other leaves or another directory. A reader
// of another version builds its own.
inline constexpr uint32_t kLeavesVersion = 1;

enum class StoredDirectory : uint32_t { kCells = 1, kTree = 2 };

// A CellScale of either key width, as stored in the file.
struct StoredGroup {
  uint64_t low;
  uint64_t high;
  uint32_t multiplier;
  uint32_t first_cell;
  uint32_t shift;
  uint32_t reserved;  // 0
};
static_assert(sizeof(StoredGroup) == 32);

// The leaves stored in a run file; keeps the file's mapping alive.
struct StoredLeaves {
  SectionFile file;
  RunProperties run;
  LeafProperties properties;

  StoredDirectory directory() const { return static_cast<StoredDirectory>(properties.directory); }
};

// Returns nullopt if the file has no leaves, or leaves of another version. Errors: DataLoss, naming
// file and offset, if their properties are damaged.
absl::StatusOr<std::optional<StoredLeaves>> FindStoredLeaves(const RunFile& file);

// The sections of the leaves. Their sizes are valid; their contents may be anything. `Key` is the
// key type of the run.
template <typename Key>
struct LeafSections {
  absl::Span<const Leaf> leaves;
  // For StoredDirectory::kCells:
  absl::Span<const Cell> cells;
  absl::Span<const StoredGroup> groups;
  absl::Span<const Key> bounds;
  // For StoredDirectory::kTree:
  absl::Span<const Key> separators;
  absl::Span<const Key> nodes;
};

// Errors: DataLoss if a section is missing or has the wrong size.
template <typename Key>
absl::StatusOr<LeafSections<Key>> SectionsOf(const StoredLeaves& stored);

// Converts groups to scales. Errors: DataLoss if a group could place a key past the last cell.
template <typename Key>
absl::StatusOr<AlignedBuffer<CellScale<Key>>> ScalesOf(const StoredLeaves& stored,
                                                       absl::Span<const StoredGroup> groups);

// Makes a DataLoss error for an offset in a section that the file has.
absl::Status DamagedLeaves(const StoredLeaves& stored, RunSection section, uint64_t offset,
                           std::string_view what);

}  // namespace cairn
