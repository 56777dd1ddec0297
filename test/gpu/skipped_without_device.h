#pragma once

#include <boost/test/unit_test.hpp>
#include <cstdlib>
#include <iostream>

#include "absl/status/status.h"
#include "cairn/device.h"

namespace cairn::gpu {

// A suite's fixture: without a device, ends the process with ctest's "skipped" status. Builds
// without CUDA have it too.
struct SkippedWithoutDevice {
  SkippedWithoutDevice() {
    if (auto devices = ListDevices(); !devices.ok()) {
      BOOST_CHECK(absl::IsUnavailable(devices.status()));
      std::cerr << "skipped: " << devices.status().message() << std::endl;
      std::_Exit(77);
    }
  }
};

}  // namespace cairn::gpu
