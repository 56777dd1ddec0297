// A sharded index has the results of an unsharded one, for any data and any cuts.
#include <boost/test/unit_test.hpp>
#include <string>
#include <utility>
#include <vector>

#include "cairn/batcher.h"
#include "cairn/options.h"
#include "cairn/query.h"
#include "test/engine/shards/sharded_pair.h"
#include "test/sanitizer.h"
#include "test/test_random.h"

namespace cairn {
BOOST_AUTO_TEST_SUITE(sharded_index_test)
namespace {

struct Data {
  std::string name;
  std::vector<std::string> values;  // of rows 0, 1, …
};

std::vector<Data> TextData(std::mt19937_64* random) {
  const size_t rows = (kUnderAsan || kUnderTsan) ? 60 : 300;
  std::vector<Data> all = {{"nothing", {}}, {"one", {"a"}}, {"two of one key", {"a", "a"}}};
  Data same{"all equal", {}}, few{"duplicates", {}}, many{"near-unique", {}},
      heavy{"a heavy key", {}}, zeros{"zero bytes and long prefixes", {}};
  for (size_t i = 0; i < rows; ++i) {
    same.values.push_back("same");
    few.values.push_back(std::to_string((*random)() % 20));
    many.values.push_back(std::to_string((*random)() % 100000));
    heavy.values.push_back((*random)() % 10 < 7 ? "m" : std::to_string((*random)() % 1000));
    std::string key = (*random)() % 2 == 0 ? std::string(40, 'p') : std::string();
    for (uint64_t n = (*random)() % 4; n > 0; --n) {
      key.push_back("\0\1\xfe\xff"[(*random)() % 4]);
    }
    zeros.values.push_back(key);
  }
  all.insert(all.end(), {same, few, many, heavy, zeros});
  return all;
}

std::vector<Data> NumberData(const char* most, std::mt19937_64* random) {
  const size_t rows = (kUnderAsan || kUnderTsan) ? 60 : 250;
  Data few{"duplicates and both ends", {"0", most, "0", most, most}}, equal{"all the least", {}};
  for (size_t i = 0; i < rows; ++i) {
    few.values.push_back(std::to_string((*random)() % 60 + 1));
    equal.values.push_back("0");
  }
  return {few, equal};
}

void Fill(const Data& data, TestDatabase* db) {
  for (size_t i = 0; i < data.values.size(); ++i) {
    db->Put("row" + std::to_string(i * 7919 % 10007), data.values[i]);
  }
}

// Present keys, adjacent ones, and some absent keys.
EncodedKeys SomeKeys(const SecondaryIndex& index, std::mt19937_64* random) {
  FindResult matches;
  QueryOptions options;
  options.with_keys = true;
  RequireOk(index.Scan(RangeBatch::Everything(index.kind()), &matches, options));
  EncodedKeys keys(index.kind());
  for (size_t i = 0; i < matches.keys.size(); ++i) {
    if (index.kind() == PhysicalType::kU32) {
      keys.AppendU32(matches.keys.u32(i) + static_cast<uint32_t>((*random)() % 3) - 1);
    } else if (index.kind() == PhysicalType::kU64) {
      keys.AppendU64(matches.keys.u64(i) + (*random)() % 3 - 1);
    } else {
      std::string key(matches.keys.bytes(i));
      if ((*random)() % 3 == 0) key += '\0';
      if ((*random)() % 3 == 0 && !key.empty()) key.pop_back();
      keys.AppendBytes(key);
    }
  }
  if (index.kind() == PhysicalType::kU32) keys.AppendU32(UINT32_MAX);
  if (index.kind() == PhysicalType::kU64) keys.AppendU64(UINT64_MAX);
  if (index.kind() == PhysicalType::kBytes) keys.AppendBytes("");
  return keys;
}

void CheckAll(const char* spec, const Data& data, uint32_t shards, uint32_t segments,
              std::mt19937_64* random) {
  TestDatabase db;
  Fill(data, &db);
  const ShardedPair pair(BuildInShards(db, spec, shards, segments), Build(db, spec));
  const auto source = db.Source();
  BOOST_REQUIRE(Entries(pair.sharded()) == Entries(pair.plain()));
  RequireOk(pair.sharded().Verify());
  Strings differences;
  RequireOk(pair.sharded().VerifyAgainst(*source, 10, &differences));
  BOOST_TEST(differences == Strings(), boost::test_tools::per_element());

  EncodedKeys keys = SomeKeys(pair.plain(), random);
  pair.CheckPoints(keys.Batch());
  pair.CheckPoints(KeyBatch());
  RangeColumnsOf ranges(keys, 40, random);
  pair.CheckRanges(ranges.Batch());
  pair.CheckRanges(RangeBatch::Everything(pair.kind()));
  pair.CheckFetch(*source, ranges.Batch());

  const IndexStats stats = RequireOk(pair.sharded().Stats());
  const IndexStats expected = RequireOk(pair.plain().Stats());
  BOOST_TEST(stats.entries == expected.entries);
  BOOST_TEST(stats.distinct_keys == expected.distinct_keys);
  BOOST_TEST(stats.sequence == expected.sequence);
  const uint64_t parts = std::clamp<uint64_t>(stats.entries, 1, shards);
  BOOST_TEST(stats.shards.size() == parts);
  for (const IndexStats::Shard& shard : stats.shards) {
    // The sizes differ by at most one entry.
    BOOST_TEST(shard.entries >= stats.entries / parts);
    BOOST_TEST(shard.entries <= stats.entries / parts + 1);
  }
}

BOOST_AUTO_TEST_CASE(text_is_answered_as_by_one_index) {
  std::mt19937_64 random = TestRandom();
  for (const Data& data : TextData(&random)) {
    std::vector<std::pair<uint32_t, uint32_t>> cuts = {{1, 1}, {2, 3}, {7, 1}, {16, 4}};
    if (kUnderTsan && data.name != "duplicates" && data.name != "a heavy key") continue;
    if (kUnderTsan) cuts = {{5, 3}};
    for (const auto& [shards, segments] : cuts) {
      BOOST_TEST_CONTEXT(data.name << ", " << shards << " shards of " << segments) {
        CheckAll("value:text", data, shards, segments, &random);
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(numbers_are_answered_as_by_one_index) {
  std::mt19937_64 random = TestRandom();
  for (const auto& [spec, most] : {std::pair{"value.field('|',0):u32", "4294967295"},
                                   {"value.field('|',0):u64", "18446744073709551615"}}) {
    for (const Data& data : NumberData(most, &random)) {
      for (const auto& [shards, segments] : {std::pair{3, 2}, {9, 1}}) {
        if (kUnderTsan && shards == 9) continue;
        BOOST_TEST_CONTEXT(spec << ", " << data.name << ", " << shards << " shards") {
          CheckAll(spec, data, static_cast<uint32_t>(shards), static_cast<uint32_t>(segments),
                   &random);
        }
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(rows_with_several_keys_are_fetched_once_though_shards_share_them) {
  std::mt19937_64 random = TestRandom();
  Data data{"arrays", {}};
  for (int i = 0; i < 100; ++i) {
    std::string tags;
    for (uint64_t n = random() % 5; n > 0; --n) {
      tags += (tags.empty() ? "\"" : ",\"") + std::to_string(random() % 30) + "\"";
    }
    data.values.push_back("{\"tags\":[" + tags + "]}");
  }
  CheckAll("value.json('/tags'):text", data, 5, 2, &random);
}

BOOST_AUTO_TEST_CASE(floats_nulls_and_parts_are_cut_like_any_key) {
  std::mt19937_64 random = TestRandom();
  const Data data{"floats",
                  {"x|nan", "y|-0", "y|0", "|inf", "z|-inf", "no number", "z|nan", "|0", ""}};
  CheckAll("value.field('|',1):f64,nulls=last", data, 4, 2, &random);
  CheckAll("value.field('|',1):f64,value.field('|',0):text,nulls=first", data, 5, 1, &random);
}

BOOST_AUTO_TEST_CASE(rows_of_no_shard_are_refused) {
  TestDatabase db;
  for (int i = 0; i < 20; ++i) db.Put("row" + std::to_string(i), std::to_string(i));
  const auto index = BuildInShards(db, "value:text", 3);
  const std::string_view keys[] = {"1"};
  RowId row = 0;
  const absl::Status first = index->Execute(Batch::FindFirst(keys, absl::MakeSpan(&row, 1)));
  BOOST_TEST(absl::IsInvalidArgument(first), first);
  StringList column;
  std::vector<ColumnValues> columns;
  const GlobalRowId no_shard = MakeGlobalRowId(3, 0);
  BOOST_TEST(absl::IsOutOfRange(index->PrimaryKeys({no_shard}, &column)));
  BOOST_TEST(absl::IsOutOfRange(index->PrimaryKeys({MakeGlobalRowId(1, 1000)}, &column)));
  BOOST_TEST(absl::IsOutOfRange(index->PrimaryKeys({kNoGlobalRow}, &column)));
  BOOST_TEST(absl::IsOutOfRange(index->Columns({no_shard}, {}, &columns)));
  // The halves of one row and of two.
  const std::vector<RowId> two = {0, 0};
  const std::vector<uint32_t> one = {0};
  BOOST_TEST(absl::IsInvalidArgument(index->PrimaryKeys({two, one}, &column)));
  BOOST_TEST(absl::IsInvalidArgument(index->Columns({two, one}, {}, &columns)));
  // Low halves only, as FindResult::operator[] returns them.
  BOOST_TEST(absl::IsInvalidArgument(index->PrimaryKeys({two, {}}, &column)));
  BOOST_TEST(absl::IsInvalidArgument(index->Columns({two, {}}, {}, &columns)));
  // An unsharded index is shard 0.
  const auto plain = Build(db, "value:text");
  BOOST_TEST(absl::IsOutOfRange(plain->PrimaryKeys({no_shard}, &column)));
  BOOST_TEST(absl::IsOutOfRange(plain->PrimaryKeys({kNoGlobalRow}, &column)));
  BOOST_TEST(absl::IsInvalidArgument(plain->PrimaryKeys({two, one}, &column)));
  std::vector<GlobalRowId> found(1);
  RequireOk(plain->FindFirst(keys, absl::MakeSpan(found)));
  column.Clear();
  RequireOk(plain->PrimaryKeys(found, &column));
  BOOST_TEST(Texts(column) == Strings{"row1"}, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(batches_of_the_wrong_kind_cursors_and_updates_are_refused) {
  TestDatabase db;
  for (int i = 0; i < 20; ++i) db.Put("row" + std::to_string(i), std::to_string(i));
  const auto index = BuildInShards(db, "value:text", 3);
  FindResult matches;
  BOOST_TEST(absl::IsInvalidArgument(index->Find(std::vector<uint32_t>{1}, &matches)));
  RangeBatch range = RangeBatch::Everything(PhysicalType::kBytes);
  const Strings wrong = {"no cursor"}, two = {"", ""};
  range.after = wrong;
  BOOST_TEST(absl::IsInvalidArgument(index->Scan(range, &matches)));
  range.after = two;
  BOOST_TEST(absl::IsInvalidArgument(index->Scan(range, &matches)));
  QueryOptions options;
  options.route = "no:such";
  BOOST_TEST(absl::IsInvalidArgument(
      index->Count(RangeBatch::Everything(PhysicalType::kBytes), {}, options)));
  BOOST_TEST(absl::IsFailedPrecondition(index->CatchUp(*db.Source()).status()));
  BOOST_TEST(absl::IsFailedPrecondition(index->Compact()));
  TestDatabase other;
  FetchResult rows;
  BOOST_TEST(absl::IsFailedPrecondition(index->Fetch(
      *other.Source(), RangeBatch::Everything(PhysicalType::kBytes), QueryOptions(), &rows)));
}

BOOST_AUTO_TEST_CASE(a_batcher_whose_rows_have_32_bits_refuses_an_index_in_shards) {
  TestDatabase db;
  for (int i = 0; i < 20; ++i) db.Put("row" + std::to_string(i), std::to_string(i));
  const auto index = BuildInShards(db, "value:text", 3);
  const auto batcher = RequireOk(Batcher::Make(index.get()));
  auto found = batcher->Find(Batcher::Key(std::string_view("1")));
  auto contained = batcher->Contains(Batcher::Key(std::string_view("1")));
  batcher->Flush();
  BOOST_TEST(absl::IsUnimplemented(found.get().status()));
  BOOST_TEST(RequireOk(contained.get()));
}

BOOST_AUTO_TEST_CASE(explain_says_which_shards_were_asked) {
  TestDatabase db;
  for (int i = 100; i < 200; ++i) db.Put("row" + std::to_string(i), std::to_string(i));
  const auto index = BuildInShards(db, "value:text", 4);
  const std::string_view keys[] = {"101", "102", "199"};
  FindResult matches;
  Explain explain;
  Batch batch = Batch::Find(keys, &matches);
  batch.explain = &explain;
  RequireOk(index->Execute(batch));
  BOOST_TEST(explain.queries == 3u);
  BOOST_TEST(explain.reason.find("2 of 4 shards") == 0u, explain.reason);
  BOOST_TEST(!explain.route.empty());
  BOOST_TEST(index->BestBatch(Operation::kFind) >= 1u);
}

BOOST_AUTO_TEST_CASE(verify_names_what_differs_from_the_database) {
  TestDatabase db;
  for (int i = 0; i < 100; ++i) db.Put("row" + std::to_string(i), std::to_string(i % 10));
  const auto index = BuildInShards(db, "value:text", 6);
  db.Put("row7", "8");
  db.Delete("row9");
  Strings differences;
  RequireOk(index->VerifyAgainst(*db.Source(), 100, &differences));
  std::sort(differences.begin(), differences.end());
  BOOST_TEST(differences == (Strings{"key 8 of row 'row7' is not in the index",
                                     "the index has key 7 for row 'row7', the database does not",
                                     "the index has key 9 for row 'row9', the database does not"}),
             boost::test_tools::per_element());
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
