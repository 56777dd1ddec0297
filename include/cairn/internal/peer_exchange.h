#pragma once

#include <cstdint>

#include "cairn/device/group.h"

namespace cairn {

// How queries and results are transferred between the device of a batch and the other devices.
enum class PeerExchange : uint8_t {
  // Kernels that access peer memory if the devices support it, otherwise copies. No transfer takes
  // place if the member is on the batch's own device.
  kAuto,
  kKernels,  // kernels; Unimplemented if two devices cannot access each other. For tests.
  kCopies,   // copies, even within one device. For tests.
};

}  // namespace cairn
