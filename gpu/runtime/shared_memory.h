#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace cairn::gpu {

// Maximum shared memory in bytes that a block can request on the current device: 227 KB on an H200,
// 99 KB on devices of compute capability 8.6 and 8.9, 64 KB on 7.5.
absl::StatusOr<size_t> MostSharedBytes();

// Lets the blocks of one kernel use all shared memory that the current device has for them. CUDA
// keeps this limit per kernel and device, for all threads and launches. Setting it to the size of
// one launch could make another launch fail, so it is set once, to the maximum, and never lowered.
// A constant of static storage, one per kernel. Thread-safe.
class SharedMemoryOfKernel {
 public:
  absl::Status AllowMost(const void* kernel);

 private:
  std::atomic<uint64_t> allowed_{0};  // one bit per device
};

// The number of blocks of one kernel, with `threads` threads and `shared_bytes` of shared memory
// each, that the current device runs concurrently; at least one. CUDA is queried again only if the
// bytes differ from the last call. A constant of static storage, one per kernel and number of
// threads. Thread-safe.
class ResidentBlocks {
 public:
  absl::StatusOr<unsigned> Count(const void* kernel, int threads, size_t shared_bytes);

 private:
  // One element per device: the bytes in the upper half, the blocks in the lower half; 0 if not
  // queried yet.
  std::array<std::atomic<uint64_t>, 64> known_{};
};

// For tests: limits the shared memory of a block to `bytes`; 0 ends this.
void LimitSharedBytes(size_t bytes);

}  // namespace cairn::gpu
