#include "cpu_fast/batch/strategy.h"

#include <algorithm>
#include <atomic>
#include <boost/test/unit_test.hpp>
#include <memory>
#include <new>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_format.h"
#include "cpu_fast/fast/fast_tree.h"
#include "cpu_fast/packed/packed_index.h"
#include "cpu_fast/strings/partial_key_tree.h"
#include "index/query/sorted_array.h"
#include "test/cpu_fast/batch/under_strategy.h"
#include "test/ordered_index_oracle.h"
#include "test/require_ok.h"
#include "test/sanitizer.h"
#include "test/test_random.h"

namespace cairn {
BOOST_AUTO_TEST_SUITE(strategy_test)
namespace {

constexpr Parallelism kOneThread{1};
constexpr Parallelism kFourThreads{4, 10};

// Every strategy for keys of `kind`, in every order of its results, with and without correct hints
// about the input; with buffers that never, sometimes and always fill up.
std::vector<Way> EveryStrategy(PhysicalType kind) {
  std::vector<Way> strategies = {
      Way(),           Buffered(),       Buffered(1, 64), Buffered(2, 100),
      Buffered(16, 3), Buffered(256, 1), SortBased(),     SortBased({}, SortedSearch::kIndex)};
  if (kind != PhysicalType::kBytes) strategies.push_back(SortBased({}, SortedSearch::kMerge));
  std::vector<Way> all;
  for (Way options : strategies) {
    for (bool sorted_input : {false, true}) {
      for (ResultOrder order : {ResultOrder::kCaller, ResultOrder::kKey}) {
        options.sorted_input = sorted_input;
        options.order = order;
        if (order == ResultOrder::kCaller || sorted_input ||
            options.strategy == Strategy::kSortBased) {
          all.push_back(options);
        }
      }
    }
  }
  return all;
}

// Entries of many kinds, few enough to be queried in every way; make_key turns numbers into keys.
template <typename Key, typename MakeKey>
std::vector<OracleData<Key>> DataOf(MakeKey make_key) {
  auto random = TestRandom();
  std::vector<OracleData<Key>> all;
  const auto add = [&](const std::string& name, size_t size, auto number) {
    if (kUnderTsan && size < 2000) return;
    std::vector<Key> keys;
    for (size_t i = 0; i < size; ++i) keys.push_back(make_key(number(i)));
    if constexpr (std::is_integral_v<Key>) {
      all.push_back(oracle::FinishIntegers(name, std::move(keys)));
    } else {
      all.push_back(oracle::FinishStrings(name, std::move(keys)));
    }
  };
  add("nothing", 0, [](size_t i) { return i; });
  add("one entry", 1, [](size_t) { return 77; });
  add("all equal", 300, [](size_t) { return 77; });
  add("dense", 1000, [](size_t i) { return i + 10; });
  add("scattered", 3000, [&](size_t) { return random(); });
  add("duplicates", 3000, [&](size_t) { return random() % 200 * 1000; });
  add("one long duplicate", 2000, [&](size_t i) { return i < 1500 ? 5000 : random() % 10000; });
  return all;
}

// The same entries with other queries: few and many, in all kinds of order, below, between and
// above the keys, and repeated.
template <typename Key>
std::vector<OracleData<Key>> WithBatches(const OracleData<Key>& data) {
  constexpr size_t kMax = FewerSanitized(400, 12, 20);
  auto random = TestRandom(1);
  std::vector<OracleData<Key>> all;
  const auto add = [&](const std::string& name, std::vector<Key> queries) {
    all.push_back({data.name + ", " + name, data.keys, data.row_ids, std::move(queries)});
  };
  std::vector<Key> queries = data.queries;
  queries.resize(std::min(queries.size(), kMax));
  add("no queries", {});
  add("one query", {queries[0]});
  add("any order", queries);
  std::vector<Key> repeated;
  const size_t few = std::min<size_t>(queries.size(), 20);
  for (size_t i = 0; i < kMax; ++i) repeated.push_back(queries[random() % few]);
  add("repeated", repeated);
  add("all equal", std::vector<Key>(kMax, queries[0]));
  std::sort(repeated.begin(), repeated.end());
  add("repeated and ascending", repeated);
  std::sort(queries.begin(), queries.end());
  add("ascending", queries);
  std::vector<Key> nearly = queries;
  std::swap(nearly.front(), nearly.back());
  add("ascending except for the ends", nearly);
  nearly = queries;
  std::rotate(nearly.begin(), nearly.end() - 1, nearly.end());
  add("ascending except for the first", nearly);
  nearly = queries;
  std::rotate(nearly.begin(), nearly.begin() + 1, nearly.end());
  add("ascending except for the last", nearly);
  nearly = queries;
  // The order breaks only at a boundary between the slices of four threads.
  std::rotate(nearly.begin(), nearly.begin() + nearly.size() / 2, nearly.end());
  add("two ascending halves", nearly);
  std::reverse(queries.begin(), queries.end());
  add("descending", queries);
  return all;
}

std::vector<std::unique_ptr<OrderedIndex>> IndexesOf(const SortedRun& run) {
  std::vector<std::unique_ptr<OrderedIndex>> indexes;
  const auto add = [&](auto built) {
    RequireOk(built);
    indexes.push_back(*std::move(built));
  };
  indexes.push_back(std::make_unique<SortedArray>(run));
  if (run.kind() == PhysicalType::kBytes) {
    add(PartialKeyTree::Build(run));
  } else {
    add(MakePackedIndex(run));
    add(MakeFastTree(run));
  }
  return indexes;
}

template <typename Key, typename MakeKey>
void CheckEveryStrategy(MakeKey make_key) {
  StrategyScratchPool pool;  // shared and reused, as callers do
  for (const OracleData<Key>& data : DataOf<Key>(make_key)) {
    BOOST_TEST_MESSAGE(data.name);
    const auto indexes = IndexesOf(OracleRun(data));
    const bool distinct = std::adjacent_find(data.keys.begin(), data.keys.end()) == data.keys.end();
    for (const OracleData<Key>& batch : WithBatches(data)) {
      for (const auto& index : indexes) {
        for (Way options : EveryStrategy(index->run().kind())) {
          for (const Parallelism& parallelism : {kOneThread, kFourThreads}) {
            if (kUnderTsan && parallelism.threads == 1) continue;
            options.distinct_keys = false;
            CheckPointsAgainstOracle(UnderStrategy(*index, options, parallelism, &pool), batch);
            if (!distinct) continue;
            options.distinct_keys = true;
            CheckPointsAgainstOracle(UnderStrategy(*index, options, parallelism, &pool), batch);
          }
        }
      }
    }
  }
}

// The points of every data set, and of one all that an OrderedIndex answers and refuses.
template <typename Key>
void CheckCatalogueUnderStrategies() {
  StrategyScratchPool pool;
  Way sorted_input;
  sorted_input.sorted_input = true;
  sorted_input.order = ResultOrder::kKey;
  const std::vector<OracleData<Key>> catalogue = OracleCatalogue<Key>(FewerSanitized(10000, 10, 5));
  for (size_t d = 0; d < catalogue.size(); d += kUnderTsan ? 5 : 1) {
    const OracleData<Key>& data = catalogue[d];
    BOOST_TEST_MESSAGE(data.name);
    const auto index = std::move(IndexesOf(OracleRun(data)).back());
    for (const Way& options :
         {Buffered(), SortBased(), SortBased(ResultOrder::kKey), sorted_input}) {
      const UnderStrategy under_strategy(*index, options, kFourThreads, &pool);
      CheckPointsAgainstOracle(under_strategy, data);
      if (data.keys.size() == 1000) CheckAgainstOracle(under_strategy, data);
    }
  }
}

// Answers nothing.
class Failing : public OrderedIndex {
 public:
  Failing(SortedRun run, bool throws) : OrderedIndex(std::move(run)), throws_(throws) {}
  std::string description() const override { return "failing"; }
  uint64_t memory_bytes() const override { return 0; }
  absl::Status Execute(const Batch&) const override {
    if (throws_) throw std::bad_alloc();
    return absl::DataLossError("lost");
  }

