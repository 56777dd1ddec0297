#include "engine/route/router.h"

#include <atomic>
#include <boost/test/unit_test.hpp>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "index/query/sorted_array.h"

namespace cairn {
BOOST_AUTO_TEST_SUITE(router_test)
namespace {

// A clock that advances only by the work done on it.
struct FakeClock {
  std::atomic<int64_t> now{1'000'000};
  Router::Clock Get() {
    return [this] { return now.load(); };
  }
};

// An ordered index with known times, which fails on request.
class FakeIndex : public SortedArray {
 public:
  FakeIndex(SortedRun run, FakeClock* clock, double fixed, double per_query)
      : SortedArray(std::move(run)), clock_(clock), fixed_(fixed), per_query_(per_query) {}

  absl::Status Execute(const Batch& batch) const override {
    ++calls;
    clock_->now += static_cast<int64_t>(slowness * Time(batch.size()));
    if (!failure.ok()) {
      // Results that must not be used.
      std::fill(batch.values.begin(), batch.values.end(), 12345);
      return failure;
    }
    return SortedArray::Execute(batch);
  }
  double Time(size_t queries) const { return fixed_ + per_query_ * static_cast<double>(queries); }
  std::unique_ptr<CostModel> Costs() const {
    CostCurves curves;
    for (CostCurves::Knots& knots : curves.ns) {
      for (size_t k = 0; k < knots.size(); ++k) knots[k] = Time(size_t{1} << k);
    }
    return std::make_unique<CostModel>(curves);
  }

  absl::Status failure;
  double slowness = 1;
  mutable std::atomic<int> calls = 0;

