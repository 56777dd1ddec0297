#pragma once

#include <cuda_runtime.h>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

// Which streams have been given work that reads an index, so that an index's memory is freed behind
// that work, whatever streams it is on, and nobody waits. Thread-safe.

namespace cairn::gpu {

// Notes that what is enqueued on `stream`, of the current device `device`, by now may read indexes:
// an event on the stream. Where there can be none, waits for the stream. A stream that is being
// captured does nothing now; who launches the graph keeps the index.
absl::Status NoteUse(int device, cudaStream_t stream);

// A stream of the current device `device` that has been told to wait for all uses noted so far.
absl::StatusOr<cudaStream_t> StreamBehindUses(int device);

// Makes `stream`, of the current device `device`, wait for all uses noted so far.
absl::Status WaitForUses(int device, cudaStream_t stream);

// A scope in which the calling thread may make calls that captures of streams, its own or other
// threads', would forbid it and be spoilt by: for calls that touch none of those streams, or that
// may be captured. What is enqueued on a stream that is being captured is captured as ever.
class BesideCaptures {
 public:
  BesideCaptures() { (void)cudaThreadExchangeStreamCaptureMode(&mode_); }
  ~BesideCaptures() { (void)cudaThreadExchangeStreamCaptureMode(&mode_); }
  BesideCaptures(const BesideCaptures&) = delete;
  BesideCaptures& operator=(const BesideCaptures&) = delete;

 private:
  cudaStreamCaptureMode mode_ = cudaStreamCaptureModeRelaxed;
};

// A scope in which the calling thread enqueues on streams of the library's own alone, and itself
// waits for all of it, so that no uses need be noted and no captures are concerned.
class WaitsForItsUses {
 public:
  WaitsForItsUses();
  ~WaitsForItsUses();
  WaitsForItsUses(const WaitsForItsUses&) = delete;
  WaitsForItsUses& operator=(const WaitsForItsUses&) = delete;

 private:
  const BesideCaptures beside_;
  bool before_;
};

}  // namespace cairn::gpu
