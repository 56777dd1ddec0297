#include "index/machine/batch_threads.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <boost/test/unit_test.hpp>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "test/sanitizer.h"

namespace cairn {
BOOST_AUTO_TEST_SUITE(batch_threads_test)
namespace {

bool RunsEachPartOnce(size_t parts) {
  std::vector<std::atomic<int>> calls(parts);
  RunOnBatchThreads(parts, [&](size_t part) { calls[part].fetch_add(1); });
  return std::all_of(calls.begin(), calls.end(), [](const auto& count) { return count == 1; });
}

BOOST_AUTO_TEST_CASE(runs_each_part_once) {
  for (const size_t parts : {0, 1, 2, 3, 100, 1000}) BOOST_TEST(RunsEachPartOnce(parts));
}

BOOST_AUTO_TEST_CASE(throws_what_a_part_throws) {
  const auto throw_one = [](size_t part) {
    if (part == 7) throw std::runtime_error("part 7");
  };
  BOOST_CHECK_EXCEPTION(
      RunOnBatchThreads(20, throw_one), std::runtime_error,
      [](const std::runtime_error& e) { return std::string(e.what()) == "part 7"; });
  BOOST_TEST(RunsEachPartOnce(20));
}

BOOST_AUTO_TEST_CASE(a_child_forked_in_the_midst_of_a_call_waits_for_no_thread_of_its_parent) {
  if (kUnderTsan) return;  // which lets no thread start in the child of a process with threads
  std::atomic<bool> begun{false}, forked{false};
  std::thread caller([&] {
    RunOnBatchThreads(4, [&](size_t) {
      begun.store(true);
      while (!forked.load()) std::this_thread::yield();
    });
  });
  while (!begun.load()) std::this_thread::yield();
  const pid_t child = fork();
  if (child == 0) {
    alarm(60);
    const bool right = RunsEachPartOnce(100);
    // A child of the child, too.
    const pid_t grandchild = fork();
    if (grandchild == 0) _exit(RunsEachPartOnce(100) ? 0 : 1);
    int status = -1;
    waitpid(grandchild, &status, 0);
    _exit(right && status == 0 ? 0 : 1);
  }
  forked.store(true);
  caller.join();
  BOOST_REQUIRE(child > 0);
  int status = -1;
  BOOST_TEST(waitpid(child, &status, 0) == child);
  BOOST_TEST(status == 0);
  BOOST_TEST(RunsEachPartOnce(100));
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
