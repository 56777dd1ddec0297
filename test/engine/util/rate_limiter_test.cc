#include "engine/util/rate_limiter.h"

#include <boost/test/unit_test.hpp>
#include <chrono>
#include <thread>
#include <vector>

namespace cairn {
BOOST_AUTO_TEST_SUITE(rate_limiter_test)
namespace {

double SecondsOf(const std::function<void()>& body) {
  const auto begin = std::chrono::steady_clock::now();
  body();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

BOOST_AUTO_TEST_CASE(many_threads_together_keep_to_the_rate) {
  // 400 kB at 1 MB/s. The bucket starts with the bytes of a tenth of a second, and the limiter does
  // not wait for the last bytes. A slow machine only takes longer.
  RateLimiter limiter(1'000'000);
  StopFlag stop(nullptr);
  const double seconds = SecondsOf([&] {
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&] {
        for (int j = 0; j < 10; ++j) limiter.Take(10'000, &stop);
      });
    }
    for (std::thread& thread : threads) thread.join();
  });
  BOOST_TEST(seconds >= 0.28);
}

BOOST_AUTO_TEST_CASE(a_full_bucket_is_there_at_once_and_no_limit_never_waits) {
  StopFlag stop(nullptr);
  RateLimiter slow(1000);
  BOOST_TEST(SecondsOf([&] { slow.Take(1'000'000, &stop); }) < 10);  // 1,000 seconds would be due
  RateLimiter unlimited(0);
  BOOST_TEST(SecondsOf([&] {
               for (int i = 0; i < 1000; ++i) unlimited.Take(UINT64_MAX, &stop);
             }) < 10);
}

BOOST_AUTO_TEST_CASE(a_stop_ends_the_wait) {
  std::atomic<bool> cancelled{false};
  StopFlag stop(&cancelled);
  RateLimiter limiter(1000);
  limiter.Take(1'000'000, &stop);
  std::thread canceller([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    cancelled = true;
  });
  BOOST_TEST(SecondsOf([&] { limiter.Take(1, &stop); }) < 100);
  canceller.join();
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
