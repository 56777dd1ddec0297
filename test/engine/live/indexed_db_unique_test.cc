// Unique indexes, live and caught up.
#include <atomic>
#include <boost/test/unit_test.hpp>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "cairn/extractor.h"
#include "cairn/options.h"
#include "cairn/secondary_index.h"
#include "cairn/snapshot_source.h"
#include "engine/util/rocksdb_compat.h"
#include "rocksdb/compaction_filter.h"
#include "rocksdb/utilities/stackable_db.h"
#include "rocksdb/utilities/transaction_db.h"
#include "test/engine/indexed_database.h"
#include "test/temporary_directory.h"

namespace cairn {
BOOST_AUTO_TEST_SUITE(indexed_db_unique_test)
namespace {

BOOST_AUTO_TEST_CASE(what_a_unique_index_has_in_between_does_not_count) {
  IndexedDatabase db;
  db.rocksdb_options().merge_operator = std::make_shared<AppendOperator>();
  db.Put("X", "x0");
  db.Put("Y", "k");
  const std::string directory = db.Beside("offline");
  std::unique_ptr<SecondaryIndex> offline;
  {
    const auto source = SnapshotSource::FromDb(db->GetBaseDB());
    RequireOk(source.status());
    auto built = SecondaryIndex::Build(**source, SpecOf("value:text, unique=true"), directory);
    RequireOk(built.status());
    offline = *std::move(built);
  }
  db.Create("live = value:text, unique=true");
  // Past the object, which would reject a write with an unknown result. X is looked up in its final
  // state, and has the key of Y until it changes.
  rocksdb::DB* const base = db->GetBaseDB();
  RequireOk(base->Delete({}, "X"));
  RequireOk(base->Merge({}, "X", "x1"));
  for (int i = 0; i < 3000; ++i) {
    RequireOk(base->Put({}, absl::StrCat("r", i), absl::StrCat(std::string(1000, 'r'), i)));
  }
  RequireOk(base->Put({}, "Y", "y1"));
  RequireOk(base->Delete({}, "X"));
  RequireOk(base->Merge({}, "X", "k"));
  const auto source = SnapshotSource::FromDb(base);
  RequireOk(source.status());
  CatchUpOptions options;
  options.max_bytes_per_second = 20 << 20;
  RequireOk(offline->CatchUp(**source, options).status());
  BOOST_TEST(RowsOf(*offline, "k") == "X");
  BOOST_TEST(RowsOf(db.get(), "live", "k") == "X");
  // Its final key counts.
  RequireOk(base->Merge({}, "Z", "y1"));
  BOOST_TEST(absl::IsFailedPrecondition(db->Pin("live").status()));
  const auto last = SnapshotSource::FromDb(base);
  RequireOk(last.status());
  BOOST_TEST(absl::IsAlreadyExists(offline->CatchUp(**last).status()));
}

// Extracts a row's value, and waits while the test requires it.
class WaitingExtractor final : public KeyExtractor {
 public:
  absl::Status Extract(const RowView& row, KeySink* keys) const override {
    while (waits) absl::SleepFor(absl::Milliseconds(1));
    keys->Add(row.value);
    return absl::OkStatus();
  }
  static inline std::atomic<bool> waits{false};
};

BOOST_AUTO_TEST_CASE(an_index_that_has_been_ready_refuses_rows_that_it_cannot_check) {
  RequireOk(RegisterExtractor("waiting_key", std::make_shared<WaitingExtractor>()));
  IndexedDBOptions options;
  options.on_stale = OnStale::kKeepStale;
  IndexedDatabase db(options);
  db.Put("u7", "mail7");
  db.Create("email = value:text, unique=true");
  BOOST_TEST(db->Put({}, "x", "mail7").IsInvalidArgument());
  RequireOk(db->DropIndex("email"));
  WaitingExtractor::waits = true;
  RequireOk(db->CreateIndex("email = custom('waiting_key'):text, unique=true"));
  // During the first build, nothing is checked.
  std::thread writer([&] { RequireOk(db->GetBaseDB()->Put({}, "u8", "mail8")); });
  writer.join();
  WaitingExtractor::waits = false;
  RequireOk(db->WaitUntilReady("email"));
  BOOST_TEST(db->Put({}, "x", "mail8").IsInvalidArgument());

  const auto check_refused = [&] {
    const rocksdb::Status refused = db->Put({}, "y", "mail9");
    BOOST_TEST(refused.IsTryAgain(), refused.ToString());
    BOOST_TEST(absl::StrContains(refused.ToString(), "'email'"), refused.ToString());
    RequireOk(db->Delete({}, "y"));
    RequireOk(db->Put({}, db.family(1), "y", "mail9"));
  };
  // Stale, also after reopening, and while it is rebuilt.
  rocksdb::WriteOptions past_log;
  past_log.disableWAL = true;
  RequireOk(db->GetBaseDB()->Delete(past_log, "u8"));
  check_refused();
  db.Reopen();
  check_refused();
  RequireOk(db->RebuildIndex("email"));
  RequireOk(db->WaitUntilReady("email"));
  db.Put("x", "mail8");
  // A requested build, whose process ends.
  rocksdb::WriteBatch twice;
  RequireOk(twice.Put("z1", "mail10"));
  RequireOk(twice.Put("z2", "mail10"));
  RequireOk(db->GetBaseDB()->Write({}, &twice));
  RequireOk(db->RebuildIndex("email"));
  BOOST_TEST(absl::IsAlreadyExists(db->WaitUntilReady("email")));
  check_refused();
  db.Reopen();
  check_refused();
  RequireOk(db->Delete({}, "z2"));
  RequireOk(db->RebuildIndex("email"));
  RequireOk(db->WaitUntilReady("email"));
  BOOST_TEST(db->Put({}, "y", "mail10").IsInvalidArgument());
  // Dropping it ends the constraint.
  RequireOk(db->RebuildIndex("email"));
  RequireOk(db->DropIndex("email"));
  db.Put("y", "mail10");
}

BOOST_AUTO_TEST_CASE(rows_that_are_written_without_a_log_are_checked) {
  IndexedDatabase db;
  db.Put("u1", "a");
  db.Create("email = value:text, unique=true");
  rocksdb::WriteOptions past_log;
  past_log.disableWAL = true;
  BOOST_TEST(db->Put(past_log, "u2", "a").IsInvalidArgument());
  BOOST_TEST(RowsOf(db.get(), "email", "a") == "u1");
  RequireOk(db->Put(past_log, "u2", "b"));
  BOOST_TEST(RowsOf(db.get(), "email", "b") == "u2");
  BOOST_TEST(db->Put(past_log, "u3", "b").IsInvalidArgument());
  BOOST_TEST(db->Put({}, "u3", "b").IsInvalidArgument());
  RequireOk(db->Delete(past_log, "u2"));
  RequireOk(db->Put(past_log, "u3", "b"));
  BOOST_TEST(RowsOf(db.get(), "email", "b") == "u3");
  BOOST_TEST(db.Info("email").builds == 1u);
}

BOOST_AUTO_TEST_CASE(an_index_without_a_handle_refuses_rows) {
  TemporaryDirectory directory;
  rocksdb::Options options;
  options.create_if_missing = true;
  options.create_missing_column_families = true;
  options.WAL_size_limit_MB = 100;
  std::vector<rocksdb::ColumnFamilyHandle*> families;
  std::unique_ptr<rocksdb::DB> opened;
  RequireOk(rocksdb::DB::Open(options, directory / "db",
                              {{"default", options}, {"a", options}, {"b", options}}, &families,
                              Into(&opened)));
  const std::shared_ptr<rocksdb::DB> base = std::move(opened);
  IndexedDBOptions indexed;
  indexed.open.calibration = Calibration::kNone;
  {
    auto db = RequireOk(IndexedDB::Attach(base, families, indexed));
    RequireOk(db->CreateIndex("email = value:text, unique=true", families[1]));
    RequireOk(db->WaitUntilReady("email"));
    RequireOk(db->Put({}, families[1], "first", "taken"));
    RequireOk(db->Close());
  }
  {
    auto db = RequireOk(IndexedDB::Attach(base, {}, indexed));
    const rocksdb::Status refused = db->Put({}, families[1], "second", "taken");
    BOOST_TEST(refused.IsTryAgain(), refused.ToString());
    BOOST_TEST(absl::StrContains(refused.ToString(), "'email'"), refused.ToString());
    RequireOk(db->Delete({}, families[1], "third"));
    RequireOk(db->Put({}, families[2], "second", "taken"));
    RequireOk(db->Put({}, "second", "taken"));
    RequireOk(db->Close());
  }
  {
    auto db = RequireOk(IndexedDB::Attach(base, families, indexed));
    RequireOk(db->WaitUntilReady("email"));
    BOOST_TEST(db->Put({}, families[1], "second", "taken").IsInvalidArgument());
    RequireOk(db->Close());
  }
  for (auto* family : families) RequireOk(base->DestroyColumnFamilyHandle(family));
}

// Passes writes on once the test lets it.
class SlowWrites final : public rocksdb::StackableDB {
 public:
  using StackableDB::StackableDB;
  rocksdb::Status Write(const rocksdb::WriteOptions& options, rocksdb::WriteBatch* batch) override {
    begun = true;
    while (holds) absl::SleepFor(absl::Milliseconds(1));
    return StackableDB::Write(options, batch);
  }
  std::atomic<bool> holds{false}, begun{false};
};

// The default column family's, with a function that is called while a write batch is filled.
class CalledHandle final : public rocksdb::ColumnFamilyHandle {
 public:
  CalledHandle(rocksdb::ColumnFamilyHandle* target, std::function<void()> called)
      : target_(target), called_(std::move(called)) {}
  const std::string& GetName() const override { return target_->GetName(); }
  uint32_t GetID() const override {
    called_();
    return target_->GetID();
  }
  rocksdb::Status GetDescriptor(rocksdb::ColumnFamilyDescriptor* descriptor) override {
    return target_->GetDescriptor(descriptor);
  }
  const rocksdb::Comparator* GetComparator() const override { return target_->GetComparator(); }

