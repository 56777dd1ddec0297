#include <algorithm>
#include <atomic>
#include <boost/test/unit_test.hpp>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/time/clock.h"
#include "cairn/batcher.h"
#include "test/engine/batch/fake_index.h"
#include "test/engine/batch/polled_batcher.h"
#include "test/test_random.h"

// A Batcher with many threads: every accepted request gets one result, which is correct.

namespace cairn {
BOOST_AUTO_TEST_SUITE(batcher_load_test)
namespace {

using Callers = BatcherOptions::Callers;
using WhenFull = BatcherOptions::WhenFull;

constexpr size_t kThreads = 64;
constexpr uint32_t kKeys = 2100;  // queried; the index has 0, 2, … 1998

void OnThreads(const std::function<void(size_t thread)>& body) {
  std::vector<std::thread> threads;
  for (size_t t = 0; t < kThreads; ++t) threads.emplace_back(body, t);
  for (std::thread& thread : threads) thread.join();
}

// The results of FakeIndex::OfNumbers.
std::vector<RowId> Rows(uint32_t key) {
  std::vector<RowId> rows;
  if (key % 2 != 0 || key >= 2000) return rows;
  for (uint32_t j = 0; j <= key / 2 % 3; ++j) rows.push_back(5 * key + j);
  return rows;
}

// The requests of one thread, each for one query, of all operations, with the number and the
// correctness of their results. A cookie is the request's position.
struct Ledger {
  struct Request {
    Operation operation;
    uint32_t key, end;
    std::atomic<int> answers{0};
    Request(Operation operation, uint32_t key, uint32_t end)
        : operation(operation), key(key), end(end) {}
  };
  std::vector<std::unique_ptr<Request>> requests;
  std::atomic<size_t> answered{0};
  std::atomic<int> wrong{0};

  explicit Ledger(size_t count, uint64_t salt) {
    auto random = std::mt19937_64(TestSeed() + salt);
    for (size_t i = 0; i < count; ++i) {
      const auto operation = static_cast<Operation>(random() % kIndexOperations);
      const auto key = static_cast<uint32_t>(random() % kKeys);
      requests.push_back(
          std::make_unique<Request>(operation, key, key + static_cast<uint32_t>(random() % 20)));
    }
  }

  absl::Status Submit(Batcher* batcher, size_t i, absl::Time deadline) {
    const Request& request = *requests[i];
    const Batcher::Key key(request.key), end(request.end);
    const Batcher::Request how{{&Receive, this}, i, deadline};
    if (request.operation == Operation::kCount || request.operation == Operation::kScan) {
      return batcher->Submit(request.operation, RangeBatch::HalfOpen(key.batch(), end.batch()), {},
                             how);
    }
    return batcher->Submit(request.operation, key.batch(), how);
  }

  static void Receive(void* context, const Batcher::Answers& answers) {
    auto& ledger = *static_cast<Ledger*>(context);
    for (size_t i = 0; i < answers.cookies.size(); ++i) {
      Request& request = *ledger.requests[answers.cookies[i]];
      if (!Right(request, answers, i)) ++ledger.wrong;
      ++request.answers;
    }
    ledger.answered += answers.cookies.size();
  }

  static bool Right(const Request& request, const Batcher::Answers& answers, size_t i) {
    if (!answers.status.ok() || answers.operation != request.operation) return false;
    std::vector<RowId> in_range;
    for (uint32_t key = request.key; key < request.end; ++key) {
      const std::vector<RowId> rows = Rows(key);
      in_range.insert(in_range.end(), rows.begin(), rows.end());
    }
    const std::vector<RowId> rows = Rows(request.key);
    switch (request.operation) {
      case Operation::kFindFirst:
        return answers.row_ids[i] == (rows.empty() ? kNoRow : rows[0]);
      case Operation::kContains:
        return answers.found[i] == !rows.empty();
      case Operation::kFind:
        return (*answers.matches)[answers.first + i] == absl::MakeConstSpan(rows);
      case Operation::kCount:
        return answers.counts[i] == in_range.size();
      case Operation::kScan:
        return (*answers.matches)[answers.first + i] == absl::MakeConstSpan(in_range);
      default:
        return false;
    }
  }

