#pragma once

// Long calls that Ctrl-C ends and that report how far they are.

#include <nanobind/nanobind.h>

#include <atomic>
#include <functional>

#include "absl/status/status.h"
#include "cairn/options.h"

namespace cairn::python {

namespace nb = nanobind;

// The progress callback and the stop flag of long work.
struct Watch {
  std::function<void(const Progress&)> on_progress;
  const std::atomic<bool>* cancelled;
};

// Runs `work` on another thread, without the GIL. Meanwhile this thread calls
// progress(phase, done, total), unless that is None, and lets signals be handled, about ten times a
// second. An exception of either, KeyboardInterrupt for one, cancels the work and is thrown when
// that has ended; else what the work returns is. So does the end of the interpreter cancel it.
void RunWatched(nb::handle progress, const std::function<absl::Status(const Watch&)>& work);

// The same for a query. Python handles signals on its main thread only, so that on all others the
// query runs where it is.
void RunQuery(const std::function<absl::Status(const std::atomic<bool>* cancelled)>& query);

}  // namespace cairn::python
