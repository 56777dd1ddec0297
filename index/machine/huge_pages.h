#pragma once

#include <cstddef>
#include <cstdint>

namespace cairn {

// The number of the bytes [memory, memory + bytes) that are in huge pages, according to
// /proc/self/smaps; 0 if that file cannot be read. AlignedBuffer requests huge pages, and the
// kernel grants them if it has any. Takes milliseconds: only for statistics.
uint64_t HugePageBytes(const void* memory, size_t bytes);

}  // namespace cairn
