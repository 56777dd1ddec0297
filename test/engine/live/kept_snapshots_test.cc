#include "engine/live/kept_snapshots.h"

#include <boost/test/unit_test.hpp>
#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <string>

#include "rocksdb/db.h"
#include "rocksdb/utilities/stackable_db.h"
#include "test/require_ok.h"
#include "test/temporary_directory.h"

namespace cairn {
BOOST_AUTO_TEST_SUITE(kept_snapshots_test)
namespace {

// A database that calls `taken` while a snapshot is returned.
class Database : public rocksdb::StackableDB {
 public:
  static std::unique_ptr<Database> Open(const std::string& path, bool in_place = false) {
    rocksdb::Options options;
    options.create_if_missing = true;
    options.inplace_update_support = in_place;
    options.allow_concurrent_memtable_write = !in_place;
    rocksdb::DB* db = nullptr;
    RequireOk(rocksdb::DB::Open(options, path, &db));
    return std::make_unique<Database>(db);
  }
  explicit Database(rocksdb::DB* db) : StackableDB(db) {}
  const rocksdb::Snapshot* GetSnapshot() override {
    const rocksdb::Snapshot* const snapshot = StackableDB::GetSnapshot();
    if (taken != nullptr) taken();
    return snapshot;
  }
  using StackableDB::Put;
  void Put() { RequireOk(Put({}, "key", "value")); }

  std::function<void()> taken;
};

}  // namespace

BOOST_AUTO_TEST_CASE(a_follower_waits_for_a_snapshot_that_is_being_taken) {
  const TemporaryDirectory directory;
  const auto db = Database::Open(directory / "db");
  db->Put();
  KeptSnapshots kept(db.get());
  std::future<std::shared_ptr<rocksdb::ManagedSnapshot>> next;
  db->taken = [&] {
    db->Put();  // a follower that knows of this write must not pass the snapshot
    next = std::async(std::launch::async, [&] { return kept.Next(); });
    BOOST_TEST((next.wait_for(std::chrono::milliseconds(50)) == std::future_status::timeout));
  };
  const rocksdb::Snapshot* const snapshot = kept.Take();
  db->taken = nullptr;
  BOOST_TEST(next.get()->snapshot() == snapshot);
  BOOST_TEST(kept.Release(snapshot));
  BOOST_TEST(kept.Next() == nullptr);
}

BOOST_AUTO_TEST_CASE(snapshots_are_reached_in_order) {
  const TemporaryDirectory directory;
  const auto db = Database::Open(directory / "db");
  KeptSnapshots kept(db.get());
  BOOST_TEST(kept.Next() == nullptr);
  const rocksdb::Snapshot* snapshots[3];
  for (const rocksdb::Snapshot*& snapshot : snapshots) {
    db->Put();
    snapshot = kept.Take();
  }
  BOOST_TEST(kept.Next()->snapshot() == snapshots[0]);
  kept.Reach(*kept.Next(), {});
  BOOST_TEST(kept.Next()->snapshot() == snapshots[1]);
  BOOST_TEST(kept.Release(snapshots[1]));
  BOOST_TEST(!kept.Release(snapshots[1]));
  BOOST_TEST(kept.Next()->snapshot() == snapshots[2]);
  kept.Reach(*kept.Next(), {});
  BOOST_TEST(kept.Next() == nullptr);
  BOOST_TEST(kept.Release(snapshots[0]));
  BOOST_TEST(kept.Release(snapshots[2]));
}

BOOST_AUTO_TEST_CASE(rows_are_not_read_at_a_snapshot_before_them) {
  const TemporaryDirectory directory;
  const auto db = Database::Open(directory / "db");
  db->Put();
  KeptSnapshots kept(db.get());
  const rocksdb::Snapshot* const snapshot = kept.Take();
  BOOST_TEST(kept.NextOrNew(1)->snapshot() == snapshot);
  db->Put();
  BOOST_TEST(kept.NextOrNew(1)->snapshot() == snapshot);
  BOOST_TEST(kept.NextOrNew(2)->snapshot()->GetSequenceNumber() == 2u);
  BOOST_TEST(kept.Release(snapshot));
  BOOST_TEST(kept.NextOrNew(1)->snapshot()->GetSequenceNumber() == 2u);
}

BOOST_AUTO_TEST_CASE(a_database_without_snapshots_has_none) {
  const TemporaryDirectory directory;
  const auto db = Database::Open(directory / "db", /*in_place=*/true);
  KeptSnapshots kept(db.get());
  BOOST_TEST((kept.Take() == nullptr));
  BOOST_TEST(kept.Next() == nullptr);
}

BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
