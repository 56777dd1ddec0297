#include "index/machine/available_memory.h"

#include <algorithm>
#include <fstream>
#include <string>

#include "index/machine/topology.h"

namespace cairn {
namespace {

// The number after a word at the beginning of a line of a file; 0 if no line has it.
uint64_t NumberAfter(const char* path, const std::string& word) {
  std::ifstream file(path);
  for (std::string first, rest; file >> first; std::getline(file, rest)) {
    uint64_t number = 0;
    if (first == word) return file >> number ? number : 0;
  }
  return 0;
}

}  // namespace

uint64_t AvailableMemoryBytes() {
  const uint64_t all = Topology::Get().memory_bytes();
  // If these files are missing, all memory counts as available.
  const uint64_t kilobytes = NumberAfter("/proc/meminfo", "MemAvailable:");
  const uint64_t taken = NumberAfter("/sys/fs/cgroup/memory.stat", "anon");
  const uint64_t in_group = all - std::min(all, taken);
  return kilobytes == 0 ? in_group : std::min(in_group, 1024 * kilobytes);
}

}  // namespace cairn
