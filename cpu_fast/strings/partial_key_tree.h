#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "cpu_fast/simd/simd_level.h"
#include "cpu_fast/strings/key_hash.h"
#include "cpu_fast/strings/partial_key_builder.h"
#include "index/query/host_index.h"
#include "index/strings/key_reader.h"

namespace cairn {

// A static tree of partial keys over a run of byte strings ("cpu:partial_key"), after the
// order-preserving partial keys of Kim et al. (FAST, SIGMOD 2010, section 6.1), and, for nodes that
// look at any bits of a key rather than at a prefix, Binna et al. (HOT, SIGMOD 2018).
//
// A search goes from a table over the bits that tell apart most keys down nodes of two cache lines
// to one entry: the only one whose key the query may be. It reads that key to see whether it is. If
// not, the first bit at which the two differ says where the query belongs: before or behind all
// keys that share the bits before it, which a second descent finds, mostly within the same leaf.
// The queries of a group go down together, so that their cache misses overlap.
class PartialKeyTree final : public HostIndex {
 public:
  struct Options {
    std::optional<SimdLevel> simd;  // see FastTreeOptions::simd
    bool hash = false;              // a KeyHash for FindFirst, Contains and Find besides
  };

  // Builds on all cores. Unimplemented for keys that are not bytes. Throws std::bad_alloc.
  static absl::StatusOr<std::unique_ptr<OrderedIndex>> Build(SortedRun run, Options options);
  static absl::StatusOr<std::unique_ptr<OrderedIndex>> Build(SortedRun run) {
    return Build(std::move(run), Options());
  }

  std::string description() const override;
  uint64_t memory_bytes() const override;
  uint64_t huge_page_bytes() const override;

 private:
  void LowerBound(KeyBatch keys, Position* positions) const override;
  void FindFirst(KeyBatch keys, RowId* row_ids) const override;
  void Contains(KeyBatch keys, bool* found) const override;
  absl::Status Find(const Batch& batch) const override;

  // Queries that are searched together.
  struct Group;
  // Entries that the tree does not tell apart.
  struct Ties {
    Position first;
    Position last;   // not included
    bool same_bits;  // of their keys, which are equal then but for zero bytes at the end
  };

  PartialKeyTree(SortedRun run, SimdLevel level, bool hash);

  // What a descent reads; it asks memory for row ids too if `rows`.
  PartialKeyTreeView View(bool rows) const;
  // Searches a batch and calls finish(&group) when it is known for each query of a group
  // to which entry the tree leads it, and whether it is there.
  template <typename Finish>
  void ForEachGroup(absl::Span<const std::string_view> queries, bool rows, Finish finish) const;
  // Looks which queries are the keys that they were led to.
  void Verify(Group* group) const;
  // The ties of the entry at `position`, to which the tree led in `leaf`.
  Ties TiesAt(uint32_t leaf, Position position) const;
  // Makes the position of query `query` its lower bound among entries that are tied, whether or not
  // it is there.
  struct TieSearch {
    uint8_t query;
    Ties ties;
  };
  void SearchTies(absl::Span<const TieSearch> searches, Group* group) const;
  // Makes the positions of missing queries their lower bounds.
  void PlaceMissing(Group* group) const;
  // The same of those whose lower bounds are where the keys with a prefix start or end, as the
  // search for these prefixes has found; prefix p is of query queries[p].
  void PlaceAtPrefixes(const PartialKeyGroup& prefixes, absl::Span<const uint8_t> queries,
                       Group* group) const;

  SimdLevel level_;
  KeyReader keys_;
  PartialKeyNodes nodes_;
  std::optional<KeyHash> hash_;
};

}  // namespace cairn
