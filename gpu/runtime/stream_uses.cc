#include "gpu/runtime/stream_uses.h"

#include <algorithm>
#include <array>
#include <mutex>
#include <vector>

#include "gpu/runtime/cuda_status.h"

namespace cairn::gpu {
namespace {

constexpr size_t kTrackedDevices = 64;
// The destruction of streams is not reported, so beyond this number, completed uses are forgotten.
constexpr size_t kManyUses = 64;

// The last work of a stream. Streams are identified by numbers, which are unique; handles are
// reused.
struct Use {
  unsigned long long stream;
  cudaEvent_t event;
};

struct Uses {
  std::mutex mutex;
  std::vector<Use> uses;
  cudaStream_t behind = nullptr;  // created on demand, never destroyed
};

// Never destroyed, because CUDA may shut down earlier when the process ends.
Uses& UsesOf(int device) {
  static auto& all = *new std::array<Uses, kTrackedDevices>;
  return all[static_cast<size_t>(device)];
}

thread_local bool waits_itself = false;

void ForgetDone(std::vector<Use>* uses) {
  const auto done = [](const Use& use) {
    if (cudaEventQuery(use.event) == cudaErrorNotReady) {
      ForgetNotReady();
      return false;
    }
    (void)cudaEventDestroy(use.event);
    return true;
  };
  uses->erase(std::remove_if(uses->begin(), uses->end(), done), uses->end());
}

absl::Status Record(Uses& of_device, unsigned long long number, cudaStream_t stream) {
  const BesideCaptures beside;
  const std::lock_guard<std::mutex> lock(of_device.mutex);
  std::vector<Use>& uses = of_device.uses;
  auto use = std::find_if(uses.begin(), uses.end(),
                          [&](const Use& other) { return other.stream == number; });
  if (use == uses.end()) {
    if (uses.size() >= kManyUses) ForgetDone(&uses);
    cudaEvent_t event = nullptr;
    CAIRN_RETURN_IF_CUDA_FAILS(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    use = uses.insert(uses.end(), Use{number, event});
  }
  CAIRN_RETURN_IF_CUDA_FAILS(cudaEventRecord(use->event, stream));
  return absl::OkStatus();
}

}  // namespace

absl::Status NoteUse(int device, cudaStream_t stream) {
  if (waits_itself) return absl::OkStatus();
  cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone;
  CAIRN_RETURN_IF_CUDA_FAILS(cudaStreamIsCapturing(stream, &capture));
  if (capture != cudaStreamCaptureStatusNone) return absl::OkStatus();
  unsigned long long number = 0;
  CAIRN_RETURN_IF_CUDA_FAILS(cudaStreamGetId(stream, &number));
  if (Record(UsesOf(device), number, stream).ok()) return absl::OkStatus();
  CAIRN_RETURN_IF_CUDA_FAILS(cudaStreamSynchronize(stream));
  return absl::OkStatus();
}

absl::StatusOr<cudaStream_t> StreamBehindUses(int device) {
  Uses& of_device = UsesOf(device);
  const BesideCaptures beside;
  const std::lock_guard<std::mutex> lock(of_device.mutex);
  if (of_device.behind == nullptr) {
    CAIRN_RETURN_IF_CUDA_FAILS(cudaStreamCreateWithFlags(&of_device.behind, cudaStreamNonBlocking));
  }
  for (const Use& use : of_device.uses) {
    CAIRN_RETURN_IF_CUDA_FAILS(cudaStreamWaitEvent(of_device.behind, use.event));
  }
  return of_device.behind;
}

absl::Status WaitForUses(int device, cudaStream_t stream) {
  Uses& of_device = UsesOf(device);
  const BesideCaptures beside;
  const std::lock_guard<std::mutex> lock(of_device.mutex);
  for (const Use& use : of_device.uses) {
    CAIRN_RETURN_IF_CUDA_FAILS(cudaStreamWaitEvent(stream, use.event));
  }
  return absl::OkStatus();
}

WaitsForItsUses::WaitsForItsUses() : before_(waits_itself) {
  waits_itself = true;
}

WaitsForItsUses::~WaitsForItsUses() {
  waits_itself = before_;
}

}  // namespace cairn::gpu
