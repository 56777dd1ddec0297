// A disk of a database and its indexes is full for a time: nothing ends the process, every index
// has the database's rows, and all continue when there is space again.
#include <boost/test/unit_test.hpp>
#include <memory>
#include <random>

#include "absl/time/clock.h"
#include "cairn/indexed_db.h"
#include "rocksdb/env.h"
#include "test/engine/faults/crash_database.h"
#include "test/engine/faults/crash_file_system.h"
#include "test/sanitizer.h"
#include "test/test_random.h"

namespace cairn {
BOOST_AUTO_TEST_SUITE(disk_full_test)
namespace {

constexpr size_t kRounds = FewerUnderTsan(20, 4);

BOOST_AUTO_TEST_CASE(a_full_disk_ends_writes_and_stores_and_nothing_else) {
  const auto files = std::make_shared<CrashFileSystem>("/db");
  const std::unique_ptr<rocksdb::Env> env = rocksdb::NewCompositeEnv(files);
  const IndexedDBOptions options = CrashDatabase::BusyOptions();
  std::mt19937_64 random = TestRandom();
  WriteStream stream(random());
  TwoFamilies model;
  for (size_t round = 0; round < kRounds; ++round) {
    const auto opened =
        CrashDatabase::Open(CrashDatabase::RocksDbOptions(env.get()), "/db", options);
    RequireOk(opened.status());
    CrashDatabase& db = **opened;
    for (const auto& [name, index] : kCrashIndexes) {
      if (round == 0) RequireOk(db.Create(name));
      db.CheckIndex(name, model);
    }
    for (const IndexInfo& info : db->ListIndexes()) {
      BOOST_TEST(info.builds == (round == 0 ? 1u : 0u));
    }
    const uint64_t before_it_is_full = random() % 300;
    for (uint64_t i = 0;; ++i) {
      if (i == before_it_is_full) files->SetFull(true);
      const WriteCall call = stream.Next();
      if (call.updates.empty() || call.MakesDuplicate(model)) continue;
      const rocksdb::Status s = call.MakeOf(db.get(), db.families());
      if (!s.ok()) {
        BOOST_TEST(s.IsNoSpace(), s.ToString());
        break;
      }
      call.MakeOf(&model);
      if (random() % 30 == 0) RequireOk(db->FlushIndexes());
    }
    for (const auto& [name, index] : kCrashIndexes) db.CheckIndex(name, model);
    const absl::Status stored = db->FlushIndexes();
    BOOST_TEST((stored.ok() || absl::IsResourceExhausted(stored)), stored);
    if (random() % 2 == 0) files->SetFull(false);
    db->CompactIndex("word").IgnoreError();
    for (const auto& [name, index] : kCrashIndexes) db.CheckIndex(name, model);
    files->SetFull(false);
  }
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
