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

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
