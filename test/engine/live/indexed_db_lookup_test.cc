// IndexedDB::Lookup and LookupRows.
#include <atomic>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <map>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "cairn/indexed_db.h"
#include "rocksdb/write_batch.h"
#include "test/engine/indexed_database.h"
#include "test/require_ok.h"
#include "test/sanitizer.h"
#include "test/test_random.h"

namespace cairn {
BOOST_AUTO_TEST_SUITE(indexed_db_lookup_test)
namespace {

using Strings = std::vector<std::string>;

// The primary keys found, separated by query: "a b | | c".
std::string Text(const absl::StatusOr<FoundKeys>& found) {
  if (!found.ok()) return found.status().ToString();
  std::string text;
  for (size_t i = 0; i < found->queries(); ++i) {
    if (i > 0) absl::StrAppend(&text, " | ");
    bool first = true;
    for (const auto& key : found->of(i)) {
      text.append(first ? "" : " ").append(key);
      first = false;
    }
  }
  return text;
}

void CheckRefused(const absl::Status& status, const Strings& parts) {
  BOOST_TEST(absl::IsInvalidArgument(status), status);
  for (const std::string& part : parts) {
    BOOST_TEST(absl::StrContains(std::string(status.message()), part),
               status << " lacks '" << part << "'");
  }
}

}  // namespace

BOOST_AUTO_TEST_CASE(one_key_or_a_batch_is_looked_up_by_text) {
  IndexedDatabase db;
  RequireOk(db->CreateIndex("city = value:text"));
  RequireOk(db->WaitUntilReady("city"));
  db.Put("ana", "Lisbon");
  db.Put("bo", "Oslo");
  db.Put("eva", "Lisbon");
  BOOST_TEST(Text(db->Lookup("city", "Lisbon")) == "ana eva");
  BOOST_TEST(Text(db->Lookup("city", {"Lisbon"})) == "ana eva");
  BOOST_TEST(Text(db->Lookup("city", {"Oslo", "Paris", "Lisbon"})) == "bo |  | ana eva");
  const Strings cities = {"Paris", "Oslo"};
  BOOST_TEST(Text(db->Lookup("city", cities)) == " | bo");
  const std::vector<std::string_view> views = {"Oslo"};
  BOOST_TEST(Text(db->Lookup("city", views)) == "bo");
  BOOST_TEST(Text(db->Lookup("city", std::vector<LogicalKey>{"Oslo", "Oslo"})) == "bo | bo");
  BOOST_TEST(Text(db->Lookup("city", {})) == "");

  const auto found = RequireOk(db->Lookup("city", {"Lisbon", "Oslo"}));
  Strings keys;
  for (auto& key : found) keys.emplace_back(key);
  BOOST_TEST(keys == (Strings{"ana", "eva", "bo"}), boost::test_tools::per_element());
  BOOST_TEST(found.size() == 3u);
  BOOST_TEST(found[2] == "bo");
  BOOST_TEST(found.cursor() == "");
  const FoundKeys none;
  BOOST_TEST(none.empty());
  BOOST_TEST(none.queries() == 0u);
  BOOST_TEST(none.cursor() == "");
  // The copy does not change.
  const FoundKeys copy = found;
  RequireOk(db->Delete({}, "bo"));
  BOOST_TEST(Text(db->Lookup("city", "Oslo")) == "");
  BOOST_TEST(copy.of(1)[0] == "bo");
}

BOOST_AUTO_TEST_CASE(a_reused_result_is_empty_after_any_error) {
  IndexedDatabase db;
  RequireOk(db->CreateIndex("city = value:text"));
  RequireOk(db->WaitUntilReady("city"));
  db.Put("ana", "Lisbon");
  const auto index = RequireOk(db->Index("city"));
  FoundKeys found;
  const auto check_fails = [&](const KeyQuery& query, const LookupOptions& options) {
    RequireOk(index->Lookup("Lisbon", {}, &found));
    BOOST_TEST(found.size() == 1u);
    BOOST_TEST(!index->Lookup(query, options, &found).ok());
    BOOST_TEST(found.empty());
    BOOST_TEST(found.queries() == 0u);
  };
  const std::atomic<bool> cancelled = true;
  check_fails("Lisbon", {.cancelled = &cancelled});
  check_fails("Lisbon", {.deadline = absl::InfinitePast()});
  check_fails("Lisbon", {.columns = {"none"}});
  check_fails(42, {});
  RequireOk(index->Lookup("Lisbon", {}, &found));
  RequireOk(db->DropIndex("city"));
  BOOST_TEST(!index->Lookup("Lisbon", {}, &found).ok());
  BOOST_TEST(found.empty());
}

BOOST_AUTO_TEST_CASE(rows_come_with_their_values) {
  IndexedDatabase db;
  RequireOk(db->CreateIndex("city = value.field('|', 1):text"));
  RequireOk(db->WaitUntilReady("city"));
  db.Put("1", "ana|Lisbon");
  db.Put("2", "bo|Oslo");
  db.Put("3", "eva|Lisbon");
  const auto rows = RequireOk(db->LookupRows("city", {"Lisbon", "Paris", "Oslo"}));
  Strings lines;
  for (const FoundRow& row : rows)
    lines.push_back(std::string(row.primary_key) + "=" + std::string(row.value));
  BOOST_TEST(lines == (Strings{"1=ana|Lisbon", "3=eva|Lisbon", "2=bo|Oslo"}),
             boost::test_tools::per_element());
  BOOST_TEST(rows.queries() == 3u);
  BOOST_TEST(rows.of(0).size() == 2u);
  BOOST_TEST(rows.of(1).empty());
  BOOST_TEST(rows.of(2)[0].primary_key == "2");
}

BOOST_AUTO_TEST_CASE(numbers_are_encoded_by_the_index) {
  IndexedDatabase db;
  RequireOk(db->CreateIndex("age = value.field(',', 0):i32"));
  RequireOk(db->CreateIndex("height = value.field(',', 1):f64"));
  RequireOk(db->WaitUntilReady("age"));
  RequireOk(db->WaitUntilReady("height"));
  db.Put("a", "-5,1.5");
  db.Put("b", "18,2.25");
  db.Put("c", "65,1.75");
  db.Put("d", "7,0.5");
  BOOST_TEST(Text(db->Lookup("age", {-5, 18, 19})) == "a | b | ");
  BOOST_TEST(Text(db->Lookup("age", uint8_t{65})) == "c");
  BOOST_TEST(Text(db->Lookup("age", std::vector<uint64_t>{7, 18})) == "d | b");
  BOOST_TEST(Text(db->Lookup("height", 2.25)) == "b");
  BOOST_TEST(Text(db->Lookup("age", KeyQuery::Range(-5, 65))) == "a d b");
  BOOST_TEST(Text(db->Lookup("age", KeyQuery::AtLeast(18))) == "b c");
  BOOST_TEST(Text(db->Lookup("age", KeyQuery::LessThan(7))) == "a");
  BOOST_TEST(Text(db->Lookup("age", KeyQuery::Between(-5, 65))) == "a d b c");
  BOOST_TEST(Text(db->Lookup("age", KeyQuery::Between(18, 18))) == "b");
  BOOST_TEST(Text(db->Lookup("age", KeyQuery::Between(18, 7))) == "");
  BOOST_TEST(Text(db->Lookup("age", KeyQuery::AtMost(7))) == "a d");
  BOOST_TEST(Text(db->Lookup("age", KeyQuery::GreaterThan(18))) == "c");
  BOOST_TEST(Text(db->Lookup("age", KeyQuery::GreaterThan(65))) == "");
  BOOST_TEST(Text(db->Lookup("age", KeyQuery::GreaterThan(2147483647))) == "");
  BOOST_TEST(Text(db->Lookup("age", KeyQuery::AtMost(2147483647))) == "a d b c");
  BOOST_TEST(Text(db->Lookup("age", KeyQuery::Prefix(18))) == "b");
  BOOST_TEST(Text(db->Lookup("age", KeyQuery::Everything())) == "a d b c");
  BOOST_TEST(Text(db->Lookup("age", KeyQuery::Range(65, -5))) == "");
}

BOOST_AUTO_TEST_CASE(keys_of_several_parts_are_looked_up_whole_or_by_leading_parts) {
  IndexedDatabase db;
  RequireOk(db->CreateIndex("place = value.field(',', 0):text, value.field(',', 1):text"));
  RequireOk(db->WaitUntilReady("place"));
  db.Put("a", "PT,Lisbon");
  db.Put("b", "PT,Lagos");
  db.Put("c", "PTX,Lisbon");
  db.Put("d", "NO,Oslo");
  BOOST_TEST(Text(db->Lookup("place", {{"PT", "Lisbon"}, {"NO", "Oslo"}})) == "a | d");
  BOOST_TEST(Text(db->Lookup("place", {{"NO", "Oslo"}})) == "d");
  BOOST_TEST(Text(db->Lookup("place", KeyQuery::BytePrefix({"PT", "L"}))) == "b a");
  BOOST_TEST(Text(db->Lookup("place", KeyQuery::BytePrefix("PT"))) == "b a c");
  BOOST_TEST(Text(db->Lookup("place", KeyQuery::BytePrefix({"PT", ""}))) == "b a");
  BOOST_TEST(Text(db->Lookup("place", KeyQuery::Prefix("PT"))) == "b a");
  BOOST_TEST(Text(db->Lookup("place", KeyQuery::Prefix("P"))) == "");
  BOOST_TEST(RequireOk(db->LookupRows("place", KeyQuery::Prefix("PT"))).size() == 2u);
  // Ends of leading parts mean all keys that begin with them.
  BOOST_TEST(Text(db->Lookup("place", KeyQuery::Between("NO", "PT"))) == "d b a");
  BOOST_TEST(Text(db->Lookup("place", KeyQuery::Between("NO", {"PT", "Lagos"}))) == "d b");
  BOOST_TEST(Text(db->Lookup("place", KeyQuery::AtMost("PT"))) == "d b a");
  BOOST_TEST(Text(db->Lookup("place", KeyQuery::LessThan("PT"))) == "d");
  BOOST_TEST(Text(db->Lookup("place", KeyQuery::AtLeast("PT"))) == "b a c");
  BOOST_TEST(Text(db->Lookup("place", KeyQuery::GreaterThan("PT"))) == "c");
  BOOST_TEST(Text(db->Lookup("place", KeyQuery::GreaterThan({"PT", "Lagos"}))) == "a c");
  BOOST_TEST(Text(db->Lookup("place", KeyQuery::Range("NO", "PTX"))) == "d b a");
  BOOST_TEST(Text(db->Lookup("place", KeyQuery::Range({"PT", "Li"}, {"PT", "Lj"}))) == "a");
  const DataValue parts[] = {std::string_view("PT"), std::string_view("Lagos")};
  BOOST_TEST(Text(db->Lookup("place", {LogicalKey::OfParts(parts)})) == "b");
}

BOOST_AUTO_TEST_CASE(keys_of_the_wrong_kind_are_refused_by_name) {
  IndexedDatabase db;
  RequireOk(db->CreateIndex("age = value.field(',', 0):u8"));
  RequireOk(db->CreateIndex("place = value.field(',', 0):u8, value.field(',', 1):text"));
  RequireOk(db->WaitUntilReady("age"));
  RequireOk(db->WaitUntilReady("place"));
  CheckRefused(db->Lookup("age", {1, "Lisbon"}).status(), {"'age'", "key 2 of 2", "part 1 (u8)"});
  CheckRefused(db->LookupRows("age", 256).status(), {"'age'", "part 1 (u8)", "256"});
  CheckRefused(db->Lookup("age", nullptr).status(), {"'age'", "null"});
  CheckRefused(db->Lookup("place", {1}).status(),
               {"'place'", "expected 2 values, one for each part, found 1", "{{a, b}}"});
  CheckRefused(db->Lookup("age", {{1, 2}}).status(),
               {"expected 1 value, one for each part, found 2"});
  CheckRefused(db->Lookup("age", KeyQuery::Range(1, "b")).status(), {"upper end"});
  CheckRefused(db->Lookup("age", KeyQuery::AtLeast("b")).status(), {"lower end"});
  CheckRefused(db->Lookup("place", KeyQuery::Prefix({1, "L", 2})).status(), {"prefix"});
  CheckRefused(db->Lookup("age", KeyQuery::Prefix(LogicalKey({}))).status(), {"prefix", "found 0"});
  CheckRefused(db->Lookup("place", KeyQuery::BytePrefix({1, "L", 2})).status(),
               {"'place'", "prefix", "found 3"});
  CheckRefused(db->Lookup("place", KeyQuery::Prefix("L")).status(), {"part 1 (u8)"});
  CheckRefused(db->Lookup("place", KeyQuery::Prefix({1, "L"})).status(),
               {"'place'", "fewer than the key's 2 parts", "BytePrefix"});
  CheckRefused(db->Lookup("place", KeyQuery::BytePrefix(1)).status(),
               {"'place'", "part 1 (u8)", "a prefix of text or bytes"});
  CheckRefused(db->Lookup("age", KeyQuery::Range(LogicalKey({}), 2)).status(),
               {"lower end", "found 0"});
  CheckRefused(db->Count("age", "x").status(), {"'age'", "key 1 of 1", "part 1 (u8)"});
  CheckRefused(db->Contains("age", KeyQuery::AtMost("x")).status(), {"'age'", "upper end"});
  CheckRefused(db->Lookup("age", {1, 2}, {1, Order::kAscending, "x"}).status(), {"batch of 2"});
  CheckRefused(db->Lookup("age", 1, {1, Order::kAscending, "x"}).status(),
               {"'age'", "LookupOptions::after", "expected a cursor of the same query"});
  LookupOptions nothing;
  nothing.limit = 0;
  BOOST_TEST(RequireOk(db->Lookup("age", 1, nothing)).empty());
  BOOST_TEST(RequireOk(db->LookupRows("age", KeyQuery::Everything(), nothing)).empty());
  BOOST_TEST(absl::IsNotFound(db->Lookup("shoe_size", 42).status()));
  BOOST_TEST(absl::IsNotFound(db->LookupRows("shoe_size", 42).status()));
  CheckRefused(db->CreateIndex("height = value:meters"), {"offset"});
  CheckRefused(db->CreateIndex("value:text"), {"name"});
}

BOOST_AUTO_TEST_CASE(a_limited_range_goes_on_where_it_ended) {
  IndexedDatabase db;
  RequireOk(db->CreateIndex("city = value:text"));
  RequireOk(db->WaitUntilReady("city"));
  for (int i = 0; i < 10; ++i) db.Put(absl::StrCat("k", i), i % 2 == 0 ? "Lagos" : "Lisbon");
  for (const bool rows : {false, true}) {
    for (const Order order : {Order::kAscending, Order::kDescending}) {
      Strings keys;
      LookupOptions options;
      options.limit = 3;
      options.order = order;
      do {
        if (rows) {
          const auto page = RequireOk(db->LookupRows("city", KeyQuery::BytePrefix("L"), options));
          BOOST_TEST(page.size() <= 3u);
          for (const FoundRow& row : page) keys.emplace_back(row.primary_key);
          options.after = page.cursor();
        } else {
          const auto page = RequireOk(db->Lookup("city", KeyQuery::BytePrefix("L"), options));
          BOOST_TEST(page.size() <= 3u);
          keys.insert(keys.end(), page.begin(), page.end());
          options.after = page.cursor();
        }
        RequireOk(db->CompactIndex("city"));  // row ids change, cursors do not
      } while (!options.after.empty());
      Strings expected = {"k0", "k2", "k4", "k6", "k8", "k1", "k3", "k5", "k7", "k9"};
      if (order == Order::kDescending) expected = Strings(expected.rbegin(), expected.rend());
      BOOST_TEST(keys == expected, boost::test_tools::per_element());
    }
  }
  LookupOptions first;
  first.limit = 1;
  BOOST_TEST(Text(db->Lookup("city", {"Lagos", "Lisbon"}, first)) == "k0 | k1");
  first.after = RequireOk(db->Lookup("city", KeyQuery::BytePrefix("Lagos"), first)).cursor();
  BOOST_TEST(Text(db->Lookup("city", KeyQuery::BytePrefix("Lagos"), first)) == "k2");
  first.after.clear();
  first.order = Order::kDescending;
  BOOST_TEST(Text(db->Lookup("city", {"Lagos", "Lisbon"}, first)) == "k8 | k9");
}

BOOST_AUTO_TEST_CASE(a_row_with_several_keys_in_a_range_is_found_once) {
  IndexedDatabase db;
  RequireOk(db->CreateIndex("tag = value.json('/tags'):text"));
  RequireOk(db->WaitUntilReady("tag"));
  db.Put("a", R"({"tags": ["x", "y", "z"]})");
  db.Put("b", R"({"tags": ["y"]})");
  BOOST_TEST(Text(db->Lookup("tag", {"x", "y"})) == "a | a b");
  BOOST_TEST(Text(db->Lookup("tag", KeyQuery::Everything())) == "a b");
  const auto rows = RequireOk(db->LookupRows("tag", KeyQuery::Everything()));
  BOOST_TEST(rows.size() == 2u);
}

BOOST_AUTO_TEST_CASE(entries_are_counted_and_looked_for_by_key_or_range) {
  IndexedDatabase db;
  RequireOk(db->CreateIndex("city = value:text"));
  RequireOk(db->CreateIndex("tag = value.json('/tags'):text, on_error=skip"));
  RequireOk(db->WaitUntilReady("city"));
  RequireOk(db->WaitUntilReady("tag"));
  db.Put("a", "Lisbon");
  db.Put("b", "Oslo");
  db.Put("c", "Lisbon");
  using Counts = std::vector<uint64_t>;
  using Found = std::vector<bool>;
  BOOST_TEST(RequireOk(db->Count("city", "Lisbon")) == Counts{2}, boost::test_tools::per_element());
  BOOST_TEST(RequireOk(db->Count("city", {"Oslo", "Rome", "Lisbon"})) == (Counts{1, 0, 2}),
             boost::test_tools::per_element());
  BOOST_TEST(RequireOk(db->Count("city", KeyQuery::AtMost("Lisbon"))) == Counts{2},
             boost::test_tools::per_element());
  BOOST_TEST(RequireOk(db->Count("city", {})).empty());
  BOOST_TEST((RequireOk(db->Contains("city", {"Oslo", "Rome"})) == Found{true, false}));
  BOOST_TEST((RequireOk(db->Contains("city", KeyQuery::BytePrefix("Li"))) == Found{true}));
  BOOST_TEST((RequireOk(db->Contains("city", KeyQuery::GreaterThan("Oslo"))) == Found{false}));
  // A row counts for each of its keys.
  db.Put("d", R"({"tags": ["x", "y"]})");
  BOOST_TEST(RequireOk(db->Count("tag", KeyQuery::Everything())) == Counts{2},
             boost::test_tools::per_element());
  BOOST_TEST(absl::IsNotFound(db->Count("none", 1).status()));
  BOOST_TEST(absl::IsNotFound(db->Contains("none", 1).status()));
  // An index has the same results as its database.
  const auto tag = RequireOk(db->Index("tag"));
  BOOST_TEST(Text(tag->Lookup({"x", "y"})) == "d | d");
  BOOST_TEST(Text(tag->Lookup(KeyQuery::Everything())) == "d");
  BOOST_TEST((RequireOk(tag->Contains({"x", "z"})) == Found{true, false}));
}

BOOST_AUTO_TEST_CASE(a_column_family_has_its_own_indexes) {
  IndexedDatabase db;
  RequireOk(db->CreateIndex("city = value:text, cf=a", db.family(1)));
  RequireOk(db->CreateIndex("town = value:text", db.family(1)));
  RequireOk(db->WaitUntilReady("city"));
  RequireOk(db->WaitUntilReady("town"));
  db.Put("here", "Oslo", 1);
  db.Put("elsewhere", "Oslo", 0);
  BOOST_TEST(Text(db->Lookup("city", "Oslo")) == "here");
  BOOST_TEST(Text(db->Lookup("town", "Oslo")) == "here");
  const auto rows = RequireOk(db->LookupRows("city", "Oslo"));
  BOOST_TEST(rows.size() == 1u);
}

// Two rows swap their values in one write batch, repeatedly, while the index is compacted. Each
// lookup finds exactly one row per value, and the row has the queried value.
BOOST_AUTO_TEST_CASE(lookups_are_of_one_state_while_rows_change_and_merges_go_on) {
  IndexedDatabase db;
  RequireOk(db->CreateIndex("value = value:text"));
  RequireOk(db->WaitUntilReady("value"));
  for (int i = 0; i < 50; ++i) db.Put(absl::StrCat("other", i), absl::StrCat("x", i));
  db.Put("a", "left");
  db.Put("b", "right");
  std::atomic<bool> done{false};
  std::thread writer([&] {
    for (int i = 0; !done; ++i) {
      rocksdb::WriteBatch batch;
      batch.Put("a", i % 2 == 0 ? "right" : "left").PermitUncheckedError();
      batch.Put("b", i % 2 == 0 ? "left" : "right").PermitUncheckedError();
      // Changes the row ids of a and b in the next compaction.
      batch.Put(absl::StrCat("a", i), "new").PermitUncheckedError();
      RequireOk(db->Write({}, &batch));
    }
  });
  std::thread merger([&] {
    while (!done) db->CompactIndex("value").IgnoreError();
  });
  std::string wrong;
  for (size_t i = 0; i < FewerUnderTsan(2000, 20) && wrong.empty(); ++i) {
    const auto keys = db->Lookup("value", {"left", "right"});
    if (!keys.ok()) {
      wrong = keys.status().ToString();
    } else if (Text(keys) != "a | b" && Text(keys) != "b | a") {
      wrong = Text(keys);
    }
    const auto rows = db->LookupRows("value", {"left", "right"});
    if (!rows.ok()) {
      wrong = rows.status().ToString();
      break;
    }
    for (size_t query = 0; query < 2; ++query) {
      for (const FoundRow& row : rows->of(query)) {
        if (row.value != (query == 0 ? "left" : "right")) wrong = "row " + std::string(row.value);
      }
    }
  }
  done = true;
  writer.join();
  merger.join();
  BOOST_TEST(wrong == "");
}

BOOST_AUTO_TEST_CASE(lookups_beside_close_or_the_end_of_a_handle_end_in_an_error) {
  for (const bool close : {false, true}) {
    IndexedDatabase db;
    RequireOk(db->CreateIndex("city = value:text", db.family(1)));
    RequireOk(db->WaitUntilReady("city"));
    for (int i = 0; i < 100; ++i) db.Put(absl::StrCat("k", i), "Oslo", 1);
    std::atomic<int> answered{0};
    std::vector<absl::Status> ends(2);
    std::vector<std::thread> readers;
    for (absl::Status& end : ends) {
      readers.emplace_back([&] {
        while (end.ok()) {
          const auto rows = db->LookupRows("city", "Oslo");
          if (rows.ok() && rows->size() != 100) {
            end = absl::InternalError(absl::StrCat(rows->size(), " rows"));
          } else {
            end = rows.status();
          }
          ++answered;
        }
      });
    }
    while (answered < 100) std::this_thread::yield();
    if (close) {
      RequireOk(db->Close());
    } else {
      RequireOk(db->DestroyColumnFamilyHandle(db.family(1)));
      db.ForgetLastFamily();
    }
    for (std::thread& reader : readers) reader.join();
    for (const absl::Status& end : ends) BOOST_TEST(absl::IsFailedPrecondition(end), end);
  }
}

BOOST_AUTO_TEST_CASE(a_row_with_several_keys_is_on_one_page) {
  IndexedDatabase db;
  RequireOk(db->CreateIndex("tag = value.json('/t'):u8"));
  RequireOk(db->WaitUntilReady("tag"));
  db.Put("a", R"({"t":[1,2,3,4,5,6]})");
  db.Put("b", R"({"t":[7]})");
  db.Put("c", R"({"t":[8,0]})");
  const auto pages = [&](LookupOptions page, auto look_up) {
    std::string text;
    do {
      const auto rows = RequireOk(look_up(page));
      for (const auto& row : rows) absl::StrAppend(&text, std::string(row), " ");
      absl::StrAppend(&text, "| ");
      page.after = rows.cursor();
    } while (!page.after.empty());
    return text;
  };
  const auto keys = [&](const LookupOptions& page) {
    return db->Lookup("tag", KeyQuery::Range(1, 9), page);
  };
  const auto rows = [&](const LookupOptions& page) -> absl::StatusOr<Strings> {
    const auto found = RequireOk(db->LookupRows("tag", KeyQuery::Range(1, 9), page));
    Strings names;
    for (const FoundRow& row : found) names.emplace_back(row.primary_key);
    return names;
  };
  LookupOptions page;
  page.limit = 3;
  BOOST_TEST(pages(page, keys) == "a b c | ");
  page.limit = 2;
  BOOST_TEST(pages(page, keys) == "a b | c | ");
  page.limit = 1;
  BOOST_TEST(pages(page, keys) == "a | b | c | ");
  page.order = Order::kDescending;
  BOOST_TEST(pages(page, keys) == "c | b | a | ");
  page.limit = 2;
  BOOST_TEST(pages(page, keys) == "c b | a | ");
  BOOST_TEST(RequireOk(rows(page)) == (Strings{"c", "b"}), boost::test_tools::per_element());
  page.after = RequireOk(db->LookupRows("tag", KeyQuery::Range(1, 9), page)).cursor();
  BOOST_TEST(RequireOk(rows(page)) == (Strings{"a"}), boost::test_tools::per_element());
}

// One row has one of two cities at each moment, and another row the other city: each call sees one
// state of index and rows.
BOOST_AUTO_TEST_CASE(rows_are_those_of_the_state_that_the_index_is_at) {
  IndexedDatabase db;
  db.Create("city = value:text");
  db.Put("ana", "Lisbon");
  db.Put("bo", "Oslo");
  std::atomic<bool> stop{false};
  std::thread writer([&] {
    for (int i = 0; !stop; ++i) {
      rocksdb::WriteBatch batch;
      RequireOk(batch.Put("ana", i % 2 == 0 ? "Oslo" : "Lisbon"));
      RequireOk(batch.Put("bo", i % 2 == 0 ? "Lisbon" : "Oslo"));
      RequireOk(db->Write({}, &batch));
    }
  });
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(300);
  int wrong = 0;
  while (std::chrono::steady_clock::now() < end) {
    const FoundRows found = RequireOk(db->LookupRows("city", {"Lisbon", "Oslo"}));
    bool right = found.size() == 2;
    for (size_t i = 0; i < found.queries() && right; ++i) {
      right = found.of(i).size() == 1 && found.of(i)[0].value == (i == 0 ? "Lisbon" : "Oslo");
    }
    if (!right) ++wrong;
  }
  stop = true;
  writer.join();
  BOOST_TEST(wrong == 0);
}

BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
