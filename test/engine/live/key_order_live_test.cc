// Live indexes, and catching up, of column families whose comparator is not RocksDB's default one.
// Each family gets the same rows, so each index must have the same results.
#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cairn/indexed_db.h"
#include "cairn/lookup.h"
#include "cairn/options.h"
#include "cairn/secondary_index.h"
#include "engine/log/anchor.h"
#include "engine/log/ingested_files.h"
#include "engine/log/table_files.h"
#include "engine/util/rocksdb_compat.h"
#include "rocksdb/sst_file_writer.h"
#include "rocksdb/utilities/transaction_db.h"
#include "test/engine/indexed_database.h"
#include "test/engine/key_orders.h"
#include "test/require_ok.h"
#include "test/temporary_directory.h"
#include "test/test_random.h"

namespace cairn {
BOOST_AUTO_TEST_SUITE(key_order_live_test)
namespace {

namespace fs = std::filesystem;

using Model = std::map<std::string, std::string>;
using Entries = std::vector<std::pair<std::string, std::string>>;

constexpr int kValues = 12;

// All entries of an index, by key and then in index order.
Entries EntriesOf(const SecondaryIndex& index) {
  Entries entries;
  for (int value = 0; value < kValues; ++value) {
    const std::string key = "v" + std::to_string(value);
    const std::string_view keys[] = {key};
    FindResult matches;
    RequireOk(index.Find(keys, &matches));
    StringList primary_keys;
    RequireOk(index.PrimaryKeys(matches, &primary_keys));
    for (size_t i = 0; i < primary_keys.size(); ++i) {
      entries.emplace_back(key, std::string(primary_keys[i]));
    }
  }
  return entries;
}

Entries Expected(const Model& model) {
  Entries entries;
  for (int value = 0; value < kValues; ++value) {
    for (const auto& [key, of_row] : model) {
      if (of_row == "v" + std::to_string(value)) entries.emplace_back(of_row, key);
    }
  }
  return entries;
}

// The default family, and one per order.
class Families {
 public:
  // `all`: also the order that the MANIFEST does not tell. The log of other families is then only
  // read if it has no range deletion of this one before their rows.
  explicit Families(bool all, bool compacts = true) {
    options_.create_if_missing = options_.create_missing_column_families = true;
    options_.write_buffer_size = 64 << 10;
    options_.WAL_size_limit_MB = 100;
    options_.disable_auto_compactions = !compacts;
    comparators_.push_back(rocksdb::BytewiseComparator());
    for (const test::Order& known : test::Orders()) {
      if (all || known.is_known_by_name) comparators_.push_back(known.comparator);
    }
  }
  ~Families() { Close(); }

  std::string Name(size_t i) const { return i == 0 ? "default" : "f" + std::to_string(i); }
  size_t count() const { return comparators_.size(); }
  const rocksdb::Comparator* comparator(size_t i) const { return comparators_[i]; }
  rocksdb::ColumnFamilyHandle* handle(size_t i) { return handles_[i]; }
  std::string path() const { return directory_ / "db"; }
  std::string Beside(const std::string& name) const { return directory_ / name; }

  std::vector<rocksdb::ColumnFamilyDescriptor> Descriptors() const {
    std::vector<rocksdb::ColumnFamilyDescriptor> descriptors;
    for (size_t i = 0; i < count(); ++i) {
      rocksdb::ColumnFamilyOptions options = options_;
      options.comparator = comparators_[i];
      descriptors.emplace_back(Name(i), options);
    }
    return descriptors;
  }
  void OpenPlain() {
    RequireOk(rocksdb::DB::Open(options_, path(), Descriptors(), &handles_, Into(&plain_)));
  }
  void OpenLive() {
    IndexedDBOptions options;
    options.open.calibration = Calibration::kNone;
    options.open.threads = options.build.threads = 1;
    live_ = RequireOk(IndexedDB::Open(options_, path(), Descriptors(), &handles_, options));
  }
  void Close() {
    if (plain_ == nullptr && live_ == nullptr) return;
    for (rocksdb::ColumnFamilyHandle* handle : handles_) {
      RequireOk(db()->DestroyColumnFamilyHandle(handle));
    }
    handles_.clear();
    plain_ = nullptr;
    live_ = nullptr;
  }
  // Continues with the files that would remain if the process were killed now.
  void Kill() {
    const bool is_live = live_ != nullptr;
    rocksdb::DB* const root = db()->GetRootDB();
    RequireOk(root->PauseBackgroundWork());
    RequireOk(root->DisableFileDeletions());
    std::error_code changed;
    do {
      fs::remove_all(Beside("copy"));
      changed.clear();
      fs::copy(path(), Beside("copy"), fs::copy_options::recursive, changed);
    } while (changed);
    RequireOk(EndDisabledFileDeletions(root));
    RequireOk(root->ContinueBackgroundWork());
    Close();
    fs::remove_all(path());
    fs::rename(Beside("copy"), path());
    is_live ? OpenLive() : OpenPlain();
  }

