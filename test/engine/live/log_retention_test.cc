#include "engine/live/log_retention.h"

#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <system_error>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "engine/log/wal_files.h"
#include "engine/log/wal_links.h"
#include "engine/util/rocksdb_compat.h"
#include "test/engine/indexed_database.h"
#include "test/sanitizer.h"
#include "test/temporary_directory.h"

namespace cairn {
BOOST_AUTO_TEST_SUITE(log_retention_test)
namespace {

// A database whose log soon has many files.
class Database {
 public:
  explicit Database(uint64_t archived_megabytes = 0) {
    rocksdb::Options options;
    options.create_if_missing = true;
    options.write_buffer_size = 128 << 10;
    options.WAL_size_limit_MB = archived_megabytes;
    RequireOk(rocksdb::DB::Open(options, directory_ / "db", Into(&db_)));
  }
  rocksdb::DB* get() { return db_.get(); }
  std::string path() const { return directory_ / "db"; }

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

uint64_t BytesIn(const std::string& directory) {
  uint64_t sum = 0;
  for (const auto& file : std::filesystem::directory_iterator(directory)) {
    std::error_code gone;
    const auto size = std::filesystem::file_size(file, gone);
    if (!gone) sum += size;
  }
  return sum;
}

// Checks that the database at `path` soon has only live files. While there are no writes, obsolete
// files may remain for half a minute after the last removal.
void CheckObsoleteFilesGo(rocksdb::DB* db, const std::string& path) {
  uint64_t live = 0;
  BOOST_REQUIRE(db->GetIntProperty("rocksdb.live-sst-files-size", &live));
  const uint64_t most = live + (4 << 20);
  const absl::Time end = absl::Now() + absl::Minutes(1);
  while (BytesIn(path) > most && absl::Now() < end) absl::SleepFor(absl::Milliseconds(100));
  BOOST_TEST(BytesIn(path) <= most, live << " bytes are live");
}

BOOST_AUTO_TEST_CASE(the_log_is_kept_until_it_was_read) {
  Database db;
  LogRetention retention(db.get(), 100 * kMegabyte);
  db.Write(kMuch);
  BOOST_TEST(!retention.CheckBounds());
  BOOST_TEST(db.LogBytes() >= kMuch);
  WaitForRelease();
  retention.Release(/*log_number=*/1000);
  BOOST_TEST(db.LogBytes() < kMegabyte);
  db.Write(kMuch);  // and continues
  BOOST_TEST(db.LogBytes() >= kMuch);
  retention.Close();
  BOOST_TEST(db.LogBytes() < kMegabyte);
  retention.Release(2000);
  BOOST_TEST(!retention.CheckBounds());
}

BOOST_AUTO_TEST_CASE(what_is_held_for_a_build_is_kept_though_others_have_read_it) {
  Database db;
  LogRetention retention(db.get(), 100 * kMegabyte);
  {
    const LogRetention::Hold hold(&retention, LogRetention::kNoBound);
    db.Write(kMuch);
    WaitForRelease();
    retention.Release(1000);
    BOOST_TEST(db.LogBytes() >= kMuch);
    const LogRetention::Hold another(&retention, LogRetention::kNoBound);
  }
  WaitForRelease();
  retention.Release(2000);
  BOOST_TEST(db.LogBytes() < kMegabyte);
}

BOOST_AUTO_TEST_CASE(what_is_held_is_let_go_beyond_its_bound) {
  Database db;
  LogRetention retention(db.get(), kMegabyte);
  const LogRetention::Hold hold(&retention, kMegabyte);
  db.Write(kMegabyte / 4);
  BOOST_TEST(!retention.CheckBounds());
  BOOST_TEST(!hold.exceeded());
  db.Write(kMuch);
  BOOST_TEST(retention.CheckBounds());
  BOOST_TEST(hold.exceeded());
  WaitForRelease();
  retention.Release(1000);
  BOOST_TEST(db.LogBytes() < kMegabyte);
  BOOST_TEST(!retention.CheckBounds());
}

BOOST_AUTO_TEST_CASE(a_database_that_archives_its_log_is_left_alone_until_something_is_held) {
  Database db(/*archived_megabytes=*/100);
  LogRetention retention(db.get(), kMegabyte);
  db.Write(kMuch);
  BOOST_TEST(db.LogBytes() < kMegabyte);  // moved
  BOOST_TEST(!retention.CheckBounds());
  const LogRetention::Hold hold(&retention, kMegabyte);
  db.Write(kMegabyte / 4);
  BOOST_TEST(!retention.CheckBounds());
  BOOST_TEST(!hold.exceeded());
  db.Write(kMuch);
  BOOST_TEST(db.LogBytes() >= kMuch);
  BOOST_TEST(!retention.CheckBounds());
  BOOST_TEST(hold.exceeded());
}

// Sequence numbers of all records of readable files, from the file `from` on.
std::vector<SequenceNumber> ReadRecords(rocksdb::DB* db, uint64_t from) {
  std::vector<SequenceNumber> numbers;
  for (const WalFile& file : RequireOk(ListWalFiles(db))) {
    if (file.number < from) continue;
    const auto reader = RequireOk(OpenWalFile(db, file));
    while (reader->Next()) numbers.push_back(reader->sequence());
  }
  return numbers;
}

BOOST_AUTO_TEST_CASE(what_was_not_read_yet_stays_readable_though_it_is_let_go) {
  Database db;
  LogRetention retention(db.get(), 100 * kMegabyte);
  db.Write(kMuch);
  WaitForRelease();
  const uint64_t first = RequireOk(ListWalFiles(db.get())).back().number;
  db.Write(kMuch);  // obsolete as soon as it is released, and not read
  const std::vector<SequenceNumber> before = ReadRecords(db.get(), first);
  BOOST_TEST(before.size() > 1000u);
  retention.Release(first);
  BOOST_TEST(db.LogBytes() < kMegabyte);
  BOOST_CHECK(ReadRecords(db.get(), first) == before);
  WaitForRelease();
  const uint64_t last = RequireOk(ListWalFiles(db.get())).back().number;
  retention.Release(last);
  const std::vector<WalFile> files = RequireOk(ListWalFiles(db.get()));
  BOOST_TEST(files.front().number == last);
  WaitForRelease();
  retention.Release(0);
  for (const auto& file : std::filesystem::directory_iterator(db.path())) {
    BOOST_TEST(!file.is_directory(), file.path());  // no links remain
  }
}

BOOST_AUTO_TEST_CASE(links_of_a_process_that_was_killed_are_removed) {
  Database db;
  const std::string links = WalLinkDirectory(db.path(), "killed");
  std::filesystem::create_directory(links);
  std::ofstream(links + "/000099.log") << "no log";
  BOOST_TEST(RequireOk(ListWalFiles(db.get())).back().number < 99u);
  const LogRetention retention(db.get(), kMegabyte);
  BOOST_TEST(!std::filesystem::exists(links));
}

BOOST_AUTO_TEST_CASE(obsolete_files_go_though_nobody_follows) {
  TemporaryDirectory directory;
  const std::string path = directory / "db";
  rocksdb::Options options;
  options.create_if_missing = true;
  options.write_buffer_size = 1 << 20;
  std::unique_ptr<rocksdb::DB> opened;
  RequireOk(rocksdb::DB::Open(options, path, Into(&opened)));
  IndexedDBOptions indexed;
  indexed.open.calibration = Calibration::kNone;
  indexed.follow_interval = absl::ZeroDuration();
  indexed.log_retention_megabytes = 1;
  const auto db = IndexedDB::Attach(std::move(opened), {}, indexed);
  RequireOk(db.status());
  RequireOk((*db)->CreateIndex(SpecOf("all = value:text")));
  RequireOk((*db)->WaitUntilReady("all"));
  for (int round = 0; round < 10; ++round) {
    Fill(db->get(), FewerUnderTsan(50000, 4), absl::StrCat("v", round));
    RequireOk((*db)->CompactRange({}, nullptr, nullptr));
  }
  CheckObsoleteFilesGo((*db)->GetRootDB(), path);
  BOOST_TEST((*db)->ListIndexes()[0].builds == 1u);
  CheckAgainstDatabase(db->get(), "all", nullptr);
}

// Without an index nothing is read: obsolete files are deleted after half a minute.
BOOST_AUTO_TEST_CASE(obsolete_files_go_though_there_is_no_index) {
  TemporaryDirectory directory;
  const std::string path = directory / "db";
  rocksdb::Options options;
  options.create_if_missing = true;
  options.write_buffer_size = 1 << 20;
  std::unique_ptr<rocksdb::DB> opened;
  RequireOk(rocksdb::DB::Open(options, path, Into(&opened)));
  IndexedDBOptions indexed;
  indexed.follow_interval = absl::ZeroDuration();
  const auto db = RequireOk(IndexedDB::Attach(std::move(opened), {}, indexed));
  for (int round = 0; round < 10; ++round) {
    Fill(db.get(), 50000, absl::StrCat("v", round));
    RequireOk(db->CompactRange({}, nullptr, nullptr));
  }
  BOOST_TEST(BytesIn(path) > 10 << 20);  // otherwise the test shows nothing
  CheckObsoleteFilesGo(db->GetRootDB(), path);
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
