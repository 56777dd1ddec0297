#include "index/machine/topology.h"

#include <hwloc.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <fstream>
#include <mutex>
#include <string>
#include <thread>

namespace cairn {
namespace {

struct FreeCpuSet {
  void operator()(hwloc_bitmap_t set) const { hwloc_bitmap_free(set); }
};
using CpuSet = std::unique_ptr<hwloc_bitmap_s, FreeCpuSet>;

uint64_t MemoryBytes() {
  const uint64_t machine =
      static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  // "max", or a missing file, means that there is no limit other than the machine's memory.
  uint64_t limit = 0;
  std::ifstream cgroup("/sys/fs/cgroup/memory.max");
  if (cgroup >> limit && limit > 0) return std::min(machine, limit);
  return machine;
}

// Never destroyed, since threads may outlive static objects.
std::atomic<const Topology*> read_topology{nullptr};
// Reading the topology takes milliseconds. fork() also takes this mutex, so that no child waits for
// a thread that it does not have.
constinit std::mutex reading;
[[maybe_unused]] const int registered =
    pthread_atfork([] { reading.lock(); }, [] { reading.unlock(); }, [] { reading.unlock(); });

}  // namespace

const Topology& Topology::Get() {
  const Topology* topology = read_topology.load(std::memory_order_acquire);
  if (topology != nullptr) return *topology;
  const std::lock_guard lock(reading);
  if (read_topology.load() == nullptr) read_topology.store(new Topology);
  return *read_topology.load();
}

Topology::Topology() : memory_bytes_(MemoryBytes()) {
  hardware_threads_ = cores_ = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  hwloc_topology_t topology;
  if (hwloc_topology_init(&topology) != 0) return;
  topology_.reset(topology, hwloc_topology_destroy);
  if (hwloc_topology_load(topology) != 0) {
    topology_.reset();
    return;
  }
  // Only processors that this process is bound to count, so `taskset` and cgroups are respected.
  const CpuSet bound(hwloc_bitmap_alloc());
  if (bound != nullptr && hwloc_get_cpubind(topology, bound.get(), HWLOC_CPUBIND_PROCESS) == 0 &&
      hwloc_bitmap_iszero(bound.get()) == 0) {
    hwloc_topology_restrict(topology, bound.get(), 0);
  }
  cores_ = std::max(1, hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_CORE));
  hardware_threads_ = std::max(cores_, hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_PU));
  numa_nodes_ = std::max(1, hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_NUMANODE));
}

void Topology::BindThisThread(Binding binding) const {
  if (topology_ == nullptr) return;
  const CpuSet set(hwloc_bitmap_dup(hwloc_topology_get_topology_cpuset(topology_.get())));
  if (set == nullptr) return;
  if (binding == Binding::kOneThreadPerCore) {
    hwloc_bitmap_singlify_per_core(topology_.get(), set.get(), 0);
  }
  hwloc_set_cpubind(topology_.get(), set.get(), HWLOC_CPUBIND_THREAD);
}

void Topology::InterleaveMemory(void* memory, size_t bytes) const {
  constexpr size_t kHugePageBytes = size_t{2} << 20;
  if (topology_ == nullptr || numa_nodes_ == 1 || bytes < kHugePageBytes) return;
  hwloc_set_area_membind(topology_.get(), memory, bytes,
                         hwloc_topology_get_topology_nodeset(topology_.get()),
                         HWLOC_MEMBIND_INTERLEAVE, HWLOC_MEMBIND_BYNODESET);
}

void Topology::PlaceMemory(void* memory, size_t bytes, int numa_node) const {
  if (topology_ == nullptr || numa_nodes_ == 1 || numa_node < 0) return;
  const hwloc_obj_t node =
      hwloc_get_numanode_obj_by_os_index(topology_.get(), static_cast<unsigned>(numa_node));
  if (node == nullptr) return;
  hwloc_set_area_membind(topology_.get(), memory, bytes, node->nodeset, HWLOC_MEMBIND_BIND,
                         HWLOC_MEMBIND_BYNODESET);
}

}  // namespace cairn
