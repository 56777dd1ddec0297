#include "engine/util/ordered_pipeline.h"

#include <atomic>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <functional>
#include <new>
#include <thread>
#include <utility>
#include <vector>

#include "index/machine/parallel.h"

namespace cairn {
BOOST_AUTO_TEST_SUITE(ordered_pipeline_test)
namespace {

// A pipeline with given steps.
class Pipeline : public OrderedPipeline {
 public:
  Pipeline(size_t slots, std::function<bool(size_t)> claim, std::function<void(size_t)> make,
           std::function<void(size_t)> take)
      : OrderedPipeline(slots),
        claim_(std::move(claim)),
        make_(std::move(make)),
        take_(std::move(take)) {}

  void Run(int threads) {
    ParallelFor(threads, static_cast<size_t>(threads), [&](size_t) { Work(); });
  }

 private:
  bool Claim(size_t slot) override { return claim_(slot); }
  void Make(size_t slot) override { make_(slot); }
  void Take(size_t slot) override { take_(slot); }

  std::function<bool(size_t)> claim_;
  std::function<void(size_t)> make_, take_;
};

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
        Pipeline(slots, claim, make, take).Run(threads);
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
  Pipeline(
      8, [&](size_t) { return claimed++ < 8; },
      [&](size_t slot) {
        if (slot == 0) {
          const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
          while (made < 7 && std::chrono::steady_clock::now() < end) std::this_thread::yield();
          others_were_done = made == 7;
        }
        ++made;
      },
      [&](size_t) {})
      .Run(2);
  BOOST_TEST(others_were_done);
}

BOOST_AUTO_TEST_CASE(an_exception_of_any_step_ends_it_and_comes_out) {
  for (int threads : {1, 4}) {
    for (int step : {0, 1, 2}) {
      std::atomic<int> calls{0};
      const auto call = [&](int which) {
        if (which == step && ++calls == 10) throw std::bad_alloc();
      };
      Pipeline pipeline(
          4,
          [&](size_t) {
            call(0);
            return true;
          },
          [&](size_t) { call(1); }, [&](size_t) { call(2); });
      BOOST_CHECK_THROW(pipeline.Run(threads), std::bad_alloc);
    }
  }
}

BOOST_AUTO_TEST_CASE(a_thread_that_comes_late_finds_nothing_left_or_helps) {
  size_t claimed = 0, taken = 0;
  Pipeline pipeline(
      2, [&](size_t) { return claimed < 100 && ++claimed > 0; }, [](size_t) {},
      [&](size_t) { ++taken; });
  pipeline.Run(1);
  BOOST_TEST(taken == 100u);
  pipeline.Run(3);
  BOOST_TEST(taken == 100u);
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
