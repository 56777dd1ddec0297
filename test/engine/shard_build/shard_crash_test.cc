// A process is killed in each step of building a sharded index, and around publishing. The index is
// the whole old or new generation, and repeated steps have the same results as undisturbed ones.
// CAIRN_TEST_KILLS is the number of kills per step, 4 by default.
#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "cairn/options.h"
#include "cairn/sharding.h"
#include "cairn/snapshot_source.h"
#include "engine/util/rocksdb_compat.h"
#include "test/engine/killed_process.h"
#include "test/engine/shards/sharded_pair.h"
#include "test/sanitizer.h"
#include "test/temporary_directory.h"
#include "test/test_random.h"

namespace cairn {
BOOST_AUTO_TEST_SUITE(shard_crash_test)
namespace {

namespace fs = std::filesystem;

constexpr char kSpec[] = "value.field('|',0):u64";
constexpr char kStep[] = "CAIRN_TEST_STEP";
constexpr char kDatabase[] = "CAIRN_TEST_DATABASE";
constexpr char kInputs[] = "CAIRN_TEST_INPUTS";  // separated by commas
constexpr char kOutput[] = "CAIRN_TEST_OUTPUT";
constexpr uint32_t kShards = 4, kSegments = 2;
enum Kind : uint32_t { kBegin, kEnd };
enum Step : uint32_t { kWhole, kExtract, kSplit, kBuild, kPublish, kSteps };
constexpr const char* kStepNames[] = {"the whole build", "extract", "split", "build", "publish"};

BuildOptions StepBuildOptions() {
  BuildOptions options;
  options.threads = 2;
  options.memory_budget = 100000;  // so that spilling is interrupted, too
  return options;
}

// Runs in the other process.
absl::Status RunStep(Step step, const std::string& database, const Strings& inputs,
                     const std::string& output) {
  const BuildOptions options = StepBuildOptions();
  if (step == kSplit) return SplitSegments(inputs, kShards, output, options);
  if (step == kPublish) return PublishShards(inputs[0], output, options);
  const auto number = [&](size_t i) {
    return static_cast<uint32_t>(std::strtoul(inputs[i].c_str(), nullptr, 10));
  };
  if (step == kBuild) return BuildShard(inputs[0], number(1), output, options).status();
  const auto source = RequireOk(SnapshotSource::FromDirectory(database));
  if (step == kExtract) {
    const PrimaryKeyRange ranges[kSegments] = {{"", "row2", false}, {"row2", "", true}};
    return ExtractSegment(*source, ranges[number(0)], Spec(kSpec), output, options).status();
  }
  ShardedBuildOptions whole;
  whole.shards = kShards;
  whole.segments = kSegments;
  whole.build = options;
  return BuildSharded(*source, Spec(kSpec), output, whole).status();
}

// Runs steps in processes that are killed.
class Killer {
 public:
  Killer() : random_(TestRandom()) {}

  // One attempt, killed at some time within its usual duration. Returns false if it ended before,
  // which must be successful. If not `kill`, waits for its end.
  bool Attempt(Step step, const std::string& database, const Strings& inputs,
               const std::string& output, bool kill) {
    std::string joined;
    for (const std::string& input : inputs)
      absl::StrAppend(&joined, joined.empty() ? "" : ",", input);
    KilledProcess process("shard_crash_test/the_process_that_is_killed",
                          {{kStep, std::to_string(step)},
                           {kDatabase, database},
                           {kInputs, joined},
                           {kOutput, output}});
    const absl::Time deadline = absl::Now() + absl::Minutes(2);
    const std::optional<Message> begun = process.Next(deadline);
    BOOST_REQUIRE(begun.has_value() && begun->kind == kBegin);
    const absl::Time begin = absl::Now();
    absl::Duration& usual = usual_[step];
    if (kill) {
      const double part = std::uniform_real_distribution<double>(0, 1.2)(random_);
      const std::optional<Message> ended = process.Next(begin + part * usual);
      if (!ended.has_value()) {
        process.Kill();
        ++killed_[step];
        return false;
      }
    } else {
      BOOST_REQUIRE(process.Next(deadline).has_value());
      usual = std::max(usual, absl::Now() - begin);
    }
    BOOST_REQUIRE(process.ExitCode() == 0);
    return true;
  }
  int killed(Step step) const {
    const auto at = killed_.find(step);
    return at == killed_.end() ? 0 : at->second;
  }
  std::mt19937_64& random() { return random_; }

