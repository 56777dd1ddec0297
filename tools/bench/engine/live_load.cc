// LiveLoad/<what>: indexes of a database under the highest write rate that it accepts.
//
//   write/<plain or indexed>/rows:<n>: n line items, n / 4 orders and n / 40 customers, with
//     TPC-H's row sizes and order, in three column families, in batches of 500; indexed: an
//     IndexedDB with four indexes. Counters: rows_per_s; lag, the largest number of sequence
//     numbers by which an index lags at the end; drain_ms, the time until all are current.
//
//   burst/rows:<n>: n rows written at once to a database with four indexes, then one query of one
//     of them. Counters: wait_ms, of that query; per_s, of the writes.
//
//   store_one_row/delta:<n>: one row put after n new rows since the base, and FlushIndexes.
//     Counters: ms, the median; bytes, the largest growth of the index's files.
//
//   find/<before, during or after>_merge/changed:<n>: Find of 16 keys in an index of 4/3 n rows,
//   after
//     updates of n of them, while one row per millisecond is inserted. Counters:
//     worst_ms, p99_ms.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_format.h"
#include "cairn/indexed_db.h"
#include "engine/util/rocksdb_compat.h"
#include "rocksdb/db.h"
#include "rocksdb/write_batch.h"
#include "tools/bench/database.h"
#include "tools/bench/or_throw.h"
#include "tools/bench/temporary_directory.h"

namespace cairn::bench::live_load {
namespace {

using Clock = std::chrono::steady_clock;

double Milliseconds(Clock::duration time) {
  return std::chrono::duration<double, std::milli>(time).count();
}

// A database in a separate directory, with or without indexes.
class LoadedDatabase {
 public:
  LoadedDatabase(bool indexed, const std::vector<std::string>& families,
                 const IndexedDBOptions& options = {}) {
    rocksdb::Options db_options;
    db_options.create_if_missing = true;
    db_options.create_missing_column_families = true;
    db_options.compression = rocksdb::kNoCompression;
    std::vector<rocksdb::ColumnFamilyDescriptor> descriptors = {{"default", db_options}};
    for (const std::string& family : families) descriptors.emplace_back(family, db_options);
    const std::string path = directory_.path() + "/db";
    if (indexed) {
      auto opened = OrThrow(IndexedDB::Open(db_options, path, descriptors, &families_, options));
      indexed_ = opened.get();
      db_ = std::move(opened);
    } else {
      OrThrow(rocksdb::DB::Open(db_options, path, descriptors, &families_, Into(&db_)));
    }
  }
  ~LoadedDatabase() {
    for (rocksdb::ColumnFamilyHandle* family : families_) {
      db_->DestroyColumnFamilyHandle(family).PermitUncheckedError();
    }
    db_.reset();
  }

  rocksdb::DB* db() { return db_.get(); }
  IndexedDB* indexed() { return indexed_; }
  rocksdb::ColumnFamilyHandle* family(size_t i) { return families_[i]; }
  std::string index_files() const { return directory_.path() + "/db.indexes"; }

  void CreateIndex(const char* spec, size_t family) {
    const IndexSpec parsed = OrThrow(IndexSpec::Parse(spec));
    OrThrow(indexed_->CreateIndex(parsed, families_[family]));
    OrThrow(indexed_->WaitUntilReady(parsed.name));
  }

  // The largest lag of an index, in sequence numbers.
  uint64_t Lag() const {
    uint64_t lag = 0;
    for (const IndexInfo& info : indexed_->ListIndexes()) {
      if (info.state != IndexState::kReady) throw std::runtime_error("an index is not ready");
      lag = std::max<uint64_t>(lag, info.sequence_lag);
    }
    return lag;
  }

 private:
  const TemporaryDirectory directory_;
  std::unique_ptr<rocksdb::DB> db_;
  std::vector<rocksdb::ColumnFamilyHandle*> families_;
  IndexedDB* indexed_ = nullptr;
};

IndexedDBOptions WithoutMerges() {
  IndexedDBOptions options;
  options.open.calibration = Calibration::kNone;
  options.compact_interval = absl::ZeroDuration();
  options.flush_interval = absl::ZeroDuration();
  return options;
}

// Rows with TPC-H's fields, as text separated by bars.
class OrderRows {
 public:
  static constexpr int kBatch = 500;
  enum Family : size_t { kCustomers = 1, kOrders = 2, kItems = 3 };

  explicit OrderRows(LoadedDatabase* database) : database_(*database), random_(7) {}

