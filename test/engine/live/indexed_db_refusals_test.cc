// Databases that an index cannot follow with their current options. Creating an index fails, and an
// existing index fails at once, without a build, when such a database is opened.

#include <atomic>
#include <boost/test/unit_test.hpp>
#include <memory>
#include <string>
#include <utility>

#include "cairn/indexed_db.h"
#include "engine/util/rocksdb_compat.h"
#include "rocksdb/compaction_filter.h"
#include "rocksdb/utilities/stackable_db.h"
#include "test/engine/indexed_database.h"
#include "test/engine/live/indexed_db_checks.h"
#include "test/require_ok.h"

namespace cairn {
BOOST_AUTO_TEST_SUITE(indexed_db_refusals_test)
namespace {

constexpr char kAll[] = "all = value:text";

// Drops rows of one value, and changes another.
class Expiry final : public rocksdb::CompactionFilter {
 public:
  bool Filter(int, const rocksdb::Slice&, const rocksdb::Slice& value, std::string* changed,
              bool* is_changed) const override {
    if (value == "Lisbon") {
      *changed = "Porto";
      *is_changed = true;
    }
    return value == "Expired";
  }
  const char* Name() const override { return "Expiry"; }
};

class ExpiryFactory final : public rocksdb::CompactionFilterFactory {
 public:
  std::unique_ptr<rocksdb::CompactionFilter> CreateCompactionFilter(
      const rocksdb::CompactionFilter::Context&) override {
    return std::make_unique<Expiry>();
  }
  const char* Name() const override { return "ExpiryFactory"; }
};

std::string Found(IndexedDB* db, const char* key) {
  std::string found;
  for (const std::string_view row : RequireOk(db->Lookup("all", key))) {
    found += std::string(row) + " ";
  }
  return found;
}

void CheckHasFailed(IndexedDatabase* database, absl::StatusCode code, const std::string& part) {
  const absl::Status waited = (*database)->WaitUntilReady("all");
  CheckFails(waited, code, part);
  const IndexInfo info = database->Info("all");
  BOOST_TEST(IndexStateName(info.state) == "failed");
  BOOST_TEST(info.builds == 0u);
  CheckFails(info.status, code, part);
  CheckFails((*database)->Lookup("all", "x").status(), absl::StatusCode::kFailedPrecondition, part);
}

BOOST_AUTO_TEST_CASE(compactions_that_drop_rows_are_refused) {
  const Expiry filter;
  IndexedDatabase database;
  const auto refuses = [&](const std::string& why) {
    CheckFails(database->CreateIndex(kAll), absl::StatusCode::kInvalidArgument, why);
    CheckFails(database->CreateIndex(kAll), absl::StatusCode::kInvalidArgument,
               "dropped_rows=ignore");
    BOOST_TEST(database->ListIndexes().empty());
  };
  const rocksdb::Options plain = database.rocksdb_options();
  database.rocksdb_options().compaction_filter = &filter;
  database.Reopen();
  refuses("compaction_filter 'Expiry'");
  database.rocksdb_options() = plain;
  database.rocksdb_options().compaction_filter_factory = std::make_shared<ExpiryFactory>();
  database.Reopen();
  refuses("compaction_filter_factory 'ExpiryFactory'");
  database.rocksdb_options() = plain;
  database.rocksdb_options().compaction_style = rocksdb::kCompactionStyleFIFO;
  database.Reopen();
  refuses("FIFO compaction");
  database.rocksdb_options() = plain;
  database.rocksdb_options().ttl = 100;  // compacts such files again, but drops nothing
  database.Reopen();
  database.Create(kAll);
}

BOOST_AUTO_TEST_CASE(a_spec_may_ignore_rows_that_compactions_drop) {
  const Expiry filter;
  IndexedDatabase database;
  database.rocksdb_options().compaction_filter = &filter;
  database.Reopen();
  database.Create("all = value:text, dropped_rows=ignore");
  database.Put("a", "Lisbon");
  database.Put("b", "Expired");
  database.Put("c", "Oslo");
  RequireOk(database->Flush({}));
  RequireOk(database->CompactRange({}, nullptr, nullptr));
  std::string value;
  BOOST_REQUIRE(database->Get({}, "b", &value).IsNotFound());
  BOOST_TEST(Found(database.get(), "Lisbon") == "a ");
  BOOST_TEST(Found(database.get(), "Expired") == "b ");
  for (const char* key : {"Lisbon", "Expired"}) {
    BOOST_TEST(RequireOk(database->LookupRows("all", key)).empty(), key);
  }
  BOOST_TEST(RequireOk(database->LookupRows("all", "Oslo")).size() == 1u);
  database.Reopen();
  RequireOk(database->WaitUntilReady("all"));
  BOOST_TEST(database.Info("all").builds == 0u);
  BOOST_TEST(Found(database.get(), "Expired") == "b ");
  RequireOk(database->RebuildIndex("all"));
  RequireOk(database->WaitUntilReady("all"));
  BOOST_TEST(Found(database.get(), "Expired") == "");
  BOOST_TEST(Found(database.get(), "Porto") == "a ");
}

BOOST_AUTO_TEST_CASE(an_index_fails_when_its_database_begins_to_drop_rows) {
  const Expiry filter;
  IndexedDatabase database;
  database.Create(kAll);
  database.Put("a", "Lisbon");
  database.rocksdb_options().compaction_filter = &filter;
  database.Reopen();
  CheckHasFailed(&database, absl::StatusCode::kInvalidArgument, "compaction_filter 'Expiry'");
  RequireOk(database->RebuildIndex("all"));
  CheckHasFailed(&database, absl::StatusCode::kInvalidArgument, "compaction_filter 'Expiry'");
  RequireOk(database->Flush({}));
  RequireOk(database->CompactRange({}, nullptr, nullptr));
  // The log does not contain that.
  database.rocksdb_options().compaction_filter = nullptr;
  database.Reopen();
  RequireOk(database->WaitUntilReady("all"));
  BOOST_TEST(database.Info("all").builds == 1u);
  CheckAgainstDatabase(database.get(), "all", database.family(0));
  BOOST_TEST(Found(database.get(), "Porto") == "a ");
}

BOOST_AUTO_TEST_CASE(an_index_fails_at_once_where_its_database_cannot_be_followed) {
  IndexedDatabase database;
  database.Create(kAll);
  database.Put("a", "Lisbon");
  const rocksdb::Options plain = database.rocksdb_options();
  database.rocksdb_options().unordered_write = true;
  database.Reopen();
  CheckHasFailed(&database, absl::StatusCode::kFailedPrecondition, "unordered_write");
  database.Put("b", "Lisbon");
  RequireOk(database->RebuildIndex("all"));
  CheckHasFailed(&database, absl::StatusCode::kFailedPrecondition, "unordered_write");
  database.rocksdb_options() = plain;
  database.Reopen();
  RequireOk(database->WaitUntilReady("all"));
  CheckAgainstDatabase(database.get(), "all", database.family(0));
}

// Layers over a database: one with its own iterators, which return the stored data.
class CountingIterator final : public rocksdb::Iterator {
 public:
  explicit CountingIterator(rocksdb::Iterator* below) : below_(below) {}
  bool Valid() const override { return below_->Valid(); }
  void SeekToFirst() override { below_->SeekToFirst(); }
  void SeekToLast() override { below_->SeekToLast(); }
  void Seek(const rocksdb::Slice& target) override { below_->Seek(target); }
  void SeekForPrev(const rocksdb::Slice& target) override { below_->SeekForPrev(target); }
  void Next() override { below_->Next(); }
  void Prev() override { below_->Prev(); }
  rocksdb::Slice key() const override { return below_->key(); }
  rocksdb::Slice value() const override { return below_->value(); }
  rocksdb::Status status() const override { return below_->status(); }

