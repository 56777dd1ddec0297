#include "engine/delta/delta_tuples.h"

#include <atomic>
#include <boost/test/unit_test.hpp>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "test/sanitizer.h"
#include "test/test_random.h"

namespace cairn {
BOOST_AUTO_TEST_SUITE(delta_tuples_test)
namespace {

using Model = std::map<RowId, std::string>;

void Check(const DeltaTuples& tuples, uint32_t end, const Model& model, RowId rows) {
  size_t wrong = 0;
  for (RowId row = 0; row < rows; ++row) {
    const auto found = tuples.Find(row, end);
    const auto expected = model.find(row);
    wrong += found.has_value() != (expected != model.end());
    if (found.has_value() && expected != model.end()) wrong += *found != expected->second;
  }
  BOOST_TEST(wrong == 0u);
}

BOOST_AUTO_TEST_CASE(a_row_without_a_tuple_has_none) {
  DeltaTuples tuples;
  BOOST_CHECK(!tuples.Find(0).has_value());
  tuples.Append(7, "");
  BOOST_CHECK(tuples.Find(7) == "");
  BOOST_CHECK(!tuples.Find(7, 0).has_value());
  BOOST_CHECK(!tuples.Find(kMaxEntries - 1).has_value());
  tuples.Append(kMaxEntries - 1, "last");
  BOOST_CHECK(tuples.Find(kMaxEntries - 1) == "last");
}

BOOST_AUTO_TEST_CASE(every_version_keeps_what_it_had, *StartsNoThread()) {
  auto random = TestRandom();
  constexpr RowId kRows = 3000;
  DeltaTuples tuples;
  std::map<uint32_t, Model> versions;
  Model model;
  for (int version = 0; version < 20; ++version) {
    const Model before = model;
    const uint32_t end = tuples.end();
    for (size_t i = random() % 1000; i > 0; --i) {
      // Some rows repeat often.
      const auto row = static_cast<RowId>(random() % 3 == 0 ? random() % 3 : random() % kRows);
      const std::string tuple(random() % 5 == 0 ? random() % 100000 : random() % 20,
                              static_cast<char>(random()));
      tuples.Append(row, tuple);
      model[row] = tuple;
    }
    if (version % 4 == 3) {  // as after an error
      tuples.TakeBack(end);
      model = before;
    }
    versions[tuples.end()] = model;
  }
  for (const auto& [end, rows] : versions) Check(tuples, end, rows, kRows);
  BOOST_TEST(tuples.memory_bytes() > 0u);
}

BOOST_AUTO_TEST_CASE(what_was_taken_back_twice_is_gone) {
  DeltaTuples tuples;
  tuples.Append(1, "a");
  const uint32_t end = tuples.end();
  for (int i = 0; i < 3; ++i) {
    tuples.Append(1, "b");
    tuples.Append(2, "c");
    tuples.TakeBack(end);
    tuples.TakeBack(end);
    BOOST_CHECK(tuples.Find(1) == "a");
    BOOST_CHECK(!tuples.Find(2).has_value());
  }
  tuples.Append(2, "d");
  BOOST_CHECK(tuples.Find(2) == "d");
  BOOST_CHECK(!tuples.Find(2, end).has_value());
}

// Reads a version while the writer continues, truncates and grows.
BOOST_AUTO_TEST_CASE(readers_see_their_version_while_it_is_written_to) {
  constexpr RowId kRows = 500;
  const auto rounds = static_cast<int>(FewerSanitized(200, 4, 10));
  DeltaTuples tuples;
  for (RowId row = 0; row < kRows; row += 2) tuples.Append(row, std::to_string(row));
  const uint32_t end = tuples.end();
  std::atomic<bool> stop = false;
  std::atomic<size_t> wrong = 0;
  std::vector<std::thread> readers;
  for (int reader = 0; reader < 2; ++reader) {
    readers.emplace_back([&] {
      while (!stop) {
        for (RowId row = 0; row < kRows; ++row) {
          const auto found = tuples.Find(row, end);
          if (found.has_value() != (row % 2 == 0)) ++wrong;
          if (found.has_value() && *found != std::to_string(row)) ++wrong;
        }
      }
    });
  }
  for (int i = 0; i < rounds; ++i) {
    const uint32_t before = tuples.end();
    for (RowId row = 0; row < kRows + static_cast<RowId>(i) * 20; ++row) {
      tuples.Append(row, "x" + std::to_string(i));
    }
    if (i % 3 == 0) tuples.TakeBack(before);
  }
  stop = true;
  for (std::thread& reader : readers) reader.join();
  BOOST_TEST(wrong == 0u);
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
