#include "tools/report/exact_counts.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "cairn/index_iterator.h"
#include "cairn/key_codec.h"
#include "cairn/query.h"
#include "index/machine/status_macros.h"
#include "tools/report/key_sample.h"
#include "tools/report/part_values.h"

namespace cairn::tools {
namespace {

// The value of an integer type that is nearest to a double.
DataValue Nearest(double number, DataType type) {
  switch (type) {
    case DataType::kI8:
    case DataType::kI16:
    case DataType::kI32:
    case DataType::kI64:
      if (number >= 0x1p63) return std::numeric_limits<int64_t>::max();
      return number <= -0x1p63 ? std::numeric_limits<int64_t>::min() : static_cast<int64_t>(number);
    case DataType::kF32:
    case DataType::kF64:
      return number;
    default:
      if (number >= 0x1p64) return std::numeric_limits<uint64_t>::max();
      return number <= 0 ? uint64_t{0} : static_cast<uint64_t>(number);
  }
}

// The lowest and the highest finite number of a type.
std::pair<double, double> Limits(DataType type) {
  switch (type) {
    case DataType::kU8:
      return {0, 0xff};
    case DataType::kU16:
      return {0, 0xffff};
    case DataType::kU32:
      return {0, 0xffffffffu};
    case DataType::kU64:
      return {0, 0x1p64};
    case DataType::kI8:
      return {-0x1p7, 0x1p7 - 1};
    case DataType::kI16:
      return {-0x1p15, 0x1p15 - 1};
    case DataType::kI32:
      return {-0x1p31, 0x1p31 - 1};
    case DataType::kI64:
      return {-0x1p63, 0x1p63};
    case DataType::kF32:
      return {std::numeric_limits<float>::lowest(), std::numeric_limits<float>::max()};
    default:
      return {std::numeric_limits<double>::lowest(), std::numeric_limits<double>::max()};
  }
}

double AsDouble(const DataValue& value) {
  if (const auto* natural = std::get_if<uint64_t>(&value)) return static_cast<double>(*natural);
  if (const auto* integer = std::get_if<int64_t>(&value)) return static_cast<double>(*integer);
  return std::get<double>(value);
}

// The first or last finite number among the keys; requires that there be one.
absl::StatusOr<double> EndOfNumbers(const SecondaryIndex& index, Order order) {
  const auto [least, most] = Limits(index.codec().parts()[0]);
  const DataType type = index.codec().parts()[0];
  IteratorOptions options;
  options.range = KeyQuery::Between(Nearest(least, type), Nearest(most, type));
  IndexIterator it = index.NewIterator(options);
  order == Order::kAscending ? it.SeekToFirst() : it.SeekToLast();
  RETURN_IF_ERROR(it.status());
  if (!it.Valid()) return absl::InternalError("a key that was read is not in the index");
  return AsDouble(it.secondary_key()[0]);
}

// The number of entries of one key, prefix or range.
absl::StatusOr<uint64_t> CountOf(const SecondaryIndex& index, const KeyQuery& keys) {
  ASSIGN_OR_RETURN(const std::vector<uint64_t> counts, index.Count(keys));
  return counts[0];
}

absl::Status CountHistogram(const SecondaryIndex& index, Histogram* histogram) {
  const DataType type = index.codec().parts()[0];
  ASSIGN_OR_RETURN(histogram->least, EndOfNumbers(index, Order::kAscending));
  ASSIGN_OR_RETURN(histogram->most, EndOfNumbers(index, Order::kDescending));
  // The ends of a sample are not the ends of all numbers; if the rest is small, include all.
  const double span = histogram->upper - histogram->lower;
  if (histogram->most / 2 - histogram->least / 2 <= span * 0.6) {
    histogram->lower = histogram->least;
    histogram->upper = histogram->most;
  }
  // One range per interval, and the ranges below and above.
  const size_t intervals = histogram->counts.size();
  const auto edge = [&](size_t i) {
    const double at = EdgeOf(*histogram, i);
    return Nearest(histogram->whole ? std::ceil(at) : at, type);
  };
  // Doubles are not exact for large integers; ranges that must contain everything use the type's
  // limits.
  const auto [least, most] = Limits(type);
  const DataValue first =
      Nearest(histogram->lower <= histogram->least ? least : histogram->lower, type);
  const DataValue last =
      Nearest(histogram->upper >= histogram->most ? most : histogram->upper, type);
  uint64_t inside = 0;
  for (size_t i = 0; i < intervals; ++i) {
    const DataValue from = i == 0 ? first : edge(i);
    ASSIGN_OR_RETURN(histogram->counts[i],
                     CountOf(index, i + 1 == intervals ? KeyQuery::Between(from, last)
                                                       : KeyQuery::Range(from, edge(i + 1))));
    inside += histogram->counts[i];
  }
  ASSIGN_OR_RETURN(histogram->below, CountOf(index, KeyQuery::Range(Nearest(least, type), first)));
  ASSIGN_OR_RETURN(const uint64_t from_first,
                   CountOf(index, KeyQuery::Between(first, Nearest(most, type))));
  histogram->above = from_first - inside;
  return absl::OkStatus();
}

void Collect(std::vector<PrefixShare>* shares, std::vector<PrefixShare*>* all) {
  for (PrefixShare& share : *shares) {
    all->push_back(&share);
    Collect(&share.longer, all);
  }
}

absl::Status CountPrefixes(const SecondaryIndex& index, std::vector<PrefixShare>* prefixes) {
  std::vector<PrefixShare*> all;
  Collect(prefixes, &all);
  for (PrefixShare* share : all) {
    ASSIGN_OR_RETURN(share->values, CountOf(index, KeyQuery::BytePrefix(share->prefix)));
  }
  return absl::OkStatus();
}

// Removes groups that are too small, though they were not in the sample.
void DropSmall(uint64_t entries, std::vector<PrefixShare>* shares) {
  const auto is_small = [&](const PrefixShare& share) {
    return share.values < entries / kSmallestGroup;
  };
  shares->erase(std::remove_if(shares->begin(), shares->end(), is_small), shares->end());
  for (PrefixShare& share : *shares) DropSmall(entries, &share.longer);
}

}  // namespace

absl::Status CountExactly(const SecondaryIndex& index, uint64_t entries, KeyFacts* facts) {
  PartFacts& part = facts->parts[0];
  if (part.exact) return absl::OkStatus();
  const KeyCodec& codec = index.codec();
  const DataType type = codec.parts()[0];
  const bool has_nulls = codec.nulls() != NullPolicy::kSkip;
  const bool is_whole_key = codec.parts().size() == 1;
  if (!part.prefixes.empty() && (is_whole_key || !has_nulls)) {
    RETURN_IF_ERROR(CountPrefixes(index, &part.prefixes));
    DropSmall(entries, &part.prefixes);
    if (has_nulls) {
      ASSIGN_OR_RETURN(part.nulls, CountOf(index, DataValue()));
    }
    part.looked_at = entries;
    part.exact = true;
  } else if (part.histogram.has_value() && is_whole_key) {
    RETURN_IF_ERROR(CountHistogram(index, &*part.histogram));
    if (type == DataType::kF32 || type == DataType::kF64) {
      constexpr double kInfinity = std::numeric_limits<double>::infinity();
      ASSIGN_OR_RETURN(part.lowest, CountOf(index, -kInfinity));
      ASSIGN_OR_RETURN(part.highest, CountOf(index, kInfinity));
      ASSIGN_OR_RETURN(part.nans, CountOf(index, std::numeric_limits<double>::quiet_NaN()));
    }
    if (has_nulls) {
      ASSIGN_OR_RETURN(part.nulls, CountOf(index, DataValue()));
    }
    part.looked_at = entries;
    part.exact = true;
  }
  return absl::OkStatus();
}

}  // namespace cairn::tools
