#include "engine/delta/delta_rows.h"

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <string>
#include <utility>
#include <vector>

#include "test/test_random.h"

namespace cairn {

BOOST_AUTO_TEST_SUITE(delta_rows_test)

// Rows are appended in ascending runs, like updates, and some are truncated again.
BOOST_AUTO_TEST_CASE(rows_that_come_in_order_are_ordered_with_those_that_do_not) {
  auto random = TestRandom();
  for (int round = 0; round < 200; ++round) {
    DeltaRows rows(/*base_rows=*/3);
    std::vector<std::string> names(3);  // base rows have only ranks, no names
    std::vector<RowId> ranks(3);
    while (names.size() < 200) {
      const size_t before = names.size();
      std::vector<std::pair<RowId, std::string>> run;
      for (uint64_t n = 1 + random() % 40; n > 0; --n) {
        const RowId rank = round % 2 == 0 ? 0 : static_cast<RowId>(random() % 4);
        run.emplace_back(rank, std::to_string(rank) + std::to_string(random()));
      }
      if (random() % 4 > 0) std::sort(run.begin(), run.end());
      for (const auto& [rank, name] : run) {
        rows.Append(name, rank);
        names.push_back(name);
        ranks.push_back(rank);
      }
      if (random() % 3 == 0) {
        names.resize(before + random() % (run.size() + 1));
        ranks.resize(names.size());
        rows.Truncate(static_cast<RowId>(names.size()));
      }
      for (int i = 0; i < 200 && names.size() > 3; ++i) {
        const auto a = static_cast<RowId>(3 + random() % (names.size() - 3));
        const auto b = static_cast<RowId>(3 + random() % (names.size() - 3));
        BOOST_REQUIRE(rows.Less(a, b) ==
                      (std::pair(ranks[a], names[a]) < std::pair(ranks[b], names[b])));
      }
    }
  }
}

// Base rows have the primary keys "0010", "0020", …; later ones are anywhere between.
BOOST_AUTO_TEST_CASE(rows_are_ordered_by_primary_key) {
  constexpr RowId kBaseRows = 50;
  const auto name = [](uint64_t number) {
    const std::string digits = std::to_string(number);
    return std::string(4 - digits.size(), '0') + digits;
  };
  DeltaRows rows(kBaseRows);
  std::vector<std::string> names;
  for (RowId row = 0; row < kBaseRows; ++row) names.push_back(name(10 * (row + 1)));
  auto random = TestRandom();
  while (rows.end() < 2000) {
    const uint64_t number = random() % 600;
    const std::string key = name(number) + (number % 10 == 0 ? "x" : "") + std::to_string(random());
    const auto rank = std::lower_bound(names.begin(), names.begin() + kBaseRows, key);
    const RowId row = rows.Append(key, static_cast<RowId>(rank - names.begin()));
    BOOST_REQUIRE(row == names.size());
    names.push_back(key);
  }
  size_t wrong = 0;
  for (RowId row = kBaseRows; row < rows.end(); ++row) wrong += rows.primary_key(row) != names[row];
  for (int i = 0; i < 100000; ++i) {
    const auto a = static_cast<RowId>(random() % names.size());
    const auto b = static_cast<RowId>(random() % names.size());
    wrong += rows.Less(a, b) != (names[a] < names[b]);
    // `b` as a place.
    const auto rank = std::lower_bound(names.begin(), names.begin() + kBaseRows, names[b]);
    const bool found = rank != names.begin() + kBaseRows && *rank == names[b];
    const RowPlace place{names[b], static_cast<RowId>(rank - names.begin()), found};
    wrong += rows.Compare(a, place) != (names[a] <=> names[b]);
  }
  BOOST_TEST(wrong == 0u);
}

BOOST_AUTO_TEST_CASE(rows_do_not_move_as_others_come) {
  DeltaRows rows(7);
  std::vector<const char*> where;
  for (uint32_t i = 0; i < 100000; ++i) {
    const RowId row = rows.Append(std::string(i % 40, 'a') + std::to_string(i), i);
    where.push_back(rows.primary_key(row).data());
  }
  rows.Append(std::string(1 << 20, 'z'), 1);
  rows.Append("", 2);
  size_t wrong = 0;
  for (uint32_t i = 0; i < where.size(); ++i) {
    wrong += rows.primary_key(7 + i).data() != where[i] || rows.rank(7 + i) != i;
  }
  BOOST_TEST(wrong == 0u);
  BOOST_TEST(rows.primary_key(7 + 100000).size() == size_t{1} << 20);
  BOOST_TEST(rows.primary_key(7 + 100001).empty());
  BOOST_TEST(rows.memory_bytes() > 100000u * 16);
}

BOOST_AUTO_TEST_CASE(rows_that_are_taken_back_take_no_memory) {
  DeltaRows rows(7);
  const auto append = [&](int count, size_t bytes) {
    for (int i = 0; i < count; ++i) {
      rows.Append(std::string(bytes, 'a') + std::to_string(rows.end()), 1);
    }
  };
  append(1000, 50);
  const RowId end = rows.end();
  const uint64_t bytes = rows.memory_bytes();
  const std::string last(rows.primary_key(end - 1));
  uint64_t most = 0;
  for (int round = 0; round < 5; ++round) {
    append(20'000, 50);
    append(3, size_t{1} << 18);
    if (round == 0) most = rows.memory_bytes();
    BOOST_TEST(rows.memory_bytes() == most);
    rows.Truncate(end);
    BOOST_TEST(rows.end() == end);
    BOOST_TEST(rows.memory_bytes() <= bytes + (128 << 10));  // the chunks that were begun
    BOOST_TEST(rows.primary_key(end - 1) == last);
  }
  append(1, 3);
  BOOST_TEST(rows.primary_key(end) == "aaa" + std::to_string(end));
  BOOST_TEST(rows.primary_key(end - 1) == last);
  rows.Truncate(rows.end());
  BOOST_TEST(rows.end() == end + 1);
  rows.Truncate(7);
  BOOST_TEST(rows.end() == 7u);
  append(1000, 50);
  BOOST_TEST(rows.memory_bytes() <= bytes + (128 << 10));
}

BOOST_AUTO_TEST_CASE(an_empty_primary_key_may_be_taken_back) {
  DeltaRows rows(0);
  for (int round = 0; round < 3; ++round) {
    rows.Append("", 0);
    rows.Append("a", 0);
    BOOST_TEST(rows.primary_key(0) == "");
    BOOST_TEST(rows.primary_key(1) == "a");
    rows.Truncate(0);
    rows.Append("b", 0);
    rows.Append("", 0);
    rows.Append("c", 0);
    rows.Truncate(1);
    rows.Append("d", 0);
    BOOST_TEST(rows.primary_key(0) == "b");
    BOOST_TEST(rows.primary_key(1) == "d");
    rows.Truncate(0);
  }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace cairn
