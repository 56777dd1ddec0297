#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cairn/column.h"

// Aggregates for SecondaryIndex::AggregateRanges, SecondaryIndex::AggregateGroups and
// IndexGroup::GroupBy, and the result of AggregateGroups.

namespace cairn {

// The functions of aggregates. Aggregate has the types of their results and the treatment of nulls.
enum class AggregateFunction : uint8_t {
  kCount,          // entries; with a column, those whose value is not null
  kCountDistinct,  // distinct keys; in GroupBy, distinct values of a column
  kSum,
  kAvg,
  kMin,
  kMax,
};

// Returns "count", "count_distinct", "sum", "avg", "min" or "max".
std::string_view AggregateFunctionName(AggregateFunction function);

// An aggregate function of the entries of a range or group. An entry is a key of a row: a row with
// several keys in a range, for example from an array, counts once per key. In IndexGroup::GroupBy
// each row counts once.
//
// Nulls are ignored, as in SQL. Without a value that is not null, sum, avg, min and max are null
// and counts are 0.
//
//   function        column            type of the result
//   count           none, or any      u64
//   count_distinct  none; GroupBy any u64
//   sum             unsigned          u64
//                   signed            i64
//                   f32, f64          f64
//   avg             numbers           f64
//   min, max        any               the type of the column
//
// A sum of integers is exact. It is an error only if the final sum does not fit its type.
// Floating-point numbers are added as double. The summation order is unspecified, so the last
// digits may vary between index versions. A sum or average is NaN if a value is NaN or if
// infinities of both signs occur. A sum of zeros is 0, never -0. min and max use the order of keys
// (KeyCodec): -0 is less than 0, and NaN is greater than every number; all NaNs are equal. Text and
// bytes compare as with memcmp.
struct Aggregate {
  AggregateFunction function = AggregateFunction::kCount;
  std::string column = {};  // an included column (IndexSpec::include); empty: none

  // Create an aggregate of entries, or of an included column by its name.
  static Aggregate Count() { return {}; }
  static Aggregate Count(std::string column) {
    return {AggregateFunction::kCount, std::move(column)};
  }
  static Aggregate CountDistinct() { return {AggregateFunction::kCountDistinct}; }
  static Aggregate CountDistinct(std::string column) {  // for IndexGroup::GroupBy
    return {AggregateFunction::kCountDistinct, std::move(column)};
  }
  static Aggregate Sum(std::string column) { return {AggregateFunction::kSum, std::move(column)}; }
  static Aggregate Avg(std::string column) { return {AggregateFunction::kAvg, std::move(column)}; }
  static Aggregate Min(std::string column) { return {AggregateFunction::kMin, std::move(column)}; }
  static Aggregate Max(std::string column) { return {AggregateFunction::kMax, std::move(column)}; }
};

// The groups of each range of a batch. Range i has the groups from offsets[i] up to, but not
// including, offsets[i + 1], in key order. Plain data. A failed call leaves it in an unspecified
// valid state.
struct AggregateGroupsResult {
  std::vector<uint64_t> offsets;     // [batch + 1], offsets[0] = 0
  std::vector<ColumnValues> keys;    // one column per leading key part; value j is of group j
  std::vector<ColumnValues> values;  // one column per aggregate; value j is of group j
  // cursors[i] continues range i after its last group (RangeBatch::after), with the same number of
  // leading parts; empty if the range is exhausted. A cursor stays valid for later versions of the
  // index, as long as they have the same spec. InvalidArgument for any other cursor.
  std::vector<std::string> cursors;

  // Returns the number of ranges. The number of groups of all ranges is offsets.back().
  size_t size() const { return offsets.empty() ? 0 : offsets.size() - 1; }
};

}  // namespace cairn
