#pragma once

#include <cstddef>
#include <utility>

#include "absl/status/statusor.h"

namespace cairn::gpu {

// Memory of the host that the devices read and write at the host's own address, on the NUMA node
// next to the device that was current when it was made. Movable.
class PinnedMemory {
 public:
  PinnedMemory() = default;
  // Uninitialised; aligned to pages. ResourceExhausted, with the size; Unavailable where the
  // system's addresses are not the device's.
  static absl::StatusOr<PinnedMemory> Allocate(size_t bytes);
  PinnedMemory(PinnedMemory&& other) noexcept { *this = std::move(other); }
  PinnedMemory& operator=(PinnedMemory&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~PinnedMemory();

  char* data() const { return data_; }
  size_t bytes() const { return bytes_; }

 private:
  char* data_ = nullptr;
  size_t bytes_ = 0;
};

// Whether the device reaches all of an array of the host's as it is: one allocation, or one
// registration, pins it from its first byte to its last. Takes some tenths of a microsecond.
bool IsPinned(const void* memory, size_t bytes);

}  // namespace cairn::gpu
