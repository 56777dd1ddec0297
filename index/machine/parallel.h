#pragma once

#include <cstddef>
#include <functional>

namespace cairn {

// Calls body(i) once for every i in [0, items), on up to `threads` threads including the caller's,
// and returns when all calls have returned. Threads claim items one by one in ascending order, so
// items may differ in size. In total they should take some hundred microseconds, since threads are
// started for them. If a body throws, no more items are claimed, and the exception is rethrown
// here. If no more threads can be started, fewer do the work. Throws std::bad_alloc.
//
// It uses plain threads rather than oneTBB's: a caller gets the number that it requests, and
// ThreadSanitizer sees their synchronization.
void ParallelFor(int threads, size_t items, const std::function<void(size_t)>& body);

}  // namespace cairn
