#include "engine/log/log_tail.h"

#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "engine/util/rocksdb_compat.h"
#include "rocksdb/db.h"
#include "rocksdb/write_batch.h"
#include "test/require_ok.h"
#include "test/sanitizer.h"
#include "test/temporary_directory.h"
#include "test/test_random.h"

namespace cairn {
BOOST_AUTO_TEST_SUITE(log_tail_test, *StartsNoThread())
namespace {

constexpr size_t kRecycledFiles[] = {0, 2};

class TailedDatabase {
 public:
  explicit TailedDatabase(size_t recycled_files = 0) {
    rocksdb::Options options;
    options.create_if_missing = true;
    options.write_buffer_size = size_t{1} << 30;
    options.recycle_log_file_num = recycled_files;
    if (recycled_files > 0) {
      options.wal_recovery_mode = rocksdb::WALRecoveryMode::kSkipAnyCorruptedRecords;
    }
    RequireOk(rocksdb::DB::Open(options, path(), Into(&db)));
    tail_ = std::make_unique<LogTail>(db.get(), std::vector{db->DefaultColumnFamily()}, 0,
                                      LogPosition(), LiveLog::Of(db.get()));
  }

  std::string path() const { return directory_ / "db"; }
  LogTail& tail() { return *tail_; }
  void Write(size_t rows, size_t value_bytes = 10) {
    rocksdb::WriteBatch batch;
    for (size_t i = 0; i < rows; ++i) {
      written_.push_back(absl::StrCat("row ", written_.size()));
      RequireOk(batch.Put(written_.back(), std::string(value_bytes, 'v')));
    }
    RequireOk(db->Write({}, &batch));
  }
  // Reads up to a sequence number, in slices of this size, and checks that exactly the rows up to
  // it have been read.
  void ReadTo(rocksdb::SequenceNumber until, size_t slice = SIZE_MAX) {
    while (tail_->sequence() < until) {
      std::vector<RowChanges> changes(1);
      RequireOk(tail_->Read(until, slice, absl::MakeSpan(changes)));
      for (size_t i = 0; i < changes[0].size(); ++i) {
        BOOST_TEST_REQUIRE(changes[0][i].key == written_[read_++]);
      }
      BOOST_TEST_REQUIRE(tail_->sequence() == read_);
    }
    BOOST_TEST_REQUIRE(read_ == until);
  }
  size_t written() const { return written_.size(); }

  std::unique_ptr<rocksdb::DB> db;

 private:
  TemporaryDirectory directory_;
  std::unique_ptr<LogTail> tail_;
  std::vector<std::string> written_;
  size_t read_ = 0;
};

BOOST_DATA_TEST_CASE(each_change_is_read_once_as_the_log_grows_and_its_files_change,
                     kRecycledFiles) {
  TailedDatabase database(sample);
  auto random = TestRandom();
  for (int i = 0; i < 1500; ++i) {
    std::vector<size_t> ends;  // of the batches
    for (uint64_t batches = 1 + random() % 4; batches > 0; --batches) {
      database.Write(1 + random() % 5, random() % 3 == 0 ? random() % 40000 : random() % 200);
      ends.push_back(database.written());
    }
    // Often the log has later records than those that are read.
    database.ReadTo(ends[random() % ends.size()], random() % 3 == 0 ? 1 : SIZE_MAX);
    if (random() % 5 == 0) database.tail().CloseFile();
    if (random() % 5 != 0) database.ReadTo(database.written());
    if (random() % 40 == 0) {
      database.ReadTo(database.written());
      RequireOk(database.db->Flush({}));  // which deletes the log
    }
  }
}

// The number of deleted files that this process keeps open below a directory.
size_t OpenDeletedFiles(const std::string& directory) {
  size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code error;
    const std::string target = std::filesystem::read_symlink(entry.path(), error).string();
    files += absl::StartsWith(target, directory) && absl::EndsWith(target, " (deleted)") ? 1 : 0;
  }
  return files;
}

BOOST_AUTO_TEST_CASE(a_deleted_file_is_let_go_of) {
  TailedDatabase database;
  database.Write(3);
  database.ReadTo(3);
  database.Write(1);
  database.ReadTo(4);
  RequireOk(database.db->Flush({}));  // which deletes the log
  database.tail().CloseFile();
  BOOST_TEST(OpenDeletedFiles(database.path()) == 0u);
  database.Write(1);
  database.ReadTo(5);
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
