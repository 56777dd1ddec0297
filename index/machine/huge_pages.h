#pragma once

#include <cstddef>
#include <cstdint>

namespace cairn {

// How many of the bytes [memory, memory + bytes) the kernel keeps in huge pages, as far as
// /proc/self/smaps tells: AlignedBuffer asks for them, and the kernel gives what it has. 0 where
// that file cannot be read. Takes milliseconds: for statistics.
uint64_t HugePageBytes(const void* memory, size_t bytes);

}  // namespace cairn
