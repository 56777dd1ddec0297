// How indexes of a live database are built: several in one scan, and with the log that they need.

#include <atomic>
#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "cairn/extractor.h"
#include "cairn/indexed_db.h"
#include "rocksdb/env.h"
#include "rocksdb/sst_file_writer.h"
#include "test/engine/indexed_database.h"
#include "test/engine/live/indexed_db_checks.h"
#include "test/require_ok.h"
#include "test/sanitizer.h"

namespace cairn {
BOOST_AUTO_TEST_SUITE(indexed_db_builds_test)
namespace {

// The number of indexes that share a row table with this one, because they were built in the same
// scan.
size_t BuiltTogether(const IndexInfo& info) {
  for (const auto& file : std::filesystem::directory_iterator(info.directory)) {
    if (file.path().extension() == ".tbl") return std::filesystem::hard_link_count(file);
  }
  return 0;
}

const std::vector<IndexSpec>& ThreeSpecs() {
  static const std::vector<IndexSpec> specs = {SpecOf("one = value:text"),
                                               SpecOf("three = key:bytes"),
                                               SpecOf("two = value.field(',', 1):text")};
  return specs;
}

void CheckThree(IndexedDatabase* database) {
  for (const IndexSpec& spec : ThreeSpecs()) {
    RequireOk((*database)->WaitUntilReady(spec.name));
    CheckAgainstDatabase(database->get(), spec.name, database->family(0));
  }
}

BOOST_AUTO_TEST_CASE(indexes_that_are_created_together_are_built_by_one_scan) {
  IndexedDatabase database;
  for (int i = 0; i < 1000; ++i) database.Put(absl::StrCat("row", i), absl::StrCat(i % 7, ",", i));
  std::atomic<bool> stop{false};
  std::thread writer([&] {
    for (int i = 0; !stop; ++i)
      database.Put(absl::StrCat("row", i % 2000), absl::StrCat("new,", i));
  });
  RequireOk(database->CreateIndexes(ThreeSpecs()));
  for (const IndexSpec& spec : ThreeSpecs()) RequireOk(database->WaitUntilReady(spec.name));
  stop = true;
  writer.join();
  CheckThree(&database);
  for (const IndexInfo& info : database->ListIndexes()) BOOST_TEST(BuiltTogether(info) == 3u);
  database.Reopen();
  CheckThree(&database);
  for (const IndexInfo& info : database->ListIndexes()) BOOST_TEST(info.builds == 0u);
}

BOOST_AUTO_TEST_CASE(indexes_that_become_stale_together_are_built_by_one_scan) {
  IndexedDatabase database;
  for (int i = 0; i < 1000; ++i) database.Put(absl::StrCat("row", i), absl::StrCat(i % 7, ",", i));
  for (const IndexSpec& spec : ThreeSpecs()) {
    RequireOk(database->CreateIndex(spec));
    RequireOk(database->WaitUntilReady(spec.name));
    BOOST_TEST(BuiltTogether(database.Info(spec.name)) == 1u);
  }
  database.Create("of_a = value:text, cf=a", 1);
  rocksdb::SstFileWriter file(rocksdb::EnvOptions(), database.rocksdb_options());
  RequireOk(file.Open(database.Beside("new.sst")));
  RequireOk(file.Put("z", "ingested,1"));
  RequireOk(file.Finish());
  RequireOk(database->IngestExternalFile({database.Beside("new.sst")}, {}));
  CheckThree(&database);
  for (const IndexSpec& spec : ThreeSpecs()) {
    BOOST_TEST(database.Info(spec.name).builds == 2u);
    BOOST_TEST(BuiltTogether(database.Info(spec.name)) == 3u);
  }
}

BOOST_AUTO_TEST_CASE(either_all_or_none_are_created) {
  IndexedDatabase database;
  const auto refuses = [&](const std::vector<IndexSpec>& specs, absl::StatusCode code,
                           const std::string& part) {
    CheckFails(database->CreateIndexes(specs), code, part);
    BOOST_TEST(database->ListIndexes().empty());
  };
  const IndexSpec good = ThreeSpecs()[0];
  refuses({good, SpecOf(".bad = key:bytes")}, absl::StatusCode::kInvalidArgument, ".bad");
  refuses({good, good}, absl::StatusCode::kAlreadyExists, "twice");
  refuses({good, SpecOf("other = value:text, cf=a")}, absl::StatusCode::kInvalidArgument, "other");
  RequireOk(database->CreateIndexes({}));
  database.Create("one = value:text");
  CheckFails(database->CreateIndexes(ThreeSpecs()), absl::StatusCode::kAlreadyExists, "one");
  BOOST_TEST(database->ListIndexes().size() == 1u);
  database.Reopen();
  BOOST_TEST(database->ListIndexes().size() == 1u);
}

BOOST_AUTO_TEST_CASE(one_that_cannot_be_built_does_no_harm_to_those_it_was_created_with) {
  IndexedDatabase database;
  database.Put("a", "same");
  database.Put("b", "same");
  RequireOk(database->CreateIndexes({{SpecOf("all = value:text"), SpecOf("number = value:u64be"),
                                      SpecOf("uniq = value:text, unique=true")}}));
  RequireOk(database->WaitUntilReady("all"));
  CheckAgainstDatabase(database.get(), "all", database.family(0));
  BOOST_TEST(absl::IsInvalidArgument(database->WaitUntilReady("number")));
  BOOST_TEST(absl::IsAlreadyExists(database->WaitUntilReady("uniq")));
}

BOOST_AUTO_TEST_CASE(dropping_one_does_no_harm_to_those_it_is_built_with) {
  IndexedDatabase database;
  Fill(database.get(), 20000, "v");
  RequireOk(database->CreateIndexes(ThreeSpecs()));
  RequireOk(database->DropIndex("two"));
  for (const char* name : {"one", "three"}) {
    RequireOk(database->WaitUntilReady(name));
    CheckAgainstDatabase(database.get(), name, database.family(0));
  }
  BOOST_TEST(database->ListIndexes().size() == 2u);
}

// Takes long per row, and counts the rows that existed before the build.
class Slow final : public KeyExtractor {
 public:
  absl::Status Extract(const RowView& row, KeySink* sink) const override {
    if (row.primary_key.substr(0, 1) == "a") {
      ++rows;
      absl::SleepFor(absl::Microseconds(delay.load()));
    }
    sink->Add(row.value.substr(0, 4));
    return absl::OkStatus();
  }
  mutable std::atomic<int> rows{0};
  std::atomic<int> delay{0};
};

Slow* SlowExtractor() {
  static const std::shared_ptr<Slow> slow = [] {
    auto made = std::make_shared<Slow>();
    RequireOk(RegisterExtractor("indexed_db_builds_slow", made));
    return made;
  }();
  slow->rows = 0;
  return slow.get();
}
constexpr char kSlow[] = "slow = custom('indexed_db_builds_slow'):text";

// A build during which the log goes through many files; each becomes obsolete soon.
void BuildBesideWrites(IndexedDatabase* database, uint64_t megabytes) {
  std::atomic<bool> stop{false};
  std::thread writer([&] {
    const std::string value(10000, 'x');
    for (int i = 0; !stop && i < 100 * static_cast<int>(megabytes); ++i) {
      database->Put(absl::StrCat("new", i % 100), value);
      if (i % 20 == 0) RequireOk((*database)->Flush({}));
    }
  });
  RequireOk((*database)->CreateIndex(kSlow));
  (*database)->WaitUntilReady("slow").IgnoreError();
  stop = true;
  writer.join();
}

BOOST_AUTO_TEST_CASE(a_build_keeps_the_log_that_it_needs) {
  constexpr int kRows = 5000;
  for (const bool archive : {false, true}) {
    BOOST_TEST_CONTEXT((archive ? "with an archive" : "without an archive")) {
      Slow* const slow = SlowExtractor();
      slow->delay = 150;
      IndexedDBOptions options;
      options.log_retention_megabytes = archive ? 1 : 0;  // less than is written during the build
      IndexedDatabase database(options);
      if (archive) {
        database.rocksdb_options().WAL_ttl_seconds = 1;  // purged at each flush
        database.Reopen();
      }
      Fill(database.get(), kRows, "v");
      RequireOk(database->Flush({}));
      BuildBesideWrites(&database, 8);
      slow->delay = 0;
      BOOST_TEST(slow->rows == kRows);  // it did not start over
      RequireOk(database->WaitUntilReady("slow"));
      CheckAgainstDatabase(database.get(), "slow", database.family(0));
    }
  }
}

BOOST_AUTO_TEST_CASE(a_build_that_needs_more_log_than_may_be_kept_ends) {
  Slow* const slow = SlowExtractor();
  slow->delay = 300;
  IndexedDBOptions options;
  options.build_log_megabytes = 1;
  IndexedDatabase database(options);
  Fill(database.get(), 5000, "v");
  RequireOk(database->Flush({}));
  BuildBesideWrites(&database, 8);
  slow->delay = 0;
  CheckFails(database->WaitUntilReady("slow"), absl::StatusCode::kResourceExhausted,
             "IndexedDBOptions::build_log_megabytes");
  BOOST_TEST(IndexStateName(database.Info("slow").state) == "failed");
  database.options().build_log_megabytes = 0;
  database.Reopen();
  RequireOk(database->WaitUntilReady("slow"));
  CheckAgainstDatabase(database.get(), "slow", database.family(0));
}

// A request to rebuild during a build, or while it catches up afterwards, is satisfied by a build
// that begins later. The index is a member of the follower only once.
BOOST_AUTO_TEST_CASE(a_rebuild_that_is_requested_during_another) {
  for (const IndexState state : {IndexState::kBuilding, IndexState::kCatchingUp}) {
    BOOST_TEST_CONTEXT(IndexStateName(state)) {
      Slow* const slow = SlowExtractor();
      slow->delay = 500;
      IndexedDBOptions options;
      options.max_backlog = absl::ZeroDuration();
      IndexedDatabase database(options);
      Fill(database.get(), 500, "v");
      RequireOk(database->CreateIndex(kSlow));
      while (slow->rows == 0) absl::SleepFor(absl::Milliseconds(1));
      Fill(database.get(), 500, "w");
      while (database.Info("slow").state != state) absl::SleepFor(absl::Milliseconds(1));
      RequireOk(database->RebuildIndex("slow"));
      BOOST_TEST(database.Info("slow").builds == 0u);
      RequireOk(database->WaitUntilReady("slow"));
      // The build that was in progress does not count.
      BOOST_TEST(database.Info("slow").builds == 1u);
      BOOST_TEST(slow->rows >= (state == IndexState::kBuilding ? 1000 : 1001));
      slow->delay = 0;
      database.Put("b", "last");
      BOOST_TEST(RowsOf(database.get(), "slow", "last") == "b");
      CheckAgainstDatabase(database.get(), "slow", database.family(0));
      database.Reopen();
      RequireOk(database->WaitUntilReady("slow"));
      BOOST_TEST(database.Info("slow").builds == 0u);
    }
  }
}

class Lines final : public rocksdb::Logger {
 public:
  using rocksdb::Logger::Logv;
  void Logv(const char* format, va_list arguments) override {
    char line[2000];
    std::vsnprintf(line, sizeof line, format, arguments);
    const std::lock_guard<std::mutex> lock(mutex_);
    if (std::string_view(line).find("[cairn]") != std::string_view::npos) {
      all_ += std::string(line) + "\n";
    }
  }
  std::string all() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return all_;
  }

