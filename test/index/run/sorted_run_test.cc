#include "cairn/sorted_run.h"

#include <boost/test/unit_test.hpp>
#include <string>
#include <vector>

#include "test/require_ok.h"

namespace cairn {
BOOST_AUTO_TEST_SUITE(sorted_run_test)
namespace {

BOOST_AUTO_TEST_CASE(holds_the_entries_it_was_given) {
  const std::vector<uint32_t> keys = {1, 1, 7, UINT32_MAX};
  const std::vector<RowId> row_ids = {3, 9, 0, 1};
  auto run = RequireOk(SortedRun::FromSorted(absl::MakeConstSpan(keys), row_ids));
  BOOST_TEST(run.size() == 4u);
  BOOST_TEST((run.kind() == PhysicalType::kU32));
  BOOST_CHECK(run.u32() == absl::MakeConstSpan(keys));
  BOOST_CHECK(run.row_ids() == absl::MakeConstSpan(row_ids));
  BOOST_TEST(reinterpret_cast<uintptr_t>(run.u32().data()) % 64 == 0u);
  BOOST_TEST(run.memory_bytes() == 32u);
}

BOOST_AUTO_TEST_CASE(holds_strings_with_zero_bytes_and_empty_ones) {
  using namespace std::string_view_literals;
  const std::vector<std::string_view> keys = {""sv, "\0"sv, "a"sv, "a\0"sv, "a\0b"sv, "b"sv};
  const std::vector<RowId> row_ids = {5, 4, 3, 2, 1, 0};
  auto run = RequireOk(SortedRun::FromSorted(absl::MakeConstSpan(keys), row_ids));
  for (size_t i = 0; i < keys.size(); ++i) BOOST_CHECK(run.bytes()[i] == keys[i]);
}

BOOST_AUTO_TEST_CASE(an_empty_run_is_a_run) {
  auto run =
      RequireOk(SortedRun::FromSorted(absl::Span<const uint64_t>(), absl::Span<const RowId>()));
  BOOST_TEST(run.empty());
  BOOST_CHECK(run.CheckOrder().ok());
  BOOST_TEST(SortedRun().empty());
}

BOOST_AUTO_TEST_CASE(refuses_entries_out_of_order_and_names_the_position) {
  const std::vector<RowId> row_ids = {0, 1, 2};
  const auto descending = SortedRun::FromSorted(std::vector<uint32_t>{1, 3, 2}, row_ids);
  BOOST_CHECK(absl::IsInvalidArgument(descending.status()));
  BOOST_CHECK(descending.status().message().find("1 and 2") != std::string::npos);
  const auto twice = SortedRun::FromSorted(std::vector<uint64_t>{1, 2, 2}, {0, 1, 1});
  BOOST_CHECK(absl::IsInvalidArgument(twice.status()));
  const auto ragged = SortedRun::FromSorted(std::vector<uint64_t>{1, 2}, row_ids);
  BOOST_CHECK(absl::IsInvalidArgument(ragged.status()));
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
