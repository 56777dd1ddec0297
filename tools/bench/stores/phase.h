#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

#include "tools/bench/stores/store.h"

namespace cairn::bench {

using PhaseClock = std::chrono::steady_clock;

inline double SecondsSince(PhaseClock::time_point begin) {
  return std::chrono::duration<double>(PhaseClock::now() - begin).count();
}

// The time, from its start on, for which the current thread was ready to run but had no core.
// Without the kernel's statistics: 0.
double QueuedSeconds();

// The times of many operations, in 16 KB however many there are. Percentiles are within 1%; the sum
// and the maximum are exact.
class Latencies {
 public:
  void Add(double seconds);
  uint64_t count() const { return count_; }
  double sum() const { return sum_; }
  double max() const { return max_; }
  // The number of operations that took longer.
  uint64_t Above(double seconds) const;
  // Adds <name>_p50_us, <name>_p99_us and <name>_max_ms, unless there are no operations.
  void Report(const std::string& name, Counters* counters) const;

 private:
  static constexpr size_t kPerOctave = 50;
  static size_t Bucket(double seconds);
  double Percentile(double share) const;

  std::array<uint64_t, kPerOctave* 40> buckets_ = {};  // nanoseconds, by their logarithm
  uint64_t count_ = 0;
  double sum_ = 0;
  double max_ = 0;
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
  //   other_cores        cores that other processes used on average, or that were stolen
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
  const double machine_cpu_;
  const double cpu_;
  const PhaseClock::time_point begin_ = PhaseClock::now();
};

}  // namespace cairn::bench
