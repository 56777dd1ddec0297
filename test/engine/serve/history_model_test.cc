// Random histories of a database and an index of it: writes, also past the log, ingestions,
// flushes, compactions, killed processes, lost ends of logs, restored copies, recreated column
// families. After each step the index has the results of a scan, or rejects the database.
//
// For example, CAIRN_TEST_SECONDS=3600 cairn_engine_test --run_test=history_model_test runs for an
// hour.
#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "cairn/indexed_db.h"
#include "cairn/options.h"
#include "cairn/secondary_index.h"
#include "cairn/snapshot_source.h"
#include "engine/util/rocksdb_compat.h"
#include "rocksdb/sst_file_writer.h"
#include "test/engine/indexed_database.h"
#include "test/temporary_directory.h"
#include "test/test_random.h"

namespace cairn {
BOOST_AUTO_TEST_SUITE(history_model_test)
namespace {

namespace fs = std::filesystem;

constexpr size_t kCopies = 3;

// RocksDB detects that files lack data of the log's lost end, and no longer opens the database.
struct DatabaseIsLost {};

class World {
 public:
  World(uint64_t salt, bool live, bool keeps_logs, bool is_reverse)
      : salt_(salt), random_(TestRandom(salt)), live_(live) {
    options_.create_if_missing = true;
    options_.create_missing_column_families = true;
    options_.write_buffer_size = 64 << 10;
    if (keeps_logs) options_.WAL_size_limit_MB = 1000;
    if (is_reverse) options_.comparator = rocksdb::ReverseBytewiseComparator();
    kept_ = keeps_logs;
    Open();
  }
  ~World() { Close(); }

  void Run(int steps) {
    try {
      for (int i = 0; i < steps; ++i) {
        Step();
        if (Chance(3)) Check();
      }
      Check();
    } catch (const DatabaseIsLost&) {
    }
  }
  int rebuilt() const { return rebuilt_; }
  int followed() const { return followed_; }

 private:
  uint64_t Below(uint64_t n) { return random_() % n; }
  bool Chance(uint64_t n) { return Below(n) == 0; }
  void Tell(const std::string& what) { absl::StrAppend(&story_, what, "; "); }

  std::string path() const { return directory_ / "db"; }
  std::string copy(size_t i) const { return directory_ / absl::StrCat("copy", i); }
  std::string index_path() const { return directory_ / "index"; }
  rocksdb::DB* db() { return live_ ? static_cast<rocksdb::DB*>(indexed_.get()) : plain_.get(); }

  void Open() {
    const std::vector<rocksdb::ColumnFamilyDescriptor> families = {{"default", options_},
                                                                   {"users", options_}};
    if (live_) {
      IndexedDBOptions options;
      options.open.calibration = Calibration::kNone;
      options.open.threads = options.build.threads = options.compact_threads = 1;
      options.index_directory = directory_ / "indexes";
      options.flush_interval = absl::ZeroDuration();
      if (!kept_) options.log_retention_megabytes = 0;
      auto opened = IndexedDB::Open(options_, path(), families, &handles_, options);
      if (absl::IsDataLoss(opened.status())) throw DatabaseIsLost();
      RequireOk(opened.status());
      indexed_ = *std::move(opened);
      if (indexed_->ListIndexes().empty()) {
        RequireOk(indexed_->CreateIndex(SpecOf("ix = value:text, cf=users"), handles_[1]));
      }
    } else {
      const rocksdb::Status status =
          rocksdb::DB::Open(options_, path(), families, &handles_, Into(&plain_));
      if (status.IsCorruption()) throw DatabaseIsLost();
      RequireOk(status);
    }
  }
  void Close() {
    index_ = nullptr;
    if (db() == nullptr) return;
    for (rocksdb::ColumnFamilyHandle* handle : handles_) {
      RequireOk(db()->DestroyColumnFamilyHandle(handle));
    }
    handles_.clear();
    indexed_ = nullptr;
    plain_ = nullptr;
  }

  void Write(const rocksdb::WriteOptions& options) {
    rocksdb::WriteBatch batch;
    for (uint64_t n = 1 + Below(20); n > 0; --n) {
      rocksdb::ColumnFamilyHandle* const family = handles_[Chance(5) ? 0 : 1];
      const std::string key = absl::StrFormat("k%03d", Below(300));
      if (Chance(5)) {
        RequireOk(batch.Delete(family, key));
      } else if (Chance(40)) {
        const std::string other = absl::StrFormat("k%03d", Below(300));
        const auto [begin, end] = InOrder(key, other);
        RequireOk(batch.DeleteRange(family, begin, end));
      } else {
        RequireOk(batch.Put(family, key, absl::StrFormat("v%02d", Below(50))));
      }
    }
    RequireOk(db()->Write(options, &batch));
  }

  std::pair<std::string, std::string> InOrder(std::string a, std::string b) const {
    if (options_.comparator->Compare(a, b) > 0) std::swap(a, b);
    return {std::move(a), std::move(b)};
  }

