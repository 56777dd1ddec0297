// RangeSum/<column>/n:<log2 n>/length:<log2 length>, RangeExtreme/…, DistinctKeys/…: aggregates
// over random ranges of 2^length positions of 2^n entries, whose rows are unordered, in batches of
// 4,096; one thread. column_sets.h lists the columns. bytes_per_entry is the structure's.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "cairn/sorted_run.h"
#include "index/aggregates/distinct_ranks.h"
#include "index/aggregates/range_extremes.h"
#include "index/aggregates/range_float_sums.h"
#include "index/aggregates/range_sums.h"
#include "tools/bench/data.h"
#include "tools/bench/index/column_sets.h"
#include "tools/bench/or_throw.h"

namespace cairn::bench::aggregates {
namespace {

constexpr size_t kBatch = 4096;
constexpr size_t kBatches = 16;

std::vector<RowId> ScatteredRows(size_t n) {
  std::vector<RowId> rows(n);
  for (size_t i = 0; i < n; ++i) rows[i] = ScatteredRow(i, n);
  return rows;
}

// The aggregate of this name; the last one is kept.
template <typename Aggregate, typename Make>
const Aggregate& Kept(const std::string& wanted, Make make) {
  static std::string name;
  static std::unique_ptr<const Aggregate> kept;
  if (name != wanted) {
    kept.reset();
    kept = make();
    name = wanted;
  }
  return *kept;
}

template <typename Aggregate>
const Aggregate& Over(const std::string& column, int log2_entries) {
  return Kept<Aggregate>(absl::StrFormat("%s/%d", column, log2_entries), [&] {
    return OrThrow(Aggregate::Build(TableOf(column, log2_entries), 0,
                                    ScatteredRows(size_t{1} << log2_entries), 2));
  });
}

// Answers ranges of 2^state.range(1) positions by ask(begin, end), batch by batch.
template <typename Ask>
void AskRanges(benchmark::State& state, uint64_t memory_bytes, Ask ask) {
  const uint64_t entries = uint64_t{1} << state.range(0);
  const uint64_t length = uint64_t{1} << state.range(1);
  Random random(kSeed + 1);
  std::vector<Position> begin(kBatch * kBatches), end(kBatch * kBatches);
  for (size_t i = 0; i < begin.size(); ++i) {
    begin[i] = static_cast<Position>(random.Below(entries - length + 1));
    end[i] = static_cast<Position>(begin[i] + length);
  }
  for (auto _ : state) {
    for (size_t i = 0; i < begin.size(); i += kBatch) {
      ask(absl::MakeConstSpan(begin).subspan(i, kBatch),
          absl::MakeConstSpan(end).subspan(i, kBatch));
    }
  }
  SetQueryCounters(state, begin.size());
  state.counters["bytes_per_entry"] =
      static_cast<double>(memory_bytes) / static_cast<double>(entries);
}

template <typename Sums, typename Sum>
void RangeSum(benchmark::State& state, const std::string& column) {
  const Sums& sums = Over<Sums>(column, static_cast<int>(state.range(0)));
  std::vector<Sum> found(kBatch);
  AskRanges(state, sums.memory_bytes(), [&](auto begin, auto end) {
    sums.Sum(begin, end, absl::MakeSpan(found));
    benchmark::DoNotOptimize(found.data());
  });
}

void RangeExtreme(benchmark::State& state, const std::string& column) {
  const auto& extremes = Over<RangeExtremes>(column, static_cast<int>(state.range(0)));
  std::vector<Position> found(kBatch);
  AskRanges(state, extremes.memory_bytes(), [&](auto begin, auto end) {
    extremes.Find(Extreme::kMin, begin, end, absl::MakeSpan(found));
    benchmark::DoNotOptimize(found.data());
  });
}

void DistinctKeys(benchmark::State& state) {
  const int log2_entries = static_cast<int>(state.range(0));
  const auto& ranks = Kept<DistinctRanks>(std::to_string(log2_entries), [&] {
    std::vector<uint32_t> keys(size_t{1} << log2_entries);
    Random random(kSeed);
    for (uint32_t& key : keys) key = static_cast<uint32_t>(random.Below(keys.size() / 4));
    const SortedRun run = OrThrow(SortedRun::FromUnsorted(absl::MakeConstSpan(keys), {}, 2));
    return std::make_unique<const DistinctRanks>(OrThrow(DistinctRanks::Build(run, 2)));
  });
  std::vector<uint64_t> found(kBatch);
  AskRanges(state, ranks.memory_bytes(), [&](auto begin, auto end) {
    ranks.Count(begin, end, absl::MakeSpan(found));
    benchmark::DoNotOptimize(found.data());
  });
}

void Lengths(benchmark::internal::Benchmark* benchmark) {
  benchmark->ArgNames({"n", "length"});
  for (const int length : {0, 4, 8, 12, 16, 20, 24}) benchmark->Args({24, length});
}

const bool kRegistered = [] {
  using benchmark::RegisterBenchmark;
  for (const std::string column : {"flag", "nullable", "time", "id"}) {
    RegisterBenchmark(("RangeSum/" + column).c_str(), RangeSum<RangeSums, IntegerSum>, column)
        ->Apply(Lengths);
  }
  RegisterBenchmark("RangeSum/measure", RangeSum<RangeFloatSums, FloatSum>, std::string("measure"))
      ->Apply(Lengths);
  for (const std::string column : {"flag", "nullable", "measure", "country"}) {
    RegisterBenchmark(("RangeExtreme/" + column).c_str(), RangeExtreme, column)->Apply(Lengths);
  }
  RegisterBenchmark("DistinctKeys", DistinctKeys)->Apply(Lengths);
  return true;
}();

}  // namespace
}  // namespace cairn::bench::aggregates
