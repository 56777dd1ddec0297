// A machine with an IndexedDB stops at random instants: its process is killed or its power lost.
// The database and its indexes agree with one another and have all durable writes, and no other
// files remain. CAIRN_TEST_POWER_LOSSES is the number of stops, 40 by default.
#include <algorithm>
#include <atomic>
#include <boost/test/unit_test.hpp>
#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "cairn/indexed_db.h"
#include "engine/util/rocksdb_compat.h"
#include "engine/util/rocksdb_file_system.h"
#include "engine/util/status.h"
#include "index/files/index_directory.h"
#include "rocksdb/env.h"
#include "test/engine/faults/crash_database.h"
#include "test/engine/faults/crash_file_system.h"
#include "test/engine/faults/crash_indexes.h"
#include "test/engine/faults/crash_model.h"
#include "test/require_ok.h"
#include "test/sanitizer.h"
#include "test/test_random.h"

namespace cairn {
BOOST_AUTO_TEST_SUITE(power_loss_test)
namespace {

// Stops per database; then a new one starts.
constexpr int kStopsOfADatabase = FewerUnderTsan(10, 3);
// The maximum number of operations of a life.
constexpr uint64_t kLongestLife = 3000;
constexpr char kPath[] = "/db";
constexpr char kIndexPath[] = "/db.indexes";
constexpr const char* kLasting[] = {"number", "word", "code"};

int StopsToMake(int by_default) {
  const char* given = std::getenv("CAIRN_TEST_POWER_LOSSES");
  return given != nullptr ? std::atoi(given) : by_default;
}

// Operations that a stop can interrupt.
enum Phase { kOpening, kBuilding, kStoring, kMerging, kDropping, kPhases };
constexpr const char* kPhaseNames[] = {"opening", "building", "storing", "merging", "dropping"};

// The results that a process saw before it ended.
struct Life {
  std::vector<bool> committed;          // of each write, in order
  size_t durable = 0;                   // the number of writes that survive a power loss
  SequenceNumber opened = 0;            // the database's after it was opened
  SequenceNumber stored = 0;            // every lasting index was stored with at least this one
  std::map<std::string, bool> indexes;  // whether each exists; without those in doubt
  bool failed = false;                  // some operation failed on purpose
  std::string error;                    // the first unexpected error
  bool under_way[kPhases] = {};
};

// A database, its expected contents, and the results of its stops.
class Course {
 public:
  Course(std::mt19937_64* random, std::map<std::string, int>* hits, bool has_unlogged)
      : random_(*random),
        hits_(*hits),
        has_unlogged_(has_unlogged),
        env_(rocksdb::NewCompositeEnv(files_)),
        index_files_(FileSystemOf(files_)) {
    std::vector<rocksdb::ColumnFamilyHandle*> families;
    std::unique_ptr<rocksdb::DB> db;
    const rocksdb::Options options = Options();
    RequireOk(rocksdb::DB::Open(options, kPath, {{"default", options}, {"a", options}}, &families,
                                Into(&db)));
    for (rocksdb::ColumnFamilyHandle* family : families) {
      RequireOk(db->DestroyColumnFamilyHandle(family));
    }
    db.reset();
    files_->SyncAll();
  }

  void StopOnce() {
    const uint64_t seed = random_() >> 1;
    // Half of them early, when indexes are opened.
    const uint64_t longest = random_() % 2 == 0 ? kLongestLife : kLongestLife / 10;
    files_->StopAfter(1 + random_() % longest);
    if (random_() % 4 == 0) files_->FailSync(1 + random_() % 100, kIndexPath);
    const CrashFileSystem::End end =
        random_() % 4 == 0 ? CrashFileSystem::End::kKilled : CrashFileSystem::End::kPowerLost;
    Life life;
    LiveUntilStopped(seed, &life);
    BOOST_REQUIRE_MESSAGE(life.error.empty(), life.error);
    calls_ += life.committed.size();
    files_->Restart(end, &random_);
    ++hits_[end == CrashFileSystem::End::kKilled ? "killed" : "power lost"];
    if (life.failed) ++hits_["a sync failed"];
    if (!life.committed.empty()) ++hits_["writing"];
    for (int phase = 0; phase < kPhases; ++phase) {
      if (life.under_way[phase]) ++hits_[kPhaseNames[phase]];
    }
    Examine(seed, life, end);
  }
  uint64_t calls() const { return calls_; }

