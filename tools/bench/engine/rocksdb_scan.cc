// RocksDb/scan/<way>/rows:<n>[/threads:<t>]: a full scan of a column family of 16-byte keys and
// 100-byte values, by RocksDB's own iterator with various options and by RowCursor; each counts
// and sums the same rows. It bounds an index build, which reads every row once.
// RocksDb/get/<way>/...: reads of 4,096 rows by ascending primary key.
//
// CAIRN_BENCH_ROWS sets the number of rows (default 1,000,000). If librocksdb is built with
// assertions, like Debian's, ratios between these ways still hold, but rates are too low.
#include <benchmark/benchmark.h>
#include <stdlib.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "cairn/snapshot_source.h"
#include "engine/util/rocksdb_compat.h"
#include "index/machine/status_macros.h"
#include "rocksdb/db.h"
#include "tools/bench/data.h"

namespace cairn::bench::rocksdb_scan {
namespace {

constexpr size_t kKeyBytes = 16;
constexpr size_t kValueBytes = 100;
constexpr size_t kReadaheadBytes = size_t{2} << 20;
constexpr size_t kGetBatch = 4096;

uint64_t RowCount() {
  const char* rows = std::getenv("CAIRN_BENCH_ROWS");
  const uint64_t count = rows != nullptr ? std::strtoull(rows, nullptr, 0) : 0;
  return count > 0 ? count : 1000000;
}

// 16 hexadecimal digits, so that row i's key is the i-th in order times a stride.
std::string KeyOf(uint64_t row) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string key(kKeyBytes, '0');
  uint64_t number = row * 0x1000;
  for (size_t i = kKeyBytes; i-- > 0; number >>= 4) key[i] = kDigits[number & 15];
  return key;
}

// The database that all benchmarks read, removed when the program ends.
class Database {
 public:
  static Database& Get() {
    static Database database;
    return database;
  }

  rocksdb::DB* db() const { return db_.get(); }
  const SnapshotSource& source() const { return *source_; }
  uint64_t rows() const { return rows_; }
  uint64_t sum() const { return sum_; }
  const std::string& error() const { return error_; }

 private:
  Database() : rows_(RowCount()) {
    std::string path = (std::filesystem::temp_directory_path() / "cairn-bench-XXXXXX").string();
    if (mkdtemp(path.data()) == nullptr) {
      error_ = "cannot make a temporary directory";
      return;
    }
    path_ = path;
    rocksdb::Options options;
    options.create_if_missing = true;
    options.compression = rocksdb::kNoCompression;
    options.PrepareForBulkLoad();
    rocksdb::Status status = rocksdb::DB::Open(options, path_, Into(&db_));
    if (status.ok()) {
      status = Fill();
    }
    if (!status.ok()) {
      error_ = status.ToString();
      return;
    }
    auto source = SnapshotSource::FromDb(db_.get());
    if (source.ok()) {
      source_ = *std::move(source);
    } else {
      error_ = source.status().ToString();
    }
  }

  ~Database() {
    source_.reset();
    db_.reset();
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  }

  // Written in random order, then compacted, like a database in use.
  rocksdb::Status Fill() {
    Random random(kSeed);
    std::vector<uint32_t> order(rows_);
    for (uint64_t i = 0; i < rows_; ++i) order[i] = static_cast<uint32_t>(i);
    for (uint64_t i = rows_; i > 1; --i) std::swap(order[i - 1], order[random.Below(i)]);
    rocksdb::WriteOptions write;
    write.disableWAL = true;
    std::string value(kValueBytes, '\0');
    for (uint32_t row : order) {
      for (size_t i = 0; i < kValueBytes; i += 4) {
        const uint32_t word = static_cast<uint32_t>(random());
        std::memcpy(&value[i], &word, 4);
      }
      sum_ += static_cast<unsigned char>(value[0]);
      RETURN_IF_ERROR(db_->Put(write, KeyOf(row), value));
    }
    rocksdb::Status status = db_->Flush(rocksdb::FlushOptions());
    if (status.ok()) status = db_->CompactRange(rocksdb::CompactRangeOptions(), nullptr, nullptr);
    return status;
  }

