// Log files that RocksDB needs for recovery, older than the one that an index has followed to, and
// that are lost or damaged while the database is closed.
#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "cairn/indexed_db.h"
#include "cairn/secondary_index.h"
#include "cairn/snapshot_source.h"
#include "engine/util/rocksdb_compat.h"
#include "rocksdb/utilities/transaction_db.h"
#include "test/engine/faulty_file_system.h"
#include "test/engine/indexed_database.h"
#include "test/engine/logged_database.h"
#include "test/require_ok.h"

namespace cairn {
BOOST_AUTO_TEST_SUITE(indexed_db_lost_logs_test)
namespace {

namespace fs = std::filesystem;

// The paths of a database's log files that are not archived, oldest first.
std::vector<std::string> LogFiles(const std::string& database) {
  std::vector<std::string> logs;
  for (const auto& file : fs::directory_iterator(database)) {
    if (file.path().extension() == ".log") logs.push_back(file.path());
  }
  std::sort(logs.begin(), logs.end());
  return logs;
}

// Writes rows to family 0, and begins a new log file by a flush of family 1.
void BeginLog(rocksdb::DB* db, rocksdb::ColumnFamilyHandle* indexed,
              rocksdb::ColumnFamilyHandle* other, const std::string& prefix) {
  for (int i = 0; i < 20; ++i) {
    RequireOk(db->Put({}, indexed, absl::StrCat(prefix, i), "Lisbon"));
  }
  RequireOk(db->Put({}, other, "x", "x"));
  RequireOk(db->Flush({}, other));
}

void FillTwoOlderLogs(IndexedDatabase* db) {
  BeginLog(db->get(), db->family(0), db->family(1), "a");
  BeginLog(db->get(), db->family(0), db->family(1), "b");
  db->Put("c", "Oslo");
}

// A loss of an older log file. Returns a text that describes it.
struct Loss {
  enum : uint8_t { kNone, kGone, kShorter, kFlipped } kind;
  size_t at;  // in tenths of the file
};

std::string LoseFrom(const std::string& path, const Loss& loss) {
  const auto size = fs::file_size(path);
  const auto at = std::min<size_t>(size * loss.at / 10, size - 1);
  switch (loss.kind) {
    case Loss::kNone:
      return "nothing";
    case Loss::kGone:
      fs::remove(path);
      return "file";
    case Loss::kShorter:
      fs::resize_file(path, at);
      return absl::StrCat("bytes from ", at);
    case Loss::kFlipped: {
      std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
      file.seekg(static_cast<std::streamoff>(at));
      const char byte = static_cast<char>(file.get() ^ 1);
      file.seekp(static_cast<std::streamoff>(at));
      file.put(byte);
      return absl::StrCat("byte ", at);
    }
  }
  return {};
}

const Loss kLosses[] = {
    {Loss::kNone, 0},    {Loss::kGone, 0},     {Loss::kShorter, 0}, {Loss::kShorter, 1},
    {Loss::kShorter, 5}, {Loss::kShorter, 10}, {Loss::kFlipped, 0}, {Loss::kFlipped, 1},
    {Loss::kFlipped, 5}, {Loss::kFlipped, 10},
};

// A database that is a copy of another one, with its indexes.
class CopiedDatabase {
 public:
  explicit CopiedDatabase(const std::string& from) {
    fs::copy(from, path(), fs::copy_options::recursive);
    fs::copy(from + ".indexes", path() + ".indexes", fs::copy_options::recursive);
    rocksdb_options.merge_operator = std::make_shared<AppendOperator>();
    options.open.calibration = Calibration::kNone;
    options.build.threads = 1;
  }
  ~CopiedDatabase() { Close(); }

  std::string path() const { return directory_ / "db"; }
  absl::Status Open() {
    absl::StatusOr<std::unique_ptr<IndexedDB>> opened =
        IndexedDB::Open(rocksdb_options, path(),
                        {{"default", rocksdb_options}, {"a", rocksdb_options}}, &families, options);
    if (opened.ok()) db = *std::move(opened);
    return opened.status();
  }
  void Close() {
    if (db == nullptr) return;
    for (rocksdb::ColumnFamilyHandle* family : families) {
      RequireOk(db->DestroyColumnFamilyHandle(family));
    }
    families.clear();
    db.reset();
  }
  // Opens and closes the database without its indexes.
  void OpenWithout() {
    std::vector<rocksdb::ColumnFamilyHandle*> handles;
    std::unique_ptr<rocksdb::DB> plain;
    RequireOk(rocksdb::DB::Open(rocksdb_options, path(),
                                {{"default", rocksdb_options}, {"a", rocksdb_options}}, &handles,
                                Into(&plain)));
    for (rocksdb::ColumnFamilyHandle* handle : handles) {
      RequireOk(plain->DestroyColumnFamilyHandle(handle));
    }
  }

