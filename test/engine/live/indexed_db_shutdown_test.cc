// The orders in which an IndexedDB, the handles of its column families and its database are closed
// and destroyed.
#include <atomic>
#include <boost/test/unit_test.hpp>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/time/clock.h"
#include "engine/util/rocksdb_compat.h"
#include "test/engine/indexed_database.h"
#include "test/engine/killed_process.h"
#include "test/temporary_directory.h"

namespace cairn {
BOOST_AUTO_TEST_SUITE(indexed_db_shutdown_test)
namespace {

// The directory for the process that exits.
constexpr char kExitDirectory[] = "CAIRN_TEST_EXIT_DIRECTORY";
constexpr char kExitRound[] = "CAIRN_TEST_EXIT_ROUND";
constexpr int kExitCode = 42;

using Handles = std::vector<rocksdb::ColumnFamilyHandle*>;

rocksdb::Options Options() {
  rocksdb::Options options;
  options.create_if_missing = true;
  options.create_missing_column_families = true;
  return options;
}
IndexedDBOptions Quick() {
  IndexedDBOptions options;
  options.open.calibration = Calibration::kNone;
  options.build.threads = 1;
  return options;
}
std::vector<rocksdb::ColumnFamilyDescriptor> Families() {
  return {{"default", Options()}, {"users", Options()}};
}

// Opens a database outside of the IndexedDB.
std::shared_ptr<rocksdb::DB> OpenPlain(const std::string& path, Handles* handles) {
  std::unique_ptr<rocksdb::DB> opened;
  RequireOk(rocksdb::DB::Open(Options(), path, Families(), handles, Into(&opened)));
  return opened;
}
std::unique_ptr<IndexedDB> Require(absl::StatusOr<std::unique_ptr<IndexedDB>> db) {
  RequireOk(db.status());
  return *std::move(db);
}

void Fill(IndexedDB* db, const Handles& handles) {
  RequireOk(db->CreateIndex(SpecOf("all = value:text")));
  RequireOk(db->CreateIndex(SpecOf("users = value:text, cf=users"), handles[1]));
  RequireOk(db->WaitUntilReady("all"));
  RequireOk(db->WaitUntilReady("users"));
  RequireOk(db->Put({}, "a", "red"));
  RequireOk(db->Put({}, handles[1], "u", "red"));
}

void Destroy(rocksdb::DB* db, Handles* handles) {
  for (rocksdb::ColumnFamilyHandle* handle : *handles) {
    RequireOk(db->DestroyColumnFamilyHandle(handle));
  }
  handles->clear();
}

// Checks that nothing was lost or rebuilt.
void CheckReopened(const std::string& path) {
  Handles handles;
  const auto db = Require(IndexedDB::Open(Options(), path, Families(), &handles, Quick()));
  for (const char* name : {"all", "users"}) RequireOk(db->WaitUntilReady(name));
  BOOST_TEST(RowsOf(db.get(), "all", "red") == "a");
  BOOST_TEST(RowsOf(db.get(), "users", "red") == "u");
  for (const IndexInfo& info : db->ListIndexes()) BOOST_TEST(info.builds == 0u);
  Destroy(db.get(), &handles);
}

BOOST_AUTO_TEST_CASE(an_attached_database_stays_open_when_its_indexes_are_closed) {
  TemporaryDirectory directory;
  Handles handles;
  auto base = OpenPlain(directory / "db", &handles);
  auto db = Require(IndexedDB::Attach(base, handles, Quick()));
  Fill(db.get(), handles);
  RequireOk(db->Close());
  RequireOk(db->Close());
  std::string value;
  RequireOk(base->Get({}, handles[1], "u", &value));
  Destroy(base.get(), &handles);  // which closing the database would have prevented
  RequireOk(base->Close());
  base = nullptr;
  db = nullptr;
  CheckReopened(directory / "db");
}

BOOST_AUTO_TEST_CASE(handles_may_go_first_through_the_object_or_last) {
  for (const bool first : {true, false}) {
    TemporaryDirectory directory;
    Handles handles;
    auto base = OpenPlain(directory / "db", &handles);
    auto db = Require(IndexedDB::Attach(base, handles, Quick()));
    Fill(db.get(), handles);
    if (first) Destroy(db.get(), &handles);
    db = nullptr;  // without Close
    Destroy(base.get(), &handles);
    base = nullptr;
    CheckReopened(directory / "db");
  }
}

BOOST_AUTO_TEST_CASE(the_last_owner_of_an_attached_database_may_be_the_object) {
  TemporaryDirectory directory;
  std::unique_ptr<rocksdb::DB> opened;
  RequireOk(rocksdb::DB::Open(Options(), directory / "db", Into(&opened)));
  auto db = Require(IndexedDB::Attach(std::move(opened), {}, Quick()));
  RequireOk(db->CreateIndex(SpecOf("all = value:text")));
  RequireOk(db->WaitUntilReady("all"));
  RequireOk(db->Close());  // file deletions are enabled by then: the log is not archived
  db = nullptr;
}

BOOST_AUTO_TEST_CASE(an_opened_database_closes_with_its_last_handle) {
  for (const bool handles_first : {true, false}) {
    TemporaryDirectory directory;
    Handles handles;
    auto db = Require(IndexedDB::Open(Options(), directory / "db", Families(), &handles, Quick()));
    Fill(db.get(), handles);
    rocksdb::ColumnFamilyHandle* added = nullptr;
    RequireOk(db->CreateColumnFamily({}, "added", &added));
    RequireOk(db->DropColumnFamily(added));
    if (handles_first) Destroy(db.get(), &handles);
    if (handles_first) RequireOk(db->DestroyColumnFamilyHandle(added));
    RequireOk(db->Close());
    Destroy(db.get(), &handles);
    if (!handles_first) RequireOk(db->DestroyColumnFamilyHandle(added));
    // While the object still exists.
    CheckReopened(directory / "db");
  }
}

BOOST_AUTO_TEST_CASE(calls_after_the_end_say_that_it_has_come) {
  TemporaryDirectory directory;
  Handles handles;
  auto db = Require(IndexedDB::Open(Options(), directory / "db", Families(), &handles, Quick()));
  Fill(db.get(), handles);
  const auto live = db->Index("all");
  RequireOk(live.status());
  const auto is_closed = [](const absl::Status& status) {
    BOOST_TEST(absl::IsFailedPrecondition(status), status);
    BOOST_TEST(status.message().find("closed") != status.message().npos, status);
  };
  const auto check_live = [&] {
    FindResult matches;
    const std::string_view keys[] = {"red"};
    is_closed((*live)->Find(keys, &matches));
    is_closed((*live)->Verify());
  };
  RequireOk(db->Close());
  check_live();
  is_closed(db->CreateIndex(SpecOf("more = value:text")));
  is_closed(db->RebuildIndex("all"));
  is_closed(db->DropIndex("all"));
  is_closed(db->CompactIndex("all"));
  is_closed(db->WaitUntilReady("all"));
  is_closed(db->Pin("all").status());
  is_closed(db->FlushIndexes());
  BOOST_TEST(db->ListIndexes().size() == 2u);
  for (const IndexInfo& info : db->ListIndexes()) is_closed(info.status);
  BOOST_TEST(!db->IngestExternalFile(handles[1], {"none.sst"}, {}).ok());
  const auto as_it_is = db->PinStale("all");
  RequireOk(as_it_is.status());
  BOOST_TEST(RowsOf(**as_it_is, "red") == "a");
  Destroy(db.get(), &handles);
  db = nullptr;
  check_live();
  BOOST_TEST(RowsOf(**as_it_is, "red") == "a");
}

BOOST_AUTO_TEST_CASE(queries_may_race_the_end) {
  for (int round = 0; round < 20; ++round) {
    TemporaryDirectory directory;
    Handles handles;
    auto base = OpenPlain(directory / "db", &handles);
    auto db = Require(IndexedDB::Attach(base, handles, Quick()));
    Fill(db.get(), handles);
    const auto live = db->Index("users");
    RequireOk(live.status());
    std::atomic<bool> begun{false}, wrong{false};
    std::vector<std::thread> threads;
    for (int t = 0; t < 3; ++t) {
      threads.emplace_back([&, live = *live] {
        const std::string_view keys[] = {"red"};
        while (true) {
          FindResult matches;
          const absl::Status s = live->Find(keys, &matches);
          begun = true;
          if (s.ok() && matches.row_ids.size() == 1) continue;
          if (!absl::IsFailedPrecondition(s)) wrong = true;
          return;
        }
      });
    }
    threads.emplace_back([&] {
      if (!absl::IsFailedPrecondition(db->WaitUntilReady("none"))) begun = true;
      while (db->FlushIndexes().ok() && db->CompactIndex("all").ok() && db->Pin("all").ok()) {
      }
    });
    while (!begun) absl::SleepFor(absl::Microseconds(10));
    RequireOk(db->Close());
    threads.back().join();
    threads.pop_back();
    db = nullptr;
    Destroy(base.get(), &handles);
    base = nullptr;
    for (std::thread& thread : threads) thread.join();
    BOOST_TEST(!wrong);
  }
}

// Background threads of an index would use RocksDB's static objects, which exit() destroys.
BOOST_AUTO_TEST_CASE(a_process_may_exit_while_its_indexes_are_at_work) {
  for (int round = 0; round < 30; ++round) {
    TemporaryDirectory directory;
    KilledProcess process(
        "indexed_db_shutdown_test/exits_while_indexes_are_built",
        {{kExitDirectory, directory.path()}, {kExitRound, std::to_string(round)}});
    const std::optional<int> code = process.ExitCode();
    BOOST_REQUIRE_MESSAGE(code == kExitCode, "round " << round << " did not end with its code");
  }
}

BOOST_AUTO_TEST_CASE(exits_while_indexes_are_built) {
  const char* const directory = std::getenv(kExitDirectory);
  if (directory == nullptr) return;  // only in the other process of the test above
  const int round = std::atoi(std::getenv(kExitRound));
  Handles handles;
  // Neither is ever destroyed, as in a program that aborts.
  auto* const db = Require(IndexedDB::Open(Options(), std::string(directory) + "/db", Families(),
                                           &handles, Quick()))
                       .release();
  for (int i = 0; i < 2000; ++i) RequireOk(db->Put({}, std::to_string(i), "red"));
  RequireOk(db->CreateIndex(SpecOf("all = value:text")));
  absl::SleepFor(round * absl::Milliseconds(1));
  std::exit(kExitCode);
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
