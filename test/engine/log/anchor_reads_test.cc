// The amount of log that a build and an opening read, since an application waits for it.
#include <atomic>
#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "engine/log/anchor.h"
#include "rocksdb/env.h"
#include "rocksdb/file_system.h"
#include "test/engine/logged_database.h"
#include "test/require_ok.h"
#include "test/sanitizer.h"

namespace cairn {
BOOST_AUTO_TEST_SUITE(anchor_reads_test, *StartsNoThread())
namespace {

// RocksDB's local file system, which counts the bytes read from logs that are not archived.
class CountingFileSystem final : public rocksdb::FileSystemWrapper {
 public:
  CountingFileSystem() : FileSystemWrapper(rocksdb::FileSystem::Default()) {}
  const char* Name() const override { return "CountingFileSystem"; }

  rocksdb::IOStatus NewSequentialFile(const std::string& path, const rocksdb::FileOptions& options,
                                      std::unique_ptr<rocksdb::FSSequentialFile>* file,
                                      rocksdb::IODebugContext* d) override {
    std::unique_ptr<rocksdb::FSSequentialFile> opened;
    rocksdb::IOStatus s = target()->NewSequentialFile(path, options, &opened, d);
    const std::filesystem::path file_path(path);
    const bool counts =
        file_path.extension() == ".log" && file_path.parent_path().filename() != "archive";
    if (s.ok()) *file = std::make_unique<File>(std::move(opened), counts ? &bytes_ : &others_);
    if (s.ok() && purges && !counts && file_path.extension() == ".log") {
      std::filesystem::remove(file_path);
    }
    return s;
  }
  uint64_t TakeBytes() { return bytes_.exchange(0); }
  uint64_t TakeOtherBytes() { return others_.exchange(0); }

  // Whether each archived log file is removed as soon as it has been opened.
  std::atomic<bool> purges{false};

 private:
  class File final : public rocksdb::FSSequentialFileOwnerWrapper {
   public:
    File(std::unique_ptr<rocksdb::FSSequentialFile> file, std::atomic<uint64_t>* bytes)
        : FSSequentialFileOwnerWrapper(std::move(file)), bytes_(*bytes) {}
    rocksdb::IOStatus Read(size_t n, const rocksdb::IOOptions& options, rocksdb::Slice* result,
                           char* scratch, rocksdb::IODebugContext* d) override {
      rocksdb::IOStatus s = FSSequentialFileOwnerWrapper::Read(n, options, result, scratch, d);
      bytes_ += result->size();
      return s;
    }

   private:
    std::atomic<uint64_t>& bytes_;
  };

  std::atomic<uint64_t> bytes_{0};
  std::atomic<uint64_t> others_{0};
};

constexpr uint64_t kLogBytes = 4 << 20;

BOOST_AUTO_TEST_CASE(the_live_log_is_read_once) {
  enum class Before { kNothing, kInArchive, kGone };
  for (const Before before : {Before::kNothing, Before::kInArchive, Before::kGone}) {
    const auto files = std::make_shared<CountingFileSystem>();
    const std::unique_ptr<rocksdb::Env> env = rocksdb::NewCompositeEnv(files);
    rocksdb::Options options = LoggedDatabase::DefaultOptions();
    options.env = env.get();
    if (before == Before::kGone) options.WAL_ttl_seconds = 0;
    LoggedDatabase database(options);
    if (before != Before::kNothing) {
      for (int i = 0; i < 10; ++i) database.Put("older" + std::to_string(i), "value");
      database.Flush();
      if (before == Before::kInArchive) {  // and no file has the position any more
        rocksdb::CompactRangeOptions compact;
        compact.bottommost_level_compaction = rocksdb::BottommostLevelCompaction::kForce;
        RequireOk(database.db()->CompactRange(compact, nullptr, nullptr));
      }
    }
    for (uint64_t i = 0; i < kLogBytes / 1000; ++i) {
      database.Put(std::to_string(i % 100), std::string(1000, 'v'));
    }
    const LoggedDatabase::Point now = database.Now();
    files->TakeBytes();
    const Anchor anchor = RequireOk(
        TakeAnchor(database.db(), database.families()[0], now.sequence, /*read_only=*/false));
    BOOST_TEST(anchor.log.place.offset >= kLogBytes);
    const uint64_t bytes = files->TakeBytes();
    BOOST_TEST_MESSAGE(anchor.ToString() << ", " << bytes << " bytes read");
    BOOST_TEST(bytes >= kLogBytes);
    // In addition, there are buffers for reading where files begin.
    BOOST_TEST(bytes < kLogBytes + kLogBytes / 2);
  }
}

// RocksDB may purge an archived log file at any moment.
BOOST_AUTO_TEST_CASE(the_archived_log_that_proves_a_state_is_read_once) {
  const auto files = std::make_shared<CountingFileSystem>();
  const std::unique_ptr<rocksdb::Env> env = rocksdb::NewCompositeEnv(files);
  rocksdb::Options options = LoggedDatabase::DefaultOptions();
  options.env = env.get();
  LoggedDatabase database(options);
  for (uint64_t i = 0; i < kLogBytes / 1000; ++i) {
    database.Put(std::to_string(i % 100), std::string(1000, 'v'));
  }
  const SequenceNumber then = database.sequence();
  const Anchor taken =
      RequireOk(TakeAnchor(database.db(), database.families()[0], then, /*read_only=*/false));
  database.Flush();
  database.Close();
  database.Open();
  for (const bool purges : {false, true}) {
    files->TakeOtherBytes();
    files->purges = purges;
    Anchor anchor = taken;
    bool proven = false;
    RowsToReadAgain again;
    RequireOk(CheckContinues(then, database.db(), database.families()[0], nullptr, &anchor, &proven,
                             &again));
    BOOST_TEST(proven);
    const uint64_t bytes = files->TakeOtherBytes();
    BOOST_TEST(bytes >= kLogBytes);
    BOOST_TEST(bytes < kLogBytes + kLogBytes / 2);
  }
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
