// IndexedDb/<what>/rows:<n>: the cost of keeping an index current.
//   write/<plain, indexed or by_hand>: batches of 100 updates of random rows: on a database without
//     an index; on an IndexedDB with one; with a column family of secondary key || primary key that
//     the application maintains in the same batch, for which it reads the rows that it overwrites;
//   unlogged/<plain or indexed>: puts of single new rows with WriteOptions::disableWAL, without an
//     index and with one; ends_ms is the time until a query sees the last row;
//   catch_up: updates per second that CatchUp applies; log_share is the part of its time that is
//     spent reading the log;
//   fresh_read/<after_write or nothing_new>: a query of one key on the live index;
//   batch_p99/<alone or during_merge>: the 99th percentile of batches of 1,000 keys;
//   lookup/<keys or rows>/batch:<b>: IndexedDB::Lookup and LookupRows of b existing keys, one row
//     each;
//   lookup/<reused or page>/<idle or during_writes>: one existing key, or the first ten rows from
//     that key on, by IndexedDB::Index with a reused result; 1,000 rows a second are updated;
//   lookup/multi_get/batch:<b>: RocksDB's MultiGet of b rows by primary key;
//   walk/<iterator or scan>: all entries with their keys, by an iterator or by pages of a scan;
//   queue/<plain, indexed or included>: batches that insert 500 rows and delete 500 of 1,000
//     existing ones, on an empty database without an index, with one, or with an included column;
//     the peak memory of the delta (delta_mb), and the peak growth of the process (rss_mb);
//   empty_range/delta:<d>: DeleteRange of no row and a lookup, after d new rows since the build.
// Rows have 16 + 100 bytes; the index is of value[0:8]:u64be.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <fstream>
#include <memory>
#include <optional>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_format.h"
#include "cairn/indexed_db.h"
#include "cairn/options.h"
#include "cairn/snapshot_source.h"
#include "engine/log/row_changes.h"
#include "engine/log/update_log.h"
#include "engine/util/rocksdb_compat.h"
#include "rocksdb/db.h"
#include "rocksdb/write_batch.h"
#include "tools/bench/database.h"
#include "tools/bench/or_throw.h"
#include "tools/bench/temporary_directory.h"

namespace cairn::bench::indexed_db {
namespace {

constexpr uint64_t kRows = 1'000'000;
constexpr int kBatch = 100;
constexpr char kSpec[] = "by_value = value[0:8]:u64be";

using Clock = std::chrono::steady_clock;

double Seconds(Clock::duration time) {
  return std::chrono::duration<double>(time).count();
}

std::string RowValue(uint64_t value) {
  return BenchDatabase::BigEndian(value) + std::string(92, 'v');
}

enum class Way { kPlain, kIndexed, kByHand };

// A separate database in a temporary directory, which benchmarks write to.
class WrittenDatabase {
 public:
  explicit WrittenDatabase(Way way, const IndexedDBOptions& options = {}) : way_(way), random_(1) {
    rocksdb::Options db_options;
    db_options.create_if_missing = true;
    db_options.create_missing_column_families = true;
    db_options.compression = rocksdb::kNoCompression;
    db_options.WAL_size_limit_MB = 4096;
    std::unique_ptr<rocksdb::DB> db;
    OrThrow(rocksdb::DB::Open(db_options, directory_.path() + "/db",
                              {{"default", db_options}, {"by_hand", db_options}}, &families_,
                              Into(&db)));
    db_ = std::move(db);
    rows_ = BenchRows(kRows);
    for (uint64_t row = 0; row < rows_;) {
      rocksdb::WriteBatch batch;
      for (int i = 0; i < 1000 && row < rows_; ++i, ++row) {
        OrThrow(batch.Put(BenchDatabase::PrimaryKey(row), RowValue(BenchDatabase::Value(row))));
        if (way != Way::kByHand) continue;
        OrThrow(batch.Put(families_[1], Entry(BenchDatabase::Value(row), row), ""));
      }
      OrThrow(db_->Write({}, &batch));
    }
    OrThrow(db_->Flush({}, families_));
    if (way != Way::kIndexed) return;
    auto indexed = OrThrow(IndexedDB::Attach(db_, {}, options));
    indexed_ = indexed.get();
    db_ = std::shared_ptr<rocksdb::DB>(std::move(indexed));
    OrThrow(indexed_->CreateIndex(*IndexSpec::Parse(kSpec)));
    OrThrow(indexed_->WaitUntilReady("by_value"));
  }
  ~WrittenDatabase() {
    for (rocksdb::ColumnFamilyHandle* family : families_) {
      db_->DestroyColumnFamilyHandle(family).PermitUncheckedError();
    }
    db_.reset();
  }

