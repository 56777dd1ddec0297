// Sort/<key>/n:<log2 n>/<method>[/threads:<t>]: sorts random (key, row id) pairs. Keys are u32, u64
// or text, the latter like "user:0000123456@example.org", unordered in memory. Methods: `cairn`
// (index/sort/sort.h), std::sort and tbb::parallel_sort of the same entries. Each iteration sorts a
// copy; copying is not timed.
#include "index/sort/sort.h"

#include <benchmark/benchmark.h>
#include <tbb/global_control.h>
#include <tbb/parallel_sort.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "index/machine/aligned_buffer.h"
#include "tools/bench/data.h"

namespace cairn::bench::sort {
namespace {

enum class Method { kCairn, kStdSort, kTbb };

constexpr size_t kTextBytes = 27;

// Random entries; those of bytes point into `heap`.
template <typename Entry>
AlignedBuffer<Entry> RandomEntries(size_t n, std::vector<char>* /*heap*/) {
  AlignedBuffer<Entry> entries(n);
  Random random(kSeed);
  for (size_t i = 0; i < n; ++i) {
    entries[i] = Entry::Make(static_cast<typename Entry::Key>(random()), static_cast<RowId>(i));
  }
  return entries;
}

template <>
AlignedBuffer<BytesEntry> RandomEntries(size_t n, std::vector<char>* heap) {
  AlignedBuffer<BytesEntry> entries(n);
  heap->resize(n * KeyRecord::Bytes(kTextBytes) + KeyRecord::kSlack);
  Random random(kSeed);
  for (size_t i = 0; i < n; ++i) {
    char key[kTextBytes + 1];
    std::snprintf(key, sizeof key, "user:%010u@example.org",
                  static_cast<unsigned>(random.Below(n)));
    char* record = heap->data() + i * KeyRecord::Bytes(kTextBytes);
    KeyRecord::Write({key, kTextBytes}, static_cast<RowId>(i), record);
    entries[i] = {record, 0};
  }
  return entries;
}

// The comparison of comparison sorts.
template <typename Entry>
bool Less(const Entry& a, const Entry& b) {
  return a < b;
}
template <>
bool Less(const BytesEntry& a, const BytesEntry& b) {
  const int order = a.key().compare(b.key());
  return order != 0 ? order < 0 : a.row_id() < b.row_id();
}

template <typename Entry>
void Sort(benchmark::State& state, size_t n, Method method, int threads) {
  std::vector<char> heap;
  const AlignedBuffer<Entry> original = RandomEntries<Entry>(n, &heap);
  AlignedBuffer<Entry> entries(n);
  tbb::global_control control(tbb::global_control::max_allowed_parallelism,
                              static_cast<size_t>(threads));
  for (auto _ : state) {
    state.PauseTiming();
    std::copy(original.span().begin(), original.span().end(), entries.begin());
    state.ResumeTiming();
    switch (method) {
      case Method::kCairn:
        SortEntries(entries.span(), threads);
        break;
      case Method::kStdSort:
        std::sort(entries.begin(), entries.end(), Less<Entry>);
        break;
      case Method::kTbb:
        tbb::parallel_sort(entries.begin(), entries.end(), Less<Entry>);
        break;
    }
  }
  if (!std::is_sorted(entries.begin(), entries.end(), Less<Entry>)) {
    state.SkipWithError("not sorted");
  }
  uint64_t rows = 0;
  for (const Entry& entry : entries.span()) rows += entry.row_id();
  if (rows != n * (n - 1) / 2) state.SkipWithError("entries lost");
  state.counters["entries_per_s"] =
      benchmark::Counter(static_cast<double>(n), benchmark::Counter::kIsIterationInvariantRate);
}

template <typename Entry>
void Register(const std::string& key) {
  const int cores = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  std::vector<int> thread_counts = {1};
  if (cores > 1) thread_counts.push_back(cores);
  for (int log2 = 16; log2 <= 26; log2 += 2) {
    const size_t n = size_t{1} << log2;
    const std::string name = "Sort/" + key + "/n:" + std::to_string(log2) + "/";
    const auto add = [&](const std::string& method_name, Method method, int threads) {
      benchmark::RegisterBenchmark(
          (name + method_name + (threads == 1 ? "" : "/threads:" + std::to_string(threads)))
              .c_str(),
          [=](benchmark::State& state) { Sort<Entry>(state, n, method, threads); })
          ->UseRealTime()
          ->Unit(benchmark::kMillisecond);
    };
    for (int threads : thread_counts) add("cairn", Method::kCairn, threads);
    add("baseline:std_sort", Method::kStdSort, 1);
    add("baseline:tbb_parallel_sort", Method::kTbb, cores);
  }
}

[[maybe_unused]] const bool kRegistered = [] {
  Register<Entry32>("u32");
  Register<Entry64>("u64");
  Register<BytesEntry>("text");
  return true;
}();

}  // namespace
}  // namespace cairn::bench::sort
