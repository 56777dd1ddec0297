#include "gpu/host/bound_keys.h"

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <limits>
#include <vector>

#include "index/query/sorted_array.h"
#include "test/require_ok.h"

// Needs no device.
namespace cairn::gpu {
BOOST_AUTO_TEST_SUITE(bound_keys_test)
namespace {

// Every pair of bounds with every pair of keys, at the ends of the key range and next to entries,
// made in parts like the chunks of a batch. Compares with the answers of a SortedArray.
template <typename Key>
void CheckAllBounds(const std::vector<Key>& entries) {
  constexpr Key kGreatest = std::numeric_limits<Key>::max();
  std::vector<RowId> rows(entries.size());
  for (size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<RowId>(i);
  const SortedArray index(*SortedRun::FromSorted(entries, rows));
  const std::vector<Key> some = {0, 1, 2, 5, 6, kGreatest - 1, kGreatest};
  const Bound bounds[] = {Bound::kInclusive, Bound::kExclusive, Bound::kOpen};
  std::vector<Key> lower, upper;
  std::vector<Bound> lower_bounds, upper_bounds;
  for (Key from : some) {
    for (Key to : some) {
      for (Bound lower_bound : bounds) {
        for (Bound upper_bound : bounds) {
          lower.push_back(from);
          upper.push_back(to);
          lower_bounds.push_back(lower_bound);
          upper_bounds.push_back(upper_bound);
        }
      }
    }
  }
  RangeBatch ranges = RangeBatch::HalfOpen(lower, upper);
  ranges.lower_bounds = lower_bounds;
  ranges.upper_bounds = upper_bounds;
  const size_t size = ranges.size();
  std::vector<Position> expected_begin(size), expected_end(size);
  RequireOk(index.Execute(
      Batch::Positions(ranges, absl::MakeSpan(expected_begin), absl::MakeSpan(expected_end))));

  const BoundKeys<Key> keys(ranges);
  for (size_t part : {size_t{1}, size_t{100}, size - 1, size, size + 1, 2 * size}) {
    std::vector<Key> searched(2 * size);
    for (size_t first = 0; first < 2 * size; first += part) {
      keys.Fill(first, std::min(part, 2 * size - first), searched.data() + first);
    }
    std::vector<Position> found(2 * size);
    RequireOk(index.Execute(Batch::LowerBound(searched, absl::MakeSpan(found))));
    const absl::Span<Position> begin = absl::MakeSpan(found).first(size);
    const absl::Span<Position> end = absl::MakeSpan(found).subspan(size);
    keys.Finish(found.data(), entries.size(), begin, end);  // in place
    BOOST_TEST(begin == absl::MakeConstSpan(expected_begin));
    BOOST_TEST(end == absl::MakeConstSpan(expected_end));
  }
}

template <typename Key>
void CheckEntries() {
  constexpr Key kGreatest = std::numeric_limits<Key>::max();
  CheckAllBounds<Key>({});
  CheckAllBounds<Key>({5});
  CheckAllBounds<Key>({0, 0, 1, 5, 5, 5, 7, kGreatest - 1, kGreatest, kGreatest});
}

BOOST_AUTO_TEST_CASE(lower_bounds_give_the_positions_of_every_kind_of_range) {
  CheckEntries<uint32_t>();
  CheckEntries<uint64_t>();
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn::gpu
