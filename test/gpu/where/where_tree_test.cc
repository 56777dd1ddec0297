// Predicates without negations, and their programs, on the host only.
#include "gpu/where/where_tree.h"

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <string>
#include <vector>

#include "gpu/where/where_program.h"
#include "test/gpu/where/where_oracle.h"
#include "test/require_ok.h"
#include "test/test_random.h"

namespace cairn::gpu {
BOOST_AUTO_TEST_SUITE(where_tree_test)
namespace {

using Ranges = std::vector<DeviceKeyRange>;

bool IsIn(const WhereSet& set, const std::vector<KeysOfRows>& columns, size_t row) {
  const std::optional<uint64_t> key = columns[set.column][row];
  if (!key.has_value()) return set.null;
  return std::any_of(set.ranges.begin(), set.ranges.end(), [&](DeviceKeyRange range) {
    return range.first <= *key && *key <= range.last;
  });
}

// Runs a program for one row; returns the largest size of the stack.
bool Run(const WhereProgram& program, const std::vector<const WhereSet*>& sets,
         const std::vector<KeysOfRows>& columns, size_t row, size_t* deepest) {
  std::vector<bool> stack;
  bool value = true;
  const auto pop = [&] {
    const bool top = stack.back();
    stack.pop_back();
    return top;
  };
  for (const WhereOp& op : program.ops) {
    const auto in_set = [&] { return IsIn(*sets[op.set], columns, row); };
    switch (op.step) {
      case WhereStep::kLoad:
        value = in_set();
        break;
      case WhereStep::kAnd:
        value = in_set() && value;
        break;
      case WhereStep::kOr:
        value = in_set() || value;
        break;
      case WhereStep::kPush:
        stack.push_back(value);
        break;
      case WhereStep::kPopAnd:
        value = pop() && value;
        break;
      case WhereStep::kPopOr:
        value = pop() || value;
        break;
      case WhereStep::kRequire:
        if (!value) return false;
        break;
    }
    *deepest = std::max(*deepest, stack.size());
  }
  BOOST_REQUIRE(stack.empty());
  return value;
}

void CheckSets(const WhereTree& tree) {
  if (tree.kind == WhereTree::Kind::kSet) {
    const Ranges& ranges = tree.set.ranges;
    for (size_t i = 0; i < ranges.size(); ++i) {
      BOOST_REQUIRE(ranges[i].first <= ranges[i].last);
      BOOST_REQUIRE((i == 0 || ranges[i - 1].last < ranges[i].first - 1));
    }
    return;
  }
  BOOST_TEST(tree.children.size() >= 2);
  std::vector<size_t> columns;
  for (const WhereTree& child : tree.children) {
    CheckSets(child);
    BOOST_TEST((child.kind == WhereTree::Kind::kSet || child.kind != tree.kind));
    if (child.kind == WhereTree::Kind::kSet) columns.push_back(child.set.column);
  }
  std::sort(columns.begin(), columns.end());
  BOOST_TEST((std::adjacent_find(columns.begin(), columns.end()) == columns.end()));
}

BOOST_AUTO_TEST_CASE(ranges_are_put_in_order) {
  BOOST_TEST((SortedRanges(Ranges{}) == Ranges{}));
  BOOST_TEST((SortedRanges(Ranges{{5, 4}}) == Ranges{}));
  BOOST_TEST((SortedRanges(Ranges{{7, 9}, {1, 2}, {3, 3}, {8, 20}, {22, 22}}) ==
              Ranges{{1, 3}, {7, 20}, {22, 22}}));
  BOOST_TEST((SortedRanges(Ranges{{0, UINT64_MAX}, {4, 5}}) == Ranges{{0, UINT64_MAX}}));
  BOOST_TEST((SortedRanges(Ranges{{UINT64_MAX, UINT64_MAX}, {0, 0}}) ==
              Ranges{{0, 0}, {UINT64_MAX, UINT64_MAX}}));
}

BOOST_AUTO_TEST_CASE(other_keys_are_all_but_these) {
  BOOST_TEST((OtherKeys(Ranges{}) == Ranges{{0, UINT64_MAX}}));
  BOOST_TEST((OtherKeys(Ranges{{0, UINT64_MAX}}) == Ranges{}));
  BOOST_TEST((OtherKeys(Ranges{{0, 3}, {7, 7}}) == Ranges{{4, 6}, {8, UINT64_MAX}}));
  BOOST_TEST((OtherKeys(Ranges{{1, 3}, {7, UINT64_MAX}}) == Ranges{{0, 0}, {4, 6}}));
}

BOOST_AUTO_TEST_CASE(sets_of_one_column_become_one) {
  const auto age = [](uint64_t first, uint64_t last) {
    return DevicePredicate::Range(0, first, last);
  };
  const WhereTree both = RequireOk(MakeWhereTree(age(5, 10) && age(8, 20), 1));
  BOOST_TEST((both.kind == WhereTree::Kind::kSet));
  BOOST_TEST((both.set.ranges == Ranges{{8, 10}}));
  const WhereTree either = RequireOk(MakeWhereTree(!(age(5, 10) || !!age(8, 20)), 1));
  BOOST_TEST((either.set.ranges == Ranges{{0, 4}, {21, UINT64_MAX}}));
  BOOST_TEST(!either.set.null);
  const WhereTree null = RequireOk(MakeWhereTree(DevicePredicate::IsNull(0) || age(1, 1), 1));
  BOOST_TEST(null.set.null);
  // x = 1 OR NOT x = 1 is not true of a row without a key.
  const WhereTree known = RequireOk(MakeWhereTree(age(1, 1) || !age(1, 1), 1));
  BOOST_TEST((known.set.ranges == Ranges{{0, UINT64_MAX}}));
  BOOST_TEST(!known.set.null);
}

BOOST_AUTO_TEST_CASE(random_trees_and_their_programs_answer_as_sql_does) {
  auto random = TestRandom();
  std::vector<KeysOfRows> columns(5, KeysOfRows(60));
  for (KeysOfRows& column : columns) {
    for (auto& key : column) {
      if (random() % 4 != 0) key = random() % 3 == 0 ? random() : random() % 10;
    }
  }
  RandomPredicates predicates(columns, &random);
  size_t tried = 0;
  for (int i = 0; i < 600; ++i) {
    const DevicePredicate where = predicates.Make(i % 6);
    const WhereTree tree = RequireOk(MakeWhereTree(where, columns.size()));
    CheckSets(tree);
    const std::vector<const WhereSet*> sets = SetsOf(tree);
    if (sets.size() > kMaxSets) continue;
    ++tried;
    const WhereProgram program = CompileWhere(tree);
    BOOST_TEST(program.ops.size() <= kMaxOps);
    BOOST_TEST(program.stack <= kMaxStack);
    std::vector<double> rows(sets.size());
    for (double& of : rows) of = static_cast<double>(random() % 100);
    for (size_t row = 0; row < columns[0].size(); ++row) {
      const bool expected = Evaluate(where, columns, row) == true;
      size_t deepest = 0;
      BOOST_TEST_REQUIRE(Run(program, sets, columns, row, &deepest) == expected);
      BOOST_TEST(deepest == program.stack);
      if (tree.kind == WhereTree::Kind::kOr) continue;
      // From any set that all rows must be in.
      size_t set = 0;
      const std::vector<WhereTree> children =
          tree.kind == WhereTree::Kind::kSet ? std::vector{tree} : tree.children;
      for (const WhereTree& child : children) {
        if (child.kind == WhereTree::Kind::kSet) {
          const WhereProgram rest = CompileRest(tree, set, rows);
          BOOST_TEST(rest.ops.size() <= kMaxOps);
          deepest = 0;
          BOOST_TEST_REQUIRE((IsIn(*sets[set], columns, row) &&
                              Run(rest, sets, columns, row, &deepest)) == expected);
          BOOST_TEST(deepest <= rest.stack);
        }
        set += SetsOf(child).size();
      }
    }
  }
  BOOST_TEST(tried > 500);
}

BOOST_AUTO_TEST_CASE(the_deepest_stack_is_that_of_a_full_binary_tree) {
  // AND and OR in turn, over two columns, so that no two sets become one.
  std::vector<DevicePredicate> level;
  for (size_t i = 0; i < kMaxSets; ++i) level.push_back(DevicePredicate::Range(i % 2, i, i));
  for (bool all = true; level.size() > 1; all = !all) {
    std::vector<DevicePredicate> above;
    for (size_t i = 0; i < level.size(); i += 2) {
      above.push_back(all ? level[i] && level[i + 1] : level[i] || level[i + 1]);
    }
    level = std::move(above);
  }
  const WhereTree tree = RequireOk(MakeWhereTree(level[0], 2));
  BOOST_TEST(SetsOf(tree).size() == kMaxSets);
  const WhereProgram program = CompileWhere(tree);
  BOOST_TEST(program.stack == 5);
  BOOST_TEST(program.stack <= kMaxStack);
  BOOST_TEST(program.ops.size() <= kMaxOps);
}

BOOST_AUTO_TEST_CASE(what_cannot_be_asked) {
  const auto error = [](const DevicePredicate& where) {
    const absl::Status status = MakeWhereTree(where, 2).status();
    BOOST_TEST(absl::IsInvalidArgument(status), status);
    return std::string(status.message());
  };
  BOOST_TEST(error(DevicePredicate::IsNull(2)) ==
             "predicate: got column 2, but the group has 2 columns");
  BOOST_TEST(error(DevicePredicate::All({})) ==
             "predicate: expected at least one predicate in a list, got none");
  BOOST_TEST(error(!DevicePredicate::Any({})) ==
             "predicate: expected at least one predicate in a list, got none");
  DevicePredicate deep = DevicePredicate::IsNull(0);
  for (int i = 0; i < 199; ++i) deep = !deep;
  BOOST_TEST(deep.depth() == 200);
  RequireOk(MakeWhereTree(deep, 1));
  BOOST_TEST(error(!deep) == "predicate: nested 201 deep, more than the maximum of 200");
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn::gpu
