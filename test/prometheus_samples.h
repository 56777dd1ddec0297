#pragma once

#include <boost/test/unit_test.hpp>
#include <map>
#include <set>
#include <sstream>
#include <string>

namespace cairn {

// The samples of a page, by name and labels. Also checks the form of each line.
inline std::map<std::string, double> PrometheusSamples(const std::string& page) {
  std::map<std::string, double> samples;
  std::set<std::string> metrics;
  std::istringstream lines(page);
  std::string metric;
  for (std::string line; std::getline(lines, line);) {
    if (line.rfind("# TYPE ", 0) == 0) {
      metric = line.substr(7, line.find(' ', 7) - 7);
      BOOST_TEST(metrics.insert(metric).second);  // a metric's samples must be contiguous
      continue;
    }
    if (line.rfind("# HELP ", 0) == 0) continue;
    BOOST_TEST(line.rfind(metric, 0) == 0u);
    const size_t end = line.rfind(' ');
    BOOST_TEST(samples.emplace(line.substr(0, end), std::stod(line.substr(end))).second);
  }
  return samples;
}

}  // namespace cairn
