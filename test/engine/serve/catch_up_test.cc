// Compares SecondaryIndex::CatchUp with new builds.
#include <atomic>
#include <boost/test/unit_test.hpp>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "cairn/column.h"
#include "cairn/index_spec.h"
#include "cairn/options.h"
#include "cairn/query.h"
#include "cairn/secondary_index.h"
#include "cairn/sharding.h"
#include "cairn/snapshot_source.h"
#include "cairn/types.h"
#include "test/engine/test_database.h"
#include "test/require_ok.h"
#include "test/sanitizer.h"
#include "test/test_random.h"

namespace cairn {
BOOST_AUTO_TEST_SUITE(catch_up_test)
namespace {

using Strings = std::vector<std::string>;

IndexSpec Spec(std::string_view text) {
  return RequireOk(IndexSpec::Parse(text));
}

std::unique_ptr<SecondaryIndex> Build(TestDatabase& db, std::string_view spec,
                                      const std::string& name) {
  return RequireOk(SecondaryIndex::Build(*db.Source(), Spec(spec), db.Beside(name)));
}

// "key=primary key" of each match; fails the test on an error.
Strings Entries(const SecondaryIndex& index, const FindResult& matches) {
  StringList primary_keys;
  RequireOk(index.PrimaryKeys(matches, &primary_keys));
  Strings entries;
  for (size_t i = 0; i < primary_keys.size(); ++i) {
    entries.push_back(*index.codec().Format(matches.keys, i) + "=" + std::string(primary_keys[i]));
  }
  return entries;
}

Strings AllEntries(const SecondaryIndex& index) {
  FindResult matches;
  QueryOptions options;
  options.with_keys = true;
  RequireOk(index.Scan(RangeBatch::Everything(index.codec().kind()), &matches, options));
  return Entries(index, matches);
}

// All entries, read in pages.
Strings AllInPages(const SecondaryIndex& index, Order order, uint64_t page) {
  Strings entries;
  std::string cursor;
  do {
    RangeBatch ranges = RangeBatch::Everything(index.codec().kind());
    if (!cursor.empty()) ranges.after = absl::MakeConstSpan(&cursor, 1);
    FindResult matches;
    QueryOptions options;
    options.with_keys = true;
    options.order = order;
    options.limit = page;
    RequireOk(index.Scan(ranges, &matches, options));
    for (std::string& entry : Entries(index, matches)) entries.push_back(std::move(entry));
    cursor = matches.cursors.at(0);
  } while (!cursor.empty());
  return entries;
}

uint64_t CountAll(const SecondaryIndex& index) {
  uint64_t count = 0;
  RequireOk(index.Count(RangeBatch::Everything(index.codec().kind()), absl::MakeSpan(&count, 1)));
  return count;
}

void CheckCurrent(TestDatabase& db, const SecondaryIndex& index, std::string_view spec) {
  const auto fresh = Build(db, spec, "fresh");
  const Strings expected = AllEntries(*fresh);
  BOOST_TEST(index.sequence() == fresh->sequence());
  BOOST_TEST(AllEntries(index) == expected, boost::test_tools::per_element());
  BOOST_TEST(AllInPages(index, Order::kAscending, 7) == expected, boost::test_tools::per_element());
  const Strings reversed(expected.rbegin(), expected.rend());
  BOOST_TEST(AllInPages(index, Order::kDescending, 5) == reversed,
             boost::test_tools::per_element());
  BOOST_TEST(CountAll(index) == expected.size());
  BOOST_TEST(index.Stats()->entries == expected.size());
  Strings differences;
  const absl::Status status = index.VerifyAgainst(*db.Source(), 10, &differences);
  BOOST_TEST(status.ok(), status);
  BOOST_TEST(differences.empty());
  for (const std::string& line : differences) BOOST_TEST_MESSAGE(line);
}

void CatchUp(TestDatabase& db, SecondaryIndex* index) {
  const auto report = RequireOk(index->CatchUp(*db.Source()));
  BOOST_TEST(report.sequence == index->sequence());
}

BOOST_AUTO_TEST_CASE(an_index_that_caught_up_answers_like_one_built_anew) {
  for (const char* spec :
       {"value:text", "value.field('|',0):u32", "value.field('|',0):u64,value:text",
        "value.json('/tags'):text,on_error=skip"}) {
    if (kUnderTsan && spec != std::string_view("value:text")) continue;
    BOOST_TEST_CONTEXT(spec) {
      TestDatabase db;
      std::mt19937_64 random = TestRandom();
      const bool json = absl::StrContains(spec, "json");
      const auto value = [&] {
        const std::string number = std::to_string(random() % 40);
        return json ? "{\"tags\":[\"a" + number + "\",\"b\"]}" : number;
      };
      const auto row = [&] { return "row" + std::to_string(random() % 400); };
      for (int i = 0; i < 300; ++i) db.Put(row(), value());
      const auto index = Build(db, spec, "index");
      for (int round = 0; round < 5; ++round) {
        for (int i = 0; i < 60; ++i) {
          const uint64_t what = random() % 20;
          if (what < 12) {
            db.Put(row(), value());
          } else if (what < 18) {
            db.Delete(row());
          } else {
            const std::string from = row(), to = row();
            if (from < to && to.size() - from.size() < 2) {
              RequireOk(db.db()->DeleteRange({}, db.db()->DefaultColumnFamily(), from, from + "9"));
            }
          }
        }
        CatchUp(db, index.get());
        CheckCurrent(db, *index, spec);
      }
      CatchUp(db, index.get());  // nothing new
      CheckCurrent(db, *index, spec);
    }
  }
}

BOOST_AUTO_TEST_CASE(what_was_caught_up_is_there_again_and_merges_change_nothing_but_row_ids) {
  const std::string_view spec = "value:text";
  TestDatabase db;
  std::mt19937_64 random = TestRandom();
  const auto write = [&](int times) {
    for (int i = 0; i < times; ++i) {
      const std::string row = "row" + std::to_string(random() % 300);
      if (random() % 4 == 0) {
        db.Delete(row);
      } else {
        db.Put(row, std::to_string(random() % 50));
      }
    }
  };
  write(200);
  auto index = Build(db, spec, "index");
  const int rounds = kUnderTsan ? 4 : 14;  // 14 are more than the maximum number of delta files
  for (int round = 0; round < rounds; ++round) {
    write(30);
    CatchUp(db, index.get());
    const auto again = RequireOk(SecondaryIndex::Open(db.Beside("index")));
    CheckCurrent(db, *again, spec);
    BOOST_TEST(again->Verify().ok());
    if (round % 5 != 3) continue;
    // Changes that are not stored are also merged.
    write(10);
    CatchUpOptions options;
    options.durable = round % 2 == 0;
    RequireOk(index->CatchUp(*db.Source(), options));
    RequireOk(index->Compact());
    BOOST_TEST(index->Stats()->delta.added_entries == 0u);
    CheckCurrent(db, *index, spec);
    // The index that was open before continues with its version, and may not publish another.
    CheckCurrent(db, *index, spec);
    write(1);
    BOOST_TEST(absl::IsFailedPrecondition(again->CatchUp(*db.Source()).status()));
  }
}

BOOST_AUTO_TEST_CASE(queries_catching_up_and_merges_at_one_time) {
  TestDatabase db;
  for (int i = 0; i < 500; ++i) db.Put("row" + std::to_string(i), std::to_string(i % 50));
  const auto index = Build(db, "value.field('|',0):u32", "index");
  std::atomic<bool> done = false;
  std::mutex mutex;
  std::string wrong;  // the first error; guarded by mutex
  const auto check = [&](std::string_view what, const absl::Status& status) {
    const std::lock_guard<std::mutex> lock(mutex);
    if (!status.ok() && wrong.empty()) wrong = std::string(what) + ": " + status.ToString();
  };
  const auto check_rows = [&](std::string_view what, uint64_t rows) {
    if (rows == 500) return;
    check(what, absl::InternalError(std::to_string(rows) + " rows"));
  };
  std::thread reader([&] {
    FindResult matches;
    while (!done) {
      // Every row has one of the keys at any time.
      uint64_t count = 0;
      check("count",
            index->Count(RangeBatch::Everything(PhysicalType::kU32), absl::MakeSpan(&count, 1)));
      check_rows("count", count);
      check("scan", index->Scan(RangeBatch::Everything(PhysicalType::kU32), &matches));
      check_rows("scan", matches.row_ids.size());
    }
  });
  std::thread merger([&] {
    while (!done) check("merge", index->Compact());
  });
  std::mt19937_64 random = TestRandom();
  for (size_t round = 0; round < FewerUnderTsan(60, 3); ++round) {
    for (int i = 0; i < 20; ++i) {
      db.Put("row" + std::to_string(random() % 500), std::to_string(random() % 50));
    }
    check("catch-up", index->CatchUp(*db.Source()).status());
  }
  done = true;
  reader.join();
  merger.join();
  BOOST_TEST(wrong == "");
  CheckCurrent(db, *index, "value.field('|',0):u32");
}

BOOST_AUTO_TEST_CASE(fetch_reads_rows_of_base_and_delta) {
  TestDatabase db;
  for (int i = 0; i < 50; ++i) db.Put("r" + std::to_string(100 + i), "red");
  const auto index = Build(db, "value:text", "index");
  db.Put("r105", "blue");
  db.Put("a", "red");
  db.Put("r120x", "red");
  db.Delete("r110");
  CatchUp(db, index.get());
  db.Put("r130", "stale");  // after
  const std::string_view red = "red";
  FetchResult rows;
  RequireOk(index->Fetch(*db.Source(), RangeBatch::Equal(KeyBatch(absl::MakeConstSpan(&red, 1))),
                         {}, &rows));
  BOOST_TEST(rows.primary_keys.size() == 49u);
  BOOST_TEST(rows.stale == 1u);
  BOOST_TEST(rows.primary_keys[0] == "a");
  for (size_t i = 1; i < rows.primary_keys.size(); ++i) {
    BOOST_TEST((rows.primary_keys[i - 1] < rows.primary_keys[i]));
    BOOST_TEST(rows.values[i] == "red");
  }
}

BOOST_AUTO_TEST_CASE(a_reader_of_the_version_before_is_not_disturbed_by_an_error) {
  TestDatabase db;
  db.Put("a", "1");
  db.Put("b", "2");
  const auto index = Build(db, "value.field('|',0):u32", "index");
  const Strings before = AllEntries(*index);
  db.Put("c", "3");
  db.Put("d", "not a number");
  const auto failed = index->CatchUp(*db.Source());
  BOOST_TEST(absl::IsInvalidArgument(failed.status()), failed.status());
  BOOST_TEST(absl::StrContains(failed.status().message(), "'d'"));
  BOOST_TEST(AllEntries(*index) == before);
  db.Put("d", "4");
  CatchUp(db, index.get());
  CheckCurrent(db, *index, "value.field('|',0):u32");
}

BOOST_AUTO_TEST_CASE(a_unique_index_refuses_a_second_row_and_lets_keys_move) {
  TestDatabase db;
  db.Put("a", "1");
  db.Put("b", "2");
  const auto index = Build(db, "value:text,unique=true", "index");
  db.Put("a", "2");  // they swap values
  db.Put("b", "1");
  CatchUp(db, index.get());
  CheckCurrent(db, *index, "value:text,unique=true");
  db.Put("c", "3");
  db.Put("d", "1");
  const auto failed = index->CatchUp(*db.Source());
  BOOST_TEST(absl::IsAlreadyExists(failed.status()));
  BOOST_TEST(absl::StrContains(failed.status().message(), "'b'"));
  BOOST_TEST(absl::StrContains(failed.status().message(), "'d'"));
  BOOST_TEST(CountAll(*index) == 2u);
  db.Delete("b");
  CatchUp(db, index.get());
  CheckCurrent(db, *index, "value:text,unique=true");
}

// As in SQL, nulls are not equal.
BOOST_AUTO_TEST_CASE(a_unique_index_lets_many_rows_have_a_null) {
  for (const char* const nulls : {"first", "last"}) {
    for (const char* const parts :
         {"value.field('|',1):u8", "value.field('|',0):u8,value.field('|',1):text"}) {
      TestDatabase db;
      db.Put("a", "1");
      db.Put("b", "1");
      db.Put("c", "1|7");
      const std::string spec = absl::StrCat(parts, ",unique=true,nulls=", nulls);
      const auto index = Build(db, spec, "index");
      ShardedBuildOptions sharded;
      sharded.shards = 3;
      RequireOk(BuildSharded(*db.Source(), Spec(spec), db.Beside("sharded"), sharded).status());
      db.Put("d", "1");
      db.Put("e", "1");
      CatchUp(db, index.get());
      CheckCurrent(db, *index, spec);
      db.Put("f", "1|7");
      const auto failed = index->CatchUp(*db.Source());
      BOOST_TEST(absl::IsAlreadyExists(failed.status()), failed.status());
      BOOST_TEST(absl::StrContains(failed.status().message(), "rows 'c' and 'f'"));
      BOOST_TEST(absl::IsAlreadyExists(
          SecondaryIndex::Build(*db.Source(), Spec(spec), db.Beside("again")).status()));
      BOOST_TEST(absl::IsAlreadyExists(
          BuildSharded(*db.Source(), Spec(spec), db.Beside("twice"), sharded).status()));
    }
  }
}

BOOST_AUTO_TEST_CASE(what_the_log_does_not_tell_is_an_error_that_advises_to_rebuild) {
  TestDatabase db;
  db.Put("a", "1");
  const auto index = Build(db, "value:text", "index");
  rocksdb::WriteOptions unlogged;
  unlogged.disableWAL = true;
  RequireOk(db.db()->Put(unlogged, "b", "2"));
  const auto gap = index->CatchUp(*db.Source());
  BOOST_TEST(absl::IsFailedPrecondition(gap.status()), gap.status());
  BOOST_TEST(absl::StrContains(gap.status().message(), "build"));

  TestDatabase other;
  other.Put("a", "1");
  BOOST_TEST(absl::IsFailedPrecondition(index->CatchUp(*other.Source()).status()));
  const auto files = SnapshotSource::FromDirectory(other.path());
  if (files.ok()) {
    BOOST_TEST(absl::IsFailedPrecondition(index->CatchUp(**files).status()));
  }
}

BOOST_AUTO_TEST_CASE(catching_up_can_be_cancelled) {
  TestDatabase db;
  db.Put("a", "1");
  const auto index = Build(db, "value:text", "index");
  db.Put("b", "2");
  const std::atomic<bool> cancelled = true;
  CatchUpOptions options;
  options.cancelled = &cancelled;
  BOOST_TEST(absl::IsCancelled(index->CatchUp(*db.Source(), options).status()));
  BOOST_TEST(CountAll(*index) == 1u);
  CatchUp(db, index.get());
  BOOST_TEST(CountAll(*index) == 2u);
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
