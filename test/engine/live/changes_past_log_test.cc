// Changes of rows that the database's log does not contain, through an IndexedDB and past it.
#include <atomic>
#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "cairn/extractor.h"
#include "cairn/indexed_db.h"
#include "engine/util/rocksdb_compat.h"
#include "rocksdb/env.h"
#include "rocksdb/listener.h"
#include "rocksdb/sst_file_writer.h"
#include "rocksdb/write_batch.h"
#include "test/engine/indexed_database.h"
#include "test/engine/live/indexed_db_checks.h"
#include "test/require_ok.h"

namespace cairn {
BOOST_AUTO_TEST_SUITE(changes_past_log_test)
namespace {

constexpr char kCity[] = "city = value:text";

std::string WriteTable(const IndexedDatabase& db, const std::string& name, const std::string& key,
                       const std::string& value) {
  const std::string file = db.Beside(name);
  rocksdb::SstFileWriter writer{rocksdb::EnvOptions(), rocksdb::Options()};
  RequireOk(writer.Open(file));
  RequireOk(writer.Put(key, value));
  RequireOk(writer.Finish());
  return file;
}

// The database and its indexes, as they are left by a process that is killed now.
void CopyAsKilled(const IndexedDatabase& db, const std::string& to) {
  for (const char* what : {"", ".indexes"}) {
    std::filesystem::copy(db.path() + what, to + what, std::filesystem::copy_options::recursive);
  }
}

struct Opened {
  std::unique_ptr<IndexedDB> db;
  std::vector<rocksdb::ColumnFamilyHandle*> families;