  rocksdb::DB* db() {
    return live_ != nullptr ? static_cast<rocksdb::DB*>(live_.get()) : plain_.get();
  }
  IndexedDB* live() { return live_.get(); }
  const Model& model() const { return model_; }

  // Writes the same rows to all families.
  void Write(int writes, std::mt19937_64* random) {
    for (int i = 0; i < writes; ++i) {
      rocksdb::WriteBatch batch;
      for (uint64_t records = 1 + (*random)() % 3; records > 0; --records) AddTo(&batch, random);
      RequireOk(db()->Write({}, &batch));
      if ((*random)() % 60 == 0) {
        RequireOk(db()->Flush({}, handles_[(*random)() % count()]));
      }
      if ((*random)() % 200 == 0) {
        RequireOk(db()->CompactRange({}, handles_[(*random)() % count()], nullptr, nullptr));
      }
    }
  }

 private:
  void AddTo(rocksdb::WriteBatch* batch, std::mt19937_64* random) {
    const std::string key = test::HardKey(random);
    const std::string value = "v" + std::to_string((*random)() % kValues);
    const uint64_t what = (*random)() % 20;
    if (what == 0) {
      // The same rows in each order: from `low` on, up to but not including `high`, or the keys
      // after them.
      std::string low = test::HardKey(random), high = test::HardKey(random);
      if (low > high) std::swap(low, high);
      if (low == high) return;
      const bool includes_high = (*random)() % 2 == 0;
      for (size_t i = 0; i < count(); ++i) {
        const bool is_reverse = comparators_[i]->Compare("a", "b") > 0;
        // (low, high] or [low, high) in the order of bytes.
        if (is_reverse && includes_high) {
          RequireOk(batch->DeleteRange(handles_[i], high, low));
        } else if (is_reverse) {
          RequireOk(batch->DeleteRange(handles_[i], high, low));
          RequireOk(batch->Delete(handles_[i], low));
          if (const auto row = model_.find(high); row != model_.end()) {
            RequireOk(batch->Put(handles_[i], high, row->second));
          }
        } else {
          RequireOk(batch->DeleteRange(handles_[i], includes_high ? low + '\0' : low,
                                       includes_high ? high + '\0' : high));
        }
      }
      model_.erase(includes_high ? model_.upper_bound(low) : model_.lower_bound(low),
                   includes_high ? model_.upper_bound(high) : model_.lower_bound(high));
      return;
    }
    for (rocksdb::ColumnFamilyHandle* handle : handles_) {
      RequireOk(what < 6 ? batch->Delete(handle, key) : batch->Put(handle, key, value));
    }
    if (what < 6) {
      model_.erase(key);
    } else {
      model_[key] = value;
    }
  }

