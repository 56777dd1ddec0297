#include "gpu/runtime/devices.h"

#include <boost/test/unit_test.hpp>
#include <memory>
#include <optional>
#include <vector>

#include "absl/strings/match.h"
#include "cairn/device.h"
#include "gpu/runtime/stream.h"
#include "test/gpu/device_array.h"
#include "test/gpu/needs_device.h"
#include "test/require_ok.h"

namespace cairn::gpu {
BOOST_AUTO_TEST_SUITE(devices_test)
namespace {

BOOST_AUTO_TEST_CASE(a_device_older_than_the_build_is_unavailable) {
  const int hopper[] = {900};
  BOOST_TEST(CheckCapability("H200", 9, 0, hopper).ok());
  BOOST_TEST(CheckCapability("B200", 10, 0, hopper).ok());
  const absl::Status ampere = CheckCapability("CUDA device 1 (A100)", 8, 0, hopper);
  BOOST_TEST(absl::IsUnavailable(ampere));
  for (const char* part : {"CUDA device 1 (A100)", "8.0", "9.0"}) {
    BOOST_TEST(absl::StrContains(ampere.message(), part), ampere);
  }
  const int several[] = {800, 860, 900};
  BOOST_TEST(CheckCapability("A100", 8, 0, several).ok());
  BOOST_TEST(CheckCapability("L40", 8, 9, several).ok());
}

BOOST_AUTO_TEST_CASE(a_device_that_lacks_what_kernels_use_is_unavailable_whatever_the_build) {
  const int old[] = {700, 750};
  const absl::Status turing = CheckCapability("T4", 7, 5, old);
  BOOST_TEST(absl::IsUnavailable(turing));
  BOOST_TEST(absl::StrContains(turing.message(), "8.0"), turing);
  BOOST_TEST(CheckCapability("A100", 8, 0, old).ok());
}

BOOST_FIXTURE_TEST_CASE(a_stream_is_of_the_device_that_it_was_made_on, NeedsDevice) {
  const auto devices = RequireOk(ListDevices());
  for (const Device& device : devices) {
    const OnDevice on_device(device.ordinal);
    const auto stream = RequireOk(Stream::Create());
    BOOST_TEST(*DeviceOfStream(nullptr) == device.ordinal);
    for (const Device& other : devices) {
      const OnDevice elsewhere(other.ordinal);
      BOOST_TEST(*DeviceOfStream(stream.get()) == device.ordinal);
    }
  }
}

// With one device this tests little, since the current one is always the stream's.
BOOST_FIXTURE_TEST_CASE(an_index_is_built_on_its_streams_device_whichever_is_current, NeedsDevice) {
  const auto devices = RequireOk(ListDevices());
  const Device& last = devices.back();
  std::unique_ptr<Stream> stream;
  std::optional<DeviceArray<uint32_t>> keys, results;
  std::optional<DeviceArray<RowId>> rows;
  {
    const OnDevice on_device(last.ordinal);
    stream = std::make_unique<Stream>(*Stream::Create());
    keys.emplace(std::vector<uint32_t>{30, 10, 20});
    rows.emplace(std::vector<RowId>{1, 2, 3});
    results.emplace(3);
  }
  const OnDevice elsewhere(devices.front().ordinal);
  const auto index = RequireOk(
      MakeDeviceIndex("gpu:packed", DeviceKeys(keys->data(), 3), rows->data(), stream->get()));
  BOOST_TEST(index->device() == last.ordinal);
  BOOST_TEST(index
                 ->Execute(DeviceBatch::FindFirst(DeviceKeys(keys->data(), 3), results->data()),
                           stream->get())
                 .ok());
  BOOST_TEST(stream->Wait().ok());
  BOOST_TEST((results->ToHost() == std::vector<uint32_t>{1, 2, 3}));
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn::gpu
