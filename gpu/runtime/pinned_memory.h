#pragma once

#include <cstddef>
#include <utility>

#include "absl/status/statusor.h"

namespace cairn::gpu {

// Host memory that devices can access at the same address, on the NUMA node next to the device that
// was current during allocation. Movable.
class PinnedMemory {
 public:
  PinnedMemory() = default;
  // Uninitialized and page-aligned. Errors: ResourceExhausted, with the size; Unavailable if the
  // device does not use the same addresses as the host.
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

// Whether the device can access the whole host array directly: one allocation or one registration
// pins it from its first to its last byte. Takes a few tenths of a microsecond.
bool IsPinned(const void* memory, size_t bytes);

}  // namespace cairn::gpu
