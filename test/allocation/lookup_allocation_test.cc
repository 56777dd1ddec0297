// A lookup whose result object is reused allocates no memory.
#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "cairn/indexed_db.h"
#include "rocksdb/db.h"
#include "test/allocation/failing_new.h"
#include "test/require_ok.h"
#include "test/temporary_directory.h"

namespace cairn {
BOOST_AUTO_TEST_SUITE(lookup_allocation_test)
namespace {

constexpr int kRows = 5000;
constexpr int kTries = 20;  // RocksDB's threads may allocate during some of them

template <typename Query>
uint64_t LeastAllocations(const SecondaryIndex& index, const Query& key) {
  FoundKeys found;
  const auto count = [&] {
    FailingNew::Arm(UINT64_MAX, FailingNew::How::kOnce);
    const absl::Status status = index.Lookup(key, {}, &found);
    const uint64_t allocated = FailingNew::Disarm().allocated;
    RequireOk(status);
    BOOST_REQUIRE_EQUAL(found.size(), 1u);
    return allocated;
  };
  BOOST_TEST(count() > 0u);  // for the result
  uint64_t least = UINT64_MAX;
  for (int i = 0; i < kTries; ++i) least = std::min(least, count());
  return least;
}

// An IndexedDB without background work, and rows "row<i>" with the number i and the text "text<i>".
std::unique_ptr<IndexedDB> Open(const std::string& path) {
  rocksdb::Options options;
  options.create_if_missing = true;
  IndexedDBOptions indexed;
  indexed.open.calibration = Calibration::kNone;
  indexed.follow_interval = indexed.flush_interval = indexed.compact_interval =
      absl::ZeroDuration();
  auto db = RequireOk(IndexedDB::Open(options, path, indexed));
  for (int i = 0; i < kRows; ++i) {
    RequireOk(db->Put({}, absl::StrCat("a long primary key of row ", i), absl::StrCat(i)));
  }
  return db;
}

BOOST_AUTO_TEST_CASE(a_lookup_with_a_reused_result_allocates_nothing) {
  const TemporaryDirectory directory;
  const std::unique_ptr<IndexedDB> db = Open(directory / "db");
  for (const char* spec : {"number = value.field(',', 0):u64", "text = value:text"}) {
    RequireOk(db->CreateIndex(spec));
  }
  for (const bool with_changes : {false, true}) {
    if (with_changes) RequireOk(db->Put({}, "another row", "123456"));
    BOOST_TEST_CONTEXT((with_changes ? "with changes" : "without changes")) {
      RequireOk(db->WaitUntilReady("number"));
      RequireOk(db->WaitUntilReady("text"));
      const auto number = RequireOk(db->Index("number"));
      const auto text = RequireOk(db->Index("text"));
      BOOST_TEST(LeastAllocations(*number, 4000) == 0u);
      BOOST_TEST(LeastAllocations(*RequireOk(number->Pin()), 4000) == 0u);
      BOOST_TEST(LeastAllocations(*text, "4000") == 0u);
      BOOST_TEST(LeastAllocations(*RequireOk(text->Pin()), "4000") == 0u);
    }
  }
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