  Opened(IndexedDatabase& like, const std::string& path, OnStale on_stale) {
    IndexedDBOptions options = like.options();
    options.on_stale = on_stale;
    const rocksdb::Options& rocksdb = like.rocksdb_options();
    db = RequireOk(
        IndexedDB::Open(rocksdb, path, {{"default", rocksdb}, {"a", rocksdb}}, &families, options));
  }
  ~Opened() {
    for (auto* family : families) db->DestroyColumnFamilyHandle(family).PermitUncheckedError();
  }
};

rocksdb::WriteOptions WithoutLog() {
  rocksdb::WriteOptions options;
  options.disableWAL = true;
  return options;
}

BOOST_AUTO_TEST_CASE(files_ingested_past_the_object_into_a_family_made_after_open) {
  IndexedDatabase db;
  rocksdb::ColumnFamilyHandle* people = nullptr;
  RequireOk(db->CreateColumnFamily(db.rocksdb_options(), "people", &people));
  RequireOk(db->CreateIndex(kCity, people));
  RequireOk(db->WaitUntilReady("city"));
  RequireOk(db->Put({}, people, "a", "Lisbon"));
  BOOST_TEST(RowsOf(db.get(), "city", "Lisbon") == "a");
  RequireOk(
      db->GetBaseDB()->IngestExternalFile(people, {WriteTable(db, "x.sst", "x", "Oslo")}, {}));
  RequireOk(db->WaitUntilReady("city"));
  BOOST_TEST(RowsOf(db.get(), "city", "Oslo") == "x");
  CheckAgainstDatabase(db.get(), "city", people);
  RequireOk(db->DestroyColumnFamilyHandle(people));
}

// RocksDB calls it during an ingestion, whose rows any reader has by then.
class IngestionListener final : public rocksdb::EventListener {
 public:
  void OnExternalFileIngested(rocksdb::DB*, const rocksdb::ExternalFileIngestionInfo&) override {
    on_ingested();
  }
  std::function<void()> on_ingested = [] {};
};

BOOST_AUTO_TEST_CASE(queries_during_an_ingestion_do_not_miss_its_rows) {
  const auto listener = std::make_shared<IngestionListener>();
  IndexedDBOptions keep;
  keep.on_stale = OnStale::kKeepStale;
  IndexedDatabase db(keep);
  db.Close();
  db.rocksdb_options().listeners = {listener};
  db.Open();
  db.Create(kCity);
  db.Create("of_a = value:text", 1);
  db.Put("b", "Lisbon");
  const auto live = RequireOk(db->Index("city"));
  int calls = 0;
  listener->on_ingested = [&] {
    ++calls;
    std::string value;
    RequireOk(db->Get({}, "b", &value));
    if (value == "Lisbon") RequireOk(db->Get({}, "x", &value));
    BOOST_TEST(value == "Oslo");
    const auto refuses = [](const absl::Status& status) {
      CheckFails(status, absl::StatusCode::kUnavailable, "'city': rows of its column family");
    };
    refuses(db->Pin("city").status());
    refuses(db->Lookup("city", "Oslo").status());
    refuses(db->LookupRows("city", "Oslo").status());
    refuses(db->PinGroup({"city"}).status());
    FindResult found;
    const std::string_view keys[] = {"Oslo"};
    refuses(live->Find(keys, &found));
    RequireOk(db->Pin("of_a").status());
  };
  // The first file takes no sequence number, the second one does.
  for (const char* key : {"x", "b"}) {
    RequireOk(db->IngestExternalFile({WriteTable(db, absl::StrCat(key, ".sst"), key, "Oslo")}, {}));
    CheckFails(db->Pin("city").status(), absl::StatusCode::kFailedPrecondition, "ingested");
    RequireOk(db->RebuildIndex("city"));
    RequireOk(db->WaitUntilReady("city"));
  }
  BOOST_TEST(calls == 2);
  BOOST_TEST(RowsOf(db.get(), "city", "Oslo") == "b x");
}

BOOST_AUTO_TEST_CASE(files_ingested_after_close_while_the_database_is_open) {
  IndexedDatabase db;
  db.Create(kCity);
  db.Put("a", "Lisbon");
  rocksdb::DB* const root = db->GetRootDB();
  RequireOk(db->Close());
  RequireOk(root->IngestExternalFile({WriteTable(db, "x.sst", "x", "Oslo")}, {}));
  rocksdb::CompactRangeOptions compaction;  // removes all traces of the file
  compaction.bottommost_level_compaction = rocksdb::BottommostLevelCompaction::kForce;
  RequireOk(root->CompactRange(compaction, nullptr, nullptr));
  db.Reopen();
  RequireOk(db->WaitUntilReady("city"));
  BOOST_TEST(RowsOf(db.get(), "city", "Oslo") == "x");
  CheckAgainstDatabase(db.get(), "city", db.family(0));
}

// The number of an empty range at the end of a recovered log is assigned to the next write.
BOOST_AUTO_TEST_CASE(writes_without_a_log_after_a_recovery) {
  IndexedDatabase db;
  db.Create(kCity);
  db.Put("a", "Rome");
  RequireOk(db->FlushIndexes());
  db.Put("b", "Oslo");
  RequireOk(db->DeleteRange({}, db.family(0), "q", "q"));
  const std::string first = db.Beside("first"), second = db.Beside("second");
  CopyAsKilled(db, first);
  {
    Opened killed(db, first, OnStale::kRebuild);
    RequireOk(killed.db->WaitUntilReady("city"));
    RequireOk(killed.db->Put(WithoutLog(), "bulk", "Ghost"));
    RequireOk(killed.db->WaitUntilReady("city"));
    BOOST_TEST(RowsOf(killed.db.get(), "city", "Ghost") == "bulk");
    CheckAgainstDatabase(killed.db.get(), "city", killed.families[0]);
  }
  // Killed after all numbers have disappeared from the table files.
  CopyAsKilled(db, second);
  const std::string third = db.Beside("third");
  {
    Opened killed(db, second, OnStale::kKeepStale);
    RequireOk(killed.db->WaitUntilReady("city"));
    RequireOk(killed.db->Put(WithoutLog(), "bulk", "Ghost"));
    BOOST_TEST(RowsOf(killed.db.get(), "city", "Ghost") == "bulk");
    RequireOk(killed.db->Flush({}));
    rocksdb::CompactRangeOptions compaction;
    compaction.bottommost_level_compaction = rocksdb::BottommostLevelCompaction::kForce;
    RequireOk(killed.db->CompactRange(compaction, nullptr, nullptr));
    for (const char* what : {"", ".indexes"}) {
      std::filesystem::copy(second + what, third + what, std::filesystem::copy_options::recursive);
    }
  }
  Opened again(db, third, OnStale::kRebuild);
  RequireOk(again.db->WaitUntilReady("city"));
  BOOST_TEST(RowsOf(again.db.get(), "city", "Ghost") == "bulk");
  CheckAgainstDatabase(again.db.get(), "city", again.families[0]);
}

// The wait includes what the log shows about earlier changes, though nothing else reads it.
BOOST_AUTO_TEST_CASE(a_wait_for_an_index_reads_the_log) {
  for (const OnStale on_stale : {OnStale::kKeepStale, OnStale::kRebuild}) {
    IndexedDBOptions options;
    options.on_stale = on_stale;
    options.follow_interval = absl::ZeroDuration();
    IndexedDatabase db(options);
    db.Create(kCity);
    rocksdb::DB* const root = db->GetRootDB();
    RequireOk(root->Put({}, "a", "Lisbon"));
    RequireOk(db->WaitUntilReady("city", absl::ZeroDuration()));
    BOOST_TEST(db.Info("city").sequence_lag == 1u);
    RequireOk(db->WaitUntilReady("city"));
    BOOST_TEST(db.Info("city").sequence_lag == 0u);

    RequireOk(root->Put(WithoutLog(), "b", "Lisbon"));
    RequireOk(root->Put({}, "c", "Lisbon"));
    if (on_stale == OnStale::kKeepStale) {
      CheckFails(db->WaitUntilReady("city"), absl::StatusCode::kFailedPrecondition, "rebuild");
      continue;
    }
    RequireOk(db->WaitUntilReady("city"));
    BOOST_TEST(RequireOk(db->Lookup("city", "Lisbon")).size() == 3u);
    BOOST_TEST(db.Info("city").builds == 2u);
  }
}

// They take sequence numbers that are not in the log.
BOOST_AUTO_TEST_CASE(files_ingested_into_a_family_without_indexes) {
  IndexedDatabase db;
  db.Create(kCity);
  db.Put("k", "v", 1);
  std::atomic<bool> stop{false};
  std::thread writer([&] {
    for (int i = 0; !stop; ++i) db.Put(absl::StrCat("w", i % 100), absl::StrCat("c", i % 7));
  });
  for (int i = 0; i < 20; ++i) {
    const std::string file = WriteTable(db, absl::StrCat(i, ".sst"), "k", absl::StrCat(i));
    RequireOk(db->IngestExternalFile(db.family(1), {file}, {}));
    RequireOk(db->Pin("city").status());
  }
  stop = true;
  writer.join();
  db.Put("a", "Lisbon");
  BOOST_TEST(RowsOf(db.get(), "city", "Lisbon") == "a");
  BOOST_TEST(db.Info("city").builds == 1u);
  CheckAgainstDatabase(db.get(), "city", db.family(0));
  // The index continues from the state stored by then.
  db.Reopen();
  RequireOk(db->WaitUntilReady("city"));
  BOOST_TEST(db.Info("city").builds == 0u);
  CheckAgainstDatabase(db.get(), "city", db.family(0));
}

// An operand is looked up at a snapshot, whose number may be a file's, or past it.
BOOST_AUTO_TEST_CASE(an_operand_that_is_followed_together_with_an_ingested_number) {
  IndexedDBOptions options;
  options.follow_interval = absl::Hours(1);
  options.on_stale = OnStale::kKeepStale;
  IndexedDatabase db(options);
  db.Create(kCity);
  db.Put("k", "x", 1);
  RequireOk(db->Pin("city").status());
  RequireOk(db->Merge({}, db.family(0), "first", "Oslo"));
  RequireOk(db->IngestExternalFile(db.family(1), {WriteTable(db, "k.sst", "k", "y")}, {}));
  db.Put("last", "Bergen");
  BOOST_TEST(RowsOf(db.get(), "city", "Oslo") == "first");
  BOOST_TEST(RowsOf(db.get(), "city", "Bergen") == "last");
  BOOST_TEST(db.Info("city").builds == 1u);
  CheckAgainstDatabase(db.get(), "city", db.family(0));
}

#if !CAIRN_ROCKSDB_FROM(10, 0)
BOOST_AUTO_TEST_CASE(a_table_file_that_is_deleted) {
  IndexedDatabase db;
  db.Create(kCity);
  db.Put("a", "Lisbon");
  db.Put("b", "Lisbon");
  RequireOk(db->Flush({}));
  std::vector<rocksdb::LiveFileMetaData> files;
  db->GetLiveFilesMetaData(&files);
  BOOST_REQUIRE(files.size() == 1);
  BOOST_TEST(db->DeleteFile("/999999.sst").IsInvalidArgument());
  BOOST_TEST(db.Info("city").builds == 1u);
  RequireOk(db->DeleteFile(files[0].name));
  RequireOk(db->WaitUntilReady("city"));
  BOOST_TEST(RowsOf(db.get(), "city", "Lisbon").empty());
  BOOST_TEST(db.Info("city").builds == 2u);
  CheckAgainstDatabase(db.get(), "city", db.family(0));
}
#endif

BOOST_AUTO_TEST_CASE(changes_that_fail_before_anything_has_changed) {
  IndexedDatabase db;
  db.Create(kCity);
  db.Put("a", "Lisbon");
  const auto check = [&](const rocksdb::Status& failed) {
    BOOST_TEST(!failed.ok());

    BOOST_TEST(RowsOf(db.get(), "city", "Lisbon") == "a");
    BOOST_TEST(db.Info("city").builds == 1u);
  };
  check(db->IngestExternalFile({"/nonexistent.sst"}, {}));
  check(db->DropColumnFamily(db->DefaultColumnFamily()));
  rocksdb::IngestExternalFileOptions unnumbered;
  unnumbered.allow_global_seqno = false;
  check(db->IngestExternalFile({WriteTable(db, "a.sst", "a", "Oslo")}, unnumbered));
  const std::string text = db.Beside("text.sst");
  RequireOk(rocksdb::WriteStringToFile(rocksdb::Env::Default(), std::string(1000, 'x'), text));
  check(db->IngestExternalFile({text}, {}));
  // No mark remains.
  db.Reopen();
  BOOST_TEST(RowsOf(db.get(), "city", "Lisbon") == "a");
  BOOST_TEST(db.Info("city").builds == 0u);
}

// Takes 20 us per row.
class SlowExtractor final : public KeyExtractor {
 public:
  absl::Status Extract(const RowView& row, KeySink* keys) const override {
    const absl::Time end = absl::Now() + absl::Microseconds(20);
    while (absl::Now() < end) {
    }
    keys->Add(row.value);
    return absl::OkStatus();
  }
};

BOOST_AUTO_TEST_CASE(a_write_that_must_not_wait_for_indexes) {
  RequireOk(RegisterExtractor("slow_key", std::make_shared<SlowExtractor>()));
  IndexedDBOptions options;
  options.follow_interval = absl::ZeroDuration();
  options.max_backlog = absl::Milliseconds(1);
  IndexedDatabase db(options);
  db.Create("slow = custom('slow_key'):text");
  rocksdb::WriteBatch batch;
  for (int i = 0; i < 30000; ++i) RequireOk(batch.Put(absl::StrCat(i), "x"));
  RequireOk(db->GetBaseDB()->Write({}, &batch));
  rocksdb::WriteOptions at_once;
  at_once.no_slowdown = true;
  const rocksdb::Status refused = db->Put(at_once, "z", "z");
  BOOST_TEST(refused.IsIncomplete(), refused.ToString());
  std::string value;
  BOOST_TEST(db->Get({}, "z", &value).IsNotFound());
  RequireOk(db->Put({}, "z", "z"));  // waits
  RequireOk(db->Put(at_once, "z", "y"));
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
