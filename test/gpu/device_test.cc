#include "cairn/device.h"

#include <boost/test/unit_test.hpp>
#include <cstdlib>
#include <iostream>

namespace cairn::gpu {
namespace {

// Ends the process with ctest's "skipped" status where there is no device.
struct NeedsDevice {
  NeedsDevice() {
    if (auto devices = Devices(); !devices.ok()) {
      BOOST_CHECK(absl::IsUnavailable(devices.status()));
      std::cerr << "skipped: " << devices.status().message() << std::endl;
      std::_Exit(77);
    }
  }
};

BOOST_FIXTURE_TEST_SUITE(device_test, NeedsDevice)

BOOST_AUTO_TEST_CASE(every_device_has_a_name_and_memory) {
  const auto devices = Devices();
  BOOST_REQUIRE(devices.ok());
  BOOST_REQUIRE(!devices->empty());
  for (const Device& device : *devices) {
    BOOST_TEST(!device.name.empty());
    BOOST_TEST(device.memory_bytes > size_t{1} << 28);
  }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace cairn::gpu
