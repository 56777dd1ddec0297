// A machine that builds generations of a sharded index ends at one file operation after the other,
// by a kill or a power loss: the index is one whole generation or the other. Also, one operation
// after the other fails. CAIRN_TEST_STRIDE is the number of operations between two ends: 1 for
// every operation.
#include <boost/test/unit_test.hpp>
#include <cstdlib>
#include <memory>
#include <random>
#include <string>

#include "cairn/options.h"
#include "cairn/sharding.h"
#include "engine/util/rocksdb_file_system.h"
#include "test/engine/faults/crash_file_system.h"
#include "test/engine/shards/sharded_pair.h"
#include "test/sanitizer.h"
#include "test/test_random.h"

namespace cairn {
BOOST_AUTO_TEST_SUITE(shard_points_test)
namespace {

constexpr char kIndex[] = "/index";
// Prime, so that every kind of operation is tested.
constexpr uint64_t kStride = kUnderTsan ? 61 : 11;

class Machine {
 public:
  explicit Machine(TestDatabase* db) : db_(*db) {}

  CrashFileSystem* files() { return files_.get(); }
  absl::Status Build(uint32_t shards) {
    ShardedBuildOptions options;
    options.shards = shards;
    options.segments = 2;
    options.build.threads = 1;
    options.build.memory_budget = 5000;  // so that it spills
    options.build.file_system = files_;
    return BuildSharded(*db_.Source(), Spec("value:text"), kIndex, options).status();
  }
  // The number of shards of the current generation; 0 if there is none.
  size_t Shards(const Strings& expected) {
    OpenOptions options = ForTests();
    options.threads = 1;
    options.file_system = files_;
    const auto index = SecondaryIndex::Open(kIndex, options);
    if (absl::IsNotFound(index.status())) return 0;
    RequireOk(index);
    RequireOk((*index)->Verify());
    BOOST_CHECK(Entries(**index) == expected);
    return RequireOk((*index)->Stats()).shards.size();
  }
  // SHARDS, the LOCK file if there is one, and directories.
  size_t Names() { return RequireOk(FileSystemOf(files_)->List(kIndex)).size(); }

 private:
  TestDatabase& db_;
  const std::shared_ptr<CrashFileSystem> files_ = std::make_shared<CrashFileSystem>("/db");
};

BOOST_AUTO_TEST_CASE(builds_may_end_at_any_operation) {
  const char* given = std::getenv("CAIRN_TEST_STRIDE");
  const uint64_t stride = given != nullptr ? std::strtoull(given, nullptr, 10) : kStride;
  std::mt19937_64 random = TestRandom();
  TestDatabase db;
  for (int i = 0; i < 120; ++i) db.Put("row" + std::to_string(i), std::to_string(i % 13));
  const Strings expected = Entries(*Build(db, "value:text"));
  uint64_t operations = 0;
  size_t names = 0;
  {
    Machine machine(&db);
    RequireOk(machine.Build(2));
    RequireOk(machine.Build(3));
    operations = machine.files()->changes();
    names = machine.Names();
  }
  int ends = 0;
  for (uint64_t k = 1 + random() % stride; k <= operations; k += stride) {
    for (const auto end : {CrashFileSystem::End::kKilled, CrashFileSystem::End::kPowerLost}) {
      BOOST_TEST_CONTEXT(
          "operation " << k
                       << (end == CrashFileSystem::End::kKilled ? ", killed" : ", without power")) {
        Machine machine(&db);
        machine.files()->StopAfter(k);
        const bool first = machine.Build(2).ok() && !machine.files()->stopped();
        const bool second = machine.Build(3).ok() && !machine.files()->stopped();
        machine.files()->Restart(end, &random);
        const size_t shards = machine.Shards(expected);
        BOOST_TEST((shards == 0 || shards == 2 || shards == 3));
        if (first) BOOST_TEST(shards != 0u);
        if (second) BOOST_TEST(shards == 3u);
        RequireOk(machine.Build(3));
        BOOST_TEST(machine.Shards(expected) == 3u);
        BOOST_TEST(machine.Names() == names);
        ++ends;
      }
    }
  }
  BOOST_TEST_MESSAGE(ends << " ends within " << operations << " operations");
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