 private:
  rocksdb::Options Options() const { return CrashDatabase::RocksDbOptions(env_.get()); }

  // Whether the operation succeeded before the machine stopped. Only syncs that fail on purpose may
  // fail.
  bool Done(const absl::Status& status, Life* life) {
    if (status.ok()) return !files_->stopped();
    const std::lock_guard<std::mutex> lock(life_mutex_);
    const bool is_excused = absl::StrContains(status.message(), "made to fail to sync");
    if (has_unlogged_ && absl::StrContains(status.message(), "this state is not stored")) {
      // A flush has dropped the last row, which has no log.
    } else if (is_excused) {
      life->failed = true;
    } else if (life->error.empty()) {
      life->error = status.ToString();
    }
    return false;
  }
  bool GoesOn(const Life& life) {
    const std::lock_guard<std::mutex> lock(life_mutex_);
    return life.error.empty() && !files_->stopped();
  }
  // After the machine has stopped, nothing begins or ends any more.
  void Begin(Phase phase, Life* life) { SetUnderWay(phase, true, life); }
  void End(Phase phase, Life* life) { SetUnderWay(phase, false, life); }
  void SetUnderWay(Phase phase, bool under_way, Life* life) {
    const std::lock_guard<std::mutex> lock(life_mutex_);
    if (!files_->stopped()) life->under_way[phase] = under_way;
  }
  void Know(const std::string& name, std::optional<bool> is_there, Life* life) {
    const std::lock_guard<std::mutex> lock(life_mutex_);
    if (files_->stopped()) return;  // the last operation may have come after the stop
    if (is_there.has_value()) {
      life->indexes[name] = *is_there;
    } else {
      life->indexes.erase(name);
    }
  }

  void LiveUntilStopped(uint64_t seed, Life* life) {
    Begin(kOpening, life);
    absl::StatusOr<std::unique_ptr<CrashDatabase>> opened = absl::UnavailableError("");
    while (!opened.ok()) {
      opened = CrashDatabase::Open(Options(), kPath);
      if (!Done(opened.status(), life) && !GoesOn(*life)) return;
    }
    CrashDatabase& db = **opened;
    life->opened = db->GetLatestSequenceNumber();
    End(kOpening, life);
    Begin(kBuilding, life);
    for (const char* name : kLasting) {
      while (db.Names().count(name) == 0) {
        if (!Done(db.Create(name), life) && !GoesOn(*life)) return;
      }
    }
    for (const std::string& name : db.Names()) {
      if (Done(db->WaitUntilReady(name), life)) Know(name, true, life);
    }
    End(kBuilding, life);
    std::thread busy([&] { KeepBusy(&db, seed, life); });
    WriteStream stream(seed, has_unlogged_);
    std::mt19937_64 random(seed + 2);
    while (GoesOn(*life)) {
      const WriteCall call = stream.Next();
      const rocksdb::Status s = call.MakeOf(db.get(), db.families());
      const bool refused = s.ToString().find("'code'") != std::string::npos;
      if (!Done(refused ? absl::OkStatus() : FromRocksDb(s, "cannot write"), life)) break;
      life->committed.push_back(s.ok());
      if (s.ok() && call.sync && !call.updates.empty()) life->durable = life->committed.size();
      if (random() % 16 == 0) absl::SleepFor(absl::Microseconds(200));
    }
    busy.join();
  }

