#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <string>

#include "cairn/options.h"
#include "cairn/secondary_index.h"
#include "test/engine/serve/built_index.h"
#include "test/engine/test_database.h"
#include "test/require_ok.h"

namespace cairn {
BOOST_AUTO_TEST_SUITE(verify_test)
namespace {

BOOST_AUTO_TEST_CASE(verify_names_what_differs_from_the_database_both_ways) {
  TestDatabase db;
  for (int i = 0; i < 500; ++i) db.Put("row" + std::to_string(i), std::to_string(i % 10));
  const auto index = Build(db, "value.field('|',0):u8");
  Strings differences;
  RequireOk(index->VerifyAgainst(*db.Source(), 100, &differences));
  BOOST_TEST(differences.empty());
  db.Put("row7", "8");
  db.Put("unknown", "1");
  db.Delete("row9");
  RequireOk(index->VerifyAgainst(*db.Source(), 100, &differences));
  std::sort(differences.begin(), differences.end());
  BOOST_TEST(differences == (Strings{
                                "key 1 of row 'unknown' is not in the index",
                                "key 8 of row 'row7' is not in the index",
                                "the index has key 7 for row 'row7', the database does not",
                                "the index has key 9 for row 'row9', the database does not",
                            }),
             boost::test_tools::per_element());
  differences.clear();
  BOOST_TEST(absl::IsInvalidArgument(index->VerifyAgainst(*db.Source(), 0, &differences)));
  RequireOk(index->VerifyAgainst(*db.Source(), 2, &differences));
  BOOST_TEST(differences.size() == 2u);
}

BOOST_AUTO_TEST_CASE(verify_misses_no_row_that_has_no_key) {
  TestDatabase db;
  db.Put("row1", "1|a");
  db.Put("row2", "2");
  auto index = Build(db, "value.field('|',1):text");
  const auto check = [&](const char* when) {
    Strings differences;
    RequireOk(index->VerifyAgainst(*db.Source(), 9, &differences));
    for (const std::string& difference : differences) BOOST_ERROR(when << ": " << difference);
  };
  check("built");
  // The index only records that such a row was read; a merge drops it.
  db.Put("row3", "3");
  RequireOk(index->CatchUp(*db.Source()));
  check("caught up");
  const auto reopen = [&] { index = *SecondaryIndex::Open(db.Beside("index")); };
  reopen();
  check("opened again");
  db.Put("row4", "4|d");
  db.Delete("row1");
  RequireOk(index->CatchUp(*db.Source()));
  RequireOk(index->Compact());
  check("merged");
  reopen();
  check("merged and opened again");
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
