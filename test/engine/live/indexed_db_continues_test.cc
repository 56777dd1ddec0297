// Openings of a database that continue an index's state, and openings that require a rebuild.
#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "cairn/extractor.h"
#include "cairn/indexed_db.h"
#include "engine/util/rocksdb_compat.h"
#include "rocksdb/utilities/transaction_db.h"
#include "test/engine/indexed_database.h"
#include "test/engine/live/indexed_db_checks.h"
#include "test/require_ok.h"

namespace cairn {
BOOST_AUTO_TEST_SUITE(indexed_db_continues_test)
namespace {

std::shared_ptr<rocksdb::DB> OpenPlain(const rocksdb::Options& options, const std::string& path,
                                       bool transactions) {
  if (transactions) {
    rocksdb::TransactionDB* db = nullptr;
    RequireOk(rocksdb::TransactionDB::Open(options, {}, path, &db));
    return std::shared_ptr<rocksdb::DB>(db);
  }
  std::unique_ptr<rocksdb::DB> db;
  RequireOk(rocksdb::DB::Open(options, path, Into(&db)));
  return db;
}

// RocksDB deletes the log when it opens a database, unless it archives it.
BOOST_AUTO_TEST_CASE(an_attached_database_that_was_closed_is_not_built_again) {
  for (const bool transactions : {false, true}) {
    TemporaryDirectory directory;
    rocksdb::Options options;
    options.create_if_missing = true;
    for (int run = 0; run < 7; ++run) {
      const auto db =
          RequireOk(IndexedDB::Attach(OpenPlain(options, directory / "db", transactions)));
      if (run == 0) {
        RequireOk(db->CreateIndex(SpecOf(kByColour)));
        for (int i = 0; i < 100; ++i) RequireOk(db->Put({}, absl::StrCat("k", i), "red"));
      }
      RequireOk(db->WaitUntilReady("by_colour"));
      BOOST_TEST(db->ListIndexes()[0].builds == (run == 0 ? 1u : 0u), "run " << run);
      RequireOk(db->Put({}, absl::StrCat("one", run), "blue"));
      CheckAgainstDatabase(db.get(), "by_colour", db->DefaultColumnFamily());
      RequireOk(db->Close());
    }
  }
}

// The index is of sequence number 0, though rows are written during its build.
BOOST_AUTO_TEST_CASE(an_index_of_a_new_database_continues) {
  for (int compactions : {0, 1}) {
    TemporaryDirectory directory;
    rocksdb::Options options;
    options.create_if_missing = true;
    options.WAL_size_limit_MB = 100;
    {
      const auto db = RequireOk(IndexedDB::Attach(OpenPlain(options, directory / "db", true)));
      RequireOk(db->CreateIndex(SpecOf(kByColour)));
      for (int i = 0; i < 100; ++i) RequireOk(db->Put({}, absl::StrCat("k", i), "red"));
      RequireOk(db->WaitUntilReady("by_colour"));
      if (compactions > 0) RequireOk(db->CompactRange({}, nullptr, nullptr));
      RequireOk(db->Close());
    }
    const auto db = RequireOk(IndexedDB::Attach(OpenPlain(options, directory / "db", true)));
    RequireOk(db->WaitUntilReady("by_colour"));
    BOOST_TEST(db->ListIndexes()[0].builds == 0u);
    CheckAgainstDatabase(db.get(), "by_colour", db->DefaultColumnFamily());
  }
}

// An archived log also expires while nothing is written.
BOOST_AUTO_TEST_CASE(a_database_that_was_only_read_for_long_is_not_built_again) {
  IndexedDatabase db;
  db.Create(kByColour);
  for (int i = 0; i < 100; ++i) db.Put(absl::StrCat("k", i), "red");
  for (int run = 0; run < 4; ++run) {
    db.Reopen();
    BOOST_TEST(RowsOf(db.get(), "by_colour", "blue").empty());
    db.Close();
    // Except for the last one written, which is kept until the next opening.
    const std::filesystem::path archive = db.path() + "/archive";
    if (run > 0) std::filesystem::remove_all(archive);
    db.Open();
    RequireOk(db->WaitUntilReady("by_colour"));
    BOOST_TEST(db.Info("by_colour").builds == 0u);
    CheckAgainstDatabase(db.get(), "by_colour", db.family(0));
  }
}

// Extracts some bytes of the value.
class Prefix final : public KeyExtractor {
 public:
  absl::Status Extract(const RowView& row, KeySink* sink) const override {
    sink->Add(std::string_view(row.value).substr(0, bytes));
    return absl::OkStatus();
  }
  uint64_t Version() const override { return version; }

