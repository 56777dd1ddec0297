#include "engine/rows/row_table.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/container/fixed_array.h"
#include "absl/strings/str_format.h"
#include "index/machine/parallel.h"
#include "index/machine/prefetch.h"
#include "index/machine/status_macros.h"

namespace cairn {
namespace {

// A batch is processed in groups of this many keys. Each stage of a group prefetches for the next.
constexpr size_t kGroup = 64;

// Number of blocks that one task checks.
constexpr uint64_t kBlocksPerTask = 4096;

constexpr uint64_t CeilDivide(uint64_t n, uint64_t by) {
  return n / by + (n % by != 0);
}

}  // namespace

// One search of a batch. The answer's block is in [begin, end), which shrinks to one block.
struct RowTable::Search {
  std::string_view key;
  uint64_t begin = 0;
  uint64_t end = 0;
  RowId row = 0;       // the result
  bool found = false;  // whether `row` has the key
};

absl::StatusOr<RowTable> RowTable::Wrap(const Sections& sections, std::string name, int threads,
                                        std::shared_ptr<const void> owner, ContentCheck check) {
  RowTable table;
  table.sections_ = sections;
  table.name_ = std::move(name);
  table.owner_ = std::move(owner);
  RETURN_IF_ERROR(table.CheckDirectory());
  if (check == ContentCheck::kNow) RETURN_IF_ERROR(table.CheckKeys(threads));
  table.rows_ = sections.parts.back().first_row;
  return table;
}

uint64_t RowTable::memory_bytes() const {
  return sections_.blocks.size() + sections_.parts.size() * sizeof(RowTablePart) +
         (sections_.block_offsets.size() + sections_.separator_ends.size()) * sizeof(uint64_t) +
         sections_.separators.size();
}

absl::Status RowTable::CheckDirectory() const {
  const auto& parts = sections_.parts;
  if (parts.empty() || parts[0].first_row != 0 || parts[0].first_block != 0 ||
      parts[0].first_separator != 0) {
    return absl::DataLossError(
        absl::StrFormat("%s: the row table's directory does not start with row 0", name_));
  }
  for (size_t i = 1; i < parts.size(); ++i) {
    const RowTablePart& before = parts[i - 1];
    // Check rows first, so that the sums below cannot overflow.
    if (parts[i].first_row < before.first_row || parts[i].first_row > kMaxEntries) {
      return absl::DataLossError(
          absl::StrFormat("%s: part %d of the row table starts at row %d, the previous one at %d",
                          name_, i, parts[i].first_row, before.first_row));
    }
    const uint64_t blocks = CeilDivide(parts[i].first_row - before.first_row, kRowsPerBlock);
    const uint64_t separators = CeilDivide(blocks, kBlocksPerSeparator);
    if (parts[i].first_block != before.first_block + blocks ||
        parts[i].first_separator != before.first_separator + separators) {
      return absl::DataLossError(absl::StrFormat(
          "%s: part %d of the row table starts at block %d and separator %d; expected %d and %d",
          name_, i, parts[i].first_block, parts[i].first_separator, before.first_block + blocks,
          before.first_separator + separators));
    }
  }
  const RowTablePart& total = parts.back();
  const auto& ends = sections_.separator_ends;
  if (sections_.block_offsets.size() != total.first_block ||
      ends.size() != total.first_separator + 1) {
    return absl::DataLossError(absl::StrFormat(
        "%s: the row table has %d block offsets and %d separator ends; expected %d and %d", name_,
        sections_.block_offsets.size(), ends.size(), total.first_block, total.first_separator + 1));
  }
  if (ends.front() != 0 || ends.back() != sections_.separators.size() ||
      !std::is_sorted(ends.begin(), ends.end())) {
    return absl::DataLossError(
        absl::StrFormat("%s: the row table's separator ends do not ascend from 0 to %d", name_,
                        sections_.separators.size()));
  }
  return absl::OkStatus();
}

absl::Status RowTable::CheckKeys(int threads) const {
  if (sections_.parts.empty()) return absl::OkStatus();
  const uint64_t blocks = sections_.parts.back().first_block;
  std::vector<absl::Status> results(CeilDivide(blocks, kBlocksPerTask));
  ParallelFor(threads, results.size(), [&](size_t task) {
    const uint64_t first = task * kBlocksPerTask;
    results[task] = CheckBlocks(first, std::min(first + kBlocksPerTask, blocks));
  });
  for (absl::Status& result : results) {
    if (!result.ok()) return std::move(result);
  }
  return absl::OkStatus();
}

// Checks blocks [first, last), and that their keys follow the block before them.
absl::Status RowTable::CheckBlocks(uint64_t first, uint64_t last) const {
  std::string before, key;  // the previous block's last key, and this block's first key
  for (uint64_t block = first - (first > 0); block < last; ++block) {
    const size_t part = PartOf<&RowTablePart::first_block>(block);
    const uint64_t rank = block - sections_.parts[part].first_block;
    RowBlock parsed;
    if (!Parse(block, RowsOf(block), &parsed)) return Damaged(block);
    std::string_view rest_before;
    for (uint32_t i = 0; i < parsed.rows(); ++i) {
      std::string_view rest;
      if (!parsed.Rest(i, &rest)) return Damaged(block);
      bool ascends = i == 0 || rest_before < rest;
      if (i == 0 && block >= first) {
        key.assign(parsed.prefix()).append(rest);
        ascends = block == 0 || before < key;
        const bool has_separator = rank % kBlocksPerSeparator == 0;
        const std::string_view separator =
            has_separator
                ? Separator(sections_.parts[part].first_separator + rank / kBlocksPerSeparator)
                : key;
        if (ascends && (separator > key || (block > 0 && separator <= before))) {
          return absl::DataLossError(absl::StrFormat(
              "%s: the separator before row %d does not separate it from the previous row", name_,
              FirstRowOf(block)));
        }
      }
      if (!ascends) {
        const uint64_t row = uint64_t{FirstRowOf(block)} + i;
        return absl::DataLossError(absl::StrFormat(
            "%s: the primary keys of rows %d and %d do not ascend", name_, row - 1, row));
      }
      rest_before = rest;
    }
    before.assign(parsed.prefix()).append(rest_before);
  }
  return absl::OkStatus();
}

absl::Status RowTable::Damaged(uint64_t block) const {
  return absl::DataLossError(absl::StrFormat(
      "%s: block %d of the row table, with rows from %d on, at offset %d of %d bytes of blocks, is "
      "damaged",
      name_, block, FirstRowOf(block), sections_.block_offsets[block], sections_.blocks.size()));
}

RowId RowTable::FirstRowOf(uint64_t block) const {
  const RowTablePart& part = sections_.parts[PartOf<&RowTablePart::first_block>(block)];
  return static_cast<RowId>(part.first_row + (block - part.first_block) * kRowsPerBlock);
}

uint32_t RowTable::RowsOf(uint64_t block) const {
  const size_t part = PartOf<&RowTablePart::first_block>(block);
  const RowTablePart& at = sections_.parts[part];
  const uint64_t first = at.first_row + (block - at.first_block) * kRowsPerBlock;
  return static_cast<uint32_t>(
      std::min<uint64_t>(kRowsPerBlock, sections_.parts[part + 1].first_row - first));
}

std::string_view RowTable::Separator(uint64_t i) const {
  const uint64_t begin = sections_.separator_ends[i];
  return sections_.separators.substr(begin, sections_.separator_ends[i + 1] - begin);
}

bool RowTable::Parse(uint64_t block, uint32_t rows, RowBlock* parsed) const {
  const uint64_t offset = sections_.block_offsets[block];
  const std::string_view blocks = sections_.blocks;
  return offset < blocks.size() &&
         parsed->Parse(blocks.data() + offset, blocks.size() - offset, rows);
}

// Prefetching an address outside of the mapping is harmless.
void RowTable::PrefetchBlock(uint64_t block) const {
  const auto address = reinterpret_cast<uintptr_t>(sections_.blocks.data()) +
                       static_cast<uintptr_t>(sections_.block_offsets[block]);
  Prefetch(reinterpret_cast<const void*>(address));
}

RowTable::Place RowTable::PlaceOf(RowId row) const {
  const size_t part = PartOf<&RowTablePart::first_row>(row);
  const RowTablePart& at = sections_.parts[part];
  const uint64_t rank = row - at.first_row;
  const uint64_t block_rank = rank / kRowsPerBlock;
  const uint64_t rows_from_block =
      sections_.parts[part + 1].first_row - at.first_row - block_rank * kRowsPerBlock;
  return {at.first_block + block_rank,
          static_cast<uint32_t>(std::min<uint64_t>(kRowsPerBlock, rows_from_block)),
          static_cast<uint32_t>(rank % kRowsPerBlock)};
}

// The bytes up to the next block, of those in the section.
std::string_view RowTable::BytesOf(uint64_t block) const {
  const uint64_t size = sections_.blocks.size();
  const auto begin_of = [&](uint64_t i) {
    return i < sections_.block_offsets.size() ? std::min(sections_.block_offsets[i], size) : size;
  };
  const uint64_t begin = begin_of(block);
  return sections_.blocks.substr(begin, std::max(begin, begin_of(block + 1)) - begin);
}

size_t RowTable::RequestBlocks(absl::Span<const RowId> row_ids, ColdReads* reads) const {
  size_t count = 0;
  for (; count < row_ids.size(); ++count) {
    const uint64_t* const offset = &sections_.block_offsets[PlaceOf(row_ids[count]).block];
    if (!reads->Add(offset, 2 * sizeof(uint64_t))) break;
  }
  reads->Request();
  for (size_t i = 0; i < count; ++i) {
    const std::string_view block = BytesOf(PlaceOf(row_ids[i]).block);
    if (!reads->Add(block.data(), block.size())) count = i;
  }
  reads->Request();
  return count;
}

absl::Status RowTable::PrimaryKeys(absl::Span<const RowId> row_ids,
                                   StringList* primary_keys) const {
  for (const RowId row : row_ids) {
    if (row < rows_) continue;
    return absl::OutOfRangeError(
        absl::StrFormat("%s: there is no row %d; expected one of %d", name_, row, rows_));
  }
  struct Row {
    Place place;
    RowBlock parsed;
  };
  absl::FixedArray<Row, kGroup> group(std::min(kGroup, row_ids.size()));
  ColdReads reads;
  size_t requested = 0;
  for (size_t first = 0; first < row_ids.size(); first += kGroup) {
    const size_t count = std::min(kGroup, row_ids.size() - first);
    for (size_t i = 0; i < count; ++i) {
      group[i].place = PlaceOf(row_ids[first + i]);
      Prefetch(&sections_.block_offsets[group[i].place.block]);
    }
    for (size_t i = 0; i < count; ++i) PrefetchBlock(group[i].place.block);
    if (row_ids.size() >= ColdReads::kMinReads && first >= requested) {
      const std::string_view block = BytesOf(group[0].place.block);
      if (!block.empty() && reads.Wait(block.data())) {
        requested = first + RequestBlocks(row_ids.subspan(first), &reads) / kGroup * kGroup;
      }
    }
    for (size_t i = 0; i < count; ++i) {
      const Place& place = group[i].place;
      if (!Parse(place.block, place.rows, &group[i].parsed)) return Damaged(place.block);
      Prefetch(group[i].parsed.rest_address(place.index));
    }
    for (size_t i = 0; i < count; ++i) {
      std::string_view rest;
      if (!group[i].parsed.Rest(group[i].place.index, &rest)) return Damaged(group[i].place.block);
      primary_keys->Append(group[i].parsed.prefix(), rest);
    }
  }
  return absl::OkStatus();
}

absl::Status RowTable::Locate(absl::Span<Search> searches) const {
  // The last separator that is at most the key starts the 64 blocks that contain the answer, unless
  // it is the row after them. A key before all separators precedes all rows.
  if (rows_ == 0) return absl::OkStatus();
  const uint64_t separators = sections_.separator_ends.size() - 1;
  for (Search& search : searches) {
    uint64_t begin = 0;
    uint64_t end = separators;
    while (begin < end) {
      const uint64_t middle = begin + (end - begin) / 2;
      if (Separator(middle) <= search.key) {
        begin = middle + 1;
      } else {
        end = middle;
      }
    }
    if (begin == 0) continue;
    const size_t part = PartOf<&RowTablePart::first_separator>(begin - 1);
    const RowTablePart& at = sections_.parts[part];
    search.begin = at.first_block + (begin - 1 - at.first_separator) * kBlocksPerSeparator;
    search.end =
        std::min(search.begin + kBlocksPerSeparator, sections_.parts[part + 1].first_block);
    const uint64_t* const offsets = sections_.block_offsets.data();
    for (uint64_t block = search.begin; block < search.end; block += 8) {
      Prefetch(&offsets[block]);
    }
  }
  // Bisect the blocks of all searches in lockstep.
  for (uint32_t width = kBlocksPerSeparator; width > 1; width = (width + 1) / 2) {
    for (const Search& search : searches) {
      if (search.end - search.begin > 1) PrefetchBlock((search.begin + search.end) / 2);
    }
    for (Search& search : searches) {
      if (search.end - search.begin <= 1) continue;
      const uint64_t middle = (search.begin + search.end) / 2;
      RowBlock block;
      bool at_most = false;
      if (!Parse(middle, RowsOf(middle), &block) || !block.FirstAtMost(search.key, &at_most)) {
        return Damaged(middle);
      }
      (at_most ? search.begin : search.end) = middle;
    }
  }
  for (const Search& search : searches) {
    if (search.begin != search.end) PrefetchBlock(search.begin);
  }
  for (Search& search : searches) {
    if (search.begin == search.end) continue;
    RowBlock block;
    uint32_t index = 0;
    if (!Parse(search.begin, RowsOf(search.begin), &block) ||
        !block.LowerBound(search.key, &index, &search.found)) {
      return Damaged(search.begin);
    }
    search.row = FirstRowOf(search.begin) + index;
  }
  return absl::OkStatus();
}

absl::StatusOr<RowId> RowTable::Find(std::string_view primary_key) const {
  Search search{primary_key};
  RETURN_IF_ERROR(Locate(absl::MakeSpan(&search, 1)));
  return search.found ? search.row : kNoRow;
}

absl::StatusOr<RowId> RowTable::LowerBound(std::string_view primary_key) const {
  Search search{primary_key};
  RETURN_IF_ERROR(Locate(absl::MakeSpan(&search, 1)));
  return search.row;
}

template <typename Take>
absl::Status RowTable::LocateAll(absl::Span<const std::string_view> primary_keys, Take take) const {
  Search group[kGroup];
  for (size_t first = 0; first < primary_keys.size(); first += kGroup) {
    const size_t count = std::min(kGroup, primary_keys.size() - first);
    for (size_t i = 0; i < count; ++i) group[i] = Search{primary_keys[first + i]};
    RETURN_IF_ERROR(Locate(absl::MakeSpan(group, count)));
    for (size_t i = 0; i < count; ++i) take(first + i, group[i]);
  }
  return absl::OkStatus();
}

absl::Status RowTable::Find(absl::Span<const std::string_view> primary_keys,
                            absl::Span<RowId> row_ids) const {
  return LocateAll(primary_keys, [&](size_t i, const Search& search) {
    row_ids[i] = search.found ? search.row : kNoRow;
  });
}

absl::Status RowTable::LowerBound(absl::Span<const std::string_view> primary_keys,
                                  absl::Span<RowId> row_ids) const {
  return LocateAll(primary_keys, [&](size_t i, const Search& search) { row_ids[i] = search.row; });
}

absl::Status RowTable::Places(absl::Span<const std::string_view> primary_keys,
                              absl::Span<RowPlace> places) const {
  return LocateAll(primary_keys, [&](size_t i, const Search& search) {
    places[i] = {primary_keys[i], search.row, search.found};
  });
}

}  // namespace cairn
