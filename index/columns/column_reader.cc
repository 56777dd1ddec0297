#include "index/columns/column_reader.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <type_traits>

#include "absl/strings/str_format.h"
#include "index/columns/column_type.h"
#include "index/columns/decimals.h"
#include "index/columns/packed_numbers.h"
#include "index/keys/key_number.h"
#include "index/machine/cold_reads.h"
#include "index/machine/prefetch.h"
#include "index/machine/status_macros.h"

namespace cairn {
namespace {

// Rows whose reads overlap: more than a core has outstanding at a time.
constexpr size_t kTogether = 32;
// Rows between two checks whether the reads wait for a disk.
constexpr size_t kBetweenWaits = 8 * kTogether;

constexpr uint64_t kInBlock = kRowsPerColumnBlock - 1;

bool IsNullIn(const char* validity, uint64_t i) {
  return (validity[i / 8] >> (i % 8) & 1) == 0;
}

// The address of the 8 bytes that contain one row's number, and how to extract it.
struct Probe {
  const ColumnBlock* block;
  const char* word;
  const char* validity;  // null if no row of the block is null
  uint32_t i;            // index of the row in the block

  uint64_t Number() const {
    uint64_t bits;
    std::memcpy(&bits, word, sizeof bits);
    return block->base + (bits >> (i * block->width) % 8 & PackedMask(block->width));
  }
  bool null() const { return validity != nullptr && IsNullIn(validity, i); }
};

template <bool kNulls>
Probe ProbeOf(const ColumnReader& column, RowId row) {
  const ColumnBlock* const block = &column.directory[row >> kLog2RowsPerColumnBlock];
  const auto in_block = static_cast<uint32_t>(row & kInBlock);
  const char* at = column.blocks.data() + block->offset();
  const char* validity = nullptr;
  if (kNulls && block->has_nulls()) {
    validity = at;
    at += kBlockValidityBytes;
  }
  return {block, at + uint64_t{in_block} * block->width / 8, validity, in_block};
}

// Finds the rows' numbers and prefetches them.
template <bool kNulls>
void Probes(const ColumnReader& column, absl::Span<const RowId> row_ids, Probe* probes) {
  for (size_t i = 0; i < row_ids.size(); ++i) {
    probes[i] = ProbeOf<kNulls>(column, row_ids[i]);
    if (probes[i].validity != nullptr) Prefetch(probes[i].validity + probes[i].i / 8);
    Prefetch(probes[i].word);
  }
}

// Requests the pages of the first rows' numbers. Returns the number of these rows.
size_t RequestNumbers(const ColumnReader& column, absl::Span<const RowId> row_ids,
                      ColdReads* reads) {
  size_t count = 0;
  for (; count < row_ids.size(); ++count) {
    const Probe probe = ProbeOf<true>(column, row_ids[count]);
    if (probe.validity != nullptr && !reads->Add(probe.validity + probe.i / 8, 1)) break;
    if (!reads->Add(probe.word, sizeof(uint64_t))) break;
  }
  reads->Request();
  return count;
}

// Calls take(first, probes) for successive stretches of rows. The numbers of a stretch are
// prefetched before take() is called for the stretch before it.
template <bool kNulls, typename Take>
void ProbeAll(const ColumnReader& column, absl::Span<const RowId> row_ids, Take take) {
  std::array<Probe, kTogether> probes[2];
  size_t filled = 0;  // rows in the prefetched stretch
  ColdReads reads;
  size_t requested = 0;
  for (size_t first = 0; first < row_ids.size() + kTogether; first += kTogether) {
    const size_t turn = first / kTogether % 2;
    const size_t next = first < row_ids.size() ? std::min(kTogether, row_ids.size() - first) : 0;
    if (row_ids.size() >= ColdReads::kMinReads && first >= requested && next > 0 &&
        first % kBetweenWaits == 0 && reads.Wait(ProbeOf<kNulls>(column, row_ids[first]).word)) {
      const size_t rows = RequestNumbers(column, row_ids.subspan(first), &reads);
      requested = first + rows / kBetweenWaits * kBetweenWaits;
    }
    const size_t ahead = std::min(row_ids.size(), first + 2 * kTogether);
    for (size_t i = first + next; i < ahead; ++i) {
      Prefetch(&column.directory[row_ids[i] >> kLog2RowsPerColumnBlock]);
    }
    Probes<kNulls>(column, row_ids.subspan(std::min(first, row_ids.size()), next),
                   probes[turn].data());
    if (filled != 0) {
      take(first - kTogether, absl::MakeConstSpan(probes[1 - turn].data(), filled));
    }
    filled = next;
  }
}

template <typename T>
T NumberIn(const ColumnBlock& block, uint64_t number) {
  if constexpr (std::is_floating_point_v<T>) {
    if (block.encoding() == BlockEncoding::kDecimals) {
      return FromDecimal<T>(static_cast<int64_t>(number), kPowersOfTen[block.exponent()]);
    }
  }
  return NumberOf<T>(number);
}

template <typename T>
void GatherNumbers(const ColumnReader& column, absl::Span<const RowId> row_ids,
                   ColumnValues* values) {
  const size_t before = values->size();
  T* const out = values->ExtendNumbers<T>(row_ids.size());
  if (!column.has_nulls) {
    ProbeAll<false>(column, row_ids, [&](size_t first, absl::Span<const Probe> probes) {
      for (size_t i = 0; i < probes.size(); ++i) {
        out[first + i] = NumberIn<T>(*probes[i].block, probes[i].Number());
      }
    });
    return;
  }
  ProbeAll<true>(column, row_ids, [&](size_t first, absl::Span<const Probe> probes) {
    for (size_t i = 0; i < probes.size(); ++i) {
      if (probes[i].null()) {
        values->SetNull(before + first + i);
      } else {
        out[first + i] = NumberIn<T>(*probes[i].block, probes[i].Number());
      }
    }
  });
}

// Finds the string of a code; false if there is none.
bool FindInDictionary(const ColumnReader& column, uint64_t code, std::string_view* string) {
  if (code >= column.dictionary_ends.size()) return false;
  const uint32_t begin = code == 0 ? 0 : column.dictionary_ends[code - 1];
  *string = column.dictionary_heap.substr(begin, column.dictionary_ends[code] - begin);
  return true;
}

// The strings of a block that has its own heap.
struct BlockStrings {
  const ColumnBlock* block;
  const char* packed;
  const char* heap;
  uint64_t room;  // readable bytes from the start of the heap on

