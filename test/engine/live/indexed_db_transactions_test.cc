// Transactions of the database below an IndexedDB.
#include <boost/test/unit_test.hpp>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "cairn/indexed_db.h"
#include "cairn/predicate.h"
#include "rocksdb/snapshot.h"
#include "rocksdb/utilities/optimistic_transaction_db.h"
#include "rocksdb/utilities/transaction_db.h"
#include "test/engine/indexed_database.h"
#include "test/engine/live/indexed_db_checks.h"
#include "test/engine/live/query_checks.h"
#include "test/require_ok.h"
#include "test/test_random.h"

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

using Base = IndexedDatabase::Base;

LookupOptions In(rocksdb::Transaction* transaction, const rocksdb::Snapshot* snapshot = nullptr) {
  LookupOptions options;
  options.transaction = transaction;
  options.snapshot = snapshot;
  return options;
}

std::string KeysIn(IndexedDB* db, const std::string& index, const KeyQuery& query,
                   const LookupOptions& options) {
  const FoundKeys found = RequireOk(db->Lookup(index, query, options));
  std::string keys;
  for (std::string_view key : found) {
    keys.append(keys.empty() ? "" : " ").append(key);
  }
  return keys;
}

// Compares all kinds of queries in a transaction with a scan through it.
void CheckInTransaction(IndexedDB* db, rocksdb::Transaction* transaction,
                        const rocksdb::Snapshot* snapshot) {
  rocksdb::ReadOptions read;
  read.snapshot = snapshot;
  const std::unique_ptr<rocksdb::Iterator> rows(transaction->GetIterator(read));
  CheckQueries(db, In(transaction, snapshot), rows.get());
}

BOOST_AUTO_TEST_CASE(queries_in_a_transaction_see_its_writes) {
  for (const Base base : {Base::kTransactionDb, Base::kOptimisticTransactionDb}) {
    IndexedDatabase db({}, base);
    db.Put("a", "red|1");
    db.Put("b", "blue|2");
    db.Create(kColor);
    db.Create(kNumber);
    const auto transaction = db.Begin();
    const auto color = [&](const char* of, const rocksdb::Snapshot* at = nullptr) {
      return KeysIn(db.get(), "color", of, In(transaction.get(), at));
    };
    BOOST_TEST(color("red") == "a");
    RequireOk(transaction->Put("c", "red|3"));
    BOOST_TEST(color("red") == "a c");
    BOOST_TEST(KeysIn(db.get(), "color", "red", {}) == "a");
    transaction->SetSavePoint();
    RequireOk(transaction->Delete("a"));
    RequireOk(transaction->Put("b", "red|2"));
    BOOST_TEST(color("red") == "b c");
    RequireOk(transaction->RollbackToSavePoint());
    BOOST_TEST(color("red") == "a c");
    // Another one commits in between.
    rocksdb::ManagedSnapshot before(db.get());
    db.Put("d", "red|4");
    BOOST_TEST(color("red") == "a c d");
    BOOST_TEST(color("red", before.snapshot()) == "a c");
    const FoundRows rows = RequireOk(db->LookupRows("color", "red", In(transaction.get())));
    BOOST_REQUIRE(rows.size() == 3u);
    BOOST_TEST(rows[1].primary_key == "c");
    BOOST_TEST(rows[1].value == "red|3");
    CheckInTransaction(db.get(), transaction.get(), nullptr);
    CheckInTransaction(db.get(), transaction.get(), before.snapshot());
    RequireOk(transaction->Rollback());
    BOOST_TEST(color("red") == "a d");
    RequireOk(transaction->Put("e", "red"));
    BOOST_TEST(color("red") == "a d e");
    RequireOk(transaction->Commit());
    BOOST_TEST(KeysIn(db.get(), "color", "red", {}) == "a d e");
  }
}

