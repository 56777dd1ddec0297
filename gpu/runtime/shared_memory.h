#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace cairn::gpu {

// Bytes of shared memory that a block of the current device may take when its kernel asks for them:
// 227 KB on an H200, 99 KB on devices of compute capability 8.6 and 8.9, 64 KB on those of 7.5.
absl::StatusOr<size_t> MostSharedBytes();

// Lets the blocks of one kernel take all the shared memory that the current device has for them.
// CUDA keeps that limit a kernel and device, for all threads and launches: set to what one launch
// needs it would fail another one's, so it is set once, to the most, and never lowered. A constant
// of static storage, one for each kernel. Thread-safe.
class SharedMemoryOfKernel {
 public:
  absl::Status AllowMost(const void* kernel);

 private:
  std::atomic<uint64_t> allowed_{0};  // a bit a device
};

// How many blocks of one kernel, of so many threads and bytes of shared memory each, the current
// device runs at once, at least one. CUDA is asked again only where the bytes are others than last
// time. A constant of static storage, one for each kernel and number of threads. Thread-safe.
class ResidentBlocks {
 public:
  absl::StatusOr<unsigned> Count(const void* kernel, int threads, size_t shared_bytes);

 private:
  // By device: the bytes, and below them the blocks; 0 where it was not asked.
  std::array<std::atomic<uint64_t>, 64> known_{};
};

// For tests: no device gives a block more than `bytes`; 0 ends that.
void LimitSharedBytes(size_t bytes);

}  // namespace cairn::gpu
