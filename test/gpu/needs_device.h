#pragma once

#include <cuda_runtime.h>

#include <boost/test/unit_test.hpp>

#include "absl/status/status.h"
#include "gpu/runtime/cuda_status.h"
#include "test/gpu/skipped_without_device.h"

namespace cairn::gpu {

// The fixture of suites that need a device. No case may leave a CUDA error, which would affect
// later cases, unless the device is lost.
struct NeedsDevice : SkippedWithoutDevice {
  ~NeedsDevice() {
    const absl::Status left =
        CudaStatus(cudaGetLastError(), "a call of the test", __FILE__, __LINE__);
    BOOST_TEST((left.ok() || absl::IsUnavailable(left)), left);
  }
};

}  // namespace cairn::gpu
