#include "engine/route/calibration.h"

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <functional>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "test/require_ok.h"
#include "test/sanitizer.h"
#include "test/test_random.h"

namespace cairn {
BOOST_AUTO_TEST_SUITE(calibration_test, *StartsNoThread())
namespace {

using Curve = CostCurves::Curve;
using Cost = std::function<double(double queries)>;  // nanoseconds

// A clock that advances only by the time charged to it.
struct FakeClock {
  double ns = 0;
  std::function<int64_t()> Reader() {
    return [this] { return static_cast<int64_t>(ns); };
  }
};

// Keys are twice their positions; each occurs `duplicates` times.
SortedRun FakeRun(size_t entries, size_t duplicates = 1) {
  std::vector<uint32_t> keys(entries);
  std::vector<RowId> rows(entries);
  for (size_t i = 0; i < entries; ++i) {
    keys[i] = static_cast<uint32_t>(2 * (i / duplicates));
    rows[i] = static_cast<RowId>(i);
  }
  return *SortedRun::FromSorted(absl::MakeConstSpan(keys), rows);
}

// An index whose operations take the time that a function returns, by the test's clock.
class FakeIndex final : public OrderedIndex {
 public:
  FakeIndex(SortedRun run, FakeClock* clock, Cost cost)
      : OrderedIndex(std::move(run)), clock_(clock), cost_(std::move(cost)) {}

  double ns_per_row = 0;     // of Find and Scan
  double noise = 0;          // the maximum error of a time, as a share
  double interrupted = 0;    // the share of batches that take another 4 ms
  bool slow_phases = false;  // twice as slow for half a millisecond in every three
  absl::Status count_status = absl::OkStatus();

  std::string description() const override { return "fake"; }
  uint64_t memory_bytes() const override { return 0; }
  absl::Status Execute(const Batch& batch) const override {
    size_t rows = 0;
    if (batch.operation == Operation::kFind) {
      rows = Look(RangeBatch::Equal(batch.keys), batch.matches);
    } else if (batch.operation == Operation::kScan) {
      rows = Look(batch.ranges, batch.matches);
    }
    Charge(batch.size(), rows);
    return batch.operation == Operation::kCount ? count_status : absl::OkStatus();
  }

 private:
  size_t Look(const RangeBatch& ranges, FindResult* matches) const {
    const auto keys = run().u32();
    matches->offsets.assign(1, 0);
    matches->row_ids.clear();
    for (size_t i = 0; i < ranges.size(); ++i) {
      const auto begin = std::lower_bound(keys.begin(), keys.end(), ranges.lower.u32()[i]);
      const uint32_t upper = ranges.upper.u32()[i];
      const auto end = ranges.upper_bound == Bound::kInclusive
                           ? std::upper_bound(begin, keys.end(), upper)
                           : std::lower_bound(begin, keys.end(), upper);
      matches->row_ids.resize(matches->row_ids.size() + static_cast<size_t>(end - begin));
      matches->offsets.push_back(matches->row_ids.size());
    }
    return matches->row_ids.size();
  }

  void Charge(size_t queries, size_t rows) const {
    std::uniform_real_distribution<double> uniform(-1, 1);
    double ns = cost_(static_cast<double>(queries)) + ns_per_row * static_cast<double>(rows);
    ns *= 1 + noise * uniform(random_);
    if (slow_phases && std::fmod(clock_->ns, 3e6) < 0.5e6) ns *= 2;
    if (uniform(random_) > 1 - 2 * interrupted) ns += 4e6;
    clock_->ns += ns;
  }

