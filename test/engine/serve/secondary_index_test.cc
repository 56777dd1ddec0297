#include "cairn/secondary_index.h"

#include <algorithm>
#include <atomic>
#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "cairn/column.h"
#include "cairn/device.h"
#include "cairn/index_spec.h"
#include "cairn/options.h"
#include "cairn/query.h"
#include "cairn/types.h"
#include "test/engine/serve/built_index.h"
#include "test/engine/test_database.h"
#include "test/require_ok.h"
#include "test/sanitizer.h"
#include "test/test_random.h"

namespace cairn {
BOOST_AUTO_TEST_SUITE(secondary_index_test)
namespace {

EncodedKeys Keys(const SecondaryIndex& index, const Strings& texts) {
  EncodedKeys keys(index.codec().kind());
  for (const std::string& text : texts) {
    RequireOk(index.codec().Parse(text, &keys));
  }
  return keys;
}

Strings Find(const SecondaryIndex& index, const std::string& key) {
  FindResult matches;
  EncodedKeys keys = Keys(index, {key});
  RequireOk(index.Find(keys.Batch(), &matches));
  return PrimaryKeys(index, matches.rows(0));
}

bool Mentions(const absl::Status& status, std::string_view text) {
  return std::string(status.message()).find(text) != std::string::npos;
}

BOOST_AUTO_TEST_CASE(finds_the_rows_of_a_value) {
  TestDatabase db;
  db.Put("ana", "Lisbon");
  db.Put("bo", "Oslo");
  db.Put("eva", "Lisbon");
  const auto index = Build(db, "city=value:text");
  BOOST_TEST(Find(*index, "Lisbon") == (Strings{"ana", "eva"}), boost::test_tools::per_element());
  BOOST_TEST(Find(*index, "Oslo") == (Strings{"bo"}), boost::test_tools::per_element());
  BOOST_TEST(Find(*index, "Paris").empty());
  BOOST_TEST(index->sequence() == db.db()->GetLatestSequenceNumber());
  BOOST_CHECK(index->Verify().ok());
}

BOOST_AUTO_TEST_CASE(find_first_returns_row_ids_of_64_or_32_bits) {
  TestDatabase db;
  for (int i = 0; i < 300; ++i) db.Put("row" + std::to_string(1000 + i), std::to_string(i % 100));
  const auto index = Build(db, "value:text");
  for (const int size : {1, 3, 64, 65, 200}) {
    Strings texts;
    for (int i = 0; i < size; ++i) texts.push_back(std::to_string((i * 7) % 150));
    EncodedKeys keys = Keys(*index, texts);
    FindResult all;
    RequireOk(index->Find(keys.Batch(), &all));
    std::vector<GlobalRowId> rows(texts.size());
    std::vector<RowId> row_ids(texts.size());
    RequireOk(index->FindFirst(keys.Batch(), absl::MakeSpan(rows)));
    RequireOk(index->Execute(Batch::FindFirst(keys.Batch(), absl::MakeSpan(row_ids))));
    for (size_t i = 0; i < texts.size(); ++i) {
      BOOST_TEST(rows[i] == (all.rows(i).empty() ? kNoGlobalRow : all.rows(i)[0]));
      BOOST_TEST(row_ids[i] == (all[i].empty() ? kNoRow : all[i][0]));
    }
    Batch both = Batch::FindFirst(keys.Batch(), absl::MakeSpan(rows));
    both.values = absl::MakeSpan(row_ids);
    const absl::Status status = index->Execute(both);
    BOOST_TEST((absl::IsInvalidArgument(status) && Mentions(status, "got both")), status);
    std::vector<GlobalRowId> few(texts.size() + 1);
    BOOST_TEST(absl::IsInvalidArgument(index->FindFirst(keys.Batch(), absl::MakeSpan(few))));
  }
}

// The names of the routes that support point queries in an order.
Strings PointRoutes(const SecondaryIndex& index, const QueryOptions& options) {
  const uint32_t key[] = {0};
  GlobalRowId row = 0;
  uint32_t query_of = 0;
  Explain explain;
  Batch batch = Batch::FindFirst(key, absl::MakeSpan(&row, 1), options);
  batch.query_of = absl::MakeSpan(&query_of, 1);
  batch.explain = &explain;
  RequireOk(index.Execute(batch));
  Strings names;
  for (const Explain::Candidate& candidate : explain.candidates) {
    if (candidate.note != "does not take such a batch") names.push_back(candidate.route);
  }
  return names;
}

// Compares both widths of row ids for the first `size` keys, on every route and in both orders.
// Returns the number of differences.
size_t WrongFirstRows(const SecondaryIndex& index, const std::vector<uint32_t>& all, size_t size) {
  const auto keys = absl::MakeConstSpan(all).first(size);
  std::vector<RowId> narrow(size);
  std::vector<GlobalRowId> wide(size);
  std::vector<uint32_t> query_of(size);
  RequireOk(index.Execute(Batch::FindFirst(keys, absl::MakeSpan(narrow))));
  size_t wrong = 0;
  for (const ResultOrder order : {ResultOrder::kCaller, ResultOrder::kKey}) {
    QueryOptions options;
    options.result_order = order;
    const Strings routes = PointRoutes(index, options);
    BOOST_TEST(!routes.empty());
    for (const std::string& route : routes) {
      options.route = route;
      std::fill(wide.begin(), wide.end(), 7);
      Batch batch = Batch::FindFirst(keys, absl::MakeSpan(wide), options);
      if (order == ResultOrder::kKey) batch.query_of = absl::MakeSpan(query_of);
      RequireOk(index.Execute(batch));
      for (size_t i = 0; i < size; ++i) {
        const RowId row = narrow[order == ResultOrder::kKey ? query_of[i] : i];
        wrong += wide[i] != (row == kNoRow ? kNoGlobalRow : GlobalRowId{row});
      }
    }
  }
  return wrong;
}

BOOST_AUTO_TEST_CASE(find_first_returns_the_same_row_ids_of_64_and_32_bits_on_every_route) {
  TestDatabase db;
  for (int i = 0; i < 1000; ++i) {
    db.Put("row" + std::to_string(1000 + i), std::to_string(i * 7 % 1000));
  }
  RequireOk(
      SecondaryIndex::Build(*db.Source(), Spec("value.field(',',0):u32"), db.Beside("index")));
  std::vector<uint32_t> keys(300'001);
  for (size_t i = 0; i < keys.size(); ++i) keys[i] = static_cast<uint32_t>(i * 77 % 1501);
  for (const int threads : {1, 3}) {
    if (kUnderTsan && threads == 1) continue;
    OpenOptions options;
    options.threads = threads;
    const auto index = RequireOk(SecondaryIndex::Open(db.Beside("index"), options));
    for (const size_t size : {1u, 2u, 1023u, 1024u, 1025u, 2049u, 5000u, 300'001u}) {
      BOOST_TEST(WrongFirstRows(*index, keys, size) == 0u, threads << " threads, " << size);
    }
  }
  // With changes.
  const auto index = RequireOk(SecondaryIndex::Open(db.Beside("index")));
  db.Put("row0", "1");
  db.Put("row9", "1500");
  db.Delete("row1001");
  RequireOk(index->CatchUp(*db.Source()).status());
  BOOST_TEST(WrongFirstRows(*index, keys, 3000) == 0u);
}

BOOST_AUTO_TEST_CASE(an_empty_database_gives_an_empty_index) {
  TestDatabase db;
  for (const char* spec : {"value:text", "value:u32le", "value:u64be"}) {
    const auto index = Build(db, spec);
    BOOST_TEST(All(*index).empty());
    BOOST_TEST(Find(*index, "1").empty());
    BOOST_CHECK(index->Verify().ok());
    const auto stats = RequireOk(index->Stats());
    BOOST_TEST(stats.rows == 0u);
    BOOST_TEST(stats.entries == 0u);
  }
}

BOOST_AUTO_TEST_CASE(entries_that_are_copied_into_memory_answer_as_mapped_ones_do) {
  TestDatabase db;
  db.Put("ana", "17");
  db.Put("bo", "3");
  db.Put("eva", "17");
  OpenOptions options;
  options.load_into_memory = true;
  for (const char* spec : {"value:text", "value.field('|',0):u32", "value.field('|',0):u64"}) {
    const Strings mapped = All(*Build(db, spec));
    const auto index = RequireOk(SecondaryIndex::Open(db.Beside("index"), options));
    BOOST_TEST(All(*index) == mapped, boost::test_tools::per_element());
    BOOST_TEST(Find(*index, "17") == (Strings{"ana", "eva"}), boost::test_tools::per_element());
    BOOST_CHECK(index->Verify().ok());
  }
}

BOOST_AUTO_TEST_CASE(an_array_gives_one_entry_an_element_and_a_missing_member_none) {
  TestDatabase db;
  db.Put("a", R"({"tags": ["x", "y", "x"]})");
  db.Put("b", R"({"tags": []})");
  db.Put("c", R"({"tags": "y"})");
  db.Put("d", R"({"tags": null})");
  db.Put("e", R"({})");
  const auto index = Build(db, "value.json('/tags'):text");
  BOOST_TEST(All(*index) == (Strings{"x=a", "y=a", "y=c"}), boost::test_tools::per_element());
  const auto stats = RequireOk(index->Stats());
  BOOST_TEST(stats.rows == 5u);
  BOOST_TEST(stats.entries == 3u);
  BOOST_TEST(stats.distinct_keys == 2u);
}

BOOST_AUTO_TEST_CASE(nulls_stand_where_the_spec_puts_them) {
  TestDatabase db;
  db.Put("a", "7");
  db.Put("b", "");
  db.Put("c", "|5");
  BOOST_TEST(
      All(*Build(db, "value.field('|',1):u32,nulls=first")) == (Strings{"\\N=a", "\\N=b", "5=c"}),
      boost::test_tools::per_element());
  BOOST_TEST(
      All(*Build(db, "value.field('|',1):u32,nulls=last")) == (Strings{"5=c", "\\N=a", "\\N=b"}),
      boost::test_tools::per_element());
  BOOST_TEST(All(*Build(db, "value.field('|',1):u32")) == (Strings{"5=c"}),
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_row_that_cannot_be_read_fails_the_build_or_is_skipped_and_counted) {
  TestDatabase db;
  db.Put("good", "12");
  db.Put("bad row", "twelve");
  const auto failed =
      SecondaryIndex::Build(*db.Source(), Spec("value.field('|',0):u32"), db.Beside("index"));
  BOOST_CHECK(absl::IsInvalidArgument(failed.status()));
  BOOST_CHECK(Mentions(failed.status(), "bad\\x20row"));
  BOOST_TEST(!std::filesystem::exists(db.Beside("index")));

  const BuildTarget target{Spec("value.field('|',0):u32,on_error=skip"), db.Beside("index")};
  const auto reports = RequireOk(SecondaryIndex::BuildAll(*db.Source(), {target}));
  BOOST_TEST(reports[0].rows == 2u);
  BOOST_TEST(reports[0].entries == 1u);
  BOOST_TEST(reports[0].rows_skipped == 1u);
  BOOST_CHECK(reports[0].first_skipped.find("bad\\x20row") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_unique_index_names_a_duplicate_and_both_rows) {
  TestDatabase db;
  for (int i = 0; i < 1000; ++i) db.Put("row" + std::to_string(i), std::to_string(i * 7));
  BOOST_TEST(All(*Build(db, "value:text,unique=true")).size() == 1000u);
  db.Put("twin", "693");
  const auto failed =
      SecondaryIndex::Build(*db.Source(), Spec("value:text,unique=true"), db.Beside("index"));
  BOOST_CHECK(absl::IsAlreadyExists(failed.status()));
  for (const char* part : {"693", "row99", "twin"}) BOOST_CHECK(Mentions(failed.status(), part));
  // The existing index is unchanged.
  const auto index = RequireOk(SecondaryIndex::Open(db.Beside("index")));
  BOOST_TEST(All(*index).size() == 1000u);
}

BOOST_AUTO_TEST_CASE(building_again_publishes_the_next_version_and_leaves_readers_alone) {
  TestDatabase db;
  db.Put("a", "1");
  const auto first = Build(db, "value:text");
  db.Put("b", "1");
  const auto second = Build(db, "value:text");
  BOOST_TEST(Find(*first, "1").size() == 1u);
  BOOST_TEST(Find(*second, "1").size() == 2u);
  BOOST_TEST(first->Stats()->version == 1u);
  BOOST_TEST(second->Stats()->version == 2u);
  size_t files = 0;
  for (const auto& file : std::filesystem::directory_iterator(db.Beside("index"))) {
    files += file.is_regular_file() ? 1 : 0;
  }
  BOOST_TEST(files == 4u);  // run, rows, MANIFEST, LOCK
}

BOOST_AUTO_TEST_CASE(a_cursor_goes_on_where_a_limited_scan_ended) {
  TestDatabase db;
  std::mt19937_64 random = TestRandom();
  for (int i = 0; i < 2000; ++i) {
    db.Put("row" + std::to_string(random() % 100000), std::to_string(random() % 50));
  }
  for (const char* spec : {"value:text", "value.field('|',0):u32", "value.field('|',0):u64"}) {
    const auto index = Build(db, spec);
    const Strings all = All(*index);
    for (const Order order : {Order::kAscending, Order::kDescending}) {
      RangeBatch range = RangeBatch::Everything(index->codec().kind());
      QueryOptions options;
      options.order = order;
      options.limit = 37;
      options.with_keys = true;
      Strings paged;
      Strings cursor(1);
      FindResult matches;
      do {
        range.after = cursor;
        RequireOk(index->Scan(range, &matches, options));
        const Strings keys = PrimaryKeys(*index, matches);
        BOOST_REQUIRE(keys.size() <= options.limit);
        for (size_t i = 0; i < keys.size(); ++i) {
          paged.push_back(*index->codec().Format(matches.keys, i) + "=" + keys[i]);
        }
        cursor = matches.cursors;
      } while (!cursor[0].empty());
      if (order == Order::kDescending) std::reverse(paged.begin(), paged.end());
      BOOST_TEST(paged == all, boost::test_tools::per_element());
    }
  }
}

BOOST_AUTO_TEST_CASE(a_cursor_stays_good_when_rows_come_and_go_and_the_index_is_rebuilt) {
  TestDatabase db;
  for (const char* row : {"a", "c", "e", "g"}) db.Put(row, "same");
  const auto first = Build(db, "value:text");
  RangeBatch range = RangeBatch::Everything(PhysicalType::kBytes);
  QueryOptions options;
  options.limit = 2;
  FindResult matches;
  RequireOk(first->Scan(range, &matches, options));
  BOOST_TEST(PrimaryKeys(*first, matches.rows(0)) == (Strings{"a", "c"}),
             boost::test_tools::per_element());
  db.Delete("c");       // the row of the cursor
  db.Put("b", "same");  // before it
  db.Put("d", "same");  // after it
  const auto second = Build(db, "value:text");
  const Strings cursor = matches.cursors;
  range.after = cursor;
  RequireOk(second->Scan(range, &matches, options));
  BOOST_TEST(PrimaryKeys(*second, matches.rows(0)) == (Strings{"d", "e"}),
             boost::test_tools::per_element());
  const Strings nonsense = {"nonsense"};
  range.after = nonsense;
  BOOST_CHECK(absl::IsInvalidArgument(second->Scan(range, &matches, options)));
}

BOOST_AUTO_TEST_CASE(fetch_reads_rows_and_drops_those_that_no_longer_match) {
  TestDatabase db;
  db.Put("a", "5|old a");
  db.Put("b", "5|old b");
  db.Put("c", "6|old c");
  db.Put("d", "5|old d");
  const auto index = Build(db, "value.field('|',0):u32");
  db.Put("a", "5|new a");
  db.Put("b", "7|new b");
  db.Delete("d");
  const auto source = db.Source();
  EncodedKeys keys = Keys(*index, {"5", "6", "9"});
  FetchResult rows;
  RequireOk(index->Fetch(*source, RangeBatch::Equal(keys.Batch()), {}, &rows));
  BOOST_TEST(rows.offsets == (std::vector<uint64_t>{0, 1, 2, 2}), boost::test_tools::per_element());
  BOOST_TEST(Strings(rows.values.begin(), rows.values.end()) == (Strings{"5|new a", "6|old c"}),
             boost::test_tools::per_element());
  BOOST_TEST(std::string(rows.primary_keys[0]) == "a");
  BOOST_TEST(std::string(rows.primary_keys[1]) == "c");
  BOOST_TEST(rows.stale == 2u);
}

BOOST_AUTO_TEST_CASE(refuses_rows_of_another_database) {
  TestDatabase db, other;
  db.Put("a", "1");
  other.Put("a", "1");
  const auto index = Build(db, "value:text");
  Strings differences;
  FetchResult rows;
  const auto source = other.Source();
  BOOST_CHECK(absl::IsFailedPrecondition(index->VerifyAgainst(*source, 9, &differences)));
  BOOST_CHECK(absl::IsFailedPrecondition(
      index->Fetch(*source, RangeBatch::Everything(PhysicalType::kBytes), {}, &rows)));
}

BOOST_AUTO_TEST_CASE(several_indexes_come_from_one_pass_and_equal_those_built_alone) {
  TestDatabase db;
  std::mt19937_64 random = TestRandom();
  for (int i = 0; i < 5000; ++i) {
    db.Put("row" + std::to_string(random()),
           std::to_string(random() % 300) + "|" + std::to_string(random() % 1000));
  }
  const Strings specs = {"value.field('|',0):u32", "value.field('|',1):u64",
                         "value.field('|',1):text,value.field('|',0):u16", "key:bytes,unique=true"};
  std::vector<BuildTarget> targets;
  for (const std::string& spec : specs) {
    targets.push_back({Spec(spec), db.Beside("index" + std::to_string(targets.size()))});
  }
  const auto reports = SecondaryIndex::BuildAll(*db.Source(), targets);
  RequireOk(reports);
  for (size_t i = 0; i < specs.size(); ++i) {
    const auto together = RequireOk(SecondaryIndex::Open(targets[i].directory));
    BOOST_TEST(All(*together) == All(*Build(db, specs[i])), boost::test_tools::per_element());
    BOOST_CHECK(together->Verify().ok());
  }
  targets[1].directory = targets[0].directory;
  BOOST_CHECK(absl::IsInvalidArgument(SecondaryIndex::BuildAll(*db.Source(), targets).status()));
}

BOOST_AUTO_TEST_CASE(threads_and_memory_budgets_do_not_change_the_index) {
  TestDatabase db;
  std::mt19937_64 random = TestRandom();
  for (int i = 0; i < 20000; ++i) {
    db.Put("row" + std::to_string(random()), std::to_string(random() % 5000));
  }
  RequireOk(db.db()->Flush({}));
  for (const char* spec : {"value:text", "value.field('|',0):u32", "value.field('|',0):i64"}) {
    const Strings expected = All(*Build(db, spec));
    for (const int threads : {1, 3}) {
      if (kUnderTsan && threads == 1) continue;
      for (const uint64_t budget : {uint64_t{0}, uint64_t{20000}}) {
        BuildOptions options;
        options.threads = threads;
        options.memory_budget = budget;
        BOOST_TEST(All(*Build(db, spec, options)) == expected, boost::test_tools::per_element());
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(a_cancelled_build_leaves_what_was_there) {
  TestDatabase db;
  for (int i = 0; i < 20000; ++i) db.Put("row" + std::to_string(i), std::to_string(i));
  std::atomic<bool> cancelled = true;
  BuildOptions options;
  options.cancelled = &cancelled;
  const auto stopped =
      SecondaryIndex::Build(*db.Source(), Spec("value:text"), db.Beside("index"), options);
  BOOST_CHECK(absl::IsCancelled(stopped.status()));
  BOOST_TEST(!std::filesystem::exists(db.Beside("index")));
  BOOST_CHECK(absl::IsNotFound(SecondaryIndex::Open(db.Beside("index")).status()));
}

BOOST_AUTO_TEST_CASE(queries_from_many_threads_agree) {
  TestDatabase db;
  for (int i = 0; i < 3000; ++i) db.Put("row" + std::to_string(i), std::to_string(i % 100));
  const auto index = Build(db, "value.field('|',0):u32");
  const Strings expected = Find(*index, "42");
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      const std::vector<uint32_t> keys(300, 42);
      FindResult matches;
      StringList column;
      for (int i = 0; i < 50; ++i) {
        column.Clear();
        if (!index->Find(keys, &matches).ok() ||
            !index->PrimaryKeys(matches.rows(299), &column).ok() ||
            column.size() != expected.size()) {
          ++wrong;
        }
        for (size_t j = 0; j < column.size(); ++j) wrong += column[j] != expected[j] ? 1 : 0;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  BOOST_TEST(wrong == 0);
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
