// A build is killed at random instants: its directory always opens as the old or the new index, or
// has none and can be built.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <boost/test/unit_test.hpp>
#include <chrono>
#include <filesystem>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "cairn/index_spec.h"
#include "cairn/options.h"
#include "cairn/query.h"
#include "cairn/secondary_index.h"
#include "cairn/snapshot_source.h"
#include "cairn/types.h"
#include "engine/util/rocksdb_compat.h"
#include "index/machine/status_macros.h"
#include "test/engine/test_database.h"
#include "test/require_ok.h"
#include "test/test_random.h"

namespace cairn {
BOOST_AUTO_TEST_SUITE(crash_test)
namespace {

constexpr int kKills = 200;
constexpr uint64_t kRows = 3000;

absl::Status BuildIndex(const std::string& database, const std::string& directory) {
  ASSIGN_OR_RETURN(auto source, SnapshotSource::FromDirectory(database));
  BuildOptions options;
  options.threads = 2;
  options.memory_budget = 30000;  // so that spilling is interrupted, too
  return SecondaryIndex::Build(*source, *IndexSpec::Parse("value.field('|',0):u64"), directory,
                               options)
      .status();
}

// The number of entries, which must be complete; 0 if there is no index.
uint64_t Entries(const std::string& directory) {
  OpenOptions options;
  options.calibration = Calibration::kNone;
  auto index = SecondaryIndex::Open(directory, options);
  if (absl::IsNotFound(index.status())) return 0;
  RequireOk(index);
  RequireOk((*index)->Verify());
  uint64_t count = 0;
  RequireOk((*index)->Count(RangeBatch::Everything(PhysicalType::kU64), absl::MakeSpan(&count, 1)));
  return count;
}

// Starts a build in a child process.
pid_t StartBuild(const std::string& database, const std::string& directory) {
  const pid_t child = fork();
  BOOST_REQUIRE(child >= 0);
  if (child == 0) _exit(BuildIndex(database, directory).ok() ? 0 : 1);
  return child;
}

void Build(const std::string& database, const std::string& directory) {
  int status = 0;
  const pid_t child = StartBuild(database, directory);
  BOOST_REQUIRE(waitpid(child, &status, 0) == child);
  BOOST_REQUIRE((WIFEXITED(status) && WEXITSTATUS(status) == 0));
}

void BuildAndKill(const std::string& database, const std::string& directory,
                  std::chrono::microseconds delay) {
  const pid_t child = StartBuild(database, directory);
  std::this_thread::sleep_for(delay);
  kill(child, SIGKILL);
  int status = 0;
  BOOST_REQUIRE(waitpid(child, &status, 0) == child);
  // It ended successfully before the kill, or was killed.
  BOOST_TEST((WIFSIGNALED(status) || (WIFEXITED(status) && WEXITSTATUS(status) == 0)));
}

BOOST_AUTO_TEST_CASE(a_killed_build_leaves_the_index_of_before_or_after_or_none) {
  TemporaryDirectory directory;
  const std::string small = directory / "small", large = directory / "large";
  for (const auto& [path, rows] : {std::pair{small, kRows}, {large, 2 * kRows}}) {
    rocksdb::Options options;
    options.create_if_missing = true;
    std::unique_ptr<rocksdb::DB> db;
    RequireOk(rocksdb::DB::Open(options, path, Into(&db)));
    for (uint64_t i = 0; i < rows; ++i) {
      RequireOk(db->Put({}, "row" + std::to_string(i), std::to_string(i % 97)));
    }
    RequireOk(db->Flush({}));
    db.reset();
  }

  // The duration of a build here, so that kills are spread over all of it and some builds end.
  const auto start = std::chrono::steady_clock::now();
  Build(small, directory / "timed");
  const auto duration = std::chrono::duration_cast<std::chrono::microseconds>(
      std::chrono::steady_clock::now() - start);

  std::mt19937_64 random = TestRandom();
  const std::string index = directory / "index";
  int absent = 0, kept = 0, replaced = 0;
  for (int i = 0; i < kKills; ++i) {
    if (i % 20 == 0) std::filesystem::remove_all(index);
    const uint64_t before = Entries(index);
    const std::string& database = before == kRows ? large : small;
    BuildAndKill(database, index, std::chrono::microseconds(random() % (duration.count() * 3 / 2)));
    const uint64_t after = Entries(index);
    if (after == before) {
      ++(before == 0 ? absent : kept);
    } else {
      BOOST_TEST(after == (database == large ? 2 * kRows : kRows));
      ++replaced;
    }
  }
  BOOST_TEST_MESSAGE(absent << " absent, " << kept << " kept, " << replaced << " replaced");
  BOOST_TEST(kept + absent > 0);
  BOOST_TEST(replaced > 0);
  // The remains of a kill do not prevent the next build, which removes them.
  Build(small, index);
  BOOST_TEST(Entries(index) == kRows);
  size_t files = 0;
  for (const auto& file : std::filesystem::directory_iterator(index)) {
    files += file.is_regular_file() ? 1 : 0;
  }
  BOOST_TEST(files == 4u);  // run, rows, MANIFEST, LOCK
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
