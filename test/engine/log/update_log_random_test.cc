// The output of an UpdateLog, applied to a state of a database, results in a later state: for
// random writes of every kind to databases of every kind, between any two of their states.
#include <boost/test/unit_test.hpp>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "engine/util/key_order.h"
#include "rocksdb/utilities/transaction.h"
#include "rocksdb/utilities/transaction_db.h"
#include "test/engine/key_orders.h"
#include "test/engine/logged_database.h"
#include "test/engine/rocksdb_features.h"
#include "test/require_ok.h"
#include "test/sanitizer.h"
#include "test/test_random.h"

namespace cairn {
BOOST_AUTO_TEST_SUITE(update_log_random_test, *StartsNoThread())
namespace {

using Kind = LoggedDatabase::Kind;
using Point = LoggedDatabase::Point;

constexpr size_t kEntities = 2;  // the column family with wide columns and without merges

class RandomWriter {
 public:
  RandomWriter(LoggedDatabase* database, bool transactions, std::mt19937_64* random)
      : database_(*database), transactions_(transactions), random_(*random) {}

  void Step() {
    const uint64_t step = random_() % 100;
    if (step < 2) return database_.Flush();
    if (step < 4) return FlushOne();
    if (step < 5) return Reopen();
    if (transactions_ && step < 40) return StepTransaction();
    rocksdb::WriteBatch batch;
    const size_t records = random_() % 4 == 0 ? random_() % 30 : 1;
    for (size_t i = 0; i < records; ++i) AddRecord(&batch);
    Write(&batch);
  }

 private:
  static constexpr size_t kSlots = 4;

  std::string Key() { return "k" + std::to_string(100 + random_() % 150); }

  void AddRecord(rocksdb::WriteBatch* batch) {
    const size_t index = random_() % 3;
    rocksdb::ColumnFamilyHandle* const family = database_.families()[index];
    const std::string value = std::to_string(++values_);
    rocksdb::Status s;
    const uint64_t kind = random_() % 100;
    if (kind < 40) {
      s = batch->Put(family, Key(), value + std::string(random_() % 20 == 0 ? 5000 : 0, 'x'));
    } else if (kind < 55) {
      s = batch->Delete(family, Key());
    } else if (kind < 75) {
      s = index == kEntities ? batch->PutEntity(family, Key(), {{"", value}, {"city", value}})
                             : batch->Merge(family, Key(), value);
    } else if (kind < 80) {
      const std::string lower = Key();
      const std::string upper = Key();
      if (!IsBefore(KnownKeyOrderOf(family), upper, lower)) {
        s = batch->DeleteRange(family, lower, upper);
      }
    } else if (kind < 90) {
      s = batch->Put(family, "single" + value, value);
      singles_.push_back({index, "single" + value});
    } else if (kind < 95 && !singles_.empty()) {
      const auto [single_index, key] = singles_.back();
      singles_.pop_back();
      s = batch->SingleDelete(database_.families()[single_index], key);
    } else {
      s = batch->PutLogData("data");
    }
    RequireOk(s);
  }

  void Write(rocksdb::WriteBatch* batch) {
    rocksdb::Status s;
    if (transactions_) {
      rocksdb::TransactionDBWriteOptimizations past_locks;
      past_locks.skip_concurrency_control = true;
      s = database_.transactions()->Write({}, past_locks, batch);
    } else {
      s = database_.db()->Write({}, batch);
    }
    RequireOk(s);
  }

  // Begins a transaction in a free slot, or continues the existing one.
  void StepTransaction() {
    const size_t slot = random_() % kSlots;
    std::unique_ptr<rocksdb::Transaction>& transaction = slots_[slot];
    if (transaction == nullptr) {
      rocksdb::TransactionOptions options;
      if (random_() % 2 == 0) BypassMemtable(&options);
      transaction.reset(database_.transactions()->BeginTransaction({}, options));
      RequireOk(transaction->SetName("slot " + std::to_string(slot)));
      for (size_t i = random_() % 5; i > 0; --i) {
        const std::string key = "t" + std::to_string(slot) + "-" + std::to_string(random_() % 5);
        const std::string value = std::to_string(++values_);
        const auto& families = database_.families();
        RequireOk(transaction->Put(families[random_() % 3], key, value));
        RequireOk(transaction->Merge(families[1], key, value));
        RequireOk(transaction->Delete(families[0], key));
      }
      RequireOk(transaction->Prepare());
      return;
    }
    const bool rolls_back = random_() % 4 == 0;
    if (!rolls_back && random_() % 3 == 0) {
      RequireOk(transaction->GetCommitTimeWriteBatch()->Put(database_.families()[0], Key(),
                                                            "at commit time"));
    }
    BOOST_REQUIRE((rolls_back ? transaction->Rollback() : transaction->Commit()).ok());
    transaction.reset();
  }

