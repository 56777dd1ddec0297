// Writes with WriteOptions::disableWAL through an IndexedDB.
#include <atomic>
#include <boost/test/unit_test.hpp>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "cairn/indexed_db.h"
#include "cairn/types.h"
#include "engine/util/rocksdb_compat.h"
#include "rocksdb/snapshot.h"
#include "rocksdb/write_batch.h"
#include "test/engine/indexed_database.h"
#include "test/engine/live/indexed_db_checks.h"
#include "test/require_ok.h"
#include "test/sanitizer.h"
#include "test/test_random.h"

namespace cairn {
BOOST_AUTO_TEST_SUITE(indexed_db_unlogged_test)
namespace {

constexpr char kCity[] = "city = value:text";

rocksdb::WriteOptions WithoutLog() {
  rocksdb::WriteOptions options;
  options.disableWAL = true;
  return options;
}

// All kinds of rows, mixed with logged ones, under all write paths of RocksDB.
BOOST_AUTO_TEST_CASE(queries_and_snapshots_see_writes_without_a_log) {
  for (const int path : {0, 1, 2, 3}) {
    IndexedDatabase db;
    db.Close();
    db.rocksdb_options().enable_pipelined_write = path == 1;
    db.rocksdb_options().two_write_queues = path == 2;
    db.rocksdb_options().allow_concurrent_memtable_write = path != 3;
    db.Open();
    db.Put("a", "Oslo");
    db.Create(kCity);
    db.Create("of_a = value:text", 1);
    const rocksdb::WriteOptions no_log = WithoutLog();
    RequireOk(db->Put(no_log, "b", "Oslo"));
    BOOST_TEST(RowsOf(db.get(), "city", "Oslo") == "a b");
    rocksdb::ManagedSnapshot first(db.get());
    db.Put("c", "Oslo");
    RequireOk(db->Delete(no_log, "a"));
    rocksdb::ManagedSnapshot second(db.get());
    RequireOk(db->Merge(no_log, "b", "x"));
    rocksdb::WriteBatch batch;
    RequireOk(batch.Put("d", "Oslo"));
    RequireOk(batch.Put(db.family(1), "e", "Rome"));
    RequireOk(batch.Delete("c"));
    RequireOk(db->Write(no_log, &batch));
    RequireOk(db->Write(no_log, &batch));  // its header has a number now
    BOOST_TEST(RowsOf(db.get(), "city", "Oslo") == "d");
    BOOST_TEST(RowsOf(db.get(), "of_a", "Rome") == "e");
    RequireOk(db->DeleteRange(no_log, db.family(0), "d", "dz"));
    RequireOk(db->DeleteRange(no_log, db.family(0), "q", "q"));
    RequireOk(db->PutEntity(no_log, db.family(0), "f",
                            {{rocksdb::kDefaultWideColumnName, "Oslo"}, {"more", "1"}}));
    RequireOk(db->SingleDelete(no_log, db.family(1), "e"));
    rocksdb::WriteBatch empty;
    RequireOk(db->Write(no_log, &empty));
    RequireOk(empty.PutLogData("no row"));
    RequireOk(db->Write(no_log, &empty));
    rocksdb::WriteOptions contradictory = no_log;
    contradictory.sync = true;
    BOOST_TEST(db->Put(contradictory, "g", "Oslo").IsInvalidArgument());
    BOOST_TEST(db->Write(no_log, nullptr).IsInvalidArgument());
    BOOST_TEST(RowsOf(db.get(), "city", "Oslo") == "f");
    BOOST_TEST(RowsOf(db.get(), "of_a", "Rome") == "");
    LookupOptions at;
    at.snapshot = first.snapshot();
    BOOST_TEST(RequireOk(db->LookupRows("city", "Oslo", at)).size() == 2u);
    at.snapshot = second.snapshot();
    BOOST_TEST(RowsOf(*RequireOk(db->Pin("city", at)), "Oslo") == "b c");
    CheckAgainstDatabase(db.get(), "city", db.family(0));
    for (const char* name : {"city", "of_a"}) BOOST_TEST(db.Info(name).builds == 1u);
  }
}

BOOST_AUTO_TEST_CASE(large_values_and_many_rows) {
  IndexedDatabase db;
  db.Create("prefix = value[0:4]:text");
  const rocksdb::WriteOptions no_log = WithoutLog();
  const std::string large(300000, 'x');
  const int rows = static_cast<int>(FewerSanitized(30000, 10, 10));
  for (int i = 0; i < rows; ++i) {
    const std::string value = absl::StrCat("c", i % 10, i % 5000 == 0 ? large : "abc");
    RequireOk(
        db->Put(i % 3 == 0 ? rocksdb::WriteOptions() : no_log, absl::StrCat("k", i % 7000), value));
    if (i % 4000 == 0) RequireOk(db->Flush({}));
  }
  CheckAgainstDatabase(db.get(), "prefix", db.family(0));
  BOOST_TEST(db.Info("prefix").builds == 1u);
}

BOOST_AUTO_TEST_CASE(an_index_is_built_while_rows_are_written_without_a_log) {
  IndexedDatabase db;
  Fill(db.get(), FewerSanitized(100000, 4, 10), "v");
  db.Create("of_a = value:text", 1);
  std::atomic<bool> stop{false};
  std::vector<std::thread> writers;
  for (int t = 0; t < 3; ++t) {
    writers.emplace_back([&, t, random = TestRandom(300 + t)]() mutable {
      while (!stop) {
        const std::string key = absl::StrCat("w", t, "_", random() % 1000);
        RequireOk(db->Put(random() % 3 == 0 ? rocksdb::WriteOptions() : WithoutLog(),
                          db.family(random() % 2), key, absl::StrCat("c", random() % 100)));
      }
    });
  }
  for (const char* spec : {kCity, "key = key:text"}) db.Create(spec);
  RequireOk(db->RebuildIndex("city"));
  RequireOk(db->WaitUntilReady("city"));
  stop = true;
  for (std::thread& writer : writers) writer.join();
  for (const char* name : {"city", "key"}) CheckAgainstDatabase(db.get(), name, db.family(0));
  CheckAgainstDatabase(db.get(), "of_a", db.family(1));
  BOOST_TEST(db.Info("of_a").builds == 1u);
}

BOOST_AUTO_TEST_CASE(a_closed_database_continues) {
  for (const bool avoids_flush : {false, true}) {
    IndexedDatabase db;
    db.Close();
    db.rocksdb_options().avoid_flush_during_shutdown = avoids_flush;
    db.Open();
    db.Create(kCity);
    for (int run = 0; run < 4; ++run) {
      db.Put("a", absl::StrCat("c", run));
      RequireOk(db->Put(WithoutLog(), absl::StrCat("b", run), "Oslo"));
      if (run % 2 == 0) RequireOk(db->Put(WithoutLog(), db.family(1), "x", "y"));
      db.Reopen();
      RequireOk(db->WaitUntilReady("city"));
      BOOST_TEST(db.Info("city").builds == 0u);
      CheckAgainstDatabase(db.get(), "city", db.family(0));
    }
    std::string value;
    RequireOk(db->Get({}, "b3", &value));
    BOOST_TEST(RowsOf(db.get(), "city", "Oslo") == "b0 b1 b2 b3");
  }
}

// The database and its indexes, as they are left by a process that is killed now.
std::string CopyAsKilled(const IndexedDatabase& db) {
  static int copies = 0;
  while (true) {
    const std::string to = db.Beside(absl::StrCat("copy", copies++));
    try {
      for (const char* what : {"", ".indexes"}) {
        std::filesystem::copy(db.path() + what, to + what,
                              std::filesystem::copy_options::recursive);
      }
      return to;
    } catch (const std::filesystem::filesystem_error&) {
      // A file was removed concurrently.
    }
  }
}

// Opens a copy, and compares the index with the database. Returns the number of builds.
uint64_t CheckCopy(IndexedDatabase& like, const std::string& path) {
  const rocksdb::Options& rocksdb = like.rocksdb_options();
  std::vector<rocksdb::ColumnFamilyHandle*> families;
  const auto db = RequireOk(IndexedDB::Open(rocksdb, path, {{"default", rocksdb}, {"a", rocksdb}},
                                            &families, like.options()));
  RequireOk(db->WaitUntilReady("city"));
  CheckAgainstDatabase(db.get(), "city", families[0]);
  const uint64_t builds = db->ListIndexes()[0].builds;
  for (auto* family : families) RequireOk(db->DestroyColumnFamilyHandle(family));
  return builds;
}

// Uses a copy without its indexes.
void UsePlain(IndexedDatabase& like, const std::string& path,
              const std::function<void(rocksdb::DB*, rocksdb::ColumnFamilyHandle* a)>& use) {
  const rocksdb::Options& rocksdb = like.rocksdb_options();
  std::vector<rocksdb::ColumnFamilyHandle*> families;
  std::unique_ptr<rocksdb::DB> db;
  RequireOk(rocksdb::DB::Open(rocksdb, path, {{"default", rocksdb}, {"a", rocksdb}}, &families,
                              Into(&db)));
  use(db.get(), families[1]);
  for (auto* family : families) RequireOk(db->DestroyColumnFamilyHandle(family));
}

BOOST_AUTO_TEST_CASE(rows_that_a_crash_loses) {
  IndexedDatabase db;
  db.Put("a", "Oslo");
  db.Create(kCity);
  RequireOk(db->Put(WithoutLog(), "b", "Oslo"));
  RequireOk(db->FlushIndexes());
  RequireOk(db->Put(WithoutLog(), "lost", "Oslo"));
  BOOST_TEST(RowsOf(db.get(), "city", "Oslo") == "a b lost");
  // Its number is assigned again.
  const std::string lost = CopyAsKilled(db);
  UsePlain(db, lost, [&](rocksdb::DB* plain, auto*) { RequireOk(plain->Put({}, "c", "Oslo")); });
  BOOST_TEST(CheckCopy(db, lost) == 0u);
  // A later row is in the log.
  db.Put("d", "Oslo");
  BOOST_TEST(CheckCopy(db, CopyAsKilled(db)) == 1u);
  // Rows of one column family are in files, and earlier rows of the other one are not.
  RequireOk(db->Put(WithoutLog(), "lost too", "Oslo"));
  RequireOk(db->Put(WithoutLog(), db.family(1), "x", "y"));
  RequireOk(db->Flush({}, db.family(1)));
  BOOST_TEST(CheckCopy(db, CopyAsKilled(db)) == 1u);
  RequireOk(db->Flush({}, db.family(0)));
  BOOST_TEST(CheckCopy(db, CopyAsKilled(db)) == 1u);
  RequireOk(db->FlushIndexes());
  BOOST_TEST(CheckCopy(db, CopyAsKilled(db)) == 0u);
}

// If the stored index were ahead of the database's files, other rows could get its numbers.
BOOST_AUTO_TEST_CASE(numbers_of_a_stored_state_are_not_assigned_again) {
  const rocksdb::WriteOptions no_log = WithoutLog();
  for (const int last : {0, 1, 2}) {
    IndexedDatabase db;
    db.Put("a", "Oslo");
    db.Create(kCity);
    rocksdb::ColumnFamilyHandle* const families[] = {db.family(0), db.family(1)};
    for (int i = 0; i < 2; ++i) RequireOk(db->Put(no_log, absl::StrCat("b", i), "Oslo"));
    RequireOk(db->Put(no_log, families[last > 0 ? 1 : 0], "x", "Oslo"));
    absl::Status stored;
    if (last == 2) {
      // The flush drops both rows, and with them their numbers.
      RequireOk(db->FlushIndexes());
      RequireOk(db->Put(no_log, families[1], "y", "Oslo"));
      RequireOk(db->SingleDelete(no_log, families[1], "y"));
      BOOST_TEST(absl::IsUnavailable(db->FlushIndexes()));
    } else {
      RequireOk(db->FlushIndexes());
    }
    const std::string copy = CopyAsKilled(db);
    const SequenceNumber reached = db->GetLatestSequenceNumber();
    UsePlain(db, copy, [&](rocksdb::DB* plain, rocksdb::ColumnFamilyHandle*) {
      // Without a log, so that no record shows that numbers were used twice.
      while (plain->GetLatestSequenceNumber() < reached) {
        RequireOk(plain->Put(no_log, absl::StrCat("c", plain->GetLatestSequenceNumber()), "Oslo"));
      }
      RequireOk(plain->Flush({}));
      RequireOk(plain->Put({}, "d", "Oslo"));
    });
    CheckCopy(db, copy);
    if (last != 2) continue;
    // A later state can be stored.
    RequireOk(db->Put(no_log, "e", "Oslo"));
    RequireOk(db->FlushIndexes());
    BOOST_TEST(CheckCopy(db, CopyAsKilled(db)) == 0u);
  }
}

// The index of a state that cannot be stored is ready, and is built again after a crash.
BOOST_AUTO_TEST_CASE(an_index_that_is_built_at_a_state_that_cannot_be_stored) {
  IndexedDatabase db;
  db.Put("a", "Oslo");
  RequireOk(db->Put(WithoutLog(), "b", "Oslo"));
  RequireOk(db->SingleDelete(WithoutLog(), db.family(0), "b"));
  db.Create(kCity);
  BOOST_TEST(RowsOf(db.get(), "city", "Oslo") == "a");
  BOOST_TEST(CheckCopy(db, CopyAsKilled(db)) == 1u);
}

// A compaction sets the numbers in the files to 0.
BOOST_AUTO_TEST_CASE(rows_that_are_flushed_and_compacted_before_the_index_is_stored) {
  IndexedDatabase db;
  db.Create(kCity);
  for (int i = 0; i < 100; ++i) RequireOk(db->Put(WithoutLog(), absl::StrCat("k", i), "Oslo"));
  RequireOk(db->Flush({}));
  rocksdb::CompactRangeOptions compaction;
  compaction.bottommost_level_compaction = rocksdb::BottommostLevelCompaction::kForce;
  RequireOk(db->CompactRange(compaction, nullptr, nullptr));
  BOOST_TEST(RowsOf(db.get(), "city", "Oslo").size() > 100u);
  RequireOk(db->CompactIndex("city"));
  BOOST_TEST(CheckCopy(db, CopyAsKilled(db)) == 0u);
}

// An older copy of the database has the same log, but lacks rows that are only in files.
BOOST_AUTO_TEST_CASE(a_copy_from_before_the_writes) {
  IndexedDatabase db;
  for (int i = 0; i < 100; ++i) db.Put(absl::StrCat("a", i), "Oslo");
  db.Create(kCity);
  RequireOk(db->FlushIndexes());
  const std::string old = CopyAsKilled(db);
  for (int i = 0; i < 100; ++i) RequireOk(db->Put(WithoutLog(), absl::StrCat("b", i), "Oslo"));
  RequireOk(db->FlushIndexes());
  const std::string indexes = old + ".indexes";
  std::filesystem::remove_all(indexes);
  std::filesystem::copy(db.path() + ".indexes", indexes, std::filesystem::copy_options::recursive);
  BOOST_TEST(CheckCopy(db, old) == 1u);
}

// The same, and the copy has assigned the last number to another row, also without a log.
// The older copy has the log up to the state of the index, but not a deletion without a log. The
// flush drops the deleted row, so no table file shows it.
BOOST_AUTO_TEST_CASE(an_older_copy_with_an_equal_log) {
  for (const bool compacted : {false, true}) {
    IndexedDatabase db;
    db.Put("a", "Rome");
    db.Create(kCity);
    RequireOk(db->FlushIndexes());
    db.Put("k", "Oslo");
    RequireOk(compacted ? db->Delete(WithoutLog(), "k") : db->SingleDelete(WithoutLog(), "k"));
    db.Put("r", "Oslo");
    const std::string old = CopyAsKilled(db);
    if (compacted) {
      RequireOk(db->Flush({}));
      RequireOk(db->CompactRange({}, db.family(0), nullptr, nullptr));
    }
    RequireOk(db->FlushIndexes());
    const std::string indexes = old + ".indexes";
    std::filesystem::remove_all(indexes);
    std::filesystem::copy(db.path() + ".indexes", indexes,
                          std::filesystem::copy_options::recursive);
    CheckCopy(db, old);
    // The index continues the database that it belongs to, also if logged writes follow.
    BOOST_TEST(CheckCopy(db, CopyAsKilled(db)) == 0u);
    db.Put("s", "Oslo");
    db.Reopen();
    RequireOk(db->WaitUntilReady("city"));
    BOOST_TEST(db.Info("city").builds == 0u);
  }
}

BOOST_AUTO_TEST_CASE(an_older_copy_that_assigns_the_numbers_again) {
  IndexedDatabase db;
  db.Put("a", "Oslo");
  db.Create(kCity);
  RequireOk(db->FlushIndexes());
  const std::string old = CopyAsKilled(db);
  RequireOk(db->Put(WithoutLog(), db.family(1), "b", "Oslo"));
  RequireOk(db->FlushIndexes());
  const std::string indexes = old + ".indexes";
  std::filesystem::remove_all(indexes);
  std::filesystem::copy(db.path() + ".indexes", indexes, std::filesystem::copy_options::recursive);
  UsePlain(db, old, [&](rocksdb::DB* plain, auto*) {
    RequireOk(plain->Put(WithoutLog(), "c", "Oslo"));
    RequireOk(plain->Flush({}));
    BOOST_TEST(plain->GetLatestSequenceNumber() == db->GetLatestSequenceNumber());
  });
  CheckCopy(db, old);
}

BOOST_AUTO_TEST_CASE(random_crashes_without_a_log) {
  const uint64_t runs = FewerSanitized(30, 3, 3);
  for (uint64_t run = 0; run < runs; ++run) {
    auto random = TestRandom(1000 + run);
    IndexedDatabase db;
    db.Close();
    db.rocksdb_options().disable_auto_compactions = true;  // during a copy
    db.Open();
    db.Create(kCity);
    std::string copy;
    for (int i = 0; i < 60; ++i) {
      const rocksdb::WriteOptions options =
          random() % 4 == 0 ? rocksdb::WriteOptions() : WithoutLog();
      rocksdb::ColumnFamilyHandle* const family = db.family(random() % 3 == 0 ? 1 : 0);
      const std::string key = absl::StrCat("k", random() % 8);
      switch (random() % 12) {
        case 0:
          RequireOk(db->Flush({}, family));
          break;
        case 1: {
          const absl::Status stored = db->FlushIndexes();
          if (!absl::IsUnavailable(stored)) RequireOk(stored);
          break;
        }
        case 2:
          RequireOk(db->Delete(options, family, key));
          break;
        case 3:
          RequireOk(db->CompactRange({}, family, nullptr, nullptr));
          break;
        default:
          RequireOk(db->Put(options, family, key, absl::StrCat("c", i % 5)));
      }
      if (i == 30) db.Reopen();
      if (random() % 12 > 0) continue;
      copy = CopyAsKilled(db);
      const uint64_t later = random() % 8;
      UsePlain(db, copy, [&](rocksdb::DB* plain, rocksdb::ColumnFamilyHandle* a) {
        for (uint64_t k = 0; k < later; ++k) {
          RequireOk(plain->Put(random() % 3 == 0 ? rocksdb::WriteOptions() : WithoutLog(),
                               random() % 3 == 0 ? a : plain->DefaultColumnFamily(),
                               absl::StrCat("k", random() % 8), absl::StrCat("d", k)));
          if (random() % 3 == 0) RequireOk(plain->Flush({}));
        }
      });
      CheckCopy(db, copy);
    }
    RequireOk(db->WaitUntilReady("city"));
    CheckAgainstDatabase(db.get(), "city", db.family(0));
  }
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
