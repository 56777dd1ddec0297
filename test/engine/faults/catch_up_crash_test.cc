// A process that catches indexes up with a database that another process writes to, and compacts
// them, is killed at random instants. Each index has exactly the entries of a former state of the
// database, and all changes that were applied and stored. CAIRN_TEST_KILLS is the number of kills,
// 25 by default.
#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "cairn/options.h"
#include "cairn/secondary_index.h"
#include "cairn/snapshot_source.h"
#include "cairn/types.h"
#include "engine/util/rocksdb_compat.h"
#include "test/engine/faults/crash_indexes.h"
#include "test/engine/faults/crash_model.h"
#include "test/engine/indexed_database.h"
#include "test/engine/killed_process.h"
#include "test/sanitizer.h"
#include "test/temporary_directory.h"
#include "test/test_random.h"

namespace cairn {
BOOST_AUTO_TEST_SUITE(catch_up_crash_test)
namespace {

constexpr absl::Duration kLongestLife = absl::Milliseconds(300);
// The average time between two writes, so that a log with many readers stays short.
constexpr absl::Duration kPause = absl::Microseconds(100);
constexpr char kDirectory[] = "CAIRN_TEST_DIRECTORY";
constexpr char kSeed[] = "CAIRN_TEST_STREAM";
// The number of an index is its place in kCrashIndexes.
enum Kind : uint32_t { kStarted, kBegin, kEnd, kIndex, kCaughtUp };
enum Phase : uint32_t { kOpening, kCatchingUp, kMerging, kPhases };
constexpr const char* kPhaseNames[] = {"opening", "catching up", "merging"};

rocksdb::Options DatabaseOptions() {
  rocksdb::Options options;
  options.create_if_missing = true;
  options.create_missing_column_families = true;
  options.merge_operator = std::make_shared<AddOperator>();
  options.write_buffer_size = 128 << 10;  // so that logs change constantly
  options.WAL_size_limit_MB = 1024;
  return options;
}

OpenOptions IndexOptions() {
  OpenOptions options;
  options.calibration = Calibration::kNone;
  options.threads = 1;
  return options;
}

// Code of the killed process.

void CatchUpUntilKilled(const std::string& directory, uint64_t seed) {
  KilledProcess::Say(kStarted, 0);
  std::mt19937_64 random(seed);
  const rocksdb::Options rocksdb_options = DatabaseOptions();
  std::map<std::string, std::unique_ptr<SecondaryIndex>> indexes;
  while (true) {
    const auto number = static_cast<uint32_t>(random() % kCrashIndexes.size());
    const auto& [name, of_model] = *std::next(kCrashIndexes.begin(), number);
    std::unique_ptr<SecondaryIndex>& index = indexes[name];
    KilledProcess::Say(kBegin, kOpening);
    if (index == nullptr || random() % 4 == 0) {
      auto opened = SecondaryIndex::Open(directory + "/" + name, IndexOptions());
      RequireOk(opened.status());
      index = *std::move(opened);
    }
    // Files may disappear while they are opened, since the writer does not know of this reader.
    const auto source = SnapshotSource::FromDirectory(
        directory + "/db", index->spec().column_family, &rocksdb_options);
    KilledProcess::Say(kEnd, kOpening);
    if (!source.ok()) continue;
    KilledProcess::Say(kBegin, kCatchingUp);
    const auto report = index->CatchUp(**source);
    RequireOk(report.status());
    KilledProcess::Say(kIndex, number);
    KilledProcess::Say(kCaughtUp, static_cast<uint32_t>(report->sequence));
    KilledProcess::Say(kEnd, kCatchingUp);
    if (random() % 2 == 0) continue;
    CompactOptions merge;
    merge.threads = 2;
    KilledProcess::Say(kBegin, kMerging);
    RequireOk(index->Compact(merge));
    KilledProcess::Say(kEnd, kMerging);
  }
}

// Code of this process: the database, its history, and its indexes.
class Course {
 public:
  explicit Course(std::mt19937_64* random) : random_(*random), stream_((*random)() >> 1) {
    const rocksdb::Options options = DatabaseOptions();
    RequireOk(rocksdb::DB::Open(options, directory_ / "db", {{"default", options}, {"a", options}},
                                &families_, Into(&db_)));
    for (int i = 0; i < 2000; ++i) WriteOnce();
    for (const auto& [name, of_model] : kCrashIndexes) {
      const BuildTarget target{SpecOf(of_model.spec), directory_ / name};
      RequireOk(
          SecondaryIndex::BuildAll(*Source(of_model.family), absl::MakeConstSpan(&target, 1), {})
              .status());
    }
  }
  ~Course() {
    for (rocksdb::ColumnFamilyHandle* family : families_) {
      RequireOk(db_->DestroyColumnFamilyHandle(family));
    }
  }

