#include "gpu/runtime/injected_failure.h"

#include <algorithm>
#include <atomic>

namespace cairn::gpu {
namespace {

// Lets `count` calls pass and fails all later ones. A negative count lets all pass.
class Countdown {
 public:
  void Set(int64_t count) { left_.store(count < 0 ? -1 : count, std::memory_order_relaxed); }

  bool Passes() {
    int64_t left = left_.load(std::memory_order_relaxed);
    do {
      if (left < 0) return true;
      if (left == 0) return false;
    } while (!left_.compare_exchange_weak(left, left - 1, std::memory_order_relaxed));
    return true;
  }

 private:
  std::atomic<int64_t> left_{-1};
};

Countdown allocations;
Countdown calls;
Countdown member_calls;
std::atomic<int> failing_member{-1};
std::atomic<uint64_t> device_limit{0};
std::atomic<int> launch_error{0};

}  // namespace

void FailDeviceAllocationsAfter(int64_t count) {
  allocations.Set(count);
}

void LimitDeviceBytes(uint64_t bytes) {
  device_limit.store(bytes, std::memory_order_relaxed);
}

void FailDeviceCallsAfter(int64_t count) {
  calls.Set(count);
}

void FailGroupMemberAfter(int member, int64_t count) {
  failing_member.store(member, std::memory_order_relaxed);
  member_calls.Set(count);
}

void FailLaunchesWith(int cuda_error) {
  launch_error.store(cuda_error, std::memory_order_relaxed);
}

bool MayAllocate(size_t bytes, size_t allocated) {
  return allocations.Passes() && WithinDeviceLimit(bytes, allocated) == bytes;
}

size_t WithinDeviceLimit(size_t available, size_t allocated) {
  const uint64_t limit = device_limit.load(std::memory_order_relaxed);
  if (limit == 0) return available;
  return allocated >= limit ? 0 : std::min<size_t>(available, limit - allocated);
}

absl::Status MayCallDevice() {
  if (calls.Passes()) return absl::OkStatus();
  return absl::UnavailableError("the device is lost (FailDeviceCallsAfter)");
}

absl::Status MayCallMember(int member) {
  const int failing = failing_member.load(std::memory_order_relaxed);
  if ((failing >= 0 && failing != member) || member_calls.Passes()) return absl::OkStatus();
  return absl::UnavailableError("the device is lost (FailGroupMemberAfter)");
}

int InjectedLaunchError() {
  return launch_error.load(std::memory_order_relaxed);
}

}  // namespace cairn::gpu
