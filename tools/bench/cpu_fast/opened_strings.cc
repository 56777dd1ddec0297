// OpenedStrings/<data set>/<index>: ten million strings in a mapped run file, compared with a copy
// in huge pages (CopyRun). Both have the index, and are queried alternately in batches of 2^18.
// Counters: ns per query of the copy, and as `_ratio` the time of the mapped file divided by it
// (medians of adjacent ratios), for point and for miss (positions of absent keys). copy_s: seconds
// of the copy, on all cores. Times are CPU times of the thread.
#include <benchmark/benchmark.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "cairn/ordered_index.h"
#include "index/files/run_file.h"
#include "index/machine/topology.h"
#include "index/run/copy_run.h"
#include "tools/bench/data.h"
#include "tools/bench/or_throw.h"
#include "tools/bench/string_sets.h"

namespace cairn::bench::opened_strings {
namespace {

constexpr size_t kKeys = 10'000'000;
constexpr size_t kBatch = size_t{1} << 18;
constexpr size_t kBatches = 4;  // used in turn
constexpr size_t kAppend = size_t{1} << 16;

double Seconds(clockid_t clock) {
  timespec now;
  clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

double Median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// The keys in a file, which is removed once it is mapped.
RunFile Write(const std::vector<std::string_view>& keys) {
  const std::string path =
      (std::filesystem::temp_directory_path() / absl::StrFormat("cairn_bench_%d", getpid()))
          .string();
  auto writer = OrThrow(RunFileWriter::Create(path, PhysicalType::kBytes));
  uint64_t bytes = 0;
  for (std::string_view key : keys) bytes += key.size();
  OrThrow(writer->Begin(keys.size(), bytes));
  std::vector<RowId> rows(kAppend);
  for (size_t i = 0; i < keys.size(); i += kAppend) {
    const auto some = absl::MakeConstSpan(keys).subspan(i, kAppend);
    for (size_t j = 0; j < some.size(); ++j) rows[j] = static_cast<RowId>(i + j);
    OrThrow(writer->Append(some, absl::MakeConstSpan(rows).first(some.size())));
  }
  OrThrow(writer->Finish());
  RunFile file = OrThrow(OpenRun(path, VerifyLevel::kFull));
  unlink(path.c_str());
  return file;
}

// A row of a key, or the position of an absent key.
enum class Ask : uint8_t { kPoint, kMiss };
constexpr Ask kAsks[] = {Ask::kPoint, Ask::kMiss};
constexpr const char* kNames[] = {"point", "miss"};

double Ns(const OrderedIndex& index, absl::Span<const std::string_view> keys, Ask ask,
          std::vector<uint32_t>* out) {
  const absl::Span<uint32_t> to = absl::MakeSpan(*out);
  const double before = Seconds(CLOCK_THREAD_CPUTIME_ID);
  OrThrow(
      index.Execute(ask == Ask::kPoint ? Batch::FindFirst(keys, to) : Batch::LowerBound(keys, to)));
  return (Seconds(CLOCK_THREAD_CPUTIME_ID) - before) * 1e9 / static_cast<double>(keys.size());
}

void OpenedStrings(benchmark::State& state, const std::string& data, const std::string& name) {
  const auto& keys = StringSet(data, kKeys).keys;
  const RunFile file = Write(keys);
  const double before = Seconds(CLOCK_MONOTONIC);
  const SortedRun copy = CopyRun(file.run, Topology::Get().cores());
  state.counters["copy_s"] = Seconds(CLOCK_MONOTONIC) - before;
  const auto of_file = OrThrow(MakeOrderedIndex(name, file.run));
  const auto of_copy = OrThrow(MakeOrderedIndex(name, copy));

  Random random(kSeed + 1);
  std::vector<std::string> hits(kBatches * kBatch), misses;
  for (std::string& key : hits) key = std::string(keys[random.Below(keys.size())]);
  misses = hits;
  for (std::string& key : misses) ++key.back();
  const std::vector<std::string_view> queries[] = {{hits.begin(), hits.end()},
                                                   {misses.begin(), misses.end()}};
  std::vector<double> ns[std::size(kAsks)], ratios[std::size(kAsks)];
  std::vector<uint32_t> out(kBatch), expected(kBatch);
  size_t b = 0;
  for (auto _ : state) {
    for (Ask ask : kAsks) {
      const auto a = static_cast<size_t>(ask);
      const auto batch = absl::MakeConstSpan(queries[a]).subspan(b % kBatches * kBatch, kBatch);
      const double mapped = Ns(*of_file, batch, ask, &expected);
      ns[a].push_back(Ns(*of_copy, batch, ask, &out));
      ratios[a].push_back(mapped / ns[a].back());
      if (out != expected) return state.SkipWithError("different answers");
    }
    ++b;
  }
  for (Ask ask : kAsks) {
    const auto a = static_cast<size_t>(ask);
    state.counters[kNames[a]] = Median(ns[a]);
    state.counters[absl::StrFormat("%s_ratio", kNames[a])] = Median(ratios[a]);
  }
}

const bool registered = [] {
  for (std::string_view data : kStringSets) {
    for (const char* index : {"cpu:partial_key", "cpu:partial_key,hash"}) {
      benchmark::RegisterBenchmark(
          absl::StrFormat("OpenedStrings/%s/%s", data, index).c_str(),
          [=](benchmark::State& state) { OpenedStrings(state, std::string(data), index); })
          ->Iterations(12)
          ->Unit(benchmark::kMillisecond);
    }
  }
  return true;
}();

}  // namespace
}  // namespace cairn::bench::opened_strings