  static BlockStrings Of(const ColumnReader& column, uint64_t i) {
    const ColumnBlock& block = column.directory[i];
    const uint64_t heap = HeapOffset(block, column.RowsOf(i));
    return {&block, column.blocks.data() + PackedOffset(block), column.blocks.data() + heap,
            column.blocks.size() - heap};
  }
  uint64_t End(uint64_t i) const {
    return block->base * (i + 1) + ReadPacked(packed, block->width, i);
  }
  // Finds string i, if the one before it ends at `begin`; false if it is not in the heap.
  bool Find(uint64_t i, uint64_t begin, std::string_view* string) const {
    const uint64_t end = End(i);
    if (begin > end || end > room) return false;
    *string = {heap + begin, end - begin};
    return true;
  }
};

// Finds the string of a probe that is not null.
bool FindString(const ColumnReader& column, const Probe& probe, std::string_view* string) {
  if (probe.block->encoding() == BlockEncoding::kDictionary) {
    return FindInDictionary(column, probe.Number(), string);
  }
  const auto block = static_cast<uint64_t>(probe.block - column.directory.data());
  const BlockStrings strings = BlockStrings::Of(column, block);
  return strings.Find(probe.i, probe.i == 0 ? 0 : strings.End(probe.i - 1), string);
}

absl::Status GatherStrings(const ColumnReader& column, absl::Span<const RowId> row_ids,
                           ColumnValues* values) {
  absl::Status status;
  ProbeAll<true>(column, row_ids, [&](size_t, absl::Span<const Probe> probes) {
    std::string_view strings[kTogether];
    for (size_t i = 0; i < probes.size() && status.ok(); ++i) {
      if (probes[i].null()) continue;
      if (!FindString(column, probes[i], &strings[i])) {
        status = column.Damaged(static_cast<uint64_t>(probes[i].block - column.directory.data()),
                                absl::StrFormat("row %d has a string outside of it", probes[i].i));
      }
      PrefetchBytes(strings[i].data(), strings[i].size());
    }
    for (size_t i = 0; i < probes.size() && status.ok(); ++i) {
      values->AppendBytes(strings[i]);
      if (probes[i].null()) values->SetNull(values->size() - 1);
    }
  });
  return status;
}

template <typename T>
void ReadNumbers(const ColumnReader& column, uint64_t block, uint64_t first, size_t count, T* out) {
  const ColumnBlock& from = column.directory[block];
  std::array<uint64_t, kRowsPerColumnBlock> numbers;
  UnpackNumbers(column.blocks.data() + PackedOffset(from), from.width, from.base, first, count,
                numbers.data());
  if constexpr (std::is_floating_point_v<T>) {
    if (from.encoding() == BlockEncoding::kDecimals) {
      const double power = kPowersOfTen[from.exponent()];
      for (size_t i = 0; i < count; ++i) {
        out[i] = FromDecimal<T>(static_cast<int64_t>(numbers[i]), power);
      }
      return;
    }
  }
  for (size_t i = 0; i < count; ++i) out[i] = NumberOf<T>(numbers[i]);
}

absl::Status ReadStrings(const ColumnReader& column, uint64_t block, uint64_t first, size_t count,
                         ColumnValues* values) {
  const BlockStrings strings = BlockStrings::Of(column, block);
  const bool coded = strings.block->encoding() == BlockEncoding::kDictionary;
  const char* const validity = column.blocks.data() + strings.block->offset();
  uint64_t begin = coded || first == 0 ? 0 : strings.End(first - 1);
  for (uint64_t i = first; i < first + count; ++i) {
    std::string_view string;
    const bool null = strings.block->has_nulls() && IsNullIn(validity, i);
    const bool found =
        coded ? null || FindInDictionary(column,
                                         strings.block->base +
                                             ReadPacked(strings.packed, strings.block->width, i),
                                         &string)
              : strings.Find(i, begin, &string);
    if (!found) {
      return column.Damaged(block, absl::StrFormat("row %d has a string outside of it", i));
    }
    begin += string.size();
    values->AppendBytes(null ? std::string_view() : string);
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ColumnReader::Gather(absl::Span<const RowId> row_ids, ColumnValues* values) const {
  return VisitColumnType(type, [&](auto tag) -> absl::Status {
    using T = typename decltype(tag)::type;
    if constexpr (std::is_same_v<T, std::string_view>) {
      return GatherStrings(*this, row_ids, values);
    } else {
      GatherNumbers<T>(*this, row_ids, values);
      return absl::OkStatus();
    }
  });
}

absl::Status ColumnReader::Read(uint64_t begin, uint64_t end, ColumnValues* values) const {
  while (begin < end) {
    const uint64_t block = begin >> kLog2RowsPerColumnBlock;
    const uint64_t first = begin & kInBlock;
    const auto count = static_cast<size_t>(std::min(end - begin, kRowsPerColumnBlock - first));
    const size_t before = values->size();
    RETURN_IF_ERROR(VisitColumnType(type, [&](auto tag) -> absl::Status {
      using T = typename decltype(tag)::type;
      if constexpr (std::is_same_v<T, std::string_view>) {
        return ReadStrings(*this, block, first, count, values);
      } else {
        ReadNumbers(*this, block, first, count, values->ExtendNumbers<T>(count));
        return absl::OkStatus();
      }
    }));
    if (directory[block].has_nulls()) {
      const char* const validity = blocks.data() + directory[block].offset();
      for (size_t i = 0; i < count; ++i) {
        if (IsNullIn(validity, first + i)) values->SetNull(before + i);
      }
    }
    begin += count;
  }
  return absl::OkStatus();
}

template <typename Integer>
void ColumnReader::GatherIntegers(absl::Span<const RowId> row_ids, Integer* out) const {
  const uint64_t unused = 64 - 8 * FixedWidth(type);
  ProbeAll<true>(*this, row_ids, [&](size_t first, absl::Span<const Probe> probes) {
    for (size_t i = 0; i < probes.size(); ++i) {
      // Bits outside of the type are replaced by its sign bit or 0, whatever the file contains.
      const auto number = static_cast<Integer>(probes[i].Number() << unused) >> unused;
      out[first + i] = probes[i].null() ? 0 : number;
    }
  });
}

template void ColumnReader::GatherIntegers(absl::Span<const RowId> row_ids, uint64_t* out) const;
template void ColumnReader::GatherIntegers(absl::Span<const RowId> row_ids, int64_t* out) const;

uint64_t ColumnReader::BytesOf(uint64_t block) const {
  const BlockStrings strings = BlockStrings::Of(*this, block);
  const uint64_t heap = strings.block->encoding() == BlockEncoding::kStrings
                            ? std::min(strings.End(RowsOf(block) - 1), strings.room)
                            : 0;
  return HeapOffset(*strings.block, RowsOf(block)) - strings.block->offset() + heap;
}

absl::Status ColumnReader::Check(uint64_t block, uint64_t* null_rows) const {
  const uint64_t count = RowsOf(block);
  const ColumnBlock& at = directory[block];
  const char* const validity = blocks.data() + at.offset();
  for (uint64_t i = 0; at.has_nulls() && i < count; ++i) {
    *null_rows += IsNullIn(validity, i) ? 1 : 0;
  }
  if (!IsTextOrBytes(type)) return absl::OkStatus();
  const BlockStrings strings = BlockStrings::Of(*this, block);
  std::string_view string;
  uint64_t begin = 0;
  for (uint64_t i = 0; i < count; ++i) {
    const bool null = at.has_nulls() && IsNullIn(validity, i);
    if (at.encoding() == BlockEncoding::kDictionary) {
      const uint64_t code = at.base + ReadPacked(strings.packed, at.width, i);
      if (null || FindInDictionary(*this, code, &string)) continue;
      return Damaged(block,
                     absl::StrFormat("row %d has code %d of %d", i, code, dictionary_ends.size()));
    }
    if (!strings.Find(i, begin, &string)) {
      return Damaged(block, absl::StrFormat("row %d has a string outside of it", i));
    }
    begin += string.size();
  }
  return absl::OkStatus();
}

absl::Status ColumnReader::Damaged(uint64_t block, std::string_view what) const {
  return absl::DataLossError(
      absl::StrFormat("column file '%s' is damaged: section 'blocks', column '%s', block %d: %s",
                      file, name, block, what));
}

}  // namespace cairn
