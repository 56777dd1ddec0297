// The speed of a follower, and the sizes of its slices.
#include "engine/live/follow_speed.h"

#include <boost/test/unit_test.hpp>

#include "absl/time/time.h"
#include "engine/log/update_log.h"

namespace cairn {
BOOST_AUTO_TEST_SUITE(follow_speed_test)
namespace {

BOOST_AUTO_TEST_CASE(slices_become_so_large_that_a_step_takes_its_time) {
  constexpr double kSecondsPerByte = 1e-7;  // 100 kB a step
  FollowSpeed speed;
  for (int i = 0; i < 20; ++i) {
    const double seconds = static_cast<double>(speed.slice_bytes()) * kSecondsPerByte;
    speed.Note(1000, absl::Seconds(seconds), /*is_full=*/true);
  }
  const double wanted = absl::ToDoubleSeconds(FollowSpeed::kStepTime) / kSecondsPerByte;
  BOOST_TEST(static_cast<double>(speed.slice_bytes()) == wanted,
             boost::test_tools::tolerance(0.01));
}

BOOST_AUTO_TEST_CASE(one_step_changes_a_slice_by_a_factor_of_two_at_most_and_within_limits) {
  FollowSpeed speed;
  const size_t first = speed.slice_bytes();
  speed.Note(1000, absl::Seconds(10), true);
  BOOST_TEST(speed.slice_bytes() == first / 2);
  for (int i = 0; i < 30; ++i) speed.Note(1000, absl::Seconds(10), true);
  BOOST_TEST(speed.slice_bytes() > 0u);
  BOOST_TEST(speed.slice_bytes() < first / 4);
  for (int i = 0; i < 30; ++i) speed.Note(1000, absl::ZeroDuration(), true);
  BOOST_TEST(speed.slice_bytes() == UpdateLog::kSliceBytes);
}

BOOST_AUTO_TEST_CASE(the_speed_is_that_of_the_last_half_second_of_following) {
  FollowSpeed speed;
  // Half of the time at each of two speeds.
  for (int i = 0; i < 1000; ++i) {
    speed.Note(3000, absl::Milliseconds(10), true);
    speed.Note(1000, absl::Milliseconds(10), true);
  }
  BOOST_TEST(speed.per_second() == 200000, boost::test_tools::tolerance(0.05));
  // A long step counts for its time.
  speed.Note(1000, absl::Milliseconds(500), true);
  BOOST_TEST(speed.per_second() == 101000, boost::test_tools::tolerance(0.05));
}

BOOST_AUTO_TEST_CASE(short_steps_that_reach_the_end_do_not_count) {
  FollowSpeed speed;
  const double before = speed.per_second();
  const size_t slice = speed.slice_bytes();
  speed.Note(1, absl::Milliseconds(1), false);
  BOOST_TEST(speed.per_second() == before);
  speed.Note(100000, absl::Milliseconds(500), false);
  BOOST_TEST(speed.per_second() < before);
  BOOST_TEST(speed.slice_bytes() == slice);
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
