// Joins of two indexes, compared with nested loops over their rows.
#include "cairn/join.h"

#include <algorithm>
#include <atomic>
#include <boost/test/unit_test.hpp>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cairn/options.h"
#include "test/engine/shards/sharded_pair.h"
#include "test/sanitizer.h"
#include "test/test_random.h"

namespace cairn {
BOOST_AUTO_TEST_SUITE(join_test)
namespace {

// key, left primary key, right primary key
using Pair = std::tuple<std::string, std::string, std::string>;

// An index's entries from a scan: the key as text, the primary key, whether the key is null in any
// part.
struct Entry {
  std::string key;
  std::string primary_key;
  bool is_null;
};

std::vector<Entry> EntriesOf(const SecondaryIndex& index) {
  FindResult matches;
  QueryOptions options;
  options.with_keys = true;
  RequireOk(index.Scan(RangeBatch::Everything(index.kind()), &matches, options));
  StringList primary_keys;
  RequireOk(index.PrimaryKeys(matches, &primary_keys));
  std::vector<Entry> entries;
  for (size_t i = 0; i < primary_keys.size(); ++i) {
    const std::string key = *index.codec().Format(matches.keys, i);
    entries.push_back({key, std::string(primary_keys[i]), key.find("\\N") != std::string::npos});
  }
  return entries;
}

// In the order of a join: by the left index's keys, then by each index's rows.
std::vector<Pair> Expected(const SecondaryIndex& left, const SecondaryIndex& right) {
  std::map<std::string, std::vector<std::string>> by_key;
  for (const Entry& entry : EntriesOf(right)) {
    if (!entry.is_null) by_key[entry.key].push_back(entry.primary_key);
  }
  std::vector<Pair> pairs;
  for (const Entry& entry : EntriesOf(left)) {
    for (const std::string& other : by_key[entry.key]) {
      if (!entry.is_null) pairs.emplace_back(entry.key, entry.primary_key, other);
    }
  }
  return pairs;
}

std::vector<Pair> PairsOf(const SecondaryIndex& left, const SecondaryIndex& right,
                          const JoinResult& rows) {
  StringList of_left, of_right;
  RequireOk(left.PrimaryKeys(rows.left, &of_left));
  RequireOk(right.PrimaryKeys(rows.right, &of_right));
  BOOST_REQUIRE(rows.right.size() == rows.size() && rows.keys.size() == rows.size());
  std::vector<Pair> pairs;
  for (size_t j = 0; j < rows.size(); ++j) {
    pairs.emplace_back(*left.codec().Format(rows.keys, j), of_left[j], of_right[j]);
  }
  return pairs;
}

// All at once, counted, and page by page.
void Check(const SecondaryIndex& left, const SecondaryIndex& right) {
  const std::vector<Pair> expected = Expected(left, right);
  JoinResult rows;
  JoinOptions options;
  options.with_keys = true;
  RequireOk(Join(left, right, options, &rows));
  BOOST_TEST(rows.cursor.empty());
  BOOST_REQUIRE(PairsOf(left, right, rows) == expected);
  BOOST_TEST(RequireOk(CountJoin(left, right)) == expected.size());
  for (const uint64_t limit : {uint64_t{1}, uint64_t{7}, std::max<uint64_t>(expected.size(), 1)}) {
    if (expected.size() / limit > 300) continue;
    std::vector<Pair> pages;
    options.limit = limit;
    options.after.clear();
    do {
      RequireOk(Join(left, right, options, &rows));
      BOOST_REQUIRE(rows.cursor.empty() || rows.size() == limit);
      const std::vector<Pair> page = PairsOf(left, right, rows);
      pages.insert(pages.end(), page.begin(), page.end());
      options.after = rows.cursor;
    } while (!rows.cursor.empty());
    BOOST_REQUIRE(pages == expected);
  }
}

void CheckBothWays(const SecondaryIndex& left, const SecondaryIndex& right) {
  Check(left, right);
  Check(right, left);
  Check(left, left);
}

BOOST_AUTO_TEST_CASE(every_kind_of_key_and_every_number_of_rows) {
  std::mt19937_64 random = TestRandom();
  std::vector<const char*> types = {"u32", "u64", "text", "f64", "u16"};
  if (kUnderTsan) types = {"u32", "text"};
  for (const char* type : types) {
    const std::string spec = absl::StrCat("value.field('|',0):", type);
    for (const int some : {0, 1, 2, 63, 65, kUnderAsan || kUnderTsan ? 100 : 1000}) {
      BOOST_TEST_CONTEXT(type << ", " << some << " rows") {
        TestDatabase a, b;
        for (int i = 0; i < some; ++i) {
          a.Put("a" + std::to_string(i), std::to_string(random() % (some / 3 + 1)));
        }
        for (int i = 0; i < some / 2; ++i) {
          b.Put("b" + std::to_string(i), std::to_string(random() % (some / 2 + 1)));
        }
        CheckBothWays(*Build(a, spec), *Build(b, spec));
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(keys_of_more_entries_than_a_page) {
  TestDatabase a, b;
  if (kUnderTsan) return;   // one thread goes from page to page
  const int rows = 140000;  // two pages and a bit
  for (int i = 0; i < rows; ++i) {
    a.Put("a" + std::to_string(i), i % 2 == 0 ? "5" : std::to_string(i));
  }
  b.Put("x", "5");
  b.Put("y", "5");
  b.Put("z", "139999");
  for (int i = 0; i < rows + 10; ++i) b.Put("b" + std::to_string(i), std::to_string(1000000 + i));
  const auto left = Build(a, "value:text"), right = Build(b, "value:text");
  const std::vector<Pair> expected = Expected(*left, *right);
  BOOST_TEST(expected.size() == size_t{rows} + 2 + 1);  // "5" is odd, too
  JoinResult pairs;
  JoinOptions options;
  options.with_keys = true;
  options.limit = 100000;
  RequireOk(Join(*left, *right, options, &pairs));
  std::vector<Pair> found = PairsOf(*left, *right, pairs);
  options.after = pairs.cursor;
  RequireOk(Join(*left, *right, options, &pairs));
  BOOST_TEST(pairs.cursor.empty());
  const std::vector<Pair> rest = PairsOf(*left, *right, pairs);
  found.insert(found.end(), rest.begin(), rest.end());
  BOOST_TEST((found == expected));
  BOOST_TEST(RequireOk(CountJoin(*left, *right)) == expected.size());
  BOOST_TEST(RequireOk(CountJoin(*left, *left)) ==
             uint64_t{rows / 2 + 1} * (rows / 2 + 1) + rows / 2 - 1);
}

BOOST_AUTO_TEST_CASE(composites_arrays_and_zero_bytes) {
  std::mt19937_64 random = TestRandom();
  TestDatabase a, b;
  for (int i = 0; i < 120; ++i) {
    for (TestDatabase* db : {&a, &b}) {
      std::string text(random() % 3, '\0');
      text += std::string(random() % 2, 'p');
      db->Put(absl::StrCat("row", i, db == &a ? "" : "b"),
              absl::StrCat(text, "|", random() % 4, "|rest"));
    }
  }
  const char* const spec = "value.field('|',0):text,value.field('|',1):i8";
  CheckBothWays(*Build(a, spec), *Build(b, spec));

  TestDatabase tags, words;
  for (int i = 0; i < 40; ++i) {
    tags.Put(absl::StrCat("t", i),
             absl::StrCat("{\"tags\":[\"", random() % 9, "\",\"", random() % 9, "\"]}"));
    words.Put(absl::StrCat("w", i), std::to_string(random() % 9));
  }
  CheckBothWays(*Build(tags, "value.json('/tags'):text"), *Build(words, "value:text"));
  CheckBothWays(*Build(tags, "value.json('/tags'):text"), *Build(words, "value:bytes"));
}

BOOST_AUTO_TEST_CASE(a_null_equals_nothing_whatever_the_policy) {
  TestDatabase a, b;
  const std::vector<std::string> values = {"x|1", "x", "|1", "", "y|2", "y", "x|1", "z|3"};
  for (size_t i = 0; i < values.size(); ++i) {
    a.Put(absl::StrCat("a", i), values[i]);
    b.Put(absl::StrCat("b", i), values[values.size() - 1 - i]);
  }
  for (const char* nulls : {"skip", "first", "last"}) {
    for (const char* other : {"skip", "first", "last"}) {
      if (kUnderTsan && std::string_view(nulls) != other) continue;
      BOOST_TEST_CONTEXT(nulls << " with " << other) {
        for (const char* keys : {"value.field('|',1):u32", "value.field('|',0):text",
                                 "value.field('|',0):text,value.field('|',1):u16"}) {
          CheckBothWays(*Build(a, absl::StrCat(keys, ",nulls=", nulls)),
                        *Build(b, absl::StrCat(keys, ",nulls=", other)));
        }
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(shards_on_either_side) {
  std::mt19937_64 random = TestRandom();
  TestDatabase a, b;
  for (int i = 0; i < 200; ++i) {
    a.Put("a" + std::to_string(i), random() % 3 == 0 ? "heavy" : std::to_string(random() % 40));
    if (i % 4 == 0) b.Put("b" + std::to_string(i), i % 8 == 0 ? "heavy" : std::to_string(i % 40));
  }
  const auto left = BuildInShards(a, "value:text", 5), right = Build(b, "value:text");
  CheckBothWays(*left, *right);
  CheckBothWays(*left, *BuildInShards(b, "value:text", 3));
}

BOOST_AUTO_TEST_CASE(a_join_continues_over_other_shards) {
  TestDatabase a, b;
  for (int i = 100; i < 160; ++i) {
    a.Put("a" + std::to_string(i), i % 2 == 0 ? "heavy" : std::to_string(i % 7));
    if (i % 10 == 0) b.Put("b" + std::to_string(i), i % 20 == 0 ? "heavy" : std::to_string(i % 7));
  }
  const auto right = Build(b, "value:text");
  std::vector<std::unique_ptr<SecondaryIndex>> lefts;
  lefts.push_back(Build(a, "value:text"));
  lefts.push_back(BuildInShards(a, "value:text", 5, 1, "five"));
  lefts.push_back(BuildInShards(a, "value:text", 2, 1, "two"));
  const auto append = [&](const SecondaryIndex& left, const JoinResult& found,
                          std::vector<std::pair<std::string, std::string>>* pairs) {
    StringList of_left, of_right;
    RequireOk(left.PrimaryKeys(found.left, &of_left));
    RequireOk(right->PrimaryKeys(found.right, &of_right));
    for (size_t i = 0; i < of_left.size(); ++i) pairs->emplace_back(of_left[i], of_right[i]);
  };
  JoinResult found;
  std::vector<std::pair<std::string, std::string>> expected, pairs;
  RequireOk(Join(*lefts[0], *right, {}, &found));
  append(*lefts[0], found, &expected);
  BOOST_TEST(expected.size() > 90u);
  for (const uint64_t limit : {1, 4, 7}) {
    JoinOptions page;
    page.limit = limit;
    pairs.clear();
    size_t next = 0;
    do {
      const SecondaryIndex& left = *lefts[next++ % lefts.size()];
      RequireOk(Join(left, *right, page, &found));
      append(left, found, &pairs);
      page.after = found.cursor;
    } while (!page.after.empty());
    BOOST_TEST((pairs == expected));
  }
}

BOOST_AUTO_TEST_CASE(what_came_since_the_build_and_pinned_states) {
  std::mt19937_64 random = TestRandom();
  TestDatabase a, b;
  const std::string spec = "value.field('|',0):u32,include(all=value:text)";
  for (int i = 0; i < 80; ++i) {
    a.Put("a" + std::to_string(i), absl::StrCat(random() % 20, "|", i));
    b.Put("b" + std::to_string(i), absl::StrCat(random() % 20, "|", i));
  }
  const auto left = Build(a, spec), right = Build(b, spec);
  const auto pinned = RequireOk(left->Pin());
  const std::vector<Pair> before = Expected(*pinned, *pinned);
  for (int i = 0; i < 40; ++i) {
    a.Put("a" + std::to_string(random() % 120), absl::StrCat(random() % 20, "|new"));
    a.Delete("a" + std::to_string(random() % 120));
  }
  RequireOk(left->CatchUp(*a.Source()));
  CheckBothWays(*left, *right);
  BOOST_TEST((Expected(*pinned, *pinned) == before));
  RequireOk(left->Compact());
  CheckBothWays(*left, *right);
  Check(*pinned, *right);
  BOOST_TEST((Expected(*pinned, *pinned) == before));

  JoinOptions options;
  options.left_columns = {"all"};
  options.right_columns = {"all"};
  options.with_keys = true;
  JoinResult rows;
  RequireOk(Join(*left, *right, options, &rows));
  for (size_t j = 0; j < rows.size(); ++j) {
    const std::string key = absl::StrCat(rows.keys.u32(j), "|");
    BOOST_REQUIRE(rows.left_columns[0].bytes(j).substr(0, key.size()) == key);
    BOOST_REQUIRE(rows.right_columns[0].bytes(j).substr(0, key.size()) == key);
  }
  BOOST_TEST(rows.size() > 0u);
}

BOOST_AUTO_TEST_CASE(keys_from_elsewhere) {
  TestDatabase db;
  for (int i = 0; i < 30; ++i) db.Put("row" + std::to_string(100 + i), std::to_string(i % 4));
  const std::string spec = "value.field('|',0):u32,include(key=key:text)";
  const auto index = Build(db, spec);
  const std::vector<uint32_t> keys = {3, 9, 0, 3};
  JoinOptions options;
  options.right_columns = {"key"};
  JoinResult rows;
  RequireOk(JoinKeys(keys, *index, options, &rows));
  BOOST_TEST(rows.size() == 7u + 8 + 7);
  StringList primary_keys;
  RequireOk(index->PrimaryKeys(rows.right, &primary_keys));
  for (size_t j = 0; j < rows.size(); ++j) {
    BOOST_TEST(rows.left[j] == (j < 7 ? 0u : j < 15 ? 2u : 3u));
    BOOST_TEST(rows.right_columns[0].bytes(j) == primary_keys[j]);
  }
  RequireOk(JoinKeys(KeyBatch(), *index, options, &rows));
  BOOST_TEST(rows.size() == 0u);
  options.limit = 3;
  BOOST_TEST(absl::IsInvalidArgument(JoinKeys(keys, *index, options, &rows)));
  const std::vector<uint64_t> wrong = {1};
  BOOST_TEST(absl::IsInvalidArgument(JoinKeys(wrong, *index, {}, &rows)));
}

BOOST_AUTO_TEST_CASE(keys_from_elsewhere_that_are_null) {
  TestDatabase db;
  db.Put("none", "x");
  db.Put("one", "x|1");
  const auto index = Build(db, "value.field('|',1):u32, nulls=first");
  EncodedKeys keys(index->kind());
  RequireOk(index->codec().Append({DataValue()}, &keys));
  RequireOk(index->codec().Append({DataValue(uint64_t{1})}, &keys));
  JoinResult rows;
  RequireOk(JoinKeys(keys.Batch(), *index, {}, &rows));
  BOOST_REQUIRE(rows.size() == 1u);
  BOOST_TEST(rows.left[0] == 1u);
  std::atomic<bool> cancelled{true};
  JoinOptions options;
  options.cancelled = &cancelled;
  BOOST_TEST(absl::IsCancelled(JoinKeys(keys.Batch(), *index, options, &rows)));
}

BOOST_AUTO_TEST_CASE(what_cannot_be_joined_is_refused) {
  TestDatabase db;
  for (int i = 0; i < 30; ++i) db.Put("row" + std::to_string(i), std::to_string(i % 4));
  const auto number = Build(db, "value.field('|',0):u32");
  TestDatabase other;
  other.Put("x", "1");
  const auto wide = Build(other, "value.field('|',0):u64");
  JoinResult rows;
  const absl::Status types = Join(*number, *wide, {}, &rows);
  BOOST_TEST(absl::IsInvalidArgument(types), types);
  BOOST_TEST(types.message().find("(u32) and (u64)") != std::string::npos, types);
  BOOST_TEST(absl::IsInvalidArgument(CountJoin(*wide, *number).status()));

  JoinOptions options;
  options.limit = 0;
  RequireOk(Join(*number, *number, options, &rows));
  BOOST_TEST((rows.size() == 0 && rows.cursor.empty()));
  options.limit = 5;
  options.left_columns = {"price"};
  BOOST_TEST(absl::IsInvalidArgument(Join(*number, *number, options, &rows)));
  options.left_columns.clear();
  RequireOk(Join(*number, *number, options, &rows));
  const std::string cursor = rows.cursor;
  BOOST_REQUIRE(!cursor.empty());
  std::mt19937_64 random = TestRandom();
  for (size_t i = 0; i < 300; ++i) {  // hostile ones result in an error or in pairs
    options.after = cursor.substr(0, random() % (cursor.size() + 1));
    if (!options.after.empty() && i % 2 == 0) {
      options.after[random() % options.after.size()] = static_cast<char>(random());
    }
    const absl::Status status = Join(*number, *number, options, &rows);
    BOOST_TEST((status.ok() || absl::IsInvalidArgument(status)), status);
  }
  options.after = "no cursor";
  BOOST_TEST(absl::IsInvalidArgument(Join(*number, *number, options, &rows)));
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
