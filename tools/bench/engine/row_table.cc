// RowTable/<operation>/<keys>/n:<log2 n>: a row table over 2^n primary keys in memory. <keys> is
// `u64` (8 bytes, big-endian, dense), `random16` (16 random bytes), or `url` (30 to 90 characters).
// <operation> is `add` (writing, one thread), `primary_key` (random row id -> key), `find` and
// `find_one` (random key -> row id, batched and one by one).
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "engine/rows/row_table.h"
#include "index/machine/aligned_buffer.h"
#include "tools/bench/data.h"
#include "tools/bench/engine/memory_row_table.h"
#include "tools/bench/or_throw.h"

namespace cairn::bench::row_table {
namespace {

constexpr size_t kBatch = 4096;
constexpr size_t kBatches = 64;

std::vector<std::string> MakeKeys(const std::string& kind, size_t count) {
  Random random(kSeed);
  std::vector<std::string> keys(count);
  for (size_t i = 0; i < count; ++i) {
    if (kind == "url") {
      keys[i] = absl::StrFormat("https://host%03d.example.com/%s/%d", random.Below(500),
                                std::string(1 + random.Below(40), 'p'), random());
    } else {
      uint64_t words[2] = {kind == "u64" ? __builtin_bswap64(i) : random(), random()};
      keys[i].assign(reinterpret_cast<const char*>(words), kind == "u64" ? 8 : 16);
    }
  }
  std::sort(keys.begin(), keys.end());
  keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
  return keys;
}

// A table and its keys.
struct Data {
  std::vector<std::string> keys;
  AlignedBuffer<char> blocks;
  MemorySink sink;
  RowTable table;
};

// Makes the data once and keeps only the last set.
const Data& DataOf(const std::string& kind, size_t count) {
  static std::string name;
  static std::unique_ptr<Data> data;
  const std::string wanted = absl::StrFormat("%s/%d", kind, count);
  if (name == wanted) return *data;
  data = std::make_unique<Data>();
  data->keys = MakeKeys(kind, count);
  WriteRowTable(data->keys, &data->sink);
  RowTable::Sections spans = data->sink.Spans();
  data->blocks = AlignedBuffer<char>(spans.blocks.size());
  std::memcpy(data->blocks.data(), spans.blocks.data(), spans.blocks.size());
  spans.blocks = {data->blocks.data(), spans.blocks.size()};
  data->table = OrThrow(RowTable::Wrap(spans, "bench", 1, nullptr));
  name = wanted;
  return *data;
}

void SetCounters(benchmark::State& state, const Data& data, size_t queries) {
  state.counters["ns_per_query"] = benchmark::Counter(
      static_cast<double>(queries) * 1e-9,
      benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
  state.counters["bytes_per_key"] =
      static_cast<double>(data.table.memory_bytes()) / static_cast<double>(data.keys.size());
}

void Add(benchmark::State& state, const std::string& kind) {
  const Data& data = DataOf(kind, size_t{1} << state.range(0));
  struct NullSink : RowTableSink {
    absl::Status BeginSection(RowTableSection) override { return absl::OkStatus(); }
    absl::Status Append(std::string_view) override { return absl::OkStatus(); }
  } sink;
  for (auto _ : state) WriteRowTable(data.keys, &sink);
  SetCounters(state, data, data.keys.size());
}

void PrimaryKey(benchmark::State& state, const std::string& kind) {
  const Data& data = DataOf(kind, size_t{1} << state.range(0));
  Random random(kSeed);
  std::vector<RowId> rows(kBatch * kBatches);
  for (RowId& row : rows) row = static_cast<RowId>(random.Below(data.keys.size()));
  StringList column;
  size_t batch = 0;
  for (auto _ : state) {
    column.Clear();
    const auto ids = absl::MakeConstSpan(rows).subspan(batch % kBatches * kBatch, kBatch);
    if (!data.table.PrimaryKeys(ids, &column).ok()) state.SkipWithError("failed");
    ++batch;
  }
  column.Clear();
  if (!data.table.PrimaryKeys(rows, &column).ok()) state.SkipWithError("failed");
  for (size_t i = 0; i < rows.size(); ++i) {
    if (column[i] != data.keys[rows[i]]) state.SkipWithError("wrong answer");
  }
  SetCounters(state, data, kBatch);
}

void Find(benchmark::State& state, const std::string& kind, bool batched) {
  const Data& data = DataOf(kind, size_t{1} << state.range(0));
  Random random(kSeed);
  std::vector<std::string> copies;
  std::vector<RowId> expected;
  for (size_t i = 0; i < kBatch * kBatches; ++i) {
    expected.push_back(static_cast<RowId>(random.Below(data.keys.size())));
    copies.push_back(data.keys[expected.back()]);
  }
  const std::vector<std::string_view> keys(copies.begin(), copies.end());
  std::vector<RowId> found(kBatch);
  size_t batch = 0;
  for (auto _ : state) {
    const size_t first = batch++ % kBatches * kBatch;
    if (batched) {
      const auto some = absl::MakeConstSpan(keys).subspan(first, kBatch);
      if (!data.table.Find(some, absl::MakeSpan(found)).ok()) state.SkipWithError("failed");
    } else {
      for (size_t i = 0; i < kBatch; ++i) found[i] = *data.table.Find(keys[first + i]);
    }
    benchmark::DoNotOptimize(found.data());
  }
  found.resize(keys.size());
  if (!data.table.Find(keys, absl::MakeSpan(found)).ok() || found != expected) {
    state.SkipWithError("wrong answer");
  }
  SetCounters(state, data, kBatch);
}

const int registered = [] {
  for (const char* kind : {"u64", "random16", "url"}) {
    const auto add = [kind](const char* operation, auto function) {
      benchmark::RegisterBenchmark(absl::StrFormat("RowTable/%s/%s", operation, kind).c_str(),
                                   function)
          ->ArgName("n")
          ->Arg(20)
          ->Arg(23)
          ->UseRealTime();
    };
    add("add", [kind](benchmark::State& state) { Add(state, kind); });
    add("primary_key", [kind](benchmark::State& state) { PrimaryKey(state, kind); });
    add("find", [kind](benchmark::State& state) { Find(state, kind, true); });
    add("find_one", [kind](benchmark::State& state) { Find(state, kind, false); });
  }
  return 0;
}();

}  // namespace
}  // namespace cairn::bench::row_table
