// RangeScan/<index>/<key>/n:<log2 n>/hits:<h>: row ids of ranges of h entries each that start at
// random keys, about four million rows per batch. Counters: ns_per_query (per range), ns_per_row.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "cairn/ordered_index.h"
#include "tools/bench/cpu_fast/baselines.h"
#include "tools/bench/data.h"
#include "tools/bench/limit.h"

namespace cairn::bench::range_scan {
namespace {

constexpr size_t kRows = size_t{1} << 22;  // per batch
constexpr size_t kBatches = 4;             // used in turn

struct Ranges {
  std::vector<uint64_t> lower, upper;  // half open
  std::vector<Position> begin;
};

Ranges MakeRanges(const std::vector<uint64_t>& keys, size_t hits, size_t count, uint64_t seed) {
  Ranges ranges;
  Random random(seed);
  for (size_t i = 0; i < count; ++i) {
    const size_t begin = random.Below(keys.size() - hits);
    ranges.begin.push_back(static_cast<Position>(begin));
    ranges.lower.push_back(keys[begin]);
    ranges.upper.push_back(keys[begin + hits]);
  }
  return ranges;
}

using Search = std::function<void(const Ranges&, FindResult*)>;

Search MakeSearch(const std::string& name, const SortedRun& run, std::string* error) {
  if (name == "baseline:lower_bound") {
    return [&run](const Ranges& ranges, FindResult* matches) {
      const auto keys = run.u64();
      matches->offsets.assign(1, 0);
      matches->row_ids.clear();
      for (size_t i = 0; i < ranges.lower.size(); ++i) {
        auto at = std::lower_bound(keys.begin(), keys.end(), ranges.lower[i]);
        for (; at != keys.end() && *at < ranges.upper[i]; ++at) {
          matches->row_ids.push_back(run.row_ids()[at - keys.begin()]);
        }
        matches->offsets.push_back(matches->row_ids.size());
      }
    };
  }
  if (name == "baseline:absl_btree") {
    auto map = std::make_shared<absl::btree_map<uint64_t, RowId>>(
        MakeBtree<uint64_t>(run.u64(), run.row_ids()));
    return [map](const Ranges& ranges, FindResult* matches) {
      matches->offsets.assign(1, 0);
      matches->row_ids.clear();
      for (size_t i = 0; i < ranges.lower.size(); ++i) {
        auto at = map->lower_bound(ranges.lower[i]);
        for (; at != map->end() && at->first < ranges.upper[i]; ++at) {
          matches->row_ids.push_back(at->second);
        }
        matches->offsets.push_back(matches->row_ids.size());
      }
    };
  }
  auto made = MakeOrderedIndex(name, run);
  if (!made.ok()) {
    *error = std::string(made.status().message());
    return nullptr;
  }
  std::shared_ptr<OrderedIndex> index = *std::move(made);
  return [index](const Ranges& ranges, FindResult* matches) {
    const absl::Status s =
        index->Execute(Batch::Scan(RangeBatch::HalfOpen(ranges.lower, ranges.upper), matches));
    if (!s.ok()) std::abort();
  };
}

void RangeScan(benchmark::State& state, const std::string& name, int log2_n, size_t hits) {
  const std::vector<uint64_t>& keys = UniformKeys<uint64_t>(size_t{1} << log2_n);
  const SortedRun run = MakeRun(keys);
  std::string error;
  const Search search = MakeSearch(name, run, &error);
  if (search == nullptr) return state.SkipWithError(error.c_str());
  const size_t count = kRows / hits;
  std::vector<Ranges> batches;
  for (size_t b = 0; b < kBatches; ++b) {
    batches.push_back(MakeRanges(keys, hits, count, kSeed + 1 + b));
  }
  FindResult matches;
  size_t next = 0;
  for (auto _ : state) {
    search(batches[next++ % kBatches], &matches);
    benchmark::ClobberMemory();
  }
  for (const Ranges& ranges : batches) {
    search(ranges, &matches);
    for (size_t i = 0; i < count; ++i) {
      if (matches[i] != run.row_ids().subspan(ranges.begin[i], hits)) {
        return state.SkipWithError("wrong answer");
      }
    }
  }
  SetQueryCounters(state, count);
  using benchmark::Counter;
  state.counters["ns_per_row"] = Counter(static_cast<double>(count * hits) * 1e-9,
                                         Counter::kIsIterationInvariantRate | Counter::kInvert);
  state.counters["limit_ns"] = RandomLineNs(run.memory_bytes());
}

const bool registered = [] {
  for (int log2_n : {20, 24}) {
    for (size_t hits : {1, 16, 256, 4096}) {
      for (const char* index :
           {"cpu:fast", "cpu:sorted_array", "baseline:lower_bound", "baseline:absl_btree"}) {
        const std::string name =
            absl::StrFormat("RangeScan/%s/u64/n:%d/hits:%d", index, log2_n, hits);
        benchmark::RegisterBenchmark(
            name.c_str(), [=](benchmark::State& state) { RangeScan(state, index, log2_n, hits); })
            ->Unit(benchmark::kMillisecond)
            ->UseRealTime();
      }
    }
  }
  return true;
}();

}  // namespace
}  // namespace cairn::bench::range_scan
