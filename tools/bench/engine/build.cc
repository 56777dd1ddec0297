// Build/<key>/threads:<t>: an index built from a database's rows.
// Build/baseline:bare_scan: the lower bound of that time, a parallel iterator scan over the same
// ranges with the best read options.
// Build/<key>/within_1gb/threads:<t>: a build within a memory budget of 1 GiB. It needs more rows
// than fit (CAIRN_BENCH_ROWS=100000000).
#include <benchmark/benchmark.h>

#include <atomic>
#include <filesystem>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "cairn/index_spec.h"
#include "cairn/options.h"
#include "cairn/secondary_index.h"
#include "cairn/snapshot_source.h"
#include "tools/bench/database.h"
#include "tools/bench/or_throw.h"
#include "tools/bench/registration.h"

namespace cairn::bench::build {
namespace {

constexpr uint64_t kRows = 10'000'000;
constexpr uint64_t kSmallBudget = uint64_t{1} << 30;
constexpr int kRangesPerThread = 16;  // as in BuildIndexes

std::unique_ptr<SnapshotSource> Source() {
  BenchDatabase& database = BenchDatabase::Get(BenchRows(kRows));
  return OrThrow(SnapshotSource::FromDb(database.db(), database.rows_family()));
}

void BareScan(benchmark::State& state) {
  const int threads = static_cast<int>(state.range(0));
  BenchDatabase& database = BenchDatabase::Get(BenchRows(kRows));
  const std::unique_ptr<SnapshotSource> source = Source();
  const auto ranges = OrThrow(source->Split(threads * kRangesPerThread));
  for (auto _ : state) {
    std::atomic<size_t> next = 0;
    std::atomic<uint64_t> rows = 0, bytes = 0;
    const auto scan = [&] {
      for (size_t i; (i = next.fetch_add(1)) < ranges.size();) {
        const PrimaryKeyRange& range = ranges[i];
        const rocksdb::Slice upper = range.upper;
        rocksdb::ReadOptions options;
        options.fill_cache = false;
        options.readahead_size = size_t{2} << 20;
        options.total_order_seek = true;
        if (!range.open) options.iterate_upper_bound = &upper;
        std::unique_ptr<rocksdb::Iterator> rows_of_range(
            database.db()->NewIterator(options, database.rows_family()));
        uint64_t range_rows = 0, range_bytes = 0;
        for (rows_of_range->Seek(range.lower); rows_of_range->Valid(); rows_of_range->Next()) {
          ++range_rows;
          range_bytes += rows_of_range->key().size() + rows_of_range->value().size();
        }
        rows += range_rows;
        bytes += range_bytes;
      }
    };
    std::vector<std::thread> workers;
    for (int i = 1; i < threads; ++i) workers.emplace_back(scan);
    scan();
    for (std::thread& worker : workers) worker.join();
    benchmark::DoNotOptimize(bytes.load());
    if (rows != BenchRows(kRows)) throw std::runtime_error("the bare scan lost rows");
  }
  state.counters["rows_per_s"] = benchmark::Counter(static_cast<double>(BenchRows(kRows)),
                                                    benchmark::Counter::kIsIterationInvariantRate);
}

void BuildIndex(benchmark::State& state, const char* spec, uint64_t memory_budget) {
  BenchDatabase& database = BenchDatabase::Get(BenchRows(kRows));
  const std::unique_ptr<SnapshotSource> source = Source();
  const std::string directory = database.directory() + "/built";
  BuildOptions options;
  options.threads = static_cast<int>(state.range(0));
  options.memory_budget = memory_budget;
  const BuildTarget target{*IndexSpec::Parse(spec), directory};
  for (auto _ : state) {
    const auto reports =
        SecondaryIndex::BuildAll(*source, absl::MakeConstSpan(&target, 1), options);
    state.PauseTiming();
    OrThrow(reports);
    if ((*reports)[0].entries != BenchRows(kRows)) throw std::runtime_error("entries were lost");
    std::filesystem::remove_all(directory);
    state.ResumeTiming();
  }
  state.counters["rows_per_s"] = benchmark::Counter(static_cast<double>(BenchRows(kRows)),
                                                    benchmark::Counter::kIsIterationInvariantRate);
}

void Threads(benchmark::internal::Benchmark* benchmark) {
  benchmark->ArgName("threads")->Arg(1)->Arg(2)->UseRealTime()->Unit(benchmark::kMillisecond);
}

BENCHMARK(BareScan)->Name("Build/baseline:bare_scan")->Apply(Threads);

const RegisterInMain registered([] {
  for (const auto& [key, spec] :
       {std::pair("u32", "value[0:4]:u32be"), std::pair("u64", "value[0:8]:u64be"),
        std::pair("text", "value[0:16]:text")}) {
    const std::string name = absl::StrCat("Build/", key);
    benchmark::RegisterBenchmark(name.c_str(), BuildIndex, spec, 0)->Apply(Threads);
    benchmark::RegisterBenchmark((name + "/within_1gb").c_str(), BuildIndex, spec, kSmallBudget)
        ->Apply(Threads);
  }
});

}  // namespace
}  // namespace cairn::bench::build