  size_t bytes = 1;
  uint64_t version = 0;
};

BOOST_AUTO_TEST_CASE(another_version_of_an_extractor_has_the_index_built_again) {
  const auto prefix = std::make_shared<Prefix>();
  RequireOk(RegisterExtractor("continues_prefix", prefix));
  IndexedDBOptions options;
  options.on_stale = OnStale::kKeepStale;
  IndexedDatabase db(options);
  db.Create("ix = custom('continues_prefix'):text");
  db.Put("a", "Lisbon");
  db.Reopen();
  BOOST_TEST(RowsOf(db.get(), "ix", "L") == "a");
  db.Close();
  prefix->bytes = 2;
  prefix->version = 7;
  db.Open();
  CheckFails(db->Pin("ix").status(), absl::StatusCode::kFailedPrecondition,
             "'continues_prefix' version 0, but rows are now read with");
  CheckFails(db->Pin("ix").status(), absl::StatusCode::kFailedPrecondition,
             "'continues_prefix' version 7");
  db.options().on_stale = OnStale::kRebuild;
  db.Reopen();
  RequireOk(db->WaitUntilReady("ix"));
  BOOST_TEST(db.Info("ix").builds == 1u);
  BOOST_TEST(RowsOf(db.get(), "ix", "Li") == "a");
  db.Reopen();
  BOOST_TEST(db.Info("ix").builds == 0u);
  BOOST_TEST(RowsOf(db.get(), "ix", "Li") == "a");
}

class OtherOperator final : public rocksdb::AssociativeMergeOperator {
 public:
  bool Merge(const rocksdb::Slice& /*key*/, const rocksdb::Slice* value,
             const rocksdb::Slice& operand, std::string* merged,
             rocksdb::Logger* /*logger*/) const override {
    *merged = absl::StrCat(value == nullptr ? "" : value->ToString() + "|", operand.ToString());
    return true;
  }
  const char* Name() const override { return "Other"; }
};

BOOST_AUTO_TEST_CASE(another_merge_operator_has_the_index_built_again) {
  IndexedDatabase db;
  db.Create("ix = value:text");
  RequireOk(db->Merge({}, "a", "x"));
  RequireOk(db->Merge({}, "a", "y"));
  BOOST_TEST(RowsOf(db.get(), "ix", "x,y") == "a");
  db.Reopen();
  BOOST_TEST(db.Info("ix").builds == 0u);
  db.Close();
  db.rocksdb_options().merge_operator = std::make_shared<OtherOperator>();
  db.Open();
  RequireOk(db->WaitUntilReady("ix"));
  BOOST_TEST(db.Info("ix").builds == 1u);
  CheckAgainstDatabase(db.get(), "ix", db.family(0));
}

// Rows that are in no table file may be in a log file that is older than the one that the index has
// followed to. If RocksDB opened the database without them, nothing would show that.
BOOST_AUTO_TEST_CASE(a_lost_log_file_is_noticed_if_rocksdb_tracks_them) {
  IndexedDatabase db;
  db.Close();
  db.rocksdb_options().track_and_verify_wals_in_manifest = true;
  db.Open();
  db.Create("city = value:text");
  db.Put("a", "Lisbon");
  std::unique_ptr<rocksdb::LogFile> log;
  RequireOk(db->GetCurrentWalFile(&log));
  db.Put("x", "x", 1);
  RequireOk(db->Flush({}, db.family(1)));  // begins a log file
  db.Put("b", "Lisbon");
  BOOST_TEST(RowsOf(db.get(), "city", "Lisbon") == "a b");
  db.Close();
  const std::string path = db.path() + log->PathName();
  std::filesystem::rename(path, db.Beside("log"));
  std::vector<rocksdb::ColumnFamilyHandle*> families;
  const auto opened = IndexedDB::Open(
      db.rocksdb_options(), db.path(),
      {{"default", db.rocksdb_options()}, {"a", db.rocksdb_options()}}, &families, db.options());
  BOOST_TEST(absl::IsDataLoss(opened.status()), opened.status());
  std::filesystem::rename(db.Beside("log"), path);
  db.Open();
  RequireOk(db->WaitUntilReady("city"));
  BOOST_TEST(db.Info("city").builds == 0u);
  CheckAgainstDatabase(db.get(), "city", db.family(0));
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