  rocksdb::DB* db() { return db_.get(); }
  IndexedDB* indexed() { return indexed_; }
  const std::string& directory() const { return directory_.path(); }
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
        OrThrow(db_->Get({}, key, &old));
        OrThrow(batch.Delete(families_[1], old.substr(0, 8) + key));
        OrThrow(batch.Put(families_[1], Entry(value, row), ""));
      }
      OrThrow(batch.Put(key, RowValue(value)));
    }
    OrThrow(db_->Write({}, &batch));
    return value;
  }

 private:
  static std::string Entry(uint64_t value, uint64_t row) {
    return BenchDatabase::BigEndian(value) + BenchDatabase::PrimaryKey(row);
  }

  const Way way_;
  std::mt19937_64 random_;
  const TemporaryDirectory directory_;
  uint64_t rows_ = 0;
  std::shared_ptr<rocksdb::DB> db_;
  std::vector<rocksdb::ColumnFamilyHandle*> families_;
  IndexedDB* indexed_ = nullptr;
};

void CountKey(const SecondaryIndex& index, uint64_t value, uint64_t expected) {
  FindResult matches;
  OrThrow(index.Find(KeyBatch(absl::MakeConstSpan(&value, 1)), &matches));
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

// One put per iteration, of the rows in a random order.
void UnloggedPuts(benchmark::State& state, bool indexed) {
  const TemporaryDirectory directory;
  rocksdb::Options options;
  options.create_if_missing = true;
  options.compression = rocksdb::kNoCompression;
  std::unique_ptr<rocksdb::DB> db;
  IndexedDB* live = nullptr;
  if (indexed) {
    auto opened = OrThrow(IndexedDB::Open(options, directory.path() + "/db"));
    live = opened.get();
    db = std::move(opened);
    OrThrow(live->CreateIndex(*IndexSpec::Parse(kSpec)));
    OrThrow(live->WaitUntilReady("by_value"));
  } else {
    OrThrow(rocksdb::DB::Open(options, directory.path() + "/db", Into(&db)));
  }
  rocksdb::WriteOptions without_log;
  without_log.disableWAL = true;
  uint64_t row = 0, value = 0;
  for (auto _ : state) {
    row += 0x9e3779b97f4a7c15;
    value = row ^ row >> 29;
    OrThrow(db->Put(without_log, BenchDatabase::PrimaryKey(row), RowValue(value)));
  }
  if (indexed) {
    const auto begin = Clock::now();
    CountKey(**live->Pin("by_value"), value, 1);
    state.counters["ends_ms"] = Seconds(Clock::now() - begin) * 1e3;
    if (live->ListIndexes()[0].builds != 1) throw std::runtime_error("the index could not follow");
  }
  state.counters["rows_per_s"] =
      benchmark::Counter(1, benchmark::Counter::kIsIterationInvariantRate);
}

void CatchUp(benchmark::State& state) {
  WrittenDatabase database(Way::kPlain);
  const std::string directory = database.directory() + "/index";
  BuildOptions build;
  build.threads = 1;
  std::unique_ptr<SecondaryIndex> index;
  {
    const auto source = SnapshotSource::FromDb(database.db());
    OrThrow(source.status());
    auto built = SecondaryIndex::Build(**source, *IndexSpec::Parse(kSpec), directory, build);
    OrThrow(built.status());
    index = *std::move(built);
  }
  double log_seconds = 0, seconds = 0;
  uint64_t updates = 0;
  for (auto _ : state) {
    state.PauseTiming();
    for (uint64_t i = 0; i < database.rows() / 4 / kBatch; ++i) database.WriteBatch();
    const auto source = SnapshotSource::FromDb(database.db());
    OrThrow(source.status());
    rocksdb::ColumnFamilyHandle* const families[] = {database.db()->DefaultColumnFamily()};
    const auto before = Clock::now();
    auto log = UpdateLog::Open(database.db(), families, index->sequence(), (*source)->sequence());
    OrThrow(log.status());
    for (RowChanges changes; !(*log)->done();) {
      changes.Clear();
      OrThrow((*log)->Read(64 << 20, absl::MakeSpan(&changes, 1)));
    }
    log_seconds += Seconds(Clock::now() - before);
    state.ResumeTiming();
    const auto begin = Clock::now();
    CatchUpOptions options;
    options.durable = false;
    const auto report = index->CatchUp(**source, options);
    OrThrow(report.status());
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
  options.follow_interval = absl::ZeroDuration();  // so that each query sees new rows
  options.open.ordered_indexes = {"cpu:sorted_array"};
  options.open.calibration = Calibration::kNone;
  WrittenDatabase database(Way::kIndexed, options);
  const auto index = database.indexed()->Index("by_value");
  OrThrow(index.status());
  uint64_t value = 0;
  std::vector<double> times;
  for (auto _ : state) {
    if (after_write) {
      value = database.random()();
      const uint64_t row = database.random()() % database.rows();
      OrThrow(database.db()->Put({}, BenchDatabase::PrimaryKey(row), RowValue(value)));
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
  options.compact_interval = absl::ZeroDuration();
  options.compact_threads = 1;
  WrittenDatabase database(Way::kIndexed, options);
  for (uint64_t i = 0; i < database.rows() / 100 / kBatch; ++i) database.WriteBatch();
  const auto index =
      database.indexed()->Pin("by_value");  // writes nothing, so the index is current
  OrThrow(index.status());
  std::atomic<bool> end{false};
  std::atomic<uint64_t> merges{0};
  std::thread merging;
  if (during_merge) {
    merging = std::thread([&] {
      while (!end) {
        for (uint64_t i = 0; i < database.rows() / 100 / kBatch; ++i) database.WriteBatch();
        OrThrow(database.indexed()->CompactIndex("by_value"));
        ++merges;
      }
    });
  }
  std::mt19937_64 random(2);
  std::vector<uint64_t> keys(1000);
  std::vector<double> times;
  FindResult matches;
  for (auto _ : state) {
    for (uint64_t& key : keys) key = BenchDatabase::Value(random() % database.rows());
    const auto begin = Clock::now();
    OrThrow((*index)->Find(keys, &matches));
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

// Updates 1,000 rows a second until it is destroyed.
class Writer {
 public:
  explicit Writer(WrittenDatabase* database)
      : thread_([this, database] {
          for (auto next = Clock::now(); !end_; next += std::chrono::milliseconds(100)) {
            database->WriteBatch();
            std::this_thread::sleep_until(next);
          }
        }) {
    static_assert(kBatch == 100);
  }
  ~Writer() {
    end_ = true;
    thread_.join();
  }

 private:
  std::atomic<bool> end_{false};
  std::thread thread_;
};

void OneLookup(benchmark::State& state, bool page, bool writes) {
  WrittenDatabase database(Way::kIndexed);
  const auto index = OrThrow(database.indexed()->Index("by_value"));
  std::optional<Writer> writer;
  if (writes) writer.emplace(&database);
  LookupOptions options;
  if (page) options.limit = 10;
  FoundKeys found;
  std::mt19937_64 random(2);
  std::vector<double> times;
  for (auto _ : state) {
    const uint64_t value = BenchDatabase::Value(random() % database.rows());
    const auto begin = Clock::now();
    OrThrow(index->Lookup(page ? KeyQuery::AtLeast(value) : KeyQuery(value), options, &found));
    times.push_back(Seconds(Clock::now() - begin));
    state.SetIterationTime(times.back());
  }
  std::sort(times.begin(), times.end());
  state.counters["median_us"] = 1e6 * times[times.size() / 2];
  state.counters["p99_us"] = 1e6 * times[times.size() * 99 / 100];
}

enum class Ask { kKeys, kRows, kMultiGet };

void Lookup(benchmark::State& state, Ask ask, size_t batch) {
  WrittenDatabase database(Way::kIndexed);
  std::mt19937_64 random(2);
  std::vector<double> times;
  for (auto _ : state) {
    std::vector<uint64_t> values(batch);
    std::vector<std::string> primary_keys(batch);
    for (size_t i = 0; i < batch; ++i) {
      const uint64_t row = random() % database.rows();
      values[i] = BenchDatabase::Value(row);
      primary_keys[i] = BenchDatabase::PrimaryKey(row);
    }
    const auto begin = Clock::now();
    size_t found = 0;
    if (ask == Ask::kMultiGet) {
      const std::vector<rocksdb::Slice> keys(primary_keys.begin(), primary_keys.end());
      std::vector<std::string> rows;
      for (const rocksdb::Status& s : database.db()->MultiGet({}, keys, &rows)) found += s.ok();
    } else if (ask == Ask::kKeys) {
      found = OrThrow(database.indexed()->Lookup("by_value", values)).size();
    } else {
      found = OrThrow(database.indexed()->LookupRows("by_value", values)).size();
    }
    times.push_back(Seconds(Clock::now() - begin));
    state.SetIterationTime(times.back());
    if (found < batch) throw std::runtime_error("not every row was found");
  }
  std::sort(times.begin(), times.end());
  state.counters["median_us"] = 1e6 * times[times.size() / 2];
  state.counters["p99_us"] = 1e6 * times[times.size() * 99 / 100];
}

// Reads all entries, their secondary and primary keys: by an iterator, or by scans of pages.
void Walk(benchmark::State& state, bool by_iterator) {
  WrittenDatabase database(Way::kIndexed);
  uint64_t entries = 0;
  for (auto _ : state) {
    entries = 0;
    if (by_iterator) {
      IndexIterator it = database.indexed()->NewIterator("by_value");
      for (it.SeekToFirst(); it.Valid(); it.Next()) {
        benchmark::DoNotOptimize(it.secondary_key());
        benchmark::DoNotOptimize(it.primary_key());
        ++entries;
      }
      OrThrow(it.status());
      continue;
    }
    const auto index = OrThrow(database.indexed()->Pin("by_value"));
    QueryOptions options;
    options.with_keys = true;
    options.limit = 4096;
    std::string after;
    do {
      RangeBatch all = RangeBatch::Everything(index->kind());
      all.after = absl::MakeConstSpan(&after, 1);
      FindResult page;
      StringList primary_keys;
      OrThrow(index->Scan(all, &page, options));
      OrThrow(index->PrimaryKeys(page, &primary_keys));
      std::vector<DataValue> key;
      std::string scratch;
      for (size_t i = 0; i < primary_keys.size(); ++i) {
        OrThrow(index->codec().Decode(page.keys, i, &key, &scratch));
        benchmark::DoNotOptimize(key.data());
      }
      entries += primary_keys.size();
      after = page.cursors[0];
    } while (!after.empty());
  }
  if (entries < database.rows()) throw std::runtime_error("not every row was found");
  state.SetItemsProcessed(static_cast<int64_t>(entries) * state.iterations());
}

// The resident memory of this process.
double ResidentMegabytes() {
  std::ifstream status("/proc/self/statm");
  double pages = 0;
  status >> pages >> pages;
  return pages * 4096 / 1e6;
}

// An IndexedDB in a temporary directory, empty at first, that follows at once.
class EmptyDatabase {
 public:
  explicit EmptyDatabase(const std::string& spec) {
    rocksdb::Options options;
    options.create_if_missing = true;
    options.write_buffer_size = 8 << 20;
    db_ = OrThrow(IndexedDB::Open(options, directory_.path() + "/db"));
    if (spec.empty()) return;
    OrThrow(db_->CreateIndex(spec));
    OrThrow(db_->WaitUntilReady("state"));
  }
  IndexedDB* operator->() { return db_.get(); }

 private:
  const TemporaryDirectory directory_;
  std::unique_ptr<IndexedDB> db_;
};

void Queue(benchmark::State& state, const std::string& spec) {
  constexpr uint64_t kLength = 1000, kComing = 500;
  EmptyDatabase db(spec);
  const double resident = ResidentMegabytes();
  double most = 0, max_of_delta = 0;
  uint64_t next = 0;
  for (auto _ : state) {
    rocksdb::WriteBatch batch;
    for (const uint64_t end = next + kComing; next < end; ++next) {
      OrThrow(
          batch.Put(BenchDatabase::PrimaryKey(next), absl::StrFormat("s%d|%d", next % 10, next)));
      if (next >= kLength) OrThrow(batch.Delete(BenchDatabase::PrimaryKey(next - kLength)));
    }
    OrThrow(db->Write({}, &batch));
    if (next % 50'000 != 0) continue;
    most = std::max(most, ResidentMegabytes() - resident);
    if (spec.empty()) continue;
    const auto index = OrThrow(db->Index("state"));
    max_of_delta =
        std::max(max_of_delta, static_cast<double>(OrThrow(index->Stats()).delta.bytes) / 1e6);
  }
  if (!spec.empty() && OrThrow(db->Lookup("state", "s1")).size() != kLength / 10) {
    throw std::runtime_error("the index does not have the queue's rows");
  }
  state.counters["delta_mb"] = max_of_delta;
  state.counters["rss_mb"] = most;
  state.counters["rows_per_s"] =
      benchmark::Counter(kComing, benchmark::Counter::kIsIterationInvariantRate);
}

void EmptyRange(benchmark::State& state, uint64_t delta) {
  EmptyDatabase db("state = value:text");
  for (uint64_t row = 0; row < delta;) {
    rocksdb::WriteBatch batch;
    for (int i = 0; i < 1000 && row < delta; ++i, ++row) {
      OrThrow(batch.Put(BenchDatabase::PrimaryKey(row), absl::StrFormat("s%d", row)));
    }
    OrThrow(db->Write({}, &batch));
  }
  OrThrow(db->Lookup("state", "s1"));
  for (auto _ : state) {
    OrThrow(db->DeleteRange({}, db->DefaultColumnFamily(), "z", "zz"));
    OrThrow(db->Lookup("state", "s1"));
  }
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
  for (const bool indexed : {false, true}) {
    benchmark::RegisterBenchmark(Name(indexed ? "unlogged/indexed" : "unlogged/plain").c_str(),
                                 UnloggedPuts, indexed)
        ->UseRealTime()
        ->Iterations(static_cast<int64_t>(BenchRows(kRows)))
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
  for (const auto& [name, ask] :
       {std::pair{"keys", Ask::kKeys}, {"rows", Ask::kRows}, {"multi_get", Ask::kMultiGet}}) {
    for (const size_t batch : {size_t{1}, size_t{1000}}) {
      benchmark::RegisterBenchmark(
          Name(std::string("lookup/") + name + "/batch:" + std::to_string(batch)).c_str(), Lookup,
          ask, batch)
          ->UseManualTime()
          ->Iterations(2000)
          ->Unit(benchmark::kMicrosecond);
    }
  }
  for (const bool page : {false, true}) {
    for (const bool writes : {false, true}) {
      benchmark::RegisterBenchmark(Name(std::string("lookup/") + (page ? "page" : "reused") +
                                        (writes ? "/during_writes" : "/idle"))
                                       .c_str(),
                                   OneLookup, page, writes)
          ->UseManualTime()
          ->Iterations(500000)
          ->Unit(benchmark::kMicrosecond);
    }
  }
  for (const auto& [name, by_iterator] : {std::pair{"iterator", true}, {"scan", false}}) {
    benchmark::RegisterBenchmark(Name(std::string("walk/") + name).c_str(), Walk, by_iterator)
        ->Unit(benchmark::kMillisecond);
  }
  for (const auto& [name, spec] :
       {std::pair{"plain", ""}, std::pair{"indexed", "state = value.field('|', 0):text"},
        std::pair{"included",
                  "state = value.field('|', 0):text, include(n = value.field('|', 1):u64)"}}) {
    benchmark::RegisterBenchmark(("IndexedDb/queue/" + std::string(name)).c_str(), Queue,
                                 std::string(spec))
        ->UseRealTime()
        ->Iterations(20'000)  // 10M rows
        ->Unit(benchmark::kMicrosecond);
  }
  for (const uint64_t delta : {20'000, 160'000}) {
    benchmark::RegisterBenchmark(absl::StrFormat("IndexedDb/empty_range/delta:%d", delta).c_str(),
                                 EmptyRange, delta)
        ->UseRealTime()
        ->Iterations(1000)
        ->Unit(benchmark::kMicrosecond);
  }
  return true;
}();

}  // namespace
}  // namespace cairn::bench::indexed_db
