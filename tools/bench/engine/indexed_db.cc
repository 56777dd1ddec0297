// IndexedDb/<what>/rows:<n>: what it costs to keep an index current.
//   write/<plain, indexed or by_hand>: batches of 100 updates of random rows, on a database without
//     an index, on an IndexedDB with one, and where the application maintains a column family of
//     secondary key || primary key in the same batch, which takes reading the rows it overwrites;
//   catch_up: updates a second that CatchUp applies; log_share of its time is reading the log
//   alone; fresh_read/<after_write or nothing_new>: a query of one key on the live index;
//   batch_p99/<alone or during_merge>: the 99th percentile of batches of 1,000 keys.
// Rows are of 16 + 100 bytes, an index of value[0:8]:u64be.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "cairn/indexed_db.h"
#include "engine/log/row_changes.h"
#include "engine/log/update_log.h"
#include "rocksdb/db.h"
#include "rocksdb/write_batch.h"
#include "tools/bench/database.h"

namespace cairn::bench {
namespace {

constexpr uint64_t kRows = 1'000'000;
constexpr int kBatch = 100;
constexpr char kSpec[] = "by_value = value[0:8]:u64be";

using Clock = std::chrono::steady_clock;

template <typename Status>
void Check(const Status& status) {
  if (!status.ok()) throw std::runtime_error(status.ToString());
}

double Seconds(Clock::duration time) {
  return std::chrono::duration<double>(time).count();
}

std::string RowValue(uint64_t value) {
  return BenchDatabase::BigEndian(value) + std::string(92, 'v');
}

enum class Way { kPlain, kIndexed, kByHand };

// A database of its own, which benchmarks write to, in a temporary directory.
class WrittenDatabase {
 public:
  explicit WrittenDatabase(Way way, IndexedDBOptions options = {}) : way_(way), random_(1) {
    directory_ = (std::filesystem::temp_directory_path() / "cairn_bench_XXXXXX").string();
    if (mkdtemp(directory_.data()) == nullptr) throw std::runtime_error("no temporary directory");
    rocksdb::Options db_options;
    db_options.create_if_missing = true;
    db_options.create_missing_column_families = true;
    db_options.compression = rocksdb::kNoCompression;
    db_options.WAL_size_limit_MB = 4096;
    rocksdb::DB* db = nullptr;
    Check(rocksdb::DB::Open(db_options, directory_ + "/db",
                            {{"default", db_options}, {"by_hand", db_options}}, &families_, &db));
    db_.reset(db);
    rows_ = BenchRows(kRows);
    for (uint64_t row = 0; row < rows_;) {
      rocksdb::WriteBatch batch;
      for (int i = 0; i < 1000 && row < rows_; ++i, ++row) {
        Check(batch.Put(BenchDatabase::PrimaryKey(row), RowValue(BenchDatabase::Value(row))));
        if (way != Way::kByHand) continue;
        Check(batch.Put(families_[1], Entry(BenchDatabase::Value(row), row), ""));
      }
      Check(db_->Write({}, &batch));
    }
    Check(db_->Flush({}, families_));
    if (way != Way::kIndexed) return;
    auto indexed = IndexedDB::Attach(db_, {}, options);
    Check(indexed.status());
    indexed_ = indexed->get();
    db_ = std::shared_ptr<rocksdb::DB>(*std::move(indexed));
    Check(indexed_->CreateIndex(*IndexSpec::Parse(kSpec)));
    Check(indexed_->WaitUntilReady("by_value"));
  }
  ~WrittenDatabase() {
    for (rocksdb::ColumnFamilyHandle* family : families_) {
      db_->DestroyColumnFamilyHandle(family).PermitUncheckedError();
    }
    db_.reset();
    std::error_code ignored;
    std::filesystem::remove_all(directory_, ignored);
  }

  rocksdb::DB* db() { return db_.get(); }
  IndexedDB* indexed() { return indexed_; }
  const std::string& directory() const { return directory_; }
  uint64_t rows() const { return rows_; }
  std::mt19937_64& random() { return random_; }

