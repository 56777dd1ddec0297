#pragma once

#include <cstddef>
#include <cstdint>
#include <variant>
#include <vector>

#include "absl/types/span.h"
#include "cairn/types.h"
#include "index/machine/aligned_buffer.h"
#include "tools/bench/papers/paper_page.h"

// The compression of long keys of Kim et al., FAST (SIGMOD 2010, section 6.1), as in the paper,
// for comparison with cpu:partial_key. x86-64 only, with SSSE3 and BMI2.
namespace cairn::bench {

inline constexpr size_t kMaxKeyBytes = 128;
// The keys of a page, the paper's 10 levels: 4 KB if partial keys have 32 bits.
inline constexpr size_t kPaperPageKeys = 1023;

// Keys of one size, 1 to kMaxKeyBytes, stored contiguously. The 16 bytes at the start of each are
// readable.
struct FixedKeys {
  FixedKeys() = default;
  FixedKeys(size_t key_bytes, size_t count);  // to be filled in
  char* at(size_t i) { return data.data() + i * bytes; }
  const char* operator[](size_t i) const { return data.data() + i * bytes; }
  size_t pages() const { return (size + kPaperPageKeys - 1) / kPaperPageKeys; }

  size_t bytes = 0;
  size_t size = 0;
  AlignedBuffer<char> data;
};

// The choice of granules for the partial keys of a page (section 6.1.1). Granules are the 4-bit
// parts of a key, numbered from the most significant one.
enum class PaperPrefix : uint8_t {
  kNonContiguous,  // the first in which keys of the page differ: the paper's scheme
  kContiguous,     // all from the first one that differs: the scheme that it extends
};

// 16 bytes of a key, and the shuffles of section 6.1.1 that move their granules to their places in
// the partial key: from either half of a byte to either half of one.
class ShuffleWindow {
 public:
  ShuffleWindow() = default;
  // Takes granules from *next on while they fit, and advances *next.
  ShuffleWindow(absl::Span<const size_t> granules, size_t key_bytes, size_t* next);
  template <typename Partial>
  __attribute__((target("ssse3,bmi2"))) Partial Gather(const char* key) const;

 private:
  enum Move : uint8_t { kHighToHigh, kHighToLow, kLowToHigh, kLowToLow };
  alignas(16) uint8_t control_[4][16];  // by Move: for each byte made, the byte taken; 128: none
  uint32_t offset_ = 0;
};

// The same with one PEXT of 8 bytes.
class PextWindow {
 public:
  PextWindow() = default;
  PextWindow(absl::Span<const size_t> granules, size_t key_bytes, size_t* next);
  template <typename Partial>
  __attribute__((target("ssse3,bmi2"))) Partial Gather(const char* key) const;

 private:
  uint64_t mask_ = 0;
  uint32_t offset_ = 0;
  uint32_t shift_ = 0;  // to the granules' place in the partial key
};

// Makes partial keys of a page: integers in the order of the keys, as far as its granules
// distinguish them.
template <typename Window, typename Partial>
class PartialKeyExtractor {
 public:
  PartialKeyExtractor() = default;
  PartialKeyExtractor(absl::Span<const size_t> granules, size_t key_bytes);
  __attribute__((target("ssse3,bmi2"))) Partial operator()(const char* key) const {
    Partial partial = first_.template Gather<Partial>(key);
    for (const Window& window : rest_) partial |= window.template Gather<Partial>(key);
    return partial;
  }

 private:
  Window first_;
  std::vector<Window> rest_;  // mostly none
};

// Two levels of pages of partial keys over keys, ascending and distinct: the first page has the
// first key of every leaf page. Its partial keys are of 32, 64 or 128 bits, the fewest with which
// less than 0.01% of adjacent keys in it are false positives, distinct keys with equal partial
// keys; those of leaf pages have 32 bits (section 6.1.2). Immutable; the keys must outlive it.
//
// Differences from the paper: the granules of the first page are those in which any keys differ,
// not only the keys in it; otherwise searches of present keys could fail. Pages are blocked for
// cache lines, but not for SIMD registers. If partial keys are not enough, full keys decide, so
// that positions are exact, also of absent keys.
template <typename Window>
class PartialKeyPages {
 public:
  // Builds on `threads` threads. Throws std::bad_alloc.
  PartialKeyPages(const FixedKeys& keys, PaperPrefix prefix, int threads);

  // positions[i] = the number of keys less than query first + i, for `count` queries. Returns the
  // number of full keys compared.
  uint64_t LowerBound(const FixedKeys& queries, size_t first, size_t count,
                      Position* positions) const;

  int first_page_bits() const { return first_page_bits_; }
  // The share of adjacent keys within leaf pages that are false positives.
  double false_positives() const;
  uint64_t memory_bytes() const;

 private:
  __extension__ using Wide = unsigned __int128;
  template <typename Partial>
  struct FirstPage {
    PartialKeyExtractor<Window, Partial> extract;
    PaperPageLayout layout;
    AlignedBuffer<Partial> slots;
  };
  struct Group;

  // Makes a leaf page and returns the bits in which its keys differ.
  __attribute__((target("ssse3,bmi2"))) void BuildLeaf(size_t page, PaperPrefix prefix,
                                                       uint8_t* difference);
  // Makes the first page, if few enough are false positives or `force`.
  template <typename Partial>
  __attribute__((target("ssse3,bmi2"))) bool BuildFirstPage(const uint8_t* difference,
                                                            PaperPrefix prefix, bool force);
  template <typename Partial>
  __attribute__((target("ssse3,bmi2"))) void FindLeaves(const FirstPage<Partial>& page,
                                                        Group* group) const;
  __attribute__((target("ssse3,bmi2"))) void SearchLeaves(Group* group) const;
  // The greatest position whose key is at most the query among the first keys of leaf pages
  // [first, last), as a leaf page; the one before `first` if none is.
  size_t LeafAmong(const char* query, size_t first, size_t last, uint64_t* work) const;
  // The lower bound of query i, once the leaves are searched.
  size_t Resolve(size_t i, Group* group) const;
  // Binary search of [*first, last): *first is the lower bound among them. True if the query is
  // found.
  bool Narrow(const char* query, size_t* first, size_t last, uint64_t* work) const;

  const FixedKeys& keys_;
  int first_page_bits_ = 0;
  std::variant<FirstPage<uint32_t>, FirstPage<uint64_t>, FirstPage<Wide>> first_page_;
  std::vector<PartialKeyExtractor<Window, uint32_t>> extract_;  // of each leaf page
  PaperPageLayout layout_;
  AlignedBuffer<uint32_t> slots_;  // of leaf pages, contiguous
};

// The same search on full keys: the baseline for compression.
class FullKeyPages {
 public:
  FullKeyPages(const FixedKeys& keys, int threads);
  void LowerBound(const FixedKeys& queries, size_t first, size_t count, Position* positions) const;

 private:
  void FillPage(size_t first, size_t stride, const PaperPageLayout& layout, size_t count,
                char* page);

  const FixedKeys& keys_;
  PaperPageLayout first_layout_, layout_;
  AlignedBuffer<char> first_page_, leaves_;
};

}  // namespace cairn::bench