 private:
  FakeClock* const clock_;
  const double fixed_;
  const double per_query_;
};

SortedRun TenKeys() {
  std::vector<uint32_t> keys;
  std::vector<RowId> rows;
  for (uint32_t i = 0; i < 10; ++i) keys.push_back(i * 10), rows.push_back(i);
  return *SortedRun::FromSorted(keys, rows);
}

// Two routes: the CPU starts at once and is slow, a GPU starts late and is fast. They cross at a
// thousand queries.
struct Fixture {
  FakeClock clock;
  FakeIndex cpu{TenKeys(), &clock, 100, 20};
  FakeIndex gpu{TenKeys(), &clock, 10'100, 10};
  std::unique_ptr<Router> router;

  explicit Fixture(bool with_costs = true) {
    std::vector<Route> routes;
    routes.emplace_back("cpu:fake", &cpu, false, Strategy::kUnbuffered, 1);
    routes.emplace_back("gpu:fake", &gpu, true, Strategy::kUnbuffered, 1);
    router = std::make_unique<Router>(std::move(routes), clock.Get());
    if (with_costs) SetCosts();
  }

  void SetCosts() {
    std::vector<std::unique_ptr<CostModel>> costs;
    costs.push_back(cpu.Costs());
    costs.push_back(gpu.Costs());
    router->SetCosts(std::move(costs));
  }

  // Queries `size` keys, checks the results, and returns the route that was used.
  std::string Ask(size_t size, const QueryOptions& options = {}, Explain* explain = nullptr) {
    std::vector<uint32_t> keys(size);
    for (size_t i = 0; i < size; ++i) keys[i] = static_cast<uint32_t>(i % 100);
    std::vector<RowId> rows(size);
    Explain own;
    Batch batch = Batch::FindFirst(keys, absl::MakeSpan(rows), options);
    batch.explain = explain == nullptr ? &own : explain;
    const absl::Status status = router->Execute(batch);
    if (!status.ok()) return std::string(status.message());
    for (size_t i = 0; i < size; ++i) {
      const RowId expected = i % 10 == 0 ? static_cast<RowId>(i % 100 / 10) : kNoRow;
      if (rows[i] != expected) return "a wrong answer";
    }
    return batch.explain->route;
  }
};

BOOST_AUTO_TEST_CASE(each_batch_takes_the_route_that_is_predicted_to_be_fastest) {
  Fixture f;
  for (const size_t size : {0, 1, 10, 999}) BOOST_TEST(f.Ask(size) == "cpu:fake");
  for (const size_t size : {1001, 5000, 100000}) BOOST_TEST(f.Ask(size) == "gpu:fake");
}

BOOST_AUTO_TEST_CASE(without_cost_models_the_first_route_answers) {
  Fixture f(false);
  for (const size_t size : {1, 100000}) BOOST_TEST(f.Ask(size) == "cpu:fake");
  BOOST_TEST(f.router->BestBatch(Operation::kFindFirst) == 1u);
  BOOST_TEST(f.router->PredictedTime(Operation::kFindFirst, 100) == absl::ZeroDuration());
}

BOOST_AUTO_TEST_CASE(a_route_can_be_forced_by_name_and_a_wrong_name_lists_the_right_ones) {
  Fixture f;
  QueryOptions options;
  options.route = "gpu:fake";
  BOOST_TEST(f.Ask(1, options) == "gpu:fake");
  options.route = "cpu:fake";
  BOOST_TEST(f.Ask(100000, options) == "cpu:fake");
  options.route = "cpu:false";
  const std::string message = f.Ask(1, options);
  BOOST_TEST(absl::StrContains(message, "'cpu:false'"));
  BOOST_TEST(absl::StrContains(message, "cpu:fake, gpu:fake"));
  options = {};
  options.result_order = ResultOrder::kKey;  // which no unbuffered route supports
  BOOST_TEST(absl::StrContains(f.Ask(1, options), "caller's order"));
}

BOOST_AUTO_TEST_CASE(explain_tells_what_was_considered_predicted_and_measured) {
  Fixture f;
  Explain explain;
  QueryOptions options;
  f.Ask(10, options, &explain);
  BOOST_REQUIRE(explain.candidates.size() == 2u);
  BOOST_TEST(explain.candidates[0].route == "cpu:fake");
  BOOST_TEST(absl::ToDoubleNanoseconds(explain.candidates[0].predicted) == 300, 1e-6);
  BOOST_TEST(absl::ToDoubleNanoseconds(explain.candidates[1].predicted) == 10'200, 1e-6);
  BOOST_TEST(absl::ToDoubleNanoseconds(explain.measured) == 300);
  BOOST_TEST(explain.queries == 10u);
  BOOST_TEST(absl::StrContains(explain.reason, "fastest"));
  options.latency_target = absl::Nanoseconds(299);
  f.Ask(10, options, &explain);
  BOOST_TEST(explain.route == "cpu:fake");
  BOOST_TEST(absl::StrContains(explain.reason, "299ns"));
  options.latency_target = absl::Nanoseconds(301);
  f.Ask(10, options, &explain);
  BOOST_TEST(!absl::StrContains(explain.reason, "301ns"));
}

BOOST_AUTO_TEST_CASE(what_fails_on_the_gpu_is_answered_by_the_cpu_and_counted) {
  Fixture f;
  Explain explain;
  f.gpu.failure = absl::UnavailableError("the device is lost");
  BOOST_TEST(f.Ask(5000, {}, &explain) == "cpu:fake");
  BOOST_REQUIRE(explain.failures.size() == 1u);
  BOOST_TEST(absl::StrContains(explain.failures[0], "gpu:fake"));
  BOOST_TEST(absl::StrContains(explain.failures[0], "the device is lost"));
  // Both tries count: 60.1 us on the GPU, 100.1 on the CPU.
  BOOST_TEST(absl::ToDoubleNanoseconds(explain.measured) == 60'100 + 100'100);

  // A lost device is never used again, even if the query names it.
  const int calls = f.gpu.calls;
  f.gpu.failure = absl::OkStatus();
  f.clock.now += int64_t{1} << 60;
  BOOST_TEST(f.Ask(5000) == "cpu:fake");
  BOOST_TEST(f.gpu.calls == calls);
  const std::vector<RouteStats> stats = f.router->Stats();
  BOOST_TEST(stats[0].batches == 2u);
  BOOST_TEST(stats[0].queries == 10000u);
  BOOST_TEST(stats[0].bytes == 80000u);
  BOOST_TEST(stats[1].batches == 0u);
  BOOST_TEST(stats[1].failures == 1u);
}

BOOST_AUTO_TEST_CASE(a_gpu_without_memory_is_tried_again_after_pauses_that_grow) {
  Fixture f;
  f.gpu.failure = absl::ResourceExhaustedError("no memory");
  int64_t pause = 0;
  for (int round = 0; round < 5; ++round) {
    const int calls = f.gpu.calls;
    BOOST_TEST(f.Ask(5000) == "cpu:fake");
    BOOST_TEST(f.gpu.calls == calls + 1);
    // Not used now; tried again after twice the last interval.
    const int64_t failed = f.clock.now;
    while (f.gpu.calls == calls + 1) {
      f.clock.now += 10'000'000;
      const int64_t before = f.clock.now;
      f.Ask(5000);
      if (f.gpu.calls == calls + 1) continue;
      BOOST_TEST(before - failed >= 2 * pause - 20'000'000);
      pause = before - failed;
      break;
    }
    f.clock.now += 2 * pause + 1'000'000'000;
  }
  f.gpu.failure = absl::OkStatus();
  f.clock.now += 120'000'000'000;
  BOOST_TEST(f.Ask(5000) == "gpu:fake");
}

BOOST_AUTO_TEST_CASE(errors_of_the_question_and_of_the_cpu_are_the_callers) {
  Fixture f;
  f.gpu.failure = absl::InvalidArgumentError("a wrong batch");
  BOOST_TEST(f.Ask(5000) == "a wrong batch");
  f.gpu.failure = absl::OkStatus();
  BOOST_TEST(f.Ask(5000) == "gpu:fake");  // which was not the GPU's fault
  f.cpu.failure = absl::UnavailableError("not a device");
  BOOST_TEST(f.Ask(1) == "not a device");
  f.gpu.failure = absl::InternalError("both fail");
  BOOST_TEST(f.Ask(5000) == "not a device");
}

BOOST_AUTO_TEST_CASE(what_is_observed_moves_the_choice) {
  Fixture f;
  BOOST_TEST(f.Ask(1500) == "gpu:fake");
  f.gpu.slowness = 3;  // 76 us instead of 25
  std::string route = "gpu:fake";
  for (int i = 0; i < 2000 && route == "gpu:fake"; ++i) route = f.Ask(1500);
  BOOST_TEST(route == "cpu:fake");
}

BOOST_AUTO_TEST_CASE(trials_are_due_when_a_route_stays_far_off_and_not_after_them) {
  Fixture f;
  for (int i = 0; i < 500; ++i) f.Ask(5000);
  BOOST_TEST(!f.router->TrialsAreDue());
  QueryOptions options;
  options.route = "gpu:fake";
  f.gpu.slowness = 4;
  for (int i = 0; i < 3000 && !f.router->TrialsAreDue(); ++i) f.Ask(5000, options);
  BOOST_TEST(f.router->TrialsAreDue());
  f.SetCosts();
  BOOST_TEST(!f.router->TrialsAreDue());
}

BOOST_AUTO_TEST_CASE(the_best_batch_is_where_throughput_is_nearly_reached) {
  Fixture f;
  // A query costs 10 ns at least: 11.1 from 9,100 queries on, on the GPU.
  BOOST_TEST(f.router->BestBatch(Operation::kFindFirst) == 16384u);
  BOOST_TEST(absl::ToDoubleNanoseconds(f.router->PredictedTime(Operation::kFindFirst, 16384)) ==
                 10'100 + 163'840,
             1e-6);
}

BOOST_AUTO_TEST_CASE(many_threads_are_counted_without_loss) {
  Fixture f;
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 500; ++i) {
        const std::string route = f.Ask(static_cast<size_t>(i % 7 == 0 ? 3000 : 3));
        if (route != "cpu:fake" && route != "gpu:fake") ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  BOOST_TEST(wrong == 0);
  uint64_t batches = 0, histogram = 0;
  for (const RouteStats& stats : f.router->Stats()) {
    batches += stats.batches;
    for (const uint64_t count : stats.response_times) histogram += count;
  }
  BOOST_TEST(batches == 4000u);
  BOOST_TEST(histogram == 4000u);
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
