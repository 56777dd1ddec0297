#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <csignal>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "cairn/ordered_index.h"
#include "gpu/device_memory.h"
#include "gpu/gpu_index.h"
#include "gpu/injected_failure.h"
#include "gpu/query_context.h"
#include "gpu/stream.h"
#include "test/gpu/device_faults.h"
#include "test/gpu/needs_device.h"
#include "test/test_random.h"

namespace cairn::gpu {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using std::chrono::steady_clock;

// ---- An index, and what is asked of it

// Key 2 i has row i.
constexpr size_t kEntries = size_t{1} << 16;

SortedRun Run() {
  std::vector<uint32_t> keys(kEntries);
  std::vector<RowId> rows(kEntries);
  for (size_t i = 0; i < kEntries; ++i) {
    keys[i] = static_cast<uint32_t>(2 * i);
    rows[i] = static_cast<RowId>(i);
  }
  return *SortedRun::FromSorted(keys, rows);
}

// Of the batches' sizes below the first is polled, the second is read and written by the device
// where it is, and the third is copied in chunks. The device copies the rows of the last two.
constexpr size_t kSizes[] = {100, 10000, 300000};

std::unique_ptr<OrderedIndex> MakeIndex(const char* factory = "gpu:packed") {
  auto index = MakeDeviceIndex(factory, Run());
  BOOST_REQUIRE_MESSAGE(index.ok(), index.status());
  HostBatchPolicy policy;
  policy.most_rows_from_run = 1000;
  policy.piece_rows = 200000;
  return std::make_unique<GpuIndex>(Run(), *std::move(index), policy);
}

// Not for threads: it writes to the log of the tests.
std::vector<uint32_t> Keys(size_t size, uint64_t salt) {
  auto random = TestRandom(salt);
  std::vector<uint32_t> keys(size);
  for (uint32_t& key : keys) key = static_cast<uint32_t>(random() % (2 * kEntries));
  return keys;
}

enum class Operation { kFindFirst, kLowerBound, kContains, kCount, kFind, kScan };
constexpr Operation kOperations[] = {Operation::kFindFirst, Operation::kLowerBound,
                                     Operation::kContains,  Operation::kCount,
                                     Operation::kFind,      Operation::kScan};

bool AreRows(const Matches& matches, const std::vector<uint32_t>& keys, uint32_t rows_of_range) {
  if (matches.size() != keys.size()) return false;
  for (size_t i = 0; i < keys.size(); ++i) {
    const size_t first = (keys[i] + 1) / 2;
    const size_t end = std::min<size_t>((keys[i] + rows_of_range) / 2 + 1, kEntries);
    if (matches[i].size() != end - std::min(first, end)) return false;
    for (size_t j = 0; j < matches[i].size(); ++j) {
      if (matches[i][j] != first + j) return false;
    }
  }
  return true;
}

// Asks an index about keys. OK if it answers and the answers are right; Internal if they are wrong,
// which it says itself only where CUDA fails in a way that is not provoked here.
absl::Status Ask(const OrderedIndex& index, Operation operation,
                 const std::vector<uint32_t>& keys) {
  const size_t size = keys.size();
  const KeyBatch batch = KeyBatch::U32(keys);
  absl::Status status;
  bool right = true;
  switch (operation) {
    case Operation::kFindFirst: {
      std::vector<RowId> rows(size);
      status = index.FindFirst(batch, absl::MakeSpan(rows));
      for (size_t i = 0; i < size; ++i) {
        right &= rows[i] == (keys[i] % 2 == 0 ? keys[i] / 2 : kNoRow);
      }
      break;
    }
    case Operation::kLowerBound: {
      std::vector<Position> positions(size);
      status = index.LowerBound(batch, absl::MakeSpan(positions));
      for (size_t i = 0; i < size; ++i) right &= positions[i] == (keys[i] + 1) / 2;
      break;
    }
    case Operation::kContains: {
      const auto found = std::make_unique<bool[]>(size);
      status = index.Contains(batch, absl::MakeSpan(found.get(), size));
      for (size_t i = 0; i < size; ++i) right &= found[i] == (keys[i] % 2 == 0);
      break;
    }
    case Operation::kCount: {
      std::vector<uint64_t> counts(size);
      status = index.Count(RangeBatch::Equal(batch), absl::MakeSpan(counts));
      for (size_t i = 0; i < size; ++i) right &= counts[i] == (keys[i] % 2 == 0 ? 1 : 0);
      break;
    }
    case Operation::kFind: {
      Matches matches;
      status = index.Find(batch, &matches);
      right = !status.ok() || AreRows(matches, keys, 0);
      break;
    }
    case Operation::kScan: {
      constexpr uint32_t kReach = 9;
      std::vector<uint32_t> upper(keys);
      for (uint32_t& key : upper) key += kReach;
      RangeBatch ranges;
      ranges.lower = batch;
      ranges.upper = KeyBatch::U32(upper);
      ranges.lower_bound = ranges.upper_bound = Bound::kInclusive;
      Matches matches;
      status = index.Scan(ranges, QueryOptions(), &matches);
      right = !status.ok() || AreRows(matches, keys, kReach);
      break;
    }
  }
  if (!status.ok()) return status;
  return right ? absl::OkStatus() : absl::InternalError("wrong answers");
}

// ---- Children: processes of their own, in which a device is lost for good

// Runs a case of the suite device_lost_child, and ends it where it hangs.
void RunInChild(const std::string& name) {
  constexpr auto kPatience = seconds(120);
  std::string test = "--run_test=device_lost_child/" + name;
  std::string program = "cairn_gpu_test";
  char* const arguments[] = {program.data(), test.data(), nullptr};
  pid_t child = 0;
  BOOST_REQUIRE(posix_spawn(&child, "/proc/self/exe", nullptr, nullptr, arguments, environ) == 0);
  const auto deadline = steady_clock::now() + kPatience;
  int outcome = 0;
  pid_t ended = 0;
  while ((ended = waitpid(child, &outcome, WNOHANG)) == 0 && steady_clock::now() < deadline) {
    std::this_thread::sleep_for(milliseconds(10));
  }
  if (ended == 0) {
    (void)kill(child, SIGKILL);
    (void)waitpid(child, &outcome, 0);
    BOOST_FAIL(name << " hangs");
  }
  BOOST_TEST((ended == child && WIFEXITED(outcome)), name << " was ended by a signal");
  BOOST_TEST(WEXITSTATUS(outcome) == 0, name << " failed");
}

// Every call fails, with Unavailable, and so does whatever else would need the device; then what
// there is of it is freed.
void CheckThatAllIsLost(std::unique_ptr<OrderedIndex> index) {
  const auto start = steady_clock::now();
  for (int round = 0; round < 2; ++round) {
    for (size_t size : kSizes) {
      const std::vector<uint32_t> keys = Keys(size, size);
      for (Operation operation : kOperations) {
        const absl::Status status = Ask(*index, operation, keys);
        BOOST_TEST(absl::IsUnavailable(status), size << " keys: " << status);
      }
    }
  }
  BOOST_TEST(absl::IsUnavailable(QueryContextLease::Acquire(0).status()));
  BOOST_TEST(FreeIdleQueryContexts(0) == 0u);
  const auto memory = DeviceBuffer<char>::Allocate(1000, nullptr);
  BOOST_TEST(absl::IsUnavailable(memory.status()), memory.status());
  const auto another = MakeOrderedIndex("gpu:packed", Run());
  BOOST_TEST(absl::IsUnavailable(another.status()), another.status());
  index.reset();
  BOOST_TEST((steady_clock::now() - start < seconds(20)));
}

void LoseDeviceBetweenBatches(DeviceFault fault) {
  std::unique_ptr<OrderedIndex> index = MakeIndex();
  for (size_t size : kSizes) {
    for (Operation operation : kOperations) {
      const absl::Status status = Ask(*index, operation, Keys(size, size));
      BOOST_REQUIRE_MESSAGE(status.ok(), status);
    }
  }
  BOOST_REQUIRE(RaiseOnDevice(fault, milliseconds(0), nullptr) == cudaSuccess);
  const cudaError_t error = cudaDeviceSynchronize();
  BOOST_TEST(error != cudaSuccess);
  BOOST_TEST_MESSAGE("the device is lost: " << cudaGetErrorName(error));
  CheckThatAllIsLost(std::move(index));
}

BOOST_AUTO_TEST_SUITE(device_lost_child, *boost::unit_test::disabled())

BOOST_FIXTURE_TEST_CASE(by_a_trap_between_batches, NeedsDevice) {
  LoseDeviceBetweenBatches(DeviceFault::kTrap);
}

BOOST_FIXTURE_TEST_CASE(by_a_wild_write_between_batches, NeedsDevice) {
  LoseDeviceBetweenBatches(DeviceFault::kWildWrite);
}

// The device is full with threads that wait for what they do, so batches that are given to it
// meanwhile never begin: whoever waits for their results must find that out.
BOOST_FIXTURE_TEST_CASE(by_a_trap_before_batches_begin, NeedsDevice) {
  constexpr size_t kThreads = std::size(kSizes);
  constexpr auto kDelay = seconds(1);
  std::unique_ptr<OrderedIndex> index = MakeIndex();
  {
    // A context for each thread, with all the pinned memory that it needs: making one might wait
    // for the device.
    std::vector<QueryContextLease> leases;
    for (size_t i = 0; i < kThreads; ++i) {
      auto lease = QueryContextLease::Acquire(0);
      BOOST_REQUIRE(lease.ok());
      BOOST_REQUIRE((*lease)->Pinned(size_t{32} << 20).ok());
      leases.push_back(*std::move(lease));
    }
  }
  for (size_t size : kSizes) {
    const absl::Status status = Ask(*index, Operation::kFindFirst, Keys(size, size));
    BOOST_REQUIRE_MESSAGE(status.ok(), status);
  }
  const auto stream = Stream::Create();
  BOOST_REQUIRE(stream.ok());
  const auto start = steady_clock::now();
  BOOST_REQUIRE(RaiseOnDevice(DeviceFault::kTrap, kDelay, stream->get()) == cudaSuccess);
  std::this_thread::sleep_for(milliseconds(50));
  std::vector<absl::Status> statuses(kThreads);
  std::vector<steady_clock::duration> waited(kThreads);
  std::vector<std::vector<uint32_t>> keys;
  for (size_t size : kSizes) keys.push_back(Keys(size, size));
  std::vector<std::thread> threads;
  for (size_t i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      statuses[i] = Ask(*index, Operation::kFindFirst, keys[i]);
      waited[i] = steady_clock::now() - start;
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (size_t i = 0; i < kThreads; ++i) {
    BOOST_TEST(absl::IsUnavailable(statuses[i]), kSizes[i] << " keys: " << statuses[i]);
    // They did wait.
    BOOST_TEST((waited[i] > kDelay / 2), kSizes[i] << " keys");
    BOOST_TEST((waited[i] < kDelay + seconds(15)), kSizes[i] << " keys");
  }
  CheckThatAllIsLost(std::move(index));
}

// Any call of any batch may be the one that meets it.
BOOST_FIXTURE_TEST_CASE(by_a_wild_write_while_threads_query, NeedsDevice) {
  std::unique_ptr<OrderedIndex> index = MakeIndex();
  std::vector<absl::Status> statuses(6);
  std::atomic<size_t> answered{0}, running{statuses.size()};
  std::vector<std::thread> threads;
  for (size_t i = 0; i < statuses.size(); ++i) {
    threads.emplace_back([&, i, keys = Keys(kSizes[i % 3], i)] {
      for (size_t round = i; statuses[i].ok(); ++round) {
        statuses[i] = Ask(*index, kOperations[round % std::size(kOperations)], keys);
        answered += statuses[i].ok() ? 1 : 0;
      }
      --running;
    });
  }
  while (answered < 200 && running > 0) std::this_thread::sleep_for(milliseconds(1));
  const auto stream = Stream::Create();
  BOOST_TEST(stream.ok());
  if (stream.ok()) {
    BOOST_TEST(RaiseOnDevice(DeviceFault::kWildWrite, milliseconds(5), stream->get()) ==
               cudaSuccess);
  }
  for (std::thread& thread : threads) thread.join();
  BOOST_TEST(answered >= 200u);
  for (const absl::Status& status : statuses) BOOST_TEST(absl::IsUnavailable(status), status);
  CheckThatAllIsLost(std::move(index));
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_FIXTURE_TEST_SUITE(device_lost_test, NeedsDevice)

BOOST_AUTO_TEST_CASE(every_call_says_that_the_device_was_lost_by_a_trap) {
  RunInChild("by_a_trap_between_batches");
}

BOOST_AUTO_TEST_CASE(every_call_says_that_the_device_was_lost_by_a_wild_write) {
  RunInChild("by_a_wild_write_between_batches");
}

BOOST_AUTO_TEST_CASE(batches_that_wait_for_a_lost_device_end) {
  RunInChild("by_a_trap_before_batches_begin");
}

BOOST_AUTO_TEST_CASE(threads_that_query_a_lost_device_end) {
  RunInChild("by_a_wild_write_while_threads_query");
}

// ---- Injected failures

// Lets the first, the second, ... call of a batch fail until it makes no more of them; returns how
// many it makes. After each the batch is asked again.
int FailEveryCall(const OrderedIndex& index, Operation operation,
                  const std::vector<uint32_t>& keys) {
  const size_t before = AllocatedDeviceBytes();
  for (int i = 0;; ++i) {
    FailDeviceCallsAfter(i);
    const absl::Status status = Ask(index, operation, keys);
    FailDeviceCallsAfter(-1);
    if (status.ok()) return i;
    BOOST_TEST(absl::IsUnavailable(status), "at call " << i << ": " << status);
    BOOST_TEST(AllocatedDeviceBytes() == before, "after call " << i);
    const absl::Status again = Ask(index, operation, keys);
    BOOST_REQUIRE_MESSAGE(again.ok(), "after call " << i << ": " << again);
    BOOST_REQUIRE(i < 1000);
  }
}

BOOST_AUTO_TEST_CASE(a_batch_that_fails_at_any_call_leaves_an_index_that_answers) {
  for (const char* factory : {"gpu:packed", "gpu:packed,directory=tree", "gpu:btree"}) {
    const std::unique_ptr<OrderedIndex> index = MakeIndex(factory);
    for (Operation operation : kOperations) {
      BOOST_TEST_CONTEXT(factory << ", operation " << static_cast<int>(operation)) {
        // Given to the device and waited for, once or for each of four chunks.
        const int least[] = {2, 2, 8};
        for (size_t i = 0; i < std::size(kSizes); ++i) {
          const int calls = FailEveryCall(*index, operation, Keys(kSizes[i], i));
          // Rows of a large batch come in pieces.
          const bool rows = operation == Operation::kFind || operation == Operation::kScan;
          if (rows && i > 0) {
            BOOST_TEST(calls > least[i], kSizes[i] << " keys");
          } else {
            BOOST_TEST(calls == least[i], kSizes[i] << " keys");
          }
        }
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(a_lost_context_is_freed_and_one_that_ran_out_of_memory_is_kept) {
  const std::unique_ptr<OrderedIndex> index = MakeIndex();
  const std::vector<uint32_t> keys = Keys(300000, 1);
  FreeIdleQueryContexts(0);
  BOOST_TEST(Ask(*index, Operation::kLowerBound, keys).ok());
  BOOST_TEST(FreeIdleQueryContexts(0) == 1u);

  BOOST_TEST(Ask(*index, Operation::kLowerBound, keys).ok());
  FailDeviceAllocationsAfter(2);
  BOOST_TEST(absl::IsResourceExhausted(Ask(*index, Operation::kLowerBound, keys)));
  FailDeviceAllocationsAfter(-1);
  BOOST_TEST(FreeIdleQueryContexts(0) == 1u);

  BOOST_TEST(Ask(*index, Operation::kLowerBound, keys).ok());
  FailDeviceCallsAfter(3);
  BOOST_TEST(absl::IsUnavailable(Ask(*index, Operation::kLowerBound, keys)));
  FailDeviceCallsAfter(-1);
  BOOST_TEST(FreeIdleQueryContexts(0) == 0u);
}

BOOST_AUTO_TEST_CASE(threads_get_right_answers_or_an_error_while_calls_fail_now_and_then) {
  const std::unique_ptr<OrderedIndex> index = MakeIndex();
  std::atomic<size_t> answered{0}, failed{0}, wrong{0}, running{6};
  std::vector<std::thread> threads;
  for (size_t i = 0; i < 6; ++i) {
    threads.emplace_back([&, i, keys = Keys(kSizes[i % 3], i)] {
      for (size_t round = i; round < i + 60; ++round) {
        const absl::Status status = Ask(*index, kOperations[round % std::size(kOperations)], keys);
        if (status.ok()) {
          ++answered;
        } else if (absl::IsUnavailable(status)) {
          ++failed;
        } else {
          ++wrong;
        }
      }
      --running;
    });
  }
  for (int64_t count = 0; running > 0; count = (count + 1) % 13) {
    FailDeviceCallsAfter(count);
    std::this_thread::sleep_for(milliseconds(1));
    FailDeviceCallsAfter(-1);
    std::this_thread::sleep_for(milliseconds(2));
  }
  for (std::thread& thread : threads) thread.join();
  BOOST_TEST(wrong == 0u);
  BOOST_TEST(answered > 0u);
  BOOST_TEST(failed > 0u);
  for (size_t size : kSizes) {
    for (Operation operation : kOperations) {
      const absl::Status status = Ask(*index, operation, Keys(size, size));
      BOOST_TEST(status.ok(), status);
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace cairn::gpu
