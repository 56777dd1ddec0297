#include "engine/route/cost_model.h"

#include <boost/test/unit_test.hpp>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <memory>
#include <thread>
#include <vector>

namespace cairn {
BOOST_AUTO_TEST_SUITE(cost_model_test)
namespace {

using Curve = CostCurves::Curve;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

// A route whose points cost 200 ns, plus 20 ns per query.
CostCurves PointCurves() {
  CostCurves curves;
  for (size_t k = 0; k < CostCurves::kKnots; ++k) {
    curves.ns[Curve::kPoint][k] = 200 + 20 * static_cast<double>(uint64_t{1} << k);
  }
  return curves;
}

BatchShape Points(size_t queries) {
  return {Operation::kFindFirst, queries, 0, false};
}

// Reports to the model, `times` times, a batch that took `factor` times the predicted time.
void ObserveOften(CostModel* model, size_t queries, double factor, int times) {
  for (int i = 0; i < times; ++i) {
    model->Observe(Points(queries), factor * model->curves().Time(Points(queries)));
  }
}

BOOST_AUTO_TEST_CASE(time_between_powers_of_two_and_behind_the_last_is_linear) {
  const CostCurves curves = PointCurves();
  for (size_t q = 1; q < size_t{1} << 40; q += 1 + q / 3) {
    const double expected = 200 + 20.0 * static_cast<double>(q);
    const double found = curves.Time(Points(q));
    if (std::abs(found / expected - 1) > 1e-9) BOOST_ERROR(q << ": " << found);
  }
  BOOST_TEST(curves.Time(Points(0)) == curves.Time(Points(1)));
}

BOOST_AUTO_TEST_CASE(operations_are_on_the_curves_of_their_kind) {
  CostCurves curves;
  for (size_t curve = 0; curve < CostCurves::kCurves; ++curve) {
    curves.ns[curve].fill(100.0 * static_cast<double>(curve + 1));
  }
  BOOST_TEST(curves.Time({Operation::kFindFirst, 4, 0, false}) == 100);
  BOOST_TEST(curves.Time({Operation::kContains, 4, 0, false}) == 100);
  BOOST_TEST(curves.Time({Operation::kFindFirst, 4, 0, true}) == 200);
  BOOST_TEST(curves.Time({Operation::kContains, 4, 0, true}) == 200);
  BOOST_TEST(curves.Time({Operation::kFind, 4, 0, true}) == 300);
  BOOST_TEST(curves.Time({Operation::kScan, 4, 0, false}) == 300);
  BOOST_TEST(curves.Time({Operation::kCount, 4, 0, true}) == 400);
}

BOOST_AUTO_TEST_CASE(rows_beyond_those_of_the_trials_cost_extra) {
  CostCurves curves;
  curves.ns[Curve::kFind].fill(1000);
  curves.rows_per_query = 2;
  curves.ns_per_row = 0.5;
  BOOST_TEST(curves.Time({Operation::kScan, 10, 1020, false}) == 1500);
  BOOST_TEST(curves.Time({Operation::kFind, 10, 20, false}) == 1000);
  BOOST_TEST(curves.Time({Operation::kFind, 10, 0, false}) == 1000);
}

BOOST_AUTO_TEST_CASE(what_a_route_has_no_curve_for_takes_for_ever) {
  CostModel model(PointCurves());
  BOOST_TEST(model.Predict({Operation::kCount, 1, 0, false}) == kInfinity);
  BOOST_TEST(model.Predict({Operation::kFindFirst, 1, 0, true}) == kInfinity);
  model.Observe({Operation::kCount, 1, 0, false}, 1e9);
  BOOST_TEST(model.drift(1) == 1);
}

BOOST_AUTO_TEST_CASE(predictions_follow_what_is_observed) {
  for (const double factor : {0.3, 0.9, 1.2, 3.0}) {
    CostModel model(PointCurves());
    ObserveOften(&model, 100'000, factor, 500);
    BOOST_TEST(model.drift(100'000) == factor, boost::test_tools::tolerance(0.02));
    BOOST_TEST(model.Predict(Points(64)) == factor * model.curves().Time(Points(64)),
               boost::test_tools::tolerance(0.02));
    BOOST_TEST(model.drift(1) == 1);  // few queries drift on their own
  }
}

BOOST_AUTO_TEST_CASE(batches_of_few_queries_are_believed_after_some_milliseconds) {
  CostModel model(PointCurves());
  ObserveOften(&model, 1, 1.4, 1000);  // one in sixteen of these is used
  BOOST_TEST(model.drift(1) > 1);
  BOOST_TEST(model.drift(1) < 1.1);
  ObserveOften(&model, 1, 1.4, 200'000);
  BOOST_TEST(model.drift(1) == 1.4, boost::test_tools::tolerance(0.02));
  BOOST_TEST(model.drift(64) == 1);
}

BOOST_AUTO_TEST_CASE(a_batch_that_was_interrupted_does_little) {
  CostModel model(PointCurves());
  model.Observe(Points(100'000), 1e12);
  BOOST_TEST(model.drift(100'000) < 1.05);
  model.Observe(Points(100'000), 0);
  model.Observe(Points(100'000), -1);
  model.Observe(Points(100'000), std::nan(""));
  BOOST_TEST(model.drift(100'000) < 1.05);
  model.Observe(Points(100'000), 1e-3);
  BOOST_TEST(model.drift(100'000) > 0.95);
}

BOOST_AUTO_TEST_CASE(no_drift_goes_beyond_all_bounds) {
  CostModel model(PointCurves());
  ObserveOften(&model, 100'000, 1e6, 10'000);
  BOOST_TEST(model.drift(100'000) <= 64 * 64);
  ObserveOften(&model, 100'000, 1e-6, 10'000);
  BOOST_TEST(model.drift(100'000) >= 1.0 / 64 / 64);
}

BOOST_AUTO_TEST_CASE(what_slows_a_device_changes_nothing_between_its_routes) {
  auto device = std::make_shared<DeviceDrift>();
  CostModel busy(PointCurves(), device), idle(PointCurves(), device);
  ObserveOften(&busy, 100'000, 1.4, 500);
  BOOST_TEST(busy.drift(100'000) == 1.4, boost::test_tools::tolerance(0.02));
  BOOST_TEST(idle.drift(100'000) == busy.drift(100'000), boost::test_tools::tolerance(1e-6));

  CostModel elsewhere(PointCurves());
  BOOST_TEST(elsewhere.drift(100'000) == 1);
}

BOOST_AUTO_TEST_CASE(routes_that_are_both_in_use_drift_apart_as_they_do) {
  auto device = std::make_shared<DeviceDrift>();
  CostModel right(PointCurves(), device), wrong(PointCurves(), device);
  for (int i = 0; i < 500; ++i) {
    ObserveOften(&right, 100'000, 1.0, 1);
    ObserveOften(&wrong, 100'000, 1.4, 1);
  }
  BOOST_TEST(right.drift(100'000) == 1.0, boost::test_tools::tolerance(0.03));
  BOOST_TEST(wrong.drift(100'000) == 1.4, boost::test_tools::tolerance(0.03));
  // And they stay so when only one of them continues to be used.
  ObserveOften(&right, 100'000, 1.2, 500);
  BOOST_TEST(right.drift(100'000) == 1.2, boost::test_tools::tolerance(0.03));
  BOOST_TEST(wrong.drift(100'000) > 1.4);
}

BOOST_AUTO_TEST_CASE(a_seldom_route_that_is_wrong_does_not_move_the_device) {
  auto device = std::make_shared<DeviceDrift>();
  CostModel often(PointCurves(), device), seldom(PointCurves(), device);
  for (int i = 0; i < 200; ++i) {
    ObserveOften(&often, 100'000, 1.0, 50);
    ObserveOften(&seldom, 100'000, 1.4, 1);
  }
  BOOST_TEST(often.drift(100'000) == 1.0, boost::test_tools::tolerance(0.03));
  BOOST_TEST(seldom.drift(100'000) == 1.4, boost::test_tools::tolerance(0.05));
}

BOOST_AUTO_TEST_CASE(a_drift_beyond_one_and_a_half_that_lasts_calls_for_trials) {
  // Ten batches of 2 ms move the drift beyond its bound.
  CostModel model(PointCurves());
  ObserveOften(&model, 100'000, 2, 10);
  BOOST_TEST(!model.CallsForTrials(0));
  ObserveOften(&model, 100'000, 2, 100);
  BOOST_TEST(model.CallsForTrials(0));
  BOOST_TEST(!model.CallsForTrials(1));
  ObserveOften(&model, 100'000, 2, 4 * 64);
  BOOST_TEST(model.CallsForTrials(1));
  BOOST_TEST(!model.CallsForTrials(100));
  // Not after it is over.
  ObserveOften(&model, 100'000, 1, 100);
  BOOST_TEST(!model.CallsForTrials(0));

  CostModel faster(PointCurves());
  ObserveOften(&faster, 100'000, 0.5, 200);
  BOOST_TEST(faster.CallsForTrials(0));
  CostModel within(PointCurves());
  ObserveOften(&within, 100'000, 1.45, 2000);
  BOOST_TEST(!within.CallsForTrials(0));
}

BOOST_AUTO_TEST_CASE(a_drift_calls_for_trials_only_after_ten_milliseconds_of_batches) {
  CostModel model(PointCurves());
  // 80 batches of 20 us, which are believed in the end.
  ObserveOften(&model, 1000, 4, 80);
  BOOST_TEST(model.drift(1000) > 1.5);
  BOOST_TEST(!model.CallsForTrials(0));
  ObserveOften(&model, 1000, 4, 500);
  BOOST_TEST(model.CallsForTrials(0));
}

BOOST_AUTO_TEST_CASE(many_threads_observe_and_predict_at_a_time) {
  auto device = std::make_shared<DeviceDrift>();
  CostModel model(PointCurves(), device), other(PointCurves(), device);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 20'000; ++i) {
        CostModel& mine = (t + i) % 2 == 0 ? model : other;
        const size_t queries = i % 3 == 0 ? 1 : 1000;
        mine.Observe(Points(queries), 1.3 * mine.curves().Time(Points(queries)));
        if (!(mine.Predict(Points(queries)) > 0)) std::abort();
        if (mine.CallsForTrials(0)) std::abort();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  BOOST_TEST(model.drift(1000) == 1.3, boost::test_tools::tolerance(0.05));
  BOOST_TEST(other.drift(1000) == 1.3, boost::test_tools::tolerance(0.05));
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
