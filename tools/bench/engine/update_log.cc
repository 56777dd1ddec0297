// The time from a database's log to settled row changes, for updates of 16-byte keys (random among
// 2^20 rows) and 100-byte values, half of them random, logged in batches of <b>:
//   UpdateLog/decode/batch:<b>              write batches in memory to row changes;
//   UpdateLog/settle/<random or ascending>  changes of a slice to their net effect, by key;
//   UpdateLog/read_log/batch:<b>            log files, in the page cache, to row changes;
//   UpdateLog/read_log/zstd/batch:<b>       the same with a compressed log (wal_compression);
//   UpdateLog/read_log/unchecked/batch:<b>  a log of many files, whose rows are in table files;
//   UpdateLog/read_log/checked/batch:<b>    the same, with the check that they are there;
//   UpdateLog/all/batch:<b>                 read_log, settled slice by slice;
//   UpdateLog/baseline:get_updates_since[/zstd]/batch:<b>  RocksDB's own walk of the log, undecoded
#include <benchmark/benchmark.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/str_format.h"
#include "engine/log/flushed_rows.h"
#include "engine/log/row_changes.h"
#include "engine/log/settled_changes.h"
#include "engine/log/update_log.h"
#include "engine/log/write_batch_reader.h"
#include "engine/util/rocksdb_compat.h"
#include "rocksdb/db.h"
#include "tools/bench/data.h"
#include "tools/bench/or_throw.h"
#include "tools/bench/temporary_directory.h"

namespace cairn::bench::update_log {
namespace {

constexpr uint64_t kRows = uint64_t{1} << 20;
constexpr size_t kLogged = size_t{1} << 20;  // updates in a log
constexpr size_t kSlice = size_t{1} << 14;   // about the updates of UpdateLog::kSliceBytes

std::string RandomKey(Random* random) {
  return absl::StrFormat("%016d", random->Below(kRows));
}

// `updates` updates in batches of `batch_size`.
std::vector<rocksdb::WriteBatch> Batches(size_t updates, size_t batch_size) {
  Random random(kSeed);
  std::vector<rocksdb::WriteBatch> batches(updates / batch_size);
  for (rocksdb::WriteBatch& batch : batches) {
    for (size_t i = 0; i < batch_size; ++i) {
      std::string value(100, 'v');
      for (size_t at = 0; at < 48; at += sizeof(uint64_t)) {
        const uint64_t number = random();
        value.replace(at, sizeof number, reinterpret_cast<const char*>(&number), sizeof number);
      }
      batch.Put(RandomKey(&random), value).PermitUncheckedError();
    }
  }
  return batches;
}

// Whether the rows are in memory, or in table files of several levels.
enum class Rows : uint8_t { kInMemory, kInFiles };

// A database with a log of kLogged updates, removed at the end.
class Logged {
 public:
  static Logged& Get(size_t batch_size, rocksdb::CompressionType compression, Rows rows) {
    using Kind = std::tuple<size_t, rocksdb::CompressionType, Rows>;
    static auto* const all = new std::map<Kind, std::unique_ptr<Logged>>;
    std::unique_ptr<Logged>& logged = (*all)[{batch_size, compression, rows}];
    if (logged == nullptr) {
      logged.reset(new Logged(batch_size, compression, rows));
      [[maybe_unused]] static const int registered = std::atexit([] { all->clear(); });
    }
    return *logged;
  }
  rocksdb::DB* db() { return db_.get(); }

 private:
  Logged(size_t batch_size, rocksdb::CompressionType compression, Rows rows) {
    rocksdb::Options options;
    options.wal_compression = compression;
    options.create_if_missing = true;
    options.write_buffer_size = size_t{1} << (rows == Rows::kInMemory ? 30 : 22);
    options.target_file_size_base = options.write_buffer_size;
    options.WAL_size_limit_MB = 10'000;
    OrThrow(rocksdb::DB::Open(options, directory_.path() + "/db", Into(&db_)));
    for (rocksdb::WriteBatch& batch : Batches(kLogged, batch_size)) {
      OrThrow(db_->Write({}, &batch));
    }
    if (rows == Rows::kInFiles) OrThrow(db_->Flush({}));
  }

