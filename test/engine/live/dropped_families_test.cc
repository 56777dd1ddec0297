// Column families that are dropped and recreated past an IndexedDB.
#include <boost/test/unit_test.hpp>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "cairn/indexed_db.h"
#include "engine/source/manifest_families.h"
#include "engine/util/rocksdb_compat.h"
#include "rocksdb/db.h"
#include "test/engine/indexed_database.h"
#include "test/engine/live/indexed_db_checks.h"
#include "test/require_ok.h"
#include "test/temporary_directory.h"

namespace cairn {
BOOST_AUTO_TEST_SUITE(dropped_families_test)
namespace {

struct Attached {
  TemporaryDirectory directory;
  rocksdb::Options options;
  std::shared_ptr<rocksdb::DB> base;
  std::vector<rocksdb::ColumnFamilyHandle*> families;
  std::unique_ptr<IndexedDB> db;

  Attached() {
    options.create_if_missing = true;
    options.create_missing_column_families = true;
    options.WAL_size_limit_MB = 100;
    Open();
  }
  ~Attached() { Close(); }
  void Open() {
    std::unique_ptr<rocksdb::DB> opened;
    RequireOk(rocksdb::DB::Open(options, directory / "db",
                                {{"default", options}, {"people", options}}, &families,
                                Into(&opened)));
    base = std::move(opened);
    IndexedDBOptions indexed;
    indexed.open.calibration = Calibration::kNone;
    indexed.build.threads = 1;
    db = RequireOk(IndexedDB::Attach(base, families, indexed));
  }
  void Close() {
    if (db == nullptr) return;
    RequireOk(db->Close());
    for (auto* family : families) RequireOk(base->DestroyColumnFamilyHandle(family));
    families.clear();
    db.reset();
    base.reset();
  }
  rocksdb::ColumnFamilyHandle* Make(const std::string& name) {
    rocksdb::ColumnFamilyHandle* family = nullptr;
    RequireOk(base->CreateColumnFamily(options, name, &family));
    families.push_back(family);
    return family;
  }
};

BOOST_AUTO_TEST_CASE(an_index_of_a_family_that_was_made_again_fails) {
  Attached attached;
  IndexedDB* const db = attached.db.get();
  RequireOk(db->CreateIndex("city = value:text", attached.families[1]));
  RequireOk(db->CreateIndex("other = value:text", attached.families[0]));
  RequireOk(db->WaitUntilReady("city"));
  RequireOk(db->WaitUntilReady("other"));
  RequireOk(attached.base->Put({}, attached.families[1], "a", "Lisbon"));
  BOOST_TEST(RowsOf(db, "city", "Lisbon") == "a");
  // Another family has no effect.
  rocksdb::ColumnFamilyHandle* const unrelated = attached.Make("unrelated");
  RequireOk(attached.base->Put({}, unrelated, "u", "Rome"));
  BOOST_TEST(RowsOf(db, "city", "Lisbon") == "a");

  RequireOk(attached.base->DropColumnFamily(attached.families[1]));
  rocksdb::ColumnFamilyHandle* const again = attached.Make("people");
  RequireOk(attached.base->Put({}, again, "b", "Oslo"));
  CheckFails(db->Pin("city").status(), absl::StatusCode::kFailedPrecondition,
             "'people' was dropped");
  CheckFails(db->Lookup("city", "Lisbon").status(), absl::StatusCode::kFailedPrecondition,
             "'people' was dropped");
  CheckFails(db->WaitUntilReady("city"), absl::StatusCode::kFailedPrecondition, "was dropped");
  CheckFails(db->RebuildIndex("city"), absl::StatusCode::kFailedPrecondition, "was dropped");
  RequireOk(attached.base->Put({}, "x", "Paris"));
  BOOST_TEST(RowsOf(db, "other", "Paris") == "x");
  RequireOk(attached.base->DropColumnFamily(unrelated));

  attached.Close();
  attached.Open();
  RequireOk(attached.db->WaitUntilReady("city"));
  RequireOk(attached.db->WaitUntilReady("other"));
  BOOST_TEST(RowsOf(attached.db.get(), "city", "Oslo") == "b");
  CheckAgainstDatabase(attached.db.get(), "city", attached.families[1]);
}

BOOST_AUTO_TEST_CASE(an_index_of_a_handle_that_is_of_a_dropped_family_is_not_built) {
  Attached attached;
  rocksdb::ColumnFamilyHandle* const dropped = attached.families[1];
  RequireOk(attached.base->Put({}, dropped, "a", "Lisbon"));
  RequireOk(attached.base->DropColumnFamily(dropped));
  attached.Make("people");
  RequireOk(attached.db->CreateIndex("city = value:text", dropped));
  CheckFails(attached.db->WaitUntilReady("city"), absl::StatusCode::kFailedPrecondition,
             "'people' was dropped");
}

BOOST_AUTO_TEST_CASE(an_index_of_a_family_that_was_dropped_fails_without_a_write) {
  for (const bool made_again : {true, false}) {
    Attached attached;
    IndexedDB* const db = attached.db.get();
    RequireOk(db->CreateIndex("city = value:text", attached.families[1]));
    RequireOk(db->CreateIndex("other = value:text", attached.families[0]));
    RequireOk(db->WaitUntilReady("city"));
    RequireOk(db->WaitUntilReady("other"));
    RequireOk(attached.base->Put({}, attached.families[1], "a", "Lisbon"));
    BOOST_TEST(RowsOf(db, "city", "Lisbon") == "a");

    RequireOk(attached.base->DropColumnFamily(attached.families[1]));
    if (made_again) attached.Make("people");
    const absl::Time end = absl::Now() + absl::Seconds(30);
    while (db->Lookup("city", "Lisbon").ok() && absl::Now() < end) {
      absl::SleepFor(absl::Milliseconds(1));
    }
    CheckFails(db->Lookup("city", "Lisbon").status(), absl::StatusCode::kFailedPrecondition,
               "'people' was dropped");
    CheckFails(db->LookupRows("city", "Lisbon").status(), absl::StatusCode::kFailedPrecondition,
               "'people' was dropped");
    RequireOk(attached.base->Put({}, "x", "Paris"));
    BOOST_TEST(RowsOf(db, "other", "Paris") == "x");
  }
}

BOOST_AUTO_TEST_CASE(a_family_that_is_dropped_past_an_object_that_opened_the_database) {
  for (const bool made_again : {true, false}) {
    IndexedDatabase db;
    db.Create("city = value:text", 1);
    db.Put("a", "Lisbon", 1);
    BOOST_TEST(RowsOf(db.get(), "city", "Lisbon") == "a");
    rocksdb::DB* const base = db->GetBaseDB();
    RequireOk(base->DropColumnFamily(db.family(1)));
    rocksdb::ColumnFamilyHandle* again = nullptr;
    if (made_again) {
      RequireOk(base->CreateColumnFamily(db.rocksdb_options(), "a", &again));
      RequireOk(base->Put({}, again, "b", "Oslo"));
    }
    const absl::Time end = absl::Now() + absl::Seconds(30);
    while (!made_again && db->Lookup("city", "Lisbon").ok() && absl::Now() < end) {
      absl::SleepFor(absl::Milliseconds(1));
    }
    CheckFails(db->Lookup("city", "Lisbon").status(), absl::StatusCode::kFailedPrecondition,
               "'a' was dropped");
    if (again != nullptr) RequireOk(base->DestroyColumnFamilyHandle(again));
  }
}

BOOST_AUTO_TEST_CASE(the_manifest_lists_the_families) {
  using Names = std::map<uint32_t, std::string>;
  Attached attached;
  rocksdb::DB* const db = attached.base.get();
  ManifestFamilies reads_on(db);
  BOOST_TEST((RequireOk(reads_on.Read()) == Names{{0, "default"}, {1, "people"}}));
  BOOST_TEST((RequireOk(reads_on.Read()) == Names{{0, "default"}, {1, "people"}}));
  Names expected = {{0, "default"}, {1, "people"}};
  for (int i = 0; i < 40; ++i) {
    rocksdb::ColumnFamilyHandle* const family = attached.Make(absl::StrCat("family", i));
    expected[family->GetID()] = family->GetName();
    RequireOk(db->Put({}, family, "k", std::string(100, 'v')));
    RequireOk(db->Flush({}, family));
    if (i % 3 == 0) {
      RequireOk(db->DropColumnFamily(family));
      expected.erase(family->GetID());
    }
    if (i % 5 == 0) BOOST_TEST((RequireOk(reads_on.Read()) == expected));
  }
  BOOST_TEST((RequireOk(reads_on.Read()) == expected));
  BOOST_TEST((RequireOk(ManifestFamilies(db).Read()) == expected));
  // The same with a MANIFEST that begins with a list of the current state.
  attached.Close();
  std::vector<std::string> names;
  RequireOk(rocksdb::DB::ListColumnFamilies(attached.options, attached.directory / "db", &names));
  std::vector<rocksdb::ColumnFamilyDescriptor> descriptors;
  for (const std::string& name : names) descriptors.emplace_back(name, attached.options);
  std::unique_ptr<rocksdb::DB> opened;
  std::vector<rocksdb::ColumnFamilyHandle*> handles;
  RequireOk(rocksdb::DB::Open(attached.options, attached.directory / "db", descriptors, &handles,
                              Into(&opened)));
  BOOST_TEST((RequireOk(ManifestFamilies(opened.get()).Read()) == expected));
  for (auto* handle : handles) RequireOk(opened->DestroyColumnFamilyHandle(handle));
}

// RocksDB assigns sequence numbers a second time after a clean close if their rows are in no table
// file and their log is not read again: rows of a column family that was dropped, and rows that a
// flush drops. Table files then have rows that the index lacks, with numbers that it has seen.
BOOST_AUTO_TEST_CASE(numbers_that_are_assigned_twice_are_not_taken_for_known_rows) {
  enum Last { kDropped, kBatchWithDropped, kSingleDeletion, kEmptyRange, kLasts };
  for (int last = 0; last < kLasts; ++last) {
    BOOST_TEST_CONTEXT("last write " << last) {
      Attached attached;
      rocksdb::ColumnFamilyHandle* const people = attached.families[1];
      rocksdb::ColumnFamilyHandle* const cities = attached.families[0];
      RequireOk(attached.db->CreateIndex("city = value:text", cities));
      RequireOk(attached.db->WaitUntilReady("city"));
      rocksdb::WriteOptions unlogged;
      unlogged.disableWAL = true;
      // After such a write, a database flushes all column families as it closes.
      RequireOk(attached.db->Put(unlogged, "z", "Rome"));
      RequireOk(attached.db->WaitUntilReady("city"));
      RequireOk(attached.db->Put({}, "a", "Lisbon"));
      rocksdb::WriteBatch batch;
      switch (last) {
        case kDropped:
          RequireOk(batch.Put(people, "x", "1"));
          RequireOk(batch.Put(people, "y", "2"));
          break;
        case kBatchWithDropped:
          RequireOk(batch.Put(cities, "b", "Oslo"));
          RequireOk(batch.Put(people, "y", "2"));
          break;
        case kSingleDeletion:
          RequireOk(batch.Put(cities, "b", "Oslo"));
          RequireOk(batch.SingleDelete(cities, "b"));
          break;
        default:
          RequireOk(batch.DeleteRange(cities, "q", "q"));
          break;
      }
      RequireOk(attached.db->Write({}, &batch));
      BOOST_TEST(RowsOf(attached.db.get(), "city", "Lisbon") == "a");
      const SequenceNumber then = attached.base->GetLatestSequenceNumber();
      if (last <= kBatchWithDropped) RequireOk(attached.db->DropColumnFamily(people));
      attached.Close();

      std::string expected = "a";
      {
        std::vector<std::string> names;
        RequireOk(
            rocksdb::DB::ListColumnFamilies(attached.options, attached.directory / "db", &names));
        std::vector<rocksdb::ColumnFamilyDescriptor> descriptors;
        for (const std::string& name : names) descriptors.emplace_back(name, attached.options);
        std::vector<rocksdb::ColumnFamilyHandle*> handles;
        std::unique_ptr<rocksdb::DB> plain;
        RequireOk(rocksdb::DB::Open(attached.options, attached.directory / "db", descriptors,
                                    &handles, Into(&plain)));
        BOOST_TEST(plain->GetLatestSequenceNumber() < then);
        for (int i = 0; plain->GetLatestSequenceNumber() < then; ++i) {
          const std::string key = absl::StrCat("c", i);
          RequireOk(plain->Put(unlogged, key, "Lisbon"));
          expected += " " + key;
        }
        RequireOk(plain->Flush({}));
        RequireOk(plain->CompactRange({}, nullptr, nullptr));
        BOOST_TEST(plain->GetLatestSequenceNumber() == then);
        for (auto* handle : handles) RequireOk(plain->DestroyColumnFamilyHandle(handle));
      }
      attached.Open();
      RequireOk(attached.db->WaitUntilReady("city"));
      BOOST_TEST(RowsOf(attached.db.get(), "city", "Lisbon") == expected);
      CheckAgainstDatabase(attached.db.get(), "city", attached.families[0]);
    }
  }
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
