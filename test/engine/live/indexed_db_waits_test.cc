// What IndexedDB waits for, and what it does not.
#include <atomic>
#include <boost/test/unit_test.hpp>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "cairn/extractor.h"
#include "rocksdb/env.h"
#include "rocksdb/file_system.h"
#include "rocksdb/utilities/stackable_db.h"
#include "rocksdb/write_batch.h"
#include "test/engine/indexed_database.h"
#include "test/engine/live/indexed_db_checks.h"
#include "test/engine/test_database.h"
#include "test/require_ok.h"
#include "test/temporary_directory.h"

namespace cairn {
BOOST_AUTO_TEST_SUITE(indexed_db_waits_test)
namespace {

constexpr char kCity[] = "city = value:text";

// The local file system; reads of the log can be made to fail.
class UnreadableLog final : public rocksdb::FileSystemWrapper {
 public:
  UnreadableLog() : FileSystemWrapper(rocksdb::FileSystem::Default()) {}
  const char* Name() const override { return "UnreadableLog"; }

  rocksdb::IOStatus NewSequentialFile(const std::string& path, const rocksdb::FileOptions& options,
                                      std::unique_ptr<rocksdb::FSSequentialFile>* file,
                                      rocksdb::IODebugContext* d) override {
    if (!absl::EndsWith(path, ".log")) return target()->NewSequentialFile(path, options, file, d);
    if (rocksdb::IOStatus s = Check(); !s.ok()) return s;
    std::unique_ptr<rocksdb::FSSequentialFile> opened;
    rocksdb::IOStatus s = target()->NewSequentialFile(path, options, &opened, d);
    if (s.ok()) *file = std::make_unique<Log>(this, std::move(opened));
    return s;
  }

  std::atomic<bool> fails{false};
  std::atomic<int> failures{0};

 private:
  class Log final : public rocksdb::FSSequentialFileOwnerWrapper {
   public:
    Log(UnreadableLog* files, std::unique_ptr<rocksdb::FSSequentialFile> file)
        : FSSequentialFileOwnerWrapper(std::move(file)), files_(files) {}
    rocksdb::IOStatus Read(size_t n, const rocksdb::IOOptions& options, rocksdb::Slice* result,
                           char* scratch, rocksdb::IODebugContext* d) override {
      if (rocksdb::IOStatus s = files_->Check(); !s.ok()) return s;
      return FSSequentialFileOwnerWrapper::Read(n, options, result, scratch, d);
    }

   private:
    UnreadableLog* const files_;
  };