  const TemporaryDirectory directory_;
  std::unique_ptr<rocksdb::DB> db_;
};

void SetCounters(benchmark::State& state, size_t updates) {
  const auto u = static_cast<double>(updates);
  using benchmark::Counter;
  state.counters["ns_per_update"] =
      Counter(u * 1e-9, Counter::kIsIterationInvariantRate | Counter::kInvert);
  state.counters["updates_per_s"] = Counter(u, Counter::kIsIterationInvariantRate);
}

void Decode(benchmark::State& state) {
  const auto batch_size = static_cast<size_t>(state.range(0));
  const std::vector<rocksdb::WriteBatch> batches = Batches(kSlice, batch_size);
  const size_t updates = batches.size() * batch_size;
  WriteBatchReader reader({FollowedFamily{}});
  std::vector<RowChanges> changes(1);
  uint64_t read = 0;
  for (auto _ : state) {
    changes[0].Clear();
    for (const rocksdb::WriteBatch& batch : batches) {
      read += reader.Read(batch, absl::MakeSpan(changes)).value_or(0);
    }
  }
  if (changes[0].size() != updates || read != updates * state.iterations()) {
    return state.SkipWithError("updates were not read");
  }
  SetCounters(state, updates);
}

void Settle(benchmark::State& state, bool ascending) {
  RowChanges changes;
  std::map<std::string, std::string> expected;
  Random random(kSeed);
  for (size_t i = 0; i < kSlice; ++i) {
    const std::string key = ascending ? absl::StrFormat("%016d", i) : RandomKey(&random);
    const std::string value = absl::StrFormat("%0100d", i);
    changes.Put(key, value);
    expected[key] = value;
  }
  SettledChanges settled;
  for (auto _ : state) {
    settled.Settle(changes);
    benchmark::DoNotOptimize(settled.rows().data());
  }
  auto row = expected.begin();
  for (const RowChange& change : settled.rows()) {
    if (row == expected.end() || change.key != row->first || change.value != row->second) {
      return state.SkipWithError("a row is wrong");
    }
    ++row;
  }
  if (row != expected.end()) return state.SkipWithError("rows are missing");
  SetCounters(state, kSlice);
}

enum class Step : uint8_t { kRead, kReadChecked, kSettle };

void ReadLog(benchmark::State& state, Step step, rocksdb::CompressionType compression,
             Rows rows = Rows::kInMemory) {
  rocksdb::DB* const db = Logged::Get(static_cast<size_t>(state.range(0)), compression, rows).db();
  rocksdb::ColumnFamilyHandle* const families[] = {db->DefaultColumnFamily()};
  const SequenceNumber until = db->GetLatestSequenceNumber();
  std::vector<RowChanges> changes(1);
  SettledChanges settled;
  uint64_t read = 0;
  uint64_t bytes = 0;
  for (auto _ : state) {
    std::optional<FlushedRows> flushed;
    if (step == Step::kReadChecked) flushed.emplace(db, families, nullptr);
    auto log = UpdateLog::Open(db, families, 0, until, {}, {}, flushed ? &*flushed : nullptr);
    if (!log.ok()) return state.SkipWithError("the log does not open");
    while (!(*log)->done()) {
      changes[0].Clear();
      if (!(*log)->Read(UpdateLog::kSliceBytes, absl::MakeSpan(changes)).ok()) {
        return state.SkipWithError("the log cannot be read");
      }
      read += changes[0].size();
      if (step == Step::kSettle) settled.Settle(changes[0]);
    }
    bytes = (*log)->bytes_read();
  }
  if (read != until * state.iterations()) return state.SkipWithError("updates are missing");
  SetCounters(state, until);
  state.counters["bytes_per_s"] =
      benchmark::Counter(static_cast<double>(bytes), benchmark::Counter::kIsIterationInvariantRate);
}

void GetUpdatesSince(benchmark::State& state, rocksdb::CompressionType compression) {
  rocksdb::DB* const db =
      Logged::Get(static_cast<size_t>(state.range(0)), compression, Rows::kInMemory).db();
  const SequenceNumber until = db->GetLatestSequenceNumber();
  uint64_t read = 0;
  for (auto _ : state) {
    std::unique_ptr<rocksdb::TransactionLogIterator> log;
    if (!db->GetUpdatesSince(1, &log).ok()) return state.SkipWithError("the log does not open");
    for (; log->Valid(); log->Next()) read += log->GetBatch().writeBatchPtr->Count();
  }
  if (read != until * state.iterations()) return state.SkipWithError("updates are missing");
  SetCounters(state, until);
}

BENCHMARK(Decode)->Name("UpdateLog/decode")->ArgName("batch")->Arg(1)->Arg(100);
BENCHMARK_CAPTURE(Settle, "", false)->Name("UpdateLog/settle/random");
BENCHMARK_CAPTURE(Settle, "", true)->Name("UpdateLog/settle/ascending");
// A log in batches of one update and of a hundred.
void Batched(benchmark::internal::Benchmark* benchmark) {
  benchmark->ArgName("batch")->Arg(1)->Arg(100)->Unit(benchmark::kMillisecond);
}
BENCHMARK_CAPTURE(ReadLog, "", Step::kRead, rocksdb::kNoCompression)
    ->Name("UpdateLog/read_log")
    ->Apply(Batched);
BENCHMARK_CAPTURE(ReadLog, "", Step::kRead, rocksdb::kZSTD)
    ->Name("UpdateLog/read_log/zstd")
    ->Apply(Batched);
BENCHMARK_CAPTURE(ReadLog, "", Step::kRead, rocksdb::kNoCompression, Rows::kInFiles)
    ->Name("UpdateLog/read_log/unchecked")
    ->Apply(Batched);
BENCHMARK_CAPTURE(ReadLog, "", Step::kReadChecked, rocksdb::kNoCompression, Rows::kInFiles)
    ->Name("UpdateLog/read_log/checked")
    ->Apply(Batched);
BENCHMARK_CAPTURE(ReadLog, "", Step::kSettle, rocksdb::kNoCompression)
    ->Name("UpdateLog/all")
    ->Apply(Batched);
BENCHMARK_CAPTURE(GetUpdatesSince, "", rocksdb::kNoCompression)
    ->Name("UpdateLog/baseline:get_updates_since")
    ->Apply(Batched);
BENCHMARK_CAPTURE(GetUpdatesSince, "", rocksdb::kZSTD)
    ->Name("UpdateLog/baseline:get_updates_since/zstd")
    ->Apply(Batched);

}  // namespace
}  // namespace cairn::bench::update_log