  FakeClock* clock_;
  Cost cost_;
  mutable std::mt19937_64 random_{TestSeed()};
};

Route Unbuffered(const OrderedIndex& index, bool on_gpu = false) {
  return Route("fake", &index, on_gpu, Strategy::kUnbuffered, 1);
}

CostCurves Calibrated(const Route& route, FakeClock* clock, int threads = 1) {
  CalibrationOptions options;
  options.now_ns = clock->Reader();
  options.threads = threads;
  const Route* const routes[] = {&route};
  const auto curves = RequireOk(Calibrate(routes, route.index().run(), options));
  BOOST_REQUIRE(curves.size() == 1);
  RequireOk(curves[0]);
  return *curves[0];
}

// Batches of 2^0 … 2^22 queries, and some sizes between them. Trials use only some powers of two.
std::vector<size_t> HeldOutSizes() {
  std::vector<size_t> sizes;
  for (int k = 0; k <= 22; ++k) {
    const size_t power = size_t{1} << k;
    sizes.push_back(power);
    if (k >= 2) sizes.push_back(power + power / 4);
    if (k >= 1) sizes.push_back(power + power / 2);
    if (k >= 3) sizes.push_back(power + power / 8 * 7);
  }
  return sizes;
}

struct Errors {
  double median, most;
};

// The errors of predicted times, as shares of the true ones.
Errors ErrorsOf(const CostCurves& curves, Operation operation, const Cost& truth) {
  std::vector<double> errors;
  for (const size_t queries : HeldOutSizes()) {
    const double predicted = curves.Time({operation, queries});
    const double found = truth(static_cast<double>(queries));
    errors.push_back(std::abs(predicted / found - 1));
  }
  std::sort(errors.begin(), errors.end());
  return {errors[errors.size() / 2], errors.back()};
}

// Checks the documented errors for a cost function.
void CheckDocumentedError(const char* name, const CostCurves& curves, const Cost& truth) {
  for (const Operation operation : {Operation::kFindFirst, Operation::kFind, Operation::kCount}) {
    const Errors errors = ErrorsOf(curves, operation, truth);
    BOOST_TEST_MESSAGE(name << ", " << OperationName(operation) << ": median " << errors.median
                            << ", at most " << errors.most);
    BOOST_TEST(errors.median < 0.15, name << ": " << errors.median);
  }
}

// A fixed cost, and queries that cost more when a batch and its results exceed a cache.
double CpuCost(double q) {
  return 60 + q * (14 + 11 * q / (q + 8192));
}
// A single query waits for memory; many queries wait together.
double PipelinedCost(double q) {
  return 50 + 350 * std::min(q, 8.0) / 8 + 24 * q;
}
// Ten microseconds, then chunks of 2^17.
double GpuCost(double q) {
  return 10e3 + 0.35 * q + 12e3 * std::floor(q / (1 << 17));
}
double SortCost(double q) {
  return 300 + q * (9 + 1.4 * std::log2(q + 1));
}
// Host batches, 2^24 32-bit keys, one H200, in microseconds, measured by
// Response/gpu:auto/u32/n:24/batch:…; linear between the points.
double MeasuredGpuCost(double q, bool pageable) {
  static constexpr std::pair<double, double> kPinned[] = {
      {0x1p0, 9.53},  {0x1p4, 9.85},  {0x1p8, 11.1}, {0x1p10, 11.8}, {0x1p12, 15.9}, {0x1p14, 24.1},
      {0x1p16, 41.0}, {0x1p18, 81.2}, {0x1p20, 206}, {0x1p22, 524},  {0x1p24, 1610}};
  static constexpr std::pair<double, double> kPageable[] = {
      {0x1p0, 9.57},  {0x1p4, 9.6},  {0x1p8, 11.1}, {0x1p10, 11.6}, {0x1p12, 15.8}, {0x1p14, 23.8},
      {0x1p16, 69.1}, {0x1p18, 171}, {0x1p20, 415}, {0x1p22, 1070}, {0x1p24, 3660}};
  const auto& table = pageable ? kPageable : kPinned;
  size_t i = 0;
  while (i + 2 < std::size(table) && table[i + 1].first < q) ++i;
  const auto& [a, a_us] = table[i];
  const auto& [b, b_us] = table[i + 1];
  return 1e3 * (a_us + (b_us - a_us) * (q - a) / (b - a));
}

BOOST_AUTO_TEST_CASE(held_out_batches_are_predicted_with_a_median_error_below_15_percent) {
  const std::pair<const char*, Cost> functions[] = {
      {"cpu", CpuCost},
      {"slow cpu", [](double q) { return 8 * CpuCost(q); }},
      {"pipelined", PipelinedCost},
      {"n log n", SortCost},
  };
  for (const auto& [name, cost] : functions) {
    FakeClock clock;
    const FakeIndex index(FakeRun(1 << 20), &clock, cost);
    CheckDocumentedError(name, Calibrated(Unbuffered(index), &clock), cost);
  }
}

BOOST_AUTO_TEST_CASE(so_are_batches_on_a_gpu) {
  const std::pair<const char*, Cost> functions[] = {
      {"gpu", GpuCost},
      {"pinned", [](double q) { return MeasuredGpuCost(q, false); }},
      {"pageable", [](double q) { return MeasuredGpuCost(q, true); }},
  };
  for (const auto& [name, cost] : functions) {
    FakeClock clock;
    const FakeIndex index(FakeRun(1 << 20), &clock, cost);
    CheckDocumentedError(name, Calibrated(Unbuffered(index, /*on_gpu=*/true), &clock), cost);
  }
}

BOOST_AUTO_TEST_CASE(so_are_batches_that_are_spread_over_threads) {
  for (const int threads : {2, 16, 64}) {
    // Waking threads may be cheap, or take longer than the smallest batches that are spread.
    for (const double wake_ns : {5e3, 150e3}) {
      for (const double ns_per_part : {0.0, 20e3}) {
        const Cost cost = [&](double q) {
          const double slices = std::floor(q / (1 << 14));
          const double parts = std::clamp(slices, 1.0, static_cast<double>(threads));
          if (parts == 1) return CpuCost(q);
          const double slowdown = 1 + 0.6 * (parts - 1) / (threads - 1);
          return wake_ns + ns_per_part * (parts - 2) + slowdown * CpuCost(q / parts);
        };
        FakeClock clock;
        const FakeIndex index(FakeRun(1 << 20), &clock, cost);
        CheckDocumentedError("threads", Calibrated(Unbuffered(index), &clock, threads), cost);
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(so_are_they_where_trials_are_disturbed) {
  FakeClock clock;
  FakeIndex index(FakeRun(1 << 20), &clock, CpuCost);
  index.noise = 0.1;
  index.interrupted = 0.01;
  CheckDocumentedError("disturbed", Calibrated(Unbuffered(index), &clock), CpuCost);
}

BOOST_AUTO_TEST_CASE(so_are_they_where_the_machine_is_slow_at_times) {
  for (const double phase : {0.0, 0.5e6, 1e6, 1.5e6, 2e6, 2.5e6}) {
    FakeClock clock;
    clock.ns = phase;
    FakeIndex index(FakeRun(1 << 20), &clock, CpuCost);
    index.slow_phases = true;
    CheckDocumentedError("slow phases", Calibrated(Unbuffered(index), &clock), CpuCost);
  }
}

BOOST_AUTO_TEST_CASE(trials_keep_to_their_budgets) {
  FakeClock clock;
  const SortedRun run = FakeRun(1 << 20);
  const FakeIndex on_cpu(run, &clock, CpuCost), on_gpu(run, &clock, GpuCost);
  const Route routes[] = {Unbuffered(on_cpu), Unbuffered(on_cpu), Unbuffered(on_gpu, true)};
  const Route* const pointers[] = {&routes[0], &routes[1], &routes[2]};
  for (const int budget_ms : {1, 4, 20}) {
    CalibrationOptions options;
    options.now_ns = clock.Reader();
    options.cpu_budget = absl::Milliseconds(budget_ms);
    options.gpu_budget = absl::Milliseconds(budget_ms);
    const double start = clock.ns;
    const auto curves = RequireOk(Calibrate(pointers, run, options));
    const double took = (clock.ns - start) / 1e6;
    BOOST_TEST_MESSAGE("two budgets of " << budget_ms << " ms: " << took << " ms");
    BOOST_TEST(took < 2.2 * budget_ms + 1);
    BOOST_TEST(took > (budget_ms == 20 ? 0.3 : 1.0) * budget_ms);
    for (const auto& route : curves) BOOST_TEST(route.ok());
  }
}

BOOST_AUTO_TEST_CASE(endless_disturbance_does_not_make_trials_endless) {
  FakeClock clock;
  FakeIndex index(FakeRun(1 << 16), &clock, CpuCost);
  index.interrupted = 1;
  const CostCurves curves = Calibrated(Unbuffered(index), &clock);
  BOOST_TEST(clock.ns < 300e6);
  BOOST_TEST(curves.has(Curve::kCount));
}

BOOST_AUTO_TEST_CASE(a_route_whose_single_queries_exceed_the_budget_is_still_calibrated) {
  const Cost cost = [](double q) { return 50e6 * q; };
  FakeClock clock;
  const FakeIndex index(FakeRun(1 << 16), &clock, cost);
  const CostCurves curves = Calibrated(Unbuffered(index), &clock);
  BOOST_TEST(curves.Time({Operation::kFindFirst, 1000}) == 50e9,
             boost::test_tools::tolerance(0.01));
  // Nor are batches for all threads tried there, which would take hours.
  for (const int threads : {2, 64}) {
    clock.ns = 0;
    BOOST_TEST(Calibrated(Unbuffered(index), &clock, threads).has(Curve::kPoint));
    BOOST_TEST(clock.ns < 200e9);
  }
}

BOOST_AUTO_TEST_CASE(rows_are_priced_apart_from_queries) {
  const Cost cost = [](double q) { return 100 + 30 * q; };
  for (const size_t duplicates : {1, 4, 20}) {
    FakeClock clock;
    FakeIndex index(FakeRun(1 << 20, duplicates), &clock, cost);
    index.ns_per_row = 2;
    const CostCurves curves = Calibrated(Unbuffered(index), &clock);
    BOOST_TEST(curves.rows_per_query == static_cast<double>(duplicates),
               boost::test_tools::tolerance(0.01));
    BOOST_TEST(curves.ns_per_row == 2, boost::test_tools::tolerance(0.1));
    const double rows = 1e6;
    BOOST_TEST(curves.Time({Operation::kScan, 1000, rows}) == cost(1000) + 2 * rows,
               boost::test_tools::tolerance(0.1));
  }
}

BOOST_AUTO_TEST_CASE(where_all_entries_have_one_key_a_row_costs_its_share_of_a_query) {
  FakeClock clock;
  FakeIndex index(FakeRun(2000, 2000), &clock, [](double q) { return 100 + 30 * q; });
  index.ns_per_row = 1;
  const CostCurves curves = Calibrated(Unbuffered(index), &clock);
  BOOST_TEST(curves.rows_per_query == 2000);
  BOOST_TEST(curves.ns_per_row == 1, boost::test_tools::tolerance(0.1));
}

BOOST_AUTO_TEST_CASE(a_route_that_fails_has_an_error_and_no_model_and_others_are_calibrated) {
  FakeClock clock;
  const SortedRun run = FakeRun(1 << 16);
  FakeIndex good(run, &clock, CpuCost), bad(run, &clock, GpuCost);
  bad.count_status = absl::ResourceExhaustedError("no device memory");
  const Route routes[] = {Unbuffered(bad, true), Unbuffered(good)};
  const Route* const pointers[] = {&routes[0], &routes[1]};
  CalibrationOptions options;
  options.now_ns = clock.Reader();
  const auto curves = RequireOk(Calibrate(pointers, run, options));
  BOOST_REQUIRE(curves.size() == 2);
  BOOST_TEST(absl::IsResourceExhausted(curves[0].status()));
  RequireOk(curves[1]);
  BOOST_TEST(curves[1]->has(Curve::kCount));
}

BOOST_AUTO_TEST_CASE(empty_and_tiny_runs_are_calibrated) {
  for (const size_t entries : {0, 1, 2, 100}) {
    FakeClock clock;
    const FakeIndex index(FakeRun(entries), &clock, CpuCost);
    CheckDocumentedError("tiny", Calibrated(Unbuffered(index), &clock), CpuCost);
  }
}

BOOST_AUTO_TEST_CASE(no_routes_give_no_curves) {
  const auto curves = RequireOk(Calibrate({}, FakeRun(10), {}));
  BOOST_TEST(curves.empty());
}

BOOST_AUTO_TEST_CASE(the_real_clock_is_the_default) {
  FakeClock clock;
  const FakeIndex index(FakeRun(1 << 10), &clock, CpuCost);
  const Route route = Unbuffered(index);
  const Route* const routes[] = {&route};
  const auto curves = Calibrate(routes, index.run(), {});
  BOOST_REQUIRE(curves.ok() && (*curves)[0].ok());
  const double one = (*curves)[0]->Time({Operation::kFindFirst, 1});
  BOOST_TEST(one > 0);
  BOOST_TEST(one < 1e6);
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