  // Writes kBatch updates of random rows, and returns one of the new values.
  uint64_t WriteBatch() {
    rocksdb::WriteBatch batch;
    uint64_t value = 0;
    for (int i = 0; i < kBatch; ++i) {
      const uint64_t row = random_() % rows_;
      const std::string key = BenchDatabase::PrimaryKey(row);
      value = random_();
      if (way_ == Way::kByHand) {
        std::string old;
        Check(db_->Get({}, key, &old));
        Check(batch.Delete(families_[1], old.substr(0, 8) + key));
        Check(batch.Put(families_[1], Entry(value, row), ""));
      }
      Check(batch.Put(key, RowValue(value)));
    }
    Check(db_->Write({}, &batch));
    return value;
  }

 private:
  static std::string Entry(uint64_t value, uint64_t row) {
    return BenchDatabase::BigEndian(value) + BenchDatabase::PrimaryKey(row);
  }

  const Way way_;
  std::mt19937_64 random_;
  std::string directory_;
  uint64_t rows_ = 0;
  std::shared_ptr<rocksdb::DB> db_;
  std::vector<rocksdb::ColumnFamilyHandle*> families_;
  IndexedDB* indexed_ = nullptr;
};

void CountKey(const SecondaryIndex& index, uint64_t value, uint64_t expected) {
  Matches matches;
  Check(index.Find(KeyBatch::U64(absl::MakeConstSpan(&value, 1)), &matches));
  if (matches.row_ids.size() != expected) throw std::runtime_error("a row was not found");
}

void Write(benchmark::State& state, Way way) {
  WrittenDatabase database(way);
  uint64_t last = 0;
  for (auto _ : state) last = database.WriteBatch();
  if (way == Way::kIndexed) {
    CountKey(**database.indexed()->Pin("by_value"), last, 1);
    for (const IndexInfo& info : database.indexed()->ListIndexes()) {
      if (info.builds != 1) throw std::runtime_error("the index could not follow");
    }
  }
  state.counters["rows_per_s"] =
      benchmark::Counter(kBatch, benchmark::Counter::kIsIterationInvariantRate);
}

void CatchUp(benchmark::State& state) {
  WrittenDatabase database(Way::kPlain);
  const std::string directory = database.directory() + "/index";
  BuildOptions build;
  build.threads = 1;
  std::unique_ptr<SecondaryIndex> index;
  {
    const auto source = SnapshotSource::FromDb(database.db());
    Check(source.status());
    auto built = SecondaryIndex::Build(**source, *IndexSpec::Parse(kSpec), directory, build);
    Check(built.status());
    index = *std::move(built);
  }
  double log_seconds = 0, seconds = 0;
  uint64_t updates = 0;
  for (auto _ : state) {
    state.PauseTiming();
    for (uint64_t i = 0; i < database.rows() / 4 / kBatch; ++i) database.WriteBatch();
    const auto source = SnapshotSource::FromDb(database.db());
    Check(source.status());
    rocksdb::ColumnFamilyHandle* const families[] = {database.db()->DefaultColumnFamily()};
    const auto before = Clock::now();
    auto log = UpdateLog::Open(database.db(), families, index->sequence(), (*source)->sequence());
    Check(log.status());
    for (RowChanges changes; !(*log)->done();) {
      changes.Clear();
      Check((*log)->Read(64 << 20, absl::MakeSpan(&changes, 1)));
    }
    log_seconds += Seconds(Clock::now() - before);
    state.ResumeTiming();
    const auto begin = Clock::now();
    CatchUpOptions options;
    options.durable = false;
    const auto report = index->CatchUp(**source, options);
    Check(report.status());
    seconds += Seconds(Clock::now() - begin);
    updates += report->changes;
  }
  state.counters["updates_per_s"] = static_cast<double>(updates) / seconds;
  state.counters["updates_per_s_past_the_log"] =
      static_cast<double>(updates) / std::max(1e-9, seconds - log_seconds);
  state.counters["log_share"] = log_seconds / seconds;
}

void FreshRead(benchmark::State& state, bool after_write) {
  IndexedDBOptions options;
  options.follow_interval = absl::ZeroDuration();  // so that each query finds what is new
  options.open.ordered_indexes = {"cpu:sorted_array"};
  options.open.calibration = Calibration::kNone;
  WrittenDatabase database(Way::kIndexed, options);
  const auto index = database.indexed()->Index("by_value");
  Check(index.status());
  uint64_t value = 0;
  std::vector<double> times;
  for (auto _ : state) {
    if (after_write) {
      value = database.random()();
      const uint64_t row = database.random()() % database.rows();
      Check(database.db()->Put({}, BenchDatabase::PrimaryKey(row), RowValue(value)));
    }
    const auto begin = Clock::now();
    CountKey(**index, value, after_write ? 1 : 0);
    times.push_back(Seconds(Clock::now() - begin));
    state.SetIterationTime(times.back());
  }
  std::sort(times.begin(), times.end());
  state.counters["median_us"] = 1e6 * times[times.size() / 2];
  state.counters["p99_us"] = 1e6 * times[times.size() * 99 / 100];
}

void BatchP99(benchmark::State& state, bool during_merge) {
  IndexedDBOptions options;
  options.merge_interval = absl::ZeroDuration();
  options.merge_threads = 1;
  WrittenDatabase database(Way::kIndexed, options);
  for (uint64_t i = 0; i < database.rows() / 100 / kBatch; ++i) database.WriteBatch();
  const auto index = database.indexed()->Pin("by_value");  // writes nothing, so that it is current
  Check(index.status());
  std::atomic<bool> end{false};
  std::atomic<uint64_t> merges{0};
  std::thread merging;
  if (during_merge) {
    merging = std::thread([&] {
      while (!end) {
        for (uint64_t i = 0; i < database.rows() / 100 / kBatch; ++i) database.WriteBatch();
        Check(database.indexed()->MergeIndex("by_value"));
        ++merges;
      }
    });
  }
  std::mt19937_64 random(2);
  std::vector<uint64_t> keys(1000);
  std::vector<double> times;
  Matches matches;
  for (auto _ : state) {
    for (uint64_t& key : keys) key = BenchDatabase::Value(random() % database.rows());
    const auto begin = Clock::now();
    Check((*index)->Find(KeyBatch::U64(keys), &matches));
    times.push_back(Seconds(Clock::now() - begin));
    state.SetIterationTime(times.back());
  }
  end = true;
  if (merging.joinable()) merging.join();
  std::sort(times.begin(), times.end());
  state.counters["median_us"] = 1e6 * times[times.size() / 2];
  state.counters["p99_us"] = 1e6 * times[times.size() * 99 / 100];
  state.counters["merges"] = static_cast<double>(merges);
}

std::string Name(const std::string& what) {
  return "IndexedDb/" + what + "/rows:" + std::to_string(BenchRows(kRows));
}

[[maybe_unused]] const bool registered = [] {
  for (const auto& [name, way] : {std::pair{"write/plain", Way::kPlain},
                                  {"write/indexed", Way::kIndexed},
                                  {"write/by_hand", Way::kByHand}}) {
    benchmark::RegisterBenchmark(Name(name).c_str(), Write, way)
        ->UseRealTime()
        ->Iterations(3000)
        ->Unit(benchmark::kMicrosecond);
  }
  benchmark::RegisterBenchmark(Name("catch_up").c_str(), CatchUp)
      ->UseRealTime()
      ->Iterations(4)
      ->Unit(benchmark::kMillisecond);
  for (const bool after_write : {true, false}) {
    benchmark::RegisterBenchmark(
        Name(after_write ? "fresh_read/after_write" : "fresh_read/nothing_new").c_str(), FreshRead,
        after_write)
        ->UseManualTime()
        ->Iterations(3000)
        ->Unit(benchmark::kMicrosecond);
  }
  for (const bool during_merge : {false, true}) {
    benchmark::RegisterBenchmark(
        Name(during_merge ? "batch_p99/during_merge" : "batch_p99/alone").c_str(), BatchP99,
        during_merge)
        ->UseManualTime()
        ->Iterations(20000)
        ->Unit(benchmark::kMicrosecond);
  }
  return true;
}();

}  // namespace
}  // namespace cairn::bench
