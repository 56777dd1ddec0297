#pragma once

#include <cstddef>

namespace cairn::bench {

// Nanoseconds a read of independent random reads of 64-byte lines among `bytes` of memory, many
// prefetches in flight: the bound of every index search over as much. Measured once per process for
// a given size rounded up to a power of two; tenths of a second.
double RandomLineNs(size_t bytes);

}  // namespace cairn::bench
