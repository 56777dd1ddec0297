#include "engine/util/progress_meter.h"

#include <boost/test/unit_test.hpp>
#include <thread>
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

BOOST_AUTO_TEST_CASE(works_without_a_listener) {
  ProgressMeter meter(nullptr);
  meter.Start(Progress::Phase::kWrite, 1);
  meter.Add(1);
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
