#include "cairn/device.h"

#include <boost/test/unit_test.hpp>

#include "test/gpu/skipped_without_device.h"
#include "test/require_ok.h"

namespace cairn::gpu {
BOOST_FIXTURE_TEST_SUITE(device_test, SkippedWithoutDevice)
namespace {

BOOST_AUTO_TEST_CASE(every_device_has_a_name_and_memory) {
  const auto devices = RequireOk(ListDevices());
  BOOST_REQUIRE(!devices.empty());
  for (const Device& device : devices) {
    BOOST_TEST(!device.name.empty());
    BOOST_TEST(device.memory_bytes > size_t{1} << 28);
  }
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn::gpu
