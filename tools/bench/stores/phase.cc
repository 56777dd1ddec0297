#include "tools/bench/stores/phase.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace cairn::bench {
namespace {

double baseline_megabytes = 0;
double baseline_mapped = 0;
double highest_megabytes = 0;  // of the phases so far

double Seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
}

double CpuSeconds() {
  rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return Seconds(usage.ru_utime) + Seconds(usage.ru_stime);
}

// A line of /proc/self/status.
double StatusMegabytes(const std::string& line) {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    double kilobytes = 0;
    if (word == line + ":" && status >> kilobytes) return kilobytes * 1024 / 1e6;
  }
  return 0;
}

// Sets VmHWM to VmRSS (proc(5)); returns the peak before.
double ResetPeak() {
  highest_megabytes = std::max(highest_megabytes, StatusMegabytes("VmHWM"));
  std::ofstream("/proc/self/clear_refs") << "5";
  return highest_megabytes;
}

}  // namespace

double QueuedSeconds() {
  thread_local const int file = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
  char text[64] = {};
  if (file < 0 || pread(file, text, sizeof(text) - 1, 0) <= 0) return 0;
  // Two numbers: nanoseconds on a core, nanoseconds in the queue.
  char* second = text;
  std::strtoull(text, &second, 10);
  return 1e-9 * static_cast<double>(std::strtoull(second, nullptr, 10));
}

double Latencies::Sum() const {
  double sum = 0;
  for (const float seconds : seconds_) sum += seconds;
  return sum;
}

double Latencies::Max() const {
  return seconds_.empty() ? 0 : *std::max_element(seconds_.begin(), seconds_.end());
}

void Latencies::Report(const std::string& name, Counters* counters) {
  if (seconds_.empty()) return;
  std::sort(seconds_.begin(), seconds_.end());
  (*counters)[name + "_p50_us"] = 1e6 * seconds_[seconds_.size() / 2];
  (*counters)[name + "_p99_us"] = 1e6 * seconds_[seconds_.size() * 99 / 100];
  (*counters)[name + "_max_ms"] = 1e3 * seconds_.back();
}

size_t Latencies::Above(double seconds) const {
  return static_cast<size_t>(
      std::count_if(seconds_.begin(), seconds_.end(), [&](float time) { return time > seconds; }));
}

void Phase::SetBaseline() {
  baseline_megabytes = StatusMegabytes("VmRSS");
  baseline_mapped = StatusMegabytes("RssFile");
}

Phase::ThreadTimes Phase::ReadThreadTimes() {
  ThreadTimes times;
  for (const auto& thread : std::filesystem::directory_iterator("/proc/self/task")) {
    double nanoseconds = 0;
    if (std::ifstream(thread.path() / "schedstat") >> nanoseconds) {
      times[thread.path().filename()] = 1e-9 * nanoseconds;
    }
  }
  return times;
}

Phase::Phase(const Store* store)
    : store_(store),
      sums_(store->Sums()),
      peak_before_(ResetPeak()),
      threads_(ReadThreadTimes()),
      cpu_(CpuSeconds()) {}

void Phase::Report(const std::string& unit, double units, Counters* counters) const {
  const double elapsed = seconds();
  (*counters)["cpu_us_per_" + unit] = 1e6 * (CpuSeconds() - cpu_) / std::max(1.0, units);
  double awake = 0;
  for (const auto& [thread, time] : ReadThreadTimes()) {
    const auto before = threads_.find(thread);
    awake += time - (before == threads_.end() ? 0 : before->second) >= 0.01 * elapsed;
  }
  (*counters)["threads_awake"] = awake;
  const double peak = StatusMegabytes("VmHWM");
  (*counters)["peak_mb"] = std::max(peak_before_, peak) - baseline_megabytes;
  (*counters)["phase_peak_mb"] = peak - baseline_megabytes;
  (*counters)["mapped_mb"] = StatusMegabytes("RssFile") - baseline_mapped;
  for (const auto& [name, sum] : store_->Sums()) (*counters)[name] = sum - sums_.at(name);
}

}  // namespace cairn::bench
