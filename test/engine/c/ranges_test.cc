// Invalid ranges, options and outputs are rejected with specific errors.
#include <boost/test/unit_test.hpp>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "cairn/c.h"
#include "cairn/c/device.h"
#include "test/engine/c/c_handles.h"

namespace cairn {
namespace {

class RangesFixture {
 public:
  RangesFixture() {
    ranges.lower_schema = &keys.schema;
    ranges.lower = &keys.array;
  }
  cairn_error* Count(size_t size = 2) {
    uint64_t counts[2] = {};
    return cairn_count(index.get(), &ranges, nullptr, counts, size);
  }
  cairn_error* FindFirst(const cairn_query_options* options) {
    uint32_t rows[2];
    return cairn_find_first(index.get(), &keys.schema, &keys.array, options, rows, 2);
  }

  const TestArrow keys{"I", {uint64_t{3}, uint64_t{1}}};
  const IndexHandle index = IndexOver(keys);
  cairn_ranges ranges = cairn_ranges_init();
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(ranges_test, RangesFixture)

BOOST_AUTO_TEST_CASE(ranges_that_are_none) {
  RequireNone(Count());
  CheckError(Count(1), CAIRN_INVALID_ARGUMENT, {"counts", "2 answers, found 1"});
  CheckError(cairn_count(index.get(), nullptr, nullptr, nullptr, 0), CAIRN_INVALID_ARGUMENT,
             {"ranges", "NULL"});
  CheckError(cairn_count(index.get(), &ranges, nullptr, nullptr, 2), CAIRN_INVALID_ARGUMENT,
             {"counts", "NULL"});
  ranges.kind = 3;
  CheckError(Count(), CAIRN_INVALID_ARGUMENT, {"kind", "0 to 2, found 3"});
  ranges.kind = CAIRN_BETWEEN;
  ranges.lower_bound = 4;
  CheckError(Count(), CAIRN_INVALID_ARGUMENT, {"lower_bound", "found 4"});
  ranges.lower_bound = 0;
  const uint8_t bounds[] = {1, 9};
  ranges.lower_bounds = bounds;
  CheckError(Count(), CAIRN_INVALID_ARGUMENT, {"lower_bounds", "found 9"});
  ranges.lower_bounds = nullptr;
  ranges.upper_bound = CAIRN_BOUND_INCLUSIVE;
  CheckError(Count(), CAIRN_INVALID_ARGUMENT, {"upper_bound", "without upper keys"});
}

BOOST_AUTO_TEST_CASE(ends_that_do_not_fit_each_other) {
  const TestArrow one("I", {uint64_t{3}});
  ranges.upper_schema = &one.schema;
  ranges.upper = &one.array;
  CheckError(Count(), CAIRN_INVALID_ARGUMENT, {"found 1 and 2"});
  const TestArrow wide("L", {uint64_t{3}, uint64_t{4}});
  ranges.upper_schema = &wide.schema;
  ranges.upper = &wide.array;
  CheckError(Count(), CAIRN_INVALID_ARGUMENT, {"upper: ", "uint32"});
}

BOOST_AUTO_TEST_CASE(leading_parts_have_no_bounds) {
  for (const int32_t kind : {CAIRN_EQUAL, CAIRN_PREFIX}) {
    ranges.kind = kind;
    ranges.upper = &keys.array;
    CheckError(Count(), CAIRN_INVALID_ARGUMENT, {"upper", "CAIRN_"});
    ranges.upper = nullptr;
    ranges.upper_bound = CAIRN_BOUND_OPEN;
    CheckError(Count(), CAIRN_INVALID_ARGUMENT, {"upper_bound", "CAIRN_"});
    ranges.upper_bound = 0;
    ranges.lower_bound = CAIRN_BOUND_OPEN;
    CheckError(Count(), CAIRN_INVALID_ARGUMENT, {"lower_bound", "CAIRN_"});
    ranges.lower_bound = 0;
    ranges.lower = nullptr;
    CheckError(Count(), CAIRN_INVALID_ARGUMENT, {"lower", "NULL"});
    ranges.lower = &keys.array;
  }
  CheckError(Count(), CAIRN_INVALID_ARGUMENT, {"lower: key 0", "prefix"});  // of numbers
}

BOOST_AUTO_TEST_CASE(what_an_index_over_columns_does_not_have) {
  cairn_query_options options = cairn_query_options_init();
  options.route = "cpu:packed";
  CheckError(FindFirst(&options), CAIRN_INVALID_ARGUMENT, {"route"});
  options.route = nullptr;
  char* text = nullptr;
  options.explain = &text;
  CheckError(FindFirst(&options), CAIRN_INVALID_ARGUMENT, {"explain"});
  const TestArrow cursors("Z", {"", ""});
  ranges.after_schema = &cursors.schema;
  ranges.after = &cursors.array;
  CheckError(Count(), CAIRN_INVALID_ARGUMENT, {"after"});
  CheckError(cairn_scan(index.get(), &ranges, nullptr, NewMatches().get()), CAIRN_INVALID_ARGUMENT,
             {"after"});
  ArrowResult result;
  CheckError(cairn_primary_keys(index.get(), nullptr, 0, &result.schema, &result.array),
             CAIRN_FAILED_PRECONDITION, {"over columns"});
  CheckError(cairn_verify(index.get()), CAIRN_FAILED_PRECONDITION);
  CheckError(cairn_index_compact(index.get(), nullptr), CAIRN_FAILED_PRECONDITION);
  CheckError(cairn_catch_up(index.get(), nullptr, nullptr, nullptr), CAIRN_FAILED_PRECONDITION);
  CheckError(cairn_verify_against(index.get(), nullptr, 1, &text), CAIRN_FAILED_PRECONDITION);
  BOOST_TEST(!cairn_index_should_compact(index.get()));
  BOOST_TEST(cairn_sequence(index.get()) == 0u);
  BOOST_TEST(cairn_predicted_time_ns(index.get(), CAIRN_FIND, 10) == 0u);
  BOOST_TEST(cairn_best_batch(index.get(), CAIRN_FIND) == 1u);
  RequireNone(cairn_spec(index.get(), &text));
  BOOST_TEST(text == std::string("u32"));
  cairn_text_free(text);
  RequireNone(cairn_stats(index.get(), &text));
  BOOST_TEST(std::string(text).find("\"entries\":2,") != std::string::npos);
  cairn_text_free(text);
}

BOOST_AUTO_TEST_CASE(queries_end_before_they_are_complete) {
  cairn_query_options options = cairn_query_options_init();
  options.timeout_ns = uint64_t{1} << 60;
  RequireNone(FindFirst(&options));
  options.timeout_ns = UINT64_MAX;
  RequireNone(FindFirst(&options));
  options.timeout_ns = 1;
  CheckError(FindFirst(&options), CAIRN_DEADLINE_EXCEEDED);
  uint64_t counts[2] = {};
  CheckError(cairn_count(index.get(), &ranges, &options, counts, 2), CAIRN_DEADLINE_EXCEEDED);
  options.timeout_ns = 0;
  cairn_cancel* cancel = nullptr;
  RequireNone(cairn_cancel_new(&cancel));
  options.cancel = cancel;
  RequireNone(FindFirst(&options));
  cairn_cancel_set(cancel);
  CheckError(FindFirst(&options), CAIRN_CANCELLED);
  cairn_cancel_free(cancel);
}

BOOST_AUTO_TEST_CASE(options_of_other_versions) {
  cairn_query_options options = cairn_query_options_init();
  RequireNone(FindFirst(&options));
  options.order = 2;
  CheckError(FindFirst(&options), CAIRN_INVALID_ARGUMENT, {"order", "0 to 1, found 2"});
  options.order = 0;
  // Options of an earlier version end before later fields, which are then not read.
  options.size = offsetof(cairn_query_options, route);
  options.route = "no such route";
  RequireNone(FindFirst(&options));
  // The last size would cut the pointer to the route in two.
  const size_t in_route = offsetof(cairn_query_options, route) + sizeof(char*) / 2;
  for (const size_t size : {size_t{0}, size_t{7}, size_t{1} << 40, in_route}) {
    options.size = size;
    CheckError(FindFirst(&options), CAIRN_INVALID_ARGUMENT, {"options", "size"});
  }
  // A struct of a later version; the library knows only the defaults of its additional members.
  struct Later {
    cairn_query_options known;
    uint64_t more;
  };
  Later later = {cairn_query_options_init(), 0};
  later.known.size = sizeof later;
  RequireNone(FindFirst(&later.known));
  later.more = 1;
  CheckError(FindFirst(&later.known), CAIRN_INVALID_ARGUMENT, {"options", "later version"});
}

BOOST_AUTO_TEST_CASE(errors_of_all_codes_have_messages) {
  BOOST_TEST(cairn_error_code(nullptr) == CAIRN_OK);
  BOOST_TEST(cairn_error_message(nullptr) == std::string());
  cairn_error_free(nullptr);
  cairn_text_free(nullptr);
  cairn_close(nullptr);
  cairn_matches_free(nullptr);
  cairn_rows_free(nullptr);
  cairn_cancel_free(nullptr);
  cairn_source_free(nullptr);
  cairn_build_reports_free(nullptr);
  cairn_cancel_set(nullptr);
  BOOST_TEST(cairn_source_sequence(nullptr) == 0u);
  BOOST_TEST(cairn_build_reports_at(nullptr, 0) == nullptr);
  BOOST_TEST(cairn_kind(nullptr) == 0);
  BOOST_TEST(cairn_sequence(nullptr) == 0u);
  BOOST_TEST(cairn_predicted_time_ns(nullptr, CAIRN_FIND, 1) == 0u);
  BOOST_TEST(cairn_best_batch(nullptr, CAIRN_FIND) == 1u);
  BOOST_TEST(!cairn_index_should_compact(nullptr));
  BOOST_TEST(cairn_matches_size(nullptr) == 0u);
  BOOST_TEST(cairn_matches_offsets(nullptr)[0] == 0u);
  BOOST_TEST(cairn_matches_row_ids(nullptr) == nullptr);
  BOOST_TEST(cairn_rows_stale(nullptr) == 0u);
  BOOST_TEST(cairn_device_kind(nullptr) == 0);
  BOOST_TEST(cairn_device_entries(nullptr) == 0u);
  BOOST_TEST(cairn_device_memory_bytes(nullptr) == 0u);
  cairn_index* none = nullptr;
  CheckError(cairn_open("/no/such/index", nullptr, &none), CAIRN_NOT_FOUND, {"/no/such/index"});
  CheckError(cairn_open(nullptr, nullptr, &none), CAIRN_INVALID_ARGUMENT, {"directory"});
  CheckError(cairn_open("/no/such/index", nullptr, nullptr), CAIRN_INVALID_ARGUMENT, {"index"});
  cairn_open_options options = cairn_open_options_init();
  options.verify = 2;
  CheckError(cairn_open("/", &options, &none), CAIRN_INVALID_ARGUMENT, {"verify"});
  options.verify = 0;
  options.device = -1;
  CheckError(cairn_open("/", &options, &none), CAIRN_INVALID_ARGUMENT, {"device"});
  options.device = 0;
  options.calibration = 4;
  CheckError(cairn_open("/", &options, &none), CAIRN_INVALID_ARGUMENT, {"calibration"});
  options.calibration = 0;
  options.structures_count = 1;
  CheckError(cairn_open("/", &options, &none), CAIRN_INVALID_ARGUMENT, {"structures"});
  BOOST_TEST(none == nullptr);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace cairn
