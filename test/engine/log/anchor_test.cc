// Histories in which a database is no longer the one of the index, although sequence numbers look
// right. Each must be rejected with a specific error, or the index must get the database's own
// rows.
#include "engine/log/anchor.h"

#include <boost/test/unit_test.hpp>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_format.h"
#include "cairn/index_spec.h"
#include "cairn/indexed_db.h"
#include "cairn/options.h"
#include "cairn/secondary_index.h"
#include "cairn/snapshot_source.h"
#include "engine/util/rocksdb_compat.h"
#include "rocksdb/sst_file_writer.h"
#include "rocksdb/utilities/checkpoint.h"
#include "rocksdb/utilities/db_ttl.h"
#include "test/engine/indexed_database.h"
#include "test/engine/log/database_history.h"
#include "test/temporary_directory.h"

namespace cairn {
BOOST_AUTO_TEST_SUITE(anchor_test)
namespace {

constexpr char kRestored[] = "restored from an older copy, or has lost the end of its log";

BOOST_AUTO_TEST_CASE(is_a_line_of_text_and_nothing_else) {
  Anchor anchor;
  BOOST_TEST((*Anchor::Parse(anchor.ToString()) == anchor));
  anchor = {"SESSION",
            7,
            {12, {4096, 0xfedcba9876543210}},
            "12:ABC-DEF,13:5-6",
            14,
            9,
            "two  words = here ",
            nullptr};
  const std::string text = anchor.ToString();
  BOOST_TEST((*Anchor::Parse(text) == anchor));
  for (size_t i = 0; i < text.size() - anchor.unproven.size(); ++i) {
    std::string cut = text.substr(0, i);
    BOOST_TEST(absl::IsDataLoss(Anchor::Parse(cut).status()), cut);
  }
  for (const char* wrong :
       {"", " ", "session=", "session= family=4294967296 log=0:0:0000000000000000",
        "session=a family=-1 log=0:0:0000000000000000 ingested=0 files= until=0 unproven=",
        "session=a family=1 log=0:0:0 ingested=0 files= until=0 unproven=",
        "session=a family=01 log=0:0:0000000000000000 ingested=0 files= until=0 unproven="}) {
    BOOST_TEST(absl::IsDataLoss(Anchor::Parse(wrong).status()), wrong);
  }
}

BOOST_AUTO_TEST_CASE(a_database_that_goes_on_is_followed_whatever_it_does) {
  for (const bool keeps_logs : {true, false}) {
    DatabaseHistory h(keeps_logs);
    h.Put("a", 0, 50, "old");
    h.Build();
    h.CheckCurrent();
    h.Put("a", 40, 60, "new");
    h.CheckCurrent();
    RequireOk(h.db()->Flush({}));
    h.CheckCurrent();
    h.Put("b", 0, 10, "more");
    if (keeps_logs) {
      h.Reopen();
      h.CheckCurrent();
      h.Reopen();  // nothing was written in between
      h.CheckCurrent();
      h.Put("b", 5, 15, "again");
      RequireOk(h.db()->CompactRange({}, nullptr, nullptr));
      h.Reopen();
    }
    h.CheckCurrent();
  }
}

BOOST_AUTO_TEST_CASE(where_all_was_in_table_files_they_prove_it) {
  for (const bool compacted : {false, true}) {
    DatabaseHistory h(/*keeps_logs=*/false);
    h.Put("a", 0, 50, "old");
    RequireOk(h.db()->Flush({}));
    if (compacted) RequireOk(h.db()->CompactRange({}, nullptr, nullptr));
    h.Reopen();
    h.Build();
    h.Reopen();
    h.Put("b", 0, 10, "new");
    h.CheckCurrent();
  }
  // A restored copy has other files with these numbers.
  DatabaseHistory h(/*keeps_logs=*/false);
  h.Put("a", 0, 50, "old");
  RequireOk(h.db()->Flush({}));
  h.CopyTo("copy");
  h.Put("a", 50, 60, "lost");
  RequireOk(h.db()->Flush({}));
  h.Build();
  h.Restore("copy");
  h.Put("b", 50, 60, "newx");
  RequireOk(h.db()->Flush({}));
  h.Put("c", 0, 5, "more");
  h.CheckCurrentOrRefused();
}

// A flush of another column family begins a new log file. The rows of the older one are in memory.
BOOST_AUTO_TEST_CASE(a_database_that_lost_an_older_log_file_is_refused) {
  for (const bool is_built_before : {true, false}) {
    for (const bool is_lost : {false, true}) {
      DatabaseHistory h;
      h.options().avoid_flush_during_recovery = true;
      h.Put("a", 0, 20, "old");
      if (is_built_before) h.Build();
      std::unique_ptr<rocksdb::LogFile> log;
      RequireOk(h.db()->GetCurrentWalFile(&log));
      RequireOk(h.db()->Put({}, h.users(), "x", "x"));
      RequireOk(h.db()->Flush({}, h.users()));
      h.Put("b", 0, 5, "new");
      if (!is_built_before) h.Build();
      CatchUpOptions durable;
      durable.durable = true;
      RequireOk(h.CatchUp(durable));
      h.Close();
      if (is_lost) fs::remove(h.path() + log->PathName());
      h.OpenDatabase();
      if (is_lost) {
        h.CheckRefused("is missing");
      } else {
        h.CheckCurrent();
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(the_index_of_a_checkpoint_catches_up_with_its_database) {
  DatabaseHistory h;
  h.Put("a", 0, 50, "old");
  rocksdb::Checkpoint* checkpoint = nullptr;
  RequireOk(rocksdb::Checkpoint::Create(h.db(), &checkpoint));
  RequireOk(checkpoint->CreateCheckpoint(h.Beside("checkpoint")));
  delete checkpoint;
  h.Put("b", 0, 10, "new");
  {
    const auto source = SnapshotSource::FromDirectory(h.Beside("checkpoint"));
    RequireOk(source.status());
    const IndexSpec spec = SpecOf("value:text");
    RequireOk(SecondaryIndex::Build(**source, spec, h.Beside("index")).status());
  }
  h.CheckCurrent();
}

// R2 and similar histories.
BOOST_AUTO_TEST_CASE(a_restored_copy_that_was_written_on_is_refused) {
  for (const bool keeps_logs : {true, false}) {
    for (const int reopened : {0, 2}) {
      for (const int more : {50, 60}) {
        DatabaseHistory h(keeps_logs);
        h.Put("a", 0, 50, "old");
        h.Close();
        h.OpenDatabase();
        h.CopyTo("copy");
        for (int i = 0; i < reopened; ++i) h.Reopen();
        h.Build();
        h.Put("a", 50, 100, "lost");
        h.CheckCurrent();
        h.Restore("copy");
        h.Put("b", 50, 50 + more, "newr");  // as long as the lost ones
        h.CheckRefused("state 100");
        RequireOk(h.db()->Flush({}));
        h.Put("c", 0, 5, "more");
        h.CheckRefused("state 100");
      }
    }
  }
}

// The copy is opened as often as the database was, so that logs have the same numbers, sizes and
// last records.
BOOST_AUTO_TEST_CASE(a_restored_copy_whose_log_ends_alike_is_refused) {
  DatabaseHistory h;
  h.Put("a", 0, 50, "old");
  h.Close();
  h.OpenDatabase();
  h.Close();
  fs::copy(h.path(), h.Beside("copy"), fs::copy_options::recursive);
  h.OpenDatabase();
  h.Put("a", 50, 99, "lost");
  h.Put("z", 99, 100, "same");
  h.Build();
  h.Restore("copy");
  h.Put("a", 50, 99, "newr");
  h.Put("z", 99, 100, "same");
  h.CheckRefused(kRestored);
  CatchUpOptions assume;
  assume.skip_identity_check = true;
  BOOST_TEST(absl::IsFailedPrecondition(h.CatchUp(assume)));
  h.Put("y", 0, 10, "more");
  h.CheckRefused(kRestored);
}

// R3.
BOOST_AUTO_TEST_CASE(a_log_that_lost_its_end_is_refused) {
  for (const bool keeps_logs : {true, false}) {
    for (const bool caught_up : {false, true}) {
      DatabaseHistory h(keeps_logs);
      h.Put("a", 0, 50, "old");
      h.CopyTo("disk");
      if (caught_up) h.Build();
      h.Put("a", 50, 100, "lost");
      if (caught_up) {
        h.CheckCurrent();
      } else {
        h.Build();
      }
      h.Restore("disk");
      h.Put("b", 0, 60, "newr");
      h.CheckRefused("state 100");
    }
  }
}

// R3b.
BOOST_AUTO_TEST_CASE(a_live_index_is_built_anew_after_its_database_lost_the_end_of_its_log) {
  IndexedDatabase db;
  for (int i = 0; i < 50; ++i) db.Put(absl::StrFormat("a%02d", i), "old");
  fs::copy(db.path(), db.Beside("disk"), fs::copy_options::recursive);
  for (int i = 50; i < 100; ++i) db.Put(absl::StrFormat("a%02d", i), "lost");
  db.Create("ix = value:text");
  db.Close();
  db.rocksdb_options().WAL_size_limit_MB = 100;  // everything written then is kept
  fs::remove_all(db.path());
  fs::rename(db.Beside("disk"), db.path());
  {
    std::vector<rocksdb::ColumnFamilyHandle*> handles;
    std::unique_ptr<rocksdb::DB> plain;
    RequireOk(rocksdb::DB::Open(db.rocksdb_options(), db.path(),
                                {{"default", db.rocksdb_options()}, {"a", db.rocksdb_options()}},
                                &handles, Into(&plain)));
    for (int i = 0; i < 60; ++i) RequireOk(plain->Put({}, absl::StrFormat("b%02d", i), "new"));
    for (auto* handle : handles) RequireOk(plain->DestroyColumnFamilyHandle(handle));
    plain.reset();
  }
  db.Open();
  RequireOk(db->WaitUntilReady("ix"));
  BOOST_TEST(db.Info("ix").builds == 1u);
  CheckAgainstDatabase(db.get(), "ix", db.family(0));
  BOOST_TEST(RowsOf(db.get(), "ix", "lost").empty());
}

// R4.
BOOST_AUTO_TEST_CASE(a_column_family_that_was_made_again_is_refused) {
  DatabaseHistory h;
  h.UseUsers();
  h.Put("a", 0, 50, "old");
  h.Build();
  h.CheckCurrent();
  h.MakeUsersAnew();
  h.CheckRefused("dropped and made again");
  h.Put("b", 0, 5, "new");
  h.CheckRefused("dropped and made again");
  h.Reopen();
  h.CheckRefused("dropped and made again");
}

// R10.
BOOST_AUTO_TEST_CASE(a_live_index_is_built_anew_after_its_column_family_was_made_again) {
  IndexedDatabase db;
  for (int i = 0; i < 50; ++i) db.Put(absl::StrFormat("a%02d", i), "old", 1);
  db.Create("ix = value:text, cf=a", 1);
  db.Close();
  db.rocksdb_options().WAL_size_limit_MB = 100;  // so that the log still exists and agrees
  {
    std::vector<rocksdb::ColumnFamilyHandle*> handles;
    std::unique_ptr<rocksdb::DB> plain;
    RequireOk(rocksdb::DB::Open(db.rocksdb_options(), db.path(),
                                {{"default", db.rocksdb_options()}, {"a", db.rocksdb_options()}},
                                &handles, Into(&plain)));
    RequireOk(plain->DropColumnFamily(handles[1]));
    RequireOk(plain->DestroyColumnFamilyHandle(handles[1]));
    RequireOk(plain->CreateColumnFamily(db.rocksdb_options(), "a", &handles[1]));
    RequireOk(plain->Put({}, handles[1], "b", "new"));
    for (auto* handle : handles) RequireOk(plain->DestroyColumnFamilyHandle(handle));
    plain.reset();
  }
  db.Open();
  RequireOk(db->WaitUntilReady("ix"));
  BOOST_TEST(db.Info("ix").builds == 1u);
  BOOST_TEST(RowsOf(db.get(), "ix", "new") == "b");
  BOOST_TEST(RowsOf(db.get(), "ix", "old").empty());
}

// R5, and with a sequence number.
BOOST_AUTO_TEST_CASE(ingested_files_of_either_kind_are_refused) {
  for (const bool overlaps : {false, true}) {
    DatabaseHistory h;
    h.Put("a", 0, 50, "old");
    h.Build();
    rocksdb::SstFileWriter writer(rocksdb::EnvOptions(), h.options());
    RequireOk(writer.Open(h.Beside("ingested.sst")));
    for (int i = 0; i < 100; ++i) {
      RequireOk(writer.Put(absl::StrFormat(overlaps ? "a%03d" : "z%03d", i), "ingested"));
    }
    RequireOk(writer.Finish());
    RequireOk(h.db()->IngestExternalFile({h.Beside("ingested.sst")}, {}));
    h.Put("b", 0, 1, "more");
    h.CheckRefused("ingested");
    h.Reopen();
    h.CheckRefused("ingested");
    h.Build();  // which includes them
    h.Put("b", 1, 2, "more");
    h.CheckCurrent();
  }
}

// R6.
BOOST_AUTO_TEST_CASE(a_layer_that_changes_values_is_refused) {
  TemporaryDirectory directory;
  rocksdb::Options options;
  options.create_if_missing = true;
  rocksdb::DBWithTTL* opened = nullptr;
  RequireOk(rocksdb::DBWithTTL::Open(options, directory / "db", &opened, 1'000'000));
  const std::unique_ptr<rocksdb::DBWithTTL> db(opened);
  RequireOk(db->Put({}, "a", "old"));
  const auto source = [&](rocksdb::DB* of) {
    auto made = SnapshotSource::FromDb(of);
    RequireOk(made.status());
    return *std::move(made);
  };
  auto index = SecondaryIndex::Build(*source(db.get()), SpecOf("value:text"), directory / "index");
  RequireOk(index.status());
  BOOST_TEST(RowsOf(**index, "old") == "a");
  RequireOk(db->Put({}, "b", "new"));
  const absl::Status through = (*index)->CatchUp(*source(db.get())).status();
  BOOST_TEST(absl::IsFailedPrecondition(through), through);
  BOOST_TEST(absl::StrContains(through.message(), "DBWithTTL"), through);
  // Nor by the database below, whose values differ.
  const absl::Status below = (*index)->CatchUp(*source(db->GetRootDB())).status();
  BOOST_TEST(absl::IsFailedPrecondition(below), below);
}

// R9.
BOOST_AUTO_TEST_CASE(rows_written_past_the_log_are_flushed_by_a_build_or_refused) {
  for (const bool keeps_logs : {true, false}) {
    for (const bool last : {true, false}) {
      DatabaseHistory h(keeps_logs);
      h.Put("a", 0, 50, "old");
      rocksdb::WriteOptions nolog;
      nolog.disableWAL = true;
      h.Put("a", 50, 100, "past", nolog);
      if (!last) h.Put("b", 0, 1, "logged");
      h.Build();
      h.CopyTo("killed");
      h.Restore("killed");
      h.Put("c", 0, 60, "new");
      const absl::Status caught_up = h.CatchUp();
      if (caught_up.ok()) {
        h.CheckCurrent();
      } else {
        BOOST_TEST(absl::IsFailedPrecondition(caught_up), caught_up);
      }
    }
  }
}

// An archived log, whose last write had many rows, shows the records before the live log.
BOOST_AUTO_TEST_CASE(where_logs_are_kept_an_index_follows_though_all_files_were_compacted) {
  DatabaseHistory h;
  rocksdb::WriteBatch batch;
  for (const char* key : {"a", "b", "c"}) RequireOk(batch.Put(key, "old"));
  RequireOk(h.db()->Write({}, &batch));
  h.Reopen();
  RequireOk(h.db()->Write({}, &batch));
  RequireOk(h.db()->CompactRange({}, nullptr, nullptr));
  h.Put("e", 0, 5, "old");
  h.Build();
  RequireOk(h.db()->CompactRange({}, nullptr, nullptr));
  h.Reopen();
  h.Put("f", 0, 5, "new");
  h.CheckCurrent();
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
