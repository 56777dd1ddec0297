#include "engine/ordered_pipeline.h"

#include <atomic>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <new>
#include <thread>
#include <vector>

namespace cairn {
namespace {

BOOST_AUTO_TEST_SUITE(ordered_pipeline_test)

BOOST_AUTO_TEST_CASE(items_are_taken_in_order_and_never_more_at_a_time_than_slots) {
  for (int threads : {1, 2, 5}) {
    for (size_t slots : {1, 2, 7}) {
      for (size_t items : {0, 1, 2, 500}) {
        std::vector<size_t> in_slot(slots);
        std::vector<size_t> taken;
        size_t claimed = 0;
        std::atomic<size_t> at_work{0};
        std::atomic<bool> ok{true};
        const auto claim = [&](size_t slot) {
          if (claimed == items) return false;
          in_slot[slot] = claimed++;
          if (++at_work > slots) ok = false;
          return true;
        };
        const auto make = [&](size_t slot) {
          if (in_slot[slot] % 3 == 0) std::this_thread::yield();
          in_slot[slot] = in_slot[slot] * 2;
        };
        const auto take = [&](size_t slot) {
          taken.push_back(in_slot[slot]);
          --at_work;
        };
        RunOrderedPipeline(threads, slots, claim, make, take);
        BOOST_TEST(ok.load());
        BOOST_REQUIRE(taken.size() == items);
        for (size_t i = 0; i < items; ++i) {
          if (taken[i] != 2 * i) BOOST_FAIL("item " << i << " is " << taken[i]);
        }
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(makers_work_side_by_side_while_a_slow_one_holds_up_the_taking) {
  std::atomic<int> made{0};
  int claimed = 0;
  bool others_were_done = false;
  RunOrderedPipeline(
      2, 8, [&](size_t) { return claimed++ < 8; },
      [&](size_t slot) {
        if (slot == 0) {
          const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
          while (made < 7 && std::chrono::steady_clock::now() < end) std::this_thread::yield();
          others_were_done = made == 7;
        }
        ++made;
      },
      [&](size_t) {});
  BOOST_TEST(others_were_done);
}

BOOST_AUTO_TEST_CASE(an_exception_of_any_step_ends_it_and_comes_out) {
  for (int threads : {1, 4}) {
    for (int step : {0, 1, 2}) {
      size_t calls[3] = {};
      std::atomic<size_t> made{0};
      const auto throw_at = [&](int which) {
        if (which == step && ++calls[which] == 10) throw std::bad_alloc();
      };
      BOOST_CHECK_THROW(RunOrderedPipeline(
                            threads, 4,
                            [&](size_t) {
                              throw_at(0);
                              return true;
                            },
                            [&](size_t) {
                              if (step == 1 && made.fetch_add(1) == 10) throw std::bad_alloc();
                            },
                            [&](size_t) { throw_at(2); }),
                        std::bad_alloc);
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace cairn
