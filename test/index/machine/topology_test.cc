#include "index/machine/topology.h"

#include <sched.h>

#include <boost/test/unit_test.hpp>

namespace cairn {
BOOST_AUTO_TEST_SUITE(topology_test)
namespace {

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

BOOST_AUTO_TEST_CASE(the_callers_number_of_threads_wins) {
  const Topology& topology = Topology::Get();
  BOOST_TEST(topology.Threads(7) == 7);
  BOOST_TEST(topology.Threads(0) == topology.cores());
  BOOST_TEST(topology.Threads(-1) == topology.cores());
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
