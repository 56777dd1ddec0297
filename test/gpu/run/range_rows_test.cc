#include "gpu/run/range_rows.h"

#include <boost/test/unit_test.hpp>
#include <vector>

#include "test/gpu/device_array.h"
#include "test/gpu/needs_device.h"
#include "test/gpu/run/position_ranges.h"
#include "test/require_ok.h"
#include "test/test_random.h"

namespace cairn::gpu {
BOOST_FIXTURE_TEST_SUITE(range_rows_test, NeedsDevice)
namespace {

// Copies the ranges' rows of a column of `entries` with every stride and order, to outputs that
// start at every place in a vector, and compares.
void CheckRows(const PositionRanges& ranges, size_t entries, uint64_t salt) {
  auto random = TestRandom(salt);
  std::vector<RowId> words(entries * 3);
  for (RowId& word : words) word = static_cast<RowId>(random());
  const DeviceArray<RowId> column(words);
  const DeviceArray<Position> begin(ranges.begin);
  const DeviceArray<uint64_t> offsets(ranges.offsets);
  const uint64_t rows = ranges.offsets.back();
  for (uint32_t stride : {1, 2, 3}) {
    for (Order order : {Order::kAscending, Order::kDescending}) {
      const uint32_t shift = static_cast<uint32_t>(random() % 4);
      // The column of a stride of one starts off the vectors too.
      const uint32_t first = stride == 1 ? 2 * static_cast<uint32_t>(entries) : stride - 1;
      const DeviceArray<RowId> out(std::vector<RowId>(rows + shift, 0xABCDEF01));
      RequireOk(CopyRowsFromColumn({column.data() + first, stride}, begin.data(), offsets.data(),
                                   ranges.size(), rows, order, out.data() + shift, nullptr));
      const std::vector<RowId> found = out.ToHost();
      for (uint32_t i = 0; i < shift; ++i) BOOST_REQUIRE(found[i] == 0xABCDEF01);
      size_t wrong = 0;
      for (size_t r = 0; r < ranges.size(); ++r) {
        const uint64_t count = ranges.offsets[r + 1] - ranges.offsets[r];
        for (uint64_t i = 0; i < count; ++i) {
          const uint64_t position =
              ranges.begin[r] + (order == Order::kAscending ? i : count - 1 - i);
          wrong += found[shift + ranges.offsets[r] + i] != words[first + position * stride];
        }
      }
      BOOST_TEST(wrong == 0u, wrong << " wrong rows of " << rows << ", stride " << stride
                                    << (order == Order::kAscending ? "" : ", descending"));
    }
  }
}

BOOST_AUTO_TEST_CASE(one_range_of_every_length_around_the_sizes_of_units) {
  for (uint64_t rows : {1,   2,   3,   4,   5,    15,   31,   32,   33,   127,   511,   512,
                        513, 517, 518, 519, 1023, 1029, 2047, 4096, 4099, 16384, 16385, 40001}) {
    for (uint64_t from : {0, 1, 2, 3, 7}) {
      PositionRanges ranges;
      ranges.Add(from, rows);
      CheckRows(ranges, from + rows, rows * 8 + from);  // up to the column's last entry
    }
  }
}

BOOST_AUTO_TEST_CASE(ranges_of_one_length) {
  for (uint64_t length : {1, 3, 31, 64, 65, 500, 1500, 16384}) {
    CheckRows(RandomRanges(200000 / length + 2, 100003, length, [&](auto&) { return length; }),
              100003, length);
  }
}

BOOST_AUTO_TEST_CASE(ranges_of_all_lengths_with_empty_ones_between) {
  for (uint64_t most : {2, 5, 40, 700, 9000}) {
    CheckRows(RandomRanges(3000, 50021, most,
                           [&](auto& random) { return random() % 3 == 0 ? random() % most : 0; }),
              50021, most);
    CheckRows(RandomRanges(3000, 50021, most,
                           [&](auto& random) { return random() % (random() % most + 1); }),
              50021, most + 1);
  }
}

BOOST_AUTO_TEST_CASE(one_range_with_most_rows_among_many) {
  for (size_t where : {size_t{0}, size_t{2500}, size_t{4999}}) {
    PositionRanges ranges;
    for (size_t i = 0; i < 5000; ++i) ranges.Add(i % 7, i == where ? 300000 : i % 3);
    CheckRows(ranges, 300010, where);
  }
}

BOOST_AUTO_TEST_CASE(millions_of_empty_ranges_and_a_few_rows) {
  PositionRanges ranges;
  for (size_t i = 0; i < 2000000; ++i) ranges.Add(i % 1000, i % 700001 == 5 ? 9 : 0);
  CheckRows(ranges, 1010, 1);
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn::gpu