 private:
  rocksdb::ColumnFamilyHandle* const target_;
  const std::function<void()> called_;
};

BOOST_AUTO_TEST_CASE(a_write_during_which_the_last_unique_index_was_dropped_is_waited_for) {
  TemporaryDirectory directory;
  rocksdb::Options options;
  options.create_if_missing = true;
  std::unique_ptr<rocksdb::DB> opened;
  RequireOk(rocksdb::DB::Open(options, directory / "db", Into(&opened)));
  const auto slow = std::make_shared<SlowWrites>(std::shared_ptr<rocksdb::DB>(std::move(opened)));
  IndexedDBOptions indexed;
  indexed.open.calibration = Calibration::kNone;
  indexed.build.threads = 1;
  auto db = RequireOk(IndexedDB::Attach(slow, {}, indexed));
  RequireOk(db->CreateIndex("before = value:text, unique=true"));
  RequireOk(db->WaitUntilReady("before"));
  RequireOk(db->Put({}, "first", "taken"));
  // The write has begun to be checked when nothing is left to check.
  slow->begun = false;
  slow->holds = true;
  std::thread writer([&] {
    CalledHandle handle(db->DefaultColumnFamily(), [&] { db->DropIndex("before").IgnoreError(); });
    RequireOk(db->Put({}, &handle, "second", "taken"));
  });
  while (!slow->begun) absl::SleepFor(absl::Milliseconds(1));
  RequireOk(db->CreateIndex("after = value:text, unique=true"));
  BOOST_TEST(absl::IsDeadlineExceeded(db->WaitUntilReady("after", absl::Milliseconds(200))));
  slow->holds = false;
  writer.join();
  // Never ready, and then not.
  BOOST_TEST(absl::IsAlreadyExists(db->WaitUntilReady("after", absl::Seconds(20))));
  RequireOk(db->Close());
}

// Removes rows whose keys begin with "old", and gives those that begin with "moved" another value.
class ExpiringFilter final : public rocksdb::CompactionFilter {
 public:
  Decision FilterV2(int /*level*/, const rocksdb::Slice& key, ValueType /*type*/,
                    const rocksdb::Slice& /*value*/, std::string* new_value,
                    std::string* /*skip_until*/) const override {
    if (key.starts_with("old")) return Decision::kRemove;
    if (!key.starts_with("moved")) return Decision::kKeep;
    *new_value = "elsewhere";
    return Decision::kChangeValue;
  }
  const char* Name() const override { return "ExpiringFilter"; }
};

BOOST_AUTO_TEST_CASE(a_row_that_a_filter_has_removed_holds_no_key) {
  ExpiringFilter filter;
  IndexedDatabase db;
  db.Create("email = value:text, unique=true, dropped_rows=ignore");
  db.Put("old1", "ana@x");
  db.Put("moved1", "eva@x");
  db.Put("kept1", "leo@x");
  db.Close();
  db.rocksdb_options().compaction_filter = &filter;
  db.Open();
  RequireOk(db->WaitUntilReady("email"));
  RequireOk(db->Flush({}));
  RequireOk(db->CompactRange({}, nullptr, nullptr));
  std::string value;
  BOOST_TEST(db->Get({}, "old1", &value).IsNotFound());
  db.Put("new1", "ana@x");
  db.Put("new2", "eva@x");
  BOOST_TEST(db->Put({}, "new3", "leo@x").IsInvalidArgument());
  BOOST_TEST(db->Put({}, "new3", "ana@x").IsInvalidArgument());
  const std::string rows = RowsOf(db.get(), "email", "ana@x");
  BOOST_TEST(absl::StrContains(rows, "new1"), rows);
  db.Reopen();
  RequireOk(db->WaitUntilReady("email"));
  BOOST_TEST(db->Put({}, "new3", "eva@x").IsInvalidArgument());
  db.Close();
  db.rocksdb_options().compaction_filter = nullptr;
}

BOOST_AUTO_TEST_CASE(a_lock_of_a_transaction_delays_writes_of_the_same_key_only) {
  TemporaryDirectory directory;
  rocksdb::Options options;
  options.create_if_missing = true;
  rocksdb::TransactionDBOptions locks;
  locks.default_lock_timeout = 60'000;
  rocksdb::TransactionDB* opened = nullptr;
  RequireOk(rocksdb::TransactionDB::Open(options, locks, directory / "db", &opened));
  auto db = RequireOk(IndexedDB::Attach(std::shared_ptr<rocksdb::DB>(opened)));
  RequireOk(db->CreateIndex("email = value:text, unique=true"));
  RequireOk(db->WaitUntilReady("email"));
  RequireOk(db->Put({}, "first", "taken"));

  const std::unique_ptr<rocksdb::Transaction> transaction(opened->BeginTransaction({}));
  RequireOk(transaction->Put("locked", "m1"));
  std::thread waiting([&] { RequireOk(db->Put({}, "locked", "m2")); });
  // Waits until that write has reserved its key.
  rocksdb::WriteOptions at_once;
  at_once.no_slowdown = true;
  rocksdb::Status same;
  const absl::Time end = absl::Now() + absl::Seconds(20);
  while (!same.IsIncomplete() && absl::Now() < end) {
    rocksdb::WriteBatch probe;  // rejected if it need not wait
    RequireOk(probe.Put("other", "m2"));
    RequireOk(probe.Put("another", "taken"));
    same = db->Write(at_once, &probe);
  }
  BOOST_TEST(same.IsIncomplete(), same.ToString());
  const absl::Time begin = absl::Now();
  RequireOk(db->Put({}, "unrelated", "m4"));
  BOOST_TEST((absl::Now() - begin < absl::Seconds(10)));
  rocksdb::Status later;
  std::thread same_key([&] { later = db->Put({}, "late", "m2"); });
  RequireOk(transaction->Rollback());
  waiting.join();
  same_key.join();
  BOOST_TEST(later.IsInvalidArgument(), later.ToString());
  BOOST_TEST(RowsOf(db.get(), "email", "m2") == "locked");
  db->Close().PermitUncheckedError();
}

// Several writers put each key at the same time, in rows that are inserted and deleted.
BOOST_AUTO_TEST_CASE(writers_of_few_keys_never_give_one_to_two_rows) {
  IndexedDatabase db;
  db.Create("u = value:text, unique=true");
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 100; ++i) {
        const std::string row = absl::StrCat("row", (i * 7 + t * 3) % 5);
        rocksdb::WriteBatch batch;
        if (i % 3 == 0) batch.Delete(absl::StrCat("row", i % 5)).PermitUncheckedError();
        batch.Put(row, absl::StrCat("key", (i + t) % 3)).PermitUncheckedError();
        const rocksdb::Status s = db->Write({}, &batch);
        if (!s.ok() && !s.IsInvalidArgument()) BOOST_ERROR(s.ToString());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  BOOST_TEST((db.Info("u").state == IndexState::kReady), db.Info("u").status);
  CheckAgainstDatabase(db.get(), "u", db.family(0));
}

// Duplicates that writers create during the build make it fail; afterwards there are none.
BOOST_AUTO_TEST_CASE(an_index_that_becomes_ready_beside_writers_has_no_duplicates) {
  IndexedDatabase db;
  for (int round = 0; round < 5; ++round) {
    std::atomic<bool> stop{false};
    std::vector<std::thread> threads;
    for (int t = 0; t < 2; ++t) {
      threads.emplace_back([&, t] {
        for (int i = 0; !stop; ++i) {
          const std::string key = absl::StrCat(round, "_", i % 50);
          db->Put({}, absl::StrCat("r", t, "_", i % 50), key).PermitUncheckedError();
          db->Delete({}, absl::StrCat("r", t, "_", i % 50)).PermitUncheckedError();
        }
      });
    }
    RequireOk(db->CreateIndex("u = value:text, unique=true"));
    const absl::Status ready = db->WaitUntilReady("u");
    if (ready.ok()) {
      absl::SleepFor(absl::Milliseconds(20));
      const IndexInfo info = db.Info("u");
      BOOST_TEST((info.state == IndexState::kReady), info.status);
    } else {
      BOOST_TEST(absl::IsAlreadyExists(ready), ready);
    }
    stop = true;
    for (std::thread& thread : threads) thread.join();
    if (ready.ok()) CheckAgainstDatabase(db.get(), "u", db.family(0));
    RequireOk(db->DropIndex("u"));
  }
}

BOOST_AUTO_TEST_CASE(many_rows_may_have_a_null) {
  IndexedDatabase db;
  db.Create("k = value.field('|',1):u8, unique=true, nulls=first");
  db.Put("a", "x");
  db.Put("b", "x");
  db.Put("c", "x|7");
  BOOST_TEST(db->Put({}, "d", "y|7").code() == rocksdb::Status::kInvalidArgument);
  db.Put("c", "x");
  db.Put("d", "y|7");
  BOOST_TEST(RequireOk(db->Lookup("k", {nullptr, 7})).size() == 4u);
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
