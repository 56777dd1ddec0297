// Indexes of a database through the C API: built, queried, fetched through, caught up and verified,
// compared with the C++ API on the same index.
#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "cairn/c.h"
#include "cairn/column.h"
#include "cairn/index_spec.h"
#include "cairn/query.h"
#include "cairn/secondary_index.h"
#include "test/engine/c/c_handles.h"
#include "test/engine/test_database.h"
#include "test/require_ok.h"

namespace cairn {
namespace {

constexpr int kPeople = 400;
const char* const kCities[] = {"Lisbon", "Oslo", "Quito", "Riga"};

struct FreeSource {
  void operator()(cairn_source* source) const { cairn_source_free(source); }
};
using SourceHandle = std::unique_ptr<cairn_source, FreeSource>;

// Takes a returned text.
std::string Take(char* text) {
  const std::string copy = text == nullptr ? "" : text;
  cairn_text_free(text);
  return copy;
}

class DatabaseFixture {
 public:
  DatabaseFixture() {
    for (int i = 0; i < kPeople; ++i) PutPerson(i);
  }
  void PutPerson(int i) {
    const std::string number = std::to_string(1000 + i);
    db.Put("person-" + number, "name" + number + "," + std::to_string(i % 90 - 5) + "," +
                                   kCities[static_cast<size_t>(i) % 4]);
  }
  SourceHandle Source() {
    cairn_source* source = nullptr;
    RequireNone(cairn_source_from_directory(db.path().c_str(), nullptr, &source));
    return SourceHandle(source);
  }
  void Build() {
    const cairn_build_target targets[] = {
        {"city = value.field(',', 2):text, on_error=fail", city_path.c_str()},
        {"age = value.field(',', 1):i8", age_path.c_str()}};
    RequireNone(cairn_build(Source().get(), targets, 2, nullptr, nullptr));
  }
  static IndexHandle Open(const std::string& path) {
    cairn_open_options options = cairn_open_options_init();
    options.calibration = CAIRN_CALIBRATION_NONE;
    options.verify = CAIRN_VERIFY_METADATA;
    const char* const structures[] = {"cpu:sorted_array"};
    options.structures = structures;
    options.structures_count = 1;
    cairn_index* index = nullptr;
    RequireNone(cairn_open(path.c_str(), &options, &index));
    return IndexHandle(index);
  }

