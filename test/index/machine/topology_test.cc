#include "index/machine/topology.h"

#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <boost/test/unit_test.hpp>
#include <thread>

#include "index/machine/available_memory.h"
#include "test/sanitizer.h"

namespace cairn {
BOOST_AUTO_TEST_SUITE(topology_test)
namespace {

// Forks while another thread may be reading the topology, and reads it in the child, too. Returns
// the child's exit status.
int ForkWhileReading() {
  std::atomic<bool> begun{false};
  std::thread reader([&] {
    begun.store(true);
    (void)Topology::Get();
  });
  while (!begun.load()) {
  }
  const pid_t child = fork();
  if (child == 0) {
    alarm(60);
    _exit(Topology::Get().cores() >= 1 ? 0 : 1);
  }
  reader.join();
  int status = -1;
  return waitpid(child, &status, 0) == child ? status : -1;
}

// Must be the first test, before this process has read the topology, so that each child reads it.
BOOST_AUTO_TEST_CASE(a_child_forked_while_it_is_read_can_read_it) {
  if (kUnderTsan) return;  // which misses the reader in a child of one
  for (int i = 0; i < 20; ++i) {
    const pid_t child = fork();
    if (child == 0) _exit(ForkWhileReading() == 0 ? 0 : 1);
    int status = -1;
    BOOST_TEST(waitpid(child, &status, 0) == child);
    BOOST_TEST(status == 0);
  }
}

BOOST_AUTO_TEST_CASE(counts_the_cores_that_this_process_may_use) {
  cpu_set_t bound;
  CPU_ZERO(&bound);
  BOOST_REQUIRE(sched_getaffinity(0, sizeof(bound), &bound) == 0);
  const Topology& topology = Topology::Get();
  BOOST_TEST(topology.hardware_threads() == CPU_COUNT(&bound));
  BOOST_TEST(topology.cores() >= 1);
  BOOST_TEST(topology.cores() <= topology.hardware_threads());
  BOOST_TEST(topology.numa_nodes() >= 1);
  BOOST_TEST(topology.memory_bytes() > uint64_t{1} << 26);
}

BOOST_AUTO_TEST_CASE(available_memory_is_a_part_of_all) {
  const uint64_t available = AvailableMemoryBytes();
  BOOST_TEST(available > 0u);
  BOOST_TEST(available <= Topology::Get().memory_bytes());
}

BOOST_AUTO_TEST_CASE(the_callers_number_of_threads_wins) {
  const Topology& topology = Topology::Get();
  BOOST_TEST(topology.Threads(7) == 7);
  BOOST_TEST(topology.Threads(0) == topology.cores());
  BOOST_TEST(topology.Threads(-1) == topology.cores());
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
