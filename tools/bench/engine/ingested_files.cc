// The time in which a catch-up checks that no file was ingested into a database of many table
// files, all of them newer than the index:
//   IngestedFiles/<open or closed>/files:<n>  open: RocksDB keeps all files open (max_open_files
//                                             -1, its default); closed: it keeps ten of them;
//   IngestedFiles/overlap/files:<n>           the files' key ranges overlap;
//   IngestedFiles/baseline:metadata/files:<n> only lists the files
//
// The time in which a store records the files:
//   TableFiles/<record or unchanged>/files:<n>   record: after each flush or compaction;
//                                                unchanged: otherwise;
//   TableFiles/text/files:<n>                    their text in the manifest
//
// Files are in the page cache.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_format.h"
#include "engine/log/ingested_files.h"
#include "engine/log/table_files.h"
#include "engine/util/rocksdb_compat.h"
#include "rocksdb/db.h"
#include "tools/bench/or_throw.h"
#include "tools/bench/temporary_directory.h"

namespace cairn::bench::ingested_files {
namespace {

constexpr int kKeepAll = -1, kKeepTen = 20;  // ten of these are for files other than tables

// A database of `files` table files that do not overlap, written by flushes, removed at the end.
class ManyFiles {
 public:
  static ManyFiles& Get(size_t files, bool overlap = false) {
    static auto* const all = new std::map<std::pair<size_t, bool>, std::unique_ptr<ManyFiles>>;
    std::unique_ptr<ManyFiles>& made = (*all)[{files, overlap}];
    if (made == nullptr) {
      made.reset(new ManyFiles(files, overlap));
      [[maybe_unused]] static const int registered = std::atexit([] { all->clear(); });
    }
    return *made;
  }

  std::unique_ptr<rocksdb::DB> Open(int max_open_files) const {
    rocksdb::Options options;
    options.create_if_missing = true;
    options.disable_auto_compactions = true;
    options.level0_slowdown_writes_trigger = options.level0_stop_writes_trigger = 1 << 30;
    options.max_open_files = max_open_files;
    std::unique_ptr<rocksdb::DB> db;
    OrThrow(rocksdb::DB::Open(options, directory_.path() + "/db", Into(&db)));
    return db;
  }

 private:
  // Flushes each file separately. Moves it to a level of disjoint files, if the files are disjoint.
  ManyFiles(size_t files, bool overlap) {
    const std::unique_ptr<rocksdb::DB> db = Open(kKeepAll);
    for (size_t file = 0; overlap && file < files; ++file) {
      for (const char* key : {"a", "z"}) OrThrow(db->Put({}, key, "v"));
      OrThrow(db->Flush({}));
    }
    if (overlap) return;
    for (size_t file = 0; file < files; ++file) {
      const std::string prefix = absl::StrFormat("%08d", file);
      for (size_t row = 0; row < 100; ++row) {
        OrThrow(db->Put({}, absl::StrFormat("%s%08d", prefix, row), std::string(100, 'v')));
      }
      OrThrow(db->Flush({}));
      const rocksdb::Slice begin = prefix;
      OrThrow(db->CompactRange({}, &begin, nullptr));
    }
  }

  const TemporaryDirectory directory_;
};

bool HasFiles(rocksdb::DB* db, size_t files) {
  rocksdb::ColumnFamilyMetaData metadata;
  db->GetColumnFamilyMetaData(&metadata);
  return metadata.file_count == files;
}

void LookInto(benchmark::State& state, int max_open_files) {
  const auto files = static_cast<size_t>(state.range(0));
  const std::unique_ptr<rocksdb::DB> db = ManyFiles::Get(files).Open(max_open_files);
  if (!HasFiles(db.get(), files)) return state.SkipWithError("files are missing");
  for (auto _ : state) {
    const absl::StatusOr<uint64_t> newest =
        NewestIngestedFile(db.get(), db->DefaultColumnFamily(), db->GetLatestSequenceNumber());
    if (!newest.ok() || *newest != 0) return state.SkipWithError("a file looks ingested");
  }
}

void LookIntoOverlapping(benchmark::State& state) {
  const auto files = static_cast<size_t>(state.range(0));
  const std::unique_ptr<rocksdb::DB> db = ManyFiles::Get(files, true).Open(kKeepAll);
  if (!HasFiles(db.get(), files)) return state.SkipWithError("files are missing");
  for (auto _ : state) {
    const absl::StatusOr<uint64_t> newest =
        NewestIngestedFile(db.get(), db->DefaultColumnFamily(), db->GetLatestSequenceNumber());
    if (!newest.ok() || *newest != 0) return state.SkipWithError("a file looks ingested");
  }
}

void RecordFiles(benchmark::State& state, bool unchanged) {
  const auto files = static_cast<size_t>(state.range(0));
  const std::unique_ptr<rocksdb::DB> db = ManyFiles::Get(files).Open(kKeepAll);
  auto recorder = std::make_unique<TableFilesRecorder>(db.get(), db->DefaultColumnFamily());
  std::shared_ptr<const TableFiles> tables;
  OrThrow(recorder->Record(&tables));
  for (auto _ : state) {
    if (!unchanged) {
      recorder = std::make_unique<TableFilesRecorder>(db.get(), db->DefaultColumnFamily());
    }
    OrThrow(recorder->Record(&tables));
    if (tables->files.size() != files) return state.SkipWithError("files are missing");
  }
}

void WriteFiles(benchmark::State& state) {
  const std::unique_ptr<rocksdb::DB> db =
      ManyFiles::Get(static_cast<size_t>(state.range(0))).Open(kKeepAll);
  std::shared_ptr<const TableFiles> tables;
  OrThrow(TableFilesRecorder(db.get(), db->DefaultColumnFamily()).Record(&tables));
  size_t bytes = 0;
  for (auto _ : state) bytes = tables->ToString().size();
  state.counters["bytes"] = static_cast<double>(bytes);
}

void ListFiles(benchmark::State& state) {
  const auto files = static_cast<size_t>(state.range(0));
  const std::unique_ptr<rocksdb::DB> db = ManyFiles::Get(files).Open(kKeepAll);
  for (auto _ : state) {
    if (!HasFiles(db.get(), files)) return state.SkipWithError("files are missing");
  }
}

void Files(benchmark::internal::Benchmark* benchmark) {
  benchmark->ArgName("files")->Arg(200)->Arg(2000)->Unit(benchmark::kMillisecond);
}
BENCHMARK_CAPTURE(LookInto, "", kKeepAll)->Name("IngestedFiles/open")->Apply(Files);
BENCHMARK_CAPTURE(LookInto, "", kKeepTen)->Name("IngestedFiles/closed")->Apply(Files);
BENCHMARK(LookIntoOverlapping)->Name("IngestedFiles/overlap")->Apply(Files);
BENCHMARK_CAPTURE(RecordFiles, "", false)->Name("TableFiles/record")->Apply(Files);
BENCHMARK_CAPTURE(RecordFiles, "", true)->Name("TableFiles/unchanged")->Apply(Files);
BENCHMARK(WriteFiles)->Name("TableFiles/text")->Apply(Files);
BENCHMARK(ListFiles)->Name("IngestedFiles/baseline:metadata")->Apply(Files);

}  // namespace
}  // namespace cairn::bench::ingested_files
