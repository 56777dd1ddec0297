#include "index/machine/huge_pages.h"

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <string>

namespace cairn {

uint64_t HugePageBytes(const void* memory, size_t bytes) {
  const auto begin = reinterpret_cast<uintptr_t>(memory);
  const auto end = begin + bytes;
  std::ifstream smaps("/proc/self/smaps");
  uint64_t huge = 0, overlap = 0;  // overlap: of the mapping whose lines are being read
  for (std::string line; std::getline(smaps, line);) {
    unsigned long long first = 0, behind = 0, kilobytes = 0;
    if (std::sscanf(line.c_str(), "%llx-%llx ", &first, &behind) == 2) {
      const uint64_t from = std::max<uint64_t>(first, begin), to = std::min<uint64_t>(behind, end);
      overlap = from < to ? to - from : 0;
    } else if (std::sscanf(line.c_str(), "AnonHugePages: %llu kB", &kilobytes) == 1) {
      huge += std::min<uint64_t>(kilobytes * 1024, overlap);
    }
  }
  return huge;
}

}  // namespace cairn
