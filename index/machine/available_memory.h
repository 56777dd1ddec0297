#pragma once

#include <cstdint>

namespace cairn {

// The part of Topology::memory_bytes that is free now, or that the kernel can free, such as its
// cache of files. Reads two small files of the kernel.
uint64_t AvailableMemoryBytes();

}  // namespace cairn