  void Ingest() {
    rocksdb::SstFileWriter writer(rocksdb::EnvOptions(), options_);
    const std::string file = directory_ / "ingested.sst";
    RequireOk(writer.Open(file));
    // over existing rows, or next to them
    const uint64_t first = Chance(2) ? 0 : 300 + 10 * Below(50);
    std::vector<std::string> keys;
    for (uint64_t i = 0; i < 10; ++i) keys.push_back(absl::StrFormat("k%03d", first + i));
    if (options_.comparator != rocksdb::BytewiseComparator())
      std::reverse(keys.begin(), keys.end());
    for (const std::string& key : keys) {
      RequireOk(writer.Put(key, absl::StrFormat("i%02d", Below(50))));
    }
    RequireOk(writer.Finish());
    // Sometimes through the IndexedDB's own database.
    rocksdb::DB* const to = live_ && Chance(2) ? indexed_->GetBaseDB() : db();
    past_ |= live_ && to != db();
    RequireOk(to->IngestExternalFile(handles_[1], {file}, {}));
  }

  // The files that a killed process leaves, possibly with a truncated log.
  void Kill(bool loses_end) {
    CopyDatabase(directory_ / "killed");
    if (live_) CopyFiles(directory_ / "indexes", directory_ / "killed.indexes");
    Close();
    Replace(directory_ / "killed", path());
    if (live_) Replace(directory_ / "killed.indexes", directory_ / "indexes");
    if (loses_end) CutLog();
    Open();
  }
  void CutLog() {
    fs::path newest;
    for (const auto& file : fs::directory_iterator(path())) {
      if (file.path().extension() == ".log" && file.file_size() > 0 && file.path() > newest) {
        newest = file.path();
      }
    }
    if (newest.empty()) return;
    const uint64_t size = fs::file_size(newest);
    fs::resize_file(newest, size - Below(std::min<uint64_t>(size, 2000) + 1));
  }
  // Files may change during the copy: repeats until none did.
  void CopyFiles(const std::string& from, const std::string& to) {
    std::error_code changed;
    do {
      fs::remove_all(to);
      changed.clear();
      if (fs::exists(from)) fs::copy(from, to, fs::copy_options::recursive, changed);
    } while (changed);
  }
  // Copies the database's files, while none is changed, deleted or archived.
  void CopyDatabase(const std::string& to) {
    rocksdb::DB* const root = db()->GetRootDB();
    RequireOk(root->PauseBackgroundWork());
    RequireOk(root->DisableFileDeletions());
    rocksdb::VectorLogPtr logs;
    RequireOk(root->GetSortedWalFiles(logs));  // waits for files that are being deleted
    CopyFiles(path(), to);
    RequireOk(EndDisabledFileDeletions(root));
    RequireOk(root->ContinueBackgroundWork());
  }
  void Replace(const std::string& from, const std::string& to) {
    fs::remove_all(to);
    if (fs::exists(from)) fs::rename(from, to);
  }

  void Step() {
    const uint64_t dice = Below(100);
    if (dice < 50) {
      Tell("write");
      Write({});
    } else if (dice < 54) {
      Tell("flush");
      RequireOk(db()->Flush({}, handles_));
    } else if (dice < 57) {
      Tell("compact");
      RequireOk(db()->CompactRange({}, handles_[1], nullptr, nullptr));
    } else if (dice < 66) {
      Tell("reopen");
      Close();
      Open();
    } else if (dice < 69) {
      Tell("kill");
      Kill(/*loses_end=*/false);
    } else if (dice < 73) {
      Tell("lose the log's end");
      Kill(/*loses_end=*/true);
      disturbed_ = true;
    } else if (dice < 78) {
      Tell("copy");
      CopyDatabase(copy(Below(kCopies)));
    } else if (dice < 82) {
      const std::string from = copy(Below(kCopies));
      if (!fs::exists(from)) return;
      Tell("restore");
      Close();
      CopyFiles(from, path());
      Open();
      disturbed_ = true;
    } else if (dice < 85) {
      Tell("write past the log");
      rocksdb::WriteOptions options;
      options.disableWAL = true;
      Write(options);
      disturbed_ = has_gaps_ = true;
    } else if (dice < 88) {
      Tell("ingest");
      Ingest();
      disturbed_ = has_gaps_ = true;
    } else if (dice < 90) {
      Tell("recreate the column family");
      RequireOk(db()->DropColumnFamily(handles_[1]));
      RequireOk(db()->DestroyColumnFamilyHandle(handles_[1]));
      RequireOk(db()->CreateColumnFamily(options_, "users", &handles_[1]));
      if (live_) {  // its index has failed permanently
        Close();
        Open();
      }
      disturbed_ = true;
    } else if (!live_ && index_ != nullptr) {
      if (dice < 95) {
        Tell("merge");
        RequireOk(index_->Compact());
      } else {
        Tell("open the index again");
        index_ = nullptr;
      }
    } else if (live_) {
      if (dice < 95) {
        Tell("store");
        indexed_->FlushIndexes().IgnoreError();
      } else {
        Tell("merge");
        indexed_->CompactIndex("ix").IgnoreError();
      }
    }
  }

