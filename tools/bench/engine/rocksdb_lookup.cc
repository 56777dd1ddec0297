// RocksDb/<way>/u64/n:<rows>: 1,048,576 point lookups of random values, one thread, everything
// cached. Compares RocksDB (an iterator's Seek in a column family keyed value||primary key,
// MultiGet in one keyed by value) with Cairn's index over the same rows. Debian's librocksdb is
// built with assertions on.
#include <benchmark/benchmark.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cairn/column.h"
#include "cairn/index_spec.h"
#include "cairn/options.h"
#include "cairn/query.h"
#include "cairn/secondary_index.h"
#include "cairn/snapshot_source.h"
#include "cairn/types.h"
#include "tools/bench/data.h"
#include "tools/bench/database.h"
#include "tools/bench/or_throw.h"

namespace cairn::bench::rocksdb_lookup {
namespace {

constexpr size_t kLookups = size_t{1} << 20;
constexpr uint64_t kRows = 10'000'000;
constexpr size_t kMultiGetBatch = 1024;

// The rows whose values one iteration looks up; new at each call.
std::vector<uint64_t> RandomRows(uint64_t rows) {
  static Random random(kSeed + 1);
  std::vector<uint64_t> picked(kLookups);
  for (uint64_t& row : picked) row = random.Below(rows);
  return picked;
}

void SetCounters(benchmark::State& state) {
  state.SetItemsProcessed(static_cast<int64_t>(state.iterations() * kLookups));
  state.counters["ns_per_query"] = benchmark::Counter(
      static_cast<double>(kLookups) * 1e-9,
      benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}

void Expect(bool right, const char* way) {
  if (!right) throw std::runtime_error(std::string(way) + " gave a wrong answer");
}

void Seek(benchmark::State& state) {
  const uint64_t rows = BenchRows(kRows);
  BenchDatabase& database = BenchDatabase::Get(rows);
  rocksdb::ReadOptions options;
  options.prefix_same_as_start = true;
  options.verify_checksums = false;
  std::unique_ptr<rocksdb::Iterator> iterator(
      database.db()->NewIterator(options, database.by_value()));
  std::vector<std::string> found(kLookups);
  for (auto _ : state) {
    state.PauseTiming();
    const std::vector<uint64_t> picked = RandomRows(rows);
    std::vector<std::string> keys(kLookups);
    for (size_t i = 0; i < kLookups; ++i) {
      keys[i] = BenchDatabase::BigEndian(BenchDatabase::Value(picked[i]));
    }
    state.ResumeTiming();
    for (size_t i = 0; i < kLookups; ++i) {
      iterator->Seek(keys[i]);
      const rocksdb::Slice key = iterator->key();
      found[i].assign(key.data() + 8, key.size() - 8);
    }
    state.PauseTiming();
    for (size_t i = 0; i < kLookups; ++i) {
      Expect(found[i] == BenchDatabase::PrimaryKey(picked[i]), "Seek");
    }
    state.ResumeTiming();
  }
  SetCounters(state);
}

void MultiGet(benchmark::State& state) {
  const uint64_t rows = BenchRows(kRows);
  BenchDatabase& database = BenchDatabase::Get(rows);
  rocksdb::ReadOptions options;
  options.verify_checksums = false;
  std::vector<rocksdb::PinnableSlice> values(kMultiGetBatch);
  std::vector<rocksdb::Status> statuses(kMultiGetBatch);
  std::vector<std::string> found(kLookups);
  for (auto _ : state) {
    state.PauseTiming();
    const std::vector<uint64_t> picked = RandomRows(rows);
    std::vector<std::string> keys(kLookups);
    std::vector<rocksdb::Slice> slices(kLookups);
    for (size_t i = 0; i < kLookups; ++i) {
      keys[i] = BenchDatabase::BigEndian(BenchDatabase::Value(picked[i]));
      slices[i] = keys[i];
    }
    state.ResumeTiming();
    for (size_t first = 0; first < kLookups; first += kMultiGetBatch) {
      database.db()->MultiGet(options, database.value_to_key(), kMultiGetBatch,
                              slices.data() + first, values.data(), statuses.data());
      for (size_t i = 0; i < kMultiGetBatch; ++i) {
        found[first + i].assign(values[i].data(), values[i].size());
        values[i].Reset();
      }
    }
    state.PauseTiming();
    for (size_t i = 0; i < kLookups; ++i) {
      Expect(found[i] == BenchDatabase::PrimaryKey(picked[i]), "MultiGet");
    }
    state.ResumeTiming();
  }
  SetCounters(state);
}

// Cairn's index over the values, built once.
SecondaryIndex& Index(uint64_t rows) {
  static const std::unique_ptr<SecondaryIndex> index = [rows] {
    BenchDatabase& database = BenchDatabase::Get(rows);
    const auto source = OrThrow(SnapshotSource::FromDb(database.db(), database.rows_family()));
    const BuildTarget target{*IndexSpec::Parse("value[0:8]:u64be"),
                             database.directory() + "/index"};
    OrThrow(SecondaryIndex::BuildAll(*source, absl::MakeConstSpan(&target, 1)));
    OpenOptions options;
    options.threads = 1;
    return OrThrow(SecondaryIndex::Open(target.directory, options));
  }();
  return *index;
}

void CairnLookup(benchmark::State& state, bool primary_keys) {
  const uint64_t rows = BenchRows(kRows);
  SecondaryIndex& index = Index(rows);
  std::vector<GlobalRowId> row_ids(kLookups);
  StringList found;
  for (auto _ : state) {
    state.PauseTiming();
    const std::vector<uint64_t> picked = RandomRows(rows);
    std::vector<uint64_t> keys(kLookups);
    for (size_t i = 0; i < kLookups; ++i) keys[i] = BenchDatabase::Value(picked[i]);
    found.Clear();
    state.ResumeTiming();
    absl::Status status = index.FindFirst(keys, absl::MakeSpan(row_ids));
    if (primary_keys && status.ok()) status = index.PrimaryKeys(row_ids, &found);
    state.PauseTiming();
    Expect(status.ok(), "FindFirst");
    for (size_t i = 0; i < kLookups; ++i) {
      Expect(row_ids[i] == picked[i], "FindFirst");  // the rank of a row's key is its number
      if (primary_keys) Expect(found[i] == BenchDatabase::PrimaryKey(picked[i]), "PrimaryKeys");
    }
    state.ResumeTiming();
  }
  SetCounters(state);
}

void CairnRowId(benchmark::State& state) {
  CairnLookup(state, false);
}
void CairnPrimaryKey(benchmark::State& state) {
  CairnLookup(state, true);
}

BENCHMARK(Seek)->Name("RocksDb/seek/u64")->UseRealTime()->Unit(benchmark::kMillisecond);
BENCHMARK(MultiGet)->Name("RocksDb/multiget/u64")->UseRealTime()->Unit(benchmark::kMillisecond);
BENCHMARK(CairnRowId)
    ->Name("RocksDb/cairn/u64/row_id")
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);
BENCHMARK(CairnPrimaryKey)
    ->Name("RocksDb/cairn/u64/primary_key")
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace cairn::bench::rocksdb_lookup
