#pragma once

// Long calls that Ctrl-C ends and that report their progress.

#include <nanobind/nanobind.h>

#include <atomic>
#include <functional>

#include "absl/status/status.h"
#include "cairn/options.h"

namespace cairn::python {

namespace nb = nanobind;

// The progress callback and the stop flag of a long call.
struct Watch {
  std::function<void(const Progress&)> on_progress;
  const std::atomic<bool>* cancelled;
};

// Runs `work` on another thread, without the GIL. Concurrently this thread calls progress(phase,
// done, total), unless that is None, and lets signals be handled, about ten times per second. An
// exception of either, such as KeyboardInterrupt, cancels the work and is thrown when the work has
// ended. Otherwise throws the error of the work. The end of the interpreter also cancels it.
void RunWatched(nb::handle progress, const std::function<absl::Status(const Watch&)>& work);

// As RunWatched, for a query. Python handles signals only on its main thread, so on all other
// threads the query runs on the calling thread.
void RunQuery(const std::function<absl::Status(const std::atomic<bool>* cancelled)>& query);

}  // namespace cairn::python
