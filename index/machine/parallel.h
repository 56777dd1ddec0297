#pragma once

#include <cstddef>
#include <functional>

namespace cairn {

// Calls body(i) once for every i in [0, items), on up to `threads` threads of which the caller's is
// one, and returns when all calls have. Items are claimed one by one in ascending order, so they
// may differ in size; together they should be worth some hundred microseconds, as threads are
// started for them. An exception out of a body stops the claiming and is rethrown here. Where no
// more threads can be started, fewer do the work. Throws std::bad_alloc.
//
// Plain threads rather than TBB's: a caller gets as many as it asks for, and ThreadSanitizer sees
// what orders them.
void ParallelFor(int threads, size_t items, const std::function<void(size_t)>& body);

}  // namespace cairn
