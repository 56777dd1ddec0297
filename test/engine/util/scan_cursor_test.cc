#include "engine/util/scan_cursor.h"

#include <boost/test/unit_test.hpp>
#include <string>
#include <vector>

#include "test/require_ok.h"

namespace cairn {
BOOST_AUTO_TEST_SUITE(scan_cursor_test)
namespace {

using namespace std::string_view_literals;

BOOST_AUTO_TEST_CASE(comes_back_as_it_was_encoded) {
  const std::string long_key(70000, 'k');
  const std::vector<ScanCursor> cursors = {
      {PhysicalType::kU32, 0, "", ""},
      {PhysicalType::kU32, UINT32_MAX, "", "pk"},
      {PhysicalType::kU64, UINT64_MAX - 1, "", "\0\xff"sv},
      {PhysicalType::kBytes, 0, "", ""},
      {PhysicalType::kBytes, 0, "a\0b"sv, "pk"},
      {PhysicalType::kBytes, 0, long_key, ""},
  };
  for (const ScanCursor& cursor : cursors) {
    const std::string text = cursor.Encode();
    const auto back = RequireOk(ScanCursor::Decode(text, cursor.kind));
    BOOST_TEST(back.number == cursor.number);
    BOOST_CHECK(back.bytes == cursor.bytes);
    BOOST_CHECK(back.primary_key == cursor.primary_key);
  }
}

BOOST_AUTO_TEST_CASE(refuses_what_is_no_cursor) {
  const std::string cursor = ScanCursor{PhysicalType::kU64, 7, "", ""}.Encode();
  BOOST_CHECK(absl::IsInvalidArgument(ScanCursor::Decode(cursor, PhysicalType::kU32).status()));
  for (size_t size = 0; size < cursor.size(); ++size) {
    BOOST_CHECK(!ScanCursor::Decode(cursor.substr(0, size), PhysicalType::kU64).ok());
  }
  BOOST_CHECK(!ScanCursor::Decode("\x03\xff\xff\xff\xffkey"sv, PhysicalType::kBytes).ok());
  BOOST_CHECK(!ScanCursor::Decode("\x01\x05\0\0\0abcde"sv, PhysicalType::kU32).ok());
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
