// OpenDevices/<index>/<device>/batch:<log2 b>: FindFirst of batches of 2^b random keys of the
// index, from and to host memory, on an index that SecondaryIndex::Open has opened. The index is
// "plain" or, with the same rows, in "shards": four of them, by key range. The device is "cpu",
// "gpu" (OpenOptions::devices is empty), or a list of GPUs; "0+0" lists the first one twice, which
// shows the cost of several devices without their gain. Lists of different GPUs depend on the
// machine. ns_per_query is wall time. CAIRN_BENCH_ROWS is the number of rows, 4,000,000 by default.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "cairn/device.h"
#include "cairn/index_spec.h"
#include "cairn/options.h"
#include "cairn/query.h"
#include "cairn/secondary_index.h"
#include "cairn/sharding.h"
#include "cairn/snapshot_source.h"
#include "engine/util/rocksdb_compat.h"
#include "rocksdb/db.h"
#include "rocksdb/write_batch.h"
#include "tools/bench/database.h"
#include "tools/bench/or_throw.h"
#include "tools/bench/registration.h"
#include "tools/bench/temporary_directory.h"

namespace cairn::bench::open_devices {
namespace {

constexpr uint64_t kRows = 4'000'000;
constexpr uint32_t kShards = 4;
constexpr size_t kQueries = size_t{1} << 23;  // used in turn, in batches
constexpr size_t kChecked = 1000;

// Both indexes, over rows whose values are numbers of 8 bytes, and queries.
class OpenedRows {
 public:
  static const OpenedRows& Get() {
    static const OpenedRows rows;
    return rows;
  }

  std::string Path(bool sharded) const {
    return directory_.path() + (sharded ? "/sharded" : "/index");
  }
  absl::Span<const uint64_t> keys() const { return keys_; }
  // The row that query i finds, by its primary key.
  std::string PrimaryKey(size_t i) const { return BenchDatabase::PrimaryKey(ranks_[i]); }

 private:
  OpenedRows() {
    const uint64_t rows = BenchRows(kRows);
    rocksdb::Options options;
    options.create_if_missing = true;
    options.compression = rocksdb::kNoCompression;
    std::unique_ptr<rocksdb::DB> db;
    OrThrow(rocksdb::DB::Open(options, directory_.path() + "/db", Into(&db)));
    for (uint64_t row = 0; row < rows;) {
      rocksdb::WriteBatch batch;
      for (int i = 0; i < 1000 && row < rows; ++i, ++row) {
        OrThrow(batch.Put(BenchDatabase::PrimaryKey(row),
                          BenchDatabase::BigEndian(BenchDatabase::Value(row))));
      }
      OrThrow(db->Write({}, &batch));
    }
    const auto source = OrThrow(SnapshotSource::FromDb(db.get()));
    const IndexSpec spec = OrThrow(IndexSpec::Parse("value[0:8]:u64be"));
    OrThrow(SecondaryIndex::Build(*source, spec, Path(false)).status());
    ShardedBuildOptions in_shards;
    in_shards.shards = kShards;
    OrThrow(BuildSharded(*source, spec, Path(true), in_shards).status());
    std::mt19937_64 random(1);
    for (size_t i = 0; i < kQueries; ++i) {
      ranks_.push_back(random() % rows);
      keys_.push_back(BenchDatabase::Value(ranks_.back()));
    }
  }

  const TemporaryDirectory directory_;
  std::vector<uint64_t> ranks_, keys_;
};

void CheckAnswers(const SecondaryIndex& index, const OpenedRows& rows, size_t size) {
  std::vector<GlobalRowId> found(std::min(size, rows.keys().size()));
  OrThrow(index.FindFirst(rows.keys().first(found.size()), absl::MakeSpan(found)));
  found.resize(std::min(kChecked, found.size()));
  StringList primary_keys;
  OrThrow(index.PrimaryKeys(found, &primary_keys));
  for (size_t i = 0; i < found.size(); ++i) {
    if (primary_keys[i] != rows.PrimaryKey(i)) throw std::runtime_error("a wrong answer");
  }
}

// The index of the benchmark of this name; only one is open at a time.
const SecondaryIndex& Opened(const std::string& name, bool sharded, const OpenOptions& options) {
  static std::string opened;
  static std::unique_ptr<SecondaryIndex> index;
  if (opened != name) {
    index.reset();
    index = OrThrow(SecondaryIndex::Open(OpenedRows::Get().Path(sharded), options));
    opened = name;
  }
  return *index;
}

void Ask(benchmark::State& state, const std::string& name, bool sharded,
         const OpenOptions& options) {
  const OpenedRows& rows = OpenedRows::Get();
  const auto size = size_t{1} << state.range(0);
  const SecondaryIndex& index = Opened(name, sharded, options);
  CheckAnswers(index, rows, size);
  std::vector<GlobalRowId> found(size);
  size_t at = 0;
  for (auto _ : state) {
    OrThrow(index.FindFirst(rows.keys().subspan(at, size), absl::MakeSpan(found)));
    at = at + 2 * size <= kQueries ? at + size : 0;
  }
  state.counters["ns_per_query"] = benchmark::Counter(
      static_cast<double>(size) * 1e-9,
      benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}

void Register(bool sharded, const std::string& device, const OpenOptions& options) {
  const std::string name = absl::StrCat("OpenDevices/", sharded ? "shards" : "plain", "/", device);
  benchmark::RegisterBenchmark(name.c_str(),
                               [=](benchmark::State& state) { Ask(state, name, sharded, options); })
      ->ArgName("batch")
      ->DenseRange(12, 22, 2)
      ->UseRealTime()
      ->Unit(benchmark::kMicrosecond);
}

void RegisterOpenDevices() {
  const absl::StatusOr<std::vector<Device>> devices = ListDevices();
  std::vector<std::vector<int>> lists;
  if (devices.ok() && !devices->empty()) {
    lists = {{}, {0}, {0, 0}, {0, 0, 0, 0}};
    for (size_t count = 2; count <= devices->size(); count *= 2) {
      std::vector<int>& list = lists.emplace_back();
      for (size_t i = 0; i < count; ++i) list.push_back((*devices)[i].ordinal);
    }
  }
  for (const bool sharded : {false, true}) {
    OpenOptions options;
    options.verify = VerifyLevel::kMetadata;
    options.calibration = Calibration::kTrials;
    Register(sharded, "cpu", options);
    options.device = SearchDevice::kGpu;
    options.calibration = Calibration::kNone;
    for (const std::vector<int>& list : lists) {
      options.devices = list;
      Register(sharded, list.empty() ? "gpu" : absl::StrJoin(list, "+"), options);
    }
  }
}

const RegisterInMain kRegister(&RegisterOpenDevices);

}  // namespace
}  // namespace cairn::bench::open_devices
