#pragma once

#include <cstddef>

namespace cairn::bench {

// Nanoseconds per read of independent random reads of 64-byte lines in `bytes` bytes of memory,
// with many prefetches in flight: the bound of every index search over memory of this size.
// Measured once per process for each size, rounded up to a power of two; takes tenths of a second.
double RandomLineNs(size_t bytes);

}  // namespace cairn::bench
