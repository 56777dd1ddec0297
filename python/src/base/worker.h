#pragma once

// Threads that work for others, and are kept: to start one takes longer than most queries.

#include <functional>

namespace cairn::python {

// Runs `task`, which must not throw, on a thread that has nothing else to do. In a child of a fork,
// on one of its own. Throws std::system_error.
void RunOnWorker(std::function<void()> task);

}  // namespace cairn::python
