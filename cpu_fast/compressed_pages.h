#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "absl/types/span.h"
#include "cairn/types.h"
#include "index/aligned_buffer.h"

namespace cairn {

// What a search of CompressedPages reads: plain pointers into memory that the pages keep alive.
template <typename Key>
struct CompressedPagesView {
  static constexpr size_t kPageKeys = 64;

  size_t entries = 0;
  const Key* minima = nullptr;     // [pages] the first key of each
  const uint32_t* refs = nullptr;  // [pages] where its deltas are: Line and WidthLog2
  const uint8_t* deltas = nullptr;
  const RowId* row_ids = nullptr;  // [entries]; null where only positions are asked for

  size_t pages() const { return (entries + kPageKeys - 1) / kPageKeys; }
  // The deltas of a page: kPageKeys little-endian numbers of 1 << WidthLog2(ref) bytes each.
  const uint8_t* Deltas(uint32_t ref) const { return deltas + size_t{ref >> 2} * kCacheLineBytes; }
  static int WidthLog2(uint32_t ref) { return static_cast<int>(ref & 3); }
  // Requires entry < entries.
  Key KeyAt(size_t entry) const {
    const size_t page = entry / kPageKeys;
    return minima[page] + DeltaAt(refs[page], entry % kPageKeys);
  }
  // Delta `slot` of a page.
  Key DeltaAt(uint32_t ref, size_t slot) const;
};

template <typename Key>
Key CompressedPagesView<Key>::DeltaAt(uint32_t ref, size_t slot) const {
  // The eight bytes of an aligned word that hold it, shifted down and cut off.
  const int width_log2 = WidthLog2(ref);
  const size_t at = slot << width_log2;
  uint64_t word;
  std::memcpy(&word, Deltas(ref) + (at & ~size_t{7}), sizeof word);
  const uint64_t mask = ~uint64_t{0} >> (64 - (8 << width_log2));
  return static_cast<Key>(word >> ((at & 7) * 8) & mask);
}

// Sorted keys in pages of 64, each page the minimum and the differences from it, as wide as its
// greatest one takes: 8, 16, 32 or 64 bits. After Kim et al., FAST (SIGMOD 2010), section 6.2, with
// two deviations: widths are whole bytes, so that SIMD lanes compare them as they lie, and a page
// has few keys, so that it is one cache line of 8-bit deltas, two of 16-bit ones, and compared as a
// whole. Smaller pages also have narrower deltas: of 2^24 uniform 32-bit keys all pages of 64 take
// 16 bits, half of those of 256 would take 32. Immutable; safe from any number of threads.
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
    return minima_.size() * sizeof(Key) + refs_.size() * sizeof(uint32_t) + deltas_.size();
  }

 private:
  AlignedBuffer<Key> minima_;
  AlignedBuffer<uint32_t> refs_;
  AlignedBuffer<uint8_t> deltas_;
  View view_;
};

}  // namespace cairn
