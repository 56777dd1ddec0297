#include "cairn/prometheus.h"

#include <boost/test/unit_test.hpp>
#include <map>
#include <set>
#include <sstream>
#include <string>

#include "absl/time/time.h"

namespace cairn {
BOOST_AUTO_TEST_SUITE(prometheus_test)
namespace {

// The samples of a page, by name and labels; checks the form of each line on the way.
std::map<std::string, double> Samples(const std::string& page) {
  std::map<std::string, double> samples;
  std::set<std::string> metrics;
  std::istringstream lines(page);
  std::string metric;
  for (std::string line; std::getline(lines, line);) {
    if (line.rfind("# TYPE ", 0) == 0) {
      metric = line.substr(7, line.find(' ', 7) - 7);
      BOOST_TEST(metrics.insert(metric).second);  // a metric's samples are contiguous
      continue;
    }
    if (line.rfind("# HELP ", 0) == 0) continue;
    BOOST_TEST(line.rfind(metric, 0) == 0u);
    const size_t end = line.rfind(' ');
    BOOST_TEST(samples.emplace(line.substr(0, end), std::stod(line.substr(end))).second);
  }
  return samples;
}

BOOST_AUTO_TEST_CASE(counters_of_each_route_and_cumulative_buckets) {
  IndexStats stats;
  stats.rows = 7;
  stats.entries = 9;
  stats.sequence = 11;
  stats.ordered_indexes = {{"cpu:packed,bits=16", 1000, 0, 0}};
  RouteStats cpu, gpu;
  cpu.route = "cpu:packed";
  cpu.batches = 3;
  cpu.queries = 300;
  cpu.bytes = 2400;
  cpu.busy = absl::Milliseconds(3);
  cpu.response_times[0] = 1;
  cpu.response_times[3] = 1;
  cpu.response_times[RouteStats::kBuckets - 1] = 1;
  gpu.route = "gpu:packed";
  gpu.failures = 2;
  stats.routes = {cpu, gpu};

  const NamedStats indexes[] = {{"by_city", &stats}};
  const auto samples = Samples(PrometheusText(indexes));
  const std::string cpu_labels = R"({index="by_city",route="cpu:packed"})";
  BOOST_TEST(samples.at("cairn_batches_total" + cpu_labels) == 3);
  BOOST_TEST(samples.at("cairn_queries_total" + cpu_labels) == 300);
  BOOST_TEST(samples.at("cairn_bytes_total" + cpu_labels) == 2400);
  BOOST_TEST(samples.at(R"(cairn_route_failures_total{index="by_city",route="gpu:packed"})") == 2);
  BOOST_TEST(samples.at("cairn_response_seconds_sum" + cpu_labels) == 0.003);
  BOOST_TEST(samples.at("cairn_response_seconds_count" + cpu_labels) == 3);
  const auto bucket = [&](const char* limit) {
    return samples.at(R"(cairn_response_seconds_bucket{index="by_city",route="cpu:packed",le=")" +
                      std::string(limit) + "\"}");
  };
  BOOST_TEST(bucket("1e-06") == 1);
  BOOST_TEST(bucket("4e-06") == 1);
  BOOST_TEST(bucket("8e-06") == 2);
  BOOST_TEST(bucket("+Inf") == 3);
  BOOST_TEST(samples.at(R"(cairn_rows{index="by_city"})") == 7);
  BOOST_TEST(samples.at(R"(cairn_entries{index="by_city"})") == 9);
  BOOST_TEST(samples.at(R"(cairn_sequence{index="by_city"})") == 11);
  BOOST_TEST(samples.at("cairn_ordered_index_bytes{index=\"by_city\",ordered_index=\"cpu:packed,"
                        "bits=16\"}") == 1000);
}

BOOST_AUTO_TEST_CASE(labels_are_escaped_and_nothing_else) {
  const IndexStats stats;
  const NamedStats indexes[] = {{"a\"b\\c\nd é", &stats}, {"other", &stats}};
  const std::string page = PrometheusText(indexes);
  BOOST_TEST(page.find(R"({index="a\"b\\c\nd é"} 0)") != std::string::npos);
  BOOST_TEST(Samples(page).size() == 6u);  // no routes, no ordered indexes
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
