#include "engine/log/update_log.h"

#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "index/machine/status_macros.h"
#include "rocksdb/utilities/optimistic_transaction_db.h"
#include "rocksdb/utilities/transaction.h"
#include "rocksdb/utilities/transaction_db.h"
#include "test/engine/log/update_log_errors.h"
#include "test/engine/logged_database.h"
#include "test/require_ok.h"
#include "test/sanitizer.h"

namespace cairn {
BOOST_AUTO_TEST_SUITE(update_log_transactions_test, *StartsNoThread())
namespace {

std::unique_ptr<rocksdb::Transaction> Begin(LoggedDatabase* database, const std::string& name) {
  std::unique_ptr<rocksdb::Transaction> transaction(
      database->transactions()->BeginTransaction(rocksdb::WriteOptions()));
  RequireOk(transaction->SetName(name));
  return transaction;
}

BOOST_AUTO_TEST_CASE(follows_transactions_that_are_not_prepared) {
  LoggedDatabase database(LoggedDatabase::DefaultOptions(), Kind::kTransactions);
  const Point before = database.Now();
  const auto& families = database.families();
  for (int i = 0; i < 30; ++i) {
    const std::unique_ptr<rocksdb::Transaction> transaction(
        database.transactions()->BeginTransaction(rocksdb::WriteOptions()));
    RequireOk(transaction->Put(families[0], std::to_string(i), "committed"));
    RequireOk(transaction->Merge(families[1], std::to_string(i % 7), "operand"));
    BOOST_REQUIRE((i % 3 == 0 ? transaction->Rollback() : transaction->Commit()).ok());
  }
  database.Follow(before, database.Now());
}

BOOST_AUTO_TEST_CASE(follows_optimistic_transactions) {
  rocksdb::Options options = LoggedDatabase::DefaultOptions();
  TemporaryDirectory directory;
  rocksdb::OptimisticTransactionDB* opened = nullptr;
  RequireOk(rocksdb::OptimisticTransactionDB::Open(options, directory / "db", &opened));
  const std::unique_ptr<rocksdb::OptimisticTransactionDB> db(opened);
  for (int i = 0; i < 20; ++i) {
    const std::unique_ptr<rocksdb::Transaction> transaction(db->BeginTransaction({}));
    RequireOk(transaction->Put("key", std::to_string(i)));
    if (i % 2 == 0) RequireOk(db->Put({}, "key", "in between"));
    BOOST_REQUIRE(transaction->Commit().IsBusy() == (i % 2 == 0));
  }
  std::vector<RowChanges> changes(1);
  auto log = RequireOk(UpdateLog::Open(db.get(), {db->DefaultColumnFamily()}, 0, 20));
  RequireOk(log->Read(SIZE_MAX, absl::MakeSpan(changes)));
  BOOST_REQUIRE_EQUAL(changes[0].size(), 20u);
  for (size_t i = 0; i < 20; ++i) {
    BOOST_TEST((changes[0][i].value == (i % 2 == 0 ? "in between" : std::to_string(i))));
  }
}

BOOST_AUTO_TEST_CASE(follows_two_phase_commit) {
  for (bool two_queues : {false, true}) {
    rocksdb::Options options = LoggedDatabase::DefaultOptions();
    options.two_write_queues = two_queues;
    LoggedDatabase database(options, Kind::kTransactions);
    const auto& families = database.families();
    std::vector<Point> points = {database.Now()};
    const auto first = Begin(&database, "first");
    RequireOk(first->Put(families[0], "a", "1"));
    RequireOk(first->Put(families[1], "b", "2"));
    RequireOk(first->Merge(families[1], "c", "3"));
    RequireOk(first->Prepare());
    database.Put("x", "1");
    points.push_back(database.Now());
    const auto second = Begin(&database, "second");
    RequireOk(second->Delete(families[0], "x"));
    RequireOk(second->Prepare());
    const auto third = Begin(&database, "third");
    RequireOk(third->Put(families[0], "never", "there"));
    RequireOk(third->Prepare());
    points.push_back(database.Now());
    RequireOk(first->GetCommitTimeWriteBatch()->Put(families[2], "at commit", "4"));
    RequireOk(first->Commit());
    points.push_back(database.Now());
    RequireOk(third->Rollback());
    database.Put("y", "2");
    points.push_back(database.Now());
    RequireOk(second->Commit());
    const auto again = Begin(&database, "first");
    RequireOk(again->Put(families[0], "a", "another of that name"));
    RequireOk(again->Prepare());
    RequireOk(again->Commit());
    const auto empty = Begin(&database, "empty");
    RequireOk(empty->Prepare());
    RequireOk(empty->Commit());
    database.Put("z", "3");
    points.push_back(database.Now());
    // From every point: prepared before it, committed after it.
    for (const Point& from : points) {
      for (size_t slice_bytes : {1, 1 << 20}) {
        database.Follow(from, points.back(), {}, slice_bytes);
      }
    }
    BOOST_TEST(points.back().rows[0].count("x") == 0u);
    BOOST_TEST(points.back().rows[2].size() == 1u);
  }
}

BOOST_AUTO_TEST_CASE(finds_what_was_prepared_in_an_older_log_file) {
  // An archive then has files that are newer than the one that is kept for the transaction.
  for (const rocksdb::Options& options : {WithoutArchive(), LoggedDatabase::DefaultOptions()}) {
    LoggedDatabase database(options, Kind::kTransactions);
    auto transaction = Begin(&database, "old");
    RequireOk(transaction->Put(database.families()[0], "a", "prepared"));
    RequireOk(transaction->Put(database.families()[1], "b", "prepared"));
    RequireOk(transaction->Prepare());
    for (int round = 0; round < 3; ++round) {
      for (int i = 0; i < 10; ++i) database.Put(std::to_string(i), std::to_string(round));
      database.Flush();
    }
    const Point before = database.Now();
    const LogPosition position = database.Follow(before, before);
    RequireOk(transaction->Commit());
    const Point after = database.Now();
    database.Follow(before, after);
    database.Follow(before, after, position);
    BOOST_TEST(after.rows[0].at("a") == "prepared");

    // Without that file, the loss of the commit is detected.
    const auto files = RequireOk(ListWalFiles(database.db()));
    std::filesystem::remove(files.front().path);
    BOOST_TEST(IsMissing(database.Error(before.sequence, after.sequence), {"'old'", "commits at"}));
  }
}

BOOST_AUTO_TEST_CASE(finds_what_was_prepared_before_the_database_was_opened) {
  LoggedDatabase database(WithoutArchive(), Kind::kTransactions);
  {
    const auto transaction = Begin(&database, "recovered");
    RequireOk(transaction->Put(database.families()[0], "a", "prepared"));
    RequireOk(transaction->Prepare());
  }
  database.Put("b", "1");
  database.Reopen();
  const Point before = database.Now();
  const std::unique_ptr<rocksdb::Transaction> transaction(
      database.transactions()->GetTransactionByName("recovered"));
  BOOST_REQUIRE(transaction != nullptr);
  RequireOk(transaction->Commit());
  database.Put("c", "2");
  const Point after = database.Now();
  database.Follow(before, after);
  BOOST_TEST(after.rows[0].at("a") == "prepared");
}

BOOST_AUTO_TEST_CASE(refuses_transactions_that_are_written_before_they_commit) {
  for (const auto policy : {rocksdb::WRITE_PREPARED, rocksdb::WRITE_UNPREPARED}) {
    rocksdb::Options options;
    options.create_if_missing = true;
    rocksdb::TransactionDBOptions transactions;
    transactions.write_policy = policy;
    TemporaryDirectory directory;
    rocksdb::TransactionDB* opened = nullptr;
    RequireOk(rocksdb::TransactionDB::Open(options, transactions, directory / "db", &opened));
    const std::unique_ptr<rocksdb::TransactionDB> db(opened);
    RequireOk(db->Put({}, "a", "1"));
    const absl::Status s =
        UpdateLog::Open(db.get(), {db->DefaultColumnFamily()}, 0, db->GetLatestSequenceNumber())
            .status();
    BOOST_TEST(absl::IsUnimplemented(s), s.ToString());
    BOOST_TEST(s.ToString().find("WritePrepared") != std::string::npos);
  }
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
