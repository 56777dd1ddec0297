// Every allocation of a function of the C API fails in turn. The function works without it, or
// returns CAIRN_RESOURCE_EXHAUSTED and does not change its outputs.
#include <boost/test/unit_test.hpp>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "cairn/c.h"
#include "cairn/key_codec.h"
#include "test/allocation/fail_each_allocation.h"
#include "test/allocation/failing_new.h"
#include "test/engine/c/c_handles.h"
#include "test/engine/test_database.h"

namespace cairn {
namespace {

constexpr size_t kKeys = 200;

absl::Status StatusOf(cairn_error* error) {
  absl::Status status;
  if (error != nullptr) {
    status = absl::Status(static_cast<absl::StatusCode>(cairn_error_code(error)),
                          cairn_error_message(error));
  }
  cairn_error_free(error);
  return status;
}

// Composite keys of two parts, some of them null, as Arrow arrays.
class CApiFixture {
 public:
  CApiFixture() {
    std::vector<DataValue> names, numbers;
    for (size_t i = 0; i < kKeys; ++i) texts_.push_back("a name that is long " + std::to_string(i));
    for (size_t i = 0; i < kKeys; ++i) {
      names.emplace_back(std::string_view(texts_[i / 2]));
      numbers.push_back(i % 5 == 0 ? DataValue() : DataValue(static_cast<int64_t>(i) - 50));
    }
    std::vector<std::unique_ptr<TestArrow>> children;
    children.push_back(std::make_unique<TestArrow>("u", names));
    children.push_back(std::make_unique<TestArrow>("s", numbers));
    keys = std::make_unique<TestArrow>(std::move(children), kKeys, 0);
    leading = std::make_unique<TestArrow>("u", std::vector<DataValue>{names[0], names[7]});
  }

  std::unique_ptr<TestArrow> keys;
  std::unique_ptr<TestArrow> leading;

 private:
  std::vector<std::string> texts_;
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(c_api_allocation_test, CApiFixture)

BOOST_AUTO_TEST_CASE(indexes_over_columns_are_made_or_not) {
  for (const FailingNew::How how : kBoth) {
    for (const int32_t nulls : {CAIRN_NULLS_SKIP, CAIRN_NULLS_LAST}) {
      cairn_columns_options options = cairn_columns_options_init();
      options.nulls = nulls;
      options.threads = 1;
      cairn_index* index = nullptr;
      absl::Status status;
      FailEachAllocation(
          how, 100, [&] { cairn_close(std::exchange(index, nullptr)); },
          [&] {
            return status = StatusOf(
                       cairn_index_from_columns(&keys->schema, &keys->array, &options, &index));
          },
          [&] { BOOST_TEST((index != nullptr) == status.ok()); });
      cairn_close(index);
    }
  }
}

BOOST_AUTO_TEST_CASE(queries_answer_or_not_and_exports_leave_what_there_was) {
  cairn_columns_options columns = cairn_columns_options_init();
  columns.nulls = CAIRN_NULLS_FIRST;
  const IndexHandle index = IndexOver(*keys, &columns);
  cairn_query_options with_keys = cairn_query_options_init();
  with_keys.with_keys = 1;
  const cairn_ranges everything = cairn_ranges_init();
  cairn_ranges equal = cairn_ranges_init();
  equal.kind = CAIRN_EQUAL;
  equal.lower_schema = &leading->schema;
  equal.lower = &leading->array;
  for (const FailingNew::How how : kBoth) {
    std::vector<uint32_t> rows(kKeys);
    const auto nothing = [] {};
    FailEachAllocation(
        how, 60, nothing,
        [&] {
          return StatusOf(cairn_find_first(index.get(), &keys->schema, &keys->array, nullptr,
                                           rows.data(), kKeys));
        },
        nothing);
    for (size_t i = 0; i < kKeys; ++i) BOOST_TEST(rows[i] == i);
    uint64_t counts[2] = {};
    FailEachAllocation(
        how, 60, nothing,
        [&] { return StatusOf(cairn_count(index.get(), &equal, nullptr, counts, 2)); }, nothing);
    BOOST_TEST(counts[0] == 2u);
    BOOST_TEST(counts[1] == 2u);

    MatchesHandle matches;
    FailEachAllocation(
        how, 60, [&] { matches = NewMatches(); },
        [&] { return StatusOf(cairn_scan(index.get(), &everything, &with_keys, matches.get())); },
        [&] {
          // Whether or not it failed, no list extends past the items.
          ArrowResult shown;
          RequireNone(cairn_matches_export(matches.get(), &shown.schema, &shown.array));
          const int64_t* const offsets = ArrowResult::Numbers<int64_t>(shown.array);
          BOOST_TEST(offsets[shown.array.length] == shown.array.children[0]->length);
        });
    std::unique_ptr<ArrowResult> result;
    absl::Status status;
    FailEachAllocation(
        how, 60,
        [&] {
          result = std::make_unique<ArrowResult>();
          RequireNone(cairn_scan(index.get(), &everything, &with_keys, matches.get()));
        },
        [&] {
          return status =
                     StatusOf(cairn_matches_export(matches.get(), &result->schema, &result->array));
        },
        [&] {
          BOOST_TEST((result->array.release != nullptr) == status.ok());
          BOOST_TEST((result->schema.release != nullptr) == status.ok());
          BOOST_TEST(cairn_matches_size(matches.get()) == (status.ok() ? 0u : 1u));
        });
    BOOST_TEST(result->array.children[0]->length == int64_t{kKeys});
  }
}

BOOST_AUTO_TEST_CASE(indexes_are_built_and_opened_or_not) {
  TestDatabase db;
  for (int i = 0; i < 50; ++i) db.Put("row" + std::to_string(i), "value" + std::to_string(i % 7));
  const std::string path = db.Beside("index");
  const cairn_build_target target = {"value:text", path.c_str()};
  cairn_source* source = nullptr;
  RequireNone(cairn_source_from_directory(db.path().c_str(), nullptr, &source));
  cairn_build_options building = cairn_build_options_init();
  building.threads = 1;
  cairn_build_reports* reports = nullptr;
  FailEachAllocation(
      FailingNew::How::kOnce, 30,
      [&] { cairn_build_reports_free(std::exchange(reports, nullptr)); },
      [&] { return StatusOf(cairn_build(source, &target, 1, &building, &reports)); }, [] {});
  BOOST_TEST(cairn_build_reports_at(reports, 0)->entries == 50u);
  cairn_build_reports_free(reports);
  cairn_source_free(source);

  cairn_open_options opening = cairn_open_options_init();
  opening.calibration = CAIRN_CALIBRATION_NONE;
  opening.threads = 1;
  cairn_index* index = nullptr;
  FailEachAllocation(
      FailingNew::How::kOnce, 60, [&] { cairn_close(std::exchange(index, nullptr)); },
      [&] { return StatusOf(cairn_open(path.c_str(), &opening, &index)); }, [] {});
  const IndexHandle owner(index);
  char* text = nullptr;
  FailEachAllocation(
      FailingNew::How::kOnward, 60, [&] { cairn_text_free(std::exchange(text, nullptr)); },
      [&] { return StatusOf(cairn_stats(index, &text)); }, [] {});
  cairn_text_free(text);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace cairn
