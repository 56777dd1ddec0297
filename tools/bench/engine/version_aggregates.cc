// Aggregates of an opened index of 4M rows (CAIRN_BENCH_ROWS) with random u64 keys that includes an
// i32 and an f64.
//
//   VersionAggregates/<what>/delta:<percent>/length:<entries>: ranges of <entries> entries in
//     batches of 4,096, one thread, compared with FindFirst of 4,096 keys (first_ns, and `ratio`,
//     the median of adjacent ratios). With a delta, <percent> percent of the rows have been
//     updated, half of them with other keys. <what> is count, sum (of i32), sum_f64, min (of f64)
//     or distinct.
//
//   VersionAggregates/first_after_update/<what>/rows:<rows>: the first aggregate of all entries
//     after updates of <rows> more random rows.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "cairn/aggregate.h"
#include "cairn/index_spec.h"
#include "cairn/options.h"
#include "cairn/query.h"
#include "cairn/secondary_index.h"
#include "cairn/snapshot_source.h"
#include "engine/util/rocksdb_compat.h"
#include "rocksdb/db.h"
#include "rocksdb/write_batch.h"
#include "tools/bench/data.h"
#include "tools/bench/database.h"
#include "tools/bench/or_throw.h"
#include "tools/bench/temporary_directory.h"

