// Live indexes after failures of their file system.
#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "cairn/secondary_index.h"
#include "index/files/file_system.h"
#include "index/files/index_directory.h"
#include "test/engine/faults/failures.h"
#include "test/engine/faulty_file_system.h"
#include "test/engine/indexed_database.h"
#include "test/engine/test_database.h"
#include "test/require_ok.h"

namespace cairn {
BOOST_AUTO_TEST_SUITE(live_file_system_test)
namespace {

// An IndexedDB without background work whose indexes are on a file system that fails.
struct LiveFixture {
  std::shared_ptr<FaultyFileSystem> files = std::make_shared<FaultyFileSystem>();
  IndexedDatabase db{Options(files)};

  static IndexedDBOptions Options(std::shared_ptr<FaultyFileSystem> files) {
    IndexedDBOptions options;
    options.open.file_system = std::move(files);
    options.open.threads = 1;
    options.compact_threads = 1;
    options.flush_interval = absl::ZeroDuration();
    options.compact_interval = absl::ZeroDuration();
    return options;
  }
  void Write(int count) {
    rocksdb::WriteBatch batch;
    for (int i = 0; i < count; ++i, ++written) {
      RequireOk(batch.Put("row" + std::to_string(written), std::to_string(written % 40) + "|x"));
    }
    RequireOk(db->Write({}, &batch));
  }
  int written = 0;
};

constexpr char kLiveSpec[] = "by_number = value.field('|',0):u32";

BOOST_AUTO_TEST_CASE(storing_and_merging_a_live_index_that_fails_is_made_up_for) {
  for (const Failure failure : kWriteFailures) {
    LiveFixture f;
    f.Write(300);
    f.db.Create(kLiveSpec);
    for (const bool merge : {false, true}) {
      FailAtEachStep(f.files.get(), failure, 1, [&](const auto& break_files) {
        f.Write(5);
        CheckAgainstDatabase(f.db.get(), "by_number", nullptr);
        break_files();
        const absl::Status status = merge ? f.db->CompactIndex("by_number") : f.db->FlushIndexes();
        CheckAgainstDatabase(f.db.get(), "by_number", nullptr);
        const IndexInfo info = f.db.Info("by_number");
        BOOST_TEST((merge ? info.compact_status : info.flush_status) == status);
        BOOST_TEST((info.state == IndexState::kReady));
        f.files->Repair();
        if (!status.ok()) {
          CheckSaysWhy(status, failure, "by_number");
          RequireOk(merge ? f.db->CompactIndex("by_number") : f.db->FlushIndexes());
        }
        CheckAgainstDatabase(f.db.get(), "by_number", nullptr);
        return status;
      });
    }
    f.db.Reopen();
    RequireOk(f.db->WaitUntilReady("by_number"));
    BOOST_TEST(f.db.Info("by_number").builds == 0u);
    CheckAgainstDatabase(f.db.get(), "by_number", nullptr);
  }
}

// An error in the catalog fails the open; an error in an index is soon retried.
BOOST_AUTO_TEST_CASE(an_index_that_cannot_be_read_when_the_database_is_opened_is_read_later) {
  for (const OnStale policy : {OnStale::kKeepStale, OnStale::kRebuild}) {
    LiveFixture f;
    f.Write(100);
    f.db.Create(kLiveSpec);
    f.db.Close();
    const rocksdb::Options& rocksdb_options = f.db.rocksdb_options();
    IndexedDBOptions options = f.db.options();
    options.on_stale = policy;
    int healed = 0;
    const Failure failure = {Fault::kReadError, Lasting::kOnce};
    FailAtEachStep(f.files.get(), failure, 1, [&](const auto& break_files) {
      std::vector<rocksdb::ColumnFamilyHandle*> handles;
      break_files();
      const auto db = IndexedDB::Open(rocksdb_options, f.db.path(),
                                      {{"default", rocksdb_options}, {"a", rocksdb_options}},
                                      &handles, options);
      if (!db.ok()) return db.status();
      RequireOk((*db)->WaitUntilReady("by_number", absl::Seconds(30)));
      f.files->Repair();
      healed += f.files->failed() > 0 ? 1 : 0;
      RequireOk((*db)->Put({}, absl::StrCat("more", healed), "7|x"));
      CheckAgainstDatabase(db->get(), "by_number", nullptr);
      BOOST_TEST((*db)->ListIndexes().at(0).builds == 0u);
      for (rocksdb::ColumnFamilyHandle* handle : handles) {
        RequireOk((*db)->DestroyColumnFamilyHandle(handle));
      }
      return absl::OkStatus();
    });
    BOOST_TEST(healed > 0);
  }
}

BOOST_AUTO_TEST_CASE(creating_an_index_that_fails_is_tried_again) {
  // A failed attempt waits half a second for the next one, so only some steps are tested.
  constexpr uint64_t kStride = 5;
  for (const Failure failure :
       {Failure{Fault::kWriteError, Lasting::kOnce}, Failure{Fault::kNoSpace, Lasting::kOnce}}) {
    LiveFixture f;
    f.Write(300);
    FailAtEachStep(f.files.get(), failure, kStride, [&](const auto& break_files) {
      break_files();
      absl::Status status = f.db->CreateIndex(SpecOf(kLiveSpec));
      if (!status.ok()) {
        CheckSaysWhy(status, failure, f.db.path() + ".indexes");
        BOOST_TEST(f.db->ListIndexes().empty());
        RequireOk(f.db->CreateIndex(SpecOf(kLiveSpec)));
      }
      RequireOk(f.db->WaitUntilReady("by_number", absl::Seconds(30)));
      f.files->Repair();
      f.Write(5);
      CheckAgainstDatabase(f.db.get(), "by_number", nullptr);
      f.db.Reopen();
      RequireOk(f.db->WaitUntilReady("by_number", absl::Seconds(30)));
      BOOST_TEST(f.db.Info("by_number").builds == 0u);
      CheckAgainstDatabase(f.db.get(), "by_number", nullptr);
      RequireOk(f.db->DropIndex("by_number"));
      return status;
    });
  }
}

BOOST_AUTO_TEST_CASE(an_index_that_cannot_be_removed_is_dropped_again) {
  for (const Failure failure : {kWriteFailures[0], kWriteFailures[1]}) {
    LiveFixture f;
    f.Write(300);
    int attempts = 0;
    FailAtEachStep(f.files.get(), failure, 1, [&](const auto& break_files) {
      f.db.Create(kLiveSpec);
      break_files();
      const absl::Status status = f.db->DropIndex("by_number");
      f.files->Repair();
      if (!status.ok()) {
        CheckSaysWhy(status, failure, f.db.path() + ".indexes");
        // It is unchanged, or kFailed because it was partly removed.
        if (f.db.Info("by_number").state == IndexState::kReady) {
          CheckAgainstDatabase(f.db.get(), "by_number", nullptr);
        } else {
          BOOST_TEST((f.db.Info("by_number").state == IndexState::kFailed));
        }
        if (++attempts % 2 == 0) {
          // The next open completes the removal, unless nothing was removed yet.
          f.db.Reopen();
          if (!f.db->ListIndexes().empty()) {
            RequireOk(f.db->WaitUntilReady("by_number"));
            CheckAgainstDatabase(f.db.get(), "by_number", nullptr);
            RequireOk(f.db->DropIndex("by_number"));
          }
        } else {
          RequireOk(f.db->DropIndex("by_number"));
        }
      }
      BOOST_TEST(f.db->ListIndexes().empty());
      BOOST_TEST(std::filesystem::is_empty(f.db.path() + ".indexes"));
      return status;
    });
  }
}

template <typename Condition>
bool WaitFor(const Condition& condition) {
  const absl::Time deadline = absl::Now() + absl::Seconds(60);
  while (!condition()) {
    if (absl::Now() > deadline) return false;
    absl::SleepFor(absl::Milliseconds(5));
  }
  return true;
}

BOOST_AUTO_TEST_CASE(a_disk_that_is_full_for_a_time_costs_a_live_index_nothing_but_time) {
  LiveFixture f;
  f.db.Close();
  f.db.options().flush_interval = absl::Milliseconds(20);
  f.db.options().compact_interval = absl::Milliseconds(20);
  f.db.Open();
  f.Write(1000);
  f.db.Create(kLiveSpec);
  f.files->Break(Fault::kNoSpace, 1, Lasting::kUntilRepaired);
  f.Write(20000);  // so that a merge pays
  BOOST_TEST(WaitFor([&] {
    const IndexInfo info = f.db.Info("by_number");
    return absl::IsResourceExhausted(info.flush_status) &&
           absl::IsResourceExhausted(info.compact_status);
  }));
  BOOST_TEST((f.db.Info("by_number").state == IndexState::kReady));
  f.Write(100);
  CheckAgainstDatabase(f.db.get(), "by_number", nullptr);
  f.files->Repair();
  BOOST_TEST(WaitFor([&] {
    const IndexInfo info = f.db.Info("by_number");
    return info.flush_status.ok() && info.compact_status.ok() && info.compactions > 0;
  }));
  CheckAgainstDatabase(f.db.get(), "by_number", nullptr);
  f.db.Reopen();
  RequireOk(f.db->WaitUntilReady("by_number"));
  BOOST_TEST(f.db.Info("by_number").builds == 0u);
  CheckAgainstDatabase(f.db.get(), "by_number", nullptr);
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
