#pragma once

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <limits>
#include <numeric>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "cairn/device/aggregates.h"
#include "gpu/runtime/stream.h"
#include "test/gpu/device_array.h"
#include "test/require_ok.h"
#include "test/test_random.h"

// Compares aggregates of ranges on a device with those of a loop over the entries.

namespace cairn::gpu {

__extension__ typedef __int128 Wide;  // NOLINT(modernize-use-using)

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();
inline constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

// A column of each type, as long as each other.
struct Columns {
  std::vector<uint32_t> u32;
  std::vector<int32_t> i32;
  std::vector<uint64_t> u64;
  std::vector<int64_t> i64, few;
  std::vector<float> f32;
  std::vector<double> f64;
  std::vector<double> odd;  // NaN, infinities, zeros of both signs

  explicit Columns(size_t size) {
    auto random = TestRandom(size);
    const double strange[] = {kNaN, -kNaN, kInfinity, -kInfinity, -0.0, 0.0, -0.0, 1.5, -2.25};
    for (size_t i = 0; i < size; ++i) {
      u32.push_back(static_cast<uint32_t>(random()));
      i32.push_back(static_cast<int32_t>(random()));
      u64.push_back(random() >> random() % 8);
      i64.push_back(static_cast<int64_t>(random()) >> random() % 20);
      few.push_back(static_cast<int64_t>(random() % 1000) - 500 + (int64_t{1} << 40));
      f32.push_back(static_cast<float>(static_cast<int>(random() % 2001) - 1000) / 8);
      f64.push_back(static_cast<double>(static_cast<int64_t>(random())) / 1e10);
      odd.push_back(random() % 50 == 0 ? strange[random() % std::size(strange)] : -0.0);
    }
  }
};

// They in device memory.
struct DeviceColumns {
  DeviceArray<uint32_t> u32;
  DeviceArray<int32_t> i32;
  DeviceArray<uint64_t> u64;
  DeviceArray<int64_t> i64, few;
  DeviceArray<float> f32;
  DeviceArray<double> f64, odd;

  explicit DeviceColumns(const Columns& c)
      : u32(c.u32),
        i32(c.i32),
        u64(c.u64),
        i64(c.i64),
        few(c.few),
        f32(c.f32),
        f64(c.f64),
        odd(c.odd) {}
  std::vector<DeviceColumn> views() const {
    const size_t size = u32.size();
    return {{u32.data(), size}, {i32.data(), size}, {u64.data(), size}, {i64.data(), size},
            {few.data(), size}, {f32.data(), size}, {f64.data(), size}, {odd.data(), size}};
  }
};

inline std::vector<DeviceAggregate> AllAggregates(size_t columns) {
  std::vector<DeviceAggregate> all = {DeviceAggregate::Count()};
  for (size_t i = 0; i < columns; ++i) {
    for (const auto& one : {DeviceAggregate::Sum(i), DeviceAggregate::Avg(i),
                            DeviceAggregate::Min(i), DeviceAggregate::Max(i)}) {
      all.push_back(one);
    }
  }
  return all;
}

// Entries in the order of keys: the key, and which value it has.
template <typename Key>
struct SortedEntries {
  std::vector<Key> keys;
  std::vector<size_t> values;

  SortedEntries(const std::vector<Key>& unsorted, const std::vector<RowId>& rows) {
    std::vector<size_t> order(unsorted.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [&](size_t a, size_t b) { return unsorted[a] < unsorted[b]; });
    for (const size_t i : order) {
      keys.push_back(unsorted[i]);
      values.push_back(rows.empty() ? i : rows[i]);
    }
  }
};

template <typename Key>
struct AggregateQueries {
  std::vector<Key> lower, upper;
  Bound lower_bound = Bound::kInclusive, upper_bound = Bound::kExclusive;

