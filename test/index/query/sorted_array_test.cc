#include "index/query/sorted_array.h"

#include <boost/test/unit_test.hpp>
#include <memory>

#include "test/ordered_index_oracle.h"
#include "test/sanitizer.h"

namespace cairn {
BOOST_AUTO_TEST_SUITE(sorted_array_test, *StartsNoThread())
namespace {

std::unique_ptr<OrderedIndex> Make(SortedRun run) {
  return std::make_unique<SortedArray>(std::move(run));
}

BOOST_AUTO_TEST_CASE(answers_like_the_oracle_for_32_bit_keys) {
  CheckCatalogue<uint32_t>(Make);
}

BOOST_AUTO_TEST_CASE(answers_like_the_oracle_for_64_bit_keys) {
  CheckCatalogue<uint64_t>(Make);
}

BOOST_AUTO_TEST_CASE(answers_like_the_oracle_for_strings) {
  CheckCatalogue<std::string>(Make);
}

BOOST_AUTO_TEST_CASE(takes_no_memory_of_its_own) {
  BOOST_TEST(SortedArray(SortedRun()).memory_bytes() == 0u);
  BOOST_TEST(SortedArray(SortedRun()).description() == "cpu:sorted_array");
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
