#pragma once

#include <cstdint>

namespace cairn {

// The part of Topology::memory_bytes that is free, or that the kernel can free, such as its page
// cache. Reads two small files of the kernel.
uint64_t AvailableMemoryBytes();

}  // namespace cairn
