// Transactions of the database below an IndexedDB.
#include <boost/test/unit_test.hpp>
#include <memory>

#include "cairn/indexed_db.h"
#include "rocksdb/utilities/optimistic_transaction_db.h"
#include "rocksdb/utilities/transaction_db.h"
#include "test/engine/indexed_database.h"
#include "test/engine/live/indexed_db_checks.h"
#include "test/require_ok.h"

namespace cairn {
BOOST_AUTO_TEST_SUITE(indexed_db_transactions_test)
namespace {

BOOST_AUTO_TEST_CASE(transactions_underneath_are_seen_once_they_commit) {
  TemporaryDirectory directory;
  rocksdb::Options options;
  options.create_if_missing = true;
  rocksdb::TransactionDB* transactions = nullptr;
  RequireOk(rocksdb::TransactionDB::Open(options, {}, directory / "db", &transactions));
  const auto attached = RequireOk(IndexedDB::Attach(std::shared_ptr<rocksdb::DB>(transactions)));
  IndexedDB* const db = attached.get();
  RequireOk(db->CreateIndex(SpecOf(kByColour)));
  RequireOk(db->WaitUntilReady("by_colour"));

  std::unique_ptr<rocksdb::Transaction> transaction(transactions->BeginTransaction({}));
  RequireOk(transaction->Put("a", "red"));
  BOOST_TEST(RowsOf(db, "by_colour", "red") == "");
  RequireOk(transaction->Commit());
  BOOST_TEST(RowsOf(db, "by_colour", "red") == "a");

  transaction.reset(transactions->BeginTransaction({}));
  RequireOk(transaction->Put("b", "red"));
  RequireOk(transaction->Rollback());
  RequireOk(db->Put({}, "c", "red"));
  BOOST_TEST(RowsOf(db, "by_colour", "red") == "a c");

  transaction.reset(transactions->BeginTransaction({}));
  RequireOk(transaction->SetName("two phases"));
  RequireOk(transaction->Put("d", "red"));
  RequireOk(transaction->Prepare());
  RequireOk(db->Put({}, "e", "red"));
  BOOST_TEST(RowsOf(db, "by_colour", "red") == "a c e");
  RequireOk(db->Flush({}));  // so that the commit is in another log file
  RequireOk(db->Put({}, "f", "red"));
  BOOST_TEST(RowsOf(db, "by_colour", "red") == "a c e f");
  RequireOk(transaction->Commit());
  BOOST_TEST(RowsOf(db, "by_colour", "red") == "a c d e f");
  transaction.reset();
  CheckAgainstDatabase(db, "by_colour", nullptr);
}

BOOST_AUTO_TEST_CASE(optimistic_transactions_underneath_are_seen_once_they_commit) {
  TemporaryDirectory directory;
  rocksdb::Options options;
  options.create_if_missing = true;
  rocksdb::OptimisticTransactionDB* transactions = nullptr;
  RequireOk(rocksdb::OptimisticTransactionDB::Open(options, directory / "db", &transactions));
  const auto db = RequireOk(IndexedDB::Attach(std::shared_ptr<rocksdb::DB>(transactions)));
  RequireOk(db->CreateIndex(SpecOf(kByColour)));
  RequireOk(db->WaitUntilReady("by_colour"));
  const std::unique_ptr<rocksdb::Transaction> wins(transactions->BeginTransaction({}));
  const std::unique_ptr<rocksdb::Transaction> loses(transactions->BeginTransaction({}));
  RequireOk(wins->Put("a", "red"));
  RequireOk(loses->Put("a", "blue"));
  RequireOk(wins->Commit());
  BOOST_TEST(loses->Commit().IsBusy());
  BOOST_TEST(RowsOf(db.get(), "by_colour", "red") == "a");
  BOOST_TEST(RowsOf(db.get(), "by_colour", "blue") == "");
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