 private:
  std::mutex mutex_;
  std::string all_;
};

// No caller sees an index that is neither ready nor being built.
BOOST_AUTO_TEST_CASE(a_rebuild_is_waited_for_from_its_request_on) {
  IndexedDatabase db;
  for (int i = 0; i < 100; ++i) db.Put(absl::StrCat("r", i), "Lisbon");
  db.Create("city = value:text");
  std::atomic<bool> done{false};
  absl::Status waited, asked;  // the first errors
  std::thread waiter([&] {
    while (!done) waited.Update(db->WaitUntilReady("city", absl::Seconds(30)));
  });
  std::thread reader([&] {
    while (!done) {
      const absl::Status s = db->Lookup("city", "Lisbon").status();
      if (!absl::IsUnavailable(s)) asked.Update(s);
    }
  });
  for (int i = 0; i < 60; ++i) {
    RequireOk(db->RebuildIndex("city"));
    if (i % 3 > 0) RequireOk(db->WaitUntilReady("city"));
  }
  done = true;
  waiter.join();
  reader.join();
  RequireOk(waited);
  RequireOk(asked);
  RequireOk(db->WaitUntilReady("city"));
  BOOST_TEST(db.Info("city").builds > 40u);
  CheckAgainstDatabase(db.get(), "city", db.family(0));
}

BOOST_AUTO_TEST_CASE(states_and_reasons_are_in_the_info_log) {
  const auto lines = std::make_shared<Lines>();
  IndexedDatabase database;
  database.rocksdb_options().info_log = lines;
  database.Reopen();
  database.Create("all = value:text");
  database.Put("a", "b");
  RequireOk(database->RebuildIndex("all"));
  RequireOk(database->WaitUntilReady("all"));
  rocksdb::WriteOptions past_log;
  past_log.disableWAL = true;
  RequireOk(database->GetBaseDB()->Put(past_log, "c", "d"));
  RequireOk(database->WaitUntilReady("all"));
  const std::string all = lines->all();
  for (const char* expected : {"[cairn] index 'all': ready", "[cairn] index 'all': stale: ",
                               "[cairn] index 'all': building: ", "writes bypassed it"}) {
    BOOST_TEST(absl::StrContains(all, expected), expected << " in " << all);
  }
}

// Messages and the log contain no bytes of rows unless that is allowed.
BOOST_AUTO_TEST_CASE(rows_are_named_if_data_is_allowed_in_errors) {
  for (const bool allowed : {false, true}) {
    const auto lines = std::make_shared<Lines>();
    IndexedDatabase database;
    database.rocksdb_options().info_log = lines;
    database.rocksdb_options().allow_data_in_errors = allowed;
    database.Reopen();
    database.Create("live_number = key:text, include(n = value.field(',', 1):u8)");
    database.Create("live_unique = value:text, unique=true");
    rocksdb::DB* const past_it = database->GetBaseDB();  // which checks nothing
    RequireOk(past_it->Put({}, "secret1", "secret3,4711"));
    RequireOk(past_it->Put({}, "secret2", "secret3,4711"));
    database->Lookup("live_number", "a").status().IgnoreError();
    for (const char* spec : {"number = value.field(',', 1):u8", "uniq = value:text, unique=true"}) {
      RequireOk(database->CreateIndex(spec));
      database->WaitUntilReady(SpecOf(spec).name).IgnoreError();
    }
    for (const IndexInfo& info : database->ListIndexes()) {
      BOOST_TEST_CONTEXT(info.spec.name) {
        BOOST_TEST(IndexStateName(info.state) == "failed");
        const std::string text =
            absl::StrCat(info.status.message(),
                         database->Lookup(info.spec.name, "a").status().message(), lines->all());
        BOOST_TEST(absl::StrContains(text, "secret") == allowed, text);
        BOOST_TEST((absl::StrContains(text, "4711") == allowed), text);
        BOOST_TEST(absl::StrContains(text, "allow_data_in_errors") != allowed, text);
      }
    }
  }
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
