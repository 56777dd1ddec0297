#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>

namespace cairn {

// Asks the kernel to start reading the pages of a mapping that contain these bytes. Unlike
// MADV_SEQUENTIAL, it does not affect the rest of the mapping, which other threads may be
// searching, and the kernel does not drop pages after they are read. Does nothing for other memory.
inline void WillRead(const void* begin, size_t bytes) {
  static const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto from = reinterpret_cast<uintptr_t>(begin) / page * page;
  const auto to = reinterpret_cast<uintptr_t>(begin) + bytes;
  if (bytes > 0) madvise(reinterpret_cast<void*>(from), to - from, MADV_WILLNEED);
}

}  // namespace cairn
