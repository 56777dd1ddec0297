#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "cairn/column.h"
#include "cairn/key_codec.h"
#include "tools/report/report.h"

namespace cairn::tools {

// Gathers the values of one part of many keys, and counts them.
class PartValues {
 public:
  explicit PartValues(DataType type) : type_(type) {}

  void Add(const DataValue& value);

  // Returns the added values as a histogram, or as prefixes and lengths.
  PartFacts Facts(bool exact) const;

 private:
  void AddHead(std::string_view head);
  void AddNumber(double number);
  bool is_text() const { return type_ == DataType::kText || type_ == DataType::kBytes; }

  DataType type_;
  PartFacts special_;  // nulls, and numbers outside of the histogram
  uint64_t values_ = 0;
  std::vector<double> numbers_;
  uint64_t strings_ = 0;
  uint64_t apart_ = 1;  // the first bytes of every apart_-th string are kept
  StringList heads_;
  std::map<uint64_t, uint64_t> lengths_;  // number of strings by length
};

// The intervals of a histogram of numbers, which must ascend; counts are zero.
Histogram HistogramOf(const std::vector<double>& numbers, DataType type);

// The interval of a histogram that contains a number; requires lower <= number <= upper.
size_t IntervalOf(const Histogram& histogram, double number);

// The start of interval i. For i = the number of intervals, the end of the last one.
double EdgeOf(const Histogram& histogram, size_t i);

// The groups of sorted strings by their prefixes, three levels deep, omit groups of less than one
// in kSmallestGroup strings.
inline constexpr uint64_t kSmallestGroup = 200;
std::vector<PrefixShare> GroupByPrefix(const std::vector<std::string_view>& sorted);

// Counts of sizes as a few ranges of sizes: one range per size if there are few, otherwise ranges
// between powers of two.
std::vector<SizeCount> Grouped(const std::map<uint64_t, uint64_t>& counts);

}  // namespace cairn::tools
