#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "absl/types/span.h"
#include "cairn/types.h"
#include "index/machine/aligned_buffer.h"

namespace cairn {

// One page of CompressedPages: its deltas are little-endian integers of 1 << width_log2 bytes each.
struct CompressedPage {
  const uint8_t* deltas;
  int width_log2;

  // The delta of key `slot` of the page.
  uint64_t Delta(size_t slot) const {
    // Load the aligned eight-byte word that contains the delta, shift it down and mask it.
    const size_t at = slot << width_log2;
    uint64_t word;
    std::memcpy(&word, deltas + (at & ~size_t{7}), sizeof word);
    return word >> ((at & 7) * 8) & ~uint64_t{0} >> (64 - (8 << width_log2));
  }
};

// The data that a search of CompressedPages reads: plain pointers into memory that the pages own.
template <typename Key>
struct CompressedPagesView {
  static constexpr size_t kPageKeys = 32;
  static constexpr size_t kGroupPages = 16;

  size_t entries = 0;
  const Key* minima = nullptr;  // [pages()] the first key of each page
  // One word per kGroupPages pages. The upper half is the offset of the first page's deltas, in
  // units of kPageKeys bytes. The lower half has two bits per page, from the lowest on: its
  // width_log2.
  const uint64_t* groups = nullptr;
  const uint8_t* deltas = nullptr;
  const RowId* row_ids = nullptr;  // [entries]; null if only positions are needed

  size_t pages() const { return (entries + kPageKeys - 1) / kPageKeys; }

  CompressedPage Page(size_t page) const {
    const uint64_t group = groups[page / kGroupPages];
    const size_t slot = page % kGroupPages;
    return {deltas + Unit(group, slot) * kPageKeys, WidthLog2(group, slot)};
  }

  // For page `slot` of a group: its width, and the unit at which its deltas start.
  static int WidthLog2(uint64_t group, size_t slot) {
    return static_cast<int>(group >> (2 * slot) & 3);
  }
  static size_t Unit(uint64_t group, size_t slot) {
    // A page takes 1, 2, 4 or 8 units: 1, plus 1 for its low bit, 3 for its high bit, 3 more for
    // both.
    const uint64_t before = group & ((uint64_t{1} << (2 * slot)) - 1);
    const uint64_t low = before & 0x55555555, high = before >> 1 & 0x55555555;
    return (group >> 32) + slot +
           static_cast<size_t>(std::popcount(low) + 3 * std::popcount(high) +
                               3 * std::popcount(low & high));
  }
};

// Sorted keys in pages of 32. Each page stores its minimum and the differences from it, all as wide
// as the largest one needs: 8, 16, 32 or 64 bits. After Kim et al., FAST (SIGMOD 2010), section
// 6.2, with two deviations. Widths are whole bytes, so that SIMD lanes compare them without
// unpacking. Pages are small, so that a page of 16-bit deltas is one cache line and is compared as
// a whole. Smaller pages also have narrower deltas: for 2^24 uniform 32-bit keys, all pages of 32
// keys use 16 bits, and half of the pages of 256 keys would use 32 bits.
// PointLookup/cpu:fast,compressed/u32/n:24/position/uniform took 24 ns with pages of 32 keys and 36
// ns with pages of 64; cpu:fast took 24 ns in both runs. Immutable and thread-safe.
template <typename Key>
class CompressedPages {
 public:
  using View = CompressedPagesView<Key>;

  CompressedPages() = default;
  // Compresses ascending keys, at most kMaxEntries, on all cores. The keys are not needed
  // afterwards. `row_ids` must outlive this object; it may be empty if FindFirst is not called.
  // Throws std::bad_alloc.
  CompressedPages(absl::Span<const Key> keys, absl::Span<const RowId> row_ids);

  // Starts on a cache line; memory is readable up to the end of the last cache line.
  absl::Span<const Key> minima() const { return minima_.span(); }
  const View& view() const { return view_; }
  uint64_t memory_bytes() const {
    return minima_.size() * sizeof(Key) + groups_.size() * sizeof(uint64_t) + deltas_.size();
  }
  uint64_t huge_page_bytes() const {
    return minima_.huge_page_bytes() + groups_.huge_page_bytes() + deltas_.huge_page_bytes();
  }

 private:
  AlignedBuffer<Key> minima_;
  AlignedBuffer<uint64_t> groups_;
  AlignedBuffer<uint8_t> deltas_;
  View view_;
};

}  // namespace cairn
