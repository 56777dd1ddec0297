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

// Strings that are searched together, and the current bounds of each: its lower bound is in [low,
// high], and it shares at least low_shared and high_shared bytes with the keys at the two ends.
struct StringGroup {
  // Few enough that the lines in flight, two or three per string, fit the L1 cache.
  static constexpr size_t kMax = 128;

  Position low[kMax];
  Position high[kMax];
  size_t low_shared[kMax];   // with key low - 1; undefined if low is 0
  size_t high_shared[kMax];  // with key high; undefined if high is the run's size
};

// A sample of a run of byte strings that locates a string approximately. For every kSample-th key,
// it stores the eight bytes ("slice") after the common prefix of all keys. Slices are integers of
// the same order, under a FastTree. The slice of a query narrows it to the keys between two
// samples.
//
// If kNestedLeast or more samples tie, a nested sample stores their next eight bytes, after their
// common prefix, and so on. This forms a trie in which every level skips the bytes that its keys
// have in common. It is at most kMaxLevels deep, which bounds a search. It takes at most
// kMaxNestedBytes per slice of the first sample, which bounds the memory to four bytes per key.
// Ties beyond these limits stay unresolved; the caller must search them.
class StringSamples {
 public:
  static constexpr size_t kSample = 8;
  static constexpr size_t kNestedLeast = 4;
  static constexpr size_t kMaxNestedBytes = 18;
  static constexpr size_t kMaxLevels = 8;

  StringSamples() = default;
  // Samples `keys`, which must stay in place. Builds on all cores. Throws std::bad_alloc.
  StringSamples(const BytesColumn& keys, SimdLevel level);

  // Sets *group for the queries, at most StringGroup::kMax. Requires that there are keys.
  void Narrow(absl::Span<const std::string_view> queries, StringGroup* group) const;

  uint64_t memory_bytes() const;
  // The part of memory_bytes() in huge pages, for buffers that request them.
  uint64_t huge_page_bytes() const { return slices_.huge_page_bytes() + tree_.huge_page_bytes(); }

 private:
  static constexpr uint32_t kNoNode = UINT32_MAX;

  // A nested sample: `count` slices, of samples `first` and on, at nested_slices_[begin].
  struct Node {
    uint64_t prefix;  // offset in the heap of a key that starts with the samples' common prefix
    uint64_t depth;   // length of that prefix; the slices start after it
    uint32_t first;
    uint32_t count;
    uint32_t begin;
    uint32_t level;  // 1 for ties of the first sample
  };

  // Queries that are descending through one level of nested samples.
  struct Descent;

  // Bytes that a nested sample of `count` slices takes.
  static constexpr size_t NestedBytes(size_t count) {
    return sizeof(Node) + count * (sizeof(uint64_t) + sizeof(uint32_t));
  }

  void FillSlices(size_t first, size_t depth, absl::Span<uint64_t> slices) const;
  // Creates a node of `level` for each tie in `slices`, which belong to samples `first` and on and
  // start at `depth`. Sets children[i] to the node of the tie that starts at slice i.
  void MakeNested(absl::Span<const uint64_t> slices, size_t first, uint64_t depth, uint32_t level,
                  uint32_t* children);
  // Narrows query `j` to sample `at`, whose tie, if any, ends before sample `behind`. `first` and
  // `end` bound the samples that were searched. Those samples share `depth` bytes with the query.
  void NarrowTo(size_t j, size_t at, size_t behind, size_t first, size_t end, uint64_t depth,
                StringGroup* group) const;
  void EnterNodes(absl::Span<const std::string_view> queries, Descent* descent,
                  StringGroup* group) const;
  void SearchNodes(Descent* descent, StringGroup* group) const;

  BytesColumn keys_;
  std::string_view common_;         // common prefix of all keys
  AlignedBuffer<uint64_t> slices_;  // of keys 0, kSample, 2 kSample ...
  FastTreeNodes<uint64_t> tree_;    // over slices_
  std::vector<uint32_t> children_;  // per slice: the nested sample of the tie that starts there
  std::vector<Node> nodes_;
  std::vector<uint64_t> nested_slices_;
  size_t nested_bytes_ = 0;
  std::vector<uint32_t> nested_children_;  // per nested slice, like children_
};

}  // namespace cairn
