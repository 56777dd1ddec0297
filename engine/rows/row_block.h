#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "absl/types/span.h"

namespace cairn {

// Number of keys per block, except in the last block of a part.
inline constexpr uint32_t kRowsPerBlock = 16;

// One block of a row table: ascending primary keys, stored as their common prefix and the rest of
// each. Any key can be read without decoding those before it.
//
//   tag      1 byte: bits 0-1 the width w of the following lengths (0: 1 byte, 1: 2, 2: 4);
//            bit 2 is set if all keys have one length; other bits are zero
//   prefix   w bytes: the prefix's length
//   rest     keys of one length: w bytes, the length of each rest;
//            otherwise one w-byte end per key, counted from the first rest's first byte
//   bytes    the prefix, then the rests in key order
//
// All lengths are little-endian. The number of keys is not stored here; the directory determines
// it.
//
// A view of bytes that may be hostile: Parse and Rest check every length before it is used.
class RowBlock {
 public:
  // Appends the block of `keys` to `out`. There must be 1 to kRowsPerBlock keys, in ascending
  // order, with less than 4 GiB in total.
  static void Encode(absl::Span<const std::string_view> keys, std::string* out);

  // Reads the block of `rows` keys that starts at `data`, from at most `available` bytes. Returns
  // false if the bytes are not such a block.
  bool Parse(const char* data, uint64_t available, uint32_t rows);

  uint32_t rows() const { return rows_; }
  std::string_view prefix() const { return {prefix_, prefix_bytes_}; }
  // Sets *rest to the part of key i after the prefix. Requires i < rows(). Returns false if the
  // block is damaged there.
  bool Rest(uint32_t i, std::string_view* rest) const;
  // Returns the address of key i's rest, to prefetch it. If the block is damaged there, the address
  // is meaningless, but inside the block.
  const char* rest_address(uint32_t i) const;

  // Sets *i to the number of keys less than `key`, and *found to whether key *i is `key`. Returns
  // false if the block is damaged.
  bool LowerBound(std::string_view key, uint32_t* i, bool* found) const;
  // Sets *at_most to whether the first key is at most `key`. Returns false if the block is damaged.
  bool FirstAtMost(std::string_view key, bool* at_most) const;

  static_assert(std::endian::native == std::endian::little);

 private:
  static constexpr uint8_t kOneLength = 4;

  // Returns the little-endian number of width 1 << log2_width_ at `p`.
  uint32_t Number(const char* p) const {
    switch (log2_width_) {
      case 0:
        return static_cast<uint8_t>(*p);
      case 1: {
        uint16_t n;
        std::memcpy(&n, p, sizeof n);
        return n;
      }
      default: {
        uint32_t n;
        std::memcpy(&n, p, sizeof n);
        return n;
      }
    }
  }

  uint32_t rows_ = 0;
  uint32_t log2_width_ = 0;
  uint32_t prefix_bytes_ = 0;
  uint32_t rest_bytes_ = 0;     // of each key, if ends_ is null
  uint32_t total_ = 0;          // bytes of all rests, if ends_ is not null
  const char* ends_ = nullptr;  // null if all keys have one length
  const char* prefix_ = nullptr;
  const char* rests_ = nullptr;
};

inline bool RowBlock::Parse(const char* data, uint64_t available, uint32_t rows) {
  if (available == 0) return false;
  const auto tag = static_cast<uint8_t>(*data);
  if (tag > (kOneLength | 2) || (tag & 3) == 3) return false;
  rows_ = rows;
  log2_width_ = tag & 3;
  const uint64_t width = uint64_t{1} << log2_width_;
  const bool one_length = (tag & kOneLength) != 0;
  const uint64_t header = 1 + width * (one_length ? 2 : 1 + rows);
  if (available < header) return false;
  prefix_bytes_ = Number(data + 1);
  ends_ = one_length ? nullptr : data + 1 + width;
  uint64_t total;
  if (one_length) {
    rest_bytes_ = Number(data + 1 + width);
    total = uint64_t{rest_bytes_} * rows;
  } else {
    total = total_ = Number(ends_ + width * (rows - 1));
  }
  if (available - header < prefix_bytes_ + total) return false;
  prefix_ = data + header;
  rests_ = prefix_ + prefix_bytes_;
  return true;
}

inline bool RowBlock::Rest(uint32_t i, std::string_view* rest) const {
  if (ends_ == nullptr) {
    *rest = {rests_ + uint64_t{i} * rest_bytes_, rest_bytes_};
    return true;
  }
  const uint32_t begin = i == 0 ? 0 : Number(ends_ + (size_t{i - 1} << log2_width_));
  const uint32_t end = Number(ends_ + (size_t{i} << log2_width_));
  if (begin > end || end > total_) return false;
  *rest = {rests_ + begin, end - begin};
  return true;
}

inline const char* RowBlock::rest_address(uint32_t i) const {
  if (ends_ == nullptr) return rests_ + uint64_t{i} * rest_bytes_;
  return rests_ + (i == 0 ? 0 : std::min(Number(ends_ + (size_t{i - 1} << log2_width_)), total_));
}

}  // namespace cairn