  size_t size() const { return lower.size(); }
  // The entries of range i.
  std::pair<size_t, size_t> Find(const std::vector<Key>& keys, size_t i) const {
    const auto place = [&](Bound bound, bool is_lower, Key key) {
      if (bound == Bound::kOpen) return is_lower ? keys.begin() : keys.end();
      return (bound == Bound::kInclusive) == is_lower
                 ? std::lower_bound(keys.begin(), keys.end(), key)
                 : std::upper_bound(keys.begin(), keys.end(), key);
    };
    const auto begin = place(lower_bound, true, lower[i]),
               end = place(upper_bound, false, upper[i]);
    return {begin - keys.begin(), std::max(begin, end) - keys.begin()};
  }
};

// Bounds at keys, next to keys, at both ends, and anywhere; long and short ranges, some crossed.
template <typename Key>
AggregateQueries<Key> MakeQueries(const std::vector<Key>& keys, size_t size, uint64_t seed) {
  auto random = TestRandom(seed);
  std::vector<Key> sorted = keys;
  std::sort(sorted.begin(), sorted.end());
  const auto key = [&](size_t at) -> Key {
    if (sorted.empty() || random() % 16 == 0) return static_cast<Key>(random());
    if (random() % 32 == 0) return random() % 2 == 0 ? Key{0} : static_cast<Key>(~Key{0});
    return static_cast<Key>(sorted[std::min(at, sorted.size() - 1)] + random() % 3 - 1);
  };
  AggregateQueries<Key> queries;
  for (size_t i = 0; i < size; ++i) {
    const size_t at = sorted.empty() ? 0 : random() % sorted.size();
    const size_t length = random() % (size_t{2} << random() % 17);
    queries.lower.push_back(key(at));
    queries.upper.push_back(key(at + length));
    if (i % 40 == 0) std::swap(queries.lower.back(), queries.upper.back());
  }
  return queries;
}

// Floats in the order of keys: -0 before 0, and NaNs, all equal, after all others.
template <typename T>
bool IsLess(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    if (std::isnan(a) || std::isnan(b)) return !std::isnan(a) && std::isnan(b);
    if (a == b) return std::signbit(a) && !std::signbit(b);
  }
  return a < b;
}
template <typename T>
bool IsSame(T a, T b) {
  return !IsLess(a, b) && !IsLess(b, a);
}

template <typename T>
using SumOf = std::conditional_t<std::is_floating_point_v<T>, double,
                                 std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>>;

// The expected aggregates of a range's values.
template <typename T>
struct Expected {
  T least{}, greatest{};
  bool fits = true;
  SumOf<T> sum{};
  double mean = 0, tolerance = 0;

  Expected(const std::vector<T>& column, const std::vector<size_t>& values, size_t begin,
           size_t end) {
    if (begin == end) return;
    least = greatest = column[values[begin]];
    Wide wide = 0;
    long double all = 0, size = 0;
    for (size_t i = begin; i < end; ++i) {
      const T value = column[values[i]];
      if (IsLess(value, least)) least = value;
      if (IsLess(greatest, value)) greatest = value;
      if constexpr (std::is_floating_point_v<T>) {
        all += value;
        size += std::abs(value);
      } else {
        wide += value;
      }
    }
    const auto count = static_cast<double>(end - begin);
    if constexpr (std::is_floating_point_v<T>) {
      sum = static_cast<double>(all);
      mean = sum / count;
      tolerance = static_cast<double>(size) * 1e-12;
    } else {
      sum = static_cast<SumOf<T>>(wide);
      fits = wide == Wide{sum};
      mean = static_cast<double>(wide) / count;
    }
  }
};

inline bool IsNear(double a, double b, double tolerance) {
  if (std::isnan(a) || std::isinf(a)) return std::isnan(a) ? std::isnan(b) : a == b;
  return std::abs(a - b) <= tolerance && !(b == 0 && std::signbit(b));
}

template <typename Key>
class Checker {
 public:
  Checker(const DeviceAggregates& aggregates, const SortedEntries<Key>& entries,
          const AggregateQueries<Key>& queries)
      : aggregates_(aggregates),
        entries_(entries),
        queries_(queries),
        lower_(queries.lower),
        upper_(queries.upper) {
    for (size_t i = 0; i < queries.size(); ++i) found_.push_back(queries.Find(entries.keys, i));
  }

