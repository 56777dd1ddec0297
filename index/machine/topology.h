#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

struct hwloc_topology;

namespace cairn {

// The machine's resources for this process: the cores and caches that hwloc finds within the
// process's CPU binding. Immutable; thread-safe.
class Topology {
 public:
  // The topology, which is read once per process.
  static const Topology& Get();

  // Physical cores and hardware threads that the process may run on; at least 1.
  int cores() const { return cores_; }
  int hardware_threads() const { return hardware_threads_; }
  int numa_nodes() const { return numa_nodes_; }
  // Memory that the process may use, in bytes: the machine's, or its cgroup's limit if lower.
  uint64_t memory_bytes() const { return memory_bytes_; }

  // The number of threads for a caller's option `wanted`: `wanted`, or one per physical core if it
  // is 0 or less.
  int Threads(int wanted) const { return wanted > 0 ? wanted : cores_; }

  // The processors for a thread: all those of the process, or only the first hardware thread of
  // each of its cores.
  enum class Binding : uint8_t { kProcess, kOneThreadPerCore };
  // Binds the calling thread. Has no effect if the system refuses.
  void BindThisThread(Binding binding) const;

  // Requests that untouched pages of [memory, memory + bytes) be spread over the NUMA nodes, for
  // data that all cores read equally. Does nothing if there is one node, or for less than a huge
  // page, since each core's own caches hold that.
  void InterleaveMemory(void* memory, size_t bytes) const;
  // Requests that untouched pages of [memory, memory + bytes) be on one NUMA node, given by the
  // system's number, for data that a device near that node reads. Does nothing if there is no such
  // node, or no other one.
  void PlaceMemory(void* memory, size_t bytes, int numa_node) const;

 private:
  Topology();

  std::shared_ptr<hwloc_topology> topology_;  // null if hwloc finds none
  int cores_ = 1;
  int hardware_threads_ = 1;
  int numa_nodes_ = 1;
  uint64_t memory_bytes_ = 0;
};

}  // namespace cairn
