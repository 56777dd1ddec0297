#include "engine/log/settled_changes.h"

#include <boost/test/unit_test.hpp>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "engine/log/row_changes.h"
#include "test/test_random.h"

namespace cairn {
BOOST_AUTO_TEST_SUITE(settled_changes_test)
namespace {

using Rows = std::map<std::string, std::string>;

void Apply(const RowChange& change, Rows* rows) {
  const std::string key(change.key);
  switch (change.kind) {
    case RowChangeKind::kPut:
    case RowChangeKind::kPutEntity:
      (*rows)[key] = std::string(change.value);
      break;
    case RowChangeKind::kDelete:
      rows->erase(key);
      break;
    case RowChangeKind::kLookUp:
      (*rows)[key] = "looked up";
      break;
    case RowChangeKind::kDeleteRange:
      rows->erase(rows->lower_bound(key), rows->lower_bound(std::string(change.value)));
      break;
  }
}

Rows InOrder(Rows rows, const RowChanges& changes) {
  for (size_t i = 0; i < changes.size(); ++i) Apply(changes[i], &rows);
  return rows;
}

Rows Settled(Rows rows, const SettledChanges& settled) {
  for (const SettledChanges::Range& range : settled.deleted_ranges()) {
    Apply({RowChangeKind::kDeleteRange, range.lower, range.upper}, &rows);
  }
  for (const RowChange& change : settled.rows()) Apply(change, &rows);
  return rows;
}

void CheckForm(const SettledChanges& settled) {
  const auto ranges = settled.deleted_ranges();
  for (size_t i = 0; i < ranges.size(); ++i) {
    if (ranges[i].lower >= ranges[i].upper) BOOST_ERROR("an empty range");
    if (i > 0 && ranges[i - 1].upper >= ranges[i].lower) BOOST_ERROR("ranges touch");
  }
  const auto rows = settled.rows();
  for (size_t i = 0; i < rows.size(); ++i) {
    if (i > 0 && rows[i - 1].key >= rows[i].key) BOOST_ERROR("rows do not ascend");
    if (rows[i].kind == RowChangeKind::kDeleteRange) BOOST_ERROR("a range among rows");
    for (const SettledChanges::Range& range : ranges) {
      const bool inside = range.lower <= rows[i].key && rows[i].key < range.upper;
      if (inside && rows[i].kind == RowChangeKind::kDelete) BOOST_ERROR("deleted twice");
    }
  }
}

BOOST_AUTO_TEST_CASE(nothing_comes_to_nothing) {
  RowChanges changes;
  SettledChanges settled;
  settled.Settle(changes);
  BOOST_TEST(settled.rows().empty());
  BOOST_TEST(settled.deleted_ranges().empty());
}

BOOST_AUTO_TEST_CASE(the_last_change_of_a_key_wins) {
  RowChanges changes;
  changes.Put("b", "1");
  changes.Put("a", "2");
  changes.Delete("b");
  changes.LookUp("a");
  changes.Put("a", "3");
  changes.Put("c", "4");
  changes.LookUp("c");
  SettledChanges settled;
  settled.Settle(changes);
  BOOST_REQUIRE_EQUAL(settled.rows().size(), 3u);
  BOOST_TEST((settled.rows()[0].key == "a" && settled.rows()[0].value == "3"));
  BOOST_TEST((settled.rows()[1].key == "b" && settled.rows()[1].kind == RowChangeKind::kDelete));
  BOOST_TEST((settled.rows()[2].key == "c" && settled.rows()[2].kind == RowChangeKind::kLookUp));
}

BOOST_AUTO_TEST_CASE(a_range_deletion_kills_what_was_before_it_and_nothing_after) {
  RowChanges changes;
  changes.Put("b", "before");
  changes.Put("d", "outside");
  changes.Delete("c");
  changes.DeleteRange("b", "d");
  changes.Put("bb", "after");
  SettledChanges settled;
  settled.Settle(changes);
  BOOST_REQUIRE_EQUAL(settled.deleted_ranges().size(), 1u);
  BOOST_TEST((settled.deleted_ranges()[0].lower == "b"));
  BOOST_TEST((settled.deleted_ranges()[0].upper == "d"));
  BOOST_REQUIRE_EQUAL(settled.rows().size(), 2u);
  BOOST_TEST((settled.rows()[0].key == "bb"));
  BOOST_TEST((settled.rows()[1].key == "d"));
}

BOOST_AUTO_TEST_CASE(ranges_that_touch_become_one_and_empty_ones_none) {
  RowChanges changes;
  changes.DeleteRange("m", "p");
  changes.DeleteRange("a", "c");
  changes.DeleteRange("x", "x");
  changes.DeleteRange("z", "y");
  changes.DeleteRange("c", "e");
  changes.DeleteRange("n", "o");
  BOOST_TEST(changes.size() == 4u);
  SettledChanges settled;
  settled.Settle(changes);
  BOOST_REQUIRE_EQUAL(settled.deleted_ranges().size(), 2u);
  BOOST_TEST((settled.deleted_ranges()[0].upper == "e"));
  BOOST_TEST((settled.deleted_ranges()[1].upper == "p"));
}

BOOST_AUTO_TEST_CASE(settled_changes_have_the_effect_of_all_of_them_in_order) {
  auto random = TestRandom();
  RowChanges changes;
  SettledChanges settled;
  for (int round = 0; round < 400; ++round) {
    // Few keys with common prefixes and zeros, many keys, and keys of equal length.
    const int form = round % 3;
    const auto key = [&] {
      if (form == 0) return std::string(random() % 4, '\0') + std::string(random() % 3, 'a');
      const std::string digits = std::to_string(random() % (form == 1 ? 3000 : 40));
      return "the same prefix of all keys " + std::string(5 - digits.size() % 5, '0') + digits;
    };
    Rows rows;
    for (int i = 0; i < 50; ++i) rows[key()] = "base";
    changes.Clear();
    const bool many_ranges = round % 2 == 0;
    const size_t count = random() % (form == 1 ? 2000 : 200);
    for (size_t i = 0; i < count; ++i) {
      const uint64_t kind = random() % 100;
      if (kind < (many_ranges ? 20u : 1u)) {
        changes.DeleteRange(key(), key());
      } else if (kind < 50) {
        changes.Put(key(), std::to_string(i));
      } else if (kind < 80) {
        changes.Delete(key());
      } else {
        changes.LookUp(key());
      }
    }
    settled.Settle(changes);
    CheckForm(settled);
    Rows expected = InOrder(rows, changes);
    // A looked-up row counts as looked up only if that was its last change.
    if (Settled(rows, settled) != expected) BOOST_ERROR("round " << round << " differs");
  }
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
