#include "cpu_fast/strategy.h"

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <memory>
#include <string>
#include <vector>

#include "cpu_fast/fast_tree.h"
#include "index/sorted_array.h"
#include "test/ordered_index_oracle.h"
#include "test/test_random.h"

namespace cairn {
namespace {

// Every strategy that fixed-width keys take, with buffers that never, sometimes and always fill up.
std::vector<StrategyOptions> EveryStrategy() {
  std::vector<StrategyOptions> all(1);
  for (size_t parts : {size_t{1}, size_t{2}, size_t{16}, size_t{256}}) {
    for (size_t buffer : {size_t{1}, size_t{3}, size_t{64}, size_t{1024}}) {
      StrategyOptions options;
      options.strategy = Strategy::kBuffered;
      options.parts = parts;
      options.buffer = buffer;
      all.push_back(options);
    }
  }
  for (SortedSearch search : {SortedSearch::kFastest, SortedSearch::kIndex, SortedSearch::kMerge}) {
    for (ResultOrder order : {ResultOrder::kCaller, ResultOrder::kKey}) {
      StrategyOptions options;
      options.strategy = Strategy::kSortBased;
      options.sorted_search = search;
      options.order = order;
      all.push_back(options);
    }
  }
  return all;
}

StrategyOptions SortBased(ResultOrder order = ResultOrder::kCaller) {
  StrategyOptions options;
  options.strategy = Strategy::kSortBased;
  options.order = order;
  return options;
}

StrategyOptions Buffered() {
  StrategyOptions options;
  options.strategy = Strategy::kBuffered;
  return options;
}

template <typename Key>
std::vector<uint32_t> InOrderOf(ResultOrder order, const std::vector<uint32_t>& by_caller,
                                const std::vector<Key>& keys, const StrategyScratch& scratch) {
  if (order == ResultOrder::kCaller) return by_caller;
  // The one permutation that sorts the keys and keeps equal ones in the batch's order.
  std::vector<uint32_t> permutation(by_caller.size());
  for (uint32_t i = 0; i < permutation.size(); ++i) permutation[i] = i;
  std::stable_sort(permutation.begin(), permutation.end(),
                   [&](uint32_t a, uint32_t b) { return keys[a] < keys[b]; });
  BOOST_REQUIRE(scratch.permutation() == absl::MakeConstSpan(permutation));
  std::vector<uint32_t> by_key;
  for (uint32_t i : permutation) by_key.push_back(by_caller[i]);
  return by_key;
}

template <typename Key>
void CheckStrategy(const OrderedIndex& index, const OracleData<Key>& data,
                   const StrategyOptions& options, StrategyScratch* scratch) {
  const auto queries = oracle::Views(data.queries);
  for (size_t size : {size_t{0}, size_t{1}, size_t{2}, size_t{33}, queries.size()}) {
    const size_t batch = std::min(size, queries.size());
    const KeyBatch keys = oracle::Physical<Key>::Batch(queries).Slice(0, batch);
    std::vector<uint32_t> lower, first, positions(batch, 0xDEAD), rows(batch, 0xDEAD);
    for (size_t i = 0; i < batch; ++i) {
      const auto at = std::lower_bound(data.keys.begin(), data.keys.end(), data.queries[i]);
      const bool found = at != data.keys.end() && *at == data.queries[i];
      lower.push_back(static_cast<Position>(at - data.keys.begin()));
      first.push_back(found ? data.row_ids[lower.back()] : kNoRow);
    }
    const absl::Status s = LowerBound(index, keys, absl::MakeSpan(positions), options, scratch);
    BOOST_REQUIRE_MESSAGE(s.ok(), s);
    const bool same = positions == InOrderOf(options.order, lower, data.queries, *scratch);
    BOOST_REQUIRE(FindFirst(index, keys, absl::MakeSpan(rows), options, scratch).ok());
    const bool same_rows = rows == InOrderOf(options.order, first, data.queries, *scratch);
    BOOST_REQUIRE_MESSAGE(same && same_rows,
                          index.description() << " on " << data.name << ", batch " << batch
                                              << ", strategy " << static_cast<int>(options.strategy)
                                              << ", " << static_cast<int>(options.sorted_search));
  }
}

template <typename Key>
void CheckEveryStrategy() {
  StrategyScratch scratch;  // reused, as callers do
  for (const OracleData<Key>& data : OracleCatalogue<Key>()) {
    BOOST_TEST_MESSAGE(data.name);
    const SortedRun run = OracleRun(data);
    const auto tree = FastTree::Build(run);
    BOOST_REQUIRE(tree.ok());
    for (const StrategyOptions& options : EveryStrategy()) {
      CheckStrategy(**tree, data, options, &scratch);
      CheckStrategy(SortedArray(run), data, options, &scratch);
    }
  }
}

BOOST_AUTO_TEST_SUITE(strategy_test)

BOOST_AUTO_TEST_CASE(every_strategy_answers_like_the_oracle_for_32_bit_keys) {
  CheckEveryStrategy<uint32_t>();
}

BOOST_AUTO_TEST_CASE(every_strategy_answers_like_the_oracle_for_64_bit_keys) {
  CheckEveryStrategy<uint64_t>();
}

BOOST_AUTO_TEST_CASE(keys_of_bytes_are_asked_unbuffered_or_sorted) {
  StrategyScratch scratch;
  for (const OracleData<std::string>& data : OracleCatalogue<std::string>()) {
    BOOST_TEST_MESSAGE(data.name);
    const SortedArray index(OracleRun(data));
    CheckStrategy(index, data, {}, &scratch);
    CheckStrategy(index, data, SortBased(), &scratch);
    CheckStrategy(index, data, SortBased(ResultOrder::kKey), &scratch);
  }
}

BOOST_AUTO_TEST_CASE(keys_of_bytes_are_not_buffered_or_merged) {
  const auto data = OracleCatalogue<std::string>(200).back();
  const SortedArray index(OracleRun(data));
  const std::vector<std::string_view> keys(1000, "key");
  std::vector<RowId> rows(keys.size());
  StrategyScratch scratch;
  StrategyOptions merge = SortBased();
  merge.sorted_search = SortedSearch::kMerge;
  for (const StrategyOptions& options : {Buffered(), merge}) {
    const absl::Status s =
        FindFirst(index, KeyBatch::Bytes(keys), absl::MakeSpan(rows), options, &scratch);
    BOOST_TEST(absl::IsUnimplemented(s), s);
  }
}

// The catalogue's batches are of few thousand queries; here are some that fill every buffer, many
// times over, and that repeat one key.
BOOST_AUTO_TEST_CASE(large_batches_fill_all_buffers) {
  auto random = TestRandom();
  OracleData<uint64_t> data;
  data.name = "large batches";
  for (uint64_t i = 0; i < 100000; ++i) {
    data.keys.push_back(i * 3);
    data.row_ids.push_back(static_cast<RowId>(i ^ 0x55));
  }
  for (size_t i = 0; i < 300000; ++i) {
    data.queries.push_back(i % 4 == 0 ? 299997 : random() % 300010);
  }
  const auto tree = FastTree::Build(OracleRun(data));
  BOOST_REQUIRE(tree.ok());
  StrategyScratch scratch;
  for (const StrategyOptions& options : EveryStrategy()) {
    CheckStrategy(**tree, data, options, &scratch);
  }
}

BOOST_AUTO_TEST_CASE(a_warm_call_takes_no_more_memory) {
  const auto data = OracleCatalogue<uint32_t>().back();
  const SortedArray index(OracleRun(data));
  for (const StrategyOptions& options : EveryStrategy()) {
    StrategyScratch scratch;
    CheckStrategy(index, data, options, &scratch);
    const uint64_t bytes = scratch.memory_bytes();
    BOOST_TEST((bytes > 0) == (options.strategy == Strategy::kSortBased ||
                               (options.strategy == Strategy::kBuffered && options.parts > 1)));
    CheckStrategy(index, data, options, &scratch);
    BOOST_TEST(scratch.memory_bytes() == bytes);
  }
}

BOOST_AUTO_TEST_CASE(refuses_what_does_not_fit) {
  const auto data = OracleCatalogue<uint32_t>(100).back();
  const SortedArray index(OracleRun(data));
  StrategyScratch scratch;
  std::vector<RowId> rows(data.queries.size());
  const auto refuses = [&](KeyBatch keys, absl::Span<RowId> out, const StrategyOptions& options) {
    return absl::IsInvalidArgument(FindFirst(index, keys, out, options, &scratch)) &&
           absl::IsInvalidArgument(LowerBound(index, keys, out, options, &scratch));
  };
  const KeyBatch keys = KeyBatch::U32(data.queries);
  const absl::Span<RowId> out = absl::MakeSpan(rows);
  for (Strategy strategy : {Strategy::kUnbuffered, Strategy::kBuffered, Strategy::kSortBased}) {
    StrategyOptions options;
    options.strategy = strategy;
    BOOST_TEST(refuses(keys, out.subspan(1), options));
    const uint64_t u64[] = {1};
    BOOST_TEST(refuses(KeyBatch::U64(u64), out.subspan(0, 1), options));
    for (size_t parts : {size_t{0}, size_t{3}, size_t{2048}}) {
      options.parts = parts;
      BOOST_TEST(refuses(keys, out, options));
    }
    options.parts = 16;
    options.buffer = 0;
    BOOST_TEST(refuses(keys, out, options));
  }
  StrategyOptions options = Buffered();
  options.order = ResultOrder::kKey;
  BOOST_TEST(refuses(keys, out, options));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace cairn
