#pragma once

// Reusable worker threads, since starting a thread takes longer than most queries.

#include <functional>

namespace cairn::python {

// Runs `task`, which must not throw, on an idle thread. In a child of a fork, uses threads of the
// child. Throws std::system_error.
void RunOnWorker(std::function<void()> task);

}  // namespace cairn::python
