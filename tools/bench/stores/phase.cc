#include "tools/bench/stores/phase.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
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

// The time that all cores of the machine were busy or stolen from it.
double MachineCpuSeconds() {
  std::ifstream stat("/proc/stat");
  std::string word;
  stat >> word;
  double ticks = 0;
  for (int column = 0; column < 8; ++column) {
    double count = 0;
    stat >> count;
    if (column != 3 && column != 4) ticks += count;  // idle, and waiting for a disk
  }
  return ticks / static_cast<double>(sysconf(_SC_CLK_TCK));
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

size_t Latencies::Bucket(double seconds) {
  const double octaves = std::log2(std::max(1.0, 1e9 * seconds));
  return std::min(static_cast<size_t>(octaves * kPerOctave), kPerOctave * 40 - 1);
}

void Latencies::Add(double seconds) {
  ++buckets_[Bucket(seconds)];
  ++count_;
  sum_ += seconds;
  max_ = std::max(max_, seconds);
}

uint64_t Latencies::Above(double seconds) const {
  uint64_t above = 0;
  for (size_t i = Bucket(seconds) + 1; i < buckets_.size(); ++i) above += buckets_[i];
  return above;
}

double Latencies::Percentile(double share) const {
  uint64_t below = 0;
  const auto rank = static_cast<uint64_t>(share * static_cast<double>(count_));
  size_t bucket = 0;
  while ((below += buckets_[bucket]) <= rank) ++bucket;
  return 1e-9 * std::exp2((static_cast<double>(bucket) + 0.5) / kPerOctave);
}

void Latencies::Report(const std::string& name, Counters* counters) const {
  if (count_ == 0) return;
  (*counters)[name + "_p50_us"] = 1e6 * Percentile(0.5);
  (*counters)[name + "_p99_us"] = 1e6 * Percentile(0.99);
  (*counters)[name + "_max_ms"] = 1e3 * max_;
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
      machine_cpu_(MachineCpuSeconds()),
      cpu_(CpuSeconds()) {}

void Phase::Report(const std::string& unit, double units, Counters* counters) const {
  const double elapsed = seconds();
  const double cpu = CpuSeconds() - cpu_;
  (*counters)["cpu_us_per_" + unit] = 1e6 * cpu / std::max(1.0, units);
  (*counters)["other_cores"] = std::max(0.0, MachineCpuSeconds() - machine_cpu_ - cpu) / elapsed;
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
