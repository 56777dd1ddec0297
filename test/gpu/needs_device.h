#pragma once

#include <boost/test/unit_test.hpp>
#include <cstdlib>
#include <iostream>

#include "absl/status/status.h"
#include "cairn/device.h"

namespace cairn::gpu {

// A suite's fixture, for suites that need a device: without one, ends the process with ctest's
// "skipped" status.
struct NeedsDevice {
  NeedsDevice() {
    if (auto devices = Devices(); !devices.ok()) {
      BOOST_CHECK(absl::IsUnavailable(devices.status()));
      std::cerr << "skipped: " << devices.status().message() << std::endl;
      std::_Exit(77);
    }
  }
};

}  // namespace cairn::gpu
