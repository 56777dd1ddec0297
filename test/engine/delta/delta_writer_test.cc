#include "engine/delta/delta_writer.h"

#include <boost/test/unit_test.hpp>

#include "test/engine/delta/delta_model.h"
#include "test/require_ok.h"

namespace cairn {
BOOST_AUTO_TEST_SUITE(delta_writer_test)
namespace {

using Rows = ModelRows<uint64_t>;

std::string Name(int i) {
  return "row" + std::to_string(1000 + i);
}

// A hundred rows, row i with the key 10 * i.
Rows HundredRows() {
  Rows rows;
  for (int i = 0; i < 100; ++i) rows[Name(i)] = {static_cast<uint64_t>(10 * i)};
  return rows;
}

// Updates that set these rows to these states.
RowUpdates Updates(const Rows& states) {
  RowUpdates updates(PhysicalType::kU64);
  for (const auto& [primary_key, keys] : states) AppendRow(primary_key, keys, &updates);
  return updates;
}

std::shared_ptr<const Delta> MustApply(DeltaWriter* writer, const RowUpdates& updates) {
  return RequireOk(writer->Apply(updates));
}

RowId FirstRow(const Delta& version, uint64_t key) {
  const IndexSearch base(version.base_run);
  RowId row = 0;
  const std::vector<uint64_t> keys = {key};
  RequireOk(AnswerVersion(version, base, Batch::FindFirst(keys, absl::MakeSpan(&row, 1))));
  return row;
}

}  // namespace

BOOST_AUTO_TEST_CASE(the_first_version_is_the_base) {
  const auto writer = MakeWriter(HundredRows());
  const auto version = writer->delta();
  BOOST_TEST(version->empty());
  const DeltaStats stats = version->Stats();
  BOOST_TEST(stats.rows == 100u);
  BOOST_TEST(stats.entries == 100u);
  BOOST_TEST(stats.segments == 0u);
  BOOST_TEST(MustApply(writer.get(), RowUpdates(PhysicalType::kU64))->empty());
}

BOOST_AUTO_TEST_CASE(stats_count_what_is_there) {
  const auto writer = MakeWriter(HundredRows());
  // One row moves, one is deleted, two are new; one of these has two keys.
  const auto version = MustApply(
      writer.get(), Updates({{Name(1), {5}}, {Name(2), {}}, {"new a", {1, 2}}, {"new b", {3}}}));
  DeltaStats stats = version->Stats();
  BOOST_TEST(stats.rows == 101u);
  BOOST_TEST(stats.entries == 102u);
  BOOST_TEST(stats.removed_entries == 2u);
  BOOST_TEST(stats.added_entries == 4u);
  BOOST_TEST(stats.dead_rows == 1u);
  BOOST_TEST(stats.new_rows == 2u);
  BOOST_TEST(stats.segments == 1u);
  BOOST_TEST(version->dead_rows.Contains(2));
  // A new row is deleted again; its id stays in use.
  stats = MustApply(writer.get(), Updates({{"new a", {}}}))->Stats();
  BOOST_TEST(stats.rows == 100u);
  BOOST_TEST(stats.entries == 100u);
  BOOST_TEST(stats.new_rows == 2u);
}

BOOST_AUTO_TEST_CASE(an_update_that_changes_no_key_changes_nothing) {
  const auto writer = MakeWriter(HundredRows());
  const auto same = MustApply(writer.get(), Updates({{Name(1), {10}}, {Name(7), {70}}}));
  BOOST_TEST(same->empty());
  BOOST_TEST((same->filter == nullptr));
  const auto moved = MustApply(writer.get(), Updates({{Name(1), {11}}, {"new", {3}}}));
  const auto again = MustApply(writer.get(), Updates({{Name(1), {11}}, {"new", {3}}}));
  BOOST_TEST(again->parts[0].segment == moved->parts[0].segment);
  BOOST_TEST(again->Stats().added_entries == 2u);
}

BOOST_AUTO_TEST_CASE(a_row_that_comes_back_is_the_row_that_it_was) {
  const auto writer = MakeWriter(HundredRows());
  MustApply(writer.get(), Updates({{Name(5), {}}, {"new", {1}}}));
  MustApply(writer.get(), Updates({{"new", {}}}));
  const auto version = MustApply(writer.get(), Updates({{Name(5), {50}}, {"new", {2}}}));
  BOOST_TEST(FirstRow(*version, 50) == 5u);
  BOOST_TEST(FirstRow(*version, 2) == 100u);
  BOOST_TEST(FirstRow(*version, 1) == kNoRow);
  BOOST_TEST(version->Stats().new_rows == 1u);
  BOOST_TEST(version->dead_rows.empty());
  // The base's own entry is visible again.
  BOOST_TEST(version->removed.empty());
}

BOOST_AUTO_TEST_CASE(hot_rows_leave_no_trace_of_what_they_were) {
  const auto writer = MakeWriter(HundredRows());
  for (uint64_t i = 0; i < 3000; ++i) {
    MustApply(writer.get(), Updates({{Name(3), {i}}, {"hot", {i + 1}}}));
  }
  const DeltaStats stats = writer->delta()->Stats();
  BOOST_TEST(stats.added_entries == 2u);
  BOOST_TEST(stats.segments <= 2u);
  BOOST_TEST(stats.bytes < 400000u);
}

BOOST_AUTO_TEST_CASE(ranges_are_deleted_before_rows_get_their_states) {
  Rows rows = HundredRows();
  const auto writer = MakeWriter(rows);
  MustApply(writer.get(), Updates({{Name(20) + "x", {7}}, {Name(30) + "x", {8}}}));
  RowUpdates updates(PhysicalType::kU64);
  updates.DeleteRange(Name(10), Name(30));
  updates.DeleteRange(Name(25), Name(31));  // overlaps
  updates.DeleteRange(Name(60), Name(50));  // crossed: empty
  updates.DeleteRange(Name(99), "zzz");
  AppendRow<uint64_t>(Name(15), {150}, &updates);      // unchanged
  AppendRow<uint64_t>(Name(20) + "x", {9}, &updates);  // a new row, changed
  AppendRow<uint64_t>(Name(20) + "y", {6}, &updates);  // one that no query has seen
  const auto version = MustApply(writer.get(), updates);
  for (int i = 0; i < 100; ++i) {
    const bool gone = (i >= 10 && i < 31 && i != 15) || i == 99;
    BOOST_TEST(FirstRow(*version, static_cast<uint64_t>(10 * i)) ==
               (gone ? kNoRow : static_cast<RowId>(i)));
  }
  BOOST_TEST(FirstRow(*version, 7) == kNoRow);
  BOOST_TEST(FirstRow(*version, 8) == kNoRow);
  BOOST_TEST(FirstRow(*version, 9) == 100u);
  BOOST_TEST(FirstRow(*version, 6) == 102u);
}

BOOST_AUTO_TEST_CASE(what_cannot_be_applied_changes_nothing) {
  const auto writer = MakeWriter(HundredRows());
  MustApply(writer.get(), Updates({{Name(1), {11}}}));
  const auto before = writer->delta();
  const auto refused = [&](const RowUpdates& updates, const std::string& why) {
    const auto version = writer->Apply(updates);
    BOOST_TEST(absl::IsInvalidArgument(version.status()));
    BOOST_TEST(std::string(version.status().message()) == why);
    BOOST_TEST(writer->delta() == before);
  };
  RowUpdates twice(PhysicalType::kU64);
  AppendRow<uint64_t>("b", {1}, &twice);
  AppendRow<uint64_t>("a", {1}, &twice);
  AppendRow<uint64_t>("b", {1}, &twice);
  refused(twice, "updates name the row 'b' twice");
  RowUpdates other_kind(PhysicalType::kU32);
  AppendRow<uint32_t>("a", {1}, &other_kind);
  refused(other_kind, "updates have u32 keys, but the index has u64 keys");
  RowUpdates no_end = Updates({{"a", {1}}});
  no_end.row_ends.clear();
  refused(no_end, "updates of 1 rows: their 0 ends must ascend to the number of keys, 1");
  RowUpdates half(PhysicalType::kU64);
  half.deleted_from.Append("");
  refused(half, "deleted ranges have 1 begins, but 0 ends");
  // And the writer continues as if nothing had happened.
  const auto after = MustApply(writer.get(), Updates({{Name(1), {12}}, {"new", {5}}}));
  BOOST_TEST(FirstRow(*after, 11) == kNoRow);
  BOOST_TEST(FirstRow(*after, 12) == 1u);
  BOOST_TEST(FirstRow(*after, 5) == 100u);
}

// Rows of keys with 1, 3, 4, 5 and 100 entries each, among them the least and the greatest key, and
// then new rows with primary keys before, between and after those rows.
template <typename Key>
void CheckRunsOfOneKey(const std::vector<Key>& keys) {
  const auto name = [](size_t key, int i) { return std::to_string(1000 * key + 10 * i + 5); };
  for (const size_t longest : {size_t{0}, keys.size() - 1}) {
    ModelRows<Key> rows, added;
    for (size_t key = 0; key < keys.size(); ++key) {
      const int sizes[] = {1, 3, 4, 5};
      const int size = key == longest ? 100 : sizes[key % 4];
      for (int i = 0; i < size; ++i) rows[name(key, i)] = {keys[key]};
      for (int at : {-1, 0, size / 2, size}) added[name(key, at) + "+"] = {keys[key]};
    }
    const auto writer = MakeWriter(rows);
    RowUpdates updates(writer->delta()->base_run.kind());
    for (const auto& [primary_key, row_keys] : added) AppendRow(primary_key, row_keys, &updates);
    const auto version = MustApply(writer.get(), updates);
    const IndexSearch base(version->base_run);
    rows.insert(added.begin(), added.end());
    VersionCheck<Key>(*version, base, rows).CheckAll(keys);
  }
}

BOOST_AUTO_TEST_CASE(new_rows_of_runs_of_one_key) {
  CheckRunsOfOneKey<uint32_t>({0, 1, 7, 8, 9, UINT32_MAX - 1, UINT32_MAX});
  CheckRunsOfOneKey<uint64_t>({0, 1, UINT32_MAX, uint64_t{1} << 32, UINT64_MAX - 1, UINT64_MAX});
  CheckRunsOfOneKey<std::string>(
      {"", std::string(1, '\0'), "a", std::string("a\0", 2), "b", std::string(40, '\xff')});
}

BOOST_AUTO_TEST_CASE(segments_stay_few) {
  auto random = TestRandom();
  const auto writer = MakeWriter(HundredRows());
  size_t most = 0;
  for (int batch = 0; batch < 2000; ++batch) {
    Rows states;
    for (int i = 0; i < 10; ++i) states[std::to_string(random())] = {random()};
    most = std::max(most, MustApply(writer.get(), Updates(states))->parts.size());
  }
  BOOST_TEST(most <= 7u);
  // When most entries are removed, their segments are removed, too.
  RowUpdates all(PhysicalType::kU64);
  all.DeleteRange("", "zzzz");
  const auto version = MustApply(writer.get(), all);
  BOOST_TEST(version->parts.empty());
  BOOST_TEST(version->Stats().entries == 0u);
}

BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