  // Returns the number of rows written.
  uint64_t Write(uint64_t items) {
    for (uint64_t customer = 0; customer < items / 40; ++customer) {
      Put(kCustomers, absl::StrFormat("%09d", customer),
          absl::StrFormat("Customer#%09d|%d|%02d-%03d-%03d-%04d|%d.%02d|%s", customer, Below(25),
                          10 + Below(25), Below(1000), Below(1000), Below(10000), Below(10000),
                          Below(100), Text(60)));
    }
    for (uint64_t order = 0, item = 0; item < items; ++order) {
      Put(kOrders, absl::StrFormat("%010d", order),
          absl::StrFormat("%d|O|%d.%02d|%d|%d-URGENT|Clerk#%09d|0|%s", Below(items / 40 + 1),
                          Below(400000), Below(100), 8035 + Below(2406), 1 + Below(5), Below(1000),
                          Text(45)));
      const uint64_t lines = 1 + Below(7);
      for (uint64_t line = 0; line < lines && item < items; ++line, ++item) {
        Put(kItems, absl::StrFormat("%010d.%d", order, line),
            absl::StrFormat("%d|%d|%d|%d.%02d|0.0%d|0.0%d|N|O|%d|%d|TRUCK|%s", Below(200000),
                            Below(10000), 1 + Below(50), Below(90000), Below(100), Below(10),
                            Below(9), 8035 + Below(2500), 8035 + Below(2500), Text(25)));
      }
    }
    Flush();
    return written_;
  }

 private:
  uint64_t Below(uint64_t end) { return random_() % end; }
  // Some letters.
  std::string Text(size_t most) {
    std::string text(1 + Below(most), ' ');
    for (char& letter : text) letter = static_cast<char>('a' + Below(26));
    return text;
  }
  void Put(Family family, const std::string& key, const std::string& value) {
    OrThrow(batch_.Put(database_.family(family), key, value));
    ++written_;
    if (batch_.Count() == kBatch) Flush();
  }
  void Flush() {
    const auto begin = Clock::now();
    OrThrow(database_.db()->Write({}, &batch_));
    writing_ += Clock::now() - begin;
    batch_.Clear();
  }

  LoadedDatabase& database_;
  std::mt19937_64 random_;
  rocksdb::WriteBatch batch_;
  uint64_t written_ = 0;