  void KillOne(std::map<std::string, int>* hits) {
    KilledProcess process("catch_up_crash_test/the_process_that_is_killed",
                          {{kDirectory, directory_.path()}, {kSeed, std::to_string(random_())}});
    const auto started = process.Next(absl::Now() + absl::Minutes(1));
    BOOST_REQUIRE_MESSAGE(started.has_value(), "the process did not begin");
    const absl::Time end =
        absl::Now() + absl::Microseconds(random_() % absl::ToInt64Microseconds(kLongestLife));
    Life life;
    while (absl::Now() < end) {
      WriteOnce();
      while (const auto message = process.Next(absl::Now() + kPause)) life.Hear(*message);
    }
    BOOST_REQUIRE_MESSAGE(process.Kill(), "the process ended by itself");
    while (const auto message = process.Next(end)) life.Hear(*message);
    for (uint32_t phase = 0; phase < kPhases; ++phase) {
      if (life.under_way[phase]) ++(*hits)[kPhaseNames[phase]];
    }
    uint32_t number = 0;
    const size_t calls = calls_.size();  // by now; all indexes have them in a moment
    for (const auto& [name, of_model] : kCrashIndexes) {
      for (const std::string& file : Leftovers(directory_ / name)) {
        ++(*hits)["left a " + std::filesystem::path(file).extension().string()];
      }
      if (life.caught_up[number] > 0) ++(*hits)["caught up"];
      Examine(name, of_model, life.caught_up[number++]);
    }
    for (size_t i = 0; i < calls; ++i) calls_[i].call.MakeOf(&before_);
    calls_.erase(calls_.begin(), calls_.begin() + static_cast<std::ptrdiff_t>(calls));
  }
  size_t writes() const { return writes_; }

 private:
  struct Call {
    WriteCall call;
    // Its first number. A process that recovered the log has all of the call or nothing. It may not
    // know the last numbers of the call if they left no trace, such as empty ranges and rows
    // deleted by SingleDelete.
    SequenceNumber sequence;
  };
  struct Life {
    bool under_way[kPhases] = {};
    uint32_t index = 0;                      // the index that the message is about
    std::map<uint32_t, uint32_t> caught_up;  // index -> sequence number

    void Hear(const Message& message) {
      if (message.kind == kBegin) under_way[message.number] = true;
      if (message.kind == kEnd) under_way[message.number] = false;
      if (message.kind == kIndex) index = message.number;
      if (message.kind == kCaughtUp) caught_up[index] = message.number;
    }
  };

  std::unique_ptr<SnapshotSource> Source(size_t family) {
    auto source = SnapshotSource::FromDb(db_.get(), families_[family]);
    RequireOk(source.status());
    return *std::move(source);
  }

  // Skips writes that would duplicate a unique word, since no unique index rejects them here. Each
  // other call has a row that every flush keeps. An index is refused if its state is that of the
  // end of a log file whose last rows left nothing.
  void WriteOnce() {
    WriteCall call = stream_.Next();
    if (call.MakesDuplicate(now_)) return;
    if (call.MayLeaveNothing()) {
      call.batch = true;
      call.updates.push_back({WriteCall::Kind::kPut, 0, "kept", "1"});
    }
    Write(call);
  }
  void Write(const WriteCall& call) {
    const SequenceNumber first = db_->GetLatestSequenceNumber() + 1;
    RequireOk(call.MakeOf(db_.get(), families_));
    call.MakeOf(&now_);
    calls_.push_back({call, first});
    ++writes_;
  }

