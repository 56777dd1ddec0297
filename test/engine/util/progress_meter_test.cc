#include "engine/util/progress_meter.h"

#include <boost/test/unit_test.hpp>
#include <cstdint>
#include <thread>
#include <utility>
#include <vector>

namespace cairn {
BOOST_AUTO_TEST_SUITE(progress_meter_test)
namespace {

BOOST_AUTO_TEST_CASE(reports_the_end_of_every_phase) {
  std::vector<Progress> reports;
  {
    ProgressMeter meter([&](const Progress& progress) { reports.push_back(progress); });
    meter.Start(Progress::Phase::kScan, 10);
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&] {
        for (int j = 0; j < 1000; ++j) meter.Add(1);
      });
    }
    for (std::thread& thread : threads) thread.join();
    meter.Start(Progress::Phase::kSort, 7);
    meter.Add(7);
  }
  BOOST_REQUIRE(reports.size() >= 2u);
  bool scan_ended = false;
  for (size_t i = 0; i < reports.size(); ++i) {
    BOOST_TEST(reports[i].done <= reports[i].total);
    scan_ended |= reports[i].phase == Progress::Phase::kScan && reports[i].done == 4000;
  }
  BOOST_TEST(scan_ended);
  BOOST_CHECK(reports.back().phase == Progress::Phase::kSort);
  BOOST_TEST(reports.back().done == 7u);
}

BOOST_AUTO_TEST_CASE(an_estimate_that_was_too_large_ends_with_its_phase) {
  std::vector<Progress> reports;
  const auto last = [&] { return std::pair(reports.back().done, reports.back().total); };
  {
    ProgressMeter meter([&](const Progress& progress) { reports.push_back(progress); });
    meter.Start(Progress::Phase::kScan, 100);
    meter.Add(40);
    meter.Start(Progress::Phase::kWrite, 100);
    BOOST_REQUIRE(!reports.empty());
    BOOST_CHECK(last() == std::pair(uint64_t{40}, uint64_t{40}));
    meter.Add(30);
  }
  // The build has failed.
  BOOST_CHECK(last() == std::pair(uint64_t{30}, uint64_t{100}));
}

BOOST_AUTO_TEST_CASE(works_without_a_listener) {
  ProgressMeter meter(nullptr);
  meter.Start(Progress::Phase::kWrite, 1);
  meter.Add(1);
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