 private:
  const bool throws_;
};

BOOST_AUTO_TEST_CASE(every_strategy_answers_like_the_oracle_for_32_bit_keys) {
  CheckEveryStrategy<uint32_t>([](uint64_t number) { return static_cast<uint32_t>(number); });
}

BOOST_AUTO_TEST_CASE(every_strategy_answers_like_the_oracle_for_64_bit_keys) {
  CheckEveryStrategy<uint64_t>([](uint64_t number) { return number * 0x100000001; });
}

BOOST_AUTO_TEST_CASE(every_strategy_answers_like_the_oracle_for_keys_of_bytes) {
  CheckEveryStrategy<std::string>([](uint64_t number) { return std::to_string(number % 100000); });
}

BOOST_AUTO_TEST_CASE(keys_with_a_common_prefix_are_buffered_by_what_is_behind_it) {
  CheckEveryStrategy<std::string>([](uint64_t number) {
    return "https://example.org/" + std::string(number % 3, '/') + std::to_string(number % 5000);
  });
}

BOOST_AUTO_TEST_CASE(whatever_the_entries_strategies_answer_like_the_oracle) {
  CheckCatalogueUnderStrategies<uint32_t>();
  CheckCatalogueUnderStrategies<uint64_t>();
  CheckCatalogueUnderStrategies<std::string>();
}

// Batches that fill every buffer many times over, that are sorted on several threads, and that are
// answered in many chunks; one key is queried many times.
BOOST_AUTO_TEST_CASE(large_batches_are_answered_like_small_ones) {
  constexpr uint64_t kEntries = FewerUnderTsan(100000);
  auto random = TestRandom();
  OracleData<uint64_t> numbers;
  OracleData<std::string> strings;
  numbers.name = strings.name = "large batches";
  for (uint64_t i = 0; i < kEntries; ++i) {
    numbers.keys.push_back(i * 3);
    strings.keys.push_back(absl::StrFormat("key %08d", i * 3));
    numbers.row_ids.push_back(static_cast<RowId>(i ^ 0x55));
    strings.row_ids.push_back(static_cast<RowId>(i ^ 0x55));
  }
  for (size_t i = 0; i < 2 * kEntries; ++i) {
    numbers.queries.push_back(i % 4 == 0 ? 3 * kEntries - 3 : random() % (3 * kEntries + 10));
    if (i % 2 == 0) strings.queries.push_back(absl::StrFormat("key %08d", numbers.queries.back()));
  }
  StrategyScratchPool pool;
  const auto check = [&](const auto& data, const OrderedIndex& index) {
    for (const Way& options : {Way(), Buffered(), SortBased(), SortBased(ResultOrder::kKey)}) {
      for (const Parallelism& parallelism : {kOneThread, Parallelism{4}}) {
        CheckPointsAgainstOracle(UnderStrategy(index, options, parallelism, &pool), data);
      }
    }
  };
  check(numbers, **MakeFastTree(OracleRun(numbers)));
  check(strings, **PartialKeyTree::Build(OracleRun(strings)));
}

BOOST_AUTO_TEST_CASE(any_number_of_callers_share_a_pool) {
  const auto data = DataOf<uint32_t>([](uint64_t n) { return static_cast<uint32_t>(n); }).back();
  const auto index = RequireOk(MakeFastTree(OracleRun(data)));
  std::vector<RowId> expected(data.queries.size());
  RequireOk(index->Execute(Batch::FindFirst(data.queries, absl::MakeSpan(expected))));
  StrategyScratchPool pool;
  std::vector<std::thread> callers;
  std::atomic<int> wrong = 0;
  for (int caller = 0; caller < 8; ++caller) {
    callers.emplace_back([&, caller] {
      std::vector<RowId> rows(data.queries.size());
      for (int i = 0; i < 50; ++i) {
        std::fill(rows.begin(), rows.end(), 0xDEAD);
        const absl::Status s = Ask(*index, Batch::FindFirst(data.queries, absl::MakeSpan(rows)),
                                   i % 2 == 0 ? Buffered() : SortBased(),
                                   caller % 2 == 0 ? kOneThread : kFourThreads, &pool);
        if (!s.ok() || rows != expected) ++wrong;
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  BOOST_TEST(wrong == 0);
}

BOOST_AUTO_TEST_CASE(a_warm_call_takes_no_more_memory) {
  const auto data = OracleCatalogue<uint32_t>().back();
  const SortedArray index(OracleRun(data));
  for (const Way& options : EveryStrategy(PhysicalType::kU32)) {
    StrategyScratchPool pool;
    CheckPointsAgainstOracle(UnderStrategy(index, options, kOneThread, &pool), data);
    const uint64_t bytes = pool.memory_bytes();
    CheckPointsAgainstOracle(UnderStrategy(index, options, kOneThread, &pool), data);
    BOOST_TEST(pool.memory_bytes() == bytes);
    pool.FreeIdle();
    BOOST_TEST(pool.memory_bytes() == 0u);
    CheckPointsAgainstOracle(UnderStrategy(index, options, kOneThread, &pool), data);
  }
}

BOOST_AUTO_TEST_CASE(what_ascends_is_neither_sorted_nor_buffered) {
  auto data = OracleCatalogue<uint32_t>().back();
  std::sort(data.queries.begin(), data.queries.end());
  const SortedArray index(OracleRun(data));
  std::vector<RowId> rows(data.queries.size());
  for (Way options : {Way(), Buffered(), SortBased()}) {
    for (ResultOrder order : {ResultOrder::kCaller, ResultOrder::kKey}) {
      options.order = order;
      options.sorted_input = true;
      StrategyScratchPool pool;
      BOOST_TEST(Ask(index, Batch::FindFirst(data.queries, absl::MakeSpan(rows)), options,
                     kOneThread, &pool)
                     .ok());
      BOOST_TEST(pool.memory_bytes() == 0u);
    }
  }
}

BOOST_AUTO_TEST_CASE(an_index_s_error_and_a_lack_of_memory_are_the_batch_s) {
  const auto data = OracleCatalogue<uint32_t>(100).back();
  StrategyScratchPool pool;
  FindResult matches;
  std::vector<RowId> rows(data.queries.size());
  const KeyBatch keys(data.queries);
  for (bool throws : {false, true}) {
    const Failing index(OracleRun(data), throws);
    const auto expected =
        throws ? absl::StatusCode::kResourceExhausted : absl::StatusCode::kDataLoss;
    for (const Way& options : {Way(), Buffered(), SortBased({}, SortedSearch::kIndex),
                               SortBased(ResultOrder::kKey, SortedSearch::kIndex)}) {
      for (const Parallelism& parallelism : {kOneThread, kFourThreads}) {
        const absl::Status first =
            Ask(index, Batch::FindFirst(keys, absl::MakeSpan(rows)), options, parallelism, &pool);
        BOOST_TEST((first.code() == expected), first);
        const absl::Status all =
            Ask(index, Batch::Find(keys, &matches), options, parallelism, &pool);
        BOOST_TEST((all.code() == expected), all);
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(keys_of_bytes_are_not_merged) {
  const auto data = OracleCatalogue<std::string>(200).back();
  const SortedArray index(OracleRun(data));
  const std::vector<std::string_view> keys(1000, "key");
  std::vector<RowId> rows(keys.size());
  StrategyScratchPool pool;
  const absl::Status s = Ask(index, Batch::FindFirst(keys, absl::MakeSpan(rows)),
                             SortBased({}, SortedSearch::kMerge), kOneThread, &pool);
  BOOST_TEST(absl::IsUnimplemented(s), s);
}

BOOST_AUTO_TEST_CASE(refuses_what_does_not_fit) {
  const auto data = OracleCatalogue<uint32_t>(100).back();
  const SortedArray index(OracleRun(data));
  StrategyScratchPool pool;
  const size_t size = data.queries.size();
  std::vector<RowId> rows(size);
  std::vector<uint32_t> query_of(size);
  FindResult matches;
  const KeyBatch keys(data.queries);
  const auto refuses = [&](KeyBatch keys, size_t outputs, const Way& options,
                           size_t queries_of = 0) {
    const absl::Span<RowId> out = absl::MakeSpan(rows).first(outputs);
    const absl::Span<uint32_t> of = absl::MakeSpan(query_of).first(queries_of);
    const auto refused = [&](Batch batch) {
      batch.query_of = of;
      return absl::IsInvalidArgument(Ask(index, batch, options, kFourThreads, &pool));
    };
    return refused(Batch::FindFirst(keys, out)) && refused(Batch::UpperBound(keys, out)) &&
           (outputs != keys.size() || refused(Batch::Find(keys, &matches)));
  };
  for (Strategy strategy : {Strategy::kUnbuffered, Strategy::kBuffered, Strategy::kSortBased}) {
    Way options;
    options.strategy = strategy;
    BOOST_TEST(refuses(keys, size - 1, options));
    BOOST_TEST(refuses(keys, size, options, size - 1));
    const uint64_t u64[] = {1};
    BOOST_TEST(refuses(KeyBatch(u64), 1, options));
    for (size_t parts : {size_t{0}, size_t{3}, size_t{2048}}) {
      options.parts = parts;
      BOOST_TEST(refuses(keys, size, options));
    }
    options.parts = 16;
    options.buffer = 0;
    BOOST_TEST(refuses(keys, size, options));
    if (strategy == Strategy::kSortBased) continue;
    options = {};
    options.strategy = strategy;
    options.order = ResultOrder::kKey;
    BOOST_TEST(refuses(keys, size, options));
  }
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
