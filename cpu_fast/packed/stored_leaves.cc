#include "cpu_fast/packed/stored_leaves.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <string>

#include "absl/strings/str_format.h"
#include "cpu_fast/fast/fast_tree.h"
#include "index/machine/status_macros.h"

namespace cairn {
namespace {

constexpr uint32_t IdOf(RunSection section) {
  return static_cast<uint32_t>(section);
}

// Describes what is invalid in the properties of leaves over keys of `key_bits`; empty if all is
// valid.
std::string FaultOf(const LeafProperties& p, uint32_t key_bits) {
  if ((p.bits != 16 && p.bits != 32 && p.bits != 64) || p.bits > key_bits) {
    return absl::StrFormat("invalid bits: %d, for keys of %d bits", p.bits, key_bits);
  }
  if (p.directory != static_cast<uint32_t>(StoredDirectory::kCells) &&
      p.directory != static_cast<uint32_t>(StoredDirectory::kTree)) {
    return absl::StrFormat("invalid directory type: %d", p.directory);
  }
  if (p.leaves < 1 || p.leaves > kMaxEntries)
    return absl::StrFormat("invalid number of leaves: %d", p.leaves);
  const bool cells = p.directory == static_cast<uint32_t>(StoredDirectory::kCells);
  if (cells ? p.cells < 1 || p.cells > UINT32_MAX : p.cells != 0) {
    return absl::StrFormat("invalid number of cells: %d", p.cells);
  }
  if (cells ? p.groups < 1 || p.groups > CellDirectory<uint64_t>::kMaxGroups : p.groups != 0) {
    return absl::StrFormat("invalid number of cell groups: %d", p.groups);
  }
  if (p.exact > (cells ? 1 : 0)) return absl::StrFormat("invalid exact flag: %d", p.exact);
  return std::string();
}

// Whether the group maps every key to one of the first `cells` cells.
template <typename Key>
bool IsSafe(const StoredGroup& group, uint64_t cells) {
  constexpr Key kGreatest = std::numeric_limits<Key>::max();
  constexpr uint32_t kKeyBits = sizeof(Key) * 8;
  __extension__ using Product = unsigned __int128;
  if (group.low > group.high || group.high > kGreatest || group.shift >= kKeyBits) return false;
  const uint64_t width = group.high - group.low;
  if (width > static_cast<Key>(kGreatest >> group.shift)) return false;
  const auto last =
      static_cast<uint64_t>(Product{width << group.shift} * group.multiplier >> kKeyBits);
  return group.first_cell + last < cells;
}

}  // namespace

absl::Status DamagedLeaves(const StoredLeaves& stored, RunSection section, uint64_t offset,
                           std::string_view what) {
  const Section* const at = stored.file.Find(IdOf(section));
  return absl::DataLossError(absl::StrFormat("%s '%s' is damaged at offset %d, in section '%s': %s",
                                             kRunFileFormat.name, stored.file.path(),
                                             (at == nullptr ? 0 : at->offset) + offset,
                                             stored.file.SectionName(IdOf(section)), what));
}

absl::StatusOr<std::optional<StoredLeaves>> FindStoredLeaves(const RunFile& file) {
  const Section* const section = file.file.Find(IdOf(RunSection::kLeafProperties));
  if (section == nullptr || file.properties.kind() == PhysicalType::kBytes) {
    return std::optional<StoredLeaves>();
  }
  StoredLeaves stored{file.file, file.properties, {}};
  if (section->size < sizeof(uint32_t)) {
    return DamagedLeaves(stored, RunSection::kLeafProperties, 0,
                         absl::StrFormat("invalid size: %d bytes", section->size));
  }
  RETURN_IF_ERROR(file.file.VerifySection(*section));
  // All versions begin with the version number.
  const auto version = *reinterpret_cast<const uint32_t*>(file.file.BytesOf(*section).data());
  if (version != kLeavesVersion) return std::optional<StoredLeaves>();
  ASSIGN_OR_RETURN(const absl::Span<const LeafProperties> properties,
                   file.file.Array<LeafProperties>(section->id, 1));
  stored.properties = properties.front();
  const uint32_t key_bits = file.properties.kind() == PhysicalType::kU32 ? 32 : 64;
  if (const std::string fault = FaultOf(stored.properties, key_bits); !fault.empty()) {
    return DamagedLeaves(stored, RunSection::kLeafProperties, 0, fault);
  }
  return std::optional<StoredLeaves>(std::move(stored));
}

template <typename Key>
absl::StatusOr<LeafSections<Key>> SectionsOf(const StoredLeaves& stored) {
  const SectionFile& file = stored.file;
  const LeafProperties& p = stored.properties;
  LeafSections<Key> sections;
  ASSIGN_OR_RETURN(sections.leaves, file.Array<Leaf>(IdOf(RunSection::kLeaves), p.leaves));
  if (stored.directory() == StoredDirectory::kCells) {
    ASSIGN_OR_RETURN(sections.cells, file.Array<Cell>(IdOf(RunSection::kCells), p.cells));
    ASSIGN_OR_RETURN(sections.groups,
                     file.Array<StoredGroup>(IdOf(RunSection::kCellGroups), p.groups));
    ASSIGN_OR_RETURN(sections.bounds,
                     file.Array<Key>(IdOf(RunSection::kGroupBounds), p.groups - 1));
  } else {
    ASSIGN_OR_RETURN(sections.separators,
                     file.Array<Key>(IdOf(RunSection::kLeafSeparators), p.leaves - 1));
    ASSIGN_OR_RETURN(sections.nodes, file.Array<Key>(IdOf(RunSection::kLeafTree),
                                                     FastTreeNodes<Key>::NodeCount(p.leaves - 1)));
  }
  return sections;
}

template <typename Key>
absl::StatusOr<AlignedBuffer<CellScale<Key>>> ScalesOf(const StoredLeaves& stored,
                                                       absl::Span<const StoredGroup> groups) {
  AlignedBuffer<CellScale<Key>> scales(groups.size());
  for (size_t g = 0; g < groups.size(); ++g) {
    const StoredGroup& group = groups[g];
    if (!IsSafe<Key>(group, stored.properties.cells)) {
      return DamagedLeaves(stored, RunSection::kCellGroups, g * sizeof(StoredGroup),
                           "the cell group exceeds the directory");
    }
    scales[g] = CellScale<Key>{static_cast<Key>(group.low), static_cast<Key>(group.high),
                               group.multiplier, group.first_cell, group.shift};
  }
  return scales;
}

template absl::StatusOr<LeafSections<uint32_t>> SectionsOf(const StoredLeaves&);
template absl::StatusOr<LeafSections<uint64_t>> SectionsOf(const StoredLeaves&);
template absl::StatusOr<AlignedBuffer<CellScale<uint32_t>>> ScalesOf(const StoredLeaves&,
                                                                     absl::Span<const StoredGroup>);
template absl::StatusOr<AlignedBuffer<CellScale<uint64_t>>> ScalesOf(const StoredLeaves&,
                                                                     absl::Span<const StoredGroup>);

}  // namespace cairn
