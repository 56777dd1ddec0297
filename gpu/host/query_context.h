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

// What one call with a host batch works with on one device: streams, and memory of the host. All of
// it is kept for the next call, so that a warm one allocates nothing. Not thread-safe; a thread
// leases one (QueryContextLease).
class QueryContext {
 public:
  static constexpr int kStreams = 4;

  // For the current device.
  static absl::StatusOr<std::unique_ptr<QueryContext>> Create();
  QueryContext(const QueryContext&) = delete;
  QueryContext& operator=(const QueryContext&) = delete;

  int device() const { return device_; }
  cudaStream_t stream(int i) const { return streams_[i]->get(); }
  // Waits for all work on a stream, or on all. An error says that the device is lost.
  absl::Status Wait(int i);
  absl::Status WaitForAll();
  // Whether such a wait has failed: the streams do no more work, and no thread should get them.
  bool lost() const { return lost_; }

  // At least `bytes` of pinned memory, which the device reads and writes at the same address.
  // Invalidates what an earlier call gave; requires that nothing be in flight. ResourceExhausted.
  absl::StatusOr<char*> Pinned(size_t bytes);
  // At least `size` positions in ordinary memory. As Pinned.
  absl::StatusOr<Position*> Positions(size_t size);

 private:
  QueryContext() = default;

  int device_ = 0;
  std::array<std::optional<Stream>, kStreams> streams_;  // all are there
  PinnedMemory pinned_;
  std::unique_ptr<Position[]> positions_;
  size_t positions_size_ = 0;
  bool lost_ = false;
};

// A context of one device, from those that no thread holds, or a new one: any number of threads
// query at once, and share nothing but the moment in which they take and return theirs. Requires at
// its end that nothing be in flight. One that is lost is freed then.
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

// Frees the contexts of a device that no thread holds; returns how many there were.
size_t FreeIdleQueryContexts(int device);

}  // namespace cairn::gpu
