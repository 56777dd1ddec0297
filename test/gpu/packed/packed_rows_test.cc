#include "gpu/packed/packed_rows.h"

#include <boost/test/unit_test.hpp>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "cairn/device.h"
#include "test/gpu/device_array.h"
#include "test/gpu/needs_device.h"
#include "test/gpu/run/position_ranges.h"
#include "test/require_ok.h"
#include "test/test_random.h"

// The rows of ranges, out of packed leaves: all shapes of batches, which have work divided evenly.
namespace cairn::gpu {
BOOST_FIXTURE_TEST_SUITE(packed_rows_test, NeedsDevice)
namespace {

constexpr RowId kUntouched = 0xABCDEF01;

// Distinct keys, dense and sparse in turns, with random rows.
struct Subject {
  std::unique_ptr<DeviceIndex> index;
  std::vector<RowId> rows;
};

template <typename Key>
Subject MakeSubject(const std::string& factory, size_t size) {
  auto random = TestRandom(size);
  std::vector<Key> keys(size);
  Key key = 5;
  for (size_t i = 0; i < size; ++i) {
    keys[i] = key;
    key += i / 1000 % 2 == 0 ? 1 : static_cast<Key>(random() % 5000 + 1);
  }
  Subject subject;
  subject.rows.resize(size);
  for (RowId& row : subject.rows) row = static_cast<RowId>(random() % kMaxEntries);
  subject.index = RequireOk(MakeDeviceIndex(factory, *SortedRun::FromSorted(keys, subject.rows)));
  return subject;
}

void CheckRows(const Subject& subject, const PositionRanges& ranges) {
  const DeviceArray<Position> begin(ranges.begin);
  const DeviceArray<uint64_t> offsets(ranges.offsets);
  const uint64_t rows = ranges.offsets.back();
  for (Order order : {Order::kAscending, Order::kDescending}) {
    const DeviceArray<RowId> out(std::vector<RowId>(rows + 1, kUntouched));
    RequireOk(subject.index->CopyRows(begin.data(), offsets.data(), ranges.size(), rows, order,
                                      out.data(), nullptr));
    const std::vector<RowId> found = out.ToHost();
    BOOST_TEST(found[rows] == kUntouched);
    size_t wrong = 0;
    for (size_t r = 0; r < ranges.size(); ++r) {
      const uint64_t count = ranges.offsets[r + 1] - ranges.offsets[r];
      for (uint64_t i = 0; i < count; ++i) {
        const uint64_t position =
            ranges.begin[r] + (order == Order::kAscending ? i : count - 1 - i);
        wrong += found[ranges.offsets[r] + i] != subject.rows[position];
      }
    }
    BOOST_TEST(wrong == 0u, wrong << " wrong rows of " << rows
                                  << (order == Order::kAscending ? "" : ", descending"));
  }
}

// Over 32 and 64-bit keys in leaves of every width.
template <typename Check>
void ForEachSubject(size_t size, Check check) {
  for (const char* directory : {"auto", "tree"}) {
    for (int bits : {16, 32, 48, 64}) {
      const std::string factory =
          std::string("gpu:packed,directory=") + directory + ",bits=" + std::to_string(bits);
      BOOST_TEST_CONTEXT(factory) {
        if (bits <= 32) check(MakeSubject<uint32_t>(factory, size));
        check(MakeSubject<uint64_t>(factory, size));
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(one_range_of_every_length_around_the_sizes_of_parts) {
  constexpr size_t kSize = 6000;
  ForEachSubject(kSize, [](const Subject& subject) {
    for (uint64_t rows : {1, 5, 31, 32, 33, 62, 63, 64, 65, 1023, 1024, 1025, 2049, 5990}) {
      PositionRanges ranges;
      ranges.Add(kSize - rows, rows);
      CheckRows(subject, ranges);
      ranges = PositionRanges();
      ranges.Add(3, rows);
      CheckRows(subject, ranges);
    }
  });
}

BOOST_AUTO_TEST_CASE(ranges_of_all_lengths_with_empty_ones_between) {
  constexpr size_t kSize = 20000;
  ForEachSubject(kSize, [](const Subject& subject) {
    for (uint64_t most : {2, 33, 40, 700, 9000}) {
      CheckRows(subject, RandomRanges(2000, kSize, most, [&](auto& random) {
                  return random() % 3 == 0 ? random() % most : 0;
                }));
      CheckRows(subject, RandomRanges(2000, kSize, most + 1, [&](auto& random) {
                  return random() % (random() % most + 1);
                }));
    }
  });
}

BOOST_AUTO_TEST_CASE(one_range_with_most_rows_among_many_short_and_empty_ones) {
  constexpr size_t kSize = 300000;
  for (const char* factory : {"gpu:packed", "gpu:packed,directory=tree"}) {
    const Subject subject = MakeSubject<uint32_t>(factory, kSize);
    for (size_t where : {size_t{0}, size_t{7000}, size_t{19999}}) {
      PositionRanges ranges;
      for (size_t i = 0; i < 20000; ++i) ranges.Add(i % 7, i == where ? kSize - 10 : i % 3);
      CheckRows(subject, ranges);
    }
  }
}

BOOST_AUTO_TEST_CASE(millions_of_empty_ranges_and_a_few_rows) {
  const Subject subject = MakeSubject<uint32_t>("gpu:packed", 2000);
  PositionRanges ranges;
  for (size_t i = 0; i < 3000000; ++i) {
    ranges.Add(i % 1000, i % 700001 == 5 ? 9 : i == 1234567 ? 900 : 0);
  }
  CheckRows(subject, ranges);
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn::gpu
