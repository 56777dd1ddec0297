#pragma once

#include <cstddef>
#include <cstdint>

#include "cairn/key_codec.h"

namespace cairn {

// Declarations that the writer and the reader of a column file share. docs/internals/formats.md
// describes the bytes.

// Ids of a column file's sections.
enum class ColumnSection : uint32_t {
  kProperties = 1,  // ColumnFileProperties
  kColumns = 2,     // one ColumnRecord per column
  kNames = 3,       // the columns' names, concatenated
  kBlocks = 4,      // the blocks' bytes, and kBlockSlack zeros
  kDirectory = 5,   // one ColumnBlock per block, by column
  kDictionaryEnds =
      6,  // uint32_t, by column: the end of each dictionary value in its column's part of the heap
  kDictionaryHeap = 7,  // bytes of the dictionaries' values, by column
};

// Rows of each block except the last: block i has the rows from i * kRowsPerColumnBlock on. With
// 256 and 4,096 rows, files differ from this by up to 10%, and times by less than 8%, by
// ColumnGather and ColumnRead over 2^24 rows (docs/performance.md, "Constants in the code").
inline constexpr uint32_t kLog2RowsPerColumnBlock = 10;
inline constexpr uint32_t kRowsPerColumnBlock = 1 << kLog2RowsPerColumnBlock;

inline constexpr size_t kMaxColumns = 64;
inline constexpr size_t kMaxColumnNameBytes = 1 << 16;

struct ColumnFileProperties {
  uint64_t rows;
  uint32_t columns;
  uint32_t block_rows;  // kRowsPerColumnBlock
};
static_assert(sizeof(ColumnFileProperties) == 16);

struct ColumnRecord {
  uint32_t type;               // DataType
  uint32_t name_bytes;         // in kNames
  uint64_t nulls;              // rows without a value
  uint32_t dictionary_values;  // in kDictionaryEnds
  uint32_t dictionary_bytes;   // in kDictionaryHeap
};
static_assert(sizeof(ColumnRecord) == 24);

// The meaning of a block's packed numbers.
enum class BlockEncoding : uint8_t {
  kNumbers = 0,   // base + packed: integers, and floats' bits
  kDecimals = 1,  // floats: (base + packed) / 10^exponent
  // text and bytes: in the block's heap, string i ends at base * (i + 1) + packed number i
  kStrings = 2,
  kDictionary = 3,  // text and bytes: base + packed is a code in the column's dictionary
};

// The place and the encoding of a block. It starts at a multiple of 8 bytes in its section and
// consists of:
//
//   validity   128 bytes, only if it has nulls: bit i is 0 if row i is null, with the least
//              significant bit of a byte first
//   packed     `width` bits per row, the least significant first, up to a multiple of 8 bytes
//   heap       kStrings: the bytes of its strings, up to a multiple of 8 bytes
//
// Sums wrap around at 2^64. The packed number of a null row is 0, and a null string is empty.
struct ColumnBlock {
  uint64_t base;
  uint32_t offset_low;   // in the section, in multiples of 8 bytes
  uint16_t offset_high;  // times 2^32
  uint8_t width;         // 0 … kMaxPackedWidth, or 64: a number is read by one load of 8 bytes
  uint8_t form;          // bits 0-1: BlockEncoding; bit 2: has nulls; bits 3-7: exponent

  BlockEncoding encoding() const { return static_cast<BlockEncoding>(form & 3); }
  bool has_nulls() const { return (form & 4) != 0; }
  uint32_t exponent() const { return form >> 3; }
  uint64_t offset() const { return (offset_low | uint64_t{offset_high} << 32) * 8; }

  void set_form(BlockEncoding encoding, bool has_nulls, uint32_t exponent) {
    form =
        static_cast<uint8_t>(static_cast<uint32_t>(encoding) | (has_nulls ? 4 : 0) | exponent << 3);
  }
  void set_offset(uint64_t bytes) {
    offset_low = static_cast<uint32_t>(bytes / 8);
    offset_high = static_cast<uint16_t>(bytes / 8 >> 32);
  }
};
static_assert(sizeof(ColumnBlock) == 16);

inline constexpr uint32_t kMaxPackedWidth = 57;
inline constexpr uint32_t kMaxDecimalExponent = 18;
inline constexpr uint64_t kBlockValidityBytes = kRowsPerColumnBlock / 8;
// Zeros after all blocks, so that loads of 8 bytes stay in the section.
inline constexpr uint64_t kBlockSlack = 8;

// Bytes of `rows` packed numbers.
constexpr uint64_t PackedBytes(uint64_t rows, uint32_t width) {
  return (rows * width + 63) / 64 * 8;
}
// The bytes before a block's packed numbers, and before its heap.
inline uint64_t PackedOffset(const ColumnBlock& block) {
  return block.offset() + (block.has_nulls() ? kBlockValidityBytes : 0);
}
inline uint64_t HeapOffset(const ColumnBlock& block, uint64_t rows) {
  return PackedOffset(block) + PackedBytes(rows, block.width);
}

}  // namespace cairn
