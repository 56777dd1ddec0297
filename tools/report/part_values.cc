#include "tools/report/part_values.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <variant>

#include "index/machine/utf8.h"

namespace cairn::tools {
namespace {

constexpr size_t kIntervals = 60;
constexpr size_t kMaxHeads = size_t{1} << 18;
constexpr size_t kHeadBytes = 32;
constexpr size_t kLevels = 3;
constexpr size_t kMaxSizes = 24;

bool IsFloat(DataType type) {
  return type == DataType::kF32 || type == DataType::kF64;
}

// The character at the start of `text`; a single byte if it is not UTF-8.
std::string_view FirstCharacter(std::string_view text) {
  return text.substr(0, std::max<size_t>(Utf8Length(text), 1));
}

// Groups the strings [begin, end), which all begin with the first `known` bytes of the first one,
// by their next character.
std::vector<PrefixShare> AggregateGroupsResult(const std::vector<std::string_view>& sorted,
                                               size_t begin, size_t end, size_t known,
                                               size_t level) {
  std::vector<PrefixShare> groups;
  while (begin < end) {
    if (sorted[begin].size() == known) {  // these strings end here
      ++begin;
      continue;
    }
    const size_t length = known + FirstCharacter(sorted[begin].substr(known)).size();
    const std::string_view prefix = sorted[begin].substr(0, length);
    size_t last = begin;
    while (last < end && sorted[last].substr(0, length) == prefix) ++last;
    if ((last - begin) * kSmallestGroup >= sorted.size()) {
      // Extends the prefix to the common prefix of all of them, by whole characters.
      const std::string_view a = sorted[begin], b = sorted[last - 1];
      size_t common = length;
      while (common < a.size()) {
        const std::string_view next = FirstCharacter(a.substr(common));
        if (b.substr(common, next.size()) != next) break;
        common += next.size();
      }
      PrefixShare group{std::string(a.substr(0, common)), last - begin, {}};
      if (level + 1 < kLevels)
        group.longer = AggregateGroupsResult(sorted, begin, last, common, level + 1);
      groups.push_back(std::move(group));
    }
    begin = last;
  }
  return groups;
}

}  // namespace

void PartValues::Add(const DataValue& value) {
  ++values_;
  if (std::holds_alternative<std::monostate>(value)) {
    ++special_.nulls;
  } else if (const auto* text = std::get_if<std::string_view>(&value)) {
    ++lengths_[text->size()];
    if (strings_++ % apart_ == 0) AddHead(text->substr(0, kHeadBytes));
  } else if (const auto* natural = std::get_if<uint64_t>(&value)) {
    numbers_.push_back(static_cast<double>(*natural));
  } else if (const auto* integer = std::get_if<int64_t>(&value)) {
    numbers_.push_back(static_cast<double>(*integer));
  } else {
    AddNumber(std::get<double>(value));
  }
}

void PartValues::AddHead(std::string_view head) {
  heads_.Append(head);
  if (heads_.size() < kMaxHeads) return;
  // Drops every other string, now and from now on.
  StringList rest;
  for (size_t i = 0; i < heads_.size(); i += 2) rest.Append(heads_[i]);
  heads_ = std::move(rest);
  apart_ *= 2;
}

void PartValues::AddNumber(double number) {
  if (std::isnan(number)) {
    ++special_.nans;
  } else if (std::isinf(number)) {
    ++(number < 0 ? special_.lowest : special_.highest);
  } else {
    numbers_.push_back(number);
  }
}

PartFacts PartValues::Facts(bool exact) const {
  PartFacts facts = special_;
  facts.looked_at = values_;
  facts.exact = exact;
  if (is_text()) {
    std::vector<std::string_view> sorted(heads_.begin(), heads_.end());
    std::sort(sorted.begin(), sorted.end());
    facts.prefixes = GroupByPrefix(sorted);
    facts.lengths = Grouped(lengths_);
    // If there are many strings, only some are kept; shares are unaffected.
    facts.looked_at = heads_.size() + facts.nulls;
    facts.exact = exact && facts.looked_at == values_;
  } else if (!numbers_.empty()) {
    std::vector<double> numbers = numbers_;
    std::sort(numbers.begin(), numbers.end());
    Histogram histogram = HistogramOf(numbers, type_);
    for (const double number : numbers) {
      if (number < histogram.lower) {
        ++histogram.below;
      } else if (number > histogram.upper) {
        ++histogram.above;
      } else {
        ++histogram.counts[IntervalOf(histogram, number)];
      }
    }
    facts.histogram = std::move(histogram);
  }
  return facts;
}

Histogram HistogramOf(const std::vector<double>& numbers, DataType type) {
  Histogram histogram;
  histogram.whole = !IsFloat(type);
  const auto quantile = [&](double share) {
    return numbers[static_cast<size_t>(share * static_cast<double>(numbers.size() - 1))];
  };
  histogram.least = numbers.front();
  histogram.most = numbers.back();
  histogram.median = quantile(0.5);
  histogram.lower = histogram.least;
  histogram.upper = histogram.most;
  // A few outliers would squeeze the other numbers into one interval.
  const double low = quantile(0.01), high = quantile(0.99);
  if (high > low && histogram.most / 8 - histogram.least / 8 > high - low) {
    histogram.lower = std::max(histogram.least, low - (high - low) / 8);
    histogram.upper = std::min(histogram.most, high + (high - low) / 8);
    if (histogram.whole) {
      histogram.lower = std::floor(histogram.lower);
      histogram.upper = std::ceil(histogram.upper);
    }
  }
  size_t intervals = kIntervals;
  if (histogram.upper == histogram.lower) {
    intervals = 1;
  } else if (histogram.whole) {
    // All intervals have equal widths, except the last one.
    const double values = histogram.upper - histogram.lower + 1;
    const double width = std::ceil(values / kIntervals);
    intervals = static_cast<size_t>(std::ceil(values / width));
    histogram.upper = histogram.lower + width * static_cast<double>(intervals) - 1;
  }
  histogram.counts.assign(intervals, 0);
  return histogram;
}

size_t IntervalOf(const Histogram& histogram, double number) {
  const auto size = static_cast<double>(histogram.counts.size());
  const double width = (histogram.upper - histogram.lower + histogram.whole) / size;
  if (!(width > 0)) return 0;
  const double at = std::isfinite(width) ? (number - histogram.lower) / width
                                         : (number / 2 - histogram.lower / 2) /
                                               (histogram.upper / 2 - histogram.lower / 2) * size;
  return std::min(static_cast<size_t>(at), histogram.counts.size() - 1);
}

double EdgeOf(const Histogram& histogram, size_t i) {
  const auto size = static_cast<double>(histogram.counts.size());
  const double width = (histogram.upper - histogram.lower + histogram.whole) / size;
  return std::isfinite(width)
             ? histogram.lower + width * static_cast<double>(i)
             : std::lerp(histogram.lower, histogram.upper, static_cast<double>(i) / size);
}

std::vector<PrefixShare> GroupByPrefix(const std::vector<std::string_view>& sorted) {
  return AggregateGroupsResult(sorted, 0, sorted.size(), 0, 0);
}

std::vector<SizeCount> Grouped(const std::map<uint64_t, uint64_t>& counts) {
  std::vector<SizeCount> grouped;
  if (counts.size() <= kMaxSizes) {
    for (const auto& [size, count] : counts) grouped.push_back({size, size, count});
    return grouped;
  }
  for (const auto& [size, count] : counts) {
    if (grouped.empty() || size > grouped.back().most) {
      uint64_t least = 0, most = 0;
      while (size > most) {
        least = most + 1;
        most = most > UINT64_MAX / 2 ? UINT64_MAX : 2 * most + 1;  // 1, 2-3, 4-7, …
      }
      grouped.push_back({least, most, 0});
    }
    grouped.back().count += count;
  }
  return grouped;
}

}  // namespace cairn::tools
