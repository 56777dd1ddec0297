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
  PartFacts special_;  // nulls, and numbers that are in no histogram
  uint64_t values_ = 0;
  std::vector<double> numbers_;
  uint64_t strings_ = 0;
  uint64_t apart_ = 1;  // every so-manieth string's first bytes are kept
  StringList heads_;
  std::map<uint64_t, uint64_t> lengths_;  // how many strings have a length
};

// The intervals that a histogram of numbers, which ascend, is to have; counts are zero.
Histogram HistogramOf(const std::vector<double>& numbers, DataType type);

// The interval of a histogram that a number lies in; requires lower <= number <= upper.
size_t IntervalOf(const Histogram& histogram, double number);

// Where interval i begins, of as many as there are; the last one ends at EdgeOf(their number).
double EdgeOf(const Histogram& histogram, size_t i);

// Groups strings, which are sorted, by their prefixes, three levels deep.
// Groups of less than one in kSmallestGroup strings are left out.
inline constexpr uint64_t kSmallestGroup = 200;
std::vector<PrefixShare> GroupByPrefix(const std::vector<std::string_view>& sorted);

// Counts of sizes as a few ranges of them: as they are if those are few, else between powers of
// two.
std::vector<SizeCount> Grouped(const std::map<uint64_t, uint64_t>& counts);

}  // namespace cairn::tools