namespace cairn::bench::version_aggregates {
namespace {

constexpr uint64_t kRows = uint64_t{1} << 22;
constexpr size_t kBatch = 4096;
constexpr size_t kBatches = 16;  // distinct batches

double Now() {
  return std::chrono::duration<double, std::nano>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// A database, and a current index over it.
class Indexed {
 public:
  static Indexed& Get(int delta_percent) {
    static auto* const all = new std::unique_ptr<Indexed>[2];
    std::unique_ptr<Indexed>& indexed = all[delta_percent == 0 ? 0 : 1];
    if (indexed == nullptr) {
      indexed.reset(new Indexed(delta_percent));
      // After RocksDB has made its globals, so that they still exist when the databases are closed.
      [[maybe_unused]] static const int registered =
          std::atexit([] { std::fill_n(all, 2, nullptr); });
    }
    return *indexed;
  }

  const SecondaryIndex& index() const { return *index_; }
  // All keys of the base, ascending.
  const std::vector<uint64_t>& keys() const { return keys_; }

  // Updates random rows, and catches up.
  void Update(uint64_t rows) {
    rocksdb::WriteBatch batch;
    for (uint64_t i = 0; i < rows; ++i) {
      const uint64_t row = random_.Below(rows_);
      const uint64_t key = i % 2 == 0 ? random_() : KeyOf(row);
      OrThrow(batch.Put(BenchDatabase::PrimaryKey(row), Value(key)));
    }
    OrThrow(db_->Write({}, &batch));
    const auto source = OrThrow(SnapshotSource::FromDb(db_.get()));
    CatchUpOptions options;
    options.durable = false;
    OrThrow(index_->CatchUp(*source, options).status());
  }

 private:
  explicit Indexed(int delta_percent) : rows_(BenchRows(kRows)), random_(kSeed) {
    rocksdb::Options options;
    options.create_if_missing = true;
    options.compression = rocksdb::kNoCompression;
    OrThrow(rocksdb::DB::Open(options, directory_.path() + "/db", Into(&db_)));
    for (uint64_t i = 0; i < rows_;) {
      rocksdb::WriteBatch batch;
      for (uint64_t end = std::min(rows_, i + 10000); i < end; ++i) {
        keys_.push_back(KeyOf(i));
        OrThrow(batch.Put(BenchDatabase::PrimaryKey(i), Value(keys_.back())));
      }
      OrThrow(db_->Write({}, &batch));
    }
    std::sort(keys_.begin(), keys_.end());
    const auto source = OrThrow(SnapshotSource::FromDb(db_.get()));
    const IndexSpec spec = OrThrow(IndexSpec::Parse(
        "value[0:8]:u64be,include(quantity=value[8:4]:i32be,price=value[12:8]:f64be)"));
    OrThrow(SecondaryIndex::Build(*source, spec, directory_.path() + "/index").status());
    OpenOptions open;
    open.calibration = Calibration::kNone;
    open.threads = 1;
    open.aggregates = {"quantity", "price"};
    index_ = OrThrow(SecondaryIndex::Open(directory_.path() + "/index", open));
    // In several updates, as in practice.
    const uint64_t updated = rows_ * static_cast<uint64_t>(delta_percent) / 100;
    for (uint64_t i = 0; i < updated; i += 1000) Update(std::min<uint64_t>(1000, updated - i));
  }

  static uint64_t KeyOf(uint64_t row) { return Random(row)(); }
  std::string Value(uint64_t key) {
    const double price = static_cast<double>(random_.Below(10'000'000)) / 100;
    uint64_t bits;
    std::memcpy(&bits, &price, sizeof bits);
    return BenchDatabase::BigEndian(key) +
           BenchDatabase::BigEndian(random_.Below(50) << 32).substr(0, 4) +
           BenchDatabase::BigEndian(bits);
  }

  const TemporaryDirectory directory_;
  const uint64_t rows_;
  Random random_;
  std::unique_ptr<rocksdb::DB> db_;
  std::vector<uint64_t> keys_;
  std::unique_ptr<SecondaryIndex> index_;
};

double Median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
  return values[values.size() / 2];
}

void Ranges(benchmark::State& state, const Aggregate& aggregate, int delta) {
  Indexed& indexed = Indexed::Get(delta);
  const std::vector<uint64_t>& keys = indexed.keys();
  const size_t length = std::min<size_t>(static_cast<size_t>(state.range(0)), keys.size() - 1);
  Random random(kSeed);
  std::vector<uint64_t> lower, upper;
  for (size_t i = 0; i < kBatch * kBatches; ++i) {
    const size_t at = random.Below(keys.size() - length);
    lower.push_back(keys[at]);
    upper.push_back(keys[at + length]);
  }
  std::vector<RowId> rows(kBatch);
  std::vector<ColumnValues> values;
  const std::vector<Aggregate> aggregates = {aggregate};
  std::vector<double> ratios, firsts, ranges;
  size_t batch = 0;
  for (auto _ : state) {
    const size_t from = batch++ % kBatches * kBatch;
    const KeyBatch low = KeyBatch(lower).Slice(from, kBatch);
    const double start = Now();
    OrThrow(indexed.index().Execute(Batch::FindFirst(low, absl::MakeSpan(rows))));
    const double middle = Now();
    OrThrow(indexed.index().AggregateRanges(
        RangeBatch::HalfOpen(low, KeyBatch(upper).Slice(from, kBatch)), aggregates, &values));
    const double end = Now();
    firsts.push_back((middle - start) / kBatch);
    ranges.push_back((end - middle) / kBatch);
    ratios.push_back((end - middle) / (middle - start));
  }
  state.counters["ns_per_range"] = Median(ranges);
  state.counters["first_ns"] = Median(firsts);
  state.counters["ratio"] = Median(ratios);
}

void AfterUpdate(benchmark::State& state, const Aggregate& aggregate) {
  Indexed& indexed = Indexed::Get(1);
  std::vector<ColumnValues> values;
  const std::vector<Aggregate> aggregates = {aggregate};
  std::vector<double> times;
  const RangeBatch all = RangeBatch::Everything(PhysicalType::kU64);
  for (auto _ : state) {
    state.PauseTiming();
    indexed.Update(static_cast<uint64_t>(state.range(0)));
    state.ResumeTiming();
    const double start = Now();
    OrThrow(indexed.index().AggregateRanges(all, aggregates, &values));
    times.push_back((Now() - start) / 1e6);
  }
  state.counters["ms"] = Median(times);
}

const struct {
  const char* name;
  Aggregate aggregate;
} kWhat[] = {{"count", Aggregate::Count()},
             {"sum", Aggregate::Sum("quantity")},
             {"sum_f64", Aggregate::Sum("price")},
             {"min", Aggregate::Min("price")},
             {"distinct", Aggregate::CountDistinct()}};

[[maybe_unused]] const bool registered = [] {
  for (const int delta : {0, 1}) {
    for (const auto& what : kWhat) {
      auto* const added = benchmark::RegisterBenchmark(
          ("VersionAggregates/" + std::string(what.name) + "/delta:" + std::to_string(delta))
              .c_str(),
          [&what, delta](benchmark::State& state) { Ranges(state, what.aggregate, delta); });
      added->ArgName("length");
      for (const int log2 : {0, 4, 8, 12, 16, 20}) added->Arg(int64_t{1} << log2);
    }
  }
  for (const auto& what : kWhat) {
    benchmark::RegisterBenchmark(
        ("VersionAggregates/first_after_update/" + std::string(what.name)).c_str(),
        [&what](benchmark::State& state) { AfterUpdate(state, what.aggregate); })
        ->ArgName("rows")
        ->Arg(1)
        ->Arg(1000)
        ->Iterations(5);
  }
  return true;
}();

}  // namespace
}  // namespace cairn::bench::version_aggregates
