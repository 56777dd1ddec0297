#include <boost/test/unit_test.hpp>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cairn/column.h"
#include "cairn/query.h"

namespace cairn {
BOOST_AUTO_TEST_SUITE(column_layout_test)
namespace {

using namespace std::string_view_literals;

// The parts of Arrow's columns of bytes: one heap, and the offsets at which strings begin and end.

BOOST_AUTO_TEST_CASE(a_list_of_strings_is_a_heap_and_offsets) {
  StringList list;
  BOOST_TEST(list.heap().empty());
  BOOST_TEST(list.offsets() == (std::vector<uint64_t>{0}));
  list.Append("ab");
  list.Append("");
  list.Append("c", "\0d"sv);
  BOOST_TEST(list.heap() == "abc\0d"sv);
  BOOST_TEST(list.offsets() == (std::vector<uint64_t>{0, 2, 2, 5}));
  list.Clear();
  BOOST_TEST(list.heap().empty());
  BOOST_TEST(list.offsets() == (std::vector<uint64_t>{0}));
}

BOOST_AUTO_TEST_CASE(a_column_of_keys_has_the_layout_of_its_kind) {
  EncodedKeys keys(PhysicalType::kBytes);
  keys.AppendBytes("ab");
  keys.AppendBytes("\0"sv);
  BOOST_TEST(keys.heap() == "ab\0"sv);
  BOOST_TEST(keys.offsets() == (std::vector<uint64_t>{0, 2, 3}));
  keys.Clear(PhysicalType::kU32);
  keys.AppendU32(7);
  BOOST_TEST(keys.u32() == (std::vector<uint32_t>{7}));
  keys.Clear(PhysicalType::kU64);
  keys.AppendU64(uint64_t{1} << 40);
  BOOST_TEST(keys.u64() == (std::vector<uint64_t>{uint64_t{1} << 40}));
  BOOST_TEST(keys.heap().empty());
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
