#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

struct hwloc_topology;

namespace cairn {

// What the machine offers to this process: the cores and caches that hwloc finds within the
// process's CPU binding. Immutable; thread-safe.
class Topology {
 public:
  // Read once per process.
  static const Topology& Get();

  // Physical cores, and hardware threads, that the process may run on; at least 1.
  int cores() const { return cores_; }
  int hardware_threads() const { return hardware_threads_; }
  int numa_nodes() const { return numa_nodes_; }
  // Memory that the process may use, in bytes: the machine's, or its cgroup's limit if lower.
  uint64_t memory_bytes() const { return memory_bytes_; }

  // The number of threads for work that was asked to run on `wanted`: `wanted`, or one per physical
  // core where it is 0 or less.
  int Threads(int wanted) const { return wanted > 0 ? wanted : cores_; }

  // Where a thread may run: anywhere that the process may, or on the first hardware thread of any
  // of its cores.
  enum class Binding : uint8_t { kProcess, kOneThreadPerCore };
  // Binds the calling thread; where the system refuses, the thread stays where it was.
  void BindThisThread(Binding binding) const;

  // Asks that pages of [memory, memory + bytes) which nothing has touched yet be spread over the
  // NUMA nodes, for what every core reads alike. Does nothing on one node, and for less than a
  // huge page: that is in each core's own caches.
  void InterleaveMemory(void* memory, size_t bytes) const;
  // Asks that pages of [memory, memory + bytes) which nothing has touched yet be on one NUMA node,
  // by the system's number of it; for what a device near that node reads. Does nothing where there
  // is no such node, or no other.
  void PlaceMemory(void* memory, size_t bytes, int numa_node) const;

 private:
  Topology();

  std::shared_ptr<hwloc_topology> topology_;  // null where hwloc finds none
  int cores_ = 1;
  int hardware_threads_ = 1;
  int numa_nodes_ = 1;
  uint64_t memory_bytes_ = 0;
};

}  // namespace cairn
