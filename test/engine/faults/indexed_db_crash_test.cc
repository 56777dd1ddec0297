// A process that writes to an IndexedDB is killed at random instants. The database and its indexes
// have all acknowledged writes and agree with one another, and no other files remain.
// CAIRN_TEST_KILLS is the number of kills, 25 by default: 500 take about ten minutes.
#include <boost/test/unit_test.hpp>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "cairn/indexed_db.h"
#include "index/files/index_directory.h"
#include "test/engine/faults/crash_database.h"
#include "test/engine/faults/crash_indexes.h"
#include "test/engine/faults/crash_model.h"
#include "test/engine/indexed_database.h"
#include "test/engine/killed_process.h"
#include "test/require_ok.h"
#include "test/sanitizer.h"
#include "test/temporary_directory.h"
#include "test/test_random.h"

namespace cairn {
BOOST_AUTO_TEST_SUITE(indexed_db_crash_test)
namespace {

// Kills per database; then a new one starts, since builds end only early in a database's life.
constexpr int kKillsOfADatabase = FewerUnderTsan(25, 3);
// The maximum lifetime of a process, from its start or, mostly, from the time at which its database
// is open.
constexpr absl::Duration kLongestLife = absl::Milliseconds(400);
constexpr char kPath[] = "CAIRN_TEST_PATH";
constexpr char kSeed[] = "CAIRN_TEST_STREAM";
constexpr char kUnlogged[] = "CAIRN_TEST_UNLOGGED";  // "1": most writes have no log

// Messages of the process. For a write: it was committed or, for its unique key, rejected.
enum Kind : uint32_t { kStarted, kOpened, kCommitted, kRefused, kBegin, kEnd, kStored };
// Operations that a kill can interrupt: the numbers of kBegin and kEnd.
enum Phase : uint32_t { kOpening, kBuilding, kStoring, kMerging, kDropping, kPhases };
constexpr const char* kPhaseNames[] = {"opening", "building", "storing", "merging", "dropping"};

std::unique_ptr<CrashDatabase> OpenDatabase(const std::string& path,
                                            OnStale on_stale = OnStale::kRebuild) {
  IndexedDBOptions options = CrashDatabase::BusyOptions();
  options.on_stale = on_stale;
  auto db = CrashDatabase::Open(CrashDatabase::RocksDbOptions(nullptr), path, options);
  RequireOk(db.status());
  return *std::move(db);
}

// Code of the killed process.

class Saying {
 public:
  explicit Saying(Phase phase) : phase_(phase) { KilledProcess::Say(kBegin, phase); }
  ~Saying() { KilledProcess::Say(kEnd, phase_); }

 private:
  const Phase phase_;
};

// Makes all background work run constantly.
void KeepBusy(CrashDatabase* db, uint64_t seed) {
  // If the last row has no log and is dropped by a flush, the state cannot be stored.
  const auto is_stored = [](const absl::Status& status) {
    if (!absl::IsUnavailable(status)) RequireOk(status);
    return status.ok();
  };
  std::mt19937_64 random(seed + 1);
  while (true) {
    const uint64_t what = random() % 10;
    if (what < 3) {
      const auto sequence = static_cast<uint32_t>((*db)->GetLatestSequenceNumber());
      const Saying saying(kStoring);
      if (is_stored((*db)->FlushIndexes())) KilledProcess::Say(kStored, sequence);
    } else if (what < 8) {
      static constexpr const char* kNames[] = {"number", "word", "code"};
      const Saying saying(kMerging);
      is_stored((*db)->CompactIndex(kNames[random() % 3]));
    } else if (db->Names().count(kTransient) > 0) {
      const Saying saying(kDropping);
      RequireOk((*db)->DropIndex(kTransient));
    } else {
      const Saying saying(kBuilding);
      RequireOk(db->Create(kTransient));
      if (random() % 4 > 0) RequireOk((*db)->WaitUntilReady(kTransient));
    }
    absl::SleepFor(absl::Microseconds(random() % 4000));
  }
}

void WriteUntilKilled(const std::string& path, uint64_t seed, bool has_unlogged) {
  KilledProcess::Say(kStarted, 0);
  const std::unique_ptr<CrashDatabase> opened = OpenDatabase(path);
  CrashDatabase& db = *opened;
  KilledProcess::Say(kOpened, 0);
  {
    const Saying saying(kBuilding);
    const std::set<std::string> there = db.Names();
    for (const auto& [name, index] : kCrashIndexes) {
      if (name != kTransient && there.count(name) == 0) RequireOk(db.Create(name));
    }
    for (const std::string& name : db.Names()) RequireOk(db->WaitUntilReady(name));
  }
  std::thread busy([&db, seed] { KeepBusy(&db, seed); });
  WriteStream stream(seed, has_unlogged);
  for (uint32_t i = 1;; ++i) {
    const WriteCall call = stream.Next();
    const rocksdb::Status s = call.MakeOf(db.get(), db.families());
    if (!s.ok() && s.ToString().find("'code'") == std::string::npos) RequireOk(s);
    KilledProcess::Say(s.ok() ? kCommitted : kRefused, i);
  }
}

// Code of this process.

// A database, its expected contents, and the operations that kills interrupted.
class Course {
 public:
  Course(std::mt19937_64* random, bool has_unlogged)
      : random_(*random), has_unlogged_(has_unlogged) {}

