#include "gpu/where/where_planner.h"

#include <boost/test/unit_test.hpp>
#include <string>
#include <vector>

#include "test/require_ok.h"

namespace cairn::gpu {
BOOST_AUTO_TEST_SUITE(where_planner_test)
namespace {

using Strategy = DeviceWhereStrategy;

constexpr uint64_t kRows = uint64_t{1} << 28;
constexpr size_t kSharedBytes = 226 << 10;

// Keys of all rows but `nulls`, each one more than the one before.
KeySample Consecutive(uint64_t rows, uint64_t nulls) {
  const uint64_t entries = rows - nulls;
  std::vector<uint64_t> keys;
  for (uint64_t i = 0; i < KeySample::SizeFor(entries); ++i) {
    keys.push_back(KeySample::PositionOf(i, entries));
  }
  return KeySample(entries, std::move(keys));
}

struct Group {
  explicit Group(uint64_t rows_in_all = kRows, uint64_t nulls = 0)
      : rows(rows_in_all), columns(4, Consecutive(rows, nulls)) {}
  WhereGroupFacts facts() const { return {rows, columns, shared_bytes}; }
  WhereDecision Decide(const DevicePredicate& where, bool only_count = true,
                       Strategy wanted = Strategy::kAuto) const {
    return RequireOk(DecideWhere(where, facts(), only_count, wanted));
  }
  // A share of a column's keys, in thousandths.
  DevicePredicate Share(size_t column, uint64_t share) const {
    return DevicePredicate::Range(column, 1000, 1000 + rows / 1000 * share);
  }

