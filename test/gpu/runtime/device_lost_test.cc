#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <csignal>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "gpu/host/query_context.h"
#include "gpu/runtime/device_memory.h"
#include "gpu/runtime/stream.h"
#include "test/gpu/group/group_check.h"
#include "test/gpu/needs_device.h"
#include "test/gpu/runtime/device_faults.h"
#include "test/gpu/runtime/failing_device.h"
#include "test/require_ok.h"

// Devices that are really lost, each in a separate child process, since no later CUDA call of the
// process works.
namespace cairn::gpu {
namespace {

using namespace failing;
using std::chrono::milliseconds;
using std::chrono::seconds;
using std::chrono::steady_clock;

// Runs a case of the suite device_lost_child, and kills it if it hangs.
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

// Every call fails with Unavailable, and so does everything else that needs the device. Then the
// index is freed.
void CheckThatAllIsLost(std::unique_ptr<OrderedIndex> index) {
  const auto start = steady_clock::now();
  for (int round = 0; round < 2; ++round) {
    for (size_t size : kSizes) {
      const std::vector<uint32_t> keys = Keys(size, size);
      for (Operation operation : kAskedOperations) {
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
    for (Operation operation : kAskedOperations) {
      RequireOk(Ask(*index, operation, Keys(size, size)));
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

// The device is full of waiting threads, so batches submitted before the trap never begin. The
// threads that wait for their results must detect that.
BOOST_FIXTURE_TEST_CASE(by_a_trap_before_batches_begin, NeedsDevice) {
  constexpr size_t kThreads = std::size(kSizes);
  constexpr auto kDelay = seconds(1);
  std::unique_ptr<OrderedIndex> index = MakeIndex();
  {
    // A context for each thread, with all the pinned memory that it needs: making one might wait
    // for the device.
    std::vector<QueryContextLease> leases;
    for (size_t i = 0; i < kThreads; ++i) {
      auto lease = RequireOk(QueryContextLease::Acquire(0));
      RequireOk(lease->Pinned(size_t{32} << 20));
      leases.push_back(std::move(lease));
    }
  }
  for (size_t size : kSizes) {
    RequireOk(Ask(*index, Operation::kFindFirst, Keys(size, size)));
  }
  const auto stream = RequireOk(Stream::Create());
  const auto start = steady_clock::now();
  BOOST_REQUIRE(RaiseOnDevice(DeviceFault::kTrap, kDelay, stream.get()) == cudaSuccess);
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
        statuses[i] = Ask(*index, kAskedOperations[round % std::size(kAskedOperations)], keys);
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

// A group continues on the CPU if its only device is lost.
BOOST_FIXTURE_TEST_CASE(by_a_trap_with_a_group, NeedsDevice) {
  const auto options = WithFallback(SmallChunks());
  std::vector<std::unique_ptr<OrderedIndex>> groups;
  groups.push_back(std::make_unique<GroupIndex>(
      Run(), RequireOk(DeviceGroup::Replicate("gpu:auto", Run(), GroupDevices(3), options))));
  groups.push_back(std::make_unique<GroupIndex>(
      Run(), RequireOk(DeviceGroup::Shard("gpu:auto", Run(), GroupDevices(3), options))));
  const auto ask_all = [&] {
    for (const auto& group : groups) {
      for (size_t size : kSizes) {
        for (Operation operation : kAskedOperations) {
          RequireOk(Ask(*group, operation, Keys(size, size)));
        }
      }
    }
  };
  ask_all();
  BOOST_REQUIRE(RaiseOnDevice(DeviceFault::kTrap, milliseconds(0), nullptr) == cudaSuccess);
  BOOST_TEST(cudaDeviceSynchronize() != cudaSuccess);
  ask_all();
  groups.clear();
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_FIXTURE_TEST_SUITE(device_lost_test, NeedsDevice)

BOOST_AUTO_TEST_CASE(every_call_says_that_the_device_was_lost_by_a_trap) {
  RunInChild("by_a_trap_between_batches");
}

BOOST_AUTO_TEST_CASE(every_call_says_that_the_device_was_lost_by_a_wild_write) {
  RunInChild("by_a_wild_write_between_batches");
}

BOOST_AUTO_TEST_CASE(a_group_of_a_lost_device_answers_by_the_cpu) {
  RunInChild("by_a_trap_with_a_group");
}

BOOST_AUTO_TEST_CASE(batches_that_wait_for_a_lost_device_end) {
  RunInChild("by_a_trap_before_batches_begin");
}

BOOST_AUTO_TEST_CASE(threads_that_query_a_lost_device_end) {
  RunInChild("by_a_wild_write_while_threads_query");
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace cairn::gpu
