#include "engine/util/periodically.h"

#include <atomic>
#include <boost/test/unit_test.hpp>

#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace cairn {
BOOST_AUTO_TEST_SUITE(periodically_test)
namespace {

int CallsWithin(absl::Duration interval, absl::Duration time) {
  std::atomic<int> calls{0};
  {
    const Periodically periodically(interval, [&calls] { ++calls; });
    absl::SleepFor(time);
  }
  return calls;
}

BOOST_AUTO_TEST_CASE(a_function_is_called_once_an_interval_or_never) {
  BOOST_TEST(CallsWithin(absl::Milliseconds(1), absl::Milliseconds(200)) > 1);
  BOOST_TEST(CallsWithin(absl::ZeroDuration(), absl::Milliseconds(20)) == 0);
  for (const absl::Duration long_one : {absl::Hours(1), absl::InfiniteDuration()}) {
    BOOST_TEST(CallsWithin(long_one, absl::Milliseconds(20)) == 0, long_one);
  }
}

BOOST_AUTO_TEST_CASE(a_function_without_work_is_called_less_often_until_it_is_hastened) {
  std::atomic<int> calls{0};
  std::atomic<bool> has_work{false};
  Periodically periodically(absl::Milliseconds(1), absl::Hours(1), [&] {
    ++calls;
    return has_work.load();
  });
  // After n calls, 2^n - 1 ms have passed.
  absl::SleepFor(absl::Milliseconds(300));
  const int slow = calls;
  BOOST_TEST(slow <= 9);
  has_work = true;
  for (const absl::Time end = absl::Now() + absl::Seconds(60);
       calls < slow + 20 && absl::Now() < end;) {
    periodically.Hasten();
    absl::SleepFor(absl::Milliseconds(1));
  }
  BOOST_TEST(calls >= slow + 20);
  periodically.End();
  const int last = calls;
  periodically.Hasten();
  absl::SleepFor(absl::Milliseconds(10));
  BOOST_TEST(calls == last);
  periodically.End();
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
