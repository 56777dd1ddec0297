// Included columns through the C API, of an unsharded and of a sharded index.
#include <boost/test/unit_test.hpp>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cairn/c.h"
#include "cairn/column.h"
#include "test/engine/c/c_handles.h"
#include "test/engine/shards/sharded_pair.h"

namespace cairn {
namespace {

constexpr char kSpec[] =
    "value.field('|',0):text,include(number=value.field('|',1):i32,all=value:text)";
constexpr const char* kNames[] = {"all", "number"};

class Included {
 public:
  Included() {
    for (int i = 0; i < 60; ++i) {
      db.Put("row" + std::to_string(100 + i), std::string(1, static_cast<char>('a' + i % 7)) +
                                                  (i % 5 == 0 ? "" : "|" + std::to_string(i - 30)));
    }
    plain = Build(db, kSpec);
    sharded = BuildInShards(db, kSpec, 3);
    options.columns = kNames;
    options.column_count = 2;
  }

  IndexHandle Open(const std::string& name) const {
    cairn_open_options open = cairn_open_options_init();
    open.calibration = CAIRN_CALIBRATION_NONE;
    cairn_index* opened = nullptr;
    RequireNone(cairn_open(db.Beside(name).c_str(), &open, &opened));
    return IndexHandle(opened);
  }

  // Compares the result with that of the C++ API.
  static void Check(const ArrowResult& out, const std::vector<ColumnValues>& expected) {
    BOOST_REQUIRE(std::string(out.schema.format) == "+s");
    BOOST_REQUIRE(out.array.n_children == 2);
    const ArrowArray& all = *out.array.children[0];
    const ArrowArray& numbers = *out.array.children[1];
    BOOST_TEST(std::string(out.schema.children[0]->name) == "all");
    BOOST_TEST(std::string(out.schema.children[0]->format) == "Z");
    BOOST_TEST(std::string(out.schema.children[1]->name) == "number");
    BOOST_TEST(std::string(out.schema.children[1]->format) == "i");
    BOOST_TEST(out.array.length == static_cast<int64_t>(expected[0].size()));
    BOOST_TEST(numbers.null_count == static_cast<int64_t>(expected[1].null_count()));
    const auto* const valid = static_cast<const uint8_t*>(numbers.buffers[0]);
    for (size_t i = 0; i < expected[0].size(); ++i) {
      BOOST_REQUIRE(ArrowResult::String(all, i) == expected[0].bytes(i));
      const bool is_null = valid != nullptr && (valid[i / 8] >> (i % 8) & 1) == 0;
      BOOST_REQUIRE(is_null == expected[1].is_null(i));
      BOOST_REQUIRE(ArrowResult::Numbers<int32_t>(numbers)[i] == expected[1].numbers<int32_t>()[i]);
    }
  }

  TestDatabase db;
  std::unique_ptr<SecondaryIndex> plain, sharded;
  cairn_query_options options = cairn_query_options_init();
  const TestArrow words{"u", std::vector<DataValue>{std::string_view("c"), std::string_view("none"),
                                                    std::string_view("a")}};
};

BOOST_FIXTURE_TEST_SUITE(matched_columns_test, Included)

BOOST_AUTO_TEST_CASE(finds_and_scans_return_them) {
  for (const auto& [name, expected] :
       {std::pair{"index", plain.get()}, {"sharded", sharded.get()}}) {
    const IndexHandle index = Open(name);
    QueryOptions query;
    query.columns = {"all", "number"};
    const MatchesHandle found = NewMatches();
    ArrowResult lists, columns, of_scan, of_rows;
    FindResult matches;
    RequireNone(cairn_find(index.get(), &words.schema, &words.array, &options, found.get()));
    RequireOk(expected->Find(std::vector<std::string_view>{"c", "none", "a"}, &matches, query));
    RequireNone(cairn_matches_export(found.get(), &lists.schema, &lists.array));
    RequireNone(cairn_matches_columns(found.get(), &columns.schema, &columns.array));
    Check(columns, matches.columns);
    CheckError(cairn_matches_columns(found.get(), &of_scan.schema, &of_scan.array),
               CAIRN_FAILED_PRECONDITION, {"moved out"});

    cairn_ranges everything = cairn_ranges_init();
    RequireNone(cairn_scan(index.get(), &everything, &options, found.get()));
    RequireNone(cairn_matches_columns(found.get(), &of_scan.schema, &of_scan.array));
    RequireOk(expected->Scan(RangeBatch::Everything(PhysicalType::kBytes), &matches, query));
    BOOST_TEST(matches.row_ids.size() == 60u);
    Check(of_scan, matches.columns);

    std::vector<uint64_t> rows;
    for (size_t j = 0; j < matches.row_ids.size(); ++j) rows.push_back(matches.row(j));
    RequireNone(cairn_columns(index.get(), kNames, 2, rows.data(), rows.size(), &of_rows.schema,
                              &of_rows.array));
    Check(of_rows, matches.columns);
  }
}

BOOST_AUTO_TEST_CASE(without_names_there_are_none) {
  const IndexHandle index = Open("index");
  const MatchesHandle found = NewMatches();
  RequireNone(cairn_find(index.get(), &words.schema, &words.array, &options, found.get()));
  RequireNone(cairn_find(index.get(), &words.schema, &words.array, nullptr, found.get()));
  ArrowResult out;
  RequireNone(cairn_matches_columns(found.get(), &out.schema, &out.array));
  BOOST_TEST(out.array.n_children == 0);
}

BOOST_AUTO_TEST_CASE(what_cannot_be_is_refused) {
  const IndexHandle index = Open("index");
  const MatchesHandle found = NewMatches();
  const char* const unknown[] = {"cost"};
  const char* const null[] = {nullptr};
  cairn_query_options wrong = options;
  wrong.columns = unknown;
  wrong.column_count = 1;
  CheckError(cairn_find(index.get(), &words.schema, &words.array, &wrong, found.get()),
             CAIRN_INVALID_ARGUMENT, {"cost", "number, all"});
  ArrowResult empty, out;
  RequireNone(cairn_matches_columns(found.get(), &empty.schema, &empty.array));
  BOOST_TEST(empty.array.n_children == 0);
  wrong.columns = null;
  CheckError(cairn_find(index.get(), &words.schema, &words.array, &wrong, found.get()),
             CAIRN_INVALID_ARGUMENT, {"columns"});
  wrong.columns = nullptr;
  CheckError(cairn_find(index.get(), &words.schema, &words.array, &wrong, found.get()),
             CAIRN_INVALID_ARGUMENT, {"columns"});
  bool contained[3] = {};
  CheckError(cairn_contains(index.get(), &words.schema, &words.array, &options, contained, 3),
             CAIRN_INVALID_ARGUMENT, {"returns no columns"});
  const uint64_t row = 1000;
  CheckError(cairn_columns(index.get(), kNames, 2, &row, 1, &out.schema, &out.array),
             CAIRN_OUT_OF_RANGE);
  CheckError(cairn_columns(index.get(), unknown, 1, &row, 1, &out.schema, &out.array),
             CAIRN_INVALID_ARGUMENT, {"cost"});
  const IndexHandle over = IndexOver(words);
  CheckError(cairn_find(over.get(), &words.schema, &words.array, &options, found.get()),
             CAIRN_INVALID_ARGUMENT, {"includes none"});
  CheckError(cairn_columns(over.get(), kNames, 2, &row, 1, &out.schema, &out.array),
             CAIRN_FAILED_PRECONDITION);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace cairn
