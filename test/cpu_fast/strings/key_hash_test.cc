// KeyHash, by itself and with the tree that answers other operations.
#include "cpu_fast/strings/key_hash.h"

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <memory>
#include <numeric>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_format.h"
#include "cpu_fast/strings/partial_key_tree.h"
#include "test/ordered_index_oracle.h"
#include "test/require_ok.h"
#include "test/sanitizer.h"
#include "test/test_random.h"

namespace cairn {
BOOST_AUTO_TEST_SUITE(key_hash_test)
namespace {

std::unique_ptr<OrderedIndex> Make(SortedRun run) {
  return RequireOk(PartialKeyTree::Build(std::move(run), {.simd = std::nullopt, .hash = true}));
}

BOOST_AUTO_TEST_CASE(answers_like_the_oracle_beside_the_tree, *StartsNoThread()) {
  CheckCatalogue<std::string>(Make, FewerSanitized(30000, 2, 1));
}

BOOST_AUTO_TEST_CASE(answers_like_the_oracle_with_offsets_of_four_bytes, *StartsNoThread()) {
  CheckCatalogue<std::string>([](const SortedRun& run) { return Make(WithShortOffsets(run)); },
                              5000);
}

BOOST_AUTO_TEST_CASE(answers_like_the_oracle_for_every_small_number_of_keys, *StartsNoThread()) {
  auto random = TestRandom(5);
  for (size_t size = 0; size < 100; ++size) {
    std::vector<std::string> keys(size);
    for (std::string& key : keys) key = std::to_string(random() % 200);
    const auto data = oracle::FinishStrings(std::to_string(size) + " keys", std::move(keys));
    CheckPointsAgainstOracle(*Make(OracleRun(data)), data);
  }
}

BOOST_AUTO_TEST_CASE(finds_the_row_of_a_key_and_where_several_begin) {
  const std::vector<std::string_view> keys = {"", "a", "a", "a", "b", "c", "c"};
  const std::vector<RowId> row_ids = {9, 3, 4, 8, 1, 2, 5};
  const SortedRun run = RequireOk(SortedRun::FromSorted(absl::MakeConstSpan(keys), row_ids));
  const auto hash = KeyHash::Build(run, KeyReader(run.bytes()), 1);
  BOOST_REQUIRE(hash.has_value());
  const std::vector<std::string_view> queries = {
      "c", "", "a", "d", "b", "aa", std::string_view("\0", 1)};
  std::vector<KeyHash::Entry> entries(queries.size());
  hash->Find(queries, entries.data());
  const std::pair<RowId, Position> expected[] = {{2, 5},           {9, kNoRow}, {3, 1},
                                                 {kNoRow, kNoRow}, {1, kNoRow}, {kNoRow, kNoRow},
                                                 {kNoRow, kNoRow}};
  for (size_t i = 0; i < queries.size(); ++i) {
    BOOST_TEST(entries[i].row == expected[i].first);
    BOOST_TEST(entries[i].first == expected[i].second);
  }
  std::vector<RowId> rows(queries.size());
  hash->FindFirst(queries, rows.data());
  BOOST_TEST((rows == std::vector<RowId>{2, 9, 3, kNoRow, 1, kNoRow, kNoRow}));
}

BOOST_AUTO_TEST_CASE(a_run_without_entries_has_none) {
  const std::vector<std::string_view> keys;
  const SortedRun run = RequireOk(SortedRun::FromSorted(absl::MakeConstSpan(keys), {}));
  BOOST_TEST(!KeyHash::Build(run, KeyReader(run.bytes()), 1).has_value());
  const auto index = Make(run);
  bool found = true;
  const std::string_view query[] = {""};
  RequireOk(index->Execute(Batch::Contains(query, absl::MakeSpan(&found, 1))));
  BOOST_TEST(!found);
}

BOOST_AUTO_TEST_CASE(is_in_the_description_and_in_the_memory) {
  const auto data = OracleCatalogue<std::string>(5000).back();
  const auto with = Make(OracleRun(data));
  const auto without = RequireOk(PartialKeyTree::Build(OracleRun(data)));
  BOOST_TEST(absl::StrContains(with->description(), "cpu:partial_key,hash,simd="));
  BOOST_TEST(!absl::StrContains(without->description(), "hash"));
  const size_t distinct = std::set<std::string>(data.keys.begin(), data.keys.end()).size();
  BOOST_TEST(with->memory_bytes() > without->memory_bytes() + 4 * distinct);
}

// Distinct keys in order: numbers, each padded with zeros to the given length.
template <typename LengthOf>
SortedRun Numbers(size_t count, LengthOf length_of) {
  std::vector<std::string> keys(count);
  for (size_t i = 0; i < count; ++i) {
    keys[i] = absl::StrFormat("%08d", i);
    keys[i].resize(length_of(i), '0');
  }
  std::vector<RowId> row_ids(count);
  std::iota(row_ids.begin(), row_ids.end(), 0);
  const auto views = oracle::Views(keys);
  return RequireOk(SortedRun::FromSorted(absl::MakeConstSpan(views), row_ids));
}

// Bytes a key that are neither the key, rounded up, nor the row and the length before it.
double BytesAbove(const SortedRun& run, size_t record_bytes) {
  const auto hash = KeyHash::Build(run, KeyReader(run.bytes()), 2);
  BOOST_REQUIRE(hash.has_value());
  std::vector<std::string_view> queries(run.size());
  for (size_t i = 0; i < run.size(); ++i) queries[i] = run.bytes()[i];
  std::vector<RowId> rows(run.size());
  hash->FindFirst(queries, rows.data());
  for (size_t i = 0; i < run.size(); ++i) BOOST_REQUIRE(rows[i] == run.row_ids()[i]);
  return static_cast<double>(hash->memory_bytes() - record_bytes) / static_cast<double>(run.size());
}

BOOST_AUTO_TEST_CASE(keys_of_about_one_length_stand_in_slots_without_others_to_say_where) {
  constexpr size_t kCount = 100'000;
  const SortedRun run = Numbers(kCount, [](size_t i) { return 13 + i % 4; });
  // Records of 24 bytes; 87% of the slots are taken.
  const double above = BytesAbove(run, kCount * 24);
  BOOST_TEST(above > 2.0);
  BOOST_TEST(above < 4.5);
}

BOOST_AUTO_TEST_CASE(records_of_other_lengths_follow_one_another) {
  constexpr size_t kCount = 100'000;
  const SortedRun run = Numbers(kCount, [](size_t i) { return i % 2 == 0 ? 8 : 100; });
  const double above = BytesAbove(run, kCount / 2 * (16 + 108));
  BOOST_TEST(above > 4.0);
  BOOST_TEST(above < 5.2);
  // One among many is enough.
  const SortedRun one = Numbers(kCount, [](size_t i) { return i == 5000 ? 1'000'000 : 16; });
  BOOST_TEST(BytesAbove(one, kCount * 24 + 1'000'000) < 5.2);
}

BOOST_AUTO_TEST_CASE(batches_of_any_size_are_answered_whole) {
  const SortedRun in_slots = Numbers(1000, [](size_t) { return 16; });
  const SortedRun behind_slots = Numbers(1000, [](size_t i) { return i % 2 == 0 ? 8 : 100; });
  for (const SortedRun& run : {in_slots, behind_slots}) {
    const auto hash = KeyHash::Build(run, KeyReader(run.bytes()), 1);
    BOOST_REQUIRE(hash.has_value());
    for (size_t size = 0; size < 150; ++size) {
      std::vector<std::string_view> queries(size, "none");
      for (size_t i = 0; i < size; i += 2) queries[i] = run.bytes()[i];
      std::vector<RowId> rows(size + 1, 12345);
      hash->FindFirst(queries, rows.data());
      for (size_t i = 0; i < size; ++i) {
        BOOST_REQUIRE(rows[i] == (i % 2 == 0 ? run.row_ids()[i] : kNoRow));
      }
      BOOST_REQUIRE(rows[size] == 12345u);
    }
  }
}

BOOST_AUTO_TEST_CASE(many_threads_ask_at_once) {
  const auto data = OracleCatalogue<std::string>(30000).back();
  const auto index = Make(OracleRun(data));
  const auto queries = oracle::Views(data.queries);
  std::vector<RowId> expected(queries.size());
  RequireOk(index->Execute(Batch::FindFirst(queries, absl::MakeSpan(expected))));
  RequireOnFourThreads([&] {
    std::vector<RowId> rows(queries.size());
    bool same = true;
    for (int i = 0; i < 10; ++i) {
      same &= index->Execute(Batch::FindFirst(queries, absl::MakeSpan(rows))).ok();
      same &= rows == expected;
    }
    return same;
  });
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