  void Check() {
    Tell("check");
    live_ ? CheckLive() : CheckOffline();
  }

  void CheckLive() {
    if (past_) {  // files ingested past the object are detected at the next opening
      Close();
      Open();
      past_ = false;
    }
    const absl::Status ready = indexed_->WaitUntilReady("ix", absl::Seconds(60));
    for (const IndexInfo& info : indexed_->ListIndexes()) {
      if (!ready.ok()) {
        BOOST_FAIL("history " << salt_ << ": " << story_ << "\n" << ready << "\n" << info.status);
      }
      (info.builds > 0 ? rebuilt_ : followed_) += 1;
    }
    const auto pinned = indexed_->Pin("ix");
    RequireOk(pinned.status());
    const auto source = SnapshotSource::FromDb(indexed_->GetBaseDB(), handles_[1]);
    RequireOk(source.status());
    CheckSame(**pinned, **source);
  }

  void CheckOffline() {
    OpenOptions open;
    open.calibration = Calibration::kNone;
    open.threads = 1;
    const auto source = SnapshotSource::FromDb(db(), handles_[1]);
    RequireOk(source.status());
    absl::Status caught_up = absl::NotFoundError("there is no index yet");
    if (index_ == nullptr && fs::exists(index_path())) {
      auto opened = SecondaryIndex::Open(index_path(), open);
      RequireOk(opened.status());
      index_ = *std::move(opened);
    }
    CatchUpOptions options;
    options.durable = !Chance(3);
    if (index_ != nullptr) {
      caught_up = index_->CatchUp(**source, options).status();
      // Files prove changes that are in no log, until they are compacted.
      const bool must_follow = kept_ && !disturbed_ && !has_gaps_;
      if (must_follow && !caught_up.ok()) {
        BOOST_FAIL("history " << salt_ << ": " << story_ << "\n" << caught_up);
      }
    }
    if (caught_up.ok()) {
      ++followed_;
      // Until then, possibly only table files prove the state of a build.
      if (options.durable) disturbed_ = false;
    } else {
      Tell(absl::StrCat("build (", caught_up.message(), ")"));
      ++rebuilt_;
      index_ = nullptr;
      BuildOptions build;
      build.threads = 1;
      auto built = SecondaryIndex::Build(**source, SpecOf("value:text"), index_path(), build);
      RequireOk(built.status());
      index_ = *std::move(built);
    }
    CheckSame(*index_, **source);
  }

  void CheckSame(const SecondaryIndex& index, const SnapshotSource& source) {
    std::vector<std::string> differences;
    RequireOk(index.VerifyAgainst(source, 5, &differences));
    if (differences.empty()) return;
    BOOST_FAIL("history " << salt_ << ": " << story_ << "\n" << differences[0]);
  }

  TemporaryDirectory directory_;
  const uint64_t salt_;
  std::mt19937_64 random_;
  const bool live_;
  bool kept_ = false;
  bool has_gaps_ = false;   // rows were written past the log
  bool disturbed_ = false;  // in a way that may make the index unable to follow
  bool past_ = false;       // files were ingested past the IndexedDB
  rocksdb::Options options_;
  std::unique_ptr<rocksdb::DB> plain_;
  std::unique_ptr<IndexedDB> indexed_;
  std::vector<rocksdb::ColumnFamilyHandle*> handles_;  // "default" and "users", which is indexed
  std::unique_ptr<SecondaryIndex> index_;
  std::string story_;
  int rebuilt_ = 0;
  int followed_ = 0;
};

void RunWorlds(bool live) {
  const char* const seconds = std::getenv("CAIRN_TEST_SECONDS");
  const auto end = std::chrono::steady_clock::now() +
                   std::chrono::duration<double>(seconds != nullptr ? std::atof(seconds)
                                                 : live             ? 8
                                                                    : 5);
  int rebuilt = 0, followed = 0;
  uint64_t salt = live ? 1000000 : 0;
  do {
    World world(salt, live, /*keeps_logs=*/salt % 3 != 0, /*is_reverse=*/salt % 2 == 1);
    world.Run(40);
    rebuilt += world.rebuilt();
    followed += world.followed();
    ++salt;
  } while (std::chrono::steady_clock::now() < end);
  BOOST_TEST_MESSAGE(salt << " histories, " << followed << " times followed, " << rebuilt
                          << " times rebuilt");
  BOOST_TEST(rebuilt > 0);
  BOOST_TEST(followed > 0);
}

BOOST_AUTO_TEST_CASE(an_index_that_is_caught_up_is_right_or_refuses) {
  RunWorlds(/*live=*/false);
}

BOOST_AUTO_TEST_CASE(a_live_index_is_right_whatever_became_of_its_database) {
  RunWorlds(/*live=*/true);
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