  rocksdb::Options rocksdb_options;
  IndexedDBOptions options;
  std::unique_ptr<IndexedDB> db;
  std::vector<rocksdb::ColumnFamilyHandle*> families;

 private:
  TemporaryDirectory directory_;
};

uint64_t BuildsOf(IndexedDB* db) {
  RequireOk(db->WaitUntilReady("city"));
  return db->ListIndexes()[0].builds;
}

BOOST_AUTO_TEST_CASE(have_the_index_built_again) {
  IndexedDatabase db;
  db.Create("city = value:text");
  FillTwoOlderLogs(&db);
  db.Close();
  BOOST_REQUIRE(LogFiles(db.path()).size() == 3);
  for (const auto mode : {rocksdb::WALRecoveryMode::kTolerateCorruptedTailRecords,
                          rocksdb::WALRecoveryMode::kAbsoluteConsistency,
                          rocksdb::WALRecoveryMode::kPointInTimeRecovery,
                          rocksdb::WALRecoveryMode::kSkipAnyCorruptedRecords}) {
    for (const size_t log : {size_t{0}, size_t{1}}) {
      for (const Loss& loss : kLosses) {
        if (loss.kind == Loss::kNone && log > 0) continue;
        CopiedDatabase copy(db.path());
        const std::string lost = LoseFrom(LogFiles(copy.path())[log], loss);
        copy.rocksdb_options.wal_recovery_mode = mode;
        BOOST_TEST_CONTEXT("mode " << static_cast<int>(mode) << ", log " << log << ": " << lost) {
          if (const absl::Status opened = copy.Open(); !opened.ok()) {
            BOOST_TEST(loss.kind != Loss::kNone, opened.ToString());
            continue;
          }
          BOOST_TEST(BuildsOf(copy.db.get()) == (loss.kind == Loss::kNone ? 0u : 1u));
          CheckAgainstDatabase(copy.db.get(), "city", copy.families[0]);
        }
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(are_named) {
  IndexedDatabase db;
  db.Create("city = value:text");
  FillTwoOlderLogs(&db);
  db.Close();
  for (const Loss& loss : {Loss{Loss::kGone, 0}, Loss{Loss::kShorter, 5}}) {
    CopiedDatabase copy(db.path());
    const std::string log = LogFiles(copy.path())[0];
    LoseFrom(log, loss);
    copy.rocksdb_options.wal_recovery_mode = rocksdb::WALRecoveryMode::kSkipAnyCorruptedRecords;
    copy.options.on_stale = OnStale::kKeepStale;
    RequireOk(copy.Open());
    const absl::Status why = copy.db->Pin("city").status();
    BOOST_TEST(absl::IsFailedPrecondition(why), why.ToString());
    BOOST_TEST(absl::StrContains(why.message(), fs::path(log).filename().string()), why.ToString());
    BOOST_TEST(
        absl::StrContains(why.message(), loss.kind == Loss::kGone ? "is missing" : "is damaged"),
        why.ToString());
  }
}

// If the database cannot be opened, the file may be restored.
BOOST_AUTO_TEST_CASE(may_be_restored_if_the_database_was_not_opened) {
  IndexedDatabase db;
  db.Create("city = value:text");
  FillTwoOlderLogs(&db);
  db.Close();
  for (const bool is_restored : {false, true}) {
    CopiedDatabase copy(db.path());
    const std::string log = LogFiles(copy.path())[0];
    fs::rename(log, log + ".lost");
    std::vector<rocksdb::ColumnFamilyHandle*> handles;
    BOOST_TEST(!IndexedDB::Open(copy.rocksdb_options, copy.path(), {{"default", {}}}, &handles,
                                copy.options)
                    .ok());
    if (is_restored) fs::rename(log + ".lost", log);
    RequireOk(copy.Open());
    BOOST_TEST(BuildsOf(copy.db.get()) == (is_restored ? 0u : 1u));
    CheckAgainstDatabase(copy.db.get(), "city", copy.families[0]);
  }
}

// RocksDB removes the evidence when it opens the database. If this process ends then, the mark
// remains.
BOOST_AUTO_TEST_CASE(are_remembered) {
  IndexedDatabase db;
  db.Create("city = value:text");
  FillTwoOlderLogs(&db);
  db.Close();
  CopiedDatabase copy(db.path());
  fs::remove(LogFiles(copy.path())[0]);
  copy.options.on_stale = OnStale::kKeepStale;
  RequireOk(copy.Open());
  BOOST_TEST(absl::IsFailedPrecondition(copy.db->Pin("city").status()));
  copy.Close();
  copy.options.on_stale = OnStale::kRebuild;
  RequireOk(copy.Open());
  BOOST_TEST(BuildsOf(copy.db.get()) == 1u);
  CheckAgainstDatabase(copy.db.get(), "city", copy.families[0]);
}

// An index that cannot be read while the log files show the loss may be readable later.
BOOST_AUTO_TEST_CASE(are_not_forgotten_if_an_index_cannot_be_read) {
  IndexedDatabase db;
  db.Create("city = value:text");
  FillTwoOlderLogs(&db);
  db.Close();
  using Lasting = FaultyFileSystem::Lasting;
  for (const Lasting lasting : {Lasting::kOnce, Lasting::kUntilRepaired}) {
    for (uint64_t k = 1; k <= 10; ++k) {
      BOOST_TEST_CONTEXT("read " << k << " fails, " << static_cast<int>(lasting)) {
        CopiedDatabase copy(db.path());
        fs::remove(LogFiles(copy.path())[0]);
        const auto files = std::make_shared<FaultyFileSystem>();
        copy.options.open.file_system = files;
        files->Break(FaultyFileSystem::Fault::kReadError, k, lasting);
        const absl::Status opened = copy.Open();
        BOOST_TEST(files->failed() >= 1u);
        files->Repair();
        if (!opened.ok()) RequireOk(copy.Open());
        BOOST_TEST(BuildsOf(copy.db.get()) == 1u);
        CheckAgainstDatabase(copy.db.get(), "city", copy.families[0]);
        copy.Close();
      }
    }
  }
}

// The archive has the damaged file after RocksDB has recovered what it could.
BOOST_AUTO_TEST_CASE(are_noticed_in_the_archive) {
  IndexedDatabase db;
  db.Create("city = value:text");
  FillTwoOlderLogs(&db);
  db.Close();
  CopiedDatabase copy(db.path());
  LoseFrom(LogFiles(copy.path())[0], {Loss::kFlipped, 5});
  copy.rocksdb_options.wal_recovery_mode = rocksdb::WALRecoveryMode::kSkipAnyCorruptedRecords;
  copy.rocksdb_options.WAL_size_limit_MB = 100;
  copy.OpenWithout();
  RequireOk(copy.Open());
  BOOST_TEST(BuildsOf(copy.db.get()) == 1u);
  CheckAgainstDatabase(copy.db.get(), "city", copy.families[0]);
}

// A killed process leaves its log files as they were.
BOOST_AUTO_TEST_CASE(of_a_killed_process_have_the_index_built_again) {
  IndexedDatabase db;
  db.Create("city = value:text");
  FillTwoOlderLogs(&db);
  RequireOk(db->FlushIndexes());
  db.Put("d", "Oslo");
  for (const bool is_lost : {false, true}) {
    CopiedDatabase copy(db.path());
    if (is_lost) fs::remove(LogFiles(copy.path())[1]);
    RequireOk(copy.Open());
    BOOST_TEST(BuildsOf(copy.db.get()) == (is_lost ? 1u : 0u));
    CheckAgainstDatabase(copy.db.get(), "city", copy.families[0]);
  }
}

// The rows of a file that was lost while the database was open are still in memory.
BOOST_AUTO_TEST_CASE(lost_while_the_database_is_open_have_the_index_built_again) {
  IndexedDatabase db;
  db.Create("city = value:text");
  FillTwoOlderLogs(&db);
  RequireOk(db->FlushIndexes());
  fs::remove(LogFiles(db.path())[0]);
  db.Put("d", "Oslo");
  RequireOk(db->FlushIndexes());
  CopiedDatabase copy(db.path());
  RequireOk(copy.Open());
  BOOST_TEST(BuildsOf(copy.db.get()) == 1u);
  CheckAgainstDatabase(copy.db.get(), "city", copy.families[0]);
}

// After the opening, a TransactionDB needs the files until the next flush, and so does a database
// that does not flush what it has recovered.
BOOST_AUTO_TEST_CASE(are_noticed_by_attach) {
  for (const bool transactions : {false, true}) {
    for (const bool is_lost : {false, true}) {
      BOOST_TEST_CONTEXT("transactions " << transactions << ", lost " << is_lost) {
        TemporaryDirectory directory;
        const std::string path = directory / "db";
        rocksdb::Options options;
        options.create_if_missing = true;
        options.create_missing_column_families = true;
        options.WAL_size_limit_MB = 100;
        options.avoid_flush_during_recovery = !transactions;
        const std::vector<rocksdb::ColumnFamilyDescriptor> families = {{"default", options},
                                                                       {"a", options}};
        for (const int run : {0, 1}) {
          std::vector<rocksdb::ColumnFamilyHandle*> handles;
          std::shared_ptr<rocksdb::DB> root;
          if (transactions) {
            rocksdb::TransactionDB* opened = nullptr;
            RequireOk(rocksdb::TransactionDB::Open(options, {}, path, families, &handles, &opened));
            root.reset(opened);
          } else {
            std::unique_ptr<rocksdb::DB> opened;
            RequireOk(rocksdb::DB::Open(options, path, families, &handles, Into(&opened)));
            root = std::move(opened);
          }
          {
            const auto db = RequireOk(IndexedDB::Attach(root, handles));
            if (run == 0) {
              RequireOk(db->CreateIndex("city = value:text", handles[0]));
              RequireOk(db->WaitUntilReady("city"));
              BeginLog(db.get(), handles[0], handles[1], "a");
              RequireOk(db->Put({}, handles[0], "b", "Oslo"));
              RequireOk(db->FlushIndexes());
            } else {
              BOOST_TEST(BuildsOf(db.get()) == (is_lost ? 1u : 0u));
              CheckAgainstDatabase(db.get(), "city", handles[0]);
            }
          }
          for (rocksdb::ColumnFamilyHandle* handle : handles) {
            RequireOk(root->DestroyColumnFamilyHandle(handle));
          }
          root.reset();
          if (run == 0 && is_lost) fs::remove(LogFiles(path)[0]);
        }
      }
    }
  }
}

// Restarts with several log files in use, with all that RocksDB does with these files.
BOOST_AUTO_TEST_CASE(are_not_suspected_after_restarts) {
  enum class Kind : uint8_t {
    kPlain,
    kNoFlush,
    kTwoQueues,
    kManualFlush,
    kPipelined,
    kCompressed,
    kRecycled,
    kPaths,
    kLogDirectory
  };
  for (const Kind kind :
       {Kind::kPlain, Kind::kNoFlush, Kind::kTwoQueues, Kind::kManualFlush, Kind::kPipelined,
        Kind::kCompressed, Kind::kRecycled, Kind::kPaths, Kind::kLogDirectory}) {
    IndexedDatabase db;
    db.rocksdb_options().avoid_flush_during_recovery = kind == Kind::kNoFlush;
    db.rocksdb_options().two_write_queues = kind == Kind::kTwoQueues;
    db.rocksdb_options().manual_wal_flush = kind == Kind::kManualFlush;
    db.rocksdb_options().enable_pipelined_write = kind == Kind::kPipelined;
    if (kind == Kind::kCompressed) db.rocksdb_options().wal_compression = rocksdb::kZSTD;
    // The log files are where the database is, unless there is another directory for them.
    if (kind == Kind::kPaths) db.rocksdb_options().db_paths = {{db.Beside("tables"), 1 << 30}};
    if (kind == Kind::kLogDirectory) db.rocksdb_options().wal_dir = db.Beside("logs") + "/";
    if (kind == Kind::kRecycled) {
      db.rocksdb_options().recycle_log_file_num = 2;
      db.options().log_retention_megabytes = 0;  // RocksDB recycles only without an archive
    }
    db.Reopen();
    db.Create("city = value:text");
    db.Create("other = value:text", 1);
    for (int run = 0; run < 6; ++run) {
      BOOST_TEST_CONTEXT("kind " << static_cast<int>(kind) << ", run " << run) {
        BeginLog(db.get(), db.family(0), db.family(1), absl::StrCat("r", run, "a"));
        if (run % 3 != 1) BeginLog(db.get(), db.family(0), db.family(1), "b");
        if (run % 3 == 2) RequireOk(db->Flush({}, db.family(0)));
        if (run % 2 == 1) db.Put(absl::StrCat("c", run), "Oslo");
        if (run % 3 == 0) RequireOk(db->FlushIndexes());
        db.Close();
        if (run > 2 && kind != Kind::kRecycled) {
          std::vector<rocksdb::ColumnFamilyHandle*> handles;
          std::unique_ptr<rocksdb::DB> plain;
          rocksdb::Options options = db.rocksdb_options();
          options.WAL_size_limit_MB = 100;
          const std::vector<rocksdb::ColumnFamilyDescriptor> families = {{"default", options},
                                                                         {"a", options}};
          if (run % 2 == 0) {
            RequireOk(
                rocksdb::DB::OpenForReadOnly(options, db.path(), families, &handles, Into(&plain)));
          } else {
            RequireOk(rocksdb::DB::Open(options, db.path(), families, &handles, Into(&plain)));
            RequireOk(plain->Put({}, handles[0], "plain", "Porto"));
          }
          for (rocksdb::ColumnFamilyHandle* handle : handles) {
            RequireOk(plain->DestroyColumnFamilyHandle(handle));
          }
        }
        db.Open();
        for (const char* name : {"city", "other"}) {
          RequireOk(db->WaitUntilReady(name));
          BOOST_TEST(db.Info(name).builds == 0u);
        }
        CheckAgainstDatabase(db.get(), "city", db.family(0));
        CheckAgainstDatabase(db.get(), "other", db.family(1));
      }
    }
  }
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
