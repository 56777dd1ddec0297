#pragma once

#include <boost/test/unit_test.hpp>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_format.h"
#include "cairn/indexed_db.h"
#include "cairn/options.h"
#include "cairn/secondary_index.h"
#include "engine/log/anchor.h"
#include "engine/util/rocksdb_compat.h"
#include "rocksdb/utilities/ldb_cmd.h"
#include "test/engine/indexed_database.h"
#include "test/temporary_directory.h"

namespace cairn {

namespace fs = std::filesystem;

// A database that is opened, copied and restored, and that one index, "value:text", follows.
class DatabaseHistory {
 public:
  explicit DatabaseHistory(bool keeps_logs = true,
                           const rocksdb::Comparator* comparator = rocksdb::BytewiseComparator()) {
    options_.comparator = comparator;
    options_.create_if_missing = true;
    options_.create_missing_column_families = true;
    if (keeps_logs) options_.WAL_size_limit_MB = 100;
    OpenDatabase();
  }
  ~DatabaseHistory() { Close(); }

  void OpenDatabase() {
    std::vector<rocksdb::ColumnFamilyHandle*> handles;
    RequireOk(rocksdb::DB::Open(options_, path(), {{"default", options_}, {"users", options_}},
                                &handles, Into(&db_)));
    RequireOk(db_->DestroyColumnFamilyHandle(handles[0]));
    users_ = handles[1];
  }
  void Close() {
    index_ = nullptr;
    if (db_ == nullptr) return;
    if (users_ != nullptr) RequireOk(db_->DestroyColumnFamilyHandle(users_));
    users_ = nullptr;
    db_ = nullptr;
  }
  void Reopen() {
    Close();
    OpenDatabase();
  }
  // Copies the files that would remain if the process were killed now.
  void CopyTo(const std::string& name) {
    fs::remove_all(directory_ / name);
    // No file may be created or deleted during the copy.
    RequireOk(db_->PauseBackgroundWork());
    RequireOk(db_->DisableFileDeletions());
    fs::copy(path(), directory_ / name, fs::copy_options::recursive);
    RequireOk(EndDisabledFileDeletions(db_.get()));
    RequireOk(db_->ContinueBackgroundWork());
  }
  void Restore(const std::string& name) {
    Close();
    fs::remove_all(path());
    fs::copy(directory_ / name, path(), fs::copy_options::recursive);
    OpenDatabase();
  }
  // Closes the database, removes a table file by RocksDB's tool, and opens the database again.
  void LoseFile(uint64_t number) {
    Close();
    const std::unique_ptr<rocksdb::LDBCommand> tool(rocksdb::LDBCommand::InitFromCmdLineArgs(
        {"--db=" + path(), "unsafe_remove_sst_file", std::to_string(number)}, options_,
        rocksdb::LDBOptions(), nullptr));
    tool->Run();
    BOOST_REQUIRE(tool->GetExecuteState().IsSucceed());
    OpenDatabase();
  }
  void MakeUsersAnew() {
    RequireOk(db_->DropColumnFamily(users_));
    RequireOk(db_->DestroyColumnFamilyHandle(users_));
    RequireOk(db_->CreateColumnFamily(options_, "users", &users_));
  }

  std::string path() const { return directory_ / "db"; }
  std::string Beside(const std::string& name) const { return directory_ / name; }
  rocksdb::DB* db() { return db_.get(); }
  rocksdb::ColumnFamilyHandle* users() { return users_; }
  rocksdb::Options& options() { return options_; }

  void Put(std::string_view prefix, int from, int to, std::string_view value,
           const rocksdb::WriteOptions& options = {}) {
    for (int i = from; i < to; ++i) {
      RequireOk(db_->Put(options, family(), absl::StrFormat("%s%03d", prefix, i),
                         absl::StrFormat("%s%03d", value, i)));
    }
  }
  // Switches to the column family "users" for writes and the index.
  void UseUsers() { in_users_ = true; }
  rocksdb::ColumnFamilyHandle* family() { return in_users_ ? users_ : db_->DefaultColumnFamily(); }

  std::unique_ptr<SnapshotSource> Source() {
    auto source = SnapshotSource::FromDb(db_.get(), family());
    RequireOk(source.status());
    return *std::move(source);
  }
  void Build() {
    const auto source = Source();
    BuildOptions options;
    options.threads = 1;
    const IndexSpec spec = SpecOf("value:text");
    RequireOk(SecondaryIndex::Build(*source, spec, Beside("index"), options).status());
    OpenIndex();
  }
  void OpenIndex() {
    OpenOptions options;
    options.calibration = Calibration::kNone;
    auto index = SecondaryIndex::Open(Beside("index"), options);
    RequireOk(index.status());
    index_ = *std::move(index);
  }
  SecondaryIndex& index() { return *index_; }

  absl::Status CatchUp(const CatchUpOptions& options = {}, CatchUpReport* report = nullptr) {
    if (index_ == nullptr) OpenIndex();
    const absl::StatusOr<CatchUpReport> caught_up = index_->CatchUp(*Source(), options);
    if (caught_up.ok() && report != nullptr) *report = *caught_up;
    return caught_up.status();
  }
  void CheckCurrent() {
    RequireOk(CatchUp());
    std::vector<std::string> differences;
    RequireOk(index_->VerifyAgainst(*Source(), 5, &differences));
    for (const std::string& difference : differences) BOOST_ERROR(difference);
  }
  // In any case: the index is rejected, or has the rows of the database.
  void CheckCurrentOrRefused() {
    const absl::Status status = CatchUp();
    BOOST_TEST_MESSAGE(status);
    if (status.ok()) {
      CheckCurrent();
    } else {
      BOOST_TEST(absl::IsFailedPrecondition(status), status);
    }
  }
  // Checks that it is rejected for a reason that contains these words.
  void CheckRefused(std::string_view words) {
    const absl::Status status = CatchUp();
    BOOST_TEST(absl::IsFailedPrecondition(status), status);
    BOOST_TEST(absl::StrContains(status.message(), absl::string_view(words.data(), words.size())),
               status);
    BOOST_TEST(absl::StrContains(status.message(), "rebuild the index"), status);
  }

 private:
  TemporaryDirectory directory_;
  rocksdb::Options options_;
  std::unique_ptr<rocksdb::DB> db_;
  rocksdb::ColumnFamilyHandle* users_ = nullptr;
  bool in_users_ = false;
  std::unique_ptr<SecondaryIndex> index_;
};

}  // namespace cairn
