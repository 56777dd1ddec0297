// Builds an index over a database in the directory argv[1], at argv[2], and finds a row by its
// value.
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "cairn/extractor.h"
#include "cairn/index_spec.h"
#include "cairn/key_codec.h"
#include "cairn/ordered_index.h"
#include "cairn/query.h"
#include "cairn/secondary_index.h"
#include "cairn/snapshot_source.h"
#include "cairn/sorted_run.h"
#include "cairn/types.h"
#include "rocksdb/db.h"

namespace {

int Fail(const absl::Status& status) {
  std::cerr << status << "\n";
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  rocksdb::Options options;
  options.create_if_missing = true;
  rocksdb::DB* opened = nullptr;
  if (!rocksdb::DB::Open(options, argv[1], &opened).ok()) return 1;
  std::unique_ptr<rocksdb::DB> db(opened);
  for (int i = 0; i < 1000; ++i) {
    const std::string city = i % 10 == 3 ? "Lisbon" : "Oslo";
    if (!db->Put({}, "customer" + std::to_string(i), city).ok()) return 1;
  }

  auto source = cairn::SnapshotSource::FromDb(db.get());
  if (!source.ok()) return Fail(source.status());
  auto spec = cairn::IndexSpec::Parse("city=value:text");
  if (!spec.ok()) return Fail(spec.status());
  auto index = cairn::SecondaryIndex::Build(**source, *spec, argv[2]);
  if (!index.ok()) return Fail(index.status());

  const std::vector<std::string_view> cities = {"Lisbon", "Paris"};
  cairn::Matches matches;
  if (absl::Status s = (*index)->Find(cities, &matches); !s.ok()) {
    return Fail(s);
  }
  if (matches[0].size() != 100 || !matches[1].empty()) return 1;

  auto run = cairn::SortedRun::FromSorted(std::vector<uint32_t>{2, 3, 5}, {0, 1, 2});
  if (!run.ok()) return Fail(run.status());
  auto tree = cairn::MakeOrderedIndex("cpu:fast", *run);
  if (!tree.ok()) return Fail(tree.status());
  const std::vector<uint32_t> keys = {3, 4};
  std::vector<cairn::RowId> rows(2);
  if (!(*tree)->Answer(cairn::Batch::FindFirst(keys, absl::MakeSpan(rows))).ok()) return 1;
  if (rows[0] != 1 || rows[1] != cairn::kNoRow) return 1;
  std::cout << "100 rows found\n";
  return 0;
}
