#include <boost/test/unit_test.hpp>
#include <string>

#include "cairn/device.h"
#include "cairn/options.h"
#include "cairn/secondary_index.h"
#include "test/engine/serve/built_index.h"
#include "test/engine/test_database.h"
#include "test/require_ok.h"

namespace cairn {
BOOST_AUTO_TEST_SUITE(resident_indexes_test)
namespace {

// Requests for both processors: the CPU is used if a GPU cannot be, and the reason is reported.
BOOST_AUTO_TEST_CASE(an_index_is_served_by_the_cpu_where_a_gpu_cannot) {
  TestDatabase db;
  db.Put("a", "blue");
  db.Put("b", "red");
  db.Put("c", "blue");
  const bool devices = ListDevices().ok();
  for (const bool text : {true, false}) {
    Build(db, text ? "value:bytes" : "value[0:2]:u16be");
    const bool on_gpu = devices && !text;
    OpenOptions options;
    options.device = SearchDevice::kAuto;
    for (const bool named : {false, true}) {
      options.ordered_indexes.clear();
      if (named) options.ordered_indexes = {"gpu:auto"};
      auto index = RequireOk(SecondaryIndex::Open(db.Beside("index"), options));
      BOOST_TEST(All(*index).size() == 3u);
      const auto stats = RequireOk(index->Stats());
      BOOST_TEST(stats.ordered_indexes.back().description.substr(0, 4) ==
                 (on_gpu ? "gpu:" : "cpu:"));
      BOOST_TEST(stats.fallback.empty() == on_gpu);
      if (!devices && !text) {
        BOOST_TEST(stats.fallback.find(std::string(ListDevices().status().message())) !=
                   std::string::npos);
      }
      BOOST_TEST(index->Verify().ok());
    }
    // Names are still checked, and a CPU structure is unchanged.
    options.ordered_indexes = {"gpu:nothing,"};
    BOOST_TEST(absl::IsInvalidArgument(SecondaryIndex::Open(db.Beside("index"), options).status()));
    options.ordered_indexes = {"cpu:sorted_array"};
    auto index = RequireOk(SecondaryIndex::Open(db.Beside("index"), options));
    BOOST_TEST(index->Stats()->ordered_indexes[0].description == "cpu:sorted_array");
    BOOST_TEST(index->Stats()->fallback == "");
  }
}

BOOST_AUTO_TEST_CASE(a_gpu_that_is_insisted_on_and_is_not_there_is_an_error) {
  if (ListDevices().ok()) return;
  TestDatabase db;
  db.Put("a", "blue");
  Build(db, "value[0:2]:u16be");
  OpenOptions options;
  options.device = SearchDevice::kGpu;
  BOOST_TEST(absl::IsUnavailable(SecondaryIndex::Open(db.Beside("index"), options).status()));
  options.device = SearchDevice::kCpu;
  options.ordered_indexes = {"gpu:auto"};
  BOOST_TEST(absl::IsUnavailable(SecondaryIndex::Open(db.Beside("index"), options).status()));
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
