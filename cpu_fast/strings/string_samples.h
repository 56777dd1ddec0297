#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "absl/types/span.h"
#include "cairn/sorted_run.h"
#include "cairn/types.h"
#include "cpu_fast/fast/fast_tree.h"
#include "index/machine/aligned_buffer.h"

namespace cairn {

// Strings that are searched together, and what is known of each so far: its lower bound is in
// [low, high], and it shares at least so many bytes with the keys at the ends.
struct StringGroup {
  // Few enough that the lines in flight, two or three a string, fit the L1 cache.
  static constexpr size_t kMax = 128;

  Position low[kMax];
  Position high[kMax];
  size_t low_shared[kMax];   // with key low - 1; meaningless where low is 0
  size_t high_shared[kMax];  // with key high; meaningless where high is the run's size
};

// A sample of a run of byte strings that tells roughly where a string belongs: of every kSample-th
// key, the eight bytes ("slice") behind the prefix that all keys share, as an integer of the same
// order, under a FastTree. A string's own slice leaves it the keys between two samples.
//
// Where kNestedLeast samples or more tie, a nested sample holds their next eight bytes, behind the
// prefix that these share, and so on: a trie whose every level skips what its keys have in common.
// At most kMaxLevels deep, which bounds a search, and in kMaxNestedBytes for each of the first
// sample's slices, which bounds the memory to four bytes a key; ties beyond stay unresolved, and
// are the caller's to search.
class StringSamples {
 public:
  static constexpr size_t kSample = 8;
  static constexpr size_t kNestedLeast = 4;
  static constexpr size_t kMaxNestedBytes = 18;
  static constexpr size_t kMaxLevels = 8;

  StringSamples() = default;
  // Samples `keys`, which must stay where they are. Builds on all cores. Throws std::bad_alloc.
  StringSamples(const BytesColumn& keys, SimdLevel level);

  // Sets *group for the queries, at most StringGroup::kMax. Requires that there be keys.
  void Narrow(absl::Span<const std::string_view> queries, StringGroup* group) const;

  uint64_t memory_bytes() const;
  // Of these, as far as buffers ask for them.
  uint64_t huge_page_bytes() const { return slices_.huge_page_bytes() + tree_.huge_page_bytes(); }

 private:
  static constexpr uint32_t kNoNode = UINT32_MAX;

  // A nested sample: `count` slices, of samples `first` and on, at nested_slices_[begin].
  struct Node {
    uint64_t prefix;  // offset in the heap of a key that starts with the samples' common prefix
    uint64_t depth;   // length of that prefix: the slices start behind it
    uint32_t first;
    uint32_t count;
    uint32_t begin;
    uint32_t level;  // 1 for ties of the first sample
  };

  // Queries on their way through one level of nested samples.
  struct Descent;

  // Bytes that a nested sample of `count` slices takes.
  static constexpr size_t NestedBytes(size_t count) {
    return sizeof(Node) + count * (sizeof(uint64_t) + sizeof(uint32_t));
  }

  void FillSlices(size_t first, size_t depth, absl::Span<uint64_t> slices) const;
  // Makes a node of `level` for each tie in `slices`, which are of samples `first` and on and start
  // at `depth`. children[i] becomes the node of the tie that starts at slice i.
  void MakeNested(absl::Span<const uint64_t> slices, size_t first, uint64_t depth, uint32_t level,
                  uint32_t* children);
  // Narrows query `j` to sample `at`, whose tie, if any, ends before sample `behind`; `first` and
  // `end` bound the samples that were searched. These share `depth` bytes with the query.
  void NarrowTo(size_t j, size_t at, size_t behind, size_t first, size_t end, uint64_t depth,
                StringGroup* group) const;
  void EnterNodes(absl::Span<const std::string_view> queries, Descent* descent,
                  StringGroup* group) const;
  void SearchNodes(Descent* descent, StringGroup* group) const;

  BytesColumn keys_;
  std::string_view common_;         // the prefix that all keys share
  AlignedBuffer<uint64_t> slices_;  // of keys 0, kSample, 2 kSample ...
  FastTreeNodes<uint64_t> tree_;    // over slices_
  std::vector<uint32_t> children_;  // one a slice: the nested sample of the tie that starts there
  std::vector<Node> nodes_;
  std::vector<uint64_t> nested_slices_;
  size_t nested_bytes_ = 0;
  std::vector<uint32_t> nested_children_;  // likewise, one a nested slice
};

}  // namespace cairn
