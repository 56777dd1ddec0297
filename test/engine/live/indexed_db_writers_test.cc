// Concurrent writers and readers of an IndexedDB, for CAIRN_TEST_SECONDS.
#include <atomic>
#include <boost/test/unit_test.hpp>
#include <cstdlib>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "cairn/column.h"
#include "cairn/indexed_db.h"
#include "test/engine/indexed_database.h"
#include "test/engine/live/model_indexes.h"
#include "test/require_ok.h"
#include "test/test_random.h"

namespace cairn {
BOOST_AUTO_TEST_SUITE(indexed_db_writers_test)
namespace {

// Each writer has separate rows and knows their contents; concurrently, other threads drop,
// compact, flush and store.
BOOST_AUTO_TEST_CASE(writers_and_readers_agree_while_indexes_come_and_go) {
  IndexedDatabase db;
  const ModelIndex& field = kModelIndexes.at("field");
  db.Create(field.spec, field.family);
  const absl::Time end = absl::Now() + TestTime();
  std::atomic<uint64_t> queries{0};
  std::mutex mutex;
  std::string problem;  // the first; guarded by mutex
  const auto report = [&](const std::string& text) {
    const std::lock_guard<std::mutex> lock(mutex);
    if (problem.empty()) problem = text;
  };
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t, random = TestRandom(100 + t)]() mutable {
      std::map<std::string, std::string> rows;
      while (absl::Now() < end || queries <= 20) {
        const std::string key = absl::StrCat("t", t, "_", random() % 50);
        const std::string value = absl::StrCat("t", t, "_v", random() % 10);
        rocksdb::WriteOptions options;
        options.disableWAL = random() % 2 == 0;
        if (random() % 4 == 0) {
          if (!db->Delete(options, key).ok()) return report("a deletion failed");
          rows.erase(key);
        } else {
          if (!db->Put(options, key, value).ok()) return report("a write failed");
          rows[key] = value;
        }
        std::set<std::string> expected, found;
        for (const auto& [k, v] : rows) {
          if (v == value) expected.insert(k);
        }
        const auto pinned = db->Pin("field");
        if (!pinned.ok()) return report(pinned.status().ToString());
        const std::string_view keys[] = {value};
        FindResult matches;
        StringList primary_keys;
        absl::Status s = (*pinned)->Find(keys, &matches);
        if (s.ok()) s = (*pinned)->PrimaryKeys(matches, &primary_keys);
        if (!s.ok()) return report(s.ToString());
        for (size_t i = 0; i < primary_keys.size(); ++i) found.emplace(primary_keys[i]);
        if (found != expected) {
          return report(
              absl::StrCat(value, " has ", found.size(), " rows, expected ", expected.size()));
        }
        ++queries;
      }
    });
  }
  threads.emplace_back([&, random = TestRandom(200)]() mutable {
    while (absl::Now() < end) {
      const ModelIndex& prefix = kModelIndexes.at("prefix");
      absl::Status s = db->CreateIndex(SpecOf(prefix.spec), db.family(0));
      if (s.ok() && random() % 2 == 0) s = db->WaitUntilReady("prefix");
      if (s.ok() && random() % 2 == 0) s = db->FlushIndexes();
      if (s.ok() && random() % 2 == 0) s = db->CompactIndex("field");
      if (s.ok()) s = db->DropIndex("prefix");
      if (!s.ok()) return report(s.ToString());
      if (!db->Flush({}, db.family(0)).ok()) return report("a flush failed");
    }
  });
  for (std::thread& thread : threads) thread.join();
  if (!problem.empty()) BOOST_ERROR(problem);
  BOOST_TEST(queries > 20u);
  CheckAgainstDatabase(db.get(), "field", db.family(0));
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
