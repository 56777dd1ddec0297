#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "absl/types/span.h"
#include "cairn/types.h"
#include "index/machine/aligned_buffer.h"

namespace cairn {

// One page of CompressedPages: its deltas, little-endian numbers of 1 << width_log2 bytes each.
struct CompressedPage {
  const uint8_t* deltas;
  int width_log2;

  // The delta of its key `slot`.
  uint64_t Delta(size_t slot) const {
    // The aligned word of eight bytes that holds it, shifted down and cut off.
    const size_t at = slot << width_log2;
    uint64_t word;
    std::memcpy(&word, deltas + (at & ~size_t{7}), sizeof word);
    return word >> ((at & 7) * 8) & ~uint64_t{0} >> (64 - (8 << width_log2));
  }
};

// What a search of CompressedPages reads: plain pointers into memory that the pages keep alive.
template <typename Key>
struct CompressedPagesView {
  static constexpr size_t kPageKeys = 32;
  static constexpr size_t kGroupPages = 16;

  size_t entries = 0;
  const Key* minima = nullptr;  // [pages()] the first key of each
  // One word for kGroupPages pages: in the upper half, where the first one's deltas start, in units
  // of kPageKeys bytes; below it two bits a page, from the lowest on, its width_log2.
  const uint64_t* groups = nullptr;
  const uint8_t* deltas = nullptr;
  const RowId* row_ids = nullptr;  // [entries]; null where only positions are asked for

  size_t pages() const { return (entries + kPageKeys - 1) / kPageKeys; }

  CompressedPage Page(size_t page) const {
    const uint64_t group = groups[page / kGroupPages];
    const size_t slot = page % kGroupPages;
    return {deltas + Unit(group, slot) * kPageKeys, WidthLog2(group, slot)};
  }

  // Of a group's page `slot`: its width, and the unit that its deltas start at.
  static int WidthLog2(uint64_t group, size_t slot) {
    return static_cast<int>(group >> (2 * slot) & 3);
  }
  static size_t Unit(uint64_t group, size_t slot) {
    // A page takes 1, 2, 4 or 8 units: one for itself, and for its bits 1, 3, and 3 for both.
    const uint64_t before = group & ((uint64_t{1} << (2 * slot)) - 1);
    const uint64_t low = before & 0x55555555, high = before >> 1 & 0x55555555;
    return (group >> 32) + slot +
           static_cast<size_t>(std::popcount(low) + 3 * std::popcount(high) +
                               3 * std::popcount(low & high));
  }
};

// Sorted keys in pages of 32, each page the minimum and the differences from it, as wide as its
// greatest one takes: 8, 16, 32 or 64 bits. After Kim et al., FAST (SIGMOD 2010), section 6.2, with
// two deviations: widths are whole bytes, so that SIMD lanes compare them as they lie, and a page
// has few keys, so that one of 16-bit deltas is one cache line and compared as a whole. Smaller
// pages have narrower deltas too: of 2^24 uniform 32-bit keys all pages of 32 take 16 bits, half of
// those of 256 would take 32. PointLookup/cpu:fast,compressed/u32/n:24/position/uniform took 24 ns
// with pages of 32, 36 with pages of 64, where cpu:fast took 24 in both runs. Immutable; safe from
// any number of threads.
template <typename Key>
class CompressedPages {
 public:
  using View = CompressedPagesView<Key>;

  CompressedPages() = default;
  // Compresses ascending keys, at most kMaxEntries, on all cores. The keys are not needed
  // afterwards; `row_ids` are, and may be empty. Throws std::bad_alloc.
  CompressedPages(absl::Span<const Key> keys, absl::Span<const RowId> row_ids);

  // On a cache line, and readable up to the next one behind the end.
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
