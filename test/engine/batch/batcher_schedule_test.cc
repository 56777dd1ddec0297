#include "engine/batch/batcher_schedule.h"

#include <boost/test/unit_test.hpp>
#include <vector>

#include "cairn/batcher.h"
#include "test/engine/batch/fake_index.h"
#include "test/engine/batch/polled_batcher.h"
#include "test/require_ok.h"
#include "test/test_random.h"

// The times at which a Batcher sends batches, by a clock that the tests advance.

namespace cairn {
BOOST_AUTO_TEST_SUITE(batcher_schedule_test)
namespace {

using Callers = BatcherOptions::Callers;

// A time model: `fixed` per batch plus `each` per query.
auto LinearTime(absl::Duration fixed, absl::Duration each) {
  return [=](Operation, size_t queries) { return fixed + static_cast<int64_t>(queries) * each; };
}

absl::Time After(const FakeClock& clock, absl::Duration time) {
  return clock.Now() + time;
}

template <typename T>
bool IsReady(const std::future<T>& future) {
  return future.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
}

const auto& OfOperation(const BatcherStats& stats, Operation operation) {
  return stats.operations[static_cast<size_t>(operation)];
}

BOOST_AUTO_TEST_CASE(a_batch_goes_when_its_earliest_deadline_allows_no_more) {
  FakeClock clock;
  FakeIndex index = FakeIndex::OfNumbers();
  index.clock = &clock;
  index.time = LinearTime(absl::Microseconds(10), absl::Microseconds(1));
  index.best_batch = 100;
  const auto batcher = Make(index, Polled(&clock));
  BOOST_TEST((batcher->Poll() == absl::InfiniteFuture()));

  const absl::Time earliest = After(clock, absl::Milliseconds(2));
  const auto a = batcher->FindFirst(uint32_t{2}, After(clock, absl::Milliseconds(5)));
  const auto b = batcher->FindFirst(uint32_t{4}, earliest);
  const auto c = batcher->FindFirst(uint32_t{6}, After(clock, absl::Milliseconds(3)));
  const absl::Duration overhead = batcher->Stats().dispatch_overhead;
  const absl::Time due = earliest - (absl::Microseconds(13) + overhead);

  // Poll returns the time of the next call: first early enough for a whole batch to join, then
  // exact.
  absl::Time next = batcher->Poll();
  BOOST_TEST((next < due && next > clock.Now()));
  for (int steps = 0; next < due && steps < 10; ++steps) {
    clock.Set(next);
    next = batcher->Poll();
  }
  BOOST_TEST((next == due));
  clock.Set(due - absl::Nanoseconds(1));
  BOOST_TEST((batcher->Poll() == due));
  BOOST_TEST(index.calls().empty());
  clock.Set(due);
  BOOST_TEST((batcher->Poll() == absl::InfiniteFuture()));

  BOOST_REQUIRE(index.calls().size() == 1u);
  const FakeIndex::Call call = index.calls()[0];
  BOOST_TEST(call.queries == 3u);
  BOOST_TEST((call.latency_target == absl::Microseconds(13) + overhead));
  BOOST_TEST((IsReady(a) && IsReady(b) && IsReady(c)));
  const BatcherStats stats = batcher->Stats();
  BOOST_TEST(OfOperation(stats, Operation::kFindFirst).due == 1u);
  BOOST_TEST(OfOperation(stats, Operation::kFindFirst).late == 0u);
  BOOST_TEST((OfOperation(stats, Operation::kFindFirst).busy == absl::Microseconds(13)));
}

BOOST_AUTO_TEST_CASE(without_a_deadline_the_response_time_counts_from_the_first_request_on) {
  FakeClock clock;
  FakeIndex index = FakeIndex::OfNumbers();
  BatcherOptions options = Polled(&clock);
  options.default_deadline = absl::Milliseconds(4);
  const auto batcher = Make(index, options);
  const absl::Time deadline = After(clock, absl::Milliseconds(4));
  const auto first = batcher->FindFirst(uint32_t{2});
  clock.Advance(absl::Milliseconds(1));
  const auto second = batcher->FindFirst(uint32_t{4});
  const absl::Time due = deadline - batcher->Stats().dispatch_overhead;
  BOOST_TEST((batcher->Poll() == due));
  clock.Set(due);
  batcher->Poll();
  BOOST_TEST((IsReady(first) && IsReady(second)));
  const auto waited =
      OfOperation(batcher->Stats(), Operation::kFindFirst).waiting_times;  // just under 4 ms
  BOOST_TEST(waited[12] == 1u);
}

BOOST_AUTO_TEST_CASE(a_best_batch_goes_at_once) {
  for (const Callers callers : {Callers::kNever, Callers::kHelp}) {
    FakeClock clock;
    FakeIndex index = FakeIndex::OfNumbers();
    BatcherOptions options = Polled(&clock);
    options.callers = callers;
    options.best_batch = 8;
    const auto batcher = Make(index, options);
    std::vector<Batcher::Future<RowId>> futures;
    for (uint32_t i = 0; i < 7; ++i) futures.push_back(batcher->FindFirst(i));
    batcher->Poll();
    BOOST_TEST(index.calls().empty());
    BOOST_TEST(batcher->Stats().waiting == 7u);
    futures.push_back(batcher->FindFirst(uint32_t{7}));
    // The helping caller has executed it before it returned.
    BOOST_TEST(IsReady(futures[0]) == (callers == Callers::kHelp));
    batcher->Poll();
    BOOST_REQUIRE(index.calls().size() == 1u);
    BOOST_TEST(index.calls()[0].queries == 8u);
    for (uint32_t i = 0; i < 8; ++i) {
      BOOST_TEST(*futures[i].get() == (i % 2 == 0 ? 5 * i : kNoRow));
    }
    BOOST_TEST(OfOperation(batcher->Stats(), Operation::kFindFirst).full == 1u);
    BOOST_TEST(batcher->Stats().waiting == 0u);
  }
}

BOOST_AUTO_TEST_CASE(the_best_batch_is_the_cost_models_within_the_time_of_a_batch) {
  FakeClock clock;
  FakeIndex index = FakeIndex::OfNumbers();
  const auto sent_at = [&](absl::Duration default_deadline) {
    BatcherOptions options = Polled(&clock);
    options.default_deadline = default_deadline;
    options.max_waiting = 1 << 20;
    const auto batcher = Make(index, options);
    const size_t before = index.calls().size();
    for (uint32_t i = 0; index.calls().size() == before && i < 100000; ++i) {
      RequireOk(batcher->Submit(Operation::kFindFirst, KeyBatch(absl::MakeConstSpan(&i, 1)),
                                {{[](void*, const Batcher::Answers&) {}, nullptr}, 0}));
      batcher->Poll();
    }
    return index.calls().back().queries;
  };
  // With a fixed cost of 9.5 us, the batcher's own 11 us, and 100 ns per query, a batch of 990
  // queries has 90% of the maximum throughput.
  index.time = LinearTime(absl::Microseconds(9.5), absl::Nanoseconds(100));
  index.best_batch = 1 << 14;
  BOOST_TEST(sent_at(absl::Milliseconds(100)) == 1024u);
  // A sixteenth of the response time has room for 128 queries: 22.3 us of 31.
  BOOST_TEST(sent_at(absl::Microseconds(500)) == 128u);
  // The model's best batch size is never exceeded.
  index.best_batch = 64;
  BOOST_TEST(sent_at(absl::Milliseconds(100)) == 64u);
  // A query that takes longer than the limit of a batch is sent alone.
  index.time = LinearTime(absl::ZeroDuration(), absl::Milliseconds(1));
  BOOST_TEST(sent_at(absl::Milliseconds(1)) == 1u);
}

BOOST_AUTO_TEST_CASE(a_deadline_that_has_passed_is_served_at_once) {
  for (const Callers callers : {Callers::kNever, Callers::kHelp}) {
    FakeClock clock;
    FakeIndex index = FakeIndex::OfNumbers();
    BatcherOptions options = Polled(&clock);
    options.callers = callers;
    const auto batcher = Make(index, options);
    for (const absl::Time deadline :
         {clock.Now(), After(clock, -absl::Hours(1)), absl::Time(), absl::InfinitePast()}) {
      const auto future = batcher->Contains(uint32_t{2}, deadline);
      if (callers == Callers::kNever) batcher->Poll();
      BOOST_TEST(IsReady(future));
    }
    BOOST_TEST(index.calls().back().latency_target == absl::ZeroDuration());
    // It was late when it arrived, but the first was not.
    BOOST_TEST(OfOperation(batcher->Stats(), Operation::kContains).late == 3u);
  }
}

BOOST_AUTO_TEST_CASE(operations_take_turns_by_the_time_that_they_take) {
  FakeClock clock;
  FakeIndex index = FakeIndex::OfNumbers();
  index.clock = &clock;
  index.time = [](Operation operation, size_t queries) {
    const int64_t each = operation == Operation::kCount ? 30 : 10;
    return absl::Microseconds(each * static_cast<int64_t>(queries));
  };
  BatcherOptions options = Polled(&clock);
  options.best_batch = 64;
  options.default_deadline = absl::Seconds(1);
  const auto batcher = Make(index, options);
  const uint32_t key = 2, end = 10;
  const KeyBatch keys(absl::MakeConstSpan(&key, 1));
  const RangeBatch range = RangeBatch::HalfOpen(keys, KeyBatch(absl::MakeConstSpan(&end, 1)));
  const Batcher::Request ignored{{[](void*, const Batcher::Answers&) {}, nullptr}};
  for (int i = 0; i < 6400; ++i) {
    RequireOk(batcher->Submit(Operation::kFindFirst, keys, ignored));
    RequireOk(batcher->Submit(Operation::kCount, range, {}, ignored));
  }
  batcher->Poll();

  // While both have work, neither has used the index for longer than the other by more than a
  // batch.
  const std::vector<FakeIndex::Call> calls = index.calls();
  BOOST_REQUIRE(calls.size() == 200u);
  const absl::Duration batch = index.time(Operation::kCount, 64);
  absl::Duration points, ranges;
  int point_batches = 0;
  for (const FakeIndex::Call& call : calls) {
    if (call.operation == Operation::kCount) {
      ranges += index.time(call.operation, call.queries);
    } else {
      points += index.time(call.operation, call.queries);
      ++point_batches;
    }
    if (point_batches == 100) break;
    if (absl::AbsDuration(points - ranges) > batch) BOOST_FAIL("one operation waits for the other");
  }
  BOOST_TEST((ranges >= points - batch));
}

BOOST_AUTO_TEST_CASE(an_operation_that_nobody_asked_for_gets_no_more_than_a_few_turns_for_it) {
  FakeClock clock;
  FakeIndex index = FakeIndex::OfNumbers();
  index.clock = &clock;
  index.time = LinearTime(absl::ZeroDuration(), absl::Microseconds(1));
  BatcherOptions options = Polled(&clock);
  options.best_batch = 64;
  options.max_batch_time = absl::Microseconds(64);
  const auto batcher = Make(index, options);
  const uint32_t key = 2;
  const KeyBatch keys(absl::MakeConstSpan(&key, 1));
  const Batcher::Request ignored{{[](void*, const Batcher::Answers&) {}, nullptr}};
  const auto submit = [&](Operation operation, int batches) {
    for (int i = 0; i < 64 * batches; ++i) {
      if (!batcher->Submit(operation, keys, ignored).ok()) BOOST_FAIL("not accepted");
    }
  };
  submit(Operation::kFindFirst, 100);
  batcher->Poll();
  submit(Operation::kContains, 50);
  submit(Operation::kFindFirst, 50);
  batcher->Poll();
  int contains = 0;  // batches before the next of FindFirst
  const std::vector<FakeIndex::Call> calls = index.calls();
  for (size_t i = 100; calls[i].operation == Operation::kContains; ++i) ++contains;
  BOOST_TEST(contains >= 3);
  BOOST_TEST(contains <= 5);
}

BOOST_AUTO_TEST_CASE(an_estimate_is_what_nearly_all_measurements_stay_below) {
  BatcherEstimate estimate(1'000'000);
  auto random = TestRandom();
  // Up to 10,000, with one outlier in a thousand, whose size must not matter.
  for (int i = 0; i < 100'000; ++i) {
    const auto measured = static_cast<BatcherNanos>(random() % 10'000);
    estimate.Observe(i % 1000 == 0 ? BatcherNanos{1} << 40 : measured);
  }
  BOOST_TEST(estimate.Get() > 8'000);
  BOOST_TEST(estimate.Get() < 14'000);
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