  void KillOne(std::map<std::string, int>* hits) {
    const uint64_t seed = random_() >> 1;
    KilledProcess process(
        "indexed_db_crash_test/the_process_that_is_killed",
        {{kPath, path()}, {kSeed, std::to_string(seed)}, {kUnlogged, has_unlogged_ ? "1" : "0"}});
    Life life;
    const auto started = process.Next(absl::Now() + absl::Minutes(1));
    BOOST_REQUIRE_MESSAGE(started.has_value(), "the process did not begin");
    const bool may_end_opening = random_() % 4 == 0;
    if (!may_end_opening) {
      while (life.under_way[kOpening] > 0) {
        const auto message = process.Next(absl::Now() + absl::Minutes(1));
        BOOST_REQUIRE_MESSAGE(message.has_value(), "the process did not open its database");
        life.Hear(*message);
      }
    }
    const absl::Duration longest = may_end_opening ? kLongestLife / 8 : kLongestLife;
    const absl::Time end =
        absl::Now() + absl::Microseconds(random_() % absl::ToInt64Microseconds(longest));
    while (const auto message = process.Next(end)) life.Hear(*message);
    BOOST_REQUIRE_MESSAGE(process.Kill(), "the process ended by itself");
    while (const auto message = process.Next(end)) life.Hear(*message);

    for (uint32_t phase = 0; phase < kPhases; ++phase) {
      if (life.under_way[phase] > 0) ++(*hits)[kPhaseNames[phase]];
    }
    if (!life.answers.empty()) ++(*hits)["writing"];
    calls_ += life.answers.size();
    CountInterrupted(hits);
    Examine(seed, life, hits);
  }
  uint64_t calls() const { return calls_; }

 private:
  struct Life {
    std::vector<bool> answers;  // for each write, in order: whether it was committed
    int under_way[kPhases] = {1};
    SequenceNumber stored = 0;  // every index was stored with this number

    void Hear(const Message& message) {
      switch (message.kind) {
        case kOpened:
          under_way[kOpening] = 0;
          break;
        case kCommitted:
        case kRefused:
          answers.push_back(message.kind == kCommitted);
          BOOST_REQUIRE_EQUAL(answers.size(), message.number);
          break;
        case kBegin:
          ++under_way[message.number];
          break;
        case kEnd:
          --under_way[message.number];
          break;
        case kStored:
          stored = message.number;
          break;
        default:
          BOOST_FAIL("message of kind " << message.kind);
      }
    }
  };

  std::string path() const { return directory_ / "db"; }
  std::string IndexPath(const std::string& name) const {
    return directory_ / ("db.indexes/" + name);
  }

  // The number of kills by interrupted operation.
  void CountInterrupted(std::map<std::string, int>* hits) const {
    std::set<std::string> kinds;
    const std::string indexes = directory_ / "db.indexes";
    if (!std::filesystem::exists(indexes)) return;
    for (const auto& entry : std::filesystem::directory_iterator(indexes)) {
      if (!entry.is_directory()) {
        kinds.insert("left a mark");
        continue;
      }
      for (const std::string& file : Leftovers(entry.path().string())) {
        kinds.insert("left a " + std::filesystem::path(file).extension().string());
      }
    }
    for (const std::string& kind : kinds) ++(*hits)[kind];
  }

  // The files contain the state stored before the kill, before any other operation.
  void CheckStored(const Life& life) const {
    if (life.stored == 0) return;
    for (const char* name : {"number", "word", "code"}) {
      const Manifest manifest = RequireOk(ReadManifest(IndexPath(name)));
      BOOST_TEST(manifest.sequence >= life.stored);
    }
  }

  // Applies the calls with a result to the model, and the interrupted one if the database has it.
  // Returns whether the sequence number may have gone back.
  bool Follow(uint64_t seed, const Life& life, const TwoFamilies& found) {
    WriteStream stream(seed, has_unlogged_);
    bool last_may_leave_nothing = false;
    for (const bool committed : life.answers) {
      const WriteCall call = stream.Next();
      if (committed) {
        call.MakeOf(&model_);
        if (!call.updates.empty()) last_may_leave_nothing = call.MayLeaveNothing();
      } else {
        if (!call.MakesDuplicate(model_)) BOOST_ERROR("a write was refused that breaks no rule");
      }
    }
    const WriteCall under_way = stream.Next();
    if (has_unlogged_) model_.rows[0] = found.rows[0];  // it may lack any of its last writes
    if (!(found == model_)) under_way.MakeOf(&model_);
    if (has_unlogged_) model_.rows[0] = found.rows[0];
    BOOST_REQUIRE_MESSAGE(found == model_, "the database lacks what it had acknowledged");
    return last_may_leave_nothing || under_way.MayLeaveNothing();
  }

