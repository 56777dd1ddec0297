#pragma once

#include <atomic>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cairn/column.h"

// What SecondaryIndex::AggregateRanges and AggregateGroups and IndexGroup::GroupBy are asked,
// and what groups the first two answer.

namespace cairn {

enum class AggregateFunction : uint8_t {
  kCount,          // entries; of a column: those in which it is not null
  kCountDistinct,  // different keys; of rows, a column's different values
  kSum,
  kAvg,
  kMin,
  kMax,
};

// "count", "count_distinct", "sum", "avg", "min" or "max".
std::string_view AggregateFunctionName(AggregateFunction function);

// A function of the entries of a range or group. An entry is a key of a row: a row that has several
// keys in a range (an array's elements, say) counts once for each of them.
//
// Nulls are passed over, as in SQL: the sum, mean, least and greatest value of nothing, or of nulls
// alone, is null; counts are then 0.
//
//   function        column            type of the result
//   count           none, or any      u64
//   count_distinct  none; of rows any u64
//   sum             unsigned          u64
//                   signed            i64
//                   f32, f64          f64
//   avg             numbers           f64
//   min, max        any               the column's
//
// A sum of integers is exact, and an error where it does not fit its type in the end, whatever it
// is on the way. Floats are added in double, in an order that is none of the caller's: what is
// rounded may differ in the last digits from one version of an index to the next. A NaN makes a sum
// or mean NaN, as do infinities of both signs; a sum of zeros is 0, never -0. The least and the
// greatest are in the order of keys (KeyCodec): -0 before 0, and NaN, of which all are equal, after
// every number; text and bytes are compared as by memcmp.
struct Aggregate {
  AggregateFunction function = AggregateFunction::kCount;
  std::string column = {};  // an included one (IndexSpec::include); empty where there is none

  static Aggregate Count() { return {}; }
  static Aggregate Count(std::string column) {
    return {AggregateFunction::kCount, std::move(column)};
  }
  static Aggregate CountDistinct() { return {AggregateFunction::kCountDistinct}; }
  static Aggregate CountDistinct(std::string column) {  // of IndexGroup::GroupBy
    return {AggregateFunction::kCountDistinct, std::move(column)};
  }
  static Aggregate Sum(std::string column) { return {AggregateFunction::kSum, std::move(column)}; }
  static Aggregate Avg(std::string column) { return {AggregateFunction::kAvg, std::move(column)}; }
  static Aggregate Min(std::string column) { return {AggregateFunction::kMin, std::move(column)}; }
  static Aggregate Max(std::string column) { return {AggregateFunction::kMax, std::move(column)}; }
};

struct AggregateGroupsOptions {
  uint64_t limit = std::numeric_limits<uint64_t>::max();  // of groups, for each range
  // The call returns Cancelled some milliseconds after another thread sets this. Null: it cannot be
  // cancelled.
  const std::atomic<bool>* cancelled = nullptr;
};

// The groups of each range of a batch, in compressed sparse rows: range i's are offsets[i] …
// offsets[i + 1] - 1, in the order of keys. Plain data; a call that fails leaves it in an
// unspecified valid state.
struct AggregateGroupsResult {
  std::vector<uint64_t> offsets;     // [batch + 1], offsets[0] = 0
  std::vector<ColumnValues> keys;    // one a leading part: value j is group j's
  std::vector<ColumnValues> values;  // one an aggregate, likewise
  // Where range i goes on behind its last group, for RangeBatch::after; empty where it had no more.
  // Good for later versions of the index, too.
  std::vector<std::string> cursors;

  size_t size() const { return offsets.empty() ? 0 : offsets.size() - 1; }
};

}  // namespace cairn
