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

BOOST_AUTO_TEST_CASE(is_read_only_for_the_query_that_it_was_written_for) {
  const std::string_view lower[] = {"a", "b"}, upper[] = {"x", "y"};
  RangeBatch ranges = RangeBatch::HalfOpen(lower, upper);
  const auto tag = [&](size_t i) { return CursorTag::OfScan(1, ranges, i, Order::kAscending); };
  const ScanCursor cursor{PhysicalType::kBytes, 0, "key", "pk"};
  const std::vector<std::string> after = {cursor.EncodeFor(tag(0)), cursor.EncodeFor(tag(0))};
  ranges.after = after;
  const ScanCursor back = RequireOk(ScanCursor::DecodeFor(tag(0), ranges, 0));
  BOOST_TEST(back.bytes == "key");
  BOOST_TEST(back.primary_key == "pk");
  BOOST_TEST(after[0].size() == cursor.Encode().size() + 8);
  BOOST_CHECK(absl::IsInvalidArgument(ScanCursor::DecodeFor(tag(1), ranges, 1).status()));
  for (size_t size = 0; size <= CursorTag::kBytes; ++size) {
    const std::vector<std::string> cut = {after[0].substr(0, size), ""};
    ranges.after = cut;
    BOOST_CHECK(absl::IsInvalidArgument(ScanCursor::DecodeFor(tag(0), ranges, 0).status()));
  }
}

BOOST_AUTO_TEST_CASE(tags_depend_on_the_index_the_operation_and_the_range_as_it_is_used) {
  const uint32_t lower[] = {1, 2, 1}, upper[] = {9, 9, 8};
  RangeBatch ranges = RangeBatch::HalfOpen(lower, upper);
  const auto scan = [&](size_t i, uint64_t index = 5, Order order = Order::kAscending,
                        size_t sources = 0) {
    return CursorTag::OfScan(index, ranges, i, order, sources).checksum();
  };
  const uint64_t first = scan(0);
  BOOST_TEST(scan(0) == first);
  BOOST_TEST(scan(1) != first);
  BOOST_TEST(scan(2) != first);
  BOOST_TEST(scan(0, 6) != first);
  BOOST_TEST(scan(0, 5, Order::kDescending) != first);
  BOOST_TEST(scan(0, 5, Order::kAscending, 3) != first);
  BOOST_TEST(CursorTag::OfGroups(5, ranges, 0, 1).checksum() != first);
  BOOST_TEST(CursorTag::OfGroups(5, ranges, 0, 1).checksum() !=
             CursorTag::OfGroups(5, ranges, 0, 2).checksum());
  ranges.upper_bound = Bound::kInclusive;
  BOOST_TEST(scan(0) != first);
  ranges.upper_bound = Bound::kOpen;
  BOOST_TEST(scan(0) == scan(2));  // the upper key is ignored
  BOOST_TEST(scan(0) != scan(1));
  const Bound bounds[] = {Bound::kExclusive, Bound::kExclusive, Bound::kExclusive};
  ranges.upper_bounds = bounds;
  BOOST_TEST(scan(0) == first);
  const IndexSpec spec = RequireOk(IndexSpec::Parse("a = value:text"));
  IndexSpec other = spec;
  BOOST_TEST(CursorTag::OfIndex(other) == CursorTag::OfIndex(spec));
  other.name = "b";
  BOOST_TEST(CursorTag::OfIndex(other) != CursorTag::OfIndex(spec));
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
