// Table files that were written after an index was stored, and lost before it catches up.
#include "engine/log/flushed_rows.h"

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "cairn/lookup.h"
#include "engine/log/anchor.h"
#include "engine/log/table_files.h"
#include "engine/log/update_log.h"
#include "index/files/index_directory.h"
#include "index/machine/status_macros.h"
#include "test/engine/log/database_history.h"
#include "test/require_ok.h"
#include "test/sanitizer.h"
#include "test/test_random.h"

namespace cairn {
BOOST_AUTO_TEST_SUITE(flushed_rows_test)
namespace {

uint64_t NewestFile(DatabaseHistory* h) {
  return ListTableFiles(h->db(), h->family()).files.back().number;
}

// The changes after `after`, as the log has them once they were checked.
RowChanges ReadChecked(DatabaseHistory* h, SequenceNumber after) {
  rocksdb::ColumnFamilyHandle* const families[] = {h->family()};
  FlushedRows flushed(h->db(), families, nullptr);
  auto log = RequireOk(UpdateLog::Open(h->db(), families, after, h->db()->GetLatestSequenceNumber(),
                                       {}, {}, &flushed));
  RowChanges changes;
  while (!log->done()) RequireOk(log->Read(SIZE_MAX, absl::MakeSpan(&changes, 1)));
  return changes;
}

// The log position of the state that the history's index has.
absl::StatusOr<LogPosition> PositionOf(const DatabaseHistory& h) {
  ASSIGN_OR_RETURN(const Manifest manifest, ReadManifest(h.Beside("index")));
  ASSIGN_OR_RETURN(const Anchor anchor, Anchor::Parse(manifest.anchor));
  return anchor.log;
}

size_t CountLost(DatabaseHistory* h, const LogPosition& log, SequenceNumber flushed = 0) {
  LostRows lost(h->db(), h->family(), flushed, nullptr);
  RequireOk(lost.ReadFile(log));
  BOOST_TEST(lost.ranges().empty());
  return lost.rows().size();
}

size_t CountLookUps(const RowChanges& changes) {
  size_t count = 0;
  for (size_t i = 0; i < changes.size(); ++i) count += changes[i].kind == RowChangeKind::kLookUp;
  return count;
}

// A database with the rows a000 to a099, all in one table file, and an index.
class FlushedRowsFixture {
 public:
  FlushedRowsFixture() {
    h_.options().disable_auto_compactions = true;
    h_.Reopen();
    h_.Put("a", 0, 100, "old");
    RequireOk(h_.db()->Flush({}));
    h_.Build();
    CatchUpOptions durable;
    durable.durable = true;
    RequireOk(h_.CatchUp(durable));
    h_.Reopen();
  }

  // Loses the newest table file, and checks that the index then has the rows of the database.
  void CheckWithoutNewest() {
    h_.LoseFile(NewestFile(&h_));
    h_.CheckCurrent();
    h_.Put("c", 0, 5, "more");
    h_.CheckCurrent();
  }

