#include <boost/test/unit_test.hpp>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "engine/delta/delta_changes.h"
#include "engine/delta/delta_writer.h"
#include "index/columns/column_file.h"
#include "index/columns/tuple.h"
#include "test/engine/delta/delta_model.h"
#include "test/require_ok.h"
#include "test/temporary_directory.h"
#include "test/test_random.h"

// Deltas of indexes that include columns.
namespace cairn {
BOOST_AUTO_TEST_SUITE(delta_writer_tuples_test)
namespace {

using Rows = ModelRows<uint64_t>;

constexpr DataType kTypes[] = {DataType::kText};

// The state of a row: its keys and its value in the one column, which is null in the base.
struct State {
  std::set<uint64_t> keys;
  std::string value;
};
using States = std::map<std::string, State>;

std::string Name(size_t i) {
  return "row" + std::to_string(1000 + i);
}

void Append(const std::string& primary_key, const State& state, RowUpdates* updates) {
  for (const uint64_t key : state.keys) updates->keys.AppendU64(key);
  std::string tuple;
  if (!state.keys.empty())
    RequireOk(TupleWriter(kTypes, &tuple).Add(std::string_view(state.value)));
  updates->EndRow(primary_key, tuple);
}

RowUpdates Updates(const States& states) {
  RowUpdates updates(PhysicalType::kU64);
  for (const auto& [primary_key, state] : states) Append(primary_key, state, &updates);
  return updates;
}

// A base of `rows`, in an index that includes columns.
std::unique_ptr<DeltaWriter> MakeTupleWriter(const Rows& rows) {
  std::vector<std::string> primary_keys;
  for (const auto& row : rows) primary_keys.push_back(row.first);
  const TemporaryDirectory directory;
  const std::string path = directory / "columns.col";
  auto file = RequireOk(ColumnFileWriter::Create(path, {{"value", kTypes[0]}}));
  std::vector<ColumnValues> nulls(1, ColumnValues(kTypes[0]));
  nulls[0].AppendNull(rows.size());
  RequireOk(file->Append(nulls));
  RequireOk(file->Finish());
  return RequireOk(DeltaWriter::Create(MakeBaseRun(rows), MakeRowTable(primary_keys), 2,
                                       RequireOk(OpenColumnFile(path, VerifyLevel::kFull)).table));
}

Rows SomeRows(size_t count) {
  Rows rows;
  for (size_t i = 0; i < count; ++i) rows[Name(i)] = {10 * i};
  return rows;
}

// All rows with entries in the version, by primary key, each with its value. Checks that the
// entries of rows with tuples are those that are only in the delta.
std::map<std::string, std::string> ValuesOf(const Delta& version) {
  std::map<std::string, std::string> values;
  const auto add = [&](RowId row, bool of_base) {
    StringList primary_key;
    RequireOk(version.PrimaryKeys({row}, &primary_key));
    BOOST_TEST(version.Tuple(row).has_value() != of_base);
    ColumnValues value(kTypes[0]);
    RequireOk(version.Included({row}, {0}, absl::MakeSpan(&value, 1)));
    values[std::string(primary_key[0])] = value.is_null(0) ? "(base)" : std::string(value.bytes(0));
  };
  for (size_t p = 0; p < version.base_run.size(); ++p) {
    if (!version.removed.Contains(p)) add(version.base_run.row_ids()[p], true);
  }
  for (const DeltaPart& part : version.parts) {
    for (size_t p = 0; p < part.segment->size(); ++p) {
      if (!part.removed.Contains(p)) add(part.segment->rows()[p], false);
    }
  }
  return values;
}

BOOST_AUTO_TEST_CASE(a_row_that_changes_leaves_the_base) {
  const auto writer = MakeTupleWriter(SomeRows(3));
  const auto before = writer->delta();
  const auto after = RequireOk(writer->Apply(Updates({{Name(1), {{10}, "one"}}})));
  BOOST_TEST(after->removed.size() == 1u);
  BOOST_TEST(after->added_entries() == 1u);
  BOOST_TEST(ValuesOf(*after)[Name(1)] == "one");
  BOOST_TEST(ValuesOf(*after)[Name(0)] == "(base)");
  BOOST_TEST(ValuesOf(*before)[Name(1)] == "(base)");
}

BOOST_AUTO_TEST_CASE(the_same_again_changes_nothing) {
  const auto writer = MakeTupleWriter(SomeRows(3));
  const RowUpdates updates = Updates({{Name(1), {{10, 20}, "one"}}, {Name(7), {{5}, ""}}});
  const auto first = RequireOk(writer->Apply(updates));
  const auto second = RequireOk(writer->Apply(updates));
  BOOST_TEST(second->end_tuple == first->end_tuple);
  BOOST_TEST(RequireOk(DeltaChanges::Since(*first, second)).rows().empty());
  // A different tuple with the same keys is a change, and so are different keys with the same
  // tuple.
  const auto third = RequireOk(writer->Apply(Updates({{Name(1), {{10, 20}, "two"}}})));
  BOOST_TEST(RequireOk(DeltaChanges::Since(*second, third)).rows().size() == 1u);
  const auto fourth = RequireOk(writer->Apply(Updates({{Name(1), {{20}, "two"}}})));
  BOOST_TEST(fourth->end_tuple == third->end_tuple);
  BOOST_TEST(RequireOk(DeltaChanges::Since(*third, fourth)).rows().size() == 1u);
  BOOST_TEST(ValuesOf(*first)[Name(1)] == "one");
  BOOST_TEST(ValuesOf(*fourth)[Name(1)] == "two");
}

BOOST_AUTO_TEST_CASE(a_row_that_comes_back_has_its_new_values) {
  const auto writer = MakeTupleWriter(SomeRows(3));
  RequireOk(writer->Apply(Updates({{Name(1), {}}})).status());
  BOOST_TEST(ValuesOf(*writer->delta()).count(Name(1)) == 0u);
  const auto back = RequireOk(writer->Apply(Updates({{Name(1), {{10}, "new"}}})));
  BOOST_TEST(ValuesOf(*back)[Name(1)] == "new");
  BOOST_TEST(back->Stats().rows == 3u);
}

BOOST_AUTO_TEST_CASE(what_is_rolled_back_was_never_there) {
  const auto writer = MakeTupleWriter(SomeRows(3));
  const auto first = RequireOk(writer->Apply(Updates({{Name(1), {{10}, "one"}}})));
  RequireOk(writer->Apply(Updates({{Name(1), {{10}, "two"}}, {Name(2), {{3}, "x"}}})).status());
  writer->RollBack(first);
  BOOST_TEST(ValuesOf(*writer->delta())[Name(1)] == "one");
  BOOST_TEST(ValuesOf(*writer->delta())[Name(2)] == "(base)");
  const auto next = RequireOk(writer->Apply(Updates({{Name(2), {{20}, "y"}}})));
  BOOST_TEST(ValuesOf(*next)[Name(1)] == "one");
  BOOST_TEST(ValuesOf(*next)[Name(2)] == "y");
}

BOOST_AUTO_TEST_CASE(updates_without_the_tuples_that_there_are_to_be_are_refused) {
  const auto writer = MakeTupleWriter(SomeRows(3));
  RowUpdates without(PhysicalType::kU64);
  without.EndRow("a");
  BOOST_TEST(absl::IsInvalidArgument(writer->Apply(without).status()));
  RowUpdates few = Updates({{"a", {{1}, "a"}}, {"b", {{1}, "b"}}});
  few.tuples.Clear();
  few.tuples.Append("a");
  BOOST_TEST(absl::IsInvalidArgument(writer->Apply(few).status()));
  const auto plain = MakeWriter(SomeRows(3));
  BOOST_TEST(absl::IsInvalidArgument(plain->Apply(Updates({{"a", {{1}, "a"}}})).status()));
  BOOST_TEST(writer->delta()->empty());
}

BOOST_AUTO_TEST_CASE(random_updates_give_every_version_its_own) {
  auto random = TestRandom();
  constexpr size_t kRows = 60;
  const Rows base = SomeRows(kRows / 2);
  const auto writer = MakeTupleWriter(base);
  std::map<std::string, std::string> model;
  for (const auto& row : base) model[row.first] = "(base)";
  std::vector<std::pair<std::shared_ptr<const Delta>, std::map<std::string, std::string>>> versions;
  for (int batch = 0; batch < 120; ++batch) {
    const auto model_before = model;
    const auto before = writer->delta();
    States states;
    for (size_t i = 1 + random() % 8; i > 0; --i) {
      State state;
      for (size_t k = random() % 4; k > 0; --k) state.keys.insert(random() % 1000);
      state.value = std::to_string(random() % 3);
      states[Name(random() % kRows)] = state;
    }
    RowUpdates updates = Updates(states);
    if (random() % 10 == 0) {
      const size_t from = random() % kRows, to = from + random() % 10;
      updates.DeleteRange(Name(from), Name(to));
      for (size_t i = from; i < to; ++i) model.erase(Name(i));
    }
    for (const auto& [primary_key, state] : states) {
      model.erase(primary_key);
      if (!state.keys.empty()) model[primary_key] = state.value;
    }
    RequireOk(writer->Apply(updates).status());
    if (random() % 5 == 0) {
      writer->RollBack(before);
      model = model_before;
    }
    versions.emplace_back(writer->delta(), model);
  }
  for (const auto& [version, rows] : versions) BOOST_TEST((ValuesOf(*version) == rows));

  // The changes since a version, applied to a base that is that version, result in the last one.
  const auto changes = RequireOk(DeltaChanges::Since(*versions[0].first, versions.back().first));
  RowUpdates updates(PhysicalType::kU64);
  RequireOk(changes.Append(0, changes.rows().size(), &updates));
  BOOST_TEST(updates.tuples.size() == updates.rows());
  for (size_t i = 0; i < updates.rows(); ++i) {
    const auto row = model.find(std::string(updates.primary_keys[i]));
    BOOST_TEST(updates.tuples[i].empty() == (row == model.end()));
    DataValue value;
    if (row == model.end()) continue;
    BOOST_REQUIRE(ReadTuple(kTypes, updates.tuples[i], absl::MakeSpan(&value, 1)));
    BOOST_CHECK(value == DataValue(std::string_view(row->second)));
  }
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