  TestDatabase db;
  const std::string city_path = db.Beside("city.index");
  const std::string age_path = db.Beside("age.index");
};

cairn_ranges RangesOf(int32_t kind, const TestArrow& lower) {
  cairn_ranges ranges = cairn_ranges_init();
  ranges.kind = kind;
  ranges.lower_schema = &lower.schema;
  ranges.lower = &lower.array;
  return ranges;
}

}  // namespace

BOOST_FIXTURE_TEST_SUITE(database_test, DatabaseFixture)

BOOST_AUTO_TEST_CASE(build_reports_and_tells_how_far_it_is) {
  db.Put("nobody", "a value without fields");
  const std::string skipping = db.Beside("skipping.index");
  const cairn_build_target target = {"age = value.field(',', 1):u8, on_error=skip",
                                     skipping.c_str()};
  struct Heard {
    int calls = 0;
    uint64_t done = 0;
  } heard;
  cairn_build_options options = cairn_build_options_init();
  options.threads = 1;
  options.context = &heard;
  options.on_progress = [](void* context, const cairn_progress* progress) {
    Heard* const to = static_cast<Heard*>(context);
    ++to->calls;
    to->done = progress->done;
    BOOST_TEST(progress->size == sizeof(cairn_progress));
    BOOST_TEST(progress->phase <= CAIRN_PHASE_WRITE);
  };
  cairn_build_reports* reports = nullptr;
  RequireNone(cairn_build(Source().get(), &target, 1, &options, &reports));
  const cairn_build_report* const report = cairn_build_reports_at(reports, 0);
  BOOST_REQUIRE(report != nullptr);
  BOOST_TEST(report->size == sizeof(cairn_build_report));
  BOOST_TEST(report->rows == uint64_t{kPeople} + 1);
  BOOST_TEST(report->rows_without_key == 1u);
  BOOST_TEST(report->rows_skipped == 25u);  // with a negative age
  BOOST_TEST(report->entries == report->rows - 26);
  BOOST_TEST(std::string(report->first_skipped).find("person-1000") != std::string::npos);
  BOOST_TEST(cairn_build_reports_at(reports, 1) == nullptr);
  cairn_build_reports_free(reports);
  BOOST_TEST(heard.calls > 0);
  BOOST_TEST(heard.done > 0u);
}

BOOST_AUTO_TEST_CASE(build_refuses_and_can_be_cancelled) {
  const SourceHandle source = Source();
  const cairn_build_target wrong[] = {{"value:text", city_path.c_str()},
                                      {"value:int", age_path.c_str()}};
  CheckError(cairn_build(source.get(), wrong, 2, nullptr, nullptr), CAIRN_INVALID_ARGUMENT,
             {"target 1: spec", "int"});
  CheckError(cairn_build(nullptr, wrong, 1, nullptr, nullptr), CAIRN_INVALID_ARGUMENT, {"source"});
  CheckError(cairn_build(source.get(), nullptr, 1, nullptr, nullptr), CAIRN_INVALID_ARGUMENT,
             {"targets"});
  const cairn_build_target nowhere = {"value:text", nullptr};
  CheckError(cairn_build(source.get(), &nowhere, 1, nullptr, nullptr), CAIRN_INVALID_ARGUMENT,
             {"directory"});
  cairn_cancel* cancel = nullptr;
  RequireNone(cairn_cancel_new(&cancel));
  cairn_cancel_set(cancel);
  cairn_build_options options = cairn_build_options_init();
  options.cancel = cancel;
  CheckError(cairn_build(source.get(), wrong, 1, &options, nullptr), CAIRN_CANCELLED);
  cairn_cancel_free(cancel);
  BOOST_TEST(!std::filesystem::exists(city_path + "/MANIFEST"));
  RequireNone(cairn_declare_comparator("test.DeclaredInC", 1));
  RequireNone(cairn_declare_comparator("test.DeclaredInC", 1));
  CheckError(cairn_declare_comparator("test.DeclaredInC", 0), CAIRN_ALREADY_EXISTS,
             {"test.DeclaredInC"});
  CheckError(cairn_declare_comparator(nullptr, 0), CAIRN_INVALID_ARGUMENT, {"name"});
  CheckError(cairn_declare_comparator("", 0), CAIRN_INVALID_ARGUMENT);
  cairn_source* none = nullptr;
  CheckError(cairn_source_from_directory("/no/such/db", nullptr, &none), CAIRN_NOT_FOUND);
  CheckError(cairn_source_from_directory(db.path().c_str(), "no_family", &none), CAIRN_NOT_FOUND,
             {"no_family"});
  const char* const files[] = {"/no/such/file.sst"};
  CheckError(cairn_source_from_sst_files(files, 1, nullptr, &none), CAIRN_NOT_FOUND,
             {"/no/such/file.sst"});
  BOOST_TEST(none == nullptr);
}

BOOST_AUTO_TEST_CASE(queries_answer_as_those_of_cpp) {
  Build();
  const IndexHandle index = Open(city_path);
  const auto expected = RequireOk(SecondaryIndex::Open(city_path));
  BOOST_TEST(cairn_kind(index.get()) == CAIRN_KIND_BYTES);
  BOOST_TEST(cairn_sequence(index.get()) == expected->sequence());
  BOOST_TEST(cairn_source_sequence(Source().get()) == expected->sequence());
  char* text = nullptr;
  RequireNone(cairn_spec(index.get(), &text));
  BOOST_TEST(Take(text) == expected->spec().ToString());

  const TestArrow cities("vu", {"Oslo", "Paris", "Riga"});
  const std::vector<std::string_view> names = {"Oslo", "Paris", "Riga"};
  FindResult matches;
  RequireOk(expected->Find(names, &matches));
  const MatchesHandle found = NewMatches();
  cairn_query_options options = cairn_query_options_init();
  options.explain = &text;
  options.latency_target_ns = 1000000000;
  options.route = "cpu:sorted_array";
  RequireNone(cairn_find(index.get(), &cities.schema, &cities.array, &options, found.get()));
  const std::string explained = Take(text);
  BOOST_TEST(explained.find("{\"operation\":\"find\",\"queries\":3,") == 0u, explained);
  BOOST_TEST(explained.find("\"route\":\"cpu:sorted_array\"") != std::string::npos, explained);
  BOOST_TEST(explained.find("\"index\":\"cpu:sorted_array\"") != std::string::npos, explained);
  BOOST_TEST(explained.back() == '}');
  options.route = "no_route";
  CheckError(cairn_find(index.get(), &cities.schema, &cities.array, &options, found.get()),
             CAIRN_INVALID_ARGUMENT, {"no_route", "cpu:sorted_array"});
  BOOST_TEST(text == nullptr);
  RequireNone(cairn_find(index.get(), &cities.schema, &cities.array, nullptr, found.get()));
  const uint32_t* const rows = cairn_matches_row_ids(found.get());
  BOOST_TEST(std::vector<RowId>(rows, rows + matches.row_ids.size()) == matches.row_ids,
             boost::test_tools::per_element());

  StringList primary_keys;
  RequireOk(expected->PrimaryKeys(matches, &primary_keys));
  ArrowResult result;
  RequireNone(
      cairn_primary_keys(index.get(), rows, matches.row_ids.size(), &result.schema, &result.array));
  BOOST_REQUIRE_EQUAL(result.schema.format, "Z");
  BOOST_REQUIRE_EQUAL(result.array.length, static_cast<int64_t>(primary_keys.size()));
  for (size_t i = 0; i < primary_keys.size(); ++i) {
    BOOST_TEST(ArrowResult::String(result.array, i) == primary_keys[i]);
  }
  const uint32_t no_row = CAIRN_NO_ROW;
  ArrowResult none;
  CheckError(cairn_primary_keys(index.get(), &no_row, 1, &none.schema, &none.array),
             CAIRN_OUT_OF_RANGE);
  BOOST_TEST(none.array.release == nullptr);

  RequireNone(cairn_stats(index.get(), &text));
  const std::string stats = Take(text);
  BOOST_TEST(stats.find("{\"rows\":400,\"entries\":400,\"distinct_keys\":4,") == 0u, stats);
  BOOST_TEST(stats.find("\"description\":\"cpu:sorted_array\"") != std::string::npos, stats);
  BOOST_TEST(cairn_best_batch(index.get(), CAIRN_FIND) == 1u);  // nothing was calibrated
  cairn_index* calibrated = nullptr;
  RequireNone(cairn_open(city_path.c_str(), nullptr, &calibrated));
  BOOST_TEST(cairn_predicted_time_ns(calibrated, CAIRN_FIND, 1000) > 0u);
  BOOST_TEST(cairn_best_batch(calibrated, CAIRN_FIND) >= 1u);
  cairn_close(calibrated);
  BOOST_TEST(cairn_best_batch(index.get(), 5) == 1u);
  BOOST_TEST(cairn_predicted_time_ns(index.get(), -1, 5) == 0u);
}

BOOST_AUTO_TEST_CASE(a_scan_goes_on_at_its_cursors) {
  Build();
  const IndexHandle index = Open(age_path);
  const TestArrow lower("c", {int64_t{-5}, int64_t{30}});
  const TestArrow upper("c", {int64_t{0}, int64_t{33}});
  cairn_ranges ranges = RangesOf(CAIRN_BETWEEN, lower);
  ranges.upper_schema = &upper.schema;
  ranges.upper = &upper.array;
  ranges.upper_bound = CAIRN_BOUND_INCLUSIVE;
  const MatchesHandle found = NewMatches();
  const auto rows_of = [&](size_t i) {
    const uint64_t* const offsets = cairn_matches_offsets(found.get());
    const uint32_t* const rows = cairn_matches_row_ids(found.get());
    return std::vector<uint32_t>(rows + offsets[i], rows + offsets[i + 1]);
  };
  RequireNone(cairn_scan(index.get(), &ranges, nullptr, found.get()));
  const std::vector<uint32_t> all = rows_of(0);
  const size_t second = rows_of(1).size();
  BOOST_TEST(all.size() == 30u);  // ages -5 to 0, each of 5 people
  uint64_t counts[2];
  RequireNone(cairn_count(index.get(), &ranges, nullptr, counts, 2));
  BOOST_TEST(counts[0] == all.size());
  BOOST_TEST(counts[1] == second);

  cairn_query_options options = cairn_query_options_init();
  options.limit = 7;
  options.with_keys = 1;
  std::vector<uint32_t> paged;
  auto cursors = std::make_unique<ArrowResult>();
  for (int page = 0; page < 5; ++page) {
    RequireNone(cairn_scan(index.get(), &ranges, &options, found.get()));
    const std::vector<uint32_t> rows = rows_of(0);
    paged.insert(paged.end(), rows.begin(), rows.end());
    auto next = std::make_unique<ArrowResult>();
    RequireNone(cairn_matches_cursors(found.get(), &next->schema, &next->array));
    BOOST_REQUIRE_EQUAL(next->array.length, 2);
    BOOST_TEST(ArrowResult::String(next->array, 0).empty() == (page == 4));
    cursors = std::move(next);
    ranges.after_schema = &cursors->schema;
    ranges.after = &cursors->array;
  }
  BOOST_TEST(paged == all, boost::test_tools::per_element());
  ArrowResult page;
  RequireNone(cairn_matches_export(found.get(), &page.schema, &page.array));
  const ArrowArray& keys = *page.array.children[0]->children[1];
  BOOST_REQUIRE_EQUAL(page.schema.children[0]->children[1]->format, "c");
  BOOST_TEST(static_cast<int>(ArrowResult::Numbers<int8_t>(keys)[0]) == 0);
  const TestArrow one("Z", {""});
  ranges.after_schema = &one.schema;
  ranges.after = &one.array;
  CheckError(cairn_scan(index.get(), &ranges, &options, found.get()), CAIRN_INVALID_ARGUMENT,
             {"after", "2 cursors, found 1"});
  const TestArrow forged("Z", {"no cursor", "none"});
  ranges.after_schema = &forged.schema;
  ranges.after = &forged.array;
  CheckError(cairn_scan(index.get(), &ranges, &options, found.get()), CAIRN_INVALID_ARGUMENT);
}

BOOST_AUTO_TEST_CASE(fetch_gives_whole_rows_and_drops_stale_ones) {
  Build();
  const IndexHandle index = Open(city_path);
  db.Put("person-1001", "moved,1,Quito");  // from Oslo
  const TestArrow cities("U", {"Paris", "Oslo"});
  const cairn_ranges ranges = RangesOf(CAIRN_EQUAL, cities);
  cairn_rows* rows = nullptr;
  RequireNone(cairn_rows_new(&rows));
  RequireNone(cairn_fetch(index.get(), Source().get(), &ranges, nullptr, rows));
  BOOST_TEST(cairn_rows_stale(rows) == 1u);
  CheckError(cairn_fetch(index.get(), nullptr, &ranges, nullptr, rows), CAIRN_INVALID_ARGUMENT,
             {"source"});
  ArrowResult result;
  RequireNone(cairn_rows_export(rows, &result.schema, &result.array));
  cairn_rows_free(rows);
  BOOST_REQUIRE_EQUAL(result.array.length, 2);
  const int64_t* const offsets = ArrowResult::Numbers<int64_t>(result.array);
  BOOST_TEST(offsets[1] == 0);
  BOOST_TEST(offsets[2] == kPeople / 4 - 1);
  const ArrowArray& item = *result.array.children[0];
  BOOST_TEST(ArrowResult::String(*item.children[1], 0) == "person-1005");
  BOOST_TEST(ArrowResult::String(*item.children[2], 0) == "name1005,0,Oslo");
}

BOOST_AUTO_TEST_CASE(an_index_is_brought_up_to_date_and_checked) {
  Build();
  const IndexHandle index = Open(city_path);
  char* differences = nullptr;
  RequireNone(cairn_verify(index.get()));
  RequireNone(cairn_verify_against(index.get(), Source().get(), 5, &differences));
  BOOST_TEST(differences == nullptr);
  for (int i = kPeople; i < kPeople + 50; ++i) PutPerson(i);
  const uint64_t before = cairn_sequence(index.get());
  RequireNone(cairn_verify_against(index.get(), Source().get(), 2, &differences));
  BOOST_REQUIRE(differences != nullptr);
  const std::string lines = Take(differences);
  BOOST_TEST(std::count(lines.begin(), lines.end(), '\n') == 1, lines);

  cairn_catch_up_report report = cairn_catch_up_report_init();
  RequireNone(cairn_catch_up(index.get(), Source().get(), nullptr, &report));
  BOOST_TEST(report.changes == 50u);
  BOOST_TEST(report.sequence == cairn_sequence(index.get()));
  BOOST_TEST(report.sequence > before);
  // A caller of an earlier version gets only the fields of that version.
  cairn_catch_up_report earlier = cairn_catch_up_report_init();
  earlier.size = offsetof(cairn_catch_up_report, rows);
  earlier.rows = 77;
  PutPerson(1000);
  RequireNone(cairn_catch_up(index.get(), Source().get(), nullptr, &earlier));
  BOOST_TEST(earlier.changes == 1u);
  BOOST_TEST(earlier.rows == 77u);
  BOOST_TEST(earlier.size == offsetof(cairn_catch_up_report, rows));

  cairn_cancel* cancel = nullptr;
  RequireNone(cairn_cancel_new(&cancel));
  cairn_cancel_set(cancel);
  cairn_compact_options options = cairn_compact_options_init();
  options.cancel = cancel;
  CheckError(cairn_index_compact(index.get(), &options), CAIRN_CANCELLED);
  cairn_cancel_free(cancel);
  options.cancel = nullptr;
  RequireNone(cairn_index_compact(index.get(), &options));
  BOOST_TEST(!cairn_index_should_compact(index.get()));
  RequireNone(cairn_verify(index.get()));
  RequireNone(cairn_verify_against(index.get(), Source().get(), 2, &differences));
  BOOST_TEST(differences == nullptr);
}

BOOST_AUTO_TEST_CASE(a_pinned_index_keeps_its_rows) {
  Build();
  IndexHandle index = Open(city_path);
  cairn_index* pinned_index = nullptr;
  RequireNone(cairn_pin(index.get(), &pinned_index));
  const IndexHandle pinned(pinned_index);
  const TestArrow city("u", {"Lisbon"});
  uint32_t row = CAIRN_NO_ROW;
  RequireNone(cairn_find_first(pinned.get(), &city.schema, &city.array, nullptr, &row, 1));
  const auto key_of_row = [row](const IndexHandle& of) {
    ArrowResult key;
    RequireNone(cairn_primary_keys(of.get(), &row, 1, &key.schema, &key.array));
    return std::string(ArrowResult::String(key.array, 0));
  };
  const std::string key = key_of_row(pinned);
  // A row before all others: compaction changes the ids of all of these.
  db.Put("a", "name,1,Lisbon");
  RequireNone(cairn_catch_up(index.get(), Source().get(), nullptr, nullptr));
  RequireNone(cairn_index_compact(index.get(), nullptr));
  BOOST_TEST(key_of_row(index) != key);
  BOOST_TEST(key_of_row(pinned) == key);
  BOOST_TEST(cairn_sequence(pinned.get()) < cairn_sequence(index.get()));
  CheckError(cairn_catch_up(pinned_index, Source().get(), nullptr, nullptr),
             CAIRN_FAILED_PRECONDITION, {"pinned"});
  CheckError(cairn_index_compact(pinned_index, nullptr), CAIRN_FAILED_PRECONDITION, {"pinned"});
  index.reset();
  BOOST_TEST(key_of_row(pinned) == key);
  CheckError(cairn_pin(nullptr, &pinned_index), CAIRN_INVALID_ARGUMENT, {"index"});
  CheckError(cairn_pin(pinned.get(), nullptr), CAIRN_INVALID_ARGUMENT, {"pinned"});
  const IndexHandle over_columns = IndexOver(city);
  CheckError(cairn_pin(over_columns.get(), &pinned_index), CAIRN_FAILED_PRECONDITION, {"columns"});
}

BOOST_AUTO_TEST_CASE(threads_are_0_to_4096) {
  Build();
  for (const int32_t threads : {-1, 4097}) {
    cairn_index* index = nullptr;
    cairn_open_options open = cairn_open_options_init();
    open.threads = threads;
    CheckError(cairn_open(city_path.c_str(), &open, &index), CAIRN_INVALID_ARGUMENT,
               {"threads: expected 0 to 4096"});
    cairn_columns_options columns = cairn_columns_options_init();
    columns.threads = threads;
    const TestArrow city("u", {"Lisbon"});
    CheckError(cairn_index_from_columns(&city.schema, &city.array, &columns, &index),
               CAIRN_INVALID_ARGUMENT, {"threads"});
    cairn_build_options build = cairn_build_options_init();
    build.threads = threads;
    const cairn_build_target target = {"value:text", city_path.c_str()};
    CheckError(cairn_build(Source().get(), &target, 1, &build, nullptr), CAIRN_INVALID_ARGUMENT,
               {"threads"});
    cairn_compact_options merge = cairn_compact_options_init();
    merge.threads = threads;
    CheckError(cairn_index_compact(Open(city_path).get(), &merge), CAIRN_INVALID_ARGUMENT,
               {"threads"});
  }
}

BOOST_AUTO_TEST_CASE(arrays_live_on_in_any_order) {
  Build();
  IndexHandle index = Open(age_path);
  cairn_ranges ranges = cairn_ranges_init();
  cairn_query_options options = cairn_query_options_init();
  options.with_keys = 1;
  MatchesHandle found = NewMatches();
  RequireNone(cairn_scan(index.get(), &ranges, &options, found.get()));
  ArrowSchema schema;
  ArrowArray array;
  const uint32_t* const rows = cairn_matches_row_ids(found.get());
  RequireNone(cairn_matches_export(found.get(), &schema, &array));
  BOOST_TEST(ArrowResult::Numbers<uint32_t>(*array.children[0]->children[0]) == rows);  // no copy
  // A second export has no more data.
  ArrowResult nothing;
  RequireNone(cairn_matches_export(found.get(), &nothing.schema, &nothing.array));
  BOOST_TEST(nothing.array.length == 0);
  found.reset();
  index.reset();
  schema.release(&schema);
  BOOST_TEST(schema.release == nullptr);
  // A consumer moves one child away, and releases the parent first.
  ArrowArray moved = *array.children[0]->children[1];
  array.children[0]->children[1]->release = nullptr;
  array.release(&array);
  BOOST_TEST(array.release == nullptr);
  BOOST_TEST(moved.length == kPeople);
  const int8_t* const ages = ArrowResult::Numbers<int8_t>(moved);
  BOOST_TEST(static_cast<int>(ages[0]) == -5);
  BOOST_TEST(static_cast<int>(ages[kPeople - 1]) == 84);
  moved.release(&moved);
  BOOST_TEST(moved.release == nullptr);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace cairn