 private:
  std::mt19937_64 random_;
  std::map<Step, absl::Duration> usual_;
  std::map<Step, int> killed_;
};

std::string MakeDatabase(const std::string& path, uint64_t rows) {
  rocksdb::Options options;
  options.create_if_missing = true;
  std::unique_ptr<rocksdb::DB> db;
  RequireOk(rocksdb::DB::Open(options, path, Into(&db)));
  for (uint64_t i = 0; i < rows; ++i) {
    RequireOk(db->Put({}, absl::StrCat("row", i), absl::StrCat(i % 5 == 0 ? 7 : i % 97)));
  }
  RequireOk(db->Flush({}));
  return path;
}

// The contents of an index; empty if there is none.
Strings Contents(const std::string& directory) {
  auto index = SecondaryIndex::Open(directory, ForTests());
  if (absl::IsNotFound(index.status())) return {};
  RequireOk(index);
  RequireOk((*index)->Verify());
  return Entries(**index);
}

size_t Directories(const std::string& path) {
  size_t count = 0;
  for (const auto& entry : fs::directory_iterator(path)) count += entry.is_directory() ? 1 : 0;
  return count;
}

int Kills() {
  const char* given = std::getenv("CAIRN_TEST_KILLS");
  return given != nullptr ? std::atoi(given) : static_cast<int>(FewerSanitized(4, 2, 4));
}

BOOST_AUTO_TEST_CASE(the_process_that_is_killed) {
  if (std::getenv(kStep) == nullptr) return;  // not the child process
  const auto step = static_cast<Step>(std::atoi(std::getenv(kStep)));
  const Strings inputs = absl::StrSplit(std::getenv(kInputs), ',');
  KilledProcess::Say(kBegin, step);
  RequireOk(RunStep(step, std::getenv(kDatabase), inputs, std::getenv(kOutput)));
  KilledProcess::Say(kEnd, step);
}

BOOST_AUTO_TEST_CASE(a_killed_build_leaves_the_generation_before_or_after) {
  TemporaryDirectory directory;
  const std::string databases[] = {MakeDatabase(directory / "small", 2000),
                                   MakeDatabase(directory / "large", 4000)};
  const std::string index = directory / "index";
  Killer killer;
  Strings contents[2];
  for (const int which : {0, 1}) {
    killer.Attempt(kWhole, databases[which], {}, index, false);
    contents[which] = Contents(index);
    BOOST_REQUIRE(!contents[which].empty());
  }
  int now = 1, ended = 0;
  for (int i = 0; killer.killed(kWhole) < Kills() && i < 3 * Kills(); ++i) {
    const bool whole = killer.Attempt(kWhole, databases[1 - now], {}, index, true);
    const Strings found = Contents(index);
    const bool next = found == contents[1 - now];
    BOOST_REQUIRE(next || found == contents[now]);
    BOOST_REQUIRE(next || !whole);
    if (next) now = 1 - now;
    ended += next ? 1 : 0;
  }
  BOOST_TEST_MESSAGE(killer.killed(kWhole) << " killed, " << ended << " published");
  killer.Attempt(kWhole, databases[0], {}, index, false);
  BOOST_CHECK(Contents(index) == contents[0]);
  BOOST_TEST(Directories(index) == kShards);
}

BOOST_AUTO_TEST_CASE(steps_that_are_killed_and_run_again_make_the_undisturbed_index) {
  TemporaryDirectory directory;
  const std::string database = MakeDatabase(directory / "db", 3000);
  const std::string work = directory / "work", plan = work + "/plan";
  const std::string index = directory / "index";
  Killer killer;
  killer.Attempt(kWhole, database, {}, directory / "undisturbed", false);
  const Strings expected = Contents(directory / "undisturbed");
  Strings before;
  // Once undisturbed, to measure the duration of each step.
  for (int round = 0; round <= Kills(); ++round) {
    fs::create_directories(work);
    fs::create_directories(index);
    // Repeats a step until it ends, each attempt in a new place.
    const auto until_it_ends = [&](Step step, const Strings& inputs, auto output) {
      for (bool kill = round != 0;; kill = false) {
        const std::string to = output();
        const bool ended = killer.Attempt(step, database, inputs, to, kill);
        if (step != kPublish) BOOST_REQUIRE(Contents(index) == before);
        if (ended) return to;
        if (step == kPublish) {
          const Strings found = Contents(index);
          BOOST_REQUIRE(found == before || found == expected);
        }
      }
    };
    Strings segments;
    for (uint32_t s = 0; s < kSegments; ++s) {
      segments.push_back(until_it_ends(kExtract, {std::to_string(s)},
                                       [&] { return work + "/" + SegmentDirectoryName(s); }));
    }
    until_it_ends(kSplit, segments, [&] { return plan; });
    for (uint32_t shard = 0; shard < kShards; ++shard) {
      until_it_ends(kBuild, {plan, std::to_string(shard)},
                    [&] { return index + "/" + ShardDirectoryName(shard); });
    }
    until_it_ends(kPublish, {plan}, [&] { return index; });
    BOOST_REQUIRE(Contents(index) == expected);
    BOOST_REQUIRE_EQUAL(Directories(index), kShards);
    before = expected;
    fs::remove_all(work);
    if (killer.random()() % 2 == 0) {
      fs::remove_all(index);
      before.clear();
    }
  }
  for (uint32_t step = kExtract; step < kSteps; ++step) {
    BOOST_TEST_MESSAGE(killer.killed(static_cast<Step>(step)) << " killed in " << kStepNames[step]);
  }
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
