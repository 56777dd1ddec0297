// Unique indexes, live and caught up, of rows that merge operands make.
#include <boost/test/unit_test.hpp>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "cairn/catch_up.h"
#include "cairn/secondary_index.h"
#include "cairn/snapshot_source.h"
#include "test/engine/indexed_database.h"

namespace cairn {
BOOST_AUTO_TEST_SUITE(indexed_db_unique_test)
namespace {

BOOST_AUTO_TEST_CASE(what_a_unique_index_has_in_between_does_not_count) {
  IndexedDatabase db;
  db.rocksdb_options().merge_operator = std::make_shared<AppendOperator>();
  db.Put("X", "x0");
  db.Put("Y", "k");
  const std::string directory = db.Beside("offline");
  std::unique_ptr<SecondaryIndex> offline;
  {
    const auto source = SnapshotSource::FromDb(db->GetBaseDB());
    RequireOk(source.status());
    auto built = SecondaryIndex::Build(**source, SpecOf("value:text, unique=true"), directory);
    RequireOk(built.status());
    offline = *std::move(built);
  }
  db.Create("live = value:text, unique=true");
  // Past the object, which would refuse what it cannot tell the end of. X is looked up as it is at
  // the end, and has what Y has until it changes.
  rocksdb::DB* const base = db->GetBaseDB();
  RequireOk(base->Delete({}, "X"));
  RequireOk(base->Merge({}, "X", "x1"));
  for (int i = 0; i < 3000; ++i) {
    RequireOk(base->Put({}, absl::StrCat("r", i), absl::StrCat(std::string(1000, 'r'), i)));
  }
  RequireOk(base->Put({}, "Y", "y1"));
  RequireOk(base->Delete({}, "X"));
  RequireOk(base->Merge({}, "X", "k"));
  const auto source = SnapshotSource::FromDb(base);
  RequireOk(source.status());
  CatchUpOptions options;
  options.max_bytes_per_second = 20 << 20;
  RequireOk(offline->CatchUp(**source, options).status());
  BOOST_TEST(RowsOf(*offline, "k") == "X");
  BOOST_TEST(RowsOf(db.get(), "live", "k") == "X");
  // What it has in the end does count.
  RequireOk(base->Merge({}, "Z", "y1"));
  BOOST_TEST(absl::IsFailedPrecondition(db->Pin("live").status()));
  const auto last = SnapshotSource::FromDb(base);
  RequireOk(last.status());
  BOOST_TEST(absl::IsAlreadyExists(offline->CatchUp(**last).status()));
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
