#pragma once

#include <boost/test/unit_test.hpp>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "absl/numeric/int128.h"
#include "absl/status/status.h"
#include "cairn/aggregate.h"
#include "cairn/column.h"
#include "cairn/key_codec.h"
#include "cairn/query.h"
#include "cairn/secondary_index.h"
#include "index/keys/key_encoding.h"
#include "index/keys/key_number.h"
#include "test/require_ok.h"

namespace cairn {

// Computes aggregates from all entries of a scan.
class AggregateOracle {
 public:
  AggregateOracle(const SecondaryIndex& index, std::vector<std::string> columns)
      : index_(index), names_(std::move(columns)) {
    QueryOptions options;
    options.with_keys = true;
    options.columns = names_;
    RequireOk(index.Scan(RangeBatch::Everything(index.kind()), &entries_, options));
  }

  size_t size() const { return entries_.row_ids.size(); }
  const EncodedKeys& keys() const { return entries_.keys; }

  // The entries of range `r`.
  std::vector<size_t> Entries(const RangeBatch& ranges, size_t r) const {
    std::vector<size_t> found;
    for (size_t i = 0; i < size(); ++i) {
      if (InRange(ranges, r, i)) found.push_back(i);
    }
    return found;
  }

  // The aggregate of these entries; an error if it does not fit.
  absl::StatusOr<DataValue> Of(const Aggregate& aggregate,
                               const std::vector<size_t>& entries) const {
    if (aggregate.function == AggregateFunction::kCountDistinct) {
      uint64_t keys = 0;
      for (size_t i = 0; i < entries.size(); ++i) {
        keys += i == 0 || Compare(entries[i - 1], entries[i]) != 0 ? 1 : 0;
      }
      return DataValue(keys);
    }
    if (aggregate.column.empty()) return DataValue(uint64_t{entries.size()});
    const ColumnValues& column = Column(aggregate.column);
    std::vector<size_t> there;
    for (const size_t i : entries) {
      if (!column.is_null(i)) there.push_back(i);
    }
    if (aggregate.function == AggregateFunction::kCount) return DataValue(uint64_t{there.size()});
    if (there.empty()) return DataValue();
    if (aggregate.function == AggregateFunction::kMin ||
        aggregate.function == AggregateFunction::kMax) {
      size_t best = there[0];
      for (const size_t i : there) {
        const bool least = aggregate.function == AggregateFunction::kMin;
        if (least ? Less(column, i, best) : Less(column, best, i)) best = i;
      }
      return column.value(best);
    }
    const bool mean = aggregate.function == AggregateFunction::kAvg;
    if (IsFloat(column.type())) {
      double sum = 0;
      for (const size_t i : there) sum += std::get<double>(column.value(i));
      return DataValue(mean ? sum / static_cast<double>(there.size()) : sum);
    }
    absl::int128 sum = 0;
    for (const size_t i : there) sum += Integer(column.value(i));
    if (mean) return DataValue(static_cast<double>(sum) / static_cast<double>(there.size()));
    if (IsSigned(column.type())) {
      if (sum < INT64_MIN || sum > INT64_MAX) return absl::OutOfRangeError("");
      return DataValue(static_cast<int64_t>(sum));
    }
    if (sum > absl::int128(UINT64_MAX)) return absl::OutOfRangeError("");
    return DataValue(static_cast<uint64_t>(sum));
  }

  // The values of the first `parts` parts of an entry's key.
  std::string Leading(size_t entry, size_t parts) const {
    std::vector<DataValue> values;
    std::string scratch, text;
    RequireOk(index_.codec().Decode(entries_.keys, entry, &values, &scratch));
    for (size_t i = 0; i < parts; ++i) text += Described(values[i]) + ";";
    return text;
  }

 private:
  const ColumnValues& Column(const std::string& name) const {
    for (size_t i = 0; i < names_.size(); ++i) {
      if (names_[i] == name) return entries_.columns[i];
    }
    BOOST_FAIL("no column " << name);
    return entries_.columns[0];
  }
  static absl::int128 Integer(const DataValue& value) {
    if (const int64_t* const number = std::get_if<int64_t>(&value)) return *number;
    return std::get<uint64_t>(value);
  }
  static bool Less(const ColumnValues& column, size_t a, size_t b) {
    const DataValue x = column.value(a), y = column.value(b);
    if (IsFloat(column.type())) {
      return OrderedBits(std::get<double>(x)) < OrderedBits(std::get<double>(y));
    }
    return x < y;
  }
  // Returns < 0, 0 or > 0 in the order of the keys.
  static int Compare(const EncodedKeys& a, size_t i, KeyBatch b, size_t j) {
    const auto compare = [](const auto& x, const auto& y) { return x < y ? -1 : x == y ? 0 : 1; };
    if (a.kind() == PhysicalType::kU32) return compare(a.u32(i), b.as<uint32_t>()[j]);
    if (a.kind() == PhysicalType::kU64) return compare(a.u64(i), b.as<uint64_t>()[j]);
    return compare(a.bytes(i), b.bytes()[j]);
  }
  int Compare(size_t a, size_t b) const {
    const EncodedKeys& keys = entries_.keys;
    if (keys.kind() == PhysicalType::kU32) return keys.u32(a) == keys.u32(b) ? 0 : 1;
    if (keys.kind() == PhysicalType::kU64) return keys.u64(a) == keys.u64(b) ? 0 : 1;
    return keys.bytes(a) == keys.bytes(b) ? 0 : 1;
  }
  bool InRange(const RangeBatch& ranges, size_t r, size_t i) const {
    const Bound lower = ranges.lower_bound_of(r), upper = ranges.upper_bound_of(r);
    if (lower != Bound::kOpen) {
      const int order = Compare(entries_.keys, i, ranges.lower, r);
      if (order < 0 || (order == 0 && lower == Bound::kExclusive)) return false;
    }
    if (upper == Bound::kOpen) return true;
    if (upper == Bound::kPrefix) {
      const std::string_view key = entries_.keys.bytes(i), prefix = ranges.lower.bytes()[r];
      return key.substr(0, prefix.size()) == prefix;
    }
    const int order = Compare(entries_.keys, i, ranges.upper, r);
    return order < 0 || (order == 0 && upper == Bound::kInclusive);
  }

  const SecondaryIndex& index_;
  const std::vector<std::string> names_;
  FindResult entries_;
};

// Whether a value is as expected. Sums of floats may differ by rounding, relative to `scale`.
inline bool SameValue(const DataValue& found, const DataValue& expected, bool added, double scale) {
  const double* const x = std::get_if<double>(&found);
  const double* const y = std::get_if<double>(&expected);
  if (x == nullptr || y == nullptr) return found == expected;
  if (std::isnan(*x) || std::isnan(*y)) return std::isnan(*x) == std::isnan(*y);
  if (!added) return *x == *y && std::signbit(*x) == std::signbit(*y);
  return *x == *y || std::abs(*x - *y) <= 1e-12 * std::max(scale, std::abs(*y));
}

}  // namespace cairn