  TemporaryDirectory directory_;
  rocksdb::Options options_;
  std::vector<const rocksdb::Comparator*> comparators_;
  std::vector<rocksdb::ColumnFamilyHandle*> handles_;
  std::unique_ptr<rocksdb::DB> plain_;
  std::unique_ptr<IndexedDB> live_;
  Model model_;
};

BOOST_AUTO_TEST_CASE(live_indexes_have_the_same_results_in_every_order) {
  std::mt19937_64 random = TestRandom();
  Families families(/*all=*/true);
  families.OpenLive();
  families.Write(200, &random);
  for (size_t i = 0; i < families.count(); ++i) {
    const IndexSpec spec =
        SpecOf("ix" + std::to_string(i) + " = value:text, cf=" + families.Name(i));
    RequireOk(families.live()->CreateIndex(spec, families.handle(i)));
  }
  const auto check = [&] {
    const Entries expected = Expected(families.model());
    for (size_t i = 0; i < families.count(); ++i) {
      const std::string name = "ix" + std::to_string(i);
      BOOST_TEST_CONTEXT(families.comparator(i)->Name()) {
        RequireOk(families.live()->WaitUntilReady(name, absl::Seconds(60)));
        BOOST_TEST((EntriesOf(*RequireOk(families.live()->Pin(name))) == expected));
        CheckAgainstDatabase(families.live(), name, families.handle(i));
        const auto rows = RequireOk(families.live()->LookupRows(name, {"v3", "v7"}));
        for (const auto& row : rows) {
          BOOST_TEST((families.model().at(std::string(row.primary_key)) == row.value));
        }
        // It was never rebuilt.
        for (const IndexInfo& info : families.live()->ListIndexes()) BOOST_TEST(info.builds <= 1u);
      }
    }
  };
  check();
  for (int round = 0; round < 12; ++round) {
    families.Write(static_cast<int>(random() % 120), &random);
    check();
    switch (round % 4) {
      case 0:
        families.Close();
        families.OpenLive();
        break;
      case 1:
        families.Kill();
        break;
      case 2:
        for (size_t i = 0; i < families.count(); ++i) {
          RequireOk(families.live()->CompactIndex("ix" + std::to_string(i)));
        }
        break;
      default:
        RequireOk(families.live()->FlushIndexes());
    }
    check();
  }
}

// Each index is built from its directory by the files only, and then catches up.
BOOST_AUTO_TEST_CASE(indexes_catch_up_in_every_order) {
  std::mt19937_64 random = TestRandom();
  Families families(/*all=*/false);
  families.OpenPlain();
  families.Write(300, &random);
  std::vector<std::unique_ptr<SecondaryIndex>> indexes(families.count());
  OpenOptions open;
  open.calibration = Calibration::kNone;
  for (size_t i = 0; i < families.count(); ++i) {
    BuildOptions build;
    build.threads = 2;
    const auto source = RequireOk(SnapshotSource::FromDb(families.db(), families.handle(i)));
    RequireOk(SecondaryIndex::Build(*source, SpecOf("value:text, cf=" + families.Name(i)),
                                    families.Beside("ix" + std::to_string(i)), build)
                  .status());
    indexes[i] = RequireOk(SecondaryIndex::Open(families.Beside("ix" + std::to_string(i)), open));
  }
  for (int round = 0; round < 12; ++round) {
    families.Write(static_cast<int>(random() % 150), &random);
    if (round % 3 == 1) families.Kill();
    if (round % 3 == 2) {
      families.Close();
      families.OpenPlain();
    }
    const Entries expected = Expected(families.model());
    for (size_t i = 0; i < families.count(); ++i) {
      BOOST_TEST_CONTEXT(families.comparator(i)->Name() << " round " << round) {
        CatchUpOptions options;
        options.durable = round % 2 == 0;
        const auto source = RequireOk(SnapshotSource::FromDb(families.db(), families.handle(i)));
        RequireOk(indexes[i]->CatchUp(*source, options).status());
        BOOST_TEST((EntriesOf(*indexes[i]) == expected));
        std::vector<std::string> differences;
        RequireOk(indexes[i]->VerifyAgainst(*source, 5, &differences));
        BOOST_TEST(differences.empty());
        if (round % 5 == 4) RequireOk(indexes[i]->Compact());
        BOOST_TEST((EntriesOf(*indexes[i]) == expected));
      }
    }
  }
}

// The wrapper's order is known from the open database.
BOOST_AUTO_TEST_CASE(an_index_of_a_wrapped_order_catches_up) {
  const TemporaryDirectory directory;
  rocksdb::Options options;
  options.create_if_missing = true;
  options.comparator = test::Orders()[5].comparator;
  std::unique_ptr<rocksdb::DB> db;
  RequireOk(rocksdb::DB::Open(options, directory / "db", Into(&db)));
  for (const char* key : {"a", "b", "c"}) RequireOk(db->Put({}, key, "v1"));
  const IndexSpec spec = SpecOf("value:text");
  RequireOk(SecondaryIndex::Build(*RequireOk(SnapshotSource::FromDb(db.get())), spec,
                                  directory / "index", {})
                .status());
  const auto index = RequireOk(SecondaryIndex::Open(directory / "index"));
  RequireOk(db->DeleteRange({}, db->DefaultColumnFamily(), "c", "a"));
  RequireOk(index->CatchUp(*RequireOk(SnapshotSource::FromDb(db.get()))).status());
  BOOST_TEST(RowsOf(*index, "v1") == "a");
}

// From a directory whose comparators are not compiled in.
BOOST_AUTO_TEST_CASE(indexes_catch_up_from_directories_in_every_order) {
  std::mt19937_64 random = TestRandom();
  Families families(/*all=*/false);
  families.OpenPlain();
  families.Write(300, &random);
  families.Close();
  for (int round = 0; round < 3; ++round) {
    const Entries expected = Expected(families.model());
    for (size_t i = 0; i < families.count(); ++i) {
      BOOST_TEST_CONTEXT(families.comparator(i)->Name() << " round " << round) {
        const auto source =
            RequireOk(SnapshotSource::FromDirectory(families.path(), families.Name(i)));
        const std::string path = families.Beside("ix" + std::to_string(i));
        if (round == 0) {
          RequireOk(
              SecondaryIndex::Build(*source, SpecOf("value:text, cf=" + families.Name(i)), path, {})
                  .status());
        }
        OpenOptions open;
        open.calibration = Calibration::kNone;
        const auto index = RequireOk(SecondaryIndex::Open(path, open));
        if (round > 0) {
          CatchUpOptions durable;
          durable.durable = true;
          RequireOk(index->CatchUp(*source, durable).status());
        }
        BOOST_TEST((EntriesOf(*index) == expected));
      }
    }
    families.OpenPlain();
    families.Write(100, &random);
    families.Close();
  }
}

// The key ranges of table files are found by RocksDB, in its order.
BOOST_AUTO_TEST_CASE(table_files_of_every_order) {
  Families families(/*all=*/true, /*compacts=*/false);
  families.OpenPlain();
  for (size_t i = 0; i < families.count(); ++i) {
    BOOST_TEST_CONTEXT(families.comparator(i)->Name()) {
      rocksdb::ColumnFamilyHandle* const family = families.handle(i);
      for (const char* key : {"", "b", "x"}) {  // one key per file
        RequireOk(families.db()->Put({}, family, key, "v1"));
        RequireOk(families.db()->Flush({}, family));
      }
      for (const char* key : {"c", "y"}) RequireOk(families.db()->Put({}, family, key, "v1"));
      RequireOk(families.db()->Flush({}, family));
      const TableFiles tables = ListTableFiles(families.db(), family);
      BOOST_TEST(tables.files.size() == 4u);
      BOOST_TEST(tables.files.back().smallest == "c");
      BOOST_TEST(tables.files.back().largest == "y");
      for (const TableFile& file : tables.files) {
        BOOST_TEST(!RequireOk(OwnFileId(families.db(), family, file.number)).empty());
      }
      const SequenceNumber now = families.db()->GetLatestSequenceNumber();
      BOOST_TEST(RequireOk(NewestIngestedFile(families.db(), family, now)) == 0u);
      for (const char* key : {"", "zz", "c0"}) {
        rocksdb::Options options;
        options.comparator = families.comparator(i);
        rocksdb::SstFileWriter writer(rocksdb::EnvOptions(), options);
        const std::string file = families.Beside("ingested.sst");
        RequireOk(writer.Open(file));
        RequireOk(writer.Put(key, "v2"));
        RequireOk(writer.Finish());
        const uint64_t before = RequireOk(NewestIngestedFile(families.db(), family, UINT64_MAX));
        RequireOk(families.db()->IngestExternalFile(family, {file}, {}));
        const uint64_t newest = RequireOk(NewestIngestedFile(families.db(), family, UINT64_MAX));
        BOOST_TEST(newest > before);
      }
    }
  }
}

// A unique index reads the changes of a write before it is made.
BOOST_AUTO_TEST_CASE(unique_indexes_in_reverse_order) {
  Families families(/*all=*/true);
  families.OpenLive();
  rocksdb::ColumnFamilyHandle* const family = families.handle(1);
  RequireOk(families.live()->CreateIndex(SpecOf("mail = value:text, unique=true, cf=f1"), family));
  RequireOk(families.live()->WaitUntilReady("mail", absl::Seconds(60)));
  RequireOk(families.db()->Put({}, family, "a", "ana"));
  RequireOk(families.db()->Put({}, family, "b", "bo"));
  BOOST_TEST(!families.db()->Put({}, family, "c", "bo").ok());
  rocksdb::WriteBatch batch;
  RequireOk(batch.DeleteRange(family, "b", "a"));  // the row "b"
  RequireOk(batch.Put(family, "c", "bo"));
  RequireOk(families.db()->Write({}, &batch));
  BOOST_TEST(RowsOf(families.live(), "mail", "bo") == "c");
  BOOST_TEST(RowsOf(families.live(), "mail", "ana") == "a");
  CheckAgainstDatabase(families.live(), "mail", family);
}

// Queries in a transaction read its uncommitted writes and the rows of its database.
BOOST_AUTO_TEST_CASE(transactions_in_reverse_order) {
  const TemporaryDirectory directory;
  rocksdb::Options options;
  options.create_if_missing = true;
  options.comparator = rocksdb::ReverseBytewiseComparator();
  rocksdb::TransactionDB* transactions = nullptr;
  RequireOk(rocksdb::TransactionDB::Open(options, {}, directory / "db", &transactions));
  const auto db = RequireOk(IndexedDB::Attach(std::shared_ptr<rocksdb::DB>(transactions)));
  RequireOk(db->CreateIndex(SpecOf("city = value:text")));
  RequireOk(db->WaitUntilReady("city"));
  for (const char* key : {"", "a", "b", "c", "d"}) RequireOk(db->Put({}, key, "Oslo"));
  const std::unique_ptr<rocksdb::Transaction> transaction(transactions->BeginTransaction({}));
  RequireOk(transaction->Put("aa", "Oslo"));
  RequireOk(transaction->Put("b", "Lisbon"));
  RequireOk(transaction->Delete("c"));
  const auto rows_of = [&](rocksdb::Transaction* in) {
    LookupOptions lookup;
    lookup.transaction = in;
    std::string rows;
    for (const auto& row : RequireOk(db->LookupRows("city", {"Oslo", "Lisbon"}, lookup))) {
      absl::StrAppend(&rows, std::string(row.primary_key), "=", std::string(row.value), " ");
    }
    return rows;
  };
  BOOST_TEST(rows_of(transaction.get()) == "=Oslo a=Oslo aa=Oslo d=Oslo b=Lisbon ");
  BOOST_TEST(rows_of(nullptr) == "=Oslo a=Oslo b=Oslo c=Oslo d=Oslo ");
  RequireOk(transaction->Commit());
  BOOST_TEST(rows_of(nullptr) == "=Oslo a=Oslo aa=Oslo d=Oslo b=Lisbon ");
  CheckAgainstDatabase(db.get(), "city", nullptr);
}

BOOST_AUTO_TEST_CASE(unknown_orders_are_refused) {
  const TemporaryDirectory directory;
  static const test::ByLength by_length;
  rocksdb::Options options;
  options.create_if_missing = true;
  options.comparator = &by_length;
  const auto db = RequireOk(IndexedDB::Open(options, directory / "db", {}));
  const absl::Status refused = db->CreateIndex("city = value:text");
  BOOST_TEST(absl::IsUnimplemented(refused), refused);
  BOOST_TEST((refused.ToString().find("test.ByLength") != std::string::npos));
  BOOST_TEST((refused.ToString().find("DeclareComparator") != std::string::npos));
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