 protected:
  DatabaseHistory h_;
};

BOOST_FIXTURE_TEST_CASE(rows_that_were_put_are_as_in_the_database, FlushedRowsFixture) {
  h_.Put("a", 50, 150, "new");
  RequireOk(h_.db()->Flush({}));
  CheckWithoutNewest();
  BOOST_TEST(RequireOk(h_.index().Count(KeyQuery::BytePrefix("new"), {})) ==
             std::vector<uint64_t>({0}));
}

BOOST_FIXTURE_TEST_CASE(deleted_rows_are_back, FlushedRowsFixture) {
  for (const std::string key : {"a000", "a050", "a099"}) RequireOk(h_.db()->Delete({}, key));
  RequireOk(h_.db()->SingleDelete({}, "a010"));
  RequireOk(h_.db()->Flush({}));
  CheckWithoutNewest();
  BOOST_TEST(RequireOk(h_.index().Count(KeyQuery::BytePrefix("old"), {})) ==
             std::vector<uint64_t>({100}));
}

BOOST_FIXTURE_TEST_CASE(rows_of_a_deleted_range_are_back, FlushedRowsFixture) {
  RequireOk(h_.db()->DeleteRange({}, h_.family(), "a010", "a090"));
  h_.Put("a", 20, 30, "new");
  RequireOk(h_.db()->Flush({}));
  CheckWithoutNewest();
}

BOOST_FIXTURE_TEST_CASE(too_many_rows_of_a_range_that_the_state_lacks_are_an_error,
                        FlushedRowsFixture) {
  rocksdb::WriteBatch batch;
  for (int i = 0; i <= 100'000; ++i) RequireOk(batch.Put(absl::StrFormat("b%06d", i), "x"));
  RequireOk(h_.db()->Write({}, &batch));
  RequireOk(h_.db()->Flush({}));
  RequireOk(h_.db()->DeleteRange({}, h_.family(), "b", "c"));
  h_.Put("d", 0, 1, "last");
  CatchUpOptions durable;
  durable.durable = true;
  RequireOk(h_.CatchUp(durable));
  h_.Reopen();
  h_.LoseFile(NewestFile(&h_));
  h_.CheckRefused("no table file shows that");
}

// A compaction of older rows only, while the log file was current.
BOOST_FIXTURE_TEST_CASE(files_without_sequence_numbers_prove_nothing, FlushedRowsFixture) {
  rocksdb::CompactRangeOptions bottommost;
  bottommost.bottommost_level_compaction = rocksdb::BottommostLevelCompaction::kForce;
  RequireOk(h_.db()->CompactRange(bottommost, nullptr, nullptr));
  h_.Put("a", 50, 51, "new");
  RequireOk(h_.db()->Flush({}));
  CheckWithoutNewest();
}

// One of several files, whose keys are between those of the others.
BOOST_FIXTURE_TEST_CASE(other_files_with_its_range_of_keys_do_not_stand_for_it,
                        FlushedRowsFixture) {
  for (const int file : {0, 1, 2}) {
    for (int i = file; i < 100; i += 3) h_.Put("a", i, i + 1, "new");
    RequireOk(h_.db()->Flush({}));
  }
  const std::vector<TableFile> files = ListTableFiles(h_.db(), h_.family()).files;
  BOOST_REQUIRE_EQUAL(files.size(), 4u);
  h_.LoseFile(files[2].number);
  h_.CheckCurrent();
  BOOST_TEST(RequireOk(h_.index().Count(KeyQuery::BytePrefix("old"), {})) ==
             std::vector<uint64_t>({33}));
}

BOOST_FIXTURE_TEST_CASE(rows_of_another_family_do_not_count, FlushedRowsFixture) {
  h_.Put("a", 50, 150, "new");
  RequireOk(h_.db()->Flush({}));
  for (int i = 0; i < 150; ++i) {
    RequireOk(h_.db()->Put({}, h_.users(), absl::StrFormat("a%03d", i), "user"));
  }
  const uint64_t newest = NewestFile(&h_);
  RequireOk(h_.db()->Flush({}, h_.users()));
  h_.LoseFile(newest);
  h_.CheckCurrent();
}

// If nothing was lost, the only rows that are read from the database are those that a compaction
// has dropped, or moved to the last level.
BOOST_FIXTURE_TEST_CASE(changes_are_taken_from_the_log_if_table_files_have_them,
                        FlushedRowsFixture) {
  const SequenceNumber after = h_.db()->GetLatestSequenceNumber();
  h_.Put("a", 50, 150, "new");
  RequireOk(h_.db()->Delete({}, "a060"));
  RequireOk(h_.db()->DeleteRange({}, h_.family(), "a070", "a080"));
  RequireOk(h_.db()->Flush({}));
  h_.Put("a", 90, 95, "newer");
  h_.Reopen();
  RowChanges changes = ReadChecked(&h_, after);
  BOOST_TEST(changes.size() == 107u);
  BOOST_TEST(CountLookUps(changes) == 0u);

  rocksdb::CompactRangeOptions bottommost;
  bottommost.bottommost_level_compaction = rocksdb::BottommostLevelCompaction::kForce;
  RequireOk(h_.db()->CompactRange(bottommost, nullptr, nullptr));
  BOOST_TEST(CountLookUps(ReadChecked(&h_, after)) >= 105u);
  h_.CheckCurrent();

  // The range has no rows. A compaction drops deletions and the rows that they delete.
  h_.Put("z", 0, 10, "brief");
  const SequenceNumber before = h_.db()->GetLatestSequenceNumber();
  for (int i = 0; i < 10; ++i) RequireOk(h_.db()->Delete({}, absl::StrFormat("z%03d", i)));
  RequireOk(h_.db()->DeleteRange({}, h_.family(), "x", "y"));
  RequireOk(h_.db()->CompactRange(bottommost, nullptr, nullptr));
  h_.Reopen();
  changes = ReadChecked(&h_, before);
  BOOST_TEST(CountLookUps(changes) == 10u);
  h_.CheckCurrent();
}

// A later reading of a state without the files that were lost, by a snapshot of that state.
BOOST_FIXTURE_TEST_CASE(rows_of_a_range_are_those_of_the_snapshot, FlushedRowsFixture) {
  const SequenceNumber after = h_.db()->GetLatestSequenceNumber();
  RequireOk(h_.db()->DeleteRange({}, h_.family(), "a010", "a090"));
  RequireOk(h_.db()->Flush({}));
  h_.LoseFile(NewestFile(&h_));
  rocksdb::ManagedSnapshot snapshot(h_.db());
  const SequenceNumber until = snapshot.snapshot()->GetSequenceNumber();
  RequireOk(h_.db()->Delete({}, "a020"));
  rocksdb::ColumnFamilyHandle* const families[] = {h_.family()};
  FlushedRows flushed(h_.db(), families, nullptr);
  for (const bool is_now : {false, true}) {
    auto log = RequireOk(UpdateLog::Open(h_.db(), families, after, until, {}, {}, &flushed));
    RowChanges changes;
    RequireOk(
        log->Read(SIZE_MAX, absl::MakeSpan(&changes, 1), is_now ? nullptr : snapshot.snapshot()));
    BOOST_REQUIRE(log->done());
    const auto has = [&](std::string_view key) {
      for (size_t i = 0; i < changes.size(); ++i) {
        if (changes[i].kind == RowChangeKind::kLookUp && changes[i].key == key) return true;
      }
      return false;
    };
    BOOST_TEST(has("a010"));
    BOOST_TEST(has("a020") == !is_now);
    BOOST_TEST(has("a089"));
    BOOST_TEST(!has("a090"));
  }
}

// The index has rows that were only in the log. RocksDB recovers them into a table file.
BOOST_AUTO_TEST_CASE(rows_of_the_state_that_were_recovered_from_the_log) {
  for (const bool is_lost : {false, true}) {
    DatabaseHistory h;
    h.options().disable_auto_compactions = true;
    h.Reopen();
    h.Put("a", 0, 10, "old");
    RequireOk(h.db()->Flush({}));
    h.Put("a", 5, 15, "new");
    RequireOk(h.db()->Delete({}, "a000"));
    h.Build();
    const LogPosition log = RequireOk(PositionOf(h));
    h.Reopen();
    BOOST_TEST(CountLost(&h, log) == 0u);
    if (is_lost) {
      h.LoseFile(NewestFile(&h));
      BOOST_TEST(CountLost(&h, log) == 11u);
      BOOST_TEST(CountLost(&h, log, h.db()->GetLatestSequenceNumber()) == 0u);
    }
    h.CheckCurrent();
    BOOST_TEST(RequireOk(h.index().Count(KeyQuery::BytePrefix("new"), {})) ==
               std::vector<uint64_t>({is_lost ? 0u : 10u}));
  }
}

// Rows of a state that RocksDB has recovered into memory are there, and are read from there.
BOOST_AUTO_TEST_CASE(rows_of_the_state_that_are_in_memory) {
  DatabaseHistory h;
  h.options().avoid_flush_during_recovery = true;
  h.Reopen();
  h.Put("a", 0, 10, "old");
  h.Build();
  for (int opening = 0; opening < 3; ++opening) {
    h.Reopen();
    h.CheckCurrent();
    h.Put("b", opening, opening + 1, "more");
    h.CheckCurrent();
  }
}

// Random writes, flushes and compactions. Any one file of those since the state is lost.
BOOST_AUTO_TEST_CASE(any_lost_file) {
  std::mt19937_64 random = TestRandom();
  for (int round = 0; round < (kUnderTsan ? 6 : 30); ++round) {
    const bool is_reverse = round % 2 == 1;
    DatabaseHistory h(/*keeps_logs=*/true, is_reverse ? rocksdb::ReverseBytewiseComparator()
                                                      : rocksdb::BytewiseComparator());
    h.options().disable_auto_compactions = true;
    h.options().compaction_style =
        round % 3 == 2 ? rocksdb::kCompactionStyleUniversal : rocksdb::kCompactionStyleLevel;
    h.Reopen();
    const auto write = [&](int flushes) {
      for (int flush = 0; flush < flushes; ++flush) {
        for (int i = 0; i < 20; ++i) {
          const int key = static_cast<int>(random() % 100);
          const std::string name = absl::StrFormat("a%03d", key);
          switch (random() % 8) {
            case 0:
              RequireOk(h.db()->Delete({}, name));
              break;
            case 1:
              RequireOk(h.db()->DeleteRange(
                  {}, h.family(), name, absl::StrFormat("a%03d", is_reverse ? key - 5 : key + 5)));
              break;
            default:
              h.Put("a", key, key + 1, absl::StrFormat("v%d", random() % 10));
          }
        }
        RequireOk(h.db()->Flush({}));
      }
    };
    write(3);
    if (random() % 2 == 0) RequireOk(h.db()->CompactRange({}, nullptr, nullptr));
    h.Build();
    const uint64_t newest = NewestFile(&h);
    h.Reopen();
    write(2 + static_cast<int>(random() % 4));
    if (random() % 3 == 0) RequireOk(h.db()->CompactRange({}, nullptr, nullptr));
    std::vector<TableFile> files = ListTableFiles(h.db(), h.family()).files;
    std::erase_if(files, [&](const TableFile& file) { return file.number <= newest; });
    BOOST_REQUIRE(!files.empty());
    h.LoseFile(files[random() % files.size()].number);
    h.CheckCurrentOrRefused();
  }
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