  // Checks that the accepted requests are those in `accepted`.
  void Check(const std::function<bool(size_t)>& accepted) const {
    BOOST_TEST(wrong == 0);
    for (size_t i = 0; i < requests.size(); ++i) {
      if (requests[i]->answers != (accepted(i) ? 1 : 0)) {
        BOOST_FAIL("request " << i << " was answered " << requests[i]->answers << " times");
      }
    }
  }
};

BOOST_AUTO_TEST_CASE(sixty_four_threads_get_their_answers_once_and_right) {
  FakeIndex index = FakeIndex::OfNumbers();
  index.time = [](Operation, size_t queries) {
    return absl::Microseconds(2) + absl::Nanoseconds(50) * static_cast<int64_t>(queries);
  };
  index.best_batch = 256;
  for (const Callers callers : {Callers::kHelp, Callers::kNever}) {
    for (const size_t max_waiting : {size_t{16}, size_t{1} << 16}) {
      BatcherOptions options;
      options.callers = callers;
      options.max_waiting = max_waiting;
      options.threads = 2;
      std::vector<std::unique_ptr<Ledger>> ledgers;
      for (size_t t = 0; t < kThreads; ++t) ledgers.push_back(std::make_unique<Ledger>(400, t));
      const auto batcher = Make(index, options);
      std::atomic<int> refused = 0;
      OnThreads([&](size_t t) {
        auto random = std::mt19937_64(t);
        for (size_t i = 0; i < ledgers[t]->requests.size(); ++i) {
          const absl::Time deadline = random() % 2 == 0
                                          ? Batcher::kNoDeadline
                                          : absl::Now() + absl::Microseconds(random() % 3000);
          if (!ledgers[t]->Submit(batcher.get(), i, deadline).ok()) ++refused;
        }
      });
      batcher->Flush();
      BOOST_TEST(refused == 0);
      for (const auto& ledger : ledgers) ledger->Check([](size_t) { return true; });
      uint64_t queries = 0, late = 0, reasons = 0, batches = 0;
      for (const auto& requests : batcher->Stats().operations) {
        queries += requests.queries;
        late += requests.late;
        batches += requests.batches;
        reasons += requests.full + requests.due + requests.idle + requests.flushed;
      }
      BOOST_TEST(queries == kThreads * 400);
      BOOST_TEST(late <= queries);
      BOOST_TEST(reasons == batches);
    }
  }
}

BOOST_AUTO_TEST_CASE(groups_of_sixty_four_threads_wait_for_their_own) {
  FakeIndex index = FakeIndex::OfNumbers();
  index.time = [](Operation, size_t queries) {
    return absl::Nanoseconds(100) * static_cast<int64_t>(queries);
  };
  index.best_batch = 64;
  for (const Callers callers : {Callers::kHelp, Callers::kNever}) {
    BatcherOptions options;
    options.callers = callers;
    const auto batcher = Make(index, options);
    std::atomic<int> wrong = 0;
    OnThreads([&](size_t t) {
      auto random = std::mt19937_64(t);
      Batcher::Group<Operation::kFind> group(batcher.get(), 200);
      for (int round = 0; round < 20; ++round) {
        std::vector<uint32_t> keys;
        for (size_t i = random() % 200; i > 0; --i) {
          keys.push_back(static_cast<uint32_t>(random() % kKeys));
        }
        for (uint32_t key : keys) wrong += !group.Add(key).ok();
        wrong += !group.Wait().ok();
        for (size_t i = 0; i < keys.size(); ++i) wrong += group.answers()[i] != Rows(keys[i]);
        group.Clear();
      }
    });
    BOOST_TEST(wrong == 0);
  }
}

BOOST_AUTO_TEST_CASE(futures_of_sixty_four_threads_come) {
  FakeIndex index = FakeIndex::OfNumbers();
  BatcherOptions options;
  options.default_deadline = absl::Microseconds(200);
  const auto batcher = Make(index, options);
  std::atomic<int> wrong = 0;
  OnThreads([&](size_t t) {
    for (uint32_t i = 0; i < 40; ++i) {
      const auto key = static_cast<uint32_t>(i * kThreads + t) % kKeys;
      const auto rows = batcher->Find(key).get();
      wrong += !rows.ok() || *rows != Rows(key);
    }
  });
  BOOST_TEST(wrong == 0);
}

BOOST_AUTO_TEST_CASE(shutdown_in_the_middle_answers_all_that_was_accepted) {
  FakeIndex index = FakeIndex::OfNumbers();
  for (int round = 0; round < 8; ++round) {
    BatcherOptions options;
    options.callers = round % 2 == 0 ? Callers::kHelp : Callers::kNever;
    options.max_waiting = round % 4 < 2 ? 8 : 1 << 16;  // also with threads that wait for room
    const auto batcher = Make(index, options);
    std::vector<std::unique_ptr<Ledger>> ledgers;
    for (size_t t = 0; t < kThreads; ++t) ledgers.push_back(std::make_unique<Ledger>(300, t));
    std::vector<size_t> accepted(kThreads, 0);
    std::atomic<size_t> submitted = 0;
    std::atomic<int> other_errors = 0;
    std::atomic<size_t> unanswered = 0;
    std::thread stops([&] {
      while (submitted < kThreads * 20) std::this_thread::yield();
      batcher->Shutdown();
      // All requests are completed when it returns.
      const BatcherStats stats = batcher->Stats();
      unanswered += stats.waiting;
    });
    OnThreads([&](size_t t) {
      for (size_t& i = accepted[t]; i < ledgers[t]->requests.size(); ++i) {
        const absl::Status s = ledgers[t]->Submit(batcher.get(), i, Batcher::kNoDeadline);
        if (absl::IsFailedPrecondition(s)) break;
        if (!s.ok()) ++other_errors;
        ++submitted;
      }
    });
    stops.join();
    BOOST_TEST(other_errors == 0);
    BOOST_TEST(unanswered == 0u);
    for (size_t t = 0; t < kThreads; ++t) {
      ledgers[t]->Check([&](size_t i) { return i < accepted[t]; });
    }
  }
}

BOOST_AUTO_TEST_CASE(a_thread_without_room_sleeps_until_there_is_some) {
  FakeIndex index = FakeIndex::OfNumbers();
  BatcherOptions options;
  options.threads = 0;
  options.callers = Callers::kNever;
  options.max_waiting = 1;
  const auto batcher = Make(index, options);
  auto first = batcher->FindFirst(uint32_t{2});
  std::atomic<bool> accepted = false;
  Batcher::Future<RowId> second;
  std::thread asks([&] {
    second = batcher->FindFirst(uint32_t{4});
    accepted = true;
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  BOOST_TEST(!accepted);
  batcher->Flush();
  asks.join();
  BOOST_TEST(*first.get() == 10u);
  batcher->Flush();
  BOOST_TEST(*second.get() == 20u);
}

BOOST_AUTO_TEST_CASE(flush_returns_when_what_others_run_is_answered_too) {
  FakeIndex index = FakeIndex::OfNumbers();
  BatcherOptions options;
  options.best_batch = 1;
  const auto batcher = Make(index, options);
  index.waits = true;
  std::atomic<bool> answered = false, flushed = false;
  std::thread asks([&] {  // and runs its batch, which waits
    batcher->FindFirst(uint32_t{2}, Batcher::kNoDeadline,
                       [&](absl::StatusOr<RowId>) { answered = true; });
  });
  while (index.calls().empty()) std::this_thread::yield();
  std::thread flushes([&] {
    batcher->Flush();
    flushed = true;
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  BOOST_TEST(!flushed);
  index.waits = false;
  flushes.join();
  BOOST_TEST(answered);
  asks.join();
}

BOOST_AUTO_TEST_CASE(a_flood_of_one_operation_starves_no_other) {
  FakeIndex index = FakeIndex::OfNumbers();
  index.time = [](Operation, size_t queries) {
    return absl::Nanoseconds(200) * static_cast<int64_t>(queries);
  };
  index.best_batch = 64;
  const auto batcher = Make(index, BatcherOptions());
  std::atomic<bool> stop = false;
  std::vector<std::thread> floods;
  for (int i = 0; i < 4; ++i) {
    floods.emplace_back([&] {
      const uint32_t key = 2;
      while (!stop) {
        batcher
            ->Submit(Operation::kFindFirst, KeyBatch(absl::MakeConstSpan(&key, 1)),
                     {{[](void*, const Batcher::Answers&) {}, nullptr}})
            .IgnoreError();
      }
    });
  }
  const Batcher::Key lower(uint32_t{0}), upper(uint32_t{6});
  int wrong = 0;
  for (int i = 0; i < 50; ++i) {
    const auto count = batcher->Count(RangeBatch::HalfOpen(lower.batch(), upper.batch())).get();
    wrong += !count.ok() || *count != 6u;
  }
  stop = true;
  for (std::thread& flood : floods) flood.join();
  BOOST_TEST(wrong == 0);
}

// No claim about speed: the bound only fails a batcher that forgets its deadlines.
BOOST_AUTO_TEST_CASE(deadlines_are_met_under_load) {
  FakeIndex index = FakeIndex::OfNumbers();
  index.time = [](Operation, size_t queries) {
    return absl::Nanoseconds(100) * static_cast<int64_t>(queries);
  };
  BatcherOptions options;
  options.default_deadline = absl::Milliseconds(20);
  options.best_batch = 1 << 16;  // never reached
  const auto batcher = Make(index, options);
  std::atomic<int> in_time = 0;
  OnThreads([&](size_t t) {
    for (uint32_t i = 0; i < 10; ++i) {
      const auto begin = std::chrono::steady_clock::now();
      const auto key = static_cast<uint32_t>(i * kThreads + t) % kKeys;
      if (!batcher->FindFirst(key).get().ok()) continue;
      in_time += std::chrono::steady_clock::now() - begin < std::chrono::milliseconds(500);
    }
  });
  BOOST_TEST(in_time >= static_cast<int>(kThreads) * 9);
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
