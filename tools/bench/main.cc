// cairn_bench: the measurements that support Cairn's performance claims. Google Benchmark's flags
// apply:
//   cairn_bench --benchmark_filter='^PointLookup/' --benchmark_format=json
// Benchmarks are registered by each subject's file.
#include <benchmark/benchmark.h>

#include "tools/bench/child_process.h"
#include "tools/bench/database.h"
#include "tools/bench/registration.h"

int main(int argc, char** argv) {
  if (cairn::bench::ChildMeasurement::InChild(argc, argv)) {
    return cairn::bench::ChildMeasurement::RunInChild(argc, argv);
  }
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  cairn::bench::RegisterInMain::RunAll();
  benchmark::RunSpecifiedBenchmarks();
  cairn::bench::BenchDatabase::RemoveAll();
  return 0;
}
