#pragma once

#include <cuda_runtime.h>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

// Tracks which streams have work that reads an index. An index's memory is freed after that work,
// on whatever streams it is, without any thread waiting. Thread-safe.

namespace cairn::gpu {

// Records, with an event on the stream, that work enqueued so far on `stream`, of the current
// device `device`, may read indexes. Waits for the stream if the event cannot be created. Does
// nothing for a stream that is being captured: the code that launches the graph must keep the index
// alive.
absl::Status NoteUse(int device, cudaStream_t stream);

// A stream of the current device `device` that waits for all uses recorded so far.
absl::StatusOr<cudaStream_t> StreamBehindUses(int device);

// Makes `stream`, of the current device `device`, wait for all uses recorded so far.
absl::Status WaitForUses(int device, cudaStream_t stream);

// A scope in which the calling thread may make calls that stream captures, its own or other
// threads', would otherwise forbid, and that would invalidate them. Only for calls that do not
// involve the captured streams, or that can be captured. Work enqueued on a captured stream is
// captured as usual.
class BesideCaptures {
 public:
  BesideCaptures() { (void)cudaThreadExchangeStreamCaptureMode(&mode_); }
  ~BesideCaptures() { (void)cudaThreadExchangeStreamCaptureMode(&mode_); }
  BesideCaptures(const BesideCaptures&) = delete;
  BesideCaptures& operator=(const BesideCaptures&) = delete;

 private:
  cudaStreamCaptureMode mode_ = cudaStreamCaptureModeRelaxed;
};

// A scope in which the calling thread enqueues work only on the library's own streams, and waits
// for all of it itself. So no uses need to be recorded, and no captures are affected.
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
