#pragma once

#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "cairn/secondary_index.h"
#include "engine/delta_files/delta_file.h"
#include "engine/merge/base_merge.h"
#include "engine/rows/row_table_file.h"
#include "engine/version/base.h"
#include "index/files/run_file.h"
#include "test/engine/delta/delta_history.h"
#include "test/engine/test_database.h"
#include "test/require_ok.h"
#include "test/temporary_directory.h"

namespace cairn {

// The output directory of a test's merge.
struct Directory {
  TemporaryDirectory parent;
  std::unique_ptr<IndexDirectory> index = *IndexDirectory::OpenForWrite(parent / "index");

  std::set<std::string> Files() const {
    std::set<std::string> files;
    for (const auto& file : std::filesystem::directory_iterator(index->path())) {
      if (file.path().filename() != "LOCK") files.insert(file.path().filename());
    }
    return files;
  }
  std::string Bytes(const ManifestFile& file) const {
    BOOST_TEST(std::filesystem::file_size(index->PathOf(file.name)) == file.size);
    return ReadFile(index->PathOf(file.name));
  }
};

inline WrittenBase Merge(const Delta& delta, IndexDirectory* directory, int threads) {
  CompactOptions options;
  options.threads = threads;
  return RequireOk(MergeBase(delta, directory, options));
}

// The files of a build over the model's rows: its run, and its row table with one part.
template <typename Key>
struct FreshBuild {
  explicit FreshBuild(const ModelRows<Key>& rows) {
    using Physical = PhysicalOf<Key>;
    const SortedRun run = MakeBaseRun(rows);
    const auto column = ColumnOf<Physical>(run);
    std::vector<Physical> keys;
    uint64_t key_bytes = 0;
    for (size_t p = 0; p < run.size(); ++p) {
      keys.push_back(column[p]);
      if constexpr (std::is_same_v<Key, std::string>) key_bytes += keys.back().size();
    }
    entries = run.size();
    distinct_keys = std::set<Physical>(keys.begin(), keys.end()).size();
    auto file = *RunFileWriter::Create(directory / "run", kKindOf<Physical>);
    RequireOk(file->Begin(keys.size(), key_bytes));
    RequireOk(file->Append(absl::MakeConstSpan(keys), run.row_ids()));
    RequireOk(file->Finish());

    auto table = *RowTableFileWriter::Create(directory / "rows", 1);
    for (const auto& row : rows) {
      if (!table->table().part(0).Add(row.first).ok()) BOOST_FAIL("a row is refused");
    }
    RequireOk(table->Finish());
  }

  TemporaryDirectory directory;
  uint64_t entries, distinct_keys;
};

template <typename Key>
void CheckIsFreshBuild(const WrittenBase& merged, const Directory& directory,
                       const ModelRows<Key>& rows) {
  const FreshBuild<Key> fresh(rows);
  BOOST_TEST(merged.rows == rows.size());
  BOOST_TEST(merged.entries == fresh.entries);
  BOOST_TEST(merged.distinct_keys == fresh.distinct_keys);
  BOOST_CHECK(directory.Bytes(merged.run) == ReadFile(fresh.directory / "run"));
  BOOST_CHECK(directory.Bytes(merged.row_table) == ReadFile(fresh.directory / "rows"));
}

}  // namespace cairn
