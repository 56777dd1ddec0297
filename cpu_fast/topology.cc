#include "cpu_fast/topology.h"

#include <hwloc.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <string>
#include <thread>

namespace cairn {
namespace {

uint64_t CacheBytes(hwloc_topology_t topology, hwloc_obj_type_t type) {
  hwloc_obj_t cache = hwloc_get_obj_by_type(topology, type, 0);
  return cache == nullptr ? 0 : cache->attr->cache.size;
}

uint64_t MemoryBytes() {
  const uint64_t machine =
      static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  // "max", or a file that is not there, leaves the limit at the machine's.
  uint64_t limit = 0;
  std::ifstream cgroup("/sys/fs/cgroup/memory.max");
  if (cgroup >> limit && limit > 0) return std::min(machine, limit);
  return machine;
}

}  // namespace

const Topology& Topology::Get() {
  static const Topology topology;
  return topology;
}

Topology::Topology() : memory_bytes_(MemoryBytes()) {
  hardware_threads_ = cores_ = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  hwloc_topology_t topology;
  if (hwloc_topology_init(&topology) != 0) return;
  if (hwloc_topology_load(topology) == 0) {
    // Only what this process is bound to counts, so that `taskset` and cgroups are honoured.
    hwloc_cpuset_t bound = hwloc_bitmap_alloc();
    if (bound != nullptr && hwloc_get_cpubind(topology, bound, HWLOC_CPUBIND_PROCESS) == 0 &&
        hwloc_bitmap_iszero(bound) == 0) {
      hwloc_topology_restrict(topology, bound, 0);
    }
    hwloc_bitmap_free(bound);
    cores_ = std::max(1, hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_CORE));
    hardware_threads_ = std::max(cores_, hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_PU));
    numa_nodes_ = std::max(1, hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_NUMANODE));
    l1_bytes_ = CacheBytes(topology, HWLOC_OBJ_L1CACHE);
    l2_bytes_ = CacheBytes(topology, HWLOC_OBJ_L2CACHE);
    l3_bytes_ = CacheBytes(topology, HWLOC_OBJ_L3CACHE);
  }
  hwloc_topology_destroy(topology);
}

}  // namespace cairn