  TwoFamilies At(SequenceNumber sequence) const {
    TwoFamilies model = before_;
    for (const Call& call : calls_) {
      if (call.sequence > sequence) break;
      call.call.MakeOf(&model);
    }
    return model;
  }

  void CheckIsOf(const SecondaryIndex& index, const std::string& name,
                 const IndexOfModel& of_model) const {
    const std::vector<std::string> found = SortedEntries(index);
    const std::vector<std::string> expected = SortedEntries(of_model, At(index.sequence()));
    if (found == expected) return;
    std::string calls;  // the calls about that state
    for (const Call& call : calls_) {
      if (call.sequence + 20 < index.sequence() || call.sequence > index.sequence() + 20) continue;
      absl::StrAppend(&calls, " ", call.sequence, "+", call.call.updates.size());
      if (SortedEntries(of_model, At(call.sequence)) == found) absl::StrAppend(&calls, " (this)");
    }
    std::vector<std::string> differ;
    std::set_symmetric_difference(found.begin(), found.end(), expected.begin(), expected.end(),
                                  std::back_inserter(differ));
    differ.resize(std::min<size_t>(differ.size(), 5));
    BOOST_FAIL(name << " is not what the database was at " << index.sequence() << ": "
                    << absl::StrJoin(differ, " ") << "; calls" << calls);
  }

  void Examine(const std::string& name, const IndexOfModel& of_model, SequenceNumber caught_up) {
    auto index = SecondaryIndex::Open(directory_ / name, IndexOptions());
    RequireOk(index.status());
    RequireOk((*index)->Verify());
    BOOST_TEST((*index)->sequence() >= caught_up, name);
    CheckIsOf(**index, name, of_model);
    // It continues from there; and the next version removes the leftovers.
    WriteCall one_more;
    one_more.updates.push_back({WriteCall::Kind::kPut, 0, "k0000", "7,w7"});
    Write(one_more);
    const auto source = Source(of_model.family);
    RequireOk((*index)->CatchUp(*source).status());
    std::vector<std::string> differences;
    RequireOk((*index)->VerifyAgainst(*source, 5, &differences));
    for (const std::string& difference : differences) BOOST_ERROR(name << ": " << difference);
    BOOST_TEST(Leftovers(directory_ / name) == std::vector<std::string>(),
               boost::test_tools::per_element());
  }

  TemporaryDirectory directory_;
  std::mt19937_64& random_;
  WriteStream stream_;
  std::vector<rocksdb::ColumnFamilyHandle*> families_;
  std::unique_ptr<rocksdb::DB> db_;
  TwoFamilies now_;
  TwoFamilies before_;       // calls_
  std::vector<Call> calls_;  // the most recent calls
  size_t writes_ = 0;
};

}  // namespace

BOOST_AUTO_TEST_CASE(the_process_that_is_killed) {
  if (std::getenv(kDirectory) == nullptr) return;  // not the child process
  CatchUpUntilKilled(std::getenv(kDirectory), std::strtoull(std::getenv(kSeed), nullptr, 10));
}

BOOST_AUTO_TEST_CASE(each_index_is_what_its_database_once_was_and_has_what_was_stored) {
  const char* given = std::getenv("CAIRN_TEST_KILLS");
  const int kills = given != nullptr ? std::atoi(given) : static_cast<int>(FewerUnderTsan(25, 3));
  std::mt19937_64 random = TestRandom();
  std::map<std::string, int> hits;
  Course course(&random);
  for (int i = 0; i < kills; ++i) {
    BOOST_TEST_CONTEXT("kill " << i) {
      course.KillOne(&hits);
    }
  }
  BOOST_TEST_MESSAGE(kills << " kills, " << course.writes() << " writes");
  for (const auto& [what, count] : hits) BOOST_TEST_MESSAGE("  " << what << ": " << count);
  for (const char* phase : kPhaseNames) BOOST_TEST(hits[phase] >= kills / 50, phase);
  // Fewer if the machine is busy.
  BOOST_TEST(hits["caught up"] >= kills / 10);
}

BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
