// cairn_bench: the measurements that Cairn's performance claims rest on. Google Benchmark's flags
// apply:
//   cairn_bench --benchmark_filter='^PointLookup/' --benchmark_format=json
// Benchmarks are registered by each subject's file.
#include <benchmark/benchmark.h>

BENCHMARK_MAIN();
