// IndexedDB::GetSnapshot: queries of indexes at a snapshot.
#include <algorithm>
#include <atomic>
#include <boost/test/unit_test.hpp>
#include <deque>
#include <fstream>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "cairn/indexed_db.h"
#include "cairn/lookup.h"
#include "cairn/predicate.h"
#include "rocksdb/snapshot.h"
#include "test/engine/indexed_database.h"
#include "test/engine/live/indexed_db_checks.h"
#include "test/engine/live/query_checks.h"
#include "test/require_ok.h"
#include "test/test_random.h"

namespace cairn {
BOOST_AUTO_TEST_SUITE(indexed_db_snapshots_test)
namespace {

LookupOptions At(const rocksdb::Snapshot* snapshot) {
  LookupOptions options;
  options.snapshot = snapshot;
  return options;
}

std::string KeysAt(IndexedDB* db, const std::string& index, const KeyQuery& query,
                   const rocksdb::Snapshot* snapshot) {
  const FoundKeys found = RequireOk(db->Lookup(index, query, At(snapshot)));
  std::string keys;
  for (std::string_view key : found) keys.append(keys.empty() ? "" : " ").append(key);
  return keys;
}

void CheckAtSnapshot(IndexedDB* db, const rocksdb::Snapshot* snapshot) {
  rocksdb::ReadOptions read;
  read.snapshot = snapshot;
  const std::unique_ptr<rocksdb::Iterator> rows(db->GetBaseDB()->NewIterator(read));
  CheckQueries(db, At(snapshot), rows.get());
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_query_at_a_snapshot_sees_the_rows_of_that_time) {
  IndexedDatabase db;
  db.Put("a", "red|1");
  db.Put("b", "blue|2");
  db.Create(kColor);
  rocksdb::ManagedSnapshot first(db.get());
  db.Put("c", "red|3");
  RequireOk(db->Delete({}, "b"));
  rocksdb::ManagedSnapshot second(db.get());
  db.Put("a", "blue|1");
  BOOST_TEST(KeysAt(db.get(), "color", {"red", "blue"}, first.snapshot()) == "a b");
  BOOST_TEST(KeysAt(db.get(), "color", {"red", "blue"}, second.snapshot()) == "a c");
  BOOST_TEST(KeysAt(db.get(), "color", {"red", "blue"}, nullptr) == "c a");
  RequireOk(db->CompactIndex("color"));
  RequireOk(db->FlushIndexes());
  BOOST_TEST(KeysAt(db.get(), "color", "red", first.snapshot()) == "a");
  const FoundRows rows = RequireOk(db->LookupRows("color", "red", At(second.snapshot())));
  BOOST_REQUIRE(rows.size() == 2u);
  BOOST_TEST(rows[0].value == "red|1");
}

BOOST_AUTO_TEST_CASE(snapshots_agree_with_scans_of_the_database) {
  IndexedDatabase db;
  auto random = TestRandom();
  db.Create(kColor);
  db.Create(kNumber);
  std::deque<std::unique_ptr<rocksdb::ManagedSnapshot>> held;
  for (int step = 0; step < 600; ++step) {
    const std::string key = absl::StrCat("row", random() % 50);
    switch (random() % 12) {
      case 0:
      case 1:
        held.push_back(std::make_unique<rocksdb::ManagedSnapshot>(db.get()));
        if (held.size() > 8) held.erase(held.begin() + static_cast<long>(random() % held.size()));
        break;
      case 2:
        if (!held.empty()) {
          CheckAtSnapshot(db.get(), held[random() % held.size()]->snapshot());
        }
        break;
      case 3:
        RequireOk(db->Delete({}, key));
        break;
      case 4:  // the follower reads this row at the next snapshot
        RequireOk(db->Merge({}, key, absl::StrCat(random() % 10)));
        break;
      case 5:
        RequireOk(db->DeleteRange({}, db.family(0), key, key + "~"));
        break;
      case 6:
        if (random() % 8 == 0) RequireOk(db->CompactIndex("number"));
        break;
      case 7:
        RequireOk(db->Lookup("color", "red"));
        break;
      default: {
        rocksdb::WriteBatch batch;
        for (size_t i = random() % 4; i > 0; --i) {
          RequireOk(batch.Put(absl::StrCat("row", random() % 50), RandomValue(random)));
        }
        RequireOk(db->Write({}, &batch));
      }
    }
  }
  for (const auto& snapshot : held) CheckAtSnapshot(db.get(), snapshot->snapshot());
}

BOOST_AUTO_TEST_CASE(snapshots_beside_writers_and_the_follower) {
  IndexedDatabase db;
  db.options().follow_interval = absl::Milliseconds(1);
  db.Reopen();
  db.Create(kColor);
  db.Create(kNumber);
  std::atomic<bool> stop{false};
  std::vector<std::thread> writers;
  for (int w = 0; w < 2; ++w) {
    writers.emplace_back([&, w] {
      std::mt19937_64 random(static_cast<uint64_t>(w));
      while (!stop) {
        const std::string key = absl::StrCat("row", random() % 200);
        if (random() % 16 == 0) {
          RequireOk(db->Merge({}, key, absl::StrCat(random() % 10)));
        } else {
          RequireOk(db->Put({}, key, RandomValue(random)));
        }
      }
    });
  }
  for (int round = 0; round < 60; ++round) {
    rocksdb::ManagedSnapshot early(db.get()), late(db.get());
    CheckAtSnapshot(db.get(), round % 2 == 0 ? early.snapshot() : late.snapshot());
    if (round % 20 == 10) RequireOk(db->CompactIndex("color"));
    CheckAtSnapshot(db.get(), early.snapshot());
  }
  stop = true;
  for (std::thread& writer : writers) writer.join();
}

BOOST_AUTO_TEST_CASE(only_snapshots_of_this_object_are_accepted) {
  IndexedDatabase db;
  db.Put("a", "red");
  db.Create(kColor);
  const auto refuses = [&](const rocksdb::Snapshot* snapshot) {
    CheckFails(db->Lookup("color", "red", At(snapshot)).status(),
               absl::StatusCode::kInvalidArgument, "GetSnapshot");
  };
  {
    rocksdb::ManagedSnapshot of_base(db->GetBaseDB());
    refuses(of_base.snapshot());
    CheckFails(db->LookupRows("color", "red", At(of_base.snapshot())).status(),
               absl::StatusCode::kInvalidArgument, "GetSnapshot");
  }
  // A snapshot of the database below may be released through this object.
  db->ReleaseSnapshot(db->GetBaseDB()->GetSnapshot());
  const rocksdb::Snapshot* const released = db->GetSnapshot();
  BOOST_TEST(KeysAt(db.get(), "color", "red", released) == "a");
  db->ReleaseSnapshot(released);
  refuses(released);
  uint64_t held = 1;
  BOOST_TEST(db->GetIntProperty("rocksdb.num-snapshots", &held));
  BOOST_TEST(held == 0u);
}

BOOST_AUTO_TEST_CASE(an_index_without_a_state_at_the_snapshot_refuses) {
  IndexedDatabase db;
  db.Put("a", "red|1");
  rocksdb::ManagedSnapshot before(db.get());
  db.Put("a", "red|2");
  db.Create(kColor);
  const auto refuses = [&](const rocksdb::Snapshot* snapshot) {
    CheckFails(db->Lookup("color", "red", At(snapshot)).status(),
               absl::StatusCode::kFailedPrecondition, "no state at the snapshot");
  };
  refuses(before.snapshot());
  CheckFails(db->PinGroup({"color"}, At(before.snapshot())).status(),
             absl::StatusCode::kFailedPrecondition, "no state at the snapshot");
  rocksdb::ManagedSnapshot seen(db.get()), unseen(db.get());
  BOOST_TEST(KeysAt(db.get(), "color", "red", seen.snapshot()) == "a");
  // The index cannot vouch for its earlier states once it has become stale.
  rocksdb::WriteOptions past_log;
  past_log.disableWAL = true;
  RequireOk(db->GetBaseDB()->Put(past_log, "b", "red|2"));
  RequireOk(db->WaitUntilReady("color"));
  refuses(seen.snapshot());
  refuses(unseen.snapshot());
  // Another index of the same name is another index.
  rocksdb::ManagedSnapshot of_first(db.get());
  BOOST_TEST(KeysAt(db.get(), "color", "red", of_first.snapshot()) == "a b");
  RequireOk(db->DropIndex("color"));
  BOOST_TEST(absl::IsNotFound(db->Lookup("color", "red", At(of_first.snapshot())).status()));
  db.Create("color=value.field('|',1):text");
  refuses(of_first.snapshot());
  RequireOk(db->RebuildIndex("color"));
  RequireOk(db->WaitUntilReady("color"));
  refuses(of_first.snapshot());
}

BOOST_AUTO_TEST_CASE(an_index_of_its_own_state_takes_no_snapshot) {
  IndexedDatabase db;
  db.Put("a", "red|1");
  db.Create(kColor);
  rocksdb::ManagedSnapshot snapshot(db.get());
  const LookupOptions at = At(snapshot.snapshot());
  IteratorOptions iterate;
  iterate.snapshot = snapshot.snapshot();
  const auto source = RequireOk(SnapshotSource::FromDb(db->GetBaseDB()));
  for (const auto& index : {RequireOk(db->Pin("color")), RequireOk(db->Pin("color", at)),
                            RequireOk(db->Index("color"))}) {
    for (const absl::Status& status :
         {index->Lookup("red", at).status(), index->Count("red", at).status(),
          index->Contains("red", at).status(), index->LookupRows(*source, "red", at).status(),
          index->NewIterator(iterate).status()}) {
      CheckFails(status, absl::StatusCode::kInvalidArgument, "IndexedDB");
    }
  }
}

BOOST_AUTO_TEST_CASE(files_of_a_held_state_go_when_it_is_released) {
  IndexedDatabase db;
  Fill(db.get(), 3000, "red|");
  db.Create(kColor);
  const std::string directory = db.Info("color").directory;
  // The files that are mapped, whether they have been removed from the directory or not.
  const auto runs = [&] {
    std::set<std::string> names;
    std::ifstream maps("/proc/self/maps");
    for (std::string line; std::getline(maps, line);) {
      const size_t name = line.find(directory), end = line.find(".run");
      if (name != std::string::npos && end != std::string::npos) {
        names.insert(line.substr(name, end - name));
      }
    }
    return names.size();
  };
  const auto before = runs();
  const rocksdb::Snapshot* const snapshot = db->GetSnapshot();
  BOOST_TEST(RequireOk(db->Count("color", "red", At(snapshot)))[0] == 3000u);
  db.Put("a0000000", "blue|0");
  RequireOk(db->WaitUntilReady("color"));  // applies the change
  RequireOk(db->CompactIndex("color"));
  BOOST_TEST(RequireOk(db->Count("color", "red", At(snapshot)))[0] == 3000u);
  BOOST_TEST(runs() == 2 * before);
  db->ReleaseSnapshot(snapshot);
  BOOST_TEST(runs() == before);
}

BOOST_AUTO_TEST_CASE(snapshots_outlive_a_closed_object) {
  IndexedDatabase db;
  db.Put("a", "red|1");
  db.Create(kColor);
  const rocksdb::Snapshot* const reached = db->GetSnapshot();
  BOOST_TEST(KeysAt(db.get(), "color", "red", reached) == "a");
  const rocksdb::Snapshot* const not_reached = db->GetSnapshot();
  db.Put("a", "blue|1");
  // Ends the work of the indexes; the database stays open, since handles exist.
  RequireOk(FromRocksDb(db->Close(), "closing"));
  for (const rocksdb::Snapshot* snapshot : {reached, not_reached}) {
    CheckFails(db->Lookup("color", "red", At(snapshot)).status(),
               absl::StatusCode::kFailedPrecondition, "closed");
    rocksdb::ReadOptions read;
    read.snapshot = snapshot;
    std::string value;
    RequireOk(db->Get(read, "a", &value));
    BOOST_TEST(value == "red|1");
    db->ReleaseSnapshot(snapshot);
  }
}

BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
