// Uses the library from another project: a live index, a separate index, a search structure.
// Creates files in the directory argv[1].
#include <filesystem>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cairn/index_spec.h"
#include "cairn/indexed_db.h"
#include "cairn/ordered_index.h"
#include "cairn/query.h"
#include "cairn/secondary_index.h"
#include "cairn/snapshot_source.h"
#include "cairn/sorted_run.h"
#include "cairn/types.h"
#include "cairn/version.h"

namespace {

absl::Status Wrong(const std::string& what) {
  return absl::InternalError("wrong: " + what);
}

// Checks that the headers, the library and the package have the same version.
absl::Status CheckVersion() {
  const std::string headers = std::to_string(CAIRN_VERSION_MAJOR) + "." +
                              std::to_string(CAIRN_VERSION_MINOR) + "." +
                              std::to_string(CAIRN_VERSION_PATCH);
  if (headers != PACKAGE_VERSION || headers != cairn::Version()) {
    return Wrong("headers " + headers + ", package " PACKAGE_VERSION ", library " +
                 cairn::Version());
  }
  static_assert(CAIRN_VERSION >= 100, "0.1.0 or later");
  return absl::OkStatus();
}

absl::Status CheckLiveIndex(const std::string& directory) {
  rocksdb::Options options;
  options.create_if_missing = true;
  auto db = cairn::IndexedDB::Open(options, directory + "/live.db");
  if (!db.ok()) return db.status();
  absl::Status status = (*db)->CreateIndex("city = value:text");
  if (status.ok()) status = (*db)->WaitUntilReady("city");
  if (!status.ok()) return status;
  const rocksdb::Status put = (*db)->Put({}, "ana", "Lisbon");
  if (!put.ok()) return cairn::FromRocksDb(put, "writing");
  const auto found = (*db)->Lookup("city", {"Lisbon", "Oslo"});
  if (!found.ok()) return found.status();
  if (found->size() != 1 || (*found)[0] != "ana") return Wrong("lookup");
  return (*db)->Lookup("city", 42).ok() ? Wrong("a number was taken for text") : absl::OkStatus();
}

absl::Status CheckOwnIndex(const std::string& directory) {
  rocksdb::Options options;
  options.create_if_missing = true;
  auto opened = cairn::IndexedDB::Open(options, directory + "/db");
  if (!opened.ok()) return opened.status();
  rocksdb::DB* const db = opened->get();
  rocksdb::Status written;
  for (int i = 0; i < 1000 && written.ok(); ++i) {
    written = db->Put({}, "customer" + std::to_string(i), i % 10 == 3 ? "Lisbon" : "Oslo");
  }
  if (!written.ok()) return cairn::FromRocksDb(written, "writing");

  const auto source = cairn::SnapshotSource::FromDb(db);
  if (!source.ok()) return source.status();
  const auto spec = cairn::IndexSpec::Parse("city=value:text");
  if (!spec.ok()) return spec.status();
  const auto index = cairn::SecondaryIndex::Build(**source, *spec, directory + "/index");
  if (!index.ok()) return index.status();
  const std::vector<std::string_view> cities = {"Lisbon", "Paris"};
  cairn::FindResult matches;
  const absl::Status status = (*index)->Find(cities, &matches);
  if (!status.ok()) return status;
  return matches[0].size() == 100 && matches[1].empty() ? absl::OkStatus() : Wrong("find");
}

absl::Status CheckOrderedIndex() {
  const auto run = cairn::SortedRun::FromSorted(std::vector<uint32_t>{2, 3, 5}, {0, 1, 2});
  if (!run.ok()) return run.status();
  const auto tree = cairn::MakeOrderedIndex("cpu:fast", *run);
  if (!tree.ok()) return tree.status();
  const std::vector<uint32_t> keys = {3, 4};
  std::vector<cairn::RowId> rows(2);
  const absl::Status status = (*tree)->Execute(cairn::Batch::FindFirst(keys, absl::MakeSpan(rows)));
  if (!status.ok()) return status;
  return rows[0] == 1 && rows[1] == cairn::kNoRow ? absl::OkStatus() : Wrong("ordered index");
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  std::filesystem::create_directories(argv[1]);
  absl::Status status = CheckVersion();
  status.Update(CheckLiveIndex(argv[1]));
  status.Update(CheckOwnIndex(argv[1]));
  status.Update(CheckOrderedIndex());
  if (!status.ok()) std::cerr << status << "\n";
  return status.ok() ? 0 : 1;
}
