#pragma once

// Long calls that Ctrl-C ends and that report how far they are.

#include <nanobind/nanobind.h>

#include <atomic>
#include <functional>

#include "absl/status/status.h"
#include "cairn/progress.h"

namespace cairn::python {

namespace nb = nanobind;

// What long work is given: where it reports, and what says that it shall stop.
struct Watch {
  std::function<void(const Progress&)> on_progress;
  const std::atomic<bool>* cancelled;
};

// Runs `work` on a thread of its own. Meanwhile this thread, which has the GIL and gives it up,
// calls progress(phase, done, total), unless that is None, and lets signals be handled, about ten
// times a second. An exception of either, KeyboardInterrupt for one, cancels the work and is thrown
// when that has ended; else what the work returns is.
void RunWatched(nb::handle progress, const std::function<absl::Status(const Watch&)>& work);

}  // namespace cairn::python
