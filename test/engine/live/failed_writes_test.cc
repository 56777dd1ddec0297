// Writes that fail, and options with which the log does not show the rows of a database. An index
// never has entries that the database lacks.
#include <atomic>
#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/time/clock.h"
#include "cairn/indexed_db.h"
#include "engine/util/rocksdb_compat.h"
#include "rocksdb/env.h"
#include "rocksdb/file_system.h"
#include "rocksdb/sst_file_writer.h"
#include "rocksdb/utilities/transaction_db.h"
#include "rocksdb/wal_filter.h"
#include "rocksdb/write_batch.h"
#include "test/engine/indexed_database.h"
#include "test/engine/live/indexed_db_checks.h"
#include "test/require_ok.h"

namespace cairn {
BOOST_AUTO_TEST_SUITE(failed_writes_test)
namespace {

constexpr char kCity[] = "city = value:text";

// The local file system; syncs of the log, and operations that change the indexes, can be made to
// fail.
class FullDisk final : public rocksdb::FileSystemWrapper {
 public:
  FullDisk() : FileSystemWrapper(rocksdb::FileSystem::Default()) {}
  const char* Name() const override { return "FullDisk"; }

  rocksdb::IOStatus NewWritableFile(const std::string& path, const rocksdb::FileOptions& options,
                                    std::unique_ptr<rocksdb::FSWritableFile>* file,
                                    rocksdb::IODebugContext* d) override {
    if (IsMark(path) && marks_fail) return NoSpace();
    rocksdb::IOStatus s = target()->NewWritableFile(path, options, file, d);
    if (s.ok() && absl::EndsWith(path, ".log")) {
      *file = std::make_unique<Log>(this, std::move(*file));
    }
    return s;
  }
  rocksdb::IOStatus NewRandomRWFile(const std::string& path, const rocksdb::FileOptions& options,
                                    std::unique_ptr<rocksdb::FSRandomRWFile>* file,
                                    rocksdb::IODebugContext* d) override {
    if (IsMark(path) && marks_fail) return NoSpace();
    return target()->NewRandomRWFile(path, options, file, d);
  }

  std::atomic<bool> syncs_fail{false};
  std::atomic<bool> marks_fail{false};

 private:
  class Log final : public rocksdb::FSWritableFileOwnerWrapper {
   public:
    Log(FullDisk* disk, std::unique_ptr<rocksdb::FSWritableFile> file)
        : FSWritableFileOwnerWrapper(std::move(file)), disk_(disk) {}
    rocksdb::IOStatus Sync(const rocksdb::IOOptions& options, rocksdb::IODebugContext* d) override {
      return disk_->syncs_fail ? NoSpace() : FSWritableFileOwnerWrapper::Sync(options, d);
    }
    rocksdb::IOStatus Fsync(const rocksdb::IOOptions& options,
                            rocksdb::IODebugContext* d) override {
      return disk_->syncs_fail ? NoSpace() : FSWritableFileOwnerWrapper::Fsync(options, d);
    }

   private:
    FullDisk* const disk_;
  };

  static bool IsMark(const std::string& path) {
    const bool is_new =
        absl::EndsWith(path, ".tmp") && path.compare(path.rfind('/') + 1, 1, ".") == 0;
    return absl::EndsWith(path, "~") || is_new;
  }
  static rocksdb::IOStatus NoSpace() {
    rocksdb::IOStatus s = rocksdb::IOStatus::NoSpace("made to be full");
    s.SetRetryable(true);
    return s;
  }
};

struct OnFullDisk {
  std::shared_ptr<FullDisk> disk = std::make_shared<FullDisk>();
  std::unique_ptr<rocksdb::Env> env = rocksdb::NewCompositeEnv(disk);
  IndexedDatabase db;

  explicit OnFullDisk(const std::function<void(rocksdb::Options*)>& set,
                      OnStale on_stale = OnStale::kRebuild) {
    db.Close();
    db.rocksdb_options().env = env.get();
    db.rocksdb_options().bgerror_resume_retry_interval = 20000;
    set(&db.rocksdb_options());
    db.options().on_stale = on_stale;
    db.Open();
    db.Create(kCity);
    RequireOk(db->Put(Synced(), "a", "Lisbon"));
    BOOST_TEST(RowsOf(db.get(), "city", "Lisbon") == "a");
    RequireOk(db->FlushIndexes());
  }
  ~OnFullDisk() { db.Close(); }

