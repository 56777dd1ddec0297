#include "engine/delta/update_rows.h"

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "test/engine/delta/delta_model.h"
#include "test/require_ok.h"
#include "test/test_random.h"

namespace cairn {
BOOST_AUTO_TEST_SUITE(update_rows_test)
namespace {

std::string Name(uint64_t i) {
  return "row" + std::to_string(1000 + i);
}

// A base of the even names below 200, and later rows with odd names, in any order.
struct Rows {
  Rows() {
    std::vector<std::string> names;
    for (uint64_t i = 0; i < 200; i += 2) names.push_back(Name(i));
    finder = RequireOk(RowFinder::Build(MakeRowTable(names), 1));
  }
  void Add(uint64_t i) { rows.Append(Name(i), std::min(kBaseRows, static_cast<RowId>(i / 2 + 1))); }
  // The rows that are deleted by a batch with a deleted range and these rows.
  std::vector<std::string> Delete(const std::string& from, const std::string& to,
                                  const std::vector<RowId>& updated = {}) {
    RowUpdates updates(PhysicalType::kU64);
    updates.DeleteRange(from, to);
    std::vector<UpdateRow> update_rows;
    for (const RowId row : updated) update_rows.push_back({"", 0, 0, row});
    std::vector<std::string> names;
    std::vector<Position> died;
    RequireOk(ForEachDeletedRow(updates, *finder, dead, &order, update_rows, [&](RowId row) {
      if (row < kBaseRows) died.push_back(row);
      names.push_back(row < kBaseRows ? Name(2 * row) : std::string(rows.primary_key(row)));
    }));
    dead = dead.With(died, {});
    std::sort(names.begin(), names.end());
    return names;
  }

  static constexpr RowId kBaseRows = 100;
  std::shared_ptr<const RowFinder> finder;
  DeltaRows rows{kBaseRows};
  NewRowOrder order{&rows};
  PositionSet dead{kBaseRows};
};

using Names = std::vector<std::string>;

}  // namespace

BOOST_AUTO_TEST_CASE(a_deleted_range_has_the_rows_of_the_base_and_later_ones) {
  Rows rows;
  for (const uint64_t i : {7, 3, 5, 9}) rows.Add(i);
  BOOST_TEST((rows.Delete(Name(3), Name(8)) == Names{Name(3), Name(4), Name(5), Name(6), Name(7)}));
  BOOST_TEST((rows.Delete("", Name(4)) == Names{Name(0), Name(2)}));
  BOOST_TEST((rows.Delete("s", "t") == Names{}));
  BOOST_TEST((rows.Delete(Name(9), Name(9)) == Names{}));
}

BOOST_AUTO_TEST_CASE(rows_that_are_dead_are_not_walked_again) {
  Rows rows;
  for (uint64_t i = 1; i < 200; i += 2) rows.Add(i);
  BOOST_TEST(rows.Delete(Name(0), Name(100)).size() == 100u);
  BOOST_TEST(rows.Delete(Name(0), Name(102)).size() == 2u);
  rows.Add(201);
  BOOST_TEST(rows.Delete(Name(0), Name(50)).empty());
}

BOOST_AUTO_TEST_CASE(rows_that_the_batch_updates_stay_and_are_found_later) {
  Rows rows;
  for (const uint64_t i : {1, 3, 5}) rows.Add(i);
  BOOST_TEST((rows.Delete(Name(0), Name(4), {1, 101}) == Names{Name(0), Name(1)}));
  BOOST_TEST((rows.Delete(Name(0), Name(4)) == Names{Name(2), Name(3)}));
}

BOOST_AUTO_TEST_CASE(a_row_that_comes_back_is_found_again) {
  Rows rows;
  rows.Add(1);
  BOOST_TEST((rows.Delete(Name(1), Name(2)) == Names{Name(1)}));
  BOOST_TEST(rows.Delete(Name(1), Name(2)).empty());
  rows.order.Add(100);
  BOOST_TEST((rows.Delete(Name(1), Name(2)) == Names{Name(1)}));
  rows.order.Clear();
  BOOST_TEST((rows.Delete(Name(1), Name(2)) == Names{Name(1)}));
}

BOOST_AUTO_TEST_CASE(ranges_agree_with_a_model) {
  auto random = TestRandom();
  Rows rows;
  std::set<std::string> there;
  for (uint64_t i = 0; i < 200; i += 2) there.insert(Name(i));
  std::vector<uint64_t> odd;
  for (uint64_t i = 1; i < 200; i += 2) odd.push_back(i);
  std::shuffle(odd.begin(), odd.end(), random);
  for (const uint64_t i : odd) {
    rows.Add(i);
    there.insert(Name(i));
    if (random() % 3 != 0) continue;
    const std::string from = Name(random() % 200), to = Name(random() % 200);
    Names expected;
    if (from < to) expected.assign(there.lower_bound(from), there.lower_bound(to));
    BOOST_TEST((rows.Delete(from, to) == expected));
    for (const std::string& name : expected) there.erase(name);
  }
}

BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