BOOST_AUTO_TEST_CASE(queries_in_random_transactions_agree_with_scans_through_them) {
  auto random = TestRandom();
  for (const Base base : {Base::kTransactionDb, Base::kOptimisticTransactionDb}) {
    IndexedDatabase db({}, base);
    for (int i = 0; i < 30; ++i) db.Put(absl::StrCat("row", i), RandomValue(random));
    db.Create(kColor);
    db.Create(kNumber);
    std::unique_ptr<rocksdb::Transaction> transaction = db.Begin();
    auto snapshot = std::make_unique<rocksdb::ManagedSnapshot>(db.get());
    int save_points = 0;
    bool prepared = false;
    const auto begin = [&] {
      transaction = db.Begin();
      snapshot = std::make_unique<rocksdb::ManagedSnapshot>(db.get());
      save_points = 0;
      prepared = false;
    };
    for (int step = 0; step < 1500; ++step) {
      // The transaction's rows have even numbers, so that no write waits for a lock.
      const std::string own = absl::StrCat("row", 2 * (random() % 30));
      const std::string other = absl::StrCat("row", 1 + 2 * (random() % 30));
      const size_t choice = random() % 24;
      if (choice < 9 && !prepared) {
        switch (choice) {
          case 0:
            RequireOk(transaction->Delete(own));
            break;
          case 1:
            RequireOk(transaction->Merge(own, absl::StrCat(random() % 10)));
            break;
          case 2:
            transaction->SetSavePoint();
            ++save_points;
            break;
          case 3:
            if (save_points > 0) {
              RequireOk(transaction->RollbackToSavePoint());
              --save_points;
            }
            break;
          default:
            RequireOk(transaction->Put(own, RandomValue(random)));
        }
      } else if (choice < 14) {
        RequireOk(random() % 4 == 0 ? db->Delete({}, other)
                                    : db->Put({}, other, RandomValue(random)));
      } else if (choice == 14 && random() % 4 == 0) {
        RequireOk(db->CompactIndex(random() % 2 == 0 ? "color" : "number"));
      } else if (choice == 15 && random() % 3 == 0) {
        RequireOk(random() % 3 == 0 ? transaction->Rollback() : transaction->Commit());
        begin();
      } else if (choice == 16 && random() % 4 == 0 && base == Base::kTransactionDb && !prepared) {
        RequireOk(transaction->SetName(absl::StrCat("transaction", step)));
        RequireOk(transaction->Prepare());
        prepared = true;
      } else if (choice == 17) {
        CheckInTransaction(db.get(), transaction.get(), snapshot->snapshot());
      } else if (choice > 17) {
        CheckInTransaction(db.get(), transaction.get(), nullptr);
      }
    }
    snapshot.reset();
  }
}

BOOST_AUTO_TEST_CASE(rows_are_locked_for_update) {
  IndexedDatabase db({}, Base::kTransactionDb);
  db.Put("a", "red|1");
  db.Put("b", "blue|2");
  db.Put("c", "red|3");
  db.Create(kColor);
  const auto first = db.Begin(), second = db.Begin();
  second->SetLockTimeout(1);
  RequireOk(second->Put("d", "red|4"));
  const FoundRows rows = RequireOk(db->LookupForUpdate("color", "red", In(first.get())));
  BOOST_REQUIRE(rows.size() == 2u);
  BOOST_TEST(rows[1].value == "red|3");
  BOOST_TEST(second->Put("a", "blue|1").IsTimedOut());
  BOOST_TEST(db->LookupForUpdate("color", "red", In(second.get())).status().code() ==
             absl::StatusCode::kDeadlineExceeded);
  RequireOk(second->Put("b", "red|2"));  // not locked
  RequireOk(second->Commit());
  BOOST_TEST(KeysIn(db.get(), "color", "red", In(first.get())) == "a b c d");
  BOOST_TEST(RequireOk(db->LookupForUpdate("color", "red", In(first.get()))).size() == 4u);

  // Rows that changed after the transaction's snapshot are a conflict.
  const auto third = db.Begin();
  third->SetSnapshot();
  RequireOk(first->Commit());
  db.Put("a", "red|5");
  BOOST_TEST(db->LookupForUpdate("color", "red", In(third.get())).status().code() ==
             absl::StatusCode::kUnavailable);

  BOOST_TEST(db->LookupForUpdate("color", "red", {}).status().code() ==
             absl::StatusCode::kInvalidArgument);
  rocksdb::ManagedSnapshot snapshot(db.get());
  BOOST_TEST(
      db->LookupForUpdate("color", "red", In(third.get(), snapshot.snapshot())).status().code() ==
      absl::StatusCode::kInvalidArgument);
}

BOOST_AUTO_TEST_CASE(an_optimistic_transaction_fails_if_a_row_for_update_has_changed) {
  IndexedDatabase db({}, Base::kOptimisticTransactionDb);
  db.Put("a", "red|1");
  db.Create(kColor);
  const auto transaction = db.Begin();
  RequireOk(db->LookupForUpdate("color", "red", In(transaction.get())));
  RequireOk(transaction->Put("b", "red|2"));
  db.Put("a", "blue|1");
  BOOST_TEST(transaction->Commit().IsBusy());
  BOOST_TEST(KeysIn(db.get(), "color", "red", {}) == "");
}

BOOST_AUTO_TEST_CASE(a_transaction_that_cannot_be_read_is_refused) {
  IndexedDatabase db({}, Base::kTransactionDb);
  db.Put("a", "red|1");
  db.Create(kColor);
  db.Create("strict=value.field('|',1):u32");
  db.Create("loose=value:text,dropped_rows=ignore");
  const auto transaction = db.Begin();
  const auto lookup = [&](const char* index) {
    return db->Lookup(index, KeyQuery::Everything(), In(transaction.get())).status();
  };
  RequireOk(transaction->Put("b", "red|none"));
  BOOST_TEST(lookup("strict").code() == absl::StatusCode::kInvalidArgument);
  RequireOk(lookup("color"));
  RequireOk(lookup("loose"));
  BOOST_TEST(db->LookupRows("loose", "red|1", In(transaction.get())).status().code() ==
             absl::StatusCode::kUnimplemented);
  RequireOk(transaction->Put("b", "red|2"));
  RequireOk(lookup("strict"));
  transaction->DisableIndexing();
  RequireOk(transaction->Put("b", "red|3"));
  BOOST_TEST(lookup("color").code() == absl::StatusCode::kUnimplemented);
  transaction->EnableIndexing();
  RequireOk(transaction->Put("b", "red|3"));
  RequireOk(lookup("color"));
  transaction->DisableIndexing();
  RequireOk(transaction->Delete("b"));
  BOOST_TEST(lookup("color").code() == absl::StatusCode::kUnimplemented);
  transaction->EnableIndexing();
  RequireOk(transaction->Put("b", "red|4"));
  BOOST_TEST(KeysIn(db.get(), "strict", 4, In(transaction.get())) == "b");

  const auto index = RequireOk(db->Index("color"));
  BOOST_TEST(index->Lookup("red", In(transaction.get())).status().code() ==
             absl::StatusCode::kInvalidArgument);
}

