// Strings/<data set>/<index>/<point|lower_bound|miss|point_miss>: batches of 2^18 random strings
// over ten million keys, or 2^20 of the hard data sets. point returns row ids of present keys,
// lower_bound their positions, miss the positions of absent keys (keys with the last byte changed);
// point_miss searches rows of absent keys. CAIRN_BENCH_STRINGS sets another number of keys.
// Counters: build_s, the seconds of the index's build; bytes_per_key, memory without the run.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "cairn/ordered_index.h"
#include "tools/bench/data.h"
#include "tools/bench/limit.h"
#include "tools/bench/string_sets.h"

namespace cairn::bench::strings {
namespace {

constexpr size_t kBatch = size_t{1} << 18;
constexpr size_t kBatches = 4;  // used in turn

enum class Ask : uint8_t { kPoint, kLowerBound, kMiss, kPointMiss };

const char* NameOf(Ask ask) {
  switch (ask) {
    case Ask::kPoint:
      return "point";
    case Ask::kLowerBound:
      return "lower_bound";
    case Ask::kMiss:
      return "miss";
    case Ask::kPointMiss:
      return "point_miss";
  }
  return "unknown";
}

bool GivesRows(Ask ask) {
  return ask == Ask::kPoint || ask == Ask::kPointMiss;
}

size_t KeyCount() {
  const char* count = std::getenv("CAIRN_BENCH_STRINGS");
  return count != nullptr ? std::strtoull(count, nullptr, 10) : 10'000'000;
}

// Row ids ascend with the position, as equal keys require.
RowId RowOf(size_t position) {
  return static_cast<RowId>(2 * position + 1);
}

SortedRun MakeStringRun(const std::vector<std::string_view>& keys) {
  std::vector<RowId> rows(keys.size());
  for (size_t i = 0; i < rows.size(); ++i) rows[i] = RowOf(i);
  auto run = SortedRun::FromSorted(absl::MakeConstSpan(keys), rows);
  if (!run.ok()) {
    std::fprintf(stderr, "benchmark data: %s\n", run.status().ToString().c_str());
    std::abort();
  }
  return *std::move(run);
}

// Queries with copies of the keys, so that they do not load the run's keys into the cache.
struct Queries {
  std::string heap;
  std::vector<std::string_view> keys;
  std::vector<Position> positions;

  Queries(const std::vector<std::string_view>& run, bool miss) {
    Random random(kSeed + 1);
    std::vector<uint64_t> ends = {0};
    for (size_t i = 0; i < kBatches * kBatch; ++i) {
      size_t p = random.Below(run.size());
      std::string key(run[p]);
      if (miss) ++key.back();
      if (miss || (p > 0 && run[p - 1] == key)) {
        p = static_cast<size_t>(std::lower_bound(run.begin(), run.end(), key) - run.begin());
      }
      heap += key;
      ends.push_back(heap.size());
      positions.push_back(static_cast<Position>(p));
    }
    for (size_t i = 0; i + 1 < ends.size(); ++i) {
      keys.emplace_back(heap.data() + ends[i], ends[i + 1] - ends[i]);
    }
  }
};

// Answers a batch with row ids for Ask::kPoint, otherwise with positions.
using Search = std::function<void(absl::Span<const std::string_view>, Ask, uint32_t*)>;

// The measured object: an index over a data set.
struct Subject {
  SortedRun run;
  Search search;
  uint64_t index_bytes = 0;
  double build_seconds = 0;
};

Search StandardLowerBound(const SortedRun& run) {
  return [run](absl::Span<const std::string_view> queries, Ask ask, uint32_t* out) {
    const BytesColumn& keys = run.bytes();
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
      out[i] = !GivesRows(ask) ? static_cast<uint32_t>(first)
               : found         ? run.row_ids()[first]
                               : kNoRow;
    }
  };
}

// Keeps the last subject, since benchmarks of one subject follow each other.
const Subject& GetSubject(const std::string& data, const std::string& name) {
  static std::string made;
  static Subject subject;
  const std::string wanted = data + "/" + name;
  if (made == wanted) return subject;
  made = wanted;
  subject = Subject();
  subject.run = MakeStringRun(StringSet(data, KeyCount()).keys);
  if (name == "baseline:lower_bound") {
    subject.search = StandardLowerBound(subject.run);
    return subject;
  }
  const auto start = std::chrono::steady_clock::now();
  auto built = MakeOrderedIndex(name, subject.run);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  if (!built.ok()) {
    std::fprintf(stderr, "%s: %s\n", name.c_str(), built.status().ToString().c_str());
    std::abort();
  }
  const std::shared_ptr<OrderedIndex> index = *std::move(built);
  subject.index_bytes = index->memory_bytes();
  subject.build_seconds = seconds.count();
  subject.search = [index](absl::Span<const std::string_view> queries, Ask ask, uint32_t* out) {
    const KeyBatch batch(queries);
    const absl::Status s = GivesRows(ask)
                               ? index->Execute(Batch::FindFirst(batch, {out, queries.size()}))
                               : index->Execute(Batch::LowerBound(batch, {out, queries.size()}));
    if (!s.ok()) std::abort();
  };
  return subject;
}

void RunBenchmark(benchmark::State& state, const std::string& data, const std::string& name,
                  Ask ask) {
  const Subject& subject = GetSubject(data, name);
  const Queries queries(StringSet(data, KeyCount()).keys,
                        ask == Ask::kMiss || ask == Ask::kPointMiss);
  std::vector<uint32_t> out(kBatch);
  const auto batch = [&](size_t b) {
    return absl::MakeConstSpan(queries.keys).subspan(b % kBatches * kBatch, kBatch);
  };
  size_t next = 0;
  for (auto _ : state) {
    subject.search(batch(next++), ask, out.data());
    benchmark::ClobberMemory();
  }
  const SortedRun& run = subject.run;
  for (size_t b = 0; b < kBatches; ++b) {
    subject.search(batch(b), ask, out.data());
    for (size_t i = 0; i < kBatch; ++i) {
      const Position p = queries.positions[b * kBatch + i];
      const std::string_view key = queries.keys[b * kBatch + i];
      const bool there = p < run.size() && run.bytes()[p] == key;
      if (out[i] != (!GivesRows(ask) ? p : there ? RowOf(p) : kNoRow)) {
        return state.SkipWithError("wrong answer");
      }
    }
  }
  SetQueryCounters(state, kBatch);
  state.counters["build_s"] = subject.build_seconds;
  state.counters["bytes_per_key"] =
      static_cast<double>(subject.index_bytes) / static_cast<double>(run.size());
  state.counters["limit_ns"] = RandomLineNs(run.memory_bytes() + subject.index_bytes);
}

void Register(const std::string& data) {
  for (const char* index : {"cpu:partial_key", "cpu:partial_key,hash", "cpu:strings",
                            "cpu:sorted_array", "baseline:lower_bound"}) {
    for (Ask ask : {Ask::kPoint, Ask::kLowerBound, Ask::kMiss, Ask::kPointMiss}) {
      const std::string name = absl::StrFormat("Strings/%s/%s/%s", data, index, NameOf(ask));
      benchmark::RegisterBenchmark(
          name.c_str(), [=](benchmark::State& state) { RunBenchmark(state, data, index, ask); })
          ->Unit(benchmark::kMillisecond)
          ->UseRealTime();
    }
  }
}

const bool registered = [] {
  for (std::string_view data : kStringSets) Register(std::string(data));
  for (std::string_view data : kHardStringSets) Register(std::string(data));
  return true;
}();

}  // namespace
}  // namespace cairn::bench::strings
