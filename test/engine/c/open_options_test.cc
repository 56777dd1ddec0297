// Fields of cairn_open_options that other tests do not set.
#include <boost/test/unit_test.hpp>
#include <cstddef>
#include <cstdint>
#include <string>

#include "cairn/c.h"
#include "test/engine/c/c_handles.h"
#include "test/engine/serve/built_index.h"
#include "test/engine/test_database.h"

namespace cairn {
BOOST_AUTO_TEST_SUITE(open_options_test)
namespace {

BOOST_AUTO_TEST_CASE(lists_of_devices_are_read) {
  TestDatabase db;
  db.Put("a", "Oslo");
  Build(db, "value:text");
  const std::string path = db.Beside("index");
  cairn_open_options options = cairn_open_options_init();
  options.calibration = CAIRN_CALIBRATION_NONE;
  options.device = CAIRN_ON_AUTO;
  options.devices_count = 2;
  cairn_index* index = nullptr;
  CheckError(cairn_open(path.c_str(), &options, &index), CAIRN_INVALID_ARGUMENT, {"devices"});
  const int32_t devices[] = {1000, -5};
  options.devices = devices;
  CheckError(cairn_open(path.c_str(), &options, &index), CAIRN_INVALID_ARGUMENT, {"devices", "-5"});
  options.devices_count = 1;  // no such device
  RequireNone(cairn_open(path.c_str(), &options, &index));
  const IndexHandle opened(index);
  options.device = CAIRN_ON_GPU;
  CheckError(cairn_open(path.c_str(), &options, &index), CAIRN_UNAVAILABLE, {});
  // A caller of an earlier version, whose options are shorter.
  options.device = CAIRN_ON_CPU;
  options.size = offsetof(cairn_open_options, devices);
  RequireNone(cairn_open(path.c_str(), &options, &index));
  const IndexHandle as_before(index);
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
