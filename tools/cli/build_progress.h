#pragma once

#include <chrono>
#include <cstdio>
#include <optional>
#include <string>

#include "cairn/options.h"

namespace cairn::tools {

// Shows a build's progress on standard error. On a terminal it is a bar that is redrawn. Otherwise
// it prints a line when a phase begins, and then one every few seconds. It prints nothing if
// standard output is the same pipe.
class BuildProgress {
 public:
  BuildProgress();
  // Removes the bar.
  ~BuildProgress();
  BuildProgress(const BuildProgress&) = delete;
  BuildProgress& operator=(const BuildProgress&) = delete;

  void Show(const Progress& progress);

 private:
  using Clock = std::chrono::steady_clock;

  const bool terminal_;
  const bool hidden_;
  std::optional<Progress::Phase> phase_;
  Clock::time_point phase_start_;
  Clock::time_point last_line_;
  size_t drawn_ = 0;  // width of the bar on the terminal, in characters
};

}  // namespace cairn::tools