 public:
  // Time in Write itself.
  Clock::duration writing_{};
};

void Write(benchmark::State& state, bool indexed, uint64_t items) {
  uint64_t rows = 0;
  double seconds = 0, drain = 0;
  uint64_t lag = 0;
  for (auto _ : state) {
    LoadedDatabase database(indexed, {"customers", "orders", "items"});
    if (indexed) {
      database.CreateIndex("phone = value.field('|',2):text, cf=customers", OrderRows::kCustomers);
      database.CreateIndex("customer = value.field('|',0):u32, cf=orders", OrderRows::kOrders);
      database.CreateIndex("ordered = value.field('|',3):u32, cf=orders", OrderRows::kOrders);
      database.CreateIndex("part = value.field('|',0):u32, cf=items", OrderRows::kItems);
    }
    OrderRows writer(&database);
    rows += writer.Write(items);
    const double in_writes = 1e-3 * Milliseconds(writer.writing_);
    state.SetIterationTime(in_writes);
    seconds += in_writes;
    if (!indexed) continue;
    lag = std::max(lag, database.Lag());
    const auto begin = Clock::now();
    OrThrow(database.indexed()->Pin("part").status());
    drain += Milliseconds(Clock::now() - begin);
  }
  state.counters["rows_per_s"] = static_cast<double>(rows) / seconds;
  state.counters["lag"] = static_cast<double>(lag);
  state.counters["drain_ms"] = drain / static_cast<double>(state.iterations());
}

void PutNumbers(LoadedDatabase* database, uint64_t first, uint64_t count, uint64_t salt) {
  for (uint64_t row = first, end = first + count; row < end;) {
    rocksdb::WriteBatch batch;
    for (int i = 0; i < 1000 && row < end; ++i, ++row) {
      std::string value;
      for (uint64_t field = 0; field < 4; ++field) {
        value += BenchDatabase::BigEndian(row * 2654435761u * (2 * field + 1) + salt);
      }
      OrThrow(batch.Put(BenchDatabase::BigEndian(row), value));
    }
    OrThrow(database->db()->Write({}, &batch));
  }
}

void Burst(benchmark::State& state, uint64_t rows) {
  std::vector<double> waits;
  double seconds = 0;
  for (auto _ : state) {
    LoadedDatabase database(true, {}, WithoutMerges());
    for (const char* spec : {"a = value[0:8]:u64be", "b = value[8:8]:u64be",
                             "c = value[16:8]:u64be", "d = value[24:8]:u64be"}) {
      database.CreateIndex(spec, 0);
    }
    auto begin = Clock::now();
    PutNumbers(&database, 0, rows, 1);
    seconds += 1e-3 * Milliseconds(Clock::now() - begin);
    const auto index = database.indexed()->Index("a");
    OrThrow(index.status());
    begin = Clock::now();
    const uint64_t key = 1;
    uint64_t count = 0;
    OrThrow((*index)->Count(RangeBatch::Equal(KeyBatch(absl::MakeConstSpan(&key, 1))),
                            absl::MakeSpan(&count, 1)));
    if (count != 1) throw std::runtime_error("a row was not found");
    waits.push_back(Milliseconds(Clock::now() - begin));
    state.SetIterationTime(1e-3 * waits.back());
  }
  std::sort(waits.begin(), waits.end());
  state.counters["wait_ms"] = waits[waits.size() / 2];
  state.counters["per_s"] = static_cast<double>(rows * waits.size()) / seconds;
}

uint64_t BytesIn(const std::string& directory) {
  uint64_t bytes = 0;
  for (const auto& file : std::filesystem::recursive_directory_iterator(directory)) {
    if (file.is_regular_file()) bytes += file.file_size();
  }
  return bytes;
}

void StoreOneRow(benchmark::State& state, uint64_t changed) {
  LoadedDatabase database(true, {}, WithoutMerges());
  PutNumbers(&database, 0, 1000, 1);
  database.CreateIndex("a = value[0:8]:u64be", 0);
  PutNumbers(&database, 1000, changed, 1);
  OrThrow(database.indexed()->FlushIndexes());
  uint64_t row = 1000 + changed, most = 0;
  std::vector<double> times;
  for (auto _ : state) {
    PutNumbers(&database, row++, 1, 1);
    const uint64_t before = BytesIn(database.index_files());
    const auto begin = Clock::now();
    OrThrow(database.indexed()->FlushIndexes());
    times.push_back(Milliseconds(Clock::now() - begin));
    state.SetIterationTime(1e-3 * times.back());
    const uint64_t after = BytesIn(database.index_files());
    most = std::max(most, after - std::min(before, after));
  }
  std::sort(times.begin(), times.end());
  state.counters["ms"] = times[times.size() / 2];
  state.counters["bytes"] = static_cast<double>(most);
}

enum Phase : size_t { kBefore, kDuring, kAfter, kPhases };

// Runs all phases of one history and reports the phase `reported`.
void FindDuringMerge(benchmark::State& state, uint64_t changed, Phase reported) {
  for (auto _ : state) {
    const uint64_t base = changed / 3 * 4;
    IndexedDBOptions options = WithoutMerges();
    options.open.threads = options.compact_threads = 1;
    LoadedDatabase database(true, {}, options);
    PutNumbers(&database, 0, base, 1);
    database.CreateIndex("a = value[0:8]:u64be", 0);
    PutNumbers(&database, 0, changed, 2);
    const auto index = database.indexed()->Index("a");
    OrThrow(index.status());
    std::atomic<bool> end{false};
    std::atomic<size_t> phase{kBefore};
    std::array<std::vector<double>, kPhases> times;
    std::thread writer([&] {
      for (uint64_t row = base; !end; ++row) {
        PutNumbers(&database, row, 1, 3);
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
    });
    std::thread reader([&] {
      std::array<uint64_t, 16> keys;
      for (size_t i = 0; i < keys.size(); ++i) keys[i] = i;
      FindResult matches;
      while (!end) {
        const size_t in = phase;
        const auto begin = Clock::now();
        OrThrow((*index)->Find(keys, &matches));
        const double time = Milliseconds(Clock::now() - begin);
        if (in == phase) times[in].push_back(time);
        std::this_thread::sleep_for(std::chrono::microseconds(500));
      }
    });
    while (database.Lag() > 1000) std::this_thread::sleep_for(std::chrono::milliseconds(10));
    std::this_thread::sleep_for(std::chrono::seconds(1));
    times[kBefore].clear();
    std::this_thread::sleep_for(std::chrono::seconds(1));
    phase = kDuring;
    OrThrow(database.indexed()->CompactIndex("a"));
    phase = kAfter;
    std::this_thread::sleep_for(std::chrono::seconds(1));
    end = true;
    writer.join();
    reader.join();
    std::vector<double>& told = times[reported];
    std::sort(told.begin(), told.end());
    state.SetIterationTime(1e-3 * told.back());
    state.counters["worst_ms"] = told.back();
    state.counters["p99_ms"] = told[told.size() * 99 / 100];
    state.counters["queries"] = static_cast<double>(told.size());
  }
}

[[maybe_unused]] const bool registered = [] {
  const auto add = [](const std::string& name, auto function, auto... arguments) {
    return benchmark::RegisterBenchmark(("LiveLoad/" + name).c_str(), function, arguments...)
        ->UseManualTime()
        ->Unit(benchmark::kMillisecond);
  };
  const uint64_t rows = BenchRows(1'000'000);
  const std::string suffix = "/rows:" + std::to_string(rows);
  add("write/plain" + suffix, Write, false, rows)->Iterations(3);
  add("write/indexed" + suffix, Write, true, rows)->Iterations(3);
  add("burst/rows:" + std::to_string(2 * rows), Burst, 2 * rows)->Iterations(3);
  add("store_one_row/delta:400000", StoreOneRow, uint64_t{400'000})->Iterations(200);
  for (const auto& [name, phase] :
       {std::pair{"before", kBefore}, std::pair{"during", kDuring}, std::pair{"after", kAfter}}) {
    const uint64_t changed = rows / 2 * 3;
    add(absl::StrFormat("find/%s_merge/changed:%d", name, changed), FindDuringMerge, changed, phase)
        ->Iterations(1);
  }
  return true;
}();

}  // namespace
}  // namespace cairn::bench::live_load