 private:
  const std::unique_ptr<rocksdb::Iterator> below_;
};

class CountingDb final : public rocksdb::StackableDB {
 public:
  using StackableDB::NewIterator;
  using StackableDB::StackableDB;
  rocksdb::Iterator* NewIterator(const rocksdb::ReadOptions& options,
                                 rocksdb::ColumnFamilyHandle* family) override {
    return new CountingIterator(db_->NewIterator(options, family));
  }
  using StackableDB::Write;
  rocksdb::Status Write(const rocksdb::WriteOptions& options, rocksdb::WriteBatch* batch) override {
    ++writes;
    return db_->Write(options, batch);
  }
  static inline std::atomic<int> writes{0};
};

BOOST_AUTO_TEST_CASE(layers_with_their_own_iterators_need_the_caller_s_word) {
  TemporaryDirectory directory;
  rocksdb::Options options;
  options.create_if_missing = true;
  options.WAL_size_limit_MB = 100;
  IndexedDBOptions indexed;
  indexed.open.calibration = Calibration::kNone;
  const auto attach = [&](bool layer) {
    std::unique_ptr<rocksdb::DB> opened;
    RequireOk(rocksdb::DB::Open(options, directory / "db", Into(&opened)));
    std::shared_ptr<rocksdb::DB> db = std::move(opened);
    if (layer) db = std::make_shared<CountingDb>(std::move(db));
    return RequireOk(IndexedDB::Attach(std::move(db), {}, indexed));
  };
  {
    const auto db = attach(/*layer=*/true);
    CheckFails(db->CreateIndex(kAll), absl::StatusCode::kFailedPrecondition, "layers_keep_values");
  }
  indexed.layers_keep_values = true;
  {
    const auto db = attach(/*layer=*/true);
    RequireOk(db->Put({}, "a", "Lisbon"));
    RequireOk(db->CreateIndex(kAll));
    RequireOk(db->WaitUntilReady("all"));
    RequireOk(db->PutEntity({}, db->DefaultColumnFamily(), "e",
                            {{rocksdb::kDefaultWideColumnName, "Lisbon"}, {"more", "1"}}));
    BOOST_TEST(Found(db.get(), "Lisbon") == "a e ");
    BOOST_TEST(RequireOk(db->LookupRows("all", "Lisbon")).size() == 2u);
    // A unique index reads columns below the layer; writes pass through it.
    RequireOk(db->CreateIndex("email = column('email'):text, unique=true, on_error=skip"));
    RequireOk(db->WaitUntilReady("email"));
    rocksdb::WideColumns columns{{"email", "x"}};
    RequireOk(db->PutEntity({}, db->DefaultColumnFamily(), "u1", columns));
    BOOST_TEST(db->PutEntity({}, db->DefaultColumnFamily(), "u2", columns).IsInvalidArgument());
    rocksdb::WriteOptions past_log;
    past_log.disableWAL = true;
    rocksdb::WriteBatch batch;
    RequireOk(batch.Put("b", "Oslo"));
    const int before = CountingDb::writes;
    RequireOk(db->Write(past_log, &batch));
    BOOST_TEST(CountingDb::writes == before + 1);
  }
  indexed.layers_keep_values = false;
  {
    const auto db = attach(/*layer=*/true);
    CheckFails(db->WaitUntilReady("all"), absl::StatusCode::kFailedPrecondition,
               "layers_keep_values");
    BOOST_TEST(IndexStateName(db->ListIndexes()[0].state) == "failed");
    BOOST_TEST(db->ListIndexes()[0].builds == 0u);
  }
  const auto db = attach(/*layer=*/false);
  RequireOk(db->WaitUntilReady("all"));
  BOOST_TEST(Found(db.get(), "Lisbon") == "a e ");
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
