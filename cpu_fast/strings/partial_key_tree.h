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
// order-preserving partial keys of Kim et al. (FAST, SIGMOD 2010, section 6.1). Nodes that test
// arbitrary bits of a key, not only a prefix, are after Binna et al. (HOT, SIGMOD 2018).
//
// A search starts at a table indexed by the bits that distinguish most keys, and descends through
// nodes of two cache lines to one entry: the only one whose key can equal the query. It reads that
// key and compares it. If they differ, the first differing bit determines where the query belongs:
// before or after all keys that share the bits before it. A second descent finds these, mostly
// within the same leaf. The queries of a group descend together, so that their cache misses
// overlap.
class PartialKeyTree final : public HostIndex {
 public:
  struct Options {
    std::optional<SimdLevel> simd;  // see FastTreeOptions::simd
    bool hash = false;              // also build a KeyHash, for FindFirst, Contains and Find
  };

  // Builds on all cores. Errors: Unimplemented if keys are not byte strings. Throws std::bad_alloc.
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
  // Entries that the tree does not distinguish.
  struct Ties {
    Position first;
    Position last;   // exclusive
    bool same_bits;  // their keys are equal except for trailing zero bytes
  };

  PartialKeyTree(SortedRun run, SimdLevel level, bool hash);

  // The data that a descent reads. It also prefetches row ids if `rows`.
  PartialKeyTreeView View(bool rows) const;
  // Searches a batch. Calls finish(&group) once the tree has led every query of the group to an
  // entry, and each entry's key has been compared with its query.
  template <typename Finish>
  void ForEachGroup(absl::Span<const std::string_view> queries, bool rows, Finish finish) const;
  // Determines which queries equal the keys that the tree led them to.
  void Verify(Group* group) const;
  // The ties of the entry at `position`, to which the tree led in `leaf`.
  Ties TiesAt(uint32_t leaf, Position position) const;
  // Sets the position of query `query` to its lower bound among tied entries, whether or not its
  // key exists.
  struct TieSearch {
    uint8_t query;
    Ties ties;
  };
  void SearchTies(absl::Span<const TieSearch> searches, Group* group) const;
  // Sets the positions of missing queries to their lower bounds.
  void PlaceMissing(Group* group) const;
  // The same for queries whose lower bound is the start or end of the keys with a prefix.
  // `prefixes` has the results of the searches for these prefixes; prefix p belongs to query
  // queries[p].
  void PlaceAtPrefixes(const PartialKeyGroup& prefixes, absl::Span<const uint8_t> queries,
                       Group* group) const;

  SimdLevel level_;
  KeyReader keys_;
  PartialKeyNodes nodes_;
  std::optional<KeyHash> hash_;
};

}  // namespace cairn
