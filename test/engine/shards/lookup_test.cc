// SecondaryIndex::Lookup, LookupRows, Count and Contains compared with a sorted list of entries,
// for indexes that are unsharded or sharded by key range or by source.
#include <boost/test/unit_test.hpp>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "cairn/options.h"
#include "test/engine/serve/built_index.h"
#include "test/engine/shards/entry_model.h"
#include "test/engine/shards/sharded_pair.h"
#include "test/engine/shards/sharded_sources.h"
#include "test/sanitizer.h"
#include "test/test_random.h"

namespace cairn {
BOOST_AUTO_TEST_SUITE(lookup_test)
namespace {

using namespace entry_model;  // NOLINT: all of it

// The entries with keys of a range, in an order; only the first one of each row if `distinct`.
EntryList In(const Range& range, EntryList all, Order order, bool distinct) {
  std::sort(all.begin(), all.end());
  if (order == Order::kDescending) std::reverse(all.begin(), all.end());
  EntryList entries;
  std::set<std::pair<size_t, std::string>> seen;
  for (const Entry& entry : all) {
    if (!range.has(entry.key)) continue;
    if (!distinct || seen.emplace(entry.shard, entry.row).second) entries.push_back(entry);
  }
  return entries;
}

// Looks up keys in either form. The second form reuses the memory of an earlier result. A copy of
// that result may still exist.
FoundKeys LookUp(const SecondaryIndex& index, const KeyQuery& query, const LookupOptions& options,
                 std::mt19937_64& random) {
  static FoundKeys reused;
  if (random() % 2 == 0) return RequireOk(index.Lookup(query, options));
  if (random() % 2 == 0) {
    RequireOk(index.Lookup(query, options, &reused));
    return reused;
  }
  RequireOk(index.Lookup(KeyQuery::Everything(), {}, &reused));
  BOOST_TEST(reused.columns().empty());
  const FoundKeys copy = reused;
  const std::vector<std::string> before(copy.begin(), copy.end());
  RequireOk(index.Lookup(query, options, &reused));
  BOOST_TEST(std::equal(before.begin(), before.end(), copy.begin(), copy.end()));
  return std::move(reused);
}

// `source`: the database of all shards, or null if there are several.
void CheckLookup(const SecondaryIndex& index, const Kind& kind, const EntryList& all,
                 const SnapshotSource* source, std::mt19937_64& random) {
  const Parts a = AnyKey(kind, random, true), b = AnyKey(kind, random, true);
  const Range range = AnyRange(kind, a, b, random);
  LookupOptions options;
  options.order = random() % 2 == 0 ? Order::kAscending : Order::kDescending;
  options.columns = {"n"};
  if (random() % 3 != 0) options.limit = 1 + random() % 20;
  const EntryList expected = In(range, all, options.order, /*distinct=*/true);
  std::vector<std::string> keys, columns, rows;
  do {
    const FoundKeys page = LookUp(index, range.query, options, random);
    BOOST_REQUIRE_EQUAL(page.queries(), 1u);
    BOOST_TEST((page.size() == options.limit || page.cursor().empty()));
    for (size_t i = 0; i < page.size(); ++i) {
      keys.emplace_back(page[i]);
      columns.emplace_back(page.columns()[0].bytes(i));
    }
    options.after = page.cursor();
  } while (!options.after.empty());
  options.columns.clear();
  do {
    if (source == nullptr) break;
    const FoundRows page = RequireOk(index.LookupRows(*source, range.query, options));
    for (const FoundRow& row : page) {
      rows.emplace_back(row.primary_key);
      BOOST_TEST(absl::StrContains(std::string(row.value), columns[rows.size() - 1]));
    }
    options.after = page.cursor();
  } while (!options.after.empty());
  std::vector<std::string> expected_keys, expected_columns;
  for (const Entry& entry : expected) {
    expected_keys.push_back(entry.row);
    expected_columns.push_back(entry.column);
  }
  BOOST_TEST(keys == expected_keys, boost::test_tools::per_element());
  BOOST_TEST(columns == expected_columns, boost::test_tools::per_element());
  if (source != nullptr) BOOST_TEST(rows == expected_keys, boost::test_tools::per_element());

  const uint64_t entries = In(range, all, Order::kAscending, /*distinct=*/false).size();
  const std::vector<uint64_t> counts = RequireOk(index.Count(range.query));
  BOOST_REQUIRE_EQUAL(counts.size(), 1u);
  BOOST_TEST(counts[0] == entries);
  BOOST_TEST(RequireOk(index.Contains(range.query))[0] == (entries > 0));
}

// A batch of keys.
void CheckBatch(const SecondaryIndex& index, const Kind& kind, const EntryList& all,
                std::mt19937_64& random) {
  std::vector<Parts> parts;
  std::vector<LogicalKey> keys;
  for (uint64_t n = random() % 6; n > 0; --n) parts.push_back(AnyKey(kind, random, false));
  for (const Parts& key : parts) keys.push_back(Logical(key));
  const FoundKeys found = LookUp(index, KeyQuery(keys), {}, random);
  const std::vector<uint64_t> counts = RequireOk(index.Count(KeyQuery(keys)));
  const std::vector<bool> contains = RequireOk(index.Contains(KeyQuery(keys)));
  BOOST_REQUIRE_EQUAL(counts.size(), keys.size());
  for (size_t i = 0; i < keys.size(); ++i) {
    const Range one{{}, [&](const Parts& key) { return key == parts[i]; }};
    std::vector<std::string> expected, rows(found.of(i).begin(), found.of(i).end());
    for (const Entry& entry : In(one, all, Order::kAscending, /*distinct=*/false)) {
      expected.push_back(entry.row);
    }
    BOOST_TEST(rows == expected, boost::test_tools::per_element());
    BOOST_TEST(counts[i] == expected.size());
    BOOST_TEST(contains[i] == !expected.empty());
  }
}

void CheckLookups(const SecondaryIndex& index, const Kind& kind, const EntryList& all,
                  const SnapshotSource* source, std::mt19937_64& random) {
  for (size_t i = 0; i < FewerSanitized(30, 4, 10); ++i) {
    CheckLookup(index, kind, all, source, random);
    CheckBatch(index, kind, all, random);
  }
}

}  // namespace

BOOST_AUTO_TEST_CASE(an_index_and_its_shards_answer_as_one) {
  std::mt19937_64 random = TestRandom();
  for (const Kind& kind : kKinds) {
    TestDatabase db;
    Rows rows;
    rows.Change(db, 150, 100, random);
    const auto index = Build(db, kind.spec);
    for (int round = 0; round < 2; ++round) {
      EntryList all;
      rows.AddTo(kind, 0, &all);
      const auto source = db.Source();
      CheckLookups(*index, kind, all, source.get(), random);
      for (const uint32_t shards : {1, 3}) {
        const auto sharded =
            BuildInShards(db, kind.spec, shards, 1, absl::StrCat("s", shards, "-", round));
        CheckLookups(*sharded, kind, all, source.get(), random);
      }
      rows.Change(db, 40, 110, random);
      RequireOk(index->CatchUp(*db.Source()).status());
    }
  }
}

BOOST_AUTO_TEST_CASE(rows_of_several_sources_are_apart) {
  std::mt19937_64 random = TestRandom();
  for (const Kind& kind : kKinds) {
    ShardedSources sources(3);
    std::vector<Rows> rows(3);
    for (size_t s = 0; s < 3; ++s) rows[s].Change(sources[s], 60, 40, random);
    const auto index = sources.Build(kind.spec);
    EntryList all;
    for (size_t s = 0; s < 3; ++s) rows[s].AddTo(kind, s, &all);
    CheckLookups(*index, kind, all, nullptr, random);
  }
}

BOOST_AUTO_TEST_CASE(a_cursor_of_another_key_or_range_is_refused) {
  TestDatabase db;
  for (const char* row : {"a", "b", "c", "d"}) db.Put(row, row < std::string("c") ? "1" : "2");
  for (const char* spec : {"age = value:text", "age = value.field(',', 0):u32"}) {
    const auto index = Build(db, spec);
    const bool text = index->kind() == PhysicalType::kBytes;
    const KeyQuery one = text ? KeyQuery("1") : KeyQuery(1),
                   two = text ? KeyQuery("2") : KeyQuery(2);
    const KeyQuery above = text ? KeyQuery::GreaterThan("1") : KeyQuery::GreaterThan(1);
    const KeyQuery below = text ? KeyQuery::LessThan("2") : KeyQuery::LessThan(2);
    for (const Order order : {Order::kAscending, Order::kDescending}) {
      LookupOptions options;
      options.limit = 1;
      options.order = order;
      options.after = RequireOk(index->Lookup(two, options)).cursor();
      BOOST_REQUIRE(!options.after.empty());
      BOOST_TEST(RequireOk(index->Lookup(two, options)).size() == 1u);
      for (const KeyQuery& other : {one, above, below}) {
        const absl::Status refused = index->Lookup(other, options).status();
        BOOST_TEST(absl::IsInvalidArgument(refused), refused);
        BOOST_TEST(absl::StrContains(std::string(refused.message()),
                                     "expected a cursor of the same query"));
        BOOST_TEST(
            absl::IsInvalidArgument(index->LookupRows(*db.Source(), other, options).status()));
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(cursors_and_keys_of_something_else_are_refused) {
  TestDatabase db;
  db.Put("a", "1");
  const auto index = Build(db, "age = value.field(',', 0):u32");
  LookupOptions options;
  options.after = "x";
  FoundKeys reused;
  RequireOk(index->Lookup(KeyQuery::Everything(), {}, &reused));
  const absl::Status after = index->Lookup(1, options, &reused);
  BOOST_TEST(reused.empty());
  BOOST_TEST(reused.queries() == 0u);
  BOOST_TEST(absl::IsInvalidArgument(after));
  BOOST_TEST(absl::StrContains(std::string(after.message()), "index 'age', LookupOptions::after"));
  const absl::Status key = index->Lookup("x").status();
  BOOST_TEST(absl::IsInvalidArgument(key));
  BOOST_TEST(
      absl::StrContains(std::string(key.message()), "index 'age', key 1 of 1: part 1 (u32)"));
  options = {};
  options.columns = {"n"};
  BOOST_TEST(absl::IsInvalidArgument(index->Lookup(1, options).status()));
  BOOST_TEST(absl::IsInvalidArgument(index->LookupRows(*db.Source(), 1, options).status()));
}

BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