  // Makes all background work run constantly.
  void KeepBusy(CrashDatabase* db, uint64_t seed, Life* life) {
    std::mt19937_64 random(seed + 1);
    while (GoesOn(*life)) {
      const uint64_t what = random() % 10;
      const bool is_there = db->Names().count(kTransient) > 0;
      const Phase phase = what < 3   ? kStoring
                          : what < 8 ? kMerging
                          : is_there ? kDropping
                                     : kBuilding;
      Begin(phase, life);
      if (phase == kStoring) {
        const SequenceNumber sequence = (*db)->GetLatestSequenceNumber();
        if (Done((*db)->FlushIndexes(), life)) {
          const std::lock_guard<std::mutex> lock(life_mutex_);
          if (!files_->stopped()) life->stored = sequence;
        }
      } else if (phase == kMerging) {
        Done((*db)->CompactIndex(kLasting[random() % 3]), life);
      } else if (phase == kDropping) {
        Know(kTransient, std::nullopt, life);
        if (Done((*db)->DropIndex(kTransient), life)) Know(kTransient, false, life);
      } else {
        Know(kTransient, std::nullopt, life);
        if (Done(db->Create(kTransient), life) && random() % 4 > 0 &&
            Done((*db)->WaitUntilReady(kTransient), life)) {
          Know(kTransient, true, life);
        }
      }
      End(phase, life);
      absl::SleepFor(absl::Microseconds(random() % 1000));
    }
  }

  static std::string IndexPath(const std::string& name) {
    return absl::StrCat(kIndexPath, "/", name);
  }

  // The files contain the stored state, before any other operation.
  void CheckStored(const Life& life) const {
    if (life.stored == 0) return;
    for (const char* name : kLasting) {
      const Manifest manifest = RequireOk(ReadManifest(IndexPath(name), index_files_.get()));
      BOOST_TEST(manifest.sequence >= life.stored, name);
    }
  }

  // Replays on the model the calls that `found` contains: all, if the process was killed; at least
  // the durable ones, if the machine lost power. Returns whether the sequence number may have gone
  // back.
  bool Follow(uint64_t seed, const Life& life, CrashFileSystem::End end, const TwoFamilies& found) {
    const size_t least =
        end == CrashFileSystem::End::kKilled ? life.committed.size() : life.durable;
    WriteStream stream(seed, has_unlogged_);
    bool last_may_leave_nothing = false;
    for (size_t i = 0;; ++i) {
      if (has_unlogged_) model_.rows[0] = found.rows[0];  // it may lack any of its last writes
      if (i >= least && found == model_) return last_may_leave_nothing || MayEndBehind(&stream);
      BOOST_REQUIRE_MESSAGE(i <= life.committed.size(), "the database has not the first "
                                                            << least << " to "
                                                            << life.committed.size() << " writes");
      const WriteCall call = stream.Next();
      if (i < life.committed.size() && !life.committed[i]) {
        if (!call.MakesDuplicate(model_)) BOOST_ERROR("a write was refused that breaks no rule");
        continue;
      }
      call.MakeOf(&model_);
      if (!call.updates.empty()) last_may_leave_nothing = call.MayLeaveNothing();
    }
  }
  // A call may change only the sequence number.
  static bool MayEndBehind(WriteStream* stream) { return stream->Next().MayLeaveNothing(); }

