#include <boost/test/unit_test.hpp>
#include <chrono>
#include <string>
#include <vector>

#include "cairn/batcher.h"
#include "test/engine/batch/fake_index.h"
#include "test/engine/batch/polled_batcher.h"

// Requests that a Batcher rejects, and requests for which it has no room.

namespace cairn {
BOOST_AUTO_TEST_SUITE(batcher_refusals_test)
namespace {

using Callers = BatcherOptions::Callers;
using WhenFull = BatcherOptions::WhenFull;

BOOST_AUTO_TEST_CASE(what_cannot_be_asked_is_refused_and_poisons_no_batch) {
  FakeIndex index = FakeIndex::OfNumbers();
  BatcherOptions options = Polled();
  options.max_waiting = 10;
  const auto batcher = Make(index, options);
  const auto good = batcher->FindFirst(uint32_t{2});
  BOOST_CHECK(absl::IsInvalidArgument(batcher->FindFirst(uint64_t{2}).get().status()));
  BOOST_CHECK(absl::IsInvalidArgument(batcher->Contains("2").get().status()));
  BOOST_CHECK(absl::IsInvalidArgument(batcher->Find("2").get().status()));
  BOOST_CHECK(
      absl::IsInvalidArgument(batcher->Count(Range(uint64_t{1}, uint64_t{2})).get().status()));
  BOOST_CHECK(absl::IsInvalidArgument(batcher->Scan(RangeBatch()).get().status()));
  const uint32_t two[] = {1, 2};
  BOOST_CHECK(absl::IsInvalidArgument(batcher->Count(RangeBatch::Equal(two)).get().status()));
  const Batcher::Key lower(two[0]), upper(two[1]);
  RangeBatch prefix = Range(lower, upper);
  prefix.upper_bound = Bound::kPrefix;  // numbers have none
  BOOST_CHECK(absl::IsInvalidArgument(batcher->Scan(prefix).get().status()));
  RangeBatch goes_on = Range(lower, upper);
  const std::string cursor = "no cursor";
  goes_on.after = absl::MakeConstSpan(&cursor, 1);
  BOOST_CHECK(absl::IsInvalidArgument(batcher->Scan(goes_on).get().status()));
  QueryOptions with_columns;
  with_columns.columns = {"price"};
  BOOST_CHECK(
      absl::IsInvalidArgument(batcher->Scan(Range(lower, upper), with_columns).get().status()));

  const Batcher::Request request{{&Ignore, nullptr}};
  BOOST_CHECK(absl::IsInvalidArgument(batcher->Submit(Operation::kCount, KeyBatch(two), request)));
  BOOST_CHECK(absl::IsInvalidArgument(
      batcher->Submit(Operation::kFind, Range(uint32_t{1}, uint32_t{2}), {}, request)));
  BOOST_CHECK(absl::IsInvalidArgument(
      batcher->Submit(Operation::kFind, KeyBatch(two), Batcher::Request())));
  const std::vector<uint32_t> many(11);
  BOOST_CHECK(absl::IsInvalidArgument(batcher->Submit(Operation::kFind, KeyBatch(many), request)));

  BOOST_TEST(batcher->Stats().waiting == 1u);
  batcher->Flush();
  BOOST_TEST(index.calls().size() == 1u);
  BOOST_CHECK(const_cast<Batcher::Future<RowId>&>(good).get().ok());
}

BOOST_AUTO_TEST_CASE(options_that_make_no_sense_are_refused) {
  FakeIndex index = FakeIndex::OfNumbers();
  FakeClock clock;
  const auto refuses = [&](auto change) {
    BatcherOptions options;
    change(options);
    return absl::IsInvalidArgument(Batcher::Make(&index, options).status());
  };
  BOOST_TEST(refuses([](BatcherOptions& o) { o.default_deadline = absl::ZeroDuration(); }));
  BOOST_TEST(refuses([](BatcherOptions& o) { o.default_deadline = absl::InfiniteDuration(); }));
  BOOST_TEST(refuses([](BatcherOptions& o) { o.max_batch_time = -absl::Seconds(1); }));
  BOOST_TEST(refuses([](BatcherOptions& o) { o.max_waiting = 0; }));
  BOOST_TEST(refuses([](BatcherOptions& o) { o.threads = -1; }));
  BOOST_TEST(refuses([](BatcherOptions& o) { o.shards = -1; }));
  BOOST_TEST(refuses([&](BatcherOptions& o) { o.clock = &clock; }));
}

BOOST_AUTO_TEST_CASE(where_there_is_no_room_a_request_is_rejected) {
  FakeIndex index = FakeIndex::OfNumbers();
  BatcherOptions options = Polled();
  options.max_waiting = 4;
  options.when_full = WhenFull::kReject;
  const auto batcher = Make(index, options);
  std::vector<Batcher::Future<RowId>> futures;
  for (uint32_t i = 0; i < 6; ++i) futures.push_back(batcher->FindFirst(i));
  for (size_t i = 4; i < 6; ++i) {
    BOOST_CHECK(absl::IsResourceExhausted(futures[i].get().status()));
  }
  BOOST_TEST(batcher->Stats().rejected == 2u);
  BOOST_TEST(batcher->Stats().waiting == 4u);
  batcher->Flush();
  for (size_t i = 0; i < 4; ++i) BOOST_CHECK(futures[i].get().ok());
  BOOST_CHECK(
      batcher
          ->Submit(Operation::kFindFirst, Batcher::Key(uint32_t{1}).batch(), {{&Ignore, nullptr}})
          .ok());
  // A group gets the error when it waits.
  Batcher::Group<Operation::kFindFirst> group(batcher.get(), 4);
  for (uint32_t i = 0; i < 4; ++i) BOOST_CHECK(group.Add(i).ok());
  BOOST_CHECK(absl::IsResourceExhausted(group.Wait()));
}

BOOST_AUTO_TEST_CASE(a_caller_that_finds_no_room_helps) {
  FakeIndex index = FakeIndex::OfNumbers();
  const FakeClock clock;  // never advances, so nothing is due, however slow this thread is
  BatcherOptions options = Polled(&clock);
  options.callers = Callers::kHelp;
  options.max_waiting = 4;
  const auto batcher = Make(index, options);
  std::vector<Batcher::Future<RowId>> futures;
  for (uint32_t i = 0; i < 9; ++i) futures.push_back(batcher->FindFirst(i));
  BOOST_TEST(index.calls().size() == 2u);
  BOOST_TEST(batcher->Stats().operations[0].idle == 2u);
  BOOST_TEST(batcher->Stats().waiting == 1u);
  batcher->Flush();
  for (uint32_t i = 0; i < 9; ++i) BOOST_TEST(*futures[i].get() == (i % 2 == 0 ? 5 * i : kNoRow));
}

BOOST_AUTO_TEST_CASE(what_a_receiver_submits_neither_nests_nor_waits) {
  FakeIndex index = FakeIndex::OfNumbers();
  const FakeClock clock;
  BatcherOptions options = Polled(&clock);
  options.callers = Callers::kHelp;
  options.best_batch = 2;
  options.max_waiting = 3;
  const auto batcher = Make(index, options);
  struct Asker {
    Batcher* batcher;
    bool receiving = false;
    int answers = 0;
    std::vector<absl::Status> submitted;

    static void Receive(void* context, const Batcher::Answers& batch) {
      auto& asker = *static_cast<Asker*>(context);
      if (asker.receiving) BOOST_FAIL("a batch inside of a batch");
      asker.receiving = true;
      asker.answers += static_cast<int>(batch.cookies.size());
      if (asker.submitted.empty()) {
        for (int i = 0; i < 5; ++i) asker.submitted.push_back(asker.Submit());
      }
      asker.receiving = false;
    }
    absl::Status Submit() {
      return batcher->Submit(Operation::kFindFirst, Batcher::Key(uint32_t{1}).batch(),
                             {{&Receive, this}});
    }
  };
  Asker asker{batcher.get(), false, 0, {}};
  BOOST_CHECK(asker.Submit().ok());
  BOOST_CHECK(asker.Submit().ok());
  BOOST_TEST(asker.answers == 2);
  BOOST_REQUIRE(asker.submitted.size() == 5u);
  for (int i = 0; i < 5; ++i) {
    BOOST_TEST((i < 3 ? asker.submitted[i].ok() : absl::IsResourceExhausted(asker.submitted[i])));
  }
  batcher->Flush();
  BOOST_TEST(asker.answers == 5);
}

BOOST_AUTO_TEST_CASE(shutdown_answers_what_was_accepted_and_refuses_the_rest) {
  FakeIndex index = FakeIndex::OfNumbers();
  const auto batcher = Make(index, Polled());
  auto before = batcher->FindFirst(uint32_t{2});
  batcher->Shutdown();
  BOOST_TEST(*before.get() == 10u);
  BOOST_CHECK(absl::IsFailedPrecondition(batcher->FindFirst(uint32_t{2}).get().status()));
  bool called = false;
  batcher->Find(uint32_t{2}, Batcher::kNoDeadline, [&](absl::StatusOr<std::vector<RowId>> rows) {
    called = absl::IsFailedPrecondition(rows.status());
  });
  BOOST_TEST(called);
  batcher->Shutdown();
  batcher->Flush();
  BOOST_TEST((batcher->Poll() == absl::InfiniteFuture()));
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
