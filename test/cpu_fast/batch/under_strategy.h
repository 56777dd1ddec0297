#pragma once

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <numeric>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "cairn/ordered_index.h"
#include "cpu_fast/batch/strategy.h"
#include "index/machine/status_macros.h"

namespace cairn {

// A strategy, and the options of the batch.
struct Way : StrategyOptions {
  ResultOrder order = ResultOrder::kCaller;
  bool sorted_input = false;
};

inline Way SortBased(ResultOrder order = ResultOrder::kCaller,
                     SortedSearch search = SortedSearch::kFastest) {
  Way way;
  way.strategy = Strategy::kSortBased;
  way.order = order;
  way.sorted_search = search;
  return way;
}

inline Way Buffered(size_t parts = 64, size_t buffer = 256) {
  Way way;
  way.strategy = Strategy::kBuffered;
  way.parts = parts;
  way.buffer = buffer;
  return way;
}

inline absl::Status Ask(const OrderedIndex& index, Batch batch, const Way& way,
                        const Parallelism& parallelism, StrategyScratchPool* pool) {
  batch.options.result_order = way.order;
  batch.options.sorted_input = way.sorted_input;
  return Execute(index, batch, way, parallelism, pool);
}

template <typename Key>
std::vector<uint32_t> SortingPermutation(absl::Span<const Key> keys) {
  std::vector<uint32_t> permutation(keys.size());
  std::iota(permutation.begin(), permutation.end(), 0);
  std::stable_sort(permutation.begin(), permutation.end(),
                   [&](uint32_t a, uint32_t b) { return keys[a] < keys[b]; });
  return permutation;
}

// The one permutation that sorts the keys and keeps equal ones in the batch's order.
inline std::vector<uint32_t> SortingPermutation(const KeyBatch& keys) {
  switch (keys.kind()) {
    case PhysicalType::kU32:
      return SortingPermutation(keys.u32());
    case PhysicalType::kU64:
      return SortingPermutation(keys.u64());
    case PhysicalType::kBytes:
      break;
  }
  return SortingPermutation(keys.bytes());
}

// An index whose operations use the function under test and restore the caller's order, so that it
// must behave like any OrderedIndex.
class UnderStrategy : public OrderedIndex {
 public:
  UnderStrategy(const OrderedIndex& index, const Way& way, const Parallelism& parallelism,
                StrategyScratchPool* pool)
      : OrderedIndex(index.run()),
        index_(index),
        way_(way),
        parallelism_(parallelism),
        pool_(pool) {}

  std::string description() const override {
    return absl::StrFormat(
        "%s, strategy %d, order %d, sorted_input %d, distinct_keys %d, sorted_search %d, parts %d, "
        "buffer %d, threads %d",
        index_.description(), static_cast<int>(way_.strategy), static_cast<int>(way_.order),
        way_.sorted_input, way_.distinct_keys, static_cast<int>(way_.sorted_search), way_.parts,
        way_.buffer, parallelism_.threads);
  }
  uint64_t memory_bytes() const override { return 0; }

  absl::Status Execute(const Batch& batch) const override {
    if (batch.takes_ranges()) return cairn::Execute(index_, batch, way_, parallelism_, pool_);
    std::vector<uint32_t> query_of(batch.size(), 0xDEAD);
    FindResult matches;
    Batch asked = batch;
    asked.query_of = absl::MakeSpan(query_of);
    if (batch.matches != nullptr) asked.matches = &matches;
    RETURN_IF_ERROR(Ask(index_, asked, way_, parallelism_, pool_));
    CheckPermutation(batch.keys, query_of);
    InCallersOrder(query_of, batch.values);
    InCallersOrder(query_of, batch.ends);
    InCallersOrder(query_of, batch.found);
    if (batch.matches != nullptr) *batch.matches = InCallersOrder(query_of, matches);
    return absl::OkStatus();
  }

 private:
  template <typename T>
  static void InCallersOrder(const std::vector<uint32_t>& query_of, absl::Span<T> out) {
    const std::vector<T> by_key(out.begin(), out.end());
    for (size_t i = 0; i < by_key.size(); ++i) out[query_of[i]] = by_key[i];
  }
  static FindResult InCallersOrder(const std::vector<uint32_t>& query_of,
                                   const FindResult& by_key) {
    BOOST_REQUIRE(by_key.size() == query_of.size());
    BOOST_REQUIRE(by_key.row_ids.size() == by_key.offsets.back());
    std::vector<absl::Span<const RowId>> rows(query_of.size());
    for (size_t i = 0; i < rows.size(); ++i) rows[query_of[i]] = by_key[i];
    FindResult matches;
    matches.offsets.push_back(0);
    for (absl::Span<const RowId> one : rows) {
      matches.row_ids.insert(matches.row_ids.end(), one.begin(), one.end());
      matches.offsets.push_back(matches.row_ids.size());
    }
    return matches;
  }

  void CheckPermutation(const KeyBatch& keys, const std::vector<uint32_t>& query_of) const {
    std::vector<uint32_t> expected(keys.size());
    std::iota(expected.begin(), expected.end(), 0);
    if (way_.order == ResultOrder::kKey) expected = SortingPermutation(keys);
    BOOST_REQUIRE_MESSAGE(query_of == expected, description() << ": query_of is wrong");
  }

  const OrderedIndex& index_;
  const Way way_;
  const Parallelism parallelism_;
  StrategyScratchPool* const pool_;
};

}  // namespace cairn
