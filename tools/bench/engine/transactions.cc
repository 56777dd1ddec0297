// Transactions/<what>/rows:<n>: an IndexedDB over a TransactionDB with one index.
//   commit/<plain or indexed>: transactions of 10 updates of random rows, without an IndexedDB and
//     with one;
//   lookup/<keys or rows>/<outside or inside>/writes:<w>: Lookup and LookupRows of one existing key
//     with one row, while a transaction with w uncommitted writes is open, and in it;
//   lookup/keys/<after_write or after_commit>/writes:<w>: a Lookup in a transaction with w writes
//     right after it has overwritten one of these rows, or right after another write has committed.
// Rows have 16 + 100 bytes; the index is of value[0:8]:u64be.
#include <benchmark/benchmark.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "cairn/indexed_db.h"
#include "rocksdb/utilities/transaction_db.h"
#include "rocksdb/write_batch.h"
#include "tools/bench/database.h"
#include "tools/bench/or_throw.h"
#include "tools/bench/temporary_directory.h"

namespace cairn::bench::transactions {
namespace {

constexpr uint64_t kRows = 1'000'000;
constexpr int kWritesOfCommit = 10;

std::string RowValue(uint64_t value) {
  return BenchDatabase::BigEndian(value) + std::string(92, 'v');
}

class Database {
 public:
  explicit Database(bool indexed) : rows_(BenchRows(kRows)) {
    rocksdb::Options options;
    options.create_if_missing = true;
    options.compression = rocksdb::kNoCompression;
    options.WAL_size_limit_MB = 4096;
    OrThrow(rocksdb::TransactionDB::Open(options, {}, directory_.path() + "/db", &transactions_));
    db_.reset(transactions_);
    for (uint64_t row = 0; row < rows_;) {
      rocksdb::WriteBatch batch;
      for (int i = 0; i < 1000 && row < rows_; ++i, ++row) {
        OrThrow(batch.Put(BenchDatabase::PrimaryKey(row), RowValue(BenchDatabase::Value(row))));
      }
      OrThrow(db_->Write({}, &batch));
    }
    OrThrow(db_->Flush({}));
    if (!indexed) return;
    indexed_ = OrThrow(IndexedDB::Attach(db_));
    OrThrow(indexed_->CreateIndex("by_value = value[0:8]:u64be"));
    OrThrow(indexed_->WaitUntilReady("by_value"));
  }

  IndexedDB* operator->() { return indexed_.get(); }
  std::unique_ptr<rocksdb::Transaction> Begin() {
    return std::unique_ptr<rocksdb::Transaction>(transactions_->BeginTransaction({}));
  }
  uint64_t RandomRow() { return random_() % rows_; }
  // Gives a random value to a random row.
  void Update(rocksdb::Transaction* transaction) { Update(transaction, RandomRow()); }
  void Update(rocksdb::Transaction* transaction, uint64_t row) {
    OrThrow(transaction->Put(BenchDatabase::PrimaryKey(row), RowValue(random_())));
  }

 private:
  const TemporaryDirectory directory_;
  const uint64_t rows_;
  std::mt19937_64 random_{1};
  rocksdb::TransactionDB* transactions_ = nullptr;
  std::shared_ptr<rocksdb::DB> db_;
  std::unique_ptr<IndexedDB> indexed_;
};

void Commit(benchmark::State& state, bool indexed) {
  Database db(indexed);
  for (auto _ : state) {
    const auto transaction = db.Begin();
    for (int i = 0; i < kWritesOfCommit; ++i) db.Update(transaction.get());
    OrThrow(transaction->Commit());
  }
  state.SetItemsProcessed(state.iterations() * kWritesOfCommit);
}

enum class Before { kNothing, kWrite, kCommit };

void Lookup(benchmark::State& state, bool rows, bool inside, Before before, int writes) {
  Database db(/*indexed=*/true);
  const auto transaction = db.Begin();
  // The lookups are of other rows: those with even numbers.
  std::vector<uint64_t> own(static_cast<size_t>(writes));
  for (uint64_t& row : own) {
    row = db.RandomRow() | 1;
    db.Update(transaction.get(), row);
  }
  LookupOptions options;
  if (inside) options.transaction = transaction.get();
  uint64_t found = 0;
  size_t next = 0;
  for (auto _ : state) {
    if (before == Before::kWrite) {
      transaction->SetSavePoint();
      db.Update(transaction.get(), own[next++ % own.size()]);
    }
    if (before == Before::kCommit) OrThrow(db->Put({}, "other", RowValue(next++)));
    const uint64_t value = BenchDatabase::Value(db.RandomRow() & ~uint64_t{1});
    const auto begin = std::chrono::steady_clock::now();
    if (rows) {
      found += OrThrow(db->LookupRows("by_value", value, options)).size();
    } else {
      found += OrThrow(db->Lookup("by_value", value, options)).size();
    }
    const std::chrono::duration<double> time = std::chrono::steady_clock::now() - begin;
    state.SetIterationTime(time.count());
    if (before == Before::kWrite) OrThrow(transaction->RollbackToSavePoint());
  }
  if (found < static_cast<uint64_t>(state.iterations())) {
    throw std::runtime_error("a row was not found");
  }
}

std::string Name(const std::string& what) {
  return "Transactions/" + what + "/rows:" + std::to_string(BenchRows(kRows));
}

[[maybe_unused]] const bool registered = [] {
  for (const bool indexed : {false, true}) {
    benchmark::RegisterBenchmark(Name(indexed ? "commit/indexed" : "commit/plain").c_str(), Commit,
                                 indexed)
        ->UseRealTime()
        ->Iterations(30000)
        ->Unit(benchmark::kMicrosecond);
  }
  const auto add = [](const std::string& name, bool rows, bool inside, Before before, int writes,
                      int iterations) {
    benchmark::RegisterBenchmark(Name(absl::StrFormat("lookup/%s/writes:%d", name, writes)).c_str(),
                                 Lookup, rows, inside, before, writes)
        ->UseManualTime()
        ->Iterations(iterations)
        ->Unit(benchmark::kMicrosecond);
  };
  for (const int writes : {1, 100}) {
    for (const bool rows : {false, true}) {
      for (const bool inside : {false, true}) {
        add(std::string(rows ? "rows" : "keys") + (inside ? "/inside" : "/outside"), rows, inside,
            Before::kNothing, writes, 50000);
      }
    }
    add("keys/after_write", false, true, Before::kWrite, writes, 3000);
    add("keys/after_commit", false, true, Before::kCommit, writes, 3000);
  }
  return true;
}();

}  // namespace
}  // namespace cairn::bench::transactions
