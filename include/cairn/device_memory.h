#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "cairn/device.h"

// Where the library takes device memory from: of each device a stream-ordered pool of its own,
// which keeps some of what was freed for the next allocation, or a memory resource of the
// program's.

namespace cairn {

// Gives the system back what the pool of a device (an ordinal) has kept of freed memory, but for
// `keep_bytes` of it. What is freed by work that streams have yet to do stays. Waits for nothing;
// thread-safe. Unavailable where there is no such device. A device with a resource of the program's
// keeps nothing: OK.
absl::Status TrimDeviceMemory(int device, uint64_t keep_bytes = 0);

// A memory resource of the program's. Called from any threads, as often as indexes are built and
// batches take scratch memory, with the memory's device current.
class DeviceMemoryResource {
 public:
  virtual ~DeviceMemoryResource() = default;

  // Memory of the current device for `bytes` bytes, more than none, at a multiple of 256; for work
  // enqueued on `stream` from now on, which may be being captured. Null where there is none. Must
  // not throw.
  virtual void* Allocate(size_t bytes, DeviceStream stream) = 0;
  // Takes back what Allocate gave for as many bytes, once the work enqueued on `stream` so far,
  // which may be another stream than then, is done. Must not throw.
  virtual void Deallocate(void* memory, size_t bytes, DeviceStream stream) = 0;
  // How many bytes Allocate may still give; builds that take more are refused before they begin.
  virtual size_t AvailableBytes() { return SIZE_MAX; }
};

// From now on the library's memory of a device (an ordinal) comes from a resource, which must
// outlive all that is made with it; null: from the pool. FailedPrecondition, with how much it is,
// while the library holds memory of the device: indexes, or the scratch of a call. Unavailable
// where there is no such device. Not to be called while another thread uses the device.
absl::Status SetDeviceMemoryResource(int device, DeviceMemoryResource* resource);

}  // namespace cairn
