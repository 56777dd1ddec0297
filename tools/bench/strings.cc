// Strings/<data set>/<index>/<point|lower_bound|miss>: batches of random strings over ten million
// keys. point gives row ids of keys that are there, lower_bound their positions, miss the positions
// of keys that are not: one with its last byte changed. CAIRN_BENCH_STRINGS sets another number of
// keys.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "cairn/ordered_index.h"
#include "tools/bench/data.h"
#include "tools/bench/limit.h"

namespace cairn::bench {
namespace {

constexpr size_t kBatch = size_t{1} << 18;
constexpr size_t kBatches = 4;  // asked in turn

enum class Ask : uint8_t { kPoint, kLowerBound, kMiss };

size_t KeyCount() {
  const char* count = std::getenv("CAIRN_BENCH_STRINGS");
  return count != nullptr ? std::strtoull(count, nullptr, 10) : 10'000'000;
}

// Queries with copies of the keys, so that asking does not bring the run's own into the cache.
struct Queries {
  std::string heap;
  std::vector<std::string_view> keys;
  std::vector<Position> positions;

  Queries(const Strings& strings, bool miss) {
    Random random(kSeed + 1);
    std::vector<uint64_t> ends = {0};
    for (size_t i = 0; i < kBatches * kBatch; ++i) {
      const size_t p = random.Below(strings.keys.size());
      std::string key(strings.keys[p]);
      if (miss) ++key.back();
      heap += key;
      ends.push_back(heap.size());
      positions.push_back(static_cast<Position>(
          !miss ? p
                : std::lower_bound(strings.keys.begin(), strings.keys.end(), key) -
                      strings.keys.begin()));
    }
    for (size_t i = 0; i + 1 < ends.size(); ++i) {
      keys.emplace_back(heap.data() + ends[i], ends[i + 1] - ends[i]);
    }
  }
};

using Search = std::function<void(absl::Span<const std::string_view>, uint32_t*)>;

void RunBenchmark(benchmark::State& state, const std::string& data, const std::string& name,
                  Ask ask) {
  const Strings& strings = StringSet(data, KeyCount());
  const SortedRun run = MakeRun(strings.keys);
  const BytesColumn& keys = run.bytes();
  Search search;
  uint64_t bytes = 0;
  if (name == "baseline:lower_bound") {
    search = [&](absl::Span<const std::string_view> queries, uint32_t* out) {
      for (size_t i = 0; i < queries.size(); ++i) {
        size_t first = 0, count = keys.size();
        while (count > 0) {
          const size_t half = count / 2;
          if (keys[first + half] < queries[i]) {
            first += half + 1;
            count -= half + 1;
          } else {
            count = half;
          }
        }
        const bool found = first < keys.size() && keys[first] == queries[i];
        out[i] = ask != Ask::kPoint ? static_cast<uint32_t>(first)
                 : found            ? run.row_ids()[first]
                                    : kNoRow;
      }
    };
  } else {
    auto made = MakeOrderedIndex(name, run);
    if (!made.ok()) return state.SkipWithError(std::string(made.status().message()).c_str());
    std::shared_ptr<OrderedIndex> index = *std::move(made);
    bytes = index->memory_bytes();
    search = [=](absl::Span<const std::string_view> queries, uint32_t* out) {
      const KeyBatch batch = KeyBatch::Bytes(queries);
      const absl::Status s = ask == Ask::kPoint ? index->FindFirst(batch, {out, queries.size()})
                                                : index->LowerBound(batch, {out, queries.size()});
      if (!s.ok()) std::abort();
    };
  }
  const Queries queries(strings, ask == Ask::kMiss);
  std::vector<uint32_t> out(kBatch);
  const auto batch = [&](size_t b) {
    return absl::MakeConstSpan(queries.keys).subspan(b % kBatches * kBatch, kBatch);
  };
  size_t next = 0;
  for (auto _ : state) {
    search(batch(next++), out.data());
    benchmark::ClobberMemory();
  }
  for (size_t b = 0; b < kBatches; ++b) {
    search(batch(b), out.data());
    for (size_t i = 0; i < kBatch; ++i) {
      const Position p = queries.positions[b * kBatch + i];
      if (out[i] != (ask == Ask::kPoint ? run.row_ids()[p] : p)) {
        return state.SkipWithError("wrong answer");
      }
    }
  }
  SetQueryCounters(state, kBatch);
  state.counters["bytes_per_key"] = static_cast<double>(bytes) / static_cast<double>(run.size());
  state.counters["limit_ns"] = RandomLineNs(run.memory_bytes() + bytes);
}

const bool registered = [] {
  for (const char* data : {"dig16", "url"}) {
    for (const char* index : {"cpu:strings", "cpu:partial_key", "cpu:sorted_array", "baseline:lower_bound"}) {
      for (Ask ask : {Ask::kPoint, Ask::kLowerBound, Ask::kMiss}) {
        const std::string name = absl::StrFormat("Strings/%s/%s/%s", data, index,
                                                 ask == Ask::kPoint        ? "point"
                                                 : ask == Ask::kLowerBound ? "lower_bound"
                                                                           : "miss");
        benchmark::RegisterBenchmark(
            name.c_str(), [=](benchmark::State& state) { RunBenchmark(state, data, index, ask); })
            ->Unit(benchmark::kMillisecond)
            ->UseRealTime();
      }
    }
  }
  return true;
}();

}  // namespace
}  // namespace cairn::bench
