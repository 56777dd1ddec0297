#pragma once

#include <boost/test/unit_test.hpp>
#include <functional>

#include "absl/status/status.h"
#include "gpu/runtime/device_memory.h"
#include "gpu/runtime/injected_failure.h"

namespace cairn::gpu {

// Lets the first, the second, ... allocation of `work` fail until it needs no more of them. Returns
// how many it needs.
inline int FailEveryAllocation(const std::function<absl::Status()>& work) {
  const size_t before = AllocatedDeviceBytes();
  for (int i = 0;; ++i) {
    FailDeviceAllocationsAfter(i);
    const absl::Status status = work();
    FailDeviceAllocationsAfter(-1);
    BOOST_TEST(AllocatedDeviceBytes() == before, "after failure " << i << ": " << status);
    if (status.ok()) return i;
    BOOST_TEST(absl::IsResourceExhausted(status), "at failure " << i << ": " << status);
    BOOST_REQUIRE(i < 1000);
  }
}

}  // namespace cairn::gpu