  void FlushOne() { RequireOk(database_.db()->Flush({}, database_.families()[random_() % 3])); }

  void Reopen() {
    for (auto& slot : slots_) slot.reset();  // prepared ones are recovered
    database_.Reopen();
    if (!transactions_) return;
    for (size_t slot = 0; slot < kSlots; ++slot) {
      slots_[slot].reset(
          database_.transactions()->GetTransactionByName("slot " + std::to_string(slot)));
    }
  }

  LoggedDatabase& database_;
  const bool transactions_;
  std::mt19937_64& random_;
  uint64_t values_ = 0;
  std::vector<std::pair<size_t, std::string>> singles_;
  std::unique_ptr<rocksdb::Transaction> slots_[kSlots];
};

void Run(const rocksdb::Options& options, Kind kind, uint64_t salt) {
  auto random = TestRandom(salt);
  LoggedDatabase database(options, kind);
  RandomWriter writer(&database, kind == Kind::kTransactions, &random);
  std::vector<Point> points = {database.Now()};
  LogPosition position;
  for (int round = 0; round < 25; ++round) {
    for (size_t steps = random() % 40; steps > 0; --steps) writer.Step();
    Point now = database.Now();
    const size_t slice_bytes = random() % 3 == 0 ? 1 : random() % 20000;
    position = database.Follow(points.back(), now, position, slice_bytes);
    database.Follow(points[random() % points.size()], now, {}, slice_bytes);
    points.push_back(std::move(now));
  }
}

BOOST_AUTO_TEST_CASE(plain_databases) {
  for (uint64_t salt = 0; salt < 4; ++salt) {
    rocksdb::Options options = LoggedDatabase::DefaultOptions();
    options.enable_pipelined_write = salt % 2 == 1;
    options.manual_wal_flush = salt == 2;
    options.write_buffer_size = salt == 3 ? 100000 : 64 << 20;
    options.avoid_flush_during_shutdown = salt != 2;
    Run(options, Kind::kPlain, salt);
  }
}

BOOST_AUTO_TEST_CASE(databases_in_other_orders) {
  for (uint64_t salt = 30; salt < 36; ++salt) {
    rocksdb::Options options = LoggedDatabase::DefaultOptions();
    options.comparator = test::Orders()[salt % 3].comparator;
    options.write_buffer_size = salt % 2 == 0 ? 100000 : 64 << 20;
    options.avoid_flush_during_shutdown = true;
    Run(options, salt < 34 ? Kind::kPlain : Kind::kTransactions, salt);
  }
}

BOOST_AUTO_TEST_CASE(databases_with_blob_files_and_atomic_flushes) {
  rocksdb::Options options = LoggedDatabase::DefaultOptions();
  options.enable_blob_files = true;
  options.min_blob_size = 1000;
  options.atomic_flush = true;
  Run(options, Kind::kPlain, 10);
}

BOOST_AUTO_TEST_CASE(logs_whose_files_are_linked) {
  for (uint64_t salt = 14; salt < 18; ++salt) {
    rocksdb::Options options = LoggedDatabase::DefaultOptions();
    LinkLogFiles(&options);
    options.avoid_flush_during_shutdown = true;
    options.write_buffer_size = salt % 2 == 0 ? 100000 : 64 << 20;
    if (salt >= 16) options.wal_compression = rocksdb::kZSTD;
    Run(options, Kind::kPlain, salt);
  }
}

BOOST_AUTO_TEST_CASE(databases_that_write_blobs_directly) {
  for (uint64_t salt = 12; salt < 14; ++salt) {
    rocksdb::Options options = LoggedDatabase::DefaultOptions();
    // The database cannot be opened while its log refers to blobs of no table file.
    options.avoid_flush_during_shutdown = false;
    options.write_buffer_size = salt == 12 ? 100000 : 64 << 20;
    if (WriteBlobsDirectly(/*bytes=*/salt == 12 ? 1000 : 3, &options)) {
      Run(options, Kind::kPlain, salt);
    }
  }
}

BOOST_AUTO_TEST_CASE(transactions_in_two_phases) {
  for (uint64_t salt = 20; salt < 26; ++salt) {
    rocksdb::Options options = LoggedDatabase::DefaultOptions();
    options.two_write_queues = salt % 2 == 0;
    options.avoid_flush_during_shutdown = salt % 3 == 0;
    options.write_buffer_size = salt >= 24 ? 100000 : 64 << 20;
    Run(options, Kind::kTransactions, salt);
  }
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