  const uint64_t rows_;
  uint64_t sum_ = 0;  // of the values' first bytes
  std::string path_;
  std::string error_;
  std::unique_ptr<rocksdb::DB> db_;
  std::unique_ptr<SnapshotSource> source_;
};

struct Seen {
  uint64_t rows = 0;
  uint64_t sum = 0;
};

Seen ScanIterator(const rocksdb::ReadOptions& options, const PrimaryKeyRange& range) {
  Seen seen;
  const rocksdb::Slice upper(range.upper);
  rocksdb::ReadOptions bounded = options;
  if (!range.open) bounded.iterate_upper_bound = &upper;
  const std::unique_ptr<rocksdb::Iterator> iterator(Database::Get().db()->NewIterator(bounded));
  for (iterator->Seek(range.lower); iterator->Valid(); iterator->Next()) {
    benchmark::DoNotOptimize(iterator->key().data());
    ++seen.rows;
    seen.sum += static_cast<unsigned char>(iterator->value().data()[0]);
  }
  return seen;
}

Seen ScanCursor(const PrimaryKeyRange& range) {
  Seen seen;
  auto cursor = Database::Get().source().Scan(range);
  if (!cursor.ok()) return seen;
  while ((*cursor)->Next()) {
    const RowView& row = (*cursor)->row();
    benchmark::DoNotOptimize(row.primary_key.data());
    ++seen.rows;
    seen.sum += static_cast<unsigned char>(row.value[0]);
  }
  return seen;
}

// One scan of all rows, with one thread per range.
template <typename ScanRange>
void Scan(benchmark::State& state, int threads, const ScanRange& scan_range) {
  const Database& database = Database::Get();
  if (!database.error().empty()) {
    state.SkipWithError(database.error().c_str());
    return;
  }
  Seen seen;
  for (auto _ : state) {
    const auto ranges = database.source().Split(threads);
    if (!ranges.ok()) {
      state.SkipWithError("cannot split");
      return;
    }
    std::vector<Seen> parts(ranges->size());
    std::vector<std::thread> workers;
    for (size_t i = 1; i < ranges->size(); ++i) {
      workers.emplace_back([&, i] { parts[i] = scan_range((*ranges)[i]); });
    }
    parts[0] = scan_range((*ranges)[0]);
    for (std::thread& worker : workers) worker.join();
    seen = {};
    for (const Seen& part : parts) {
      seen.rows += part.rows;
      seen.sum += part.sum;
    }
  }
  if (seen.rows != database.rows() || seen.sum != database.sum()) {
    state.SkipWithError("other rows than were written");
  }
  const double rows = static_cast<double>(database.rows());
  state.counters["rows_per_s"] =
      benchmark::Counter(rows, benchmark::Counter::kIsIterationInvariantRate);
  state.counters["ns_per_row"] = benchmark::Counter(
      rows * 1e-9, benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}

template <typename Read>
void Get(benchmark::State& state, const Read& read) {
  const Database& database = Database::Get();
  if (!database.error().empty()) {
    state.SkipWithError(database.error().c_str());
    return;
  }
  Random random(kSeed);
  uint64_t found = 0;
  uint64_t asked = 0;
  for (auto _ : state) {
    state.PauseTiming();
    std::vector<std::string> keys(kGetBatch);
    for (std::string& key : keys) key = KeyOf(random.Below(database.rows()));
    std::sort(keys.begin(), keys.end());
    const std::vector<std::string_view> views(keys.begin(), keys.end());
    state.ResumeTiming();
    found += read(views);
    asked += keys.size();
  }
  if (found != asked) state.SkipWithError("not every row was found");
  state.counters["ns_per_query"] = benchmark::Counter(
      static_cast<double>(kGetBatch) * 1e-9,
      benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}

uint64_t GetBySource(const std::vector<std::string_view>& keys) {
  uint64_t found = 0;
  const absl::Status status = Database::Get().source().Get(keys, [&](size_t, const RowView& row) {
    found += row.value.size() == kValueBytes;
    return absl::OkStatus();
  });
  return status.ok() ? found : 0;
}

uint64_t GetByMultiGet(const std::vector<std::string_view>& keys) {
  std::vector<rocksdb::Slice> slices;
  for (std::string_view key : keys) slices.emplace_back(key.data(), key.size());
  std::vector<rocksdb::PinnableSlice> values(keys.size());
  std::vector<rocksdb::Status> statuses(keys.size());
  rocksdb::DB* db = Database::Get().db();
  db->MultiGet(rocksdb::ReadOptions(), db->DefaultColumnFamily(), keys.size(), slices.data(),
               values.data(), statuses.data(), /*sorted_input=*/true);
  uint64_t found = 0;
  for (size_t i = 0; i < keys.size(); ++i) found += statuses[i].ok() && !values[i].empty();
  return found;
}

uint64_t GetBySeeks(const std::vector<std::string_view>& keys) {
  const std::unique_ptr<rocksdb::Iterator> iterator(
      Database::Get().db()->NewIterator(rocksdb::ReadOptions()));
  uint64_t found = 0;
  for (std::string_view key : keys) {
    const rocksdb::Slice slice(key.data(), key.size());
    iterator->Seek(slice);
    found += iterator->Valid() && iterator->key() == slice;
  }
  return found;
}

bool Register() {
  struct Way {
    const char* name;
    rocksdb::ReadOptions options;
  };
  std::vector<Way> ways(5);
  ways[0].name = "iterator";
  ways[1].name = "iterator,no_fill";
  ways[1].options.fill_cache = false;
  ways[2].name = "iterator,no_fill,readahead";
  ways[2].options.fill_cache = false;
  ways[2].options.readahead_size = kReadaheadBytes;
  ways[3].name = "iterator,no_fill,readahead,pinned";
  ways[3].options = ways[2].options;
  ways[3].options.pin_data = true;
  ways[4].name = "iterator,no_fill,readahead,no_checksums";
  ways[4].options = ways[2].options;
  ways[4].options.verify_checksums = false;

  const auto name = [](const std::string& what, int threads) {
    return "RocksDb/" + what + "/rows:" + std::to_string(RowCount()) +
           (threads > 1 ? "/threads:" + std::to_string(threads) : "");
  };
  for (const int threads : {1, 2}) {
    for (const Way& way : ways) {
      benchmark::RegisterBenchmark(name(std::string("scan/") + way.name, threads).c_str(),
                                   [options = way.options, threads](benchmark::State& state) {
                                     Scan(state, threads, [&](const PrimaryKeyRange& range) {
                                       return ScanIterator(options, range);
                                     });
                                   })
          ->Unit(benchmark::kMillisecond)
          ->UseRealTime();
    }
    benchmark::RegisterBenchmark(
        name("scan/row_cursor", threads).c_str(),
        [threads](benchmark::State& state) { Scan(state, threads, ScanCursor); })
        ->Unit(benchmark::kMillisecond)
        ->UseRealTime();
  }
  benchmark::RegisterBenchmark(name("get/source", 1).c_str(),
                               [](benchmark::State& state) { Get(state, GetBySource); });
  benchmark::RegisterBenchmark(name("get/multi_get", 1).c_str(),
                               [](benchmark::State& state) { Get(state, GetByMultiGet); });
  benchmark::RegisterBenchmark(name("get/seeks", 1).c_str(),
                               [](benchmark::State& state) { Get(state, GetBySeeks); });
  return true;
}

[[maybe_unused]] const bool registered = Register();

}  // namespace
}  // namespace cairn::bench::rocksdb_scan
