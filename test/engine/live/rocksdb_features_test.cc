// Indexes miss no change of rows that a version of RocksDB supports: live, past the object, and
// caught up from the log. docs/platforms.md lists the versions that were tested.

#include "test/engine/rocksdb_features.h"

#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "cairn/options.h"
#include "cairn/secondary_index.h"
#include "cairn/snapshot_source.h"
#include "rocksdb/sst_file_writer.h"
#include "rocksdb/utilities/transaction.h"
#include "rocksdb/utilities/transaction_db.h"
#include "test/engine/indexed_database.h"
#include "test/require_ok.h"
#include "test/test_random.h"

namespace cairn {
BOOST_AUTO_TEST_SUITE(rocksdb_features_test)
namespace {

constexpr char kAll[] = "all = value:text, on_error=skip";
constexpr char kOfA[] = "of_a = value:text, cf=a, on_error=skip";

// A database that is changed through `db`: the IndexedDB, or the database below it.
struct Changed {
  IndexedDatabase* database;
  rocksdb::DB* db;
  int round = 0;

  rocksdb::ColumnFamilyHandle* family(size_t i) const { return database->family(i); }
  std::string Key(const char* what) const { return absl::StrCat("row", what, round); }
};

std::string WriteSst(const Changed& changed, const std::string& key) {
  const std::string file = changed.database->Beside("new.sst");
  rocksdb::SstFileWriter writer(rocksdb::EnvOptions(), changed.database->rocksdb_options());
  RequireOk(writer.Open(file));
  RequireOk(writer.Put(key, "ingested"));
  RequireOk(writer.Finish());
  return file;
}

// The table files of another database, with rows of several sequence numbers if the version allows
// that.
std::vector<std::string> OtherDatabasesTables(const Changed& changed, const std::string& path) {
  rocksdb::Options options;
  options.create_if_missing = true;
  std::unique_ptr<rocksdb::DB> other;
  RequireOk(rocksdb::DB::Open(options, path, Into(&other)));
  for (const char* what : {"a", "b", "c"}) {  // not between any of the database's own
    RequireOk(other->Put({}, changed.Key("table") + what, absl::StrCat("of a table ", what)));
  }
  rocksdb::CompactRangeOptions compaction;
  if (!kIngestsNumberedTables) {  // the last level's rows lose their numbers
    compaction.bottommost_level_compaction = rocksdb::BottommostLevelCompaction::kForce;
  }
  RequireOk(other->CompactRange(compaction, nullptr, nullptr));
  std::vector<rocksdb::LiveFileMetaData> files;
  other->GetLiveFilesMetaData(&files);
  std::vector<std::string> paths;
  for (const auto& file : files) paths.push_back(file.db_path + file.name);
  return paths;
}

using Change = std::function<rocksdb::Status(const Changed&)>;
struct NamedChange {
  const char* name;
  Change make;
};

const std::vector<NamedChange>& Changes() {
  static const std::vector<NamedChange> changes = {
      {"Put", [](const Changed& c) { return c.db->Put({}, c.Key("p"), "put"); }},
      {"TimedPut",
       [](const Changed& c) { return TimedPut(c.db, c.family(0), c.Key("t"), "timed"); }},
      {"PutEntity",
       [](const Changed& c) {
         return c.db->PutEntity({}, c.family(0), c.Key("e"),
                                {{rocksdb::kDefaultWideColumnName, "entity"}, {"more", "1"}});
       }},
      {"attribute groups",
       [](const Changed& c) {
         return PutAttributeGroups(c.db, {c.family(0), c.family(1)}, c.Key("g"), "group");
       }},
      {"Merge", [](const Changed& c) { return c.db->Merge({}, c.Key("p"), "merged"); }},
      {"ingestion",
       [](const Changed& c) { return c.db->IngestExternalFile({WriteSst(c, c.Key("z"))}, {}); }},
      {"ingestion over a row",
       [](const Changed& c) { return c.db->IngestExternalFile({WriteSst(c, c.Key("p"))}, {}); }},
      {"ingestion in two steps",
       [](const Changed& c) {
         return IngestInTwoSteps(c.db, c.family(0), WriteSst(c, c.Key("y")), [] {});
       }},
      {"ingestion of tables",
       [](const Changed& c) {
         const std::string path = c.database->Beside(c.Key("other"));
         return IngestTables(c.db, c.family(0), OtherDatabasesTables(c, path));
       }},
      {"batch past the log",
       [](const Changed& c) { return IngestBatch(c.db, c.family(0), c.Key("i"), "batch"); }},
      {"clipping", [](const Changed& c) { return Clip(c.db, c.family(1), "row", "rox"); }},
  };
  return changes;
}

void Check(IndexedDatabase* database) {
  for (const auto& [name, family] : {std::pair{"all", 0}, {"of_a", 1}}) {
    (*database)->Pin(name).status().IgnoreError();  // finds a gap in the log, if there is one
    RequireOk((*database)->WaitUntilReady(name));
    CheckAgainstDatabase(database->get(), name, database->family(family));
  }
}

BOOST_AUTO_TEST_CASE(a_live_index_misses_no_change) {
  for (const bool past_the_object : {false, true}) {
    IndexedDBOptions options;
    options.on_stale = OnStale::kRebuild;
    IndexedDatabase database(options);
    database.Create(kAll);
    database.Create(kOfA, 1);
    for (int i = 0; i < 50; ++i) database.Put(absl::StrCat("row", i), "start", i % 2);
    Changed changed{&database, past_the_object ? database->GetBaseDB() : database.get()};
    for (const auto& [name, make] : Changes()) {
      // RocksDB reports ingestions, but not clipping: only the object itself can notice it.
      if (past_the_object && name == std::string_view("clipping")) continue;
      BOOST_TEST_CONTEXT(name << (past_the_object ? ", past the object" : "")) {
        for (const bool flushed : {false, true}) {
          ++changed.round;
          RequireOk(database->Put({}, absl::StrCat("rowp", changed.round), "before"));
          if (flushed) RequireOk(database->Flush({}));
          const rocksdb::Status made = make(changed);
          if (made.IsNotSupported()) {
            BOOST_TEST_MESSAGE("not in this version: " << name);
            continue;
          }
          RequireOk(made);
          Check(&database);
        }
      }
    }
    database.Reopen();
    Check(&database);
  }
}

// After an ingestion past the object, no index returns results without it.
BOOST_AUTO_TEST_CASE(an_ingestion_past_the_object_makes_indexes_stale_before_it_returns) {
  IndexedDBOptions options;
  options.on_stale = OnStale::kKeepStale;
  IndexedDatabase database(options);
  database.Put("a", "put");
  database.Create(kAll);
  database.Create(kOfA, 1);
  RequireOk(database->Pin("all").status());
  const Changed changed{&database, database->GetBaseDB()};
  RequireOk(changed.db->IngestExternalFile({WriteSst(changed, "z")}, {}));
  BOOST_TEST(absl::IsFailedPrecondition(database->Pin("all").status()));
  RequireOk(database->Pin("of_a").status());  // the file took no sequence number
  RequireOk(database->RebuildIndex("all"));
  Check(&database);
}

// The numbers of rows past the log are in no record, also not in one that recovery truncated.
BOOST_AUTO_TEST_CASE(rows_past_the_log_are_not_hidden_by_numbers_that_are_given_again) {
  const Change without_log = [](const Changed& c) {
    rocksdb::WriteOptions options;
    options.disableWAL = true;
    return c.db->Put(options, "z", "past the log");
  };
  const Change batch = [](const Changed& c) {
    return IngestBatch(c.db, c.db->DefaultColumnFamily(), "z", "batch");
  };
  for (const Change& make : {without_log, batch}) {
    IndexedDatabase database;
    database.Create(kAll);
    RequireOk(database->FlushIndexes());
    database.Put("b", "put");
    RequireOk(database->DeleteRange({}, database.family(0), "q", "q"));
    // The files that remain if the process is killed now.
    const std::string path = database.Beside("copy");
    std::filesystem::copy(database.path(), path, std::filesystem::copy_options::recursive);
    std::filesystem::copy(database.path() + ".indexes", path + ".indexes",
                          std::filesystem::copy_options::recursive);
    rocksdb::Options options = database.rocksdb_options();
    options.create_missing_column_families = false;
    std::vector<rocksdb::ColumnFamilyHandle*> families;
    const auto copy = RequireOk(IndexedDB::Open(
        options, path, {{"default", options}, {"a", options}}, &families, database.options()));
    RequireOk(copy->WaitUntilReady("all"));
    const rocksdb::Status written = make({&database, copy->GetBaseDB()});
    if (!written.IsNotSupported()) {
      RequireOk(written);
      // finds the gap, if the follower has not found it yet
      copy->Pin("all").status().IgnoreError();
      RequireOk(copy->WaitUntilReady("all"));
      CheckAgainstDatabase(copy.get(), "all", nullptr);
    }
    for (auto* family : families) RequireOk(copy->DestroyColumnFamilyHandle(family));
  }
}

// Random transactions; some become separate memtables. None makes an index stale.
BOOST_AUTO_TEST_CASE(commits_past_the_memtable_are_followed) {
  TemporaryDirectory directory;
  auto random = TestRandom(1);
  rocksdb::Options options;
  options.create_if_missing = true;
  options.merge_operator = std::make_shared<AppendOperator>();
  options.WAL_ttl_seconds = 3600;
  std::shared_ptr<rocksdb::TransactionDB> transactions;
  std::unique_ptr<IndexedDB> db;
  std::unique_ptr<rocksdb::Transaction> prepared;
  const auto open = [&] {
    prepared.reset();
    db.reset();
    transactions.reset();
    options.avoid_flush_during_shutdown = random() % 2 == 0;
    rocksdb::TransactionDB* opened = nullptr;
    RequireOk(rocksdb::TransactionDB::Open(options, {}, directory / "db", &opened));
    transactions.reset(opened);
    IndexedDBOptions of_indexes;
    of_indexes.on_stale = OnStale::kKeepStale;
    db = RequireOk(IndexedDB::Attach(transactions, {}, of_indexes));
    prepared.reset(transactions->GetTransactionByName("transaction"));
  };
  const auto key = [&] { return absl::StrCat("row", random() % 50); };
  open();
  RequireOk(db->CreateIndex(SpecOf(kAll)));
  for (int step = 0; step < 400; ++step) {
    if (prepared == nullptr) {
      rocksdb::TransactionOptions of_transaction;
      if (random() % 4 > 0) BypassMemtable(&of_transaction);
      prepared.reset(transactions->BeginTransaction({}, of_transaction));
      RequireOk(prepared->SetName("transaction"));
      for (size_t i = random() % 6; i > 0; --i) {
        RequireOk(prepared->Put(key(), absl::StrCat("put", step)));
        if (random() % 3 == 0) RequireOk(prepared->Delete(key()));
        if (random() % 3 == 0) RequireOk(prepared->Merge(key(), absl::StrCat("merged", step)));
      }
      RequireOk(prepared->Prepare());
      RequireOk(db->Put({}, absl::StrCat("other", random() % 50), absl::StrCat(step)));
    } else if (random() % 8 == 0) {
      open();
      RequireOk(db->WaitUntilReady("all"));
    } else {
      if (random() % 3 == 0) {
        RequireOk(prepared->GetCommitTimeWriteBatch()->Put("at commit", absl::StrCat(step)));
      }
      BOOST_REQUIRE((random() % 5 == 0 ? prepared->Rollback() : prepared->Commit()).ok());
      prepared.reset();
    }
    if (random() % 20 == 0) RequireOk(db->Flush({}));
    if (random() % 10 == 0) CheckAgainstDatabase(db.get(), "all", nullptr);
  }
  CheckAgainstDatabase(db.get(), "all", nullptr);
  prepared.reset();
}

// An index either catches up to the results of a scan, or is rejected.
BOOST_AUTO_TEST_CASE(an_index_that_is_caught_up_misses_no_change) {
  int refused = 0, followed = 0;
  for (const auto& [name, make] : Changes()) {
    BOOST_TEST_CONTEXT(name) {
      for (const bool compacted : {false, true}) {
        IndexedDatabase database;
        for (int i = 0; i < 50; ++i) database.Put(absl::StrCat("row", i), "start", i % 2);
        database.Put("rowp0", "before");
        RequireOk(database->Flush({}));
        const std::string directory = database.Beside("index");
        const bool of_a = name == std::string_view("clipping");
        rocksdb::ColumnFamilyHandle* const family = database.family(of_a ? 1 : 0);
        {
          const auto source = RequireOk(SnapshotSource::FromDb(database->GetBaseDB(), family));
          RequireOk(SecondaryIndex::Build(*source, SpecOf(of_a ? kOfA : kAll), directory));
        }
        const rocksdb::Status made = make({&database, database->GetBaseDB()});
        if (made.IsNotSupported()) continue;
        RequireOk(made);
        if (compacted) RequireOk(database->CompactRange({}, family, nullptr, nullptr));
        const auto source = RequireOk(SnapshotSource::FromDb(database->GetBaseDB(), family));
        const auto index = RequireOk(SecondaryIndex::Open(directory));
        const absl::Status caught_up = index->CatchUp(*source).status();
        if (!caught_up.ok()) {
          BOOST_TEST(absl::IsFailedPrecondition(caught_up), caught_up.ToString());
          ++refused;
          continue;
        }
        // Two limits: changes by clipping that are in no log, and files that are compacted before
        // the next catch-up.
        if (of_a || compacted) continue;
        ++followed;
        std::vector<std::string> differences;
        RequireOk(index->VerifyAgainst(*source, 5, &differences));
        for (const std::string& difference : differences) BOOST_ERROR(difference);
      }
    }
  }
  BOOST_TEST(refused > 0);
  BOOST_TEST(followed > 0);
}

// Files get their numbers when they are prepared, not when they are ingested.
BOOST_AUTO_TEST_CASE(a_file_that_was_prepared_before_a_newer_one_is_not_missed) {
  IndexedDatabase database;
  database.Put("a", "put");
  const Changed changed{&database, database->GetBaseDB()};
  const std::string directory = database.Beside("index");
  const rocksdb::Status ingested =
      IngestInTwoSteps(changed.db, changed.family(0), WriteSst(changed, "z"), [&] {
        RequireOk(changed.db->IngestExternalFile({WriteSst(changed, "y")}, {}));
        const auto source = RequireOk(SnapshotSource::FromDb(changed.db));
        RequireOk(SecondaryIndex::Build(*source, SpecOf(kAll), directory));
      });
  if (ingested.IsNotSupported()) return;
  RequireOk(ingested);
  const auto source = RequireOk(SnapshotSource::FromDb(changed.db));
  const auto index = RequireOk(SecondaryIndex::Open(directory));
  BOOST_TEST(absl::IsFailedPrecondition(index->CatchUp(*source).status()));
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
