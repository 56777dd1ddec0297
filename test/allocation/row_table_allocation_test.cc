// Allocations of a row table's writer fail, and its caller continues.
#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cstdint>
#include <new>
#include <string>

#include "engine/rows/row_table_writer.h"
#include "test/allocation/failing_new.h"
#include "test/engine/rows/row_tables.h"

namespace cairn {
BOOST_AUTO_TEST_SUITE(row_table_allocation_test)
namespace {

// Adds the keys, each until that does not throw. Returns whether an allocation failed.
bool AddAll(const Keys& keys, uint64_t spared, RowTableWriter* writer) {
  bool thrown = false;
  FailingNew::Arm(spared, FailingNew::How::kOnce);
  for (const std::string& key : keys) {
    for (bool added = false; !added;) {
      try {
        (void)writer->part(0).Add(key);
        added = true;
      } catch (const std::bad_alloc&) {
        thrown = true;
      }
    }
  }
  FailingNew::Disarm();
  return thrown;
}

BOOST_AUTO_TEST_CASE(a_table_is_finished_whole_or_not_at_all) {
  Keys keys;
  for (int i = 0; i < 3000; ++i) keys.push_back("a key of some length " + std::to_string(i));
  std::sort(keys.begin(), keys.end());
  int refused = 0;
  for (uint64_t spared = 0;; ++spared) {
    MemorySink sink;
    RowTableWriter writer(1, &sink);
    if (!AddAll(keys, spared, &writer)) break;
    const absl::Status status = writer.Finish();
    if (!status.ok()) {
      BOOST_TEST(absl::IsResourceExhausted(status), status);
      ++refused;
      continue;
    }
    const RowTable table = RequireOk(sink.Open());
    BOOST_TEST(table.rows() == keys.size());
    BOOST_TEST(table.CheckKeys(1).ok());
  }
  BOOST_TEST(refused > 0);
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
