#include "engine/log/row_changes.h"

#include <boost/test/unit_test.hpp>
#include <string>
#include <utility>
#include <vector>

#include "test/require_ok.h"

namespace cairn {
BOOST_AUTO_TEST_SUITE(row_changes_test)
namespace {

// Entities as RocksDB serializes them (entity_test.cc): one with the column city, and one with only
// the default column.
constexpr std::string_view kCity =
    "\x01\x01\x04"
    "city"
    "\x03"
    "Ulm";
constexpr std::string_view kPlain{
    "\x01\x01\x00\x05"
    "plain",
    9};
constexpr std::string_view kBoth{
    "\x01\x02\x00\x05\x04"
    "city"
    "\x03"
    "plainUlm",
    18};

BOOST_AUTO_TEST_CASE(keeps_changes_in_order) {
  RowChanges changes;
  changes.Put("key", "value");
  changes.Put("", "");
  changes.Delete("key");
  changes.LookUp(std::string_view("\0", 1));
  changes.DeleteRange("a", "b");
  BOOST_REQUIRE_EQUAL(changes.size(), 5u);
  BOOST_TEST((changes[0].kind == RowChangeKind::kPut));
  BOOST_TEST((changes[0].key == "key" && changes[0].value == "value"));
  BOOST_TEST((changes[1].key.empty() && changes[1].value.empty()));
  BOOST_TEST((changes[2].kind == RowChangeKind::kDelete && changes[2].key == "key"));
  BOOST_TEST((changes[3].kind == RowChangeKind::kLookUp && changes[3].key.size() == 1));
  BOOST_TEST((changes[4].kind == RowChangeKind::kDeleteRange && changes[4].value == "b"));
  changes.ReplaceByLookUp(0);
  BOOST_TEST((changes[0].kind == RowChangeKind::kLookUp && changes[0].key == "key"));
  BOOST_TEST((changes[1].kind == RowChangeKind::kPut));
}

BOOST_AUTO_TEST_CASE(says_what_memory_it_takes_and_keeps_it_when_cleared) {
  RowChanges changes;
  for (int round = 0; round < 2; ++round) {
    BOOST_TEST(changes.bytes() == 0u);
    BOOST_TEST(changes.empty());
    for (int i = 0; i < 1000; ++i) changes.Put(std::to_string(1000 + i), std::string(100, 'v'));
    BOOST_TEST(changes.bytes() == 1000 * (RowChanges::kBytesPerChange + 4 + 100));
    BOOST_TEST((changes[999].key == "1999"));
    changes.Clear();
  }
}

BOOST_AUTO_TEST_CASE(adds_what_happened_later) {
  RowChanges earlier;
  RowChanges later;
  earlier.Put("a", "1");
  later.Put("b", "2");
  later.DeleteRange("c", "d");
  earlier.Append(later);
  BOOST_REQUIRE_EQUAL(earlier.size(), 3u);
  BOOST_TEST((earlier[1].key == "b" && earlier[1].value == "2"));
  BOOST_TEST((earlier[2].key == "c" && earlier[2].value == "d"));
  BOOST_TEST(later.size() == 2u);
}

BOOST_AUTO_TEST_CASE(moves_and_can_be_used_again) {
  RowChanges from;
  from.Put("a", "1");
  RowChanges to = std::move(from);
  from.Clear();
  from.Put("b", "2");
  BOOST_TEST((to.size() == 1 && to[0].key == "a"));
  BOOST_TEST((from.size() == 1 && from[0].key == "b"));
}

BOOST_AUTO_TEST_CASE(large_values_are_their_owners) {
  const auto owner =
      std::make_shared<const std::string>(std::string(RowChanges::kMinShared, 'x') + "small");
  const std::string_view large = std::string_view(*owner).substr(0, RowChanges::kMinShared);
  const std::string_view small = std::string_view(*owner).substr(RowChanges::kMinShared);
  RowChanges changes;
  changes.Put("a", large, owner);
  changes.Put("b", small, owner);
  changes.Put("c", large);
  BOOST_TEST(owner.use_count() == 2);
  BOOST_TEST(changes[0].value.data() == large.data());
  BOOST_TEST((changes[1].value == small && changes[1].value.data() != small.data()));
  BOOST_TEST((changes[2].value == large && changes[2].value.data() != large.data()));
  BOOST_TEST(changes.bytes() > 2 * RowChanges::kMinShared);
  BOOST_TEST(changes.memory_bytes() >= changes.bytes());

  RowChanges later;
  later.Put("d", "1");
  later.Append(changes);
  BOOST_TEST(later[1].value.data() == large.data());
  BOOST_TEST(later[2].value == small);
  changes.Clear();
  BOOST_TEST(changes.bytes() == 0u);
  BOOST_TEST(owner.use_count() == 2);
  const RowChanges moved = std::move(later);
  BOOST_TEST(moved[1].value.data() == large.data());
  BOOST_TEST(later.memory_bytes() == 0u);
  BOOST_TEST(owner.use_count() == 2);
}

BOOST_AUTO_TEST_CASE(gives_rows_as_rocksdb_reads_them) {
  RowChanges changes;
  changes.Put("k", "v");
  RequireOk(changes.PutEntity("k", kCity));
  RequireOk(changes.PutEntity("k", kPlain));
  RequireOk(changes.PutEntity("k", kBoth));
  std::vector<ColumnView> scratch;
  RowView row;
  SetRow(changes[0], &scratch, &row);
  BOOST_TEST((row.primary_key == "k" && row.value == "v" && row.columns.empty()));
  SetRow(changes[1], &scratch, &row);
  BOOST_REQUIRE_EQUAL(row.columns.size(), 1u);
  BOOST_TEST((row.value.empty() && row.columns[0].name == "city" && row.columns[0].value == "Ulm"));
  SetRow(changes[2], &scratch, &row);
  BOOST_TEST((row.value == "plain" && row.columns.empty()));
  SetRow(changes[3], &scratch, &row);
  BOOST_TEST((row.value == "plain" && row.columns.size() == 2));
}

BOOST_AUTO_TEST_CASE(refuses_what_is_not_an_entity_and_looks_up_one_that_it_cannot_read) {
  RowChanges changes;
  BOOST_TEST(absl::IsDataLoss(changes.PutEntity("k", "\x01\x05")));
  BOOST_TEST(changes.empty());
  BOOST_TEST(changes.PutEntity("k", "\x07").ok());
  BOOST_REQUIRE_EQUAL(changes.size(), 1u);
  BOOST_TEST((changes[0].kind == RowChangeKind::kLookUp));
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
