#include "engine/delta_files/update_merge.h"

#include <boost/test/unit_test.hpp>
#include <memory>
#include <string>
#include <vector>

#include "engine/delta_files/delta_file.h"
#include "test/engine/delta/delta_history.h"
#include "test/require_ok.h"
#include "test/sanitizer.h"
#include "test/temporary_directory.h"

namespace cairn {
BOOST_AUTO_TEST_SUITE(update_merge_test)
namespace {

// Applies a history's updates one by one to one writer, and their net effect to another.
template <typename Key>
void CheckMerges(const HistoryShape& shape, size_t base_rows) {
  const PhysicalType kind = kKindOf<PhysicalOf<Key>>;
  TemporaryDirectory parent;
  const auto directory = *IndexDirectory::OpenForWrite(parent / "index");
  History<Key> history(shape);
  for (size_t sources : {1, 2, 3, 7}) {
    for (size_t rows_at_a_time : {size_t{5}, size_t{100}, SIZE_MAX}) {
      ModelRows<Key> rows = history.Rows(base_rows);
      const auto one = MakeWriter(rows), other = MakeWriter(rows);
      std::vector<DeltaFile> files;
      RowUpdates last(kind);
      for (size_t i = 0; i < sources; ++i) {
        // Every other merge ends with updates that are in no file; they must be sorted.
        const RowUpdates updates = history.Updates(1 + history() % 60, &rows);
        Apply(one.get(), updates);
        const auto written = RequireOk(WriteDelta(directory.get(), updates, 10 * i, 10 * i + 10));
        files.push_back(*OpenDelta(directory->PathOf(written.name), VerifyLevel::kFull));
      }
      UpdateMerge merge(kind);
      const bool in_memory = history() % 2 == 0;
      for (size_t i = 0; i < sources; ++i) {
        if (in_memory && i + 1 == sources) {
          DeltaReader(files[i]).Next(SIZE_MAX, &last);
          merge.Add(last);
        } else {
          merge.Add(files[i]);
        }
      }
      RowUpdates slice(kind);
      std::string before;
      size_t read = 0;
      while (merge.Next(rows_at_a_time, &slice)) {
        BOOST_REQUIRE(slice.rows() <= rows_at_a_time);
        for (size_t i = 0; i < slice.rows(); ++i, ++read) {
          if (read > 0) BOOST_REQUIRE(slice.primary_keys[i] > before);
          before = slice.primary_keys[i];
        }
        Apply(other.get(), slice);
      }
      CheckVersion(*other->delta(), rows, &history);
      const DeltaStats expected = one->delta()->Stats(), stats = other->delta()->Stats();
      BOOST_TEST(stats.rows == expected.rows);
      BOOST_TEST(stats.dead_rows == expected.dead_rows);
      BOOST_TEST(stats.added_entries == expected.added_entries);
    }
  }
}

}  // namespace

BOOST_AUTO_TEST_CASE(updates_come_to_what_they_are_one_after_the_other) {
  CheckMerges<uint32_t>({.salt = 1}, FewerUnderTsan(300, 3));
  CheckMerges<uint64_t>({.salt = 2, .max_keys_a_row = 4}, FewerUnderTsan(300, 3));
  CheckMerges<std::string>({.salt = 3, .max_keys_a_row = 3}, FewerUnderTsan(300, 3));
  CheckMerges<std::string>({.salt = 4, .primary_keys = 60}, 0);
}

BOOST_AUTO_TEST_CASE(the_first_slice_has_all_ranges_and_later_rows_outlive_them) {
  RowUpdates first(PhysicalType::kU64), second(PhysicalType::kU64);
  for (const char* primary_key : {"a", "b", "c"}) {
    first.keys.AppendU64(1);
    first.EndRow(primary_key);
  }
  first.DeleteRange("x", "y");
  second.keys.AppendU64(2);
  second.EndRow("b");
  second.DeleteRange("a", "c");
  UpdateMerge merge(PhysicalType::kU64);
  merge.Add(first);
  merge.Add(second);
  RowUpdates slice;
  BOOST_REQUIRE(merge.Next(1, &slice));
  BOOST_TEST(slice.deleted_from.size() == 2u);
  BOOST_REQUIRE(slice.rows() == 1u);
  BOOST_TEST(slice.primary_keys[0] == "b");
  BOOST_TEST(slice.keys.u64(0) == 2u);
  BOOST_REQUIRE(merge.Next(1, &slice));
  BOOST_TEST(slice.deleted_from.size() == 0u);
  BOOST_TEST(slice.primary_keys[0] == "c");
  BOOST_TEST(!merge.Next(1, &slice));
}

BOOST_AUTO_TEST_CASE(ranges_alone_are_a_slice_without_rows) {
  RowUpdates updates(PhysicalType::kBytes);
  updates.DeleteRange("a", "b");
  UpdateMerge merge(PhysicalType::kBytes);
  merge.Add(updates);
  RowUpdates slice;
  BOOST_TEST(merge.Next(10, &slice));
  BOOST_TEST(slice.rows() == 0u);
  BOOST_TEST(slice.deleted_from.size() == 1u);
  BOOST_TEST(!merge.Next(10, &slice));
}

BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
