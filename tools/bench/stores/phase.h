#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "tools/bench/stores/store.h"

namespace cairn::bench {

using PhaseClock = std::chrono::steady_clock;

inline double SecondsSince(PhaseClock::time_point begin) {
  return std::chrono::duration<double>(PhaseClock::now() - begin).count();
}

// The time, from its start on, for which the current thread was ready to run but had no core.
// Without the kernel's statistics: 0.
double QueuedSeconds();

// The times of many operations.
class Latencies {
 public:
  void Add(double seconds) { seconds_.push_back(static_cast<float>(seconds)); }
  size_t size() const { return seconds_.size(); }
  double Sum() const;
  double Max() const;
  // Adds <name>_p50_us, <name>_p99_us and <name>_max_ms, unless there are no operations.
  void Report(const std::string& name, Counters* counters);
  // The number of operations that took longer.
  size_t Above(double seconds) const;

 private:
  std::vector<float> seconds_;
};

// The resources that this process uses from the construction on.
class Phase {
 public:
  // Remembers the memory of the process before a store is opened. To be called first.
  static void SetBaseline();

  // Differences of the store's sums are reported.
  explicit Phase(const Store* store);
  // Adds these counters:
  //   cpu_us_per_<unit>  processor time of all threads, divided by `units`
  //   threads_awake      threads that ran for at least 1% of the time
  //   peak_mb            peak of the resident memory since the baseline, minus the baseline
  //   phase_peak_mb      peak since the construction, minus the baseline
  //   mapped_mb          resident part of mapped files at the end, minus the baseline
  void Report(const std::string& unit, double units, Counters* counters) const;
  double seconds() const { return SecondsSince(begin_); }

 private:
  using ThreadTimes = std::map<std::string, double>;  // seconds, by thread id
  static ThreadTimes ReadThreadTimes();

  const Store* const store_;
  const Counters sums_;
  const double peak_before_;
  const ThreadTimes threads_;
  const double cpu_;
  const PhaseClock::time_point begin_ = PhaseClock::now();
};

}  // namespace cairn::bench