BOOST_AUTO_TEST_CASE(aggregates_in_a_transaction_leave_those_outside_alone) {
  IndexedDatabase db({}, Base::kTransactionDb);
  for (int i = 0; i < 100; ++i) db.Put(absl::StrCat("row", 100 + i), absl::StrCat("red|", i));
  db.Create("number=value.field('|',1):u32,include(copy=value.field('|',1):u32)");
  const auto sum = [&](rocksdb::Transaction* transaction) {
    const auto index = RequireOk(db->Pin("number", In(transaction)));
    std::vector<ColumnValues> values;
    RequireOk(index->AggregateRanges(RangeBatch::Everything(index->kind()),
                                     {Aggregate::Sum("copy")}, &values));
    return std::get<uint64_t>(values[0].value(0));
  };
  BOOST_TEST(sum(nullptr) == 4950u);
  const auto transaction = db.Begin();
  RequireOk(transaction->Put("row110", "red|0"));
  BOOST_TEST(sum(transaction.get()) == 4940u);
  RequireOk(transaction->Rollback());
  db.Put("row120", "red|0");
  BOOST_TEST(sum(nullptr) == 4930u);
  RequireOk(transaction->Put("row130", "red|0"));
  BOOST_TEST(sum(transaction.get()) == 4900u);
  BOOST_TEST(sum(nullptr) == 4930u);
}

BOOST_AUTO_TEST_CASE(a_transaction_after_an_opening_and_over_a_deleted_row) {
  IndexedDatabase db({}, Base::kTransactionDb);
  db.Put("a", "red|1");
  db.Create(kColor);
  db.Put("c", "red|8");
  db.Create(kNumber);
  RequireOk(db->FlushIndexes());
  db.Reopen();
  RequireOk(db->WaitUntilReady("color"));
  RequireOk(db->WaitUntilReady("number"));
  auto transaction = db.Begin();
  RequireOk(transaction->Put("b", "red|2"));
  BOOST_TEST(KeysIn(db.get(), "color", "red", In(transaction.get())) == "a b c");
  const auto pinned = RequireOk(db->Pin("color", In(transaction.get())));
  BOOST_TEST(RowsOf(*pinned, "red") == "a b c");
  RequireOk(transaction->Rollback());
  // Row c is in the base of one index, and was added and deleted in the other.
  RequireOk(db->Delete({}, "c"));
  BOOST_TEST(KeysIn(db.get(), "color", "red", {}) == "a");
  transaction = db.Begin();
  RequireOk(transaction->Put("c", "red|7"));
  const auto group = RequireOk(db->PinGroup({"number", "color"}, In(transaction.get())));
  BOOST_TEST(RequireOk(group->Count(Predicate("color", "red") &&
                                    Predicate("number", KeyQuery::AtLeast(5)))) == 1u);
}

BOOST_AUTO_TEST_CASE(queries_in_a_transaction_of_a_closed_database) {
  IndexedDatabase db({}, Base::kTransactionDb);
  db.Put("a", "red|1");
  db.Create(kColor);
  db.Create(kNumber);
  auto transaction = db.Begin();
  RequireOk(transaction->Put("b", "red|2"));
  RequireOk(db->Close());
  BOOST_TEST(db->Lookup("color", "red", In(transaction.get())).status().code() ==
             absl::StatusCode::kFailedPrecondition);
  BOOST_TEST(db->PinGroup({"color", "number"}, In(transaction.get())).status().code() ==
             absl::StatusCode::kFailedPrecondition);
}

BOOST_AUTO_TEST_CASE(an_open_transaction_does_not_outlive_its_index_or_hold_a_closed_database) {
  IndexedDatabase db({}, Base::kTransactionDb);
  db.Put("a", "red|1");
  db.Create(kColor);
  {
    const auto transaction = db.Begin();
    RequireOk(transaction->Put("b", "red|2"));
    const auto pinned = RequireOk(db->Pin("color", In(transaction.get())));
    RequireOk(db->DropIndex("color"));
    BOOST_TEST(RowsOf(*pinned, "red") == "a b");
    BOOST_TEST(db->Lookup("color", "red", In(transaction.get())).status().code() ==
               absl::StatusCode::kNotFound);
  }
  db.Reopen();
  db.Create(kColor);
  BOOST_TEST(KeysIn(db.get(), "color", "red", {}) == "a");
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