  rocksdb::IOStatus Check() {
    if (!fails) return rocksdb::IOStatus::OK();
    ++failures;
    return rocksdb::IOStatus::IOError("made to be unreadable");
  }
};

BOOST_AUTO_TEST_CASE(
    a_log_that_cannot_be_read_is_tried_again_with_pauses_and_not_after_the_timeout) {
  const auto files = std::make_shared<UnreadableLog>();
  const std::unique_ptr<rocksdb::Env> env = rocksdb::NewCompositeEnv(files);
  TemporaryDirectory directory;
  rocksdb::Options options;
  options.create_if_missing = true;
  options.env = env.get();
  for (const OnStale policy : {OnStale::kRebuild, OnStale::kKeepStale}) {
    IndexedDBOptions indexed;
    indexed.open.calibration = Calibration::kNone;
    indexed.build.threads = 1;
    indexed.on_stale = policy;
    const auto db = RequireOk(IndexedDB::Open(
        options, directory / (policy == OnStale::kRebuild ? "rebuild" : "keep"), indexed));
    RequireOk(db->CreateIndex(kCity));
    RequireOk(db->WaitUntilReady("city"));
    RequireOk(db->Put({}, "a", "Lisbon"));
    RequireOk(db->WaitUntilReady("city"));

    files->failures = 0;
    files->fails = true;
    RequireOk(db->Put({}, "b", "Lisbon"));
    const absl::Time begin = absl::Now();
    const absl::Status waited = db->WaitUntilReady("city", absl::Milliseconds(1500));
    BOOST_TEST(!waited.ok(), waited);
    BOOST_TEST(absl::Now() - begin < absl::Seconds(20));
    BOOST_TEST(files->failures > 0);
    BOOST_TEST(files->failures < 60);
    BOOST_TEST(!db->WaitUntilReady("city", absl::ZeroDuration()).ok());

    files->fails = false;
    RequireOk(db->WaitUntilReady("city", absl::Seconds(60)));
    BOOST_TEST(RowsOf(db.get(), "city", "Lisbon") == "a b");
    RequireOk(db->Close());
  }
}

// Calls a function once, at the next reading of the sequence number by the thread that set it.
class CalledBetween final : public rocksdb::StackableDB {
 public:
  using StackableDB::StackableDB;
  rocksdb::SequenceNumber GetLatestSequenceNumber() const override {
    if (std::function<void()> call = std::exchange(called, nullptr)) call();
    return StackableDB::GetLatestSequenceNumber();
  }
  static inline thread_local std::function<void()> called;
};

BOOST_AUTO_TEST_CASE(rows_are_looked_up_in_an_index_that_was_rebuilt_as_the_call_began) {
  TemporaryDirectory directory;
  rocksdb::Options options;
  options.create_if_missing = true;
  std::unique_ptr<rocksdb::DB> opened;
  RequireOk(rocksdb::DB::Open(options, directory / "db", Into(&opened)));
  const auto layer =
      std::make_shared<CalledBetween>(std::shared_ptr<rocksdb::DB>(std::move(opened)));
  IndexedDBOptions indexed;
  indexed.open.calibration = Calibration::kNone;
  indexed.build.threads = 1;
  const auto db = RequireOk(IndexedDB::Attach(layer, {}, indexed));
  RequireOk(db->CreateIndex(kCity));
  RequireOk(db->WaitUntilReady("city"));
  RequireOk(db->Put({}, "a", "Lisbon"));
  RequireOk(db->WaitUntilReady("city"));
  bool rebuilt = false;
  CalledBetween::called = [&] {
    std::thread([&] {
      RequireOk(db->RebuildIndex("city"));
      RequireOk(db->WaitUntilReady("city"));
      rebuilt = true;
    }).join();
  };
  const FoundRows rows = RequireOk(db->LookupRows("city", "Lisbon"));
  BOOST_TEST(rebuilt);
  BOOST_REQUIRE_EQUAL(rows.size(), 1u);
  BOOST_TEST(rows[0].primary_key == "a");
  BOOST_TEST(db->ListIndexes()[0].builds == 2u);
  RequireOk(db->Close());
}

// Waits at a row "wait" until it is released.
class WaitingExtractor final : public KeyExtractor {
 public:
  absl::Status Extract(const RowView& row, KeySink* keys) const override {
    if (row.value == "wait" && !released.HasBeenNotified()) {
      if (!waits.HasBeenNotified()) waits.Notify();
      released.WaitForNotification();
    }
    keys->Add(row.value);
    return absl::OkStatus();
  }
  mutable absl::Notification waits;
  absl::Notification released;
};

BOOST_AUTO_TEST_CASE(a_writer_is_delayed_while_another_thread_follows_and_waits_if_too_far_behind) {
  const auto extractor = std::make_shared<WaitingExtractor>();
  RequireOk(RegisterExtractor("delayed_key", extractor));
  IndexedDBOptions options;
  options.follow_interval = absl::ZeroDuration();
  options.max_backlog = absl::Nanoseconds(1);  // 10,000 sequence numbers, which are always allowed
  IndexedDatabase db(options);
  db.Create("x = custom('delayed_key'):text");
  const auto write = [&](int rows) {
    rocksdb::WriteBatch batch;
    for (int i = 0; i < rows; ++i) RequireOk(batch.Put(absl::StrCat("r", i), "x"));
    RequireOk(db->GetBaseDB()->Write({}, &batch));
  };
  rocksdb::WriteOptions at_once;
  at_once.no_slowdown = true;

  RequireOk(db->Put({}, "a", "wait"));
  write(7500);
  RequireOk(db->Put({}, "b", "x"));  // no thread follows
  BOOST_TEST(db->Backlog().waits == 0u);

  absl::StatusOr<FoundKeys> found = absl::UnknownError("no result yet");
  std::thread follower([&] { found = db->Lookup("x", "wait"); });
  extractor->waits.WaitForNotification();
  RequireOk(db->Put({}, "c", "x"));  // delayed, but not until the follower continues
  BOOST_TEST(db->Backlog().waits == 1u);
  RequireOk(db->Put(at_once, "d", "x"));
  BOOST_TEST(db->Backlog().waits == 1u);

  write(5000);
  BOOST_TEST(db->Put(at_once, "e", "x").IsIncomplete());
  std::atomic<bool> written{false};
  rocksdb::Status put;
  std::thread writer([&] {
    put = db->Put({}, "f", "x");
    written = true;
  });
  absl::SleepFor(absl::Milliseconds(50));
  BOOST_TEST(!written);
  extractor->released.Notify();
  writer.join();
  follower.join();
  RequireOk(put);
  RequireOk(found.status());
  BOOST_TEST(found->size() == 1u);
  BOOST_TEST(db->Backlog().waits == 2u);
  BOOST_TEST(db->Backlog().refusals == 1u);
  CheckAgainstDatabase(db.get(), "x", db.family(0));
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
