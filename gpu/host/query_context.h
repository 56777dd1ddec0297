#pragma once

#include <cuda_runtime.h>

#include <array>
#include <cstddef>
#include <memory>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cairn/types.h"
#include "gpu/runtime/pinned_memory.h"
#include "gpu/runtime/stream.h"

namespace cairn::gpu {

// The resources of one call with a host-memory batch on one device: streams and host memory. They
// are kept for later calls, so that a warm call does not allocate. Not thread-safe; each thread
// leases its own (QueryContextLease).
class QueryContext {
 public:
  static constexpr int kStreams = 4;

  // Creates a context for the current device.
  static absl::StatusOr<std::unique_ptr<QueryContext>> Create();
  QueryContext(const QueryContext&) = delete;
  QueryContext& operator=(const QueryContext&) = delete;

  int device() const { return device_; }
  cudaStream_t stream(int i) const { return streams_[i]->get(); }
  // Wait for all work on one stream, or on all. An error means that the device is lost.
  absl::Status Wait(int i);
  absl::Status WaitForAll();
  // Whether such a wait has failed. The streams are then unusable, and no thread should get them.
  bool lost() const { return lost_; }

  // Returns at least `bytes` bytes of pinned memory, which has the same address on the device.
  // Invalidates the result of earlier calls. Requires that nothing is in flight. Errors:
  // ResourceExhausted.
  absl::StatusOr<char*> Pinned(size_t bytes);
  // Returns at least `size` positions in pageable memory; otherwise like Pinned.
  absl::StatusOr<Position*> Positions(size_t size);

 private:
  QueryContext() = default;

  int device_ = 0;
  std::array<std::optional<Stream>, kStreams> streams_;  // never empty
  PinnedMemory pinned_;
  std::unique_ptr<Position[]> positions_;
  size_t positions_size_ = 0;
  bool lost_ = false;
};

// A context of one device, either idle or new. Any number of threads can query concurrently; they
// share only the moments in which they take and return contexts. Nothing may be in flight when the
// lease ends. A lost context is freed then.
class QueryContextLease {
 public:
  static absl::StatusOr<QueryContextLease> Acquire(int device);
  QueryContextLease(QueryContextLease&&) = default;
  QueryContextLease& operator=(QueryContextLease&&) = delete;
  ~QueryContextLease();

  QueryContext* operator->() const { return context_.get(); }
  QueryContext& operator*() const { return *context_; }

 private:
  explicit QueryContextLease(std::unique_ptr<QueryContext> context)
      : context_(std::move(context)) {}
  std::unique_ptr<QueryContext> context_;
};

// Frees the contexts of a device that no thread holds, and returns their number.
size_t FreeIdleQueryContexts(int device);

}  // namespace cairn::gpu
