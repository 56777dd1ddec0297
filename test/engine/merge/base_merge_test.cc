#include "engine/merge/base_merge.h"

#include <boost/test/unit_test.hpp>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "cairn/column.h"
#include "cairn/index_spec.h"
#include "cairn/options.h"
#include "cairn/secondary_index.h"
#include "cairn/types.h"
#include "engine/delta_files/delta_file.h"
#include "engine/rows/row_table_file.h"
#include "engine/version/base.h"
#include "index/files/run_file.h"
#include "test/engine/delta/delta_history.h"
#include "test/engine/merge/merge_directory.h"
#include "test/engine/test_database.h"
#include "test/require_ok.h"
#include "test/sanitizer.h"

namespace cairn {
BOOST_AUTO_TEST_SUITE(base_merge_test)
namespace {

// The writer over a merged base, mapped from its files.
std::unique_ptr<DeltaWriter> OpenMerged(const WrittenBase& merged, const Directory& directory) {
  auto run = RequireOk(OpenRun(directory.index->PathOf(merged.run.name), VerifyLevel::kFull, 1));
  BOOST_CHECK(CheckIsManifestFile(merged.run, run.file).ok());
  auto rows = RequireOk(
      OpenRowTable(directory.index->PathOf(merged.row_table.name), VerifyLevel::kFull, 1));
  BOOST_CHECK(CheckIsManifestFile(merged.row_table, rows.file).ok());
  return RequireOk(DeltaWriter::Create(run.run, rows.table));
}

// Merges from time to time, each time with a few concurrent updates, and continues over the merged
// base: the next merge shows whether anything was lost.
template <typename Key>
void CheckHistory(const HistoryShape& shape, size_t base_rows, size_t rows_a_batch) {
  History<Key> history(shape);
  ModelRows<Key> rows = history.Rows(base_rows);
  const PhysicalType kind = kKindOf<PhysicalOf<Key>>;
  std::unique_ptr<DeltaWriter> writer = MakeWriter(rows);
  Directory directory;
  for (int merge = 0; merge < (kUnderTsan ? 2 : 6); ++merge) {
    for (uint64_t batches = history() % 8; batches > 0; --batches) {
      Apply(writer.get(), history.Updates(1 + history() % rows_a_batch, &rows));
    }
    const std::shared_ptr<const Delta> merging = writer->delta();
    const WrittenBase merged = Merge(*merging, directory.index.get(), 1 + merge % 4);
    CheckIsFreshBuild(merged, directory, rows);
    std::unique_ptr<DeltaWriter> next = OpenMerged(merged, directory);
    for (uint64_t batches = history() % 4; batches > 0; --batches) {
      Apply(writer.get(), history.Updates(1 + history() % rows_a_batch, &rows));
    }
    Apply(next.get(), UpdatesOf(DeltaChanges::Since(*merging, writer->delta()), kind));
    writer = std::move(next);
  }
  const WrittenBase merged = Merge(*writer->delta(), directory.index.get(), 1);
  CheckIsFreshBuild(merged, directory, rows);
}

BOOST_AUTO_TEST_CASE(a_merge_writes_what_a_build_of_its_rows_writes_u32) {
  CheckHistory<uint32_t>({.salt = 1}, 500, 60);
  CheckHistory<uint32_t>({.salt = 2, .percent_without = 0}, 500, 60);
  CheckHistory<uint32_t>({.salt = 3, .keys = 3, .primary_keys = 3000}, 2000, 300);
}
BOOST_AUTO_TEST_CASE(a_merge_writes_what_a_build_of_its_rows_writes_u64) {
  CheckHistory<uint64_t>({.salt = 4, .max_keys_a_row = 5}, 500, 60);
  CheckHistory<uint64_t>(
      {.salt = 5, .keys = 1'000'000, .primary_keys = 30'000, .max_keys_a_row = 6}, 20'000, 4000);
  CheckHistory<uint64_t>({.salt = 6, .percent_without = 80}, 800, 100);
}
BOOST_AUTO_TEST_CASE(a_merge_writes_what_a_build_of_its_rows_writes_bytes) {
  CheckHistory<std::string>({.salt = 7, .max_keys_a_row = 3}, 500, 60);
  CheckHistory<std::string>({.salt = 8, .keys = 100'000, .primary_keys = 20'000}, 10'000, 2000);
}
BOOST_AUTO_TEST_CASE(the_base_may_be_empty) {
  CheckHistory<uint64_t>({.salt = 9, .max_keys_a_row = 2}, 0, 60);
  CheckHistory<std::string>({.salt = 10}, 0, 60);
}

BOOST_AUTO_TEST_CASE(a_merge_of_nothing_copies_the_base) {
  History<uint32_t> history({.salt = 11});
  const ModelRows<uint32_t> rows = history.Rows(1000);
  const std::unique_ptr<DeltaWriter> writer = MakeWriter(rows);
  Directory directory;
  CheckIsFreshBuild(Merge(*writer->delta(), directory.index.get(), 2), directory, rows);
  // Also after earlier changes.
  RowUpdates updates;
  updates.keys.AppendU32(5);
  updates.EndRow("more");
  Apply(writer.get(), updates);
  updates.Clear();
  updates.EndRow("more");
  Apply(writer.get(), updates);
  BOOST_TEST(writer->delta()->Stats().new_rows == 1u);
  CheckIsFreshBuild(Merge(*writer->delta(), directory.index.get(), 2), directory, rows);
}

BOOST_AUTO_TEST_CASE(everything_may_be_deleted_and_come_back) {
  History<std::string> history({.salt = 12, .max_keys_a_row = 3});
  ModelRows<std::string> rows = history.Rows(1000);
  const std::unique_ptr<DeltaWriter> writer = MakeWriter(rows);
  RowUpdates everything(PhysicalType::kBytes);
  everything.DeleteRange("", "s");
  Apply(writer.get(), everything);
  Directory directory;
  const WrittenBase merged = Merge(*writer->delta(), directory.index.get(), 2);
  CheckIsFreshBuild(merged, directory, ModelRows<std::string>());
  BOOST_TEST(merged.rows == 0u);

  rows.clear();
  Apply(writer.get(), history.Updates(500, &rows));
  CheckIsFreshBuild(Merge(*writer->delta(), directory.index.get(), 2), directory, rows);
}

// Enough rows for several parts of the row table, and entries for many pieces. All new entries are
// after the base, before it, or at one place in it.
BOOST_AUTO_TEST_CASE(large_merges_on_many_threads_are_whole) {
  constexpr uint64_t kRows = 700'000;
  const auto primary_key = [](uint64_t row) {
    std::string key(8, '\0');
    for (int i = 0; i < 8; ++i)
      key[static_cast<size_t>(i)] = static_cast<char>(row >> (56 - 8 * i));
    return key;
  };
  std::vector<std::string> primary_keys;
  std::vector<uint64_t> keys;
  std::vector<RowId> row_ids;
  for (uint64_t row = 0; row < kRows; ++row) {
    primary_keys.push_back(primary_key((row + kRows) * 2));
    keys.push_back((row + kRows) / 3 * 2);
    row_ids.push_back(static_cast<RowId>(row));
  }
  const auto writer =
      *DeltaWriter::Create(*SortedRun::FromSorted(keys, row_ids), MakeRowTable(primary_keys), 2);
  std::map<std::string, uint64_t> model;
  for (uint64_t row = 0; row < kRows; ++row) model[primary_keys[row]] = keys[row];
  RowUpdates updates(PhysicalType::kU64);
  auto random = TestRandom();
  for (uint64_t i = 0; i < 100'000; ++i) {
    // Odd primary keys are new.
    const uint64_t at = i % 3 == 0 ? i : i % 3 == 1 ? 10 * kRows + i : 2 * kRows + i * 13;
    const uint64_t key = i % 2 == 0 ? kRows : i % 5 == 0 ? random() : i;
    updates.keys.AppendU64(key);
    updates.EndRow(primary_key(at));
    model[primary_key(at)] = key;
  }
  Apply(writer.get(), updates);

  Directory directory;
  for (int threads : {1, 4, 7}) {
    if (kUnderTsan && threads != 4) continue;
    const WrittenBase merged = Merge(*writer->delta(), directory.index.get(), threads);
    const auto opened = OpenMerged(merged, directory)->delta();
    BOOST_REQUIRE(opened->base_rows.rows() == model.size());
    BOOST_REQUIRE(opened->base_run.size() == model.size());
    std::vector<RowId> all(model.size());
    std::iota(all.begin(), all.end(), 0);
    StringList column;
    RequireOk(opened->base_rows.PrimaryKeys(all, &column));
    std::vector<std::pair<uint64_t, RowId>> entries;
    for (const auto& [row, key] : model) {
      const size_t id = entries.size();
      if (column[id] != row) BOOST_FAIL("row " << id << " is another one");
      entries.emplace_back(key, static_cast<RowId>(id));
    }
    std::sort(entries.begin(), entries.end());
    for (size_t p = 0; p < entries.size(); ++p) {
      if (opened->base_run.u64()[p] != entries[p].first ||
          opened->base_run.row_ids()[p] != entries[p].second) {
        BOOST_FAIL("entry " << p << " is another one");
      }
    }
  }
}

// With specs, sources and manifests: the merged index is published and answers like a new build.
BOOST_AUTO_TEST_CASE(a_merged_index_is_opened_like_one_that_was_built) {
  for (const char* text :
       {"value.field('|',0):u32", "value:text", "value.field('|',1):u64,key:bytes",
        "value.json('/k'):text,value.json('/n'):u8"}) {
    const IndexSpec spec = *IndexSpec::Parse(text);
    TestDatabase db;
    const auto value = [&](uint64_t n) {
      const std::string number = std::to_string(n % 97);
      if (std::string_view(text).find("json") == std::string_view::npos)
        return number + "|" + number;
      return "{\"k\":[\"" + number + "\",\"all\"],\"n\":" + number + "}";
    };
    for (uint64_t i = 0; i < 3000; ++i) db.Put("k" + std::to_string(i * 7919 % 10'000), value(i));
    RequireOk(SecondaryIndex::Build(*db.Source(), spec, db.Beside("old")));
    const auto base = *Base::Open(db.Beside("old"), {});

    // The changes, from another index over only the changed rows.
    TestDatabase changed;
    for (uint64_t i = 0; i < 500; ++i) {
      const std::string key = "k" + std::to_string(i * 271 % 10'000);
      changed.Put(key, value(i * i));
      db.Put(key, value(i * i));
    }
    RequireOk(SecondaryIndex::Build(*changed.Source(), spec, changed.Beside("new")));
    const auto news = *Base::Open(changed.Beside("new"), {});
    RowUpdates updates(base->codec.kind());
    WithPhysicalKey(base->codec.kind(), [&](auto type) {
      using Key = typename decltype(type)::type;
      const auto column = ColumnOf<Key>(news->run());
      for (RowId row = 0; row < news->rows().rows(); ++row) {
        for (size_t p = 0; p < news->run().size(); ++p) {
          if (news->run().row_ids()[p] == row) column.Append(p, &updates.keys);
        }
        StringList primary_key;
        RequireOk(news->rows().PrimaryKeys({row}, &primary_key));
        updates.EndRow(primary_key[0]);
      }
    });
    for (int i = 0; i < 10'000; i += 40) {
      const std::string key = "k" + std::to_string(i);
      if (*news->rows().Find(key) != kNoRow) continue;
      db.Delete(key);
      updates.EndRow(key);
    }
    const auto writer = *DeltaWriter::Create(base->run(), base->rows());
    const std::shared_ptr<const Delta> delta = Apply(writer.get(), updates);

    const auto directory = *IndexDirectory::OpenForWrite(db.Beside("old"));
    const WrittenBase merged = Merge(*delta, directory.get(), 2);
    RequireOk(directory->Publish(AfterMerge(*directory->manifest(), merged, {})));
    RequireOk(SecondaryIndex::Build(*db.Source(), spec, db.Beside("fresh")));
    const auto old_index = *SecondaryIndex::Open(db.Beside("old"));
    std::vector<std::string> differences;
    RequireOk(old_index->VerifyAgainst(*db.Source(), 10, &differences));
    for (const std::string& difference : differences) BOOST_ERROR(text << ": " << difference);
    const auto reopened = *Base::Open(db.Beside("old"), {}),
               fresh = *Base::Open(db.Beside("fresh"), {});
    BOOST_CHECK(ReadFile(reopened->run_file.file.path()) == ReadFile(fresh->run_file.file.path()));
    BOOST_TEST(reopened->manifest.rows == fresh->manifest.rows);
    BOOST_TEST(reopened->manifest.counts.at("distinct_keys") ==
               fresh->manifest.counts.at("distinct_keys"));
    BOOST_TEST(reopened->manifest.version == 2u);
  }
}

BOOST_AUTO_TEST_CASE(the_next_manifest_names_the_merged_base_and_the_deltas_since) {
  Manifest current;
  current.sequence = 77;
  current.counts = {{"distinct_keys", 1}, {"rows_skipped", 2}, {"rows_without_key", 3}, {"wal", 4}};
  for (const char* name : {"base-000001.run", "rows-000002.tbl", "delta-000003.upd",
                           "delta-000005.upd", "delta-000004.upd", "notes-000009.txt"}) {
    current.files.push_back({name, 1, 2});
  }
  WrittenBase merged;
  merged.run = {"base-000010.run", 3, 4};
  merged.row_table = {"rows-000011.tbl", 5, 6};
  merged.rows = 10, merged.entries = 20, merged.distinct_keys = 15;
  // One of them was concurrently merged with later updates, and is no longer listed.
  const std::vector<ManifestFile> merged_files = {
      current.files[2], {"delta-000001.upd", 1, 2}, current.files[3]};
  const Manifest next = AfterMerge(current, merged, merged_files);
  std::vector<std::string> names;
  for (const ManifestFile& file : next.files) names.push_back(file.name);
  BOOST_CHECK((names == std::vector<std::string>{"base-000010.run", "rows-000011.tbl",
                                                 "delta-000004.upd", "notes-000009.txt"}));
  BOOST_CHECK((next.counts == std::map<std::string, uint64_t>{{"distinct_keys", 15}, {"wal", 4}}));
  BOOST_TEST(next.rows == 10u);
  BOOST_TEST(next.entries == 20u);
  BOOST_TEST(next.sequence == 77u);
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