  uint64_t rows;
  std::vector<KeySample> columns;
  size_t shared_bytes = kSharedBytes;
};

BOOST_AUTO_TEST_CASE(small_sets_are_gathered_and_large_ones_scanned) {
  const Group group;
  for (const bool only_count : {true, false}) {
    for (const uint64_t share : {1, 5}) {
      const auto of = group.Decide(
          group.Share(0, share) && group.Share(1, share) && group.Share(2, share), only_count);
      BOOST_TEST((of.plan.strategy == Strategy::kGather));
    }
    for (const uint64_t share : {100, 500, 900}) {
      const auto of = group.Decide(
          group.Share(0, share) && group.Share(1, share) && group.Share(2, share), only_count);
      BOOST_TEST((of.plan.strategy == Strategy::kScan));
    }
  }
}

BOOST_AUTO_TEST_CASE(what_any_row_may_satisfy_is_not_gathered) {
  const Group group;
  const auto few = group.Decide(group.Share(0, 1) || group.Share(1, 1));
  BOOST_TEST((few.plan.strategy == Strategy::kBitmap));
  const auto many = group.Decide(group.Share(0, 400) || group.Share(1, 400));
  BOOST_TEST((many.plan.strategy == Strategy::kScan));
}

BOOST_AUTO_TEST_CASE(the_smallest_set_is_the_driver) {
  const Group group;
  const auto of = group.Decide(group.Share(2, 500) && (group.Share(0, 1) || group.Share(1, 1)) &&
                               group.Share(3, 2));
  BOOST_TEST(of.driver == 3);
  BOOST_TEST((of.plan.strategy == Strategy::kGather));
  BOOST_TEST((of.rest.ops[0] == WhereOp{WhereStep::kLoad, 0}));
  BOOST_TEST((of.rest.ops[1] == WhereOp{WhereStep::kRequire, 0}));
}

BOOST_AUTO_TEST_CASE(one_comparison_is_counted_by_its_ranges) {
  const Group group;
  const auto of = group.Decide(group.Share(0, 700));
  BOOST_TEST((of.plan.strategy == Strategy::kGather));
  BOOST_TEST(of.rest.ops.empty());
  BOOST_TEST((group.Decide(group.Share(0, 700), false).plan.strategy != Strategy::kGather));
}

BOOST_AUTO_TEST_CASE(expected_rows) {
  const Group group;
  const auto near = [](double a, double b) { BOOST_TEST(std::abs(a - b) <= 0.01 * kRows); };
  near(group.Decide(group.Share(0, 500) && group.Share(1, 500)).plan.expected_rows, 0.25 * kRows);
  near(group.Decide(group.Share(0, 500) || group.Share(1, 500)).plan.expected_rows, 0.75 * kRows);
  near(group.Decide(!group.Share(0, 100)).plan.expected_rows, 0.9 * kRows);
  const Group nulls(kRows, kRows / 4);
  near(nulls.Decide(DevicePredicate::IsNull(1)).plan.expected_rows, 0.25 * kRows);
  near(nulls.Decide(!DevicePredicate::IsNull(1)).plan.expected_rows, 0.75 * kRows);
  BOOST_TEST(group.Decide(DevicePredicate::In(0, {})).plan.expected_rows == 0);
}

BOOST_AUTO_TEST_CASE(a_strategy_can_be_forced_where_it_can_answer) {
  Group group;
  const auto all = group.Share(0, 10) && group.Share(1, 10);
  const auto any = group.Share(0, 10) || group.Share(1, 10);
  for (const Strategy strategy : {Strategy::kGather, Strategy::kBitmap, Strategy::kScan}) {
    BOOST_TEST((group.Decide(all, true, strategy).plan.strategy == strategy));
  }
  const auto refused = [&](const DevicePredicate& where, Strategy strategy) {
    const absl::Status status = DecideWhere(where, group.facts(), true, strategy).status();
    BOOST_TEST(absl::IsInvalidArgument(status), status);
    return std::string(status.message());
  };
  BOOST_TEST(
      refused(any, Strategy::kGather) ==
      "strategy gather cannot execute this predicate: there is no comparison that all rows must "
      "satisfy");
  // A block's shared memory must hold a part's bitmaps, which limits the number of sets.
  group.shared_bytes = 1000;
  BOOST_TEST(
      refused(any, Strategy::kBitmap).find("strategy bitmap cannot execute this predicate") == 0);
  BOOST_TEST(Group(1 << 20).Decide(any, true, Strategy::kBitmap).part_bits == kMinPartBits);
  group = Group(kMaxEntries);
  BOOST_TEST(!refused(any, Strategy::kBitmap).empty());
  BOOST_TEST((group.Decide(any).plan.strategy == Strategy::kScan));
}

BOOST_AUTO_TEST_CASE(parts_fit_shared_memory) {
  for (int bits = 0; bits <= 30; ++bits) {
    const Group group(uint64_t{1} << bits);
    const auto of = group.Decide((group.Share(0, 10) && group.Share(1, 10)) ||
                                 (group.Share(2, 10) && group.Share(3, 10)));
    if (of.part_bits == 0) {
      BOOST_TEST(bits == 30);
      continue;
    }
    BOOST_TEST((of.program.stack + 2) << (of.part_bits - 3) <= kSharedBytes);
    BOOST_TEST(group.rows <= kMaxParts << of.part_bits);
  }
}

BOOST_AUTO_TEST_CASE(too_many_comparisons) {
  const Group group;
  std::vector<DevicePredicate> any;
  for (size_t i = 0; i <= kMaxSets / 2; ++i) any.push_back(group.Share(0, i) && group.Share(1, i));
  const absl::Status status =
      DecideWhere(DevicePredicate::Any(any), group.facts(), true, Strategy::kAuto).status();
  BOOST_TEST(absl::IsInvalidArgument(status));
  BOOST_TEST(status.message() == "predicate: got 66 comparisons, more than the maximum of 64");
  any.pop_back();
  BOOST_TEST(group.Decide(DevicePredicate::Any(any)).sets.size() == kMaxSets);
}

BOOST_AUTO_TEST_CASE(a_plan_is_explained) {
  const Group group(uint64_t{1} << 20, 1 << 18);
  const std::string text =
      group
          .Decide(DevicePredicate::In(2, {5, 7, 9}) &&
                      (DevicePredicate::IsNull(0) || DevicePredicate::Range(0, 3, 4)),
                  true, Strategy::kScan)
          .plan.ToString();
  BOOST_TEST(text.find("strategy scan, about 1 rows\n"
                       "  column 2: 3 ranges of keys, about 3 rows\n"
                       "  column 0: 1 range of keys and NULL, about 2621") == 0,
             text);
  BOOST_TEST(text.find("gather") != std::string::npos);
  BOOST_TEST(text.find("bitmap") != std::string::npos);
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn::gpu
