// The states of indexes when a database is reopened, was killed, or was changed past the log.
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <boost/test/unit_test.hpp>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "cairn/extractor.h"
#include "cairn/indexed_db.h"
#include "rocksdb/sst_file_writer.h"
#include "test/engine/indexed_database.h"
#include "test/engine/live/indexed_db_checks.h"
#include "test/require_ok.h"
#include "test/test_random.h"

namespace cairn {
BOOST_AUTO_TEST_SUITE(indexed_db_reopen_test)
namespace {

constexpr char kChildPath[] = "CAIRN_TEST_INDEXED_DB_CHILD";

[[noreturn]] void WriteUntilKilled(const rocksdb::Options& options, const std::string& path) {
  const auto db = IndexedDB::Open(options, path);
  if (!db.ok() || !(*db)->CreateIndex(SpecOf(kByColour)).ok() ||
      !(*db)->WaitUntilReady("by_colour").ok()) {
    _exit(1);
  }
  for (int i = 0; i < 3000; ++i) {
    const std::string value = absl::StrCat("c", i % 7, ",", std::string(100, 'x'));
    if (!(*db)->Put({}, absl::StrCat("k", i), value).ok()) _exit(2);
  }
  _exit(0);
}

void WaitForBuilds(IndexedDatabase* db, const std::string& name, uint64_t builds) {
  for (int i = 0; i < 10000 && db->Info(name).builds < builds; ++i) {
    absl::SleepFor(absl::Milliseconds(1));
  }
  BOOST_REQUIRE(db->Info(name).builds == builds);
  RequireOk((*db)->WaitUntilReady(name));
}

BOOST_AUTO_TEST_CASE(indexes_follow_again_after_the_database_was_reopened) {
  IndexedDatabase db;
  db.Create(kByColour);
  db.Put("a", "red");
  BOOST_TEST(RowsOf(db.get(), "by_colour", "red") == "a");
  db.Reopen();
  BOOST_TEST(RowsOf(db.get(), "by_colour", "red") == "a");
  db.Put("b", "red");
  BOOST_TEST(RowsOf(db.get(), "by_colour", "red") == "a b");
  BOOST_TEST(db.Info("by_colour").builds == 0);
  CheckAgainstDatabase(db.get(), "by_colour", db.family(0));
}

BOOST_AUTO_TEST_CASE(an_index_catches_up_after_its_process_was_killed) {
  rocksdb::Options options;
  options.create_if_missing = true;
  options.write_buffer_size = 64 << 10;  // so that much of it has been flushed
  // This process starts its own program again, with a path to write to until it is killed: a fork
  // alone would lack the threads of RocksDB.
  if (const char* child_path = std::getenv(kChildPath)) WriteUntilKilled(options, child_path);
  TemporaryDirectory directory;
  const std::string path = directory / "db";
  const pid_t child = fork();
  if (child == 0) {
    setenv(kChildPath, path.c_str(), 1);
    execl("/proc/self/exe", "cairn_engine_test",
          "--run_test=indexed_db_reopen_test/an_index_catches_up_after_its_process_was_killed",
          static_cast<char*>(nullptr));
    _exit(3);
  }
  int status = 0;
  BOOST_REQUIRE(waitpid(child, &status, 0) == child);
  BOOST_REQUIRE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  const auto db = RequireOk(IndexedDB::Open(options, path));
  RequireOk(db->WaitUntilReady("by_colour"));
  BOOST_TEST(db->ListIndexes().at(0).builds == 0);
  CheckAgainstDatabase(db.get(), "by_colour", nullptr);
  uint64_t count = 0;
  RequireOk((**db->Index("by_colour"))
                .Count(RangeBatch::Everything(PhysicalType::kBytes), absl::MakeSpan(&count, 1)));
  BOOST_TEST(count == 3000);
}

BOOST_AUTO_TEST_CASE(a_half_built_index_is_removed_at_the_next_open) {
  IndexedDatabase db;
  const std::string directory = db.path() + ".indexes";
  db.Close();
  std::filesystem::create_directory(directory + "/half");
  WriteFile(directory + "/half/rows-000001.tbl", "half");
  WriteFile(directory + "/half~", "building\n");
  std::filesystem::create_directory(directory + "/not_ours");
  db.Open();
  BOOST_TEST(db->ListIndexes().size() == 0u);
  BOOST_TEST(!std::filesystem::exists(directory + "/half"));
  BOOST_TEST(!std::filesystem::exists(directory + "/half~"));
  BOOST_TEST(std::filesystem::exists(directory + "/not_ours"));
}

BOOST_AUTO_TEST_CASE(a_write_past_object_and_log_makes_indexes_stale_and_they_are_rebuilt) {
  IndexedDatabase db;
  db.Put("a", "red");
  db.Create(kByColour);
  rocksdb::WriteOptions unlogged;
  unlogged.disableWAL = true;
  RequireOk(db->Put(unlogged, "b", "red"));
  BOOST_TEST(RowsOf(db.get(), "by_colour", "red") == "a b");
  BOOST_TEST(db.Info("by_colour").builds == 1u);
  RequireOk(db->GetBaseDB()->Put(unlogged, "c", "red"));
  db.Put("d", "red");
  const auto stale = db->Pin("by_colour");
  if (stale.ok()) BOOST_TEST(RowsOf(**stale, "red") == "a b c d");  // if it was fast
  WaitForBuilds(&db, "by_colour", 2);
  BOOST_TEST(RowsOf(db.get(), "by_colour", "red") == "a b c d");
}

BOOST_AUTO_TEST_CASE(a_stale_index_says_why_and_stays_so_if_it_is_to) {
  IndexedDBOptions options;
  options.on_stale = OnStale::kKeepStale;
  IndexedDatabase db(options);
  db.Put("a", "red");
  db.Create(kByColour);
  const auto live = RequireOk(db->Index("by_colour"));
  rocksdb::WriteOptions unlogged;
  unlogged.disableWAL = true;
  RequireOk(db->GetBaseDB()->Put(unlogged, "b", "red"));
  FindResult matches;
  const std::string_view keys[] = {"red"};
  CheckFails(live->Find(keys, &matches), absl::StatusCode::kFailedPrecondition,
             "writes bypassed it");
  CheckFails(db->Pin("by_colour").status(), absl::StatusCode::kFailedPrecondition, "RebuildIndex");
  CheckFails(db->WaitUntilReady("by_colour"), absl::StatusCode::kFailedPrecondition,
             "writes bypassed it");
  BOOST_TEST((db.Info("by_colour").state == IndexState::kStale));
  BOOST_TEST(db.Info("by_colour").sequence_lag == 1u);
  const auto as_it_is = RequireOk(db->PinStale("by_colour"));
  BOOST_TEST(RowsOf(*as_it_is, "red") == "a");
  RequireOk(db->RebuildIndex("by_colour"));
  RequireOk(db->WaitUntilReady("by_colour"));
  RequireOk(live->Find(keys, &matches));
  BOOST_TEST(matches.row_ids.size() == 2u);
}

BOOST_AUTO_TEST_CASE(ingested_files_make_indexes_stale_also_across_a_reopen) {
  IndexedDBOptions options;
  options.on_stale = OnStale::kKeepStale;
  IndexedDatabase db(options);
  db.Put("m", "red");
  db.Create(kByColour);
  const std::string file = db.Beside("ingested.sst");
  rocksdb::SstFileWriter writer(rocksdb::EnvOptions(), db.rocksdb_options());
  RequireOk(writer.Open(file));
  RequireOk(writer.Put("a", "red"));
  RequireOk(writer.Finish());
  RequireOk(db->IngestExternalFile({file}, {}));
  CheckFails(db->Pin("by_colour").status(), absl::StatusCode::kFailedPrecondition, "ingested");
  db.Reopen();
  CheckFails(db->Pin("by_colour").status(), absl::StatusCode::kFailedPrecondition, "ingested");
  db.options().on_stale = OnStale::kRebuild;
  db.Reopen();
  RequireOk(db->WaitUntilReady("by_colour"));
  BOOST_TEST(RowsOf(db.get(), "by_colour", "red") == "a m");
  db.Reopen();
  BOOST_TEST(RowsOf(db.get(), "by_colour", "red") == "a m");
  BOOST_TEST(db.Info("by_colour").builds == 0u);
}

// Fails for one row, on request.
class Failing final : public KeyExtractor {
 public:
  absl::Status Extract(const RowView& row, KeySink* sink) const override {
    if (fails && row.primary_key == "bad") return absl::InvalidArgumentError("a bad row");
    sink->Add(row.value);
    return absl::OkStatus();
  }
  std::atomic<bool> fails{false};
};

// Indexes stored at several states, in both column families, catch up in one reading of the log.
// Each takes part from its own state on.
BOOST_AUTO_TEST_CASE(indexes_catch_up_together_from_different_states) {
  static const auto failing = std::make_shared<Failing>();
  RequireOk(RegisterExtractor("indexed_db_reopen_failing", failing));
  IndexedDBOptions options;
  options.flush_interval = absl::ZeroDuration();
  IndexedDatabase db(options);
  const std::vector<std::string> names = {"d", "b", "of_a", "c", "fails", "a"};
  for (const std::string& name : names) {
    db.Create(
        absl::StrCat(
            name, name == "fails" ? " = custom('indexed_db_reopen_failing'):text" : " = value:text",
            name == "of_a" ? ", cf=a" : ""),
        name == "of_a" ? 1 : 0);
  }
  const std::filesystem::path live = db.path() + ".indexes";
  const std::filesystem::path kept = db.Beside("kept");
  std::filesystem::create_directory(kept);
  std::mt19937_64 random = TestRandom(5);
  const auto write = [&] {
    for (int i = 0; i < 100; ++i) {
      const std::string row = absl::StrCat("row", random() % 50);
      const int family = static_cast<int>(random() % 2);
      switch (random() % 4) {
        case 0:
          RequireOk(db->Merge({}, db.family(family), row, absl::StrCat("+", random() % 10)));
          break;
        case 1:
          RequireOk(db->Delete({}, db.family(family), row));
          break;
        default:
          db.Put(row, absl::StrCat("v", random() % 20), family);
      }
      if (random() % 40 == 0) RequireOk(db->Flush({}));
    }
  };
  for (const std::string& name : names) {
    write();
    RequireOk(db->FlushIndexes());
    std::filesystem::copy(live / name, kept / name, std::filesystem::copy_options::recursive);
  }
  db.Put("bad", "row");
  write();
  for (const bool one_fails : {false, true}) {
    db.Close();
    for (const std::string& name : names) {
      std::filesystem::remove_all(live / name);
      std::filesystem::copy(kept / name, live / name, std::filesystem::copy_options::recursive);
    }
    failing->fails = one_fails;
    db.Open();
    for (const std::string& name : names) {
      BOOST_TEST_CONTEXT(name) {
        if (one_fails && name == "fails") {
          CheckFails(db->WaitUntilReady(name), absl::StatusCode::kInvalidArgument, "a bad row");
          continue;
        }
        RequireOk(db->WaitUntilReady(name));
        BOOST_TEST(db.Info(name).builds == 0u);
        CheckAgainstDatabase(db.get(), name, db.family(name == "of_a" ? 1 : 0));
      }
    }
  }
}

// An index of another database is rebuilt; the others are not.
BOOST_AUTO_TEST_CASE(an_index_that_cannot_catch_up_does_no_harm_to_the_others) {
  IndexedDatabase other, db;
  other.Put("a", "of another");
  other.Create("stranger = value:text");
  other.Close();
  db.Put("a", "red");
  db.Create("good = value:text");
  db.Create("stranger = value:text");
  db.Put("b", "red");
  db.Close();
  const std::string live = db.path() + ".indexes/stranger";
  std::filesystem::remove_all(live);
  std::filesystem::copy(other.path() + ".indexes/stranger", live,
                        std::filesystem::copy_options::recursive);
  db.Open();
  for (const char* name : {"good", "stranger"}) {
    RequireOk(db->WaitUntilReady(name));
    CheckAgainstDatabase(db.get(), name, db.family(0));
  }
  BOOST_TEST(db.Info("good").builds == 0u);
  BOOST_TEST(db.Info("stranger").builds == 1u);
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
