// The states of an IndexedDB's indexes after interruptions: closing, changes past the log, other
// writers, transient errors.
#include <algorithm>
#include <atomic>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "cairn/options.h"
#include "cairn/secondary_index.h"
#include "cairn/snapshot_source.h"
#include "cairn/types.h"
#include "engine/util/rocksdb_compat.h"
#include "rocksdb/env.h"
#include "rocksdb/sst_file_writer.h"
#include "rocksdb/write_batch.h"
#include "test/engine/faulty_file_system.h"
#include "test/engine/indexed_database.h"
#include "test/sanitizer.h"

namespace cairn {
BOOST_AUTO_TEST_SUITE(indexed_db_lifecycle_test)
namespace {

constexpr char kAll[] = "all = value:text";
constexpr OnStale kPolicies[] = {OnStale::kRebuild, OnStale::kKeepStale};

IndexedDBOptions WithPolicy(OnStale on_stale) {
  IndexedDBOptions options;
  options.on_stale = on_stale;
  options.open.threads = 1;
  return options;
}

void Ingest(IndexedDatabase* db, const std::string& key, const std::string& value,
            size_t family = 0) {
  const std::string file = db->Beside("ingested.sst");
  rocksdb::SstFileWriter writer(rocksdb::EnvOptions(), db->rocksdb_options());
  RequireOk(writer.Open(file));
  RequireOk(writer.Put(key, value));
  RequireOk(writer.Finish());
  RequireOk((*db)->IngestExternalFile(db->family(family), {file}, {}));
  std::filesystem::remove(file);
}

enum class Disturbance { kUnlogged, kIngestedElsewhere, kIngestedHere };

void WaitUntilBuildHasBegun(IndexedDatabase* db, const std::string& name) {
  while (db->Info(name).progress == 0 && db->Info(name).builds == 0) {
    absl::SleepFor(absl::Microseconds(100));
  }
}

BOOST_AUTO_TEST_CASE(a_build_that_is_disturbed_is_made_again) {
  for (const OnStale policy : kPolicies) {
    for (const Disturbance disturbance :
         {Disturbance::kUnlogged, Disturbance::kIngestedElsewhere, Disturbance::kIngestedHere}) {
      IndexedDatabase db(WithPolicy(policy));
      Fill(db.get(), FewerSanitized(100000, 4, 10), "v");
      RequireOk(db->CreateIndex(SpecOf(kAll)));
      WaitUntilBuildHasBegun(&db, "all");
      rocksdb::WriteOptions unlogged;
      unlogged.disableWAL = true;
      if (disturbance == Disturbance::kUnlogged) {
        RequireOk(db->Put(unlogged, db.family(1), "x", "y"));
      } else if (disturbance == Disturbance::kIngestedElsewhere) {
        Ingest(&db, "zz", "y", 1);
      } else {
        Ingest(&db, "a0000001x", "between", 0);
      }
      db.Put("b", "c");
      RequireOk(db->WaitUntilReady("all", absl::Seconds(60)));
      CheckAgainstDatabase(db.get(), "all", db.family(0));
      BOOST_TEST(RowsOf(db.get(), "all", "c") == "b");
    }
  }
}

BOOST_AUTO_TEST_CASE(an_index_whose_build_was_closed_is_built_at_the_next_open) {
  for (const OnStale policy : kPolicies) {
    IndexedDatabase db(WithPolicy(policy));
    Fill(db.get(), FewerSanitized(200000, 2, 10), "v");
    RequireOk(db->CreateIndex(SpecOf(kAll)));
    RequireOk(db->CreateIndex(SpecOf("of_a = key:bytes, cf=a"), db.family(1)));
    RequireOk(db->CreateIndex(SpecOf("dropped = value:text")));
    RequireOk(db->DropIndex("dropped"));
    BOOST_TEST(db.Info("of_a").builds == 0u);  // it waits for the other one
    db.Reopen();
    BOOST_TEST(db->ListIndexes().size() == 2u);
    for (const char* name : {"all", "of_a"}) RequireOk(db->WaitUntilReady(name));
    BOOST_TEST(db.Info("of_a").builds == 1u);
    CheckAgainstDatabase(db.get(), "all", db.family(0));
    db.Reopen();
    BOOST_TEST(db.Info("all").builds == 0u);
    // Also if it is built again.
    RequireOk(db->RebuildIndex("all"));
    db.Reopen();
    RequireOk(db->WaitUntilReady("all"));
    CheckAgainstDatabase(db.get(), "all", db.family(0));
  }
}

BOOST_AUTO_TEST_CASE(a_directory_that_is_no_index_is_neither_built_in_nor_removed) {
  IndexedDatabase db;
  db.Put("a", "red");
  const std::string directory = db.path() + ".indexes/all";
  std::filesystem::create_directory(directory);
  WriteFile(directory + "/letter.txt", "dear");
  RequireOk(db->CreateIndex(SpecOf(kAll)));
  const absl::Status built = db->WaitUntilReady("all");
  BOOST_TEST(absl::IsFailedPrecondition(built), built);
  BOOST_TEST(absl::StrContains(std::string(built.message()), "letter.txt"), built);
  db.Reopen();
  BOOST_TEST(absl::IsFailedPrecondition(db->WaitUntilReady("all")));
  RequireOk(db->DropIndex("all"));
  BOOST_TEST(db->ListIndexes().empty());
  BOOST_TEST(ReadFile(directory + "/letter.txt") == "dear");
  std::filesystem::remove_all(directory);
  db.Create(kAll);
  BOOST_TEST(RowsOf(db.get(), "all", "red") == "a");
}

BOOST_AUTO_TEST_CASE(who_else_would_write_to_an_index_is_refused) {
  IndexedDatabase db;
  Fill(db.get(), 1000, "v");
  db.Create(kAll);
  Fill(db.get(), 1000, "w");
  const std::string directory = db.Info("all").directory;
  OpenOptions open;
  open.calibration = Calibration::kNone;
  auto other = SecondaryIndex::Open(directory, open);  // readers may open it
  RequireOk(other.status());
  const auto is_refused = [&](const absl::Status& status) {
    BOOST_TEST(absl::IsUnavailable(status), status);
    BOOST_TEST(absl::StrContains(std::string(status.message()), directory), status);
  };
  {
    const auto source = SnapshotSource::FromDb(db->GetBaseDB());
    RequireOk(source.status());
    is_refused((*other)->CatchUp(**source).status());
    is_refused(SecondaryIndex::Build(**source, SpecOf(kAll), directory).status());
  }
  is_refused((*other)->Compact());
  // And it has no other effect.
  for (int i = 0; i < 3; ++i) {
    db.Put("k", absl::StrCat("x", i));
    RequireOk(db->FlushIndexes());
    RequireOk(db->CompactIndex("all"));
    RequireOk(db.Info("all").flush_status);
    RequireOk(db->RebuildIndex("all"));
    RequireOk(db->WaitUntilReady("all"));
  }
  const auto live = db->Index("all");
  db.Close();
  db.rocksdb_options().WAL_size_limit_MB = 100;
  std::unique_ptr<rocksdb::DB> plain;
  std::vector<rocksdb::ColumnFamilyHandle*> handles;
  RequireOk(rocksdb::DB::Open(db.rocksdb_options(), db.path(),
                              {{"default", db.rocksdb_options()}, {"a", db.rocksdb_options()}},
                              &handles, Into(&plain)));
  {
    other = SecondaryIndex::Open(directory, open);
    RequireOk(other.status());
    const auto source = SnapshotSource::FromDb(plain.get());
    RequireOk(source.status());
    RequireOk((*other)->CatchUp(**source).status());  // although the live index is open
  }
  for (auto* handle : handles) RequireOk(plain->DestroyColumnFamilyHandle(handle));
  plain.reset();
}

BOOST_AUTO_TEST_CASE(an_io_error_that_passes_heals_by_itself) {
  for (const OnStale policy : kPolicies) {
    const auto faulty = std::make_shared<FaultyFileSystem>();
    const std::unique_ptr<rocksdb::Env> env = rocksdb::NewCompositeEnv(faulty);
    IndexedDBOptions options = WithPolicy(policy);
    options.follow_interval = absl::ZeroDuration();
    IndexedDatabase db(options);
    db.Close();
    db.rocksdb_options().env = env.get();
    db.Open();
    db.Create(kAll);
    db.Create("of_a = value:text, cf=a", 1);
    for (int round = 0; round < 3; ++round) {
      db.Put(absl::StrCat("k", round), "red");
      faulty->Break(FaultyFileSystem::Fault::kReadError, 1,
                    FaultyFileSystem::Lasting::kUntilRepaired);
      const auto broken = db->Pin("all");
      // It is stale, unless it is catching up again, and will be stale again.
      BOOST_TEST(
          (absl::IsFailedPrecondition(broken.status()) || absl::IsUnavailable(broken.status())),
          broken.status());
      const IndexState state = db.Info("of_a").state;
      BOOST_TEST((state == IndexState::kStale || state == IndexState::kCatchingUp));
      absl::SleepFor(absl::Milliseconds(20));
      faulty->Repair();
      RequireOk(db->WaitUntilReady("all", absl::Seconds(30)));
      RequireOk(db->WaitUntilReady("of_a", absl::Seconds(30)));
      CheckAgainstDatabase(db.get(), "all", db.family(0));
    }
    BOOST_TEST(db.Info("all").builds == 1u);
    db.Close();
  }
}

BOOST_AUTO_TEST_CASE(a_change_past_the_log_is_known_also_where_the_index_could_not_be_opened) {
  IndexedDatabase db(WithPolicy(OnStale::kKeepStale));
  db.Put("m", "red");
  db.Put("m", "red", 1);
  db.Create(kAll);
  db.Create("of_a = value:text, cf=a", 1);
  const std::string manifest = db.Info("all").directory + "/MANIFEST";
  db.Close();
  const std::string good = ReadFile(manifest);
  WriteFile(manifest, "damaged");
  {  // attached without a handle of "a", and with an index that cannot be read
    std::unique_ptr<rocksdb::DB> plain;
    std::vector<rocksdb::ColumnFamilyHandle*> handles;
    RequireOk(rocksdb::DB::Open(db.rocksdb_options(), db.path(),
                                {{"default", db.rocksdb_options()}, {"a", db.rocksdb_options()}},
                                &handles, Into(&plain)));
    const std::shared_ptr<rocksdb::DB> base(std::move(plain));
    {
      const auto attached = IndexedDB::Attach(base, {}, db.options());
      RequireOk(attached.status());
      for (const IndexInfo& info : (*attached)->ListIndexes()) {
        BOOST_TEST((info.state == IndexState::kFailed));
      }
      for (rocksdb::ColumnFamilyHandle* handle : handles) {
        const std::string file = db.Beside("ingested.sst");
        rocksdb::SstFileWriter writer(rocksdb::EnvOptions(), db.rocksdb_options());
        RequireOk(writer.Open(file));
        RequireOk(writer.Put("z", "red"));
        RequireOk(writer.Finish());
        RequireOk((*attached)->IngestExternalFile(handle, {file}, {}));
      }
    }
    for (auto* handle : handles) RequireOk(base->DestroyColumnFamilyHandle(handle));
  }
  for (const char* name : {"all", "of_a"}) {
    BOOST_TEST(std::filesystem::exists(db.path() + ".indexes/" + name + "~"), name);
  }
  WriteFile(manifest, good);
  db.Open();
  for (const char* name : {"all", "of_a"}) {
    const auto pinned = db->Pin(name);
    BOOST_TEST(absl::IsFailedPrecondition(pinned.status()), pinned.status());
    BOOST_TEST(absl::StrContains(std::string(pinned.status().message()), "ingested"));
    const auto as_it_is = db->PinStale(name);
    RequireOk(as_it_is.status());
    BOOST_TEST(RowsOf(**as_it_is, "red") == "m");
    RequireOk(db->RebuildIndex(name));
    RequireOk(db->WaitUntilReady(name));
    BOOST_TEST(RowsOf(db.get(), name, "red") == "m z");
    BOOST_TEST(!std::filesystem::exists(db.path() + ".indexes/" + name + "~"), name);
  }
}

BOOST_AUTO_TEST_CASE(indexes_that_are_created_beside_ingestions_have_what_was_ingested) {
  IndexedDatabase db(WithPolicy(OnStale::kKeepStale));
  Fill(db.get(), 2000, "v");
  std::atomic<bool> end{false};
  std::thread ingesting([&] {
    for (int i = 0; !end; ++i) {
      for (const char* key : {"a0000100x", "b"}) {
        const std::string file = db.Beside(absl::StrCat("ingested", i, key));
        rocksdb::SstFileWriter writer(rocksdb::EnvOptions(), db.rocksdb_options());
        if (!writer.Open(file).ok() || !writer.Put(key, absl::StrCat("i", i)).ok() ||
            !writer.Finish().ok() || !db->IngestExternalFile(db.family(0), {file}, {}).ok()) {
          BOOST_ERROR("an ingestion failed");
        }
      }
      absl::SleepFor(absl::Milliseconds(i % 10));
    }
  });
  const absl::Time until = absl::Now() + absl::Seconds(3);
  int created = 0;
  for (; absl::Now() < until; ++created) {
    const std::string name = absl::StrCat("i", created);
    RequireOk(db->CreateIndex(SpecOf(name + " = value:text")));
    absl::SleepFor(absl::Microseconds(created * 137 % 5000));
    if (created % 3 == 0) RequireOk(db->DropIndex(name));
    if (created >= 4) db->DropIndex(absl::StrCat("i", created - 4)).IgnoreError();
  }
  end = true;
  ingesting.join();
  BOOST_TEST(created > 3);
  for (const IndexInfo& info : db->ListIndexes()) {
    const absl::Status ready = db->WaitUntilReady(info.spec.name, absl::Seconds(60));
    if (ready.ok()) {
      CheckAgainstDatabase(db.get(), info.spec.name, db.family(0));
    } else {  // which was ready before the last ingestion
      BOOST_TEST(absl::StrContains(std::string(ready.message()), "ingested"), ready);
    }
  }
}

BOOST_AUTO_TEST_CASE(writers_wait_for_indexes_that_are_far_behind) {
  constexpr size_t kBatches = FewerSanitized(300, 3, 5);
  IndexedDBOptions options;
  options.max_backlog = absl::Milliseconds(20);
  options.compact_interval = absl::ZeroDuration();
  for (const absl::Duration follow_interval : {absl::Milliseconds(10), absl::ZeroDuration()}) {
    options.follow_interval = follow_interval;
    IndexedDatabase db(options);
    for (const char* spec : {"a = value:text", "b = key:bytes", "c = value[0:2]:bytes"}) {
      db.Create(spec);
    }
    SequenceNumber most = 0;
    for (size_t i = 0; i < kBatches; ++i) {
      rocksdb::WriteBatch batch;
      for (int k = 0; k < 1000; ++k) {
        RequireOk(
            batch.Put(absl::StrCat("k", i * 7919 % kBatches, "_", k), absl::StrCat("v", k, i)));
      }
      RequireOk(db->Write({}, &batch));
      most = std::max(most, db.Info("a").sequence_lag);
    }
    BOOST_TEST(most <
               // otherwise nothing is followed in the meantime if the interval is 0
               kBatches * 500);
    CheckAgainstDatabase(db.get(), "a", db.family(0));
    CheckAgainstDatabase(db.get(), "c", db.family(0));
  }
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