  static rocksdb::WriteOptions Synced() {
    rocksdb::WriteOptions options;
    options.sync = true;
    return options;
  }
  void FailToWrite(const std::string& key, const std::string& value) {
    disk->syncs_fail = true;
    BOOST_TEST(db->Put(Synced(), key, value).IsIOError());
    disk->syncs_fail = false;
  }
  // Writes as soon as the database accepts writes again.
  void Write(const std::string& key, const std::string& value) {
    const absl::Time end = absl::Now() + absl::Seconds(20);
    rocksdb::Status s = db->Put(Synced(), key, value);
    while (!s.ok() && absl::Now() < end) {
      absl::SleepFor(absl::Milliseconds(5));
      s = db->Put(Synced(), key, value);
    }
    RequireOk(s);
  }
};

void CheckFailedWrite(const std::function<void(rocksdb::Options*)>& set) {
  OnFullDisk full(set);
  full.FailToWrite("x", "Ghost");
  full.Write("y", "Paris");
  full.db->Pin("city").status().IgnoreError();  // makes the index notice it, if it has not yet
  RequireOk(full.db->WaitUntilReady("city", absl::Seconds(20)));
  // With two queues RocksDB has the row, although it reports that the write failed.
  std::string value;
  const bool has_row = full.db->Get({}, "x", &value).ok();
  BOOST_TEST(RowsOf(full.db.get(), "city", "Ghost") == (has_row ? "x" : ""));
  BOOST_TEST(RowsOf(full.db.get(), "city", "Paris") == "y");
  full.Write("z", "Rome");
  BOOST_TEST(RowsOf(full.db.get(), "city", "Rome") == "z");
  CheckAgainstDatabase(full.db.get(), "city", full.db.family(0));
  full.db.Reopen();
  RequireOk(full.db->WaitUntilReady("city", absl::Seconds(20)));
  BOOST_TEST(full.db.Info("city").builds == 0u);
  CheckAgainstDatabase(full.db.get(), "city", full.db.family(0));
}

BOOST_AUTO_TEST_CASE(a_write_that_fails_by_the_default_path) {
  CheckFailedWrite([](rocksdb::Options*) {});
}

BOOST_AUTO_TEST_CASE(a_write_that_fails_in_the_pipeline) {
  CheckFailedWrite([](rocksdb::Options* options) { options->enable_pipelined_write = true; });
}

BOOST_AUTO_TEST_CASE(a_write_that_fails_with_two_queues) {
  CheckFailedWrite([](rocksdb::Options* options) { options->two_write_queues = true; });
}

// An attached database has no listener. An I/O error of a write is an error of the log: nothing is
// applied, and the sequence numbers are assigned again.
BOOST_AUTO_TEST_CASE(a_write_of_an_attached_database_that_fails) {
  OnFullDisk full([](rocksdb::Options*) {});
  full.db.Close();
  const rocksdb::Options options = full.db.rocksdb_options();
  std::unique_ptr<rocksdb::DB> opened;
  std::vector<rocksdb::ColumnFamilyHandle*> families;
  RequireOk(rocksdb::DB::Open(options, full.db.path(), {{"default", options}, {"a", options}},
                              &families, Into(&opened)));
  const std::shared_ptr<rocksdb::DB> shared = std::move(opened);
  {
    auto db = RequireOk(IndexedDB::Attach(shared, families, full.db.options()));
    RequireOk(db->WaitUntilReady("city", absl::Seconds(20)));
    // With empty memtables, RocksDB continues in the same log file after an error.
    RequireOk(db->Put({}, "b", "Rome"));
    full.disk->syncs_fail = true;
    rocksdb::WriteBatch batch;
    RequireOk(batch.Put("x", "Ghost"));
    RequireOk(batch.Merge("y", "Ghost"));
    BOOST_TEST(db->Write(OnFullDisk::Synced(), &batch).IsIOError());
    full.disk->syncs_fail = false;
    const absl::Time end = absl::Now() + absl::Seconds(20);
    rocksdb::Status s = db->Put({}, "z", "Paris");
    while (!s.ok() && absl::Now() < end) {
      absl::SleepFor(absl::Milliseconds(5));
      s = db->Put({}, "z", "Paris");
    }
    RequireOk(s);
    // If the log does not continue the index, it is rebuilt.
    RequireOk(db->WaitUntilReady("city", absl::Seconds(20)));
    BOOST_TEST(RowsOf(db.get(), "city", "Ghost").empty());
    BOOST_TEST(RowsOf(db.get(), "city", "Paris") == "z");
    CheckAgainstDatabase(db.get(), "city", families[0]);
    RequireOk(db->Close());
  }
  for (auto* family : families) RequireOk(shared->DestroyColumnFamilyHandle(family));
}

// The index 'city' does not answer after the process is killed now and the database is opened.
void CheckRefusesIfKilledNow(OnFullDisk* full) {
  const std::string copy = full->db.Beside("copy");
  for (const char* what : {"", ".indexes"}) {
    std::filesystem::copy(full->db.path() + what, copy + what,
                          std::filesystem::copy_options::recursive);
  }
  rocksdb::Options options = full->db.rocksdb_options();
  options.env = rocksdb::Env::Default();
  std::vector<rocksdb::ColumnFamilyHandle*> families;
  auto killed = RequireOk(IndexedDB::Open(options, copy, {{"default", options}, {"a", options}},
                                          &families, full->db.options()));
  const absl::Status stored = killed->Pin("city").status();
  BOOST_TEST((absl::IsNotFound(stored) || absl::IsFailedPrecondition(stored)), stored);
  for (auto* family : families) RequireOk(killed->DestroyColumnFamilyHandle(family));
}

// The process ends before the index is rebuilt, and operations that need space fail.
BOOST_AUTO_TEST_CASE(a_failed_write_whose_mark_cannot_be_written) {
  OnFullDisk full([](rocksdb::Options* options) { options->enable_pipelined_write = true; },
                  OnStale::kKeepStale);
  full.disk->marks_fail = true;
  full.FailToWrite("x", "Ghost");
  BOOST_TEST(absl::IsFailedPrecondition(full.db->Pin("city").status()));
  full.Write("y", "Paris");
  CheckRefusesIfKilledNow(&full);
  // The mark is written when there is space.
  full.disk->marks_fail = false;
  const std::string mark = full.db.path() + ".indexes/city~";
  const absl::Time end = absl::Now() + absl::Seconds(20);
  while (!std::filesystem::exists(mark) && absl::Now() < end) {
    absl::SleepFor(absl::Milliseconds(20));
  }
  BOOST_TEST(std::filesystem::exists(mark));
  RequireOk(full.db->RebuildIndex("city"));
  RequireOk(full.db->WaitUntilReady("city", absl::Seconds(20)));
  CheckAgainstDatabase(full.db.get(), "city", full.db.family(0));
}

// A change makes every index stale, even if the marks cannot be written.
BOOST_AUTO_TEST_CASE(an_ingestion_past_the_object_whose_mark_cannot_be_written) {
  for (const OnStale on_stale : {OnStale::kKeepStale, OnStale::kRebuild}) {
    OnFullDisk full([](rocksdb::Options*) {}, on_stale);
    full.db.Create("also = value:text");  // is marked before the other one
    const std::string file = full.db.Beside("x.sst");
    rocksdb::SstFileWriter writer{rocksdb::EnvOptions(), rocksdb::Options()};
    RequireOk(writer.Open(file));
    RequireOk(writer.Put("x", "Oslo"));
    RequireOk(writer.Finish());
    full.disk->marks_fail = true;
    RequireOk(full.db->GetRootDB()->IngestExternalFile({file}, {}));
    // Removes all traces of the file.
    rocksdb::CompactRangeOptions compaction;
    compaction.bottommost_level_compaction = rocksdb::BottommostLevelCompaction::kForce;
    RequireOk(full.db->CompactRange(compaction, nullptr, nullptr));
    for (const char* name : {"also", "city"}) {
      if (on_stale == OnStale::kRebuild) {
        RequireOk(full.db->WaitUntilReady(name, absl::Seconds(20)));
        BOOST_TEST(RowsOf(full.db.get(), name, "Oslo") == "x");
        continue;
      }
      CheckFails(full.db->Pin(name).status(), absl::StatusCode::kFailedPrecondition, "ingested");
    }
    if (on_stale == OnStale::kKeepStale) CheckRefusesIfKilledNow(&full);
    full.disk->marks_fail = false;
    if (on_stale == OnStale::kKeepStale) {
      const absl::Time end = absl::Now() + absl::Seconds(20);
      const std::string mark = full.db.path() + ".indexes/city~";
      const auto is_written = [&] {
        std::error_code error;
        const auto size = std::filesystem::file_size(mark, error);
        return !error && size > 0;
      };
      while (!is_written() && absl::Now() < end) absl::SleepFor(absl::Milliseconds(20));
      BOOST_TEST(is_written());
    }
    full.db.options().on_stale = OnStale::kRebuild;
    full.db.Reopen();
    for (const char* name : {"also", "city"}) {
      RequireOk(full.db->WaitUntilReady(name, absl::Seconds(20)));
      BOOST_TEST(RowsOf(full.db.get(), name, "Oslo") == "x");
      CheckAgainstDatabase(full.db.get(), name, full.db.family(0));
    }
  }
}

// RocksDB logs a batch, applies a part of it, and publishes the sequence numbers of the whole
// batch.
void CheckBatchAppliedInPart(IndexedDatabase* like, IndexedDB* db, rocksdb::DB* writes_to,
                             rocksdb::ColumnFamilyHandle* family, bool inverted_range) {
  RequireOk(db->Put({}, family, "a", "Lisbon"));
  BOOST_TEST(RowsOf(db, "city", "Lisbon") == "a");
  rocksdb::ColumnFamilyHandle* dropped = nullptr;
  RequireOk(db->CreateColumnFamily(like->rocksdb_options(), "dropped", &dropped));
  RequireOk(db->DropColumnFamily(dropped));
  rocksdb::WriteBatch batch;
  RequireOk(batch.Put(family, "x", "Before"));
  RequireOk(inverted_range ? batch.DeleteRange(family, "z", "p") : batch.Put(dropped, "k", "v"));
  RequireOk(batch.Put(family, "y", "Ghost"));
  RequireOk(batch.Put(family, "a", "Ghost"));
  const rocksdb::Status failed = writes_to->Write({}, &batch);
  BOOST_TEST(failed.IsInvalidArgument(), failed.ToString());
  const absl::Status pinned = db->Pin("city").status();
  if (pinned.ok()) {  // RocksDB has logged nothing
    CheckAgainstDatabase(db, "city", family);
  } else {
    BOOST_TEST(absl::IsFailedPrecondition(pinned), pinned);
    BOOST_TEST(IndexStateName(db->ListIndexes()[0].state) != "ready");
    BOOST_TEST(!db->ListIndexes()[0].status.ok());
  }
  RequireOk(db->DestroyColumnFamilyHandle(dropped));
}

BOOST_AUTO_TEST_CASE(a_batch_that_is_applied_in_part) {
  for (const bool inverted_range : {false, true}) {
    BOOST_TEST_CONTEXT((inverted_range ? "an inverted range" : "a dropped family")) {
      IndexedDBOptions options;
      options.on_stale = OnStale::kKeepStale;
      IndexedDatabase db(options);
      db.Create(kCity);
      CheckBatchAppliedInPart(&db, db.get(), db.get(), db.family(0), inverted_range);
      db.options().on_stale = OnStale::kRebuild;
      db.Reopen();
      RequireOk(db->WaitUntilReady("city", absl::Seconds(20)));
      CheckAgainstDatabase(db.get(), "city", db.family(0));
    }
  }
}

BOOST_AUTO_TEST_CASE(a_batch_that_is_applied_in_part_by_an_attached_database) {
  struct Case {
    bool inverted_range, past_the_object;
  };
  // A dropped family's handle in a batch that is written past the object is not detected.
  for (const Case c : {Case{false, false}, Case{true, false}, Case{true, true}}) {
    BOOST_TEST_CONTEXT(c.inverted_range << c.past_the_object) {
      IndexedDBOptions keep;
      keep.on_stale = OnStale::kKeepStale;
      IndexedDatabase db(keep);
      db.Create(kCity);
      db.Close();
      const rocksdb::Options options = db.rocksdb_options();
      std::unique_ptr<rocksdb::DB> opened;
      std::vector<rocksdb::ColumnFamilyHandle*> families;
      RequireOk(rocksdb::DB::Open(options, db.path(), {{"default", options}, {"a", options}},
                                  &families, Into(&opened)));
      const std::shared_ptr<rocksdb::DB> shared = std::move(opened);
      {
        auto attached = RequireOk(IndexedDB::Attach(shared, families, db.options()));
        RequireOk(attached->WaitUntilReady("city", absl::Seconds(20)));
        CheckBatchAppliedInPart(&db, attached.get(),
                                c.past_the_object ? shared.get() : attached.get(), families[0],
                                c.inverted_range);
      }
      for (auto* family : families) RequireOk(shared->DestroyColumnFamilyHandle(family));
    }
  }
}

// Drops the records that contain "Ghost".
class DroppingFilter final : public rocksdb::WalFilter {
 public:
  WalProcessingOption LogRecordFound(unsigned long long /*log_number*/, const std::string& /*name*/,
                                     const rocksdb::WriteBatch& batch,
                                     rocksdb::WriteBatch* /*new_batch*/,
                                     bool* /*changed*/) override {
    return absl::StrContains(batch.Data(), "Ghost") ? WalProcessingOption::kIgnoreCurrentRecord
                                                    : WalProcessingOption::kContinueProcessing;
  }
  const char* Name() const override { return "DroppingFilter"; }
};

BOOST_AUTO_TEST_CASE(options_that_are_refused) {
  DroppingFilter filter;
  struct Case {
    const char* option;
    bool only_attached;
    std::function<void(rocksdb::Options*)> set;
  };
  const Case cases[] = {
      {"paranoid_checks=false", false, [](auto* options) { options->paranoid_checks = false; }},
      {"wal_filter", false, [&](auto* options) { options->wal_filter = &filter; }},
      {"best_efforts_recovery", false,
       [](auto* options) { options->best_efforts_recovery = true; }},
      {"enable_pipelined_write", true,
       [](auto* options) { options->enable_pipelined_write = true; }},
      {"two_write_queues", true, [](auto* options) { options->two_write_queues = true; }},
  };
  for (const Case& c : cases) {
    BOOST_TEST_CONTEXT(c.option) {
      IndexedDatabase db;
      db.Create(kCity);
      db.Put("a", "Lisbon");
      RequireOk(db->FlushIndexes());
      db.Put("x", "Ghost");
      db.Close();
      const rocksdb::Options plain = db.rocksdb_options();
      const auto check = [&](IndexedDB* opened) {
        CheckFails(opened->WaitUntilReady("city"), absl::StatusCode::kFailedPrecondition, c.option);
        CheckFails(opened->Pin("city").status(), absl::StatusCode::kFailedPrecondition, c.option);
        CheckFails(opened->RebuildIndex("city"), absl::StatusCode::kFailedPrecondition, c.option);
        CheckFails(opened->CreateIndex("other = value:text"), absl::StatusCode::kFailedPrecondition,
                   c.option);
        RequireOk(opened->Put({}, "b", "Oslo"));
      };
      if (!c.only_attached) {
        c.set(&db.rocksdb_options());
        db.Open();
        check(db.get());
        db.Close();
      } else {
        rocksdb::Options options = plain;
        c.set(&options);
        std::unique_ptr<rocksdb::DB> opened;
        std::vector<rocksdb::ColumnFamilyHandle*> families;
        RequireOk(rocksdb::DB::Open(options, db.path(), {{"default", options}, {"a", options}},
                                    &families, Into(&opened)));
        const std::shared_ptr<rocksdb::DB> shared = std::move(opened);
        {
          auto attached = RequireOk(IndexedDB::Attach(shared, families, db.options()));
          check(attached.get());
        }
        for (auto* family : families) RequireOk(shared->DestroyColumnFamilyHandle(family));
      }
      // The next opening does not continue from the stored state.
      db.rocksdb_options() = plain;
      db.Open();
      RequireOk(db->WaitUntilReady("city"));
      BOOST_TEST(db.Info("city").builds == 1u);
      CheckAgainstDatabase(db.get(), "city", db.family(0));
    }
  }
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
