#include "engine/live/log_retention.h"

#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "test/engine/indexed_database.h"
#include "test/temporary_directory.h"

namespace cairn {
namespace {

// A database whose log is in many files soon.
class Database {
 public:
  explicit Database(uint64_t archived_megabytes = 0) {
    rocksdb::Options options;
    options.create_if_missing = true;
    options.write_buffer_size = 128 << 10;
    options.WAL_size_limit_MB = archived_megabytes;
    rocksdb::DB* opened = nullptr;
    RequireOk(rocksdb::DB::Open(options, directory_ / "db", &opened));
    db_.reset(opened);
  }
  rocksdb::DB* get() { return db_.get(); }

  void Write(uint64_t bytes) {
    for (uint64_t written = 0; written < bytes; written += 1000) {
      RequireOk(db_->Put({}, absl::StrCat("k", written), std::string(1000, 'v')));
    }
    RequireOk(db_->Flush({}));
  }
  uint64_t LogBytes() const {
    uint64_t bytes = 0;
    for (const auto& file : std::filesystem::directory_iterator(directory_ / "db")) {
      if (file.path().extension() == ".log") bytes += file.file_size();
    }
    return bytes;
  }

 private:
  TemporaryDirectory directory_;
  std::unique_ptr<rocksdb::DB> db_;
};

constexpr uint64_t kMegabyte = 1 << 20;
constexpr uint64_t kMuch = 2 * kMegabyte;

void WaitForRelease() {
  absl::SleepFor(absl::Milliseconds(1100));
}

BOOST_AUTO_TEST_SUITE(log_retention_test)

BOOST_AUTO_TEST_CASE(the_log_is_kept_until_it_was_read) {
  Database db;
  LogRetention retention(db.get(), 100 * kMegabyte);
  db.Write(kMuch);
  BOOST_TEST(!retention.IsOverdue());
  BOOST_TEST(db.LogBytes() >= kMuch);
  WaitForRelease();
  retention.Release(/*log_number=*/1000);
  BOOST_TEST(db.LogBytes() < kMegabyte);
  db.Write(kMuch);  // and on
  BOOST_TEST(db.LogBytes() >= kMuch);
  retention.Close();
  BOOST_TEST(db.LogBytes() < kMegabyte);
  retention.Release(2000);
  BOOST_TEST(!retention.IsOverdue());
}

BOOST_AUTO_TEST_CASE(what_is_held_for_a_build_is_kept_though_others_have_read_it) {
  Database db;
  LogRetention retention(db.get(), 100 * kMegabyte);
  {
    const LogRetention::Hold hold(&retention);
    db.Write(kMuch);
    WaitForRelease();
    retention.Release(1000);
    BOOST_TEST(db.LogBytes() >= kMuch);
    const LogRetention::Hold another(&retention);
  }
  WaitForRelease();
  retention.Release(2000);
  BOOST_TEST(db.LogBytes() < kMegabyte);
}

BOOST_AUTO_TEST_CASE(what_is_held_is_let_go_beyond_the_bound) {
  Database db;
  LogRetention retention(db.get(), kMegabyte);
  const LogRetention::Hold hold(&retention);
  db.Write(kMegabyte / 4);
  BOOST_TEST(!retention.IsOverdue());
  db.Write(kMuch);
  BOOST_TEST(retention.IsOverdue());
  WaitForRelease();
  retention.Release(1000);
  BOOST_TEST(db.LogBytes() < kMegabyte);
  BOOST_TEST(!retention.IsOverdue());
}

BOOST_AUTO_TEST_CASE(a_database_that_archives_its_log_is_left_alone) {
  Database db(/*archived_megabytes=*/100);
  LogRetention retention(db.get(), kMegabyte);
  const LogRetention::Hold hold(&retention);
  db.Write(kMuch);
  BOOST_TEST(db.LogBytes() < kMegabyte);  // moved
  BOOST_TEST(!retention.IsOverdue());
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace cairn