  void Examine(uint64_t seed, const Life& life, CrashFileSystem::End end) {
    CheckStored(life);
    std::map<std::string, SequenceNumber> stored;
    for (const auto& [name, is_there] : life.indexes) {
      const absl::StatusOr<Manifest> manifest = ReadManifest(IndexPath(name), index_files_.get());
      if (manifest.ok()) stored[name] = manifest->sequence;
    }
    std::set<std::string> names;
    {
      IndexedDBOptions options = CrashDatabase::BusyOptions();
      options.on_stale = OnStale::kKeepStale;
      auto opened = CrashDatabase::Open(Options(), kPath, options);
      RequireOk(opened.status());
      CrashDatabase& db = **opened;
      const bool may_have_gone_back = Follow(seed, life, end, db.ReadAll());
      BOOST_TEST(!model_.HasDuplicate());
      names = db.Names();
      for (const auto& [name, is_there] : life.indexes) {
        BOOST_TEST((names.count(name) == 1) == is_there, name);
      }
      std::set<std::string> reasons;  // each counts once, as all indexes have the same last row
      for (const std::string& name : names) {
        const absl::Status status = db->WaitUntilReady(name);
        if (!status.ok()) {
          const auto known = life.indexes.find(name);
          if (known != life.indexes.end() && known->second) {
            const std::string why =
                has_unlogged_ ? "stale, as writes had no log"
                              : WhyStale(status, stored[name] <= life.opened, may_have_gone_back);
            reasons.insert(why);
            BOOST_TEST_MESSAGE(why << ": " << status);
          }
          RequireOk(db->RebuildIndex(name));
        }
        db.CheckIndex(name, model_);
      }
      for (const std::string& reason : reasons) ++hits_[reason];
      // The next version removes the leftovers.
      rocksdb::WriteOptions sync;
      sync.sync = true;
      RequireOk(db->Put(sync, db.families()[0], "k-after", std::to_string(calls_ % 1000)));
      model_.rows[0]["k-after"] = std::to_string(calls_ % 1000);
      RequireOk(db->FlushIndexes());
    }
    const auto there = index_files_->List(kIndexPath);
    RequireOk(there.status());
    BOOST_TEST(std::set<std::string>(there->begin(), there->end()) == names,
               boost::test_tools::per_element());
    for (const std::string& name : names) {
      BOOST_TEST(Leftovers(IndexPath(name), index_files_.get()) == std::vector<std::string>(),
                 boost::test_tools::per_element());
    }
  }

  std::mt19937_64& random_;
  std::map<std::string, int>& hits_;
  const bool has_unlogged_;
  const std::shared_ptr<CrashFileSystem> files_ = std::make_shared<CrashFileSystem>(kPath);
  const std::unique_ptr<rocksdb::Env> env_;
  const std::shared_ptr<FileSystem> index_files_;
  TwoFamilies model_;
  uint64_t calls_ = 0;
  std::mutex life_mutex_;  // guards the current life
};

void StopMany(bool has_unlogged) {
  const int stops = StopsToMake(40);
  std::mt19937_64 random = TestRandom();
  std::map<std::string, int> hits;
  std::unique_ptr<Course> course;
  uint64_t calls = 0;
  for (int i = 0; i < stops; ++i) {
    if (i % kStopsOfADatabase == 0) course = std::make_unique<Course>(&random, &hits, has_unlogged);
    BOOST_TEST_CONTEXT("stop " << i) {
      course->StopOnce();
    }
    if ((i + 1) % kStopsOfADatabase == 0 || i + 1 == stops) calls += course->calls();
  }
  BOOST_TEST_MESSAGE(stops << " stops, " << calls << " writes");
  for (const auto& [what, count] : hits) BOOST_TEST_MESSAGE("  " << what << ": " << count);
  BOOST_TEST(hits["stale"] == 0);
  BOOST_TEST(hits["stale, as its last row left nothing"] <= stops / 8 + 1);
  BOOST_TEST(hits["writing"] >= stops / 4);
}

BOOST_AUTO_TEST_CASE(nothing_that_is_durable_is_lost_and_every_index_agrees) {
  StopMany(/*has_unlogged=*/false);
}

// Rows without a log are lost, but every index agrees with the rows that exist.
BOOST_AUTO_TEST_CASE(every_index_agrees_with_rows_that_had_no_log) {
  StopMany(/*has_unlogged=*/true);
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
