// Memory that live indexes use for rows that were inserted and deleted.
#include <malloc.h>

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <string>

#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "cairn/indexed_db.h"
#include "cairn/secondary_index.h"
#include "rocksdb/write_batch.h"
#include "test/engine/indexed_database.h"
#include "test/require_ok.h"
#include "test/sanitizer.h"

namespace cairn {
BOOST_AUTO_TEST_SUITE(indexed_db_memory_test)
namespace {

constexpr uint64_t kBatch = 500;

IndexedDBOptions Quiet() {
  IndexedDBOptions options;
  options.compact_interval = absl::ZeroDuration();  // so that only this releases memory
  options.flush_interval = absl::ZeroDuration();
  return options;
}

uint64_t DeltaBytes(IndexedDatabase& db, const std::string& index) {
  return RequireOk(RequireOk(db->Index(index))->Stats()).delta.bytes;
}

std::string Job(uint64_t i) {
  return absl::StrFormat("job/%020d", i);
}

// Inserts rows [first, first + rows), and deletes each after `length` later ones. Returns the peak
// memory of the delta in bytes.
uint64_t RunQueue(IndexedDatabase& db, const std::string& index, uint64_t first, uint64_t rows,
                  uint64_t length) {
  uint64_t most = 0;
  for (uint64_t next = first; next < first + rows; next += kBatch) {
    rocksdb::WriteBatch batch;
    for (uint64_t i = next; i < next + kBatch; ++i) {
      RequireOk(batch.Put(Job(i), absl::StrFormat("state%d", i % 10)));
      if (i >= length) RequireOk(batch.Delete(Job(i - length)));
    }
    RequireOk(db->Write({}, &batch));
    RequireOk(db->Lookup(index, "state1"));
    most = std::max(most, DeltaBytes(db, index));
  }
  return most;
}

}  // namespace

// A queue of 1,000 rows with ever new keys.
BOOST_AUTO_TEST_CASE(rows_that_come_and_go_take_memory_for_those_that_are_there) {
  IndexedDatabase db(Quiet());
  db.Create("state = value:text");
  const uint64_t rows = FewerSanitized(100'000, 2, 4);
  BOOST_TEST(RunQueue(db, "state", 0, rows, 1000) < 3u << 20);
  BOOST_TEST(RequireOk(db->Lookup("state", "state1")).size() == 100u);
  // Its files, and a delta that is read from them, are no larger.
  RequireOk(db->FlushIndexes());
  db.Reopen();
  RequireOk(db->WaitUntilReady("state"));
  BOOST_TEST(db.Info("state").builds == 0u);
  BOOST_TEST(DeltaBytes(db, "state") < 1u << 20);
  BOOST_TEST(RequireOk(db->Lookup("state", "state1")).size() == 100u);
  BOOST_TEST(RunQueue(db, "state", rows, 20'000, 1000) < 3u << 20);
}

BOOST_AUTO_TEST_CASE(stored_again_and_again_they_take_files_for_those_that_are_there) {
  IndexedDBOptions options = Quiet();
  options.compact_interval = absl::Milliseconds(20);
  IndexedDatabase db(options);
  db.Create("state = value:text");
  for (uint64_t i = 0; i < FewerSanitized(40, 2, 4); ++i) {
    RunQueue(db, "state", i * 1000, 1000, 1000);
    RequireOk(db->FlushIndexes());
  }
  const auto bytes = [&] {
    uint64_t sum = 0;
    for (const auto& file : std::filesystem::directory_iterator(db.path() + ".indexes/state")) {
      if (file.path().extension() == ".upd") sum += file.file_size();
    }
    return sum;
  };
  // 40,000 rows take 1.6 MB.
  for (int i = 0; i < 500 && bytes() >= 300u << 10; ++i) absl::SleepFor(absl::Milliseconds(20));
  BOOST_TEST(bytes() < 300u << 10);
}

// 1,000 rows whose included column changes constantly.
BOOST_AUTO_TEST_CASE(values_that_change_take_memory_for_those_that_are_there) {
  IndexedDatabase db(Quiet());
  db.Create("city = value.field('|',0):text, include(seen = value.field('|',1):u64)");
  uint64_t most = 0;
  const uint64_t updates = FewerSanitized(100'000, 2, 4);
  for (uint64_t n = 0; n < updates;) {
    rocksdb::WriteBatch batch;
    for (uint64_t i = 0; i < kBatch; ++i, ++n) {
      RequireOk(
          batch.Put(absl::StrFormat("user%d", n % 1000), absl::StrFormat("city%d|%d", n % 10, n)));
    }
    RequireOk(db->Write({}, &batch));
    RequireOk(db->Lookup("city", "city1"));
    most = std::max(most, DeltaBytes(db, "city"));
  }
  BOOST_TEST(most < 2u << 20);
  BOOST_TEST(RequireOk(db->Lookup("city", "city1")).size() == 100u);
}

#if defined(__GLIBC__) && __GLIBC_PREREQ(2, 33)
// Memory for a large value is released after the indexes have it.
BOOST_AUTO_TEST_CASE(a_large_value_leaves_no_memory) {
  if (kUnderAsan || kUnderTsan) return;  // their allocators count differently
  IndexedDatabase db(Quiet());
  db.Create("start = value[0:4]:bytes");
  db.Put("small", "aaaa");
  RequireOk(db->Lookup("start", "aaaa"));
  constexpr size_t kBytes = size_t{48} << 20;
  const auto large_blocks = [] { return mallinfo2().hblkhd; };
  const size_t before = large_blocks();
  db.Put("large", std::string(kBytes, 'x'));
  BOOST_TEST(RequireOk(db->Lookup("start", "xxxx")).size() == 1u);
  RequireOk(db->Flush({}));  // RocksDB's own memory, which it releases in the background
  const absl::Time end = absl::Now() + absl::Seconds(10);
  while (large_blocks() >= before + kBytes / 2 && absl::Now() < end) {
    absl::SleepFor(absl::Milliseconds(10));
  }
  BOOST_TEST(large_blocks() < before + kBytes / 2);
}
#endif

BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