  // Indexes that were not yet built when the process was killed, according to their marks.
  std::set<std::string> Unbuilt() const {
    std::set<std::string> names;
    const std::string indexes = directory_ / "db.indexes";
    if (!std::filesystem::exists(indexes)) return names;
    for (const auto& entry : std::filesystem::directory_iterator(indexes)) {
      const std::string name = entry.path().filename().string();
      if (name.back() != '~') continue;
      const std::string mark = ReadFile(entry.path().string());
      if (has_unlogged_ && mark.find("\nstale\n") != mark.npos) continue;
      BOOST_TEST((mark.find("\nbuild\n") != mark.npos || mark.find("\nremoved\n") != mark.npos),
                 name << " says " << mark);
      if (mark.find("\nbuild\n") != mark.npos) names.insert(name.substr(0, name.size() - 1));
    }
    return names;
  }

  void Examine(uint64_t seed, const Life& life, std::map<std::string, int>* hits) {
    CheckStored(life);
    std::set<std::string> names;
    {
      const std::set<std::string> unbuilt = Unbuilt();
      const std::unique_ptr<CrashDatabase> opened = OpenDatabase(path(), OnStale::kKeepStale);
      CrashDatabase& db = *opened;
      const bool may_have_gone_back = Follow(seed, life, db.ReadAll());
      BOOST_TEST(!model_.HasDuplicate());
      names = db.Names();
      if (life.stored > 0) {
        for (const char* name : {"number", "word", "code"}) BOOST_TEST(names.count(name) == 1);
      }
      std::set<std::string> reasons;  // each counts once, as all indexes have the same last row
      for (const std::string& name : names) {
        const absl::Status status = db->WaitUntilReady(name);
        if (unbuilt.count(name) > 0) {
          ++(*hits)["built at the next opening"];
        } else if (!status.ok()) {
          const std::string why =
              has_unlogged_ ? "stale, as writes had no log"
                            : WhyStale(status, /*of_recovered_log=*/false, may_have_gone_back);
          reasons.insert(why);
          BOOST_TEST_MESSAGE(why << ": " << status);
        }
        if (!status.ok()) RequireOk(db->RebuildIndex(name));
        db.CheckIndex(name, model_);
      }
      for (const std::string& reason : reasons) ++(*hits)[reason];
      // The next version removes the leftovers.
      RequireOk(db->Put({}, db.families()[0], "k-after", std::to_string(calls_ % 1000)));
      model_.rows[0]["k-after"] = std::to_string(calls_ % 1000);
      RequireOk(db->FlushIndexes());
    }
    std::set<std::string> there;
    for (const auto& entry : std::filesystem::directory_iterator(directory_ / "db.indexes")) {
      there.insert(entry.path().filename().string());
    }
    BOOST_TEST(there == names, boost::test_tools::per_element());
    for (const std::string& name : names) {
      BOOST_TEST(Leftovers(IndexPath(name)) == std::vector<std::string>(),
                 boost::test_tools::per_element());
    }
  }

  TemporaryDirectory directory_;
  std::mt19937_64& random_;
  const bool has_unlogged_;
  TwoFamilies model_;
  uint64_t calls_ = 0;
};

}  // namespace

BOOST_AUTO_TEST_CASE(the_process_that_is_killed) {
  if (std::getenv(kPath) == nullptr) return;  // not the child process
  WriteUntilKilled(std::getenv(kPath), std::strtoull(std::getenv(kSeed), nullptr, 10),
                   std::string_view(std::getenv(kUnlogged)) == "1");
}

void KillMany(bool has_unlogged) {
  const char* given = std::getenv("CAIRN_TEST_KILLS");
  const int kills = given != nullptr ? std::atoi(given) : kKillsOfADatabase;
  std::mt19937_64 random = TestRandom();
  std::map<std::string, int> hits;
  std::unique_ptr<Course> course;
  uint64_t calls = 0;
  for (int i = 0; i < kills; ++i) {
    if (i % kKillsOfADatabase == 0) course = std::make_unique<Course>(&random, has_unlogged);
    BOOST_TEST_CONTEXT("kill " << i) {
      course->KillOne(&hits);
    }
    if ((i + 1) % kKillsOfADatabase == 0 || i + 1 == kills) calls += course->calls();
  }
  BOOST_TEST_MESSAGE(kills << " kills, " << calls << " writes");
  for (const auto& [what, count] : hits) BOOST_TEST_MESSAGE("  " << what << ": " << count);
  // A killed process's indexes are caught up from the log, which reaches back far enough.
  BOOST_TEST(hits["stale"] == 0);
  BOOST_TEST(hits["stale, as its last row left nothing"] <= kills / 10 + 1);
  for (const char* phase : kPhaseNames) BOOST_TEST(hits[phase] >= kills / 50, phase);
  BOOST_TEST(hits["writing"] >= kills / 4);
}

BOOST_AUTO_TEST_CASE(nothing_that_was_committed_is_lost_and_every_index_agrees) {
  KillMany(/*has_unlogged=*/false);
}

// Rows without a log are lost, but every index agrees with the rows that exist.
BOOST_AUTO_TEST_CASE(every_index_agrees_with_rows_that_had_no_log) {
  KillMany(/*has_unlogged=*/true);
}

BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
