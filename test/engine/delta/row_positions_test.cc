#include "engine/delta/row_positions.h"

#include <boost/test/unit_test.hpp>

#include "test/require_ok.h"
#include "test/sanitizer.h"
#include "test/test_random.h"

namespace cairn {
BOOST_AUTO_TEST_SUITE(row_positions_test)
namespace {

// A run of keys 0, 1, 2, … with these row ids.
SortedRun RunOf(const std::vector<RowId>& row_ids) {
  std::vector<uint32_t> keys(row_ids.size());
  for (size_t i = 0; i < keys.size(); ++i) keys[i] = static_cast<uint32_t>(i);
  return *SortedRun::FromSorted(absl::MakeConstSpan(keys), row_ids);
}

void Check(const std::vector<RowId>& row_ids, uint64_t rows) {
  std::vector<std::vector<Position>> expected(rows);
  for (size_t p = 0; p < row_ids.size(); ++p) {
    expected[row_ids[p]].push_back(static_cast<Position>(p));
  }
  for (int threads : {1, 4}) {
    const auto positions = RequireOk(RowPositions::Build(RunOf(row_ids), rows, threads));
    size_t wrong = 0;
    for (RowId row = 0; row < rows; ++row) {
      wrong += (*positions)[row] != absl::MakeConstSpan(expected[row]);
    }
    BOOST_TEST(wrong == 0u);
    BOOST_TEST(positions->memory_bytes() >= rows * sizeof(Position));
  }
}

}  // namespace

constexpr size_t kRows = FewerUnderTsan(3000000);

BOOST_AUTO_TEST_CASE(rows_with_one_entry_at_most) {
  auto random = TestRandom();
  std::vector<RowId> rows(kRows);
  for (size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<RowId>(i);
  std::shuffle(rows.begin(), rows.end(), random);
  Check(rows, rows.size());
  rows.resize(kRows / 2);
  Check(rows, kRows);
  Check({}, 0);
  Check({}, 10);
  Check({3}, 4);
}

BOOST_AUTO_TEST_CASE(rows_with_several_entries) {
  auto random = TestRandom();
  std::vector<RowId> rows(kRows / 6 * 5);
  for (RowId& row : rows) row = static_cast<RowId>(random() % (kRows / 3));
  Check(rows, kRows / 3);
  // All entries of one row; and one row too many, at the end.
  Check(std::vector<RowId>(1000, 7), 9);
  rows.resize(kRows);
  for (size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<RowId>(i);
  rows.back() = 0;
  Check(rows, kRows);
}

BOOST_AUTO_TEST_CASE(a_row_that_is_not_there_is_data_loss) {
  const auto positions = RowPositions::Build(RunOf({0, 1, 2, 5}), 5, 2);
  BOOST_TEST(absl::IsDataLoss(positions.status()));
  BOOST_TEST(std::string(positions.status().message()) ==
             "entry 3 of the base has row id 5, expected less than 5");
}

BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
