// RowSpan: row ids and the rows of results are the same rows, whole and in slices.
#include <boost/test/unit_test.hpp>
#include <vector>

#include "cairn/query.h"

namespace cairn {
BOOST_AUTO_TEST_SUITE(row_span_test)
namespace {

std::vector<GlobalRowId> Ids(RowSpan rows) {
  std::vector<GlobalRowId> ids;
  for (size_t i = 0; i < rows.size(); ++i) ids.push_back(rows[i]);
  return ids;
}

BOOST_AUTO_TEST_CASE(row_ids_and_results_are_the_same_rows) {
  FindResult result;
  result.row_ids = {5, 6, 7, 8};
  result.offsets = {0, 1, 1, 4};
  BOOST_TEST(Ids(result) == (std::vector<GlobalRowId>{5, 6, 7, 8}));
  result.shards = {2, 0, 2, 1};
  const std::vector<GlobalRowId> ids = {MakeGlobalRowId(2, 5), MakeGlobalRowId(0, 6),
                                        MakeGlobalRowId(2, 7), MakeGlobalRowId(1, 8)};
  BOOST_TEST(Ids(result) == ids);
  BOOST_TEST(Ids(ids) == ids);
  BOOST_TEST(result.row(3) == ids[3]);
  BOOST_TEST(Ids({ids[1], ids[3]}) == (std::vector<GlobalRowId>{ids[1], ids[3]}));
  for (size_t first = 0; first <= ids.size(); ++first) {
    for (size_t count = 0; first + count <= ids.size(); ++count) {
      const std::vector<GlobalRowId> some(ids.begin() + static_cast<ptrdiff_t>(first),
                                          ids.begin() + static_cast<ptrdiff_t>(first + count));
      BOOST_TEST(Ids(RowSpan(result).Slice(first, count)) == some);
      BOOST_TEST(Ids(RowSpan(ids).Slice(first, count)) == some);
    }
  }
  BOOST_TEST(Ids(result.rows(0)) == (std::vector<GlobalRowId>{ids[0]}));
  BOOST_TEST(result.rows(1).empty());
  BOOST_TEST(Ids(result.rows(2)) == (std::vector<GlobalRowId>{ids[1], ids[2], ids[3]}));
  BOOST_TEST(RowSpan().empty());
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
