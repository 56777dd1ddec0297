#include "cairn/indexed_db.h"
#include "cairn/column.h"

#include <atomic>
#include <boost/test/unit_test.hpp>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "engine/util/rocksdb_compat.h"
#include "rocksdb/write_batch.h"
#include "test/engine/indexed_database.h"
#include "test/engine/live/indexed_db_checks.h"
#include "test/engine/rocksdb_features.h"
#include "test/require_ok.h"
#include "test/sanitizer.h"

namespace cairn {
BOOST_AUTO_TEST_SUITE(indexed_db_test)
namespace {

BOOST_AUTO_TEST_CASE(every_kind_of_write_is_seen_by_the_next_query) {
  IndexedDatabase db;
  db.Put("old", "red");
  db.Create(kByColour);
  BOOST_TEST(RowsOf(db.get(), "by_colour", "red") == "old");

  db.Put("a", "red");
  BOOST_TEST(RowsOf(db.get(), "by_colour", "red") == "a old");
  db.Put("a", "blue");
  BOOST_TEST(RowsOf(db.get(), "by_colour", "red") == "old");
  BOOST_TEST(RowsOf(db.get(), "by_colour", "blue") == "a");
  RequireOk(db->Delete({}, "a"));
  BOOST_TEST(RowsOf(db.get(), "by_colour", "blue") == "");
  db.Put("b", "blue");
  RequireOk(db->SingleDelete({}, "b"));
  BOOST_TEST(RowsOf(db.get(), "by_colour", "blue") == "");
  RequireOk(db->Merge({}, "c", "green"));
  RequireOk(db->Merge({}, "c", "late"));
  BOOST_TEST(RowsOf(db.get(), "by_colour", "green") == "c");
  RequireOk(db->PutEntity({}, db.family(0), "e",
                          {{rocksdb::kDefaultWideColumnName, "green"}, {"x", "y"}}));
  BOOST_TEST(RowsOf(db.get(), "by_colour", "green") == "c e");

  rocksdb::WriteBatch batch;
  RequireOk(batch.Put(db.family(0), "f", "green"));
  RequireOk(batch.Put(db.family(1), "g", "green"));  // not of the index's column family
  RequireOk(batch.Delete(db.family(0), "c"));
  RequireOk(db->Write({}, &batch));
  BOOST_TEST(RowsOf(db.get(), "by_colour", "green") == "e f");
  RequireOk(db->DeleteRange({}, db.family(0), "e", "f"));
  BOOST_TEST(RowsOf(db.get(), "by_colour", "green") == "f");
  CheckAgainstDatabase(db.get(), "by_colour", db.family(0));
}

BOOST_AUTO_TEST_CASE(indexes_of_several_column_families_follow_together) {
  IndexedDatabase db;
  db.Create(kByColour);
  db.Create("of_a = value.field(',', 0):text, cf=a", 1);
  db.Create("of_weight = value.field(',', 1):text");
  rocksdb::WriteBatch batch;
  RequireOk(batch.Put(db.family(0), "x", "red,heavy"));
  RequireOk(batch.Put(db.family(1), "y", "red,light"));
  RequireOk(batch.Merge(db.family(1), "y", "more"));
  RequireOk(db->Write({}, &batch));
  BOOST_TEST(RowsOf(db.get(), "by_colour", "red") == "x");
  BOOST_TEST(RowsOf(db.get(), "of_a", "red") == "y");
  BOOST_TEST(RowsOf(db.get(), "of_weight", "heavy") == "x");
  BOOST_TEST(RowsOf(db.get(), "of_weight", "light") == "");
}

BOOST_AUTO_TEST_CASE(flushes_and_compactions_lose_nothing) {
  IndexedDatabase db;
  db.Create(kByColour);
  for (int i = 0; i < 50; ++i) {
    db.Put(absl::StrCat("k", i), i % 2 == 0 ? "red" : "blue");
    RequireOk(db->Flush({}, db.family(0)));
    if (i % 10 == 0) RequireOk(db->CompactRange({}, db.family(0), nullptr, nullptr));
  }
  CheckAgainstDatabase(db.get(), "by_colour", db.family(0));
  BOOST_TEST(db.Info("by_colour").builds == 1);
}

BOOST_AUTO_TEST_CASE(a_log_that_is_not_archived_is_kept_until_it_was_read) {
  TemporaryDirectory directory;
  rocksdb::Options options;
  options.create_if_missing = true;
  std::unique_ptr<rocksdb::DB> opened;
  RequireOk(rocksdb::DB::Open(options, directory / "db", Into(&opened)));
  IndexedDBOptions indexed;
  indexed.follow_interval = absl::ZeroDuration();  // so that the log is read late
  const auto db = RequireOk(IndexedDB::Attach(std::move(opened), {}, indexed));
  RequireOk(db->CreateIndex(SpecOf(kByColour)));
  RequireOk(db->WaitUntilReady("by_colour"));
  for (int i = 0; i < 5; ++i) {
    RequireOk(db->Put({}, absl::StrCat("k", i), "red"));
    RequireOk(db->Flush({}));
    RequireOk(db->DisableFileDeletions());
    RequireOk(i % 2 == 0 ? ForceFileDeletions(db.get()) : EndDisabledFileDeletions(db.get()));
  }
  RequireOk(db->Put({}, "z", "red"));
  const auto index = db->Pin("by_colour");
  if (index.ok()) {
    BOOST_TEST(RowsOf(**index, "red") == "k0 k1 k2 k3 k4 z");
  } else {
    BOOST_TEST(false, index.status());
  }
}

BOOST_AUTO_TEST_CASE(each_of_many_threads_reads_what_it_has_just_written) {
  IndexedDatabase db;
  db.Create(kByColour);
  constexpr int kThreads = 8;
  constexpr int kWrites = 150;
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&db, &wrong, t] {
      for (int i = 0; i < kWrites; ++i) {
        const std::string key = absl::StrCat("t", t, "_", i % 20);
        const std::string colour = absl::StrCat("c", t, "_", i);
        if (!db->Put({}, key, colour).ok()) ++wrong;
        const auto index = db->Pin("by_colour");
        if (!index.ok()) {
          ++wrong;
          continue;
        }
        const std::string_view keys[] = {colour};
        FindResult matches;
        StringList primary_keys;
        if (!(*index)->Find(keys, &matches).ok() ||
            !(*index)->PrimaryKeys(matches, &primary_keys).ok() || primary_keys.size() != 1 ||
            primary_keys[0] != key) {
          ++wrong;
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  BOOST_TEST(wrong == 0);
  CheckAgainstDatabase(db.get(), "by_colour", db.family(0));
}

BOOST_AUTO_TEST_CASE(an_index_is_created_while_writes_go_on) {
  IndexedDatabase db;
  for (int i = 0; i < 20000; ++i) db.Put(absl::StrCat("k", i), absl::StrCat("c", i % 100));
  std::atomic<bool> end{false};
  std::atomic<bool> failed{false};
  std::vector<std::thread> writers;
  for (int t = 0; t < 2; ++t) {
    writers.emplace_back([&, t] {
      std::mt19937_64 random(t);
      while (!end) {
        const std::string key = absl::StrCat("k", random() % 30000);
        const rocksdb::Status s = random() % 4 == 0
                                      ? db->Delete({}, key)
                                      : db->Put({}, key, absl::StrCat("c", random() % 100));
        if (!s.ok()) failed = true;
        // ThreadSanitizer slows the index down more than these writes, and nothing delays them
        // while the index catches up.
        if (random() % (kUnderTsan ? 4 : 64) == 0) absl::SleepFor(absl::Microseconds(200));
      }
    });
  }
  const absl::Status created = db->CreateIndex(SpecOf(kByColour));
  const absl::Status ready = db->WaitUntilReady("by_colour", absl::Minutes(1));
  RequireOk(db->CompactRange({}, nullptr, nullptr));
  end = true;
  for (std::thread& writer : writers) writer.join();
  BOOST_TEST(created.ok(), created);
  BOOST_TEST(ready.ok(), ready);
  BOOST_TEST(!failed);
  CheckAgainstDatabase(db.get(), "by_colour", db.family(0));
  BOOST_TEST(db.Info("by_colour").builds == 1);
}

BOOST_AUTO_TEST_CASE(a_unique_index_refuses_writes_before_they_commit) {
  IndexedDatabase db;
  db.Put("a", "red");
  db.Create("u = value.field(',', 0):text, unique=true");
  db.Create("v = value.field(',', 0):text, cf=a, unique=true", 1);

  const rocksdb::Status refused = db->Put({}, "b", "red");
  BOOST_TEST(refused.IsInvalidArgument());
  for (const char* part : {"'u'", "red", "'a'", "'b'"}) {
    BOOST_TEST(absl::StrContains(refused.ToString(), part), refused.ToString());
  }
  std::string value;
  BOOST_TEST(db->Get({}, "b", &value).IsNotFound());
  db.Put("a", "red,again");
  // A batch may move a key from one row to another, but may not give it to two rows.
  rocksdb::WriteBatch moves;
  RequireOk(moves.Put("b", "red"));
  RequireOk(moves.Put("a", "blue"));
  RequireOk(db->Write({}, &moves));
  rocksdb::WriteBatch twice;
  RequireOk(twice.Put(db.family(1), "x", "red"));
  RequireOk(twice.Put(db.family(0), "c", "grey"));
  RequireOk(twice.Put(db.family(0), "d", "grey"));
  BOOST_TEST(db->Write({}, &twice).IsInvalidArgument());
  BOOST_TEST(RowsOf(db.get(), "v", "red") == "");
  db.Put("x", "red", 1);
  BOOST_TEST(db->Put({}, db.family(1), "y", "red").IsInvalidArgument());
  BOOST_TEST(db->Merge({}, "c", "black").IsNotSupported());
  RequireOk(db->DeleteRange({}, db.family(0), "a", "c"));
  db.Put("c", "red");
  BOOST_TEST(RowsOf(db.get(), "u", "red") == "c");

  // Past the wrapper nothing is rejected, and the index reports that.
  RequireOk(db->GetBaseDB()->Put({}, "d", "red"));
  const auto pinned = db->Pin("u");
  CheckFails(pinned.status(), absl::StatusCode::kFailedPrecondition, "red");
  BOOST_TEST((db.Info("u").state == IndexState::kFailed));
  RequireOk(db->Delete({}, "d"));
  RequireOk(db->RebuildIndex("u"));
  RequireOk(db->WaitUntilReady("u"));
  BOOST_TEST(RowsOf(db.get(), "u", "red") == "c");
}

BOOST_AUTO_TEST_CASE(of_many_writers_of_one_unique_key_one_succeeds) {
  IndexedDatabase db;
  db.Create("u = value:text, unique=true");
  std::atomic<int> successes{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 50; ++i) {
        if (db->Put({}, absl::StrCat("t", t, "_", i), absl::StrCat("key", i)).ok()) ++successes;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  BOOST_TEST(successes == 50);
  CheckAgainstDatabase(db.get(), "u", db.family(0));
}

BOOST_AUTO_TEST_CASE(a_dropped_index_is_gone_and_its_name_is_free) {
  IndexedDatabase db;
  db.Put("a", "red,heavy");
  db.Create(kByColour);
  const auto live = db->Index("by_colour");
  const auto pinned = db->Pin("by_colour");
  BOOST_REQUIRE(live.ok() && pinned.ok());
  const std::string directory = db.Info("by_colour").directory;
  RequireOk(db->DropIndex("by_colour"));
  BOOST_TEST(!std::filesystem::exists(directory));
  CheckFails(db->Index("by_colour").status(), absl::StatusCode::kNotFound, "by_colour");
  CheckFails(db->DropIndex("by_colour"), absl::StatusCode::kNotFound, "by_colour");
  FindResult matches;
  const std::string_view keys[] = {"red"};
  CheckFails((*live)->Find(keys, &matches), absl::StatusCode::kFailedPrecondition, "dropped");
  BOOST_TEST(RowsOf(**pinned, "red") == "a");
  db.Create("by_colour = value.field(',', 1):text");
  BOOST_TEST(RowsOf(db.get(), "by_colour", "heavy") == "a");
}

BOOST_AUTO_TEST_CASE(an_index_is_dropped_while_it_is_built) {
  IndexedDatabase db;
  rocksdb::WriteBatch batch;
  for (int i = 0; i < 200000; ++i) {
    RequireOk(batch.Put(absl::StrCat("k", i), absl::StrCat("c", i)));
  }
  RequireOk(db->Write({}, &batch));
  RequireOk(db->CreateIndex(SpecOf(kByColour)));
  RequireOk(db->DropIndex("by_colour"));
  BOOST_TEST(db->ListIndexes().empty());
  BOOST_TEST(!std::filesystem::exists(db.path() + ".indexes/by_colour"));
}

BOOST_AUTO_TEST_CASE(what_cannot_be_an_index_is_refused) {
  IndexedDatabase db;
  CheckFails(db->CreateIndex(SpecOf("value:text")), absl::StatusCode::kInvalidArgument, "name");
  CheckFails(db->CreateIndex(SpecOf(".. = value:text")), absl::StatusCode::kInvalidArgument, "dot");
  CheckFails(db->CreateIndex(SpecOf("x = value:text, cf=b")), absl::StatusCode::kInvalidArgument,
             "'b': pass CreateIndex its handle, not that of 'default'");
  db.Create(kByColour);
  CheckFails(db->CreateIndex(SpecOf(kByColour)), absl::StatusCode::kAlreadyExists, "by_colour");
}

BOOST_AUTO_TEST_CASE(a_build_that_cannot_succeed_says_why) {
  IndexedDatabase db;
  db.Put("a", "red");
  db.Put("b", "red");
  RequireOk(db->CreateIndex(SpecOf("u = value:text, unique=true")));
  CheckFails(db->WaitUntilReady("u"), absl::StatusCode::kAlreadyExists, "red");
  BOOST_TEST((db.Info("u").state == IndexState::kFailed));
  RequireOk(db->Delete({}, "b"));
  RequireOk(db->RebuildIndex("u"));
  RequireOk(db->WaitUntilReady("u"));
}

BOOST_AUTO_TEST_CASE(a_row_that_cannot_be_read_fails_its_index_until_a_rebuild_or_is_skipped) {
  IndexedDatabase db;
  db.Create("age = value.json('/age'):u8");
  db.Create("skips = value.json('/age'):u8, on_error=skip");
  db.Put("ana", R"({"age": 42})");
  db.Put("zoe", R"({"age": "old"})");
  const auto refused = [&](std::string_view part) {
    CheckFails(db->Lookup("age", 42).status(), absl::StatusCode::kFailedPrecondition,
               std::string(part));
  };
  refused("index 'age' has failed: ");
  refused("zoe");
  refused("; fix that, then call IndexedDB::RebuildIndex");
  BOOST_TEST(RequireOk(db->Lookup("skips", KeyQuery::Everything())).size() == 1u);
  db.Put("zoe", R"({"age": 42})");
  refused("has failed");
  BOOST_TEST((db.Info("age").time_lag == absl::ZeroDuration()));
  BOOST_TEST(RequireOk(db->Lookup("skips", 42)).size() == 2u);
  RequireOk(db->RebuildIndex("age"));
  RequireOk(db->WaitUntilReady("age"));
  BOOST_TEST(RequireOk(db->Lookup("age", 42)).size() == 2u);
}

BOOST_AUTO_TEST_CASE(a_dropped_column_family_takes_its_indexes_with_it) {
  IndexedDatabase db;
  db.Create("of_a = value:text, cf=a", 1);
  db.Create(kByColour);
  RequireOk(db->DropColumnFamily(db.family(1)));
  CheckFails(db->Pin("of_a").status(), absl::StatusCode::kFailedPrecondition, "dropped");
  db.Put("a", "red");
  BOOST_TEST(RowsOf(db.get(), "by_colour", "red") == "a");
}

BOOST_AUTO_TEST_CASE(a_pinned_state_outlives_writes_and_the_database) {
  IndexedDatabase db;
  db.Put("a", "red");
  db.Create(kByColour);
  db.Put("b", "red");
  const auto pinned = db->Pin("by_colour");
  const auto live = db->Index("by_colour");
  BOOST_REQUIRE(pinned.ok() && live.ok());
  RequireOk(db->Delete({}, "a"));
  BOOST_TEST(RowsOf(db.get(), "by_colour", "red") == "b");
  db.Close();
  BOOST_TEST(RowsOf(**pinned, "red") == "a b");
  FindResult matches;
  const std::string_view keys[] = {"red"};
  CheckFails((*live)->Find(keys, &matches), absl::StatusCode::kFailedPrecondition, "");
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