  void CheckCounts() const {
    const auto counts = Ask<uint64_t>(DeviceAggregate::Count());
    const auto distinct = Ask<uint64_t>(DeviceAggregate::CountDistinct());
    for (size_t i = 0; i < queries_.size(); ++i) {
      const auto [begin, end] = found_[i];
      size_t keys = begin < end ? 1 : 0;
      for (size_t j = begin + 1; j < end; ++j) {
        keys += entries_.keys[j] != entries_.keys[j - 1] ? 1 : 0;
      }
      Require(counts.values[i] == end - begin && counts.results[i] == DeviceResult::kValue, i,
              "count");
      Require(distinct.values[i] == keys && distinct.counts[i] == end - begin, i, "distinct");
    }
  }

  template <typename T>
  void CheckColumn(const std::vector<T>& column, size_t number) const {
    const auto sums = Ask<SumOf<T>>(DeviceAggregate::Sum(number));
    const auto means = Ask<double>(DeviceAggregate::Avg(number));
    const auto least = Ask<T>(DeviceAggregate::Min(number));
    const auto greatest = Ask<T>(DeviceAggregate::Max(number));
    for (size_t i = 0; i < queries_.size(); ++i) {
      const auto [begin, end] = found_[i];
      const Expected<T> expected(column, entries_.values, begin, end);
      const auto result = begin == end ? DeviceResult::kNull : DeviceResult::kValue;
      const std::string of = " of column " + std::to_string(number);
      for (const auto* counts : {&sums.counts, &means.counts, &least.counts, &greatest.counts}) {
        Require((*counts)[i] == end - begin, i, "count" + of);
      }
      for (const auto* results : {&means.results, &least.results, &greatest.results}) {
        Require((*results)[i] == result, i, "result" + of);
      }
      Require(sums.results[i] == (expected.fits ? result : DeviceResult::kOutOfRange), i,
              "result of the sum" + of);
      Require(IsSame(least.values[i], expected.least), i, "min" + of);
      Require(IsSame(greatest.values[i], expected.greatest), i, "max" + of);
      if constexpr (std::is_floating_point_v<T>) {
        Require(IsNear(expected.sum, sums.values[i], expected.tolerance), i, "sum" + of);
        Require(IsNear(expected.mean, means.values[i], expected.tolerance), i, "avg" + of);
      } else {
        Require(sums.values[i] == (expected.fits ? expected.sum : 0), i, "sum" + of);
        Require(means.values[i] == expected.mean, i, "avg" + of);
      }
    }
  }

  void CheckAll(const Columns& columns) const {
    CheckCounts();
    CheckColumn(columns.u32, 0);
    CheckColumn(columns.i32, 1);
    CheckColumn(columns.u64, 2);
    CheckColumn(columns.i64, 3);
    CheckColumn(columns.few, 4);
    CheckColumn(columns.f32, 5);
    CheckColumn(columns.f64, 6);
    CheckColumn(columns.odd, 7);
  }

 private:
  template <typename T>
  struct Answers {
    std::vector<T> values;
    std::vector<uint64_t> counts;
    std::vector<DeviceResult> results;
  };

  template <typename T>
  Answers<T> Ask(const DeviceAggregate& aggregate) const {
    const Stream stream = RequireOk(Stream::Create());
    const size_t size = queries_.size();
    const DeviceArray<T> values(size);
    const DeviceArray<uint64_t> counts(size);
    const DeviceArray<DeviceResult> results(size);
    const DeviceRanges ranges = {DeviceKeys(lower_.data(), size), DeviceKeys(upper_.data(), size),
                                 queries_.lower_bound, queries_.upper_bound};
    RequireOk(aggregates_.Execute(ranges, aggregate, {counts.data(), values.data(), results.data()},
                                  stream.get()));
    return {values.ToHost(), counts.ToHost(), results.ToHost()};
  }
  void Require(bool right, size_t i, const std::string& what) const {
    if (right) return;  // there are many
    BOOST_REQUIRE_MESSAGE(right, what << " of range " << i << ", of entries " << found_[i].first
                                      << " to " << found_[i].second);
  }

  const DeviceAggregates& aggregates_;
  const SortedEntries<Key>& entries_;
  const AggregateQueries<Key>& queries_;
  DeviceArray<Key> lower_, upper_;
  std::vector<std::pair<size_t, size_t>> found_;
};

}  // namespace cairn::gpu
