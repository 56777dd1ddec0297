// ColumnEncode/<column>, ColumnGather/<column>/n:<log2 n>, ColumnRead/<column>/n:<log2 n>: packing
// blocks of 1,024 values in memory, reading random rows of a mapped column file in batches of
// 4,096, and reading all rows in order; one thread. column_sets.h lists the columns.
// bytes_per_row is the file's. ColumnAdd/<column> adds rows of one value to a builder.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <string>
#include <vector>

#include "cairn/column.h"
#include "index/columns/column_encoder.h"
#include "index/columns/columns_builder.h"
#include "tools/bench/data.h"
#include "tools/bench/index/column_sets.h"
#include "tools/bench/or_throw.h"

namespace cairn::bench::columns {
namespace {

constexpr size_t kBatch = 4096;
constexpr size_t kBatches = 64;

void ColumnEncode(benchmark::State& state, const std::string& name) {
  const ColumnValues values = MakeColumn(name, size_t{1} << 20);
  for (auto _ : state) {
    ColumnDictionary dictionary;
    std::string bytes;
    for (size_t first = 0; first < values.size(); first += kRowsPerColumnBlock) {
      ColumnBlock block;
      bytes.clear();
      EncodeBlock(values, first, kRowsPerColumnBlock, values.width() == 0 ? &dictionary : nullptr,
                  &bytes, &block);
      benchmark::DoNotOptimize(bytes.data());
    }
  }
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(PlainBytes(values)));
  SetQueryCounters(state, values.size());
}

void SetBytesPerRow(benchmark::State& state, const ColumnTable& table) {
  state.counters["bytes_per_row"] =
      static_cast<double>(table.column_bytes(0)) / static_cast<double>(table.rows());
}

void ColumnGather(benchmark::State& state, const std::string& name) {
  const ColumnTable& table = TableOf(name, static_cast<int>(state.range(0)));
  Random random(kSeed + 1);
  std::vector<RowId> rows(kBatch * kBatches);
  for (RowId& row : rows) row = static_cast<RowId>(random.Below(table.rows()));
  ColumnValues values(table.columns()[0].type);
  for (auto _ : state) {
    for (size_t i = 0; i < rows.size(); i += kBatch) {
      values.Clear();
      OrThrow(table.Gather(0, absl::MakeConstSpan(rows).subspan(i, kBatch), &values));
    }
  }
  SetQueryCounters(state, rows.size());
  SetBytesPerRow(state, table);
}

void ColumnRead(benchmark::State& state, const std::string& name) {
  const ColumnTable& table = TableOf(name, static_cast<int>(state.range(0)));
  ColumnValues values(table.columns()[0].type);
  for (auto _ : state) {
    for (uint64_t row = 0; row < table.rows(); row += kBatch) {
      values.Clear();
      OrThrow(table.Read(0, row, row + kBatch, &values));
    }
  }
  SetQueryCounters(state, table.rows());
  SetBytesPerRow(state, table);
}

void ColumnAdd(benchmark::State& state, const std::string& name) {
  const ColumnValues values = MakeColumn(name, size_t{1} << 20);
  for (auto _ : state) {
    ColumnsBuilder builder({{name, values.type()}}, {}, 1);
    for (size_t i = 0; i < values.size(); ++i) {
      const DataValue value = values.value(i);
      builder.part(0)->Add(absl::MakeConstSpan(&value, 1));
    }
    OrThrow(builder.part(0)->Finish());
  }
  SetQueryCounters(state, values.size());
}

const bool kRegistered = [] {
  for (const std::string name : kColumnSets) {
    benchmark::RegisterBenchmark(("ColumnEncode/" + name).c_str(), ColumnEncode, name);
    benchmark::RegisterBenchmark(("ColumnAdd/" + name).c_str(), ColumnAdd, name);
    for (const int n : {16, 24}) {
      benchmark::RegisterBenchmark(("ColumnGather/" + name).c_str(), ColumnGather, name)
          ->ArgName("n")
          ->Arg(n);
      benchmark::RegisterBenchmark(("ColumnRead/" + name).c_str(), ColumnRead, name)
          ->ArgName("n")
          ->Arg(n);
    }
  }
  return true;
}();

}  // namespace
}  // namespace cairn::bench::columns
