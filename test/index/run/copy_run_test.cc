#include "index/run/copy_run.h"

#include <boost/test/unit_test.hpp>
#include <numeric>
#include <string>
#include <vector>

#include "test/require_ok.h"

namespace cairn {
BOOST_AUTO_TEST_SUITE(copy_run_test)
namespace {

std::vector<RowId> Rows(size_t size) {
  std::vector<RowId> rows(size);
  std::iota(rows.begin(), rows.end(), 0);
  return rows;
}

// Enough for more than one task of a column.
constexpr size_t kMany = 2'500'000;

template <typename Key>
void CheckNumbers(size_t size) {
  std::vector<Key> keys(size);
  for (size_t i = 0; i < size; ++i) keys[i] = static_cast<Key>(i * 3);
  const std::vector<RowId> rows = Rows(size);
  const SortedRun run = SortedRun::Wrap(absl::MakeConstSpan(keys), rows, nullptr);
  const SortedRun copy = CopyRun(run, 3);
  BOOST_REQUIRE((copy.kind() == run.kind()));
  BOOST_TEST((copy.keys<Key>() == absl::MakeConstSpan(keys)));
  BOOST_TEST((copy.row_ids() == absl::MakeConstSpan(rows)));
  if (size > 0) BOOST_TEST((copy.keys<Key>().data() != keys.data()));
  BOOST_TEST(reinterpret_cast<uintptr_t>(copy.row_ids().data()) % 64 == 0u);
}

template <typename Offset>
void CheckStrings(const std::string& heap, const std::vector<Offset>& offsets) {
  const std::vector<RowId> rows = Rows(offsets.size() - 1);
  const BytesColumn column(heap.data(), absl::MakeConstSpan(offsets));
  const SortedRun copy = CopyRun(SortedRun::Wrap(column, rows, nullptr), 2);
  BOOST_TEST((copy.bytes().offsets32() != nullptr) == (sizeof(Offset) == 4));
  BOOST_REQUIRE_EQUAL(copy.bytes().size(), rows.size());
  for (size_t i = 0; i < rows.size(); ++i) BOOST_REQUIRE(copy.bytes()[i] == column[i]);
  BOOST_TEST((copy.row_ids() == absl::MakeConstSpan(rows)));
}

BOOST_AUTO_TEST_CASE(numbers_are_copied) {
  for (const size_t size : {size_t{0}, size_t{1}, size_t{17}, kMany}) {
    CheckNumbers<uint32_t>(size);
    CheckNumbers<uint64_t>(size);
  }
}

BOOST_AUTO_TEST_CASE(strings_are_copied_with_offsets_of_their_width) {
  std::string heap("a\0bcdef", 7);
  heap.append(5'000'000, 'z');
  CheckStrings<uint32_t>(heap, {0, 0, 2, 7, 5'000'007});
  CheckStrings<uint64_t>(heap, {0, 0, 2, 7, 5'000'007});
  CheckStrings<uint32_t>("", {0});
  CheckStrings<uint64_t>("", {0, 0});
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
