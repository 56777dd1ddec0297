#include "engine/util/progress_meter.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace cairn {
namespace {
constexpr std::chrono::milliseconds kInterval(100);
}  // namespace

ProgressMeter::ProgressMeter(std::function<void(const Progress&)> listener)
    : listener_(std::move(listener)) {
  if (!listener_) return;
  reporter_ = std::thread([this] {
    MutexLock lock(&mutex_);
    while (!stopping_) {
      const auto next = std::chrono::steady_clock::now() + kInterval;
      while (!stopping_ && wake_.WaitUntil(&lock, next)) {
      }
      if (!stopping_) Report();
    }
  });
}

ProgressMeter::~ProgressMeter() {
  if (!listener_) return;
  {
    const MutexLock lock(&mutex_);
    Report();
    stopping_ = true;
  }
  wake_.NotifyOne();
  reporter_.join();
}

void ProgressMeter::Start(Progress::Phase phase, uint64_t total) {
  const MutexLock lock(&mutex_);
  total_ = done_.load(std::memory_order_relaxed);
  Report();
  started_ = true;
  phase_ = phase;
  total_ = total;
  done_.store(0, std::memory_order_relaxed);
}

void ProgressMeter::Report() {
  if (!listener_ || !started_) return;
  // If the total was estimated too low, the number done replaces it.
  const uint64_t done = done_.load(std::memory_order_relaxed);
  listener_({phase_, done, std::max(done, total_)});
}

}  // namespace cairn
