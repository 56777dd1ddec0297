// Sharded indexes through the C API: compares rows of 64 bits with the C++ API on the same index.
#include <boost/test/unit_test.hpp>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cairn/c.h"
#include "cairn/c/device.h"
#include "test/engine/c/c_handles.h"
#include "test/engine/shards/sharded_pair.h"

namespace cairn {
namespace {

const std::vector<std::string_view> kWords = {"heavy", "a", "nothing", "z", ""};

class Sharded {
 public:
  Sharded() {
    for (int i = 0; i < 300; ++i) {
      db.Put("row" + std::to_string(1000 + i), i % 2 == 0 ? "heavy" : std::string(1, 'a' + i % 26));
    }
    expected = BuildInShards(db, "value:text", 4);
    cairn_open_options options = cairn_open_options_init();
    options.calibration = CAIRN_CALIBRATION_NONE;
    cairn_index* opened = nullptr;
    RequireNone(cairn_open(db.Beside("sharded").c_str(), &options, &opened));
    index.reset(opened);
  }

  TestDatabase db;
  std::unique_ptr<SecondaryIndex> expected;
  IndexHandle index;
  const TestArrow words{"u", std::vector<DataValue>(kWords.begin(), kWords.end())};
};

// The row ids of the lists, with 64 bits.
std::vector<uint64_t> Rows(const ArrowResult& lists) {
  const ArrowArray& items = *lists.array.children[0];
  const bool structs = std::string(lists.schema.children[0]->format) == "+s";
  const ArrowArray& rows = structs ? *items.children[0] : items;
  const ArrowSchema& schema =
      structs ? *lists.schema.children[0]->children[0] : *lists.schema.children[0];
  BOOST_TEST(std::string(schema.format) == "L");
  const auto* numbers = ArrowResult::Numbers<uint64_t>(rows);
  return {numbers, numbers + rows.length};
}

std::vector<uint64_t> WideRows(const FindResult& matches) {
  std::vector<uint64_t> rows;
  for (size_t j = 0; j < matches.row_ids.size(); ++j) rows.push_back(matches.row(j));
  return rows;
}

BOOST_FIXTURE_TEST_SUITE(wide_rows_test, Sharded)

BOOST_AUTO_TEST_CASE(an_index_in_shards_has_rows_of_64_bits) {
  BOOST_TEST(cairn_in_shards(index.get()));
  BOOST_TEST(!cairn_in_shards(nullptr));
  const std::vector<std::string_view>& keys = kWords;
  std::vector<uint64_t> first(keys.size()), expected_first(keys.size());
  RequireNone(cairn_find_first_global(index.get(), &words.schema, &words.array, nullptr,
                                      first.data(), first.size()));
  RequireOk(expected->FindFirst(keys, absl::MakeSpan(expected_first)));
  BOOST_TEST(first == expected_first);
  BOOST_TEST(first[2] == CAIRN_NO_GLOBAL_ROW);

  FindResult all;
  RequireOk(expected->Find(keys, &all));
  const MatchesHandle found = NewMatches();
  RequireNone(cairn_find(index.get(), &words.schema, &words.array, nullptr, found.get()));
  const uint32_t* const shards = cairn_matches_shards(found.get());
  BOOST_REQUIRE(shards != nullptr);
  BOOST_TEST(std::vector<uint32_t>(shards, shards + all.shards.size()) == all.shards);
  ArrowResult lists, primary_keys;
  RequireNone(cairn_matches_export(found.get(), &lists.schema, &lists.array));
  BOOST_TEST(Rows(lists) == WideRows(all));

  StringList texts;
  RequireOk(expected->PrimaryKeys(all, &texts));
  const std::vector<uint64_t> rows = Rows(lists);
  RequireNone(cairn_primary_keys_global(index.get(), rows.data(), rows.size(), &primary_keys.schema,
                                        &primary_keys.array));
  for (size_t i = 0; i < rows.size(); ++i) {
    BOOST_REQUIRE(ArrowResult::String(primary_keys.array, i) == texts[i]);
  }
}

BOOST_AUTO_TEST_CASE(scans_and_fetches_export_them_too) {
  cairn_ranges everything = cairn_ranges_init();
  cairn_query_options options = cairn_query_options_init();
  options.with_keys = 1;
  const MatchesHandle found = NewMatches();
  RequireNone(cairn_scan(index.get(), &everything, &options, found.get()));
  ArrowResult lists, none, fetched;
  RequireNone(cairn_matches_export(found.get(), &lists.schema, &lists.array));
  FindResult all;
  RequireOk(expected->Scan(RangeBatch::Everything(expected->kind()), &all));
  BOOST_TEST(Rows(lists) == WideRows(all));
  // An empty list of rows also has 64-bit rows.
  const TestArrow nothing("u", std::vector<DataValue>{std::string_view("nothing")});
  RequireNone(cairn_find(index.get(), &nothing.schema, &nothing.array, nullptr, found.get()));
  RequireNone(cairn_matches_export(found.get(), &none.schema, &none.array));
  BOOST_TEST(Rows(none).empty());

  cairn_source* source = nullptr;
  RequireNone(cairn_source_from_directory(db.path().c_str(), nullptr, &source));
  cairn_rows* rows = nullptr;
  RequireNone(cairn_rows_new(&rows));
  RequireNone(cairn_fetch(index.get(), source, &everything, nullptr, rows));
  RequireNone(cairn_rows_export(rows, &fetched.schema, &fetched.array));
  BOOST_TEST(Rows(fetched) == WideRows(all));
  cairn_rows_free(rows);
  cairn_source_free(source);
}

BOOST_AUTO_TEST_CASE(rows_of_32_bits_do_not_name_a_row) {
  std::vector<uint32_t> narrow(kWords.size());
  CheckError(cairn_find_first(index.get(), &words.schema, &words.array, nullptr, narrow.data(),
                              narrow.size()),
             CAIRN_INVALID_ARGUMENT, {"row_ids", "64-bit", "sharded"});
  ArrowResult out;
  CheckError(cairn_primary_keys(index.get(), narrow.data(), 1, &out.schema, &out.array),
             CAIRN_INVALID_ARGUMENT, {"row_ids", "64-bit", "sharded"});
  const uint64_t wrong[] = {CAIRN_NO_GLOBAL_ROW};
  CheckError(cairn_primary_keys_global(index.get(), wrong, 1, &out.schema, &out.array),
             CAIRN_OUT_OF_RANGE);
  std::vector<uint64_t> wide(kWords.size() - 1);
  CheckError(cairn_find_first_global(index.get(), &words.schema, &words.array, nullptr, wide.data(),
                                     wide.size()),
             CAIRN_INVALID_ARGUMENT, {"rows", "5"});
  CheckError(cairn_find_first_global(nullptr, &words.schema, &words.array, nullptr, wide.data(), 5),
             CAIRN_INVALID_ARGUMENT, {"index"});
  cairn_device_index* on_device = nullptr;
  CheckError(cairn_device_open(index.get(), nullptr, 0, &on_device), CAIRN_UNIMPLEMENTED,
             {"32 bits"});
}

BOOST_AUTO_TEST_CASE(an_index_in_one_piece_has_them_as_well) {
  RequireOk(SecondaryIndex::Build(*db.Source(), Spec("value:text"), db.Beside("plain")).status());
  cairn_index* opened = nullptr;
  RequireNone(cairn_open(db.Beside("plain").c_str(), nullptr, &opened));
  const IndexHandle plain(opened);
  BOOST_TEST(!cairn_in_shards(plain.get()));
  std::vector<uint32_t> narrow(kWords.size());
  std::vector<uint64_t> wide(kWords.size());
  RequireNone(cairn_find_first(plain.get(), &words.schema, &words.array, nullptr, narrow.data(),
                               narrow.size()));
  RequireNone(cairn_find_first_global(plain.get(), &words.schema, &words.array, nullptr,
                                      wide.data(), wide.size()));
  for (size_t i = 0; i < kWords.size(); ++i) {
    BOOST_TEST(wide[i] == (narrow[i] == CAIRN_NO_ROW ? CAIRN_NO_GLOBAL_ROW : narrow[i]));
  }
  // An object that contained rows of the other kind before.
  const MatchesHandle found = NewMatches();
  RequireNone(cairn_find(index.get(), &words.schema, &words.array, nullptr, found.get()));
  RequireNone(cairn_find(plain.get(), &words.schema, &words.array, nullptr, found.get()));
  BOOST_TEST(cairn_matches_shards(found.get()) == nullptr);
  ArrowResult lists;
  RequireNone(cairn_matches_export(found.get(), &lists.schema, &lists.array));
  BOOST_TEST(std::string(lists.schema.children[0]->format) == "I");
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace cairn
