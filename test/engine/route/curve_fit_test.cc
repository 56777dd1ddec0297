#include "engine/route/curve_fit.h"

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <functional>
#include <vector>

#include "test/test_random.h"

namespace cairn {
BOOST_AUTO_TEST_SUITE(curve_fit_test)
namespace {

const Parallelism kOneThread{1};

// Trials of `cost` at 1, 8, 64 … `most`.
std::vector<CostTrial> Trials(const std::function<double(size_t)>& cost, size_t most) {
  std::vector<CostTrial> trials;
  for (size_t queries = 1; queries <= most; queries *= 8) {
    trials.push_back({queries, cost(queries)});
  }
  return trials;
}

double Linear(size_t q) {
  return 200 + 20.0 * static_cast<double>(q);
}

BOOST_AUTO_TEST_CASE(a_fixed_cost_and_a_cost_a_query_are_predicted_exactly_at_every_size) {
  const CostCurves::Knots knots = FitCurve(Trials(Linear, 4096), kOneThread);
  for (size_t q = 1; q < size_t{1} << 32; q += 1 + q / 3) {
    const double expected = 200 + 20.0 * static_cast<double>(q);
    const double found = CostCurves::At(knots, static_cast<double>(q));
    if (std::abs(found / expected - 1) > 1e-9) BOOST_ERROR(q << ": " << found);
  }
}

BOOST_AUTO_TEST_CASE(time_never_falls_as_the_batch_grows_whatever_the_trials_found) {
  auto random = TestRandom();
  for (int round = 0; round < 200; ++round) {
    const std::vector<CostTrial> trials =
        Trials([&](size_t) { return 1.0 + static_cast<double>(random() % 100'000); },
               size_t{1} << (3 * (random() % 8)));
    const Parallelism parallelism{1 + static_cast<int>(random() % 64)};
    const CostCurves::Knots knots = FitCurve(trials, parallelism);
    double before = 0;
    for (size_t q = 1; q < size_t{1} << 34; q += 1 + q / 5) {
      const double time = CostCurves::At(knots, static_cast<double>(q));
      if (!(time >= before) || !(time > 0)) {
        BOOST_ERROR("round " << round << ", " << q << " queries: " << time << " < " << before);
      }
      before = time;
    }
    BOOST_TEST(before > 0);
  }
}

BOOST_AUTO_TEST_CASE(a_trial_that_was_disturbed_does_not_raise_what_is_around_it) {
  std::vector<CostTrial> trials = Trials(Linear, 4096);
  trials[2].ns = 5e6;
  const CostCurves::Knots knots = FitCurve(trials, kOneThread);
  BOOST_TEST(knots[0] == 220);
  BOOST_TEST(knots[6] <= trials[3].ns);
  BOOST_TEST(knots[12] == trials[4].ns);
}

BOOST_AUTO_TEST_CASE(a_single_trial_is_taken_for_a_cost_of_queries) {
  const CostTrial trial{1, 3e6};
  const CostCurves::Knots knots = FitCurve({&trial, 1}, kOneThread);
  BOOST_TEST(knots[0] == 3e6);
  BOOST_TEST(knots[10] == 1024 * 3e6);
}

BOOST_AUTO_TEST_CASE(trials_that_all_take_the_same_still_leave_queries_a_cost) {
  const CostCurves::Knots knots = FitCurve(Trials([](size_t) { return 1e4; }, 512), kOneThread);
  BOOST_TEST(knots[9] == 1e4);
  BOOST_TEST(knots[20] > 2 * knots[9]);
}

BOOST_AUTO_TEST_CASE(a_batch_that_is_spread_over_threads_takes_the_time_of_its_largest_part) {
  const Parallelism eight{8, 1 << 14};
  BOOST_TEST(QueriesOfOneThread(1, eight) == 1);
  BOOST_TEST(QueriesOfOneThread((1 << 15) - 1, eight) == (1 << 15) - 1);
  BOOST_TEST(QueriesOfOneThread(1 << 15, eight) == 1 << 14);
  BOOST_TEST(QueriesOfOneThread(1 << 20, eight) == 1 << 17);
  BOOST_TEST(QueriesOfOneThread(1000, Parallelism{0}) == 1000);

  const auto cost = [&](size_t q) { return 100 + 10 * QueriesOfOneThread(q, eight); };
  for (const size_t most : {size_t{1} << 12, size_t{1} << 15, size_t{1} << 18}) {
    const CostCurves::Knots knots = FitCurve(Trials(cost, most), eight);
    for (size_t k = 0; k < knots.size(); ++k) {
      BOOST_TEST(knots[k] == cost(size_t{1} << k), boost::test_tools::tolerance(1e-9));
    }
  }
}

BOOST_AUTO_TEST_CASE(what_spreading_a_batch_takes_is_told_from_trials) {
  const auto near = boost::test_tools::tolerance(1e-9);
  for (const size_t threads : {2, 8, 12}) {
    const Parallelism all{static_cast<int>(threads), 1 << 14};
    // 10 ns per query, 300 ns, and 50 ns per part; eight parts at a time are half as fast again.
    const auto cost = [&](size_t queries) {
      const auto parts = static_cast<double>(SliceCount(queries, all));
      if (parts == 1) return 10.0 * static_cast<double>(queries);
      return 300 + 50 * parts + (1 + (parts - 1) / 14) * 10 * QueriesOfOneThread(queries, all);
    };
    std::vector<CostTrial> trials;
    for (const size_t slices : {size_t{1}, size_t{2}, threads, 2 * threads}) {
      const size_t queries = slices << 14;
      if (trials.empty() || trials.back().queries < queries) {
        trials.push_back({queries, cost(queries)});
      }
    }
    const FanOut fan_out = FitFanOut(trials, all);
    for (const size_t queries : {1, 30'000, 1 << 15, 100'000, 200'000, 1 << 20, 1 << 24}) {
      const double part_ns = 10 * QueriesOfOneThread(queries, all);
      BOOST_TEST(fan_out.Time(queries, part_ns, all) == cost(queries), near);
    }
  }
}

BOOST_AUTO_TEST_CASE(disturbed_trials_of_threads_promise_no_more_than_there_can_be) {
  const Parallelism two{2, 1 << 14};
  const double part_ns = 1000;
  // If the first took too long, waking is free, and two threads are as fast as one.
  const FanOut free = FitFanOut({{{1 << 14, part_ns}, {1 << 15, 900}, {1 << 16, 950}}}, two);
  BOOST_TEST(free.Time(1 << 15, part_ns, two) == part_ns);
  BOOST_TEST(free.Time(1 << 20, 64 * part_ns, two) == 64 * part_ns);
  // If the last did: two threads are never slower than one after the other.
  const FanOut slow = FitFanOut({{{1 << 14, part_ns}, {1 << 15, 1000}, {1 << 16, 90'000}}}, two);
  BOOST_TEST(slow.Time(1 << 20, 64 * part_ns, two) == 2 * 64 * part_ns);
  // Without trials there is only one part.
  BOOST_TEST(FitFanOut({}, two).Time(1 << 20, part_ns, two) == part_ns);
}

// A run of 2^20 entries, 10 per line: a sorted query reads the part of a line between it and the
// next query.
double SortedSearch(double batch) {
  return 6 + 20 * std::min(1.0, (1 << 20) / batch / 10);
}
double Log2Cost(double batch) {
  return 0.8 * std::log2(batch);
}

BOOST_AUTO_TEST_CASE(slices_tell_what_sorted_queries_cost_in_batches_that_were_not_tried) {
  std::vector<CostTrial> slices;
  for (size_t q = 512; q <= size_t{1} << 24; q *= 4) {
    slices.push_back({q, static_cast<double>(q) * SortedSearch(static_cast<double>(q))});
  }
  for (const int threads : {1, 2, 12}) {
    const Parallelism parallelism{threads, 1 << 14};
    // Sorted by each thread, and as a whole by the caller.
    for (const bool by_thread : {true, false}) {
      const auto cost = [&](size_t q) {
        const double of_thread = QueriesOfOneThread(q, parallelism);
        const double dense_as = by_thread ? of_thread : static_cast<double>(q);
        const double sort = by_thread ? Log2Cost(of_thread) : 0;
        return of_thread * (3 + SortedSearch(dense_as) + sort);
      };
      const std::vector<CostTrial> trials = Trials(cost, by_thread ? 1 << 15 : 512);
      const SortedTrials sorted{trials, slices, by_thread};
      const double sort_cost = by_thread ? Log2Cost(QueriesOfOneThread(1 << 15, parallelism)) : 0;
      BOOST_TEST(SortCost(sorted, parallelism) == 3 + sort_cost,
                 boost::test_tools::tolerance(0.02));
      const CostCurves::Knots knots = FitCurve(Extend(sorted, sort_cost, parallelism), parallelism);
      for (size_t k = 12; k <= 24; ++k) {
        const double error = knots[k] / cost(size_t{1} << k) - 1;
        if (std::abs(error) > 0.2) {
          BOOST_ERROR(threads << " threads, 2^" << k << ": " << 100 * error << "%");
        }
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(where_only_larger_batches_were_sliced_there_are_the_trials_alone) {
  const std::vector<CostTrial> trials = Trials(Linear, 64);
  const std::vector<CostTrial> slices = {{512, 1000}, {4096, 5000}};
  BOOST_TEST(SortCost({trials, slices}, kOneThread) == 0);
  BOOST_TEST(Extend({trials, slices}, 1, kOneThread).size() == trials.size());
  BOOST_TEST(Extend({trials, {}}, 1, kOneThread).size() == trials.size());
}

BOOST_AUTO_TEST_CASE(a_search_that_took_longer_than_the_whole_was_disturbed) {
  const std::vector<CostTrial> trials = {{1, 100}, {8, 150}, {64, 600}, {512, 4000}};
  const std::vector<CostTrial> slices = {{512, 40'000}, {4096, 80'000}, {32768, 500'000}};
  BOOST_TEST(SortCost({trials, slices}, kOneThread) < 0);
  for (const CostTrial& trial : Extend({trials, slices}, 0, kOneThread)) {
    BOOST_TEST(trial.ns > 0);
  }
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
