// Column families that are dropped and recreated past an IndexedDB.
#include <atomic>
#include <boost/test/unit_test.hpp>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "cairn/indexed_db.h"
#include "engine/source/manifest_families.h"
#include "engine/util/rocksdb_compat.h"
#include "rocksdb/db.h"
#include "rocksdb/env.h"
#include "rocksdb/file_system.h"
#include "test/engine/indexed_database.h"
#include "test/engine/live/indexed_db_checks.h"
#include "test/require_ok.h"
#include "test/temporary_directory.h"

namespace cairn {
BOOST_AUTO_TEST_SUITE(dropped_families_test)
namespace {

// RocksDB's local file system, on which bytes read from a MANIFEST can be damaged.
class DamagingFileSystem final : public rocksdb::FileSystemWrapper {
 public:
  DamagingFileSystem() : FileSystemWrapper(rocksdb::FileSystem::Default()) {}
  const char* Name() const override { return "DamagingFileSystem"; }

  rocksdb::IOStatus NewSequentialFile(const std::string& path, const rocksdb::FileOptions& options,
                                      std::unique_ptr<rocksdb::FSSequentialFile>* file,
                                      rocksdb::IODebugContext* d) override {
    std::unique_ptr<rocksdb::FSSequentialFile> opened;
    rocksdb::IOStatus s = target()->NewSequentialFile(path, options, &opened, d);
    if (!s.ok()) return s;
    if (path.find("/MANIFEST-") == path.npos) {
      *file = std::move(opened);
    } else {
      *file = std::make_unique<File>(std::move(opened), &damages);
    }
    return s;
  }

  std::atomic<bool> damages{false};

 private:
  class File final : public rocksdb::FSSequentialFileOwnerWrapper {
   public:
    File(std::unique_ptr<rocksdb::FSSequentialFile> file, const std::atomic<bool>* damages)
        : FSSequentialFileOwnerWrapper(std::move(file)), damages_(*damages) {}
    rocksdb::IOStatus Read(size_t n, const rocksdb::IOOptions& options, rocksdb::Slice* result,
                           char* scratch, rocksdb::IODebugContext* d) override {
      rocksdb::IOStatus s = FSSequentialFileOwnerWrapper::Read(n, options, result, scratch, d);
      if (damages_ && !result->empty()) {
        if (result->data() != scratch) std::memmove(scratch, result->data(), result->size());
        scratch[result->size() - 1] ^= 0x10;
        *result = rocksdb::Slice(scratch, result->size());
      }
      return s;
    }

   private:
    const std::atomic<bool>& damages_;
  };
};

struct Attached {
  TemporaryDirectory directory;
  rocksdb::Options options;
  std::shared_ptr<rocksdb::DB> base;
  std::vector<rocksdb::ColumnFamilyHandle*> families;
  std::unique_ptr<IndexedDB> db;

  explicit Attached(rocksdb::Env* env = rocksdb::Env::Default()) {
    options.env = env;
    options.create_if_missing = true;
    options.create_missing_column_families = true;
    options.WAL_size_limit_MB = 100;
    Open();
  }
  ~Attached() { Close(); }
  void Open() {
    std::unique_ptr<rocksdb::DB> opened;
    RequireOk(rocksdb::DB::Open(options, directory / "db",
                                {{"default", options}, {"people", options}}, &families,
                                Into(&opened)));
    base = std::move(opened);
    Attach();
  }
  void Attach() {
    IndexedDBOptions indexed;
    indexed.open.calibration = Calibration::kNone;
    indexed.build.threads = 1;
    db = RequireOk(IndexedDB::Attach(base, families, indexed));
  }
  void Close() {
    if (db == nullptr) return;
    RequireOk(db->Close());
    for (auto* family : families) RequireOk(base->DestroyColumnFamilyHandle(family));
    families.clear();
    db.reset();
    base.reset();
  }
  rocksdb::ColumnFamilyHandle* Make(const std::string& name) {
    rocksdb::ColumnFamilyHandle* family = nullptr;
    RequireOk(base->CreateColumnFamily(options, name, &family));
    families.push_back(family);
    return family;
  }
};

BOOST_AUTO_TEST_CASE(an_index_of_a_family_that_was_made_again_fails) {
  Attached attached;
  IndexedDB* const db = attached.db.get();
  RequireOk(db->CreateIndex("city = value:text", attached.families[1]));
  RequireOk(db->CreateIndex("other = value:text", attached.families[0]));
  RequireOk(db->WaitUntilReady("city"));
  RequireOk(db->WaitUntilReady("other"));
  RequireOk(attached.base->Put({}, attached.families[1], "a", "Lisbon"));
  BOOST_TEST(RowsOf(db, "city", "Lisbon") == "a");
  // Another family has no effect.
  rocksdb::ColumnFamilyHandle* const unrelated = attached.Make("unrelated");
  RequireOk(attached.base->Put({}, unrelated, "u", "Rome"));
  BOOST_TEST(RowsOf(db, "city", "Lisbon") == "a");

  RequireOk(attached.base->DropColumnFamily(attached.families[1]));
  rocksdb::ColumnFamilyHandle* const again = attached.Make("people");
  RequireOk(attached.base->Put({}, again, "b", "Oslo"));
  CheckFails(db->Pin("city").status(), absl::StatusCode::kFailedPrecondition,
             "'people' was dropped");
  CheckFails(db->Lookup("city", "Lisbon").status(), absl::StatusCode::kFailedPrecondition,
             "'people' was dropped");
  CheckFails(db->WaitUntilReady("city"), absl::StatusCode::kFailedPrecondition, "was dropped");
  CheckFails(db->RebuildIndex("city"), absl::StatusCode::kFailedPrecondition, "was dropped");
  RequireOk(attached.base->Put({}, "x", "Paris"));
  BOOST_TEST(RowsOf(db, "other", "Paris") == "x");
  RequireOk(attached.base->DropColumnFamily(unrelated));

  attached.Close();
  attached.Open();
  RequireOk(attached.db->WaitUntilReady("city"));
  RequireOk(attached.db->WaitUntilReady("other"));
  BOOST_TEST(RowsOf(attached.db.get(), "city", "Oslo") == "b");
  CheckAgainstDatabase(attached.db.get(), "city", attached.families[1]);
}

BOOST_AUTO_TEST_CASE(an_index_of_a_handle_that_is_of_a_dropped_family_is_not_built) {
  Attached attached;
  rocksdb::ColumnFamilyHandle* const dropped = attached.families[1];
  RequireOk(attached.base->Put({}, dropped, "a", "Lisbon"));
  RequireOk(attached.base->DropColumnFamily(dropped));
  attached.Make("people");
  RequireOk(attached.db->CreateIndex("city = value:text", dropped));
  CheckFails(attached.db->WaitUntilReady("city"), absl::StatusCode::kFailedPrecondition,
             "'people' was dropped");
}

BOOST_AUTO_TEST_CASE(an_index_of_a_family_that_was_dropped_fails_without_a_write) {
  for (const bool made_again : {true, false}) {
    Attached attached;
    IndexedDB* const db = attached.db.get();
    RequireOk(db->CreateIndex("city = value:text", attached.families[1]));
    RequireOk(db->CreateIndex("other = value:text", attached.families[0]));
    RequireOk(db->WaitUntilReady("city"));
    RequireOk(db->WaitUntilReady("other"));
    RequireOk(attached.base->Put({}, attached.families[1], "a", "Lisbon"));
    BOOST_TEST(RowsOf(db, "city", "Lisbon") == "a");

    RequireOk(attached.base->DropColumnFamily(attached.families[1]));
    if (made_again) attached.Make("people");
    const absl::Time end = absl::Now() + absl::Seconds(30);
    while (db->Lookup("city", "Lisbon").ok() && absl::Now() < end) {
      absl::SleepFor(absl::Milliseconds(1));
    }
    CheckFails(db->Lookup("city", "Lisbon").status(), absl::StatusCode::kFailedPrecondition,
               "'people' was dropped");
    CheckFails(db->LookupRows("city", "Lisbon").status(), absl::StatusCode::kFailedPrecondition,
               "'people' was dropped");
    RequireOk(attached.base->Put({}, "x", "Paris"));
    BOOST_TEST(RowsOf(db, "other", "Paris") == "x");
  }
}

BOOST_AUTO_TEST_CASE(a_family_that_is_dropped_past_an_object_that_opened_the_database) {
  for (const bool made_again : {true, false}) {
    IndexedDatabase db;
    db.Create("city = value:text", 1);
    db.Put("a", "Lisbon", 1);
    BOOST_TEST(RowsOf(db.get(), "city", "Lisbon") == "a");
    rocksdb::DB* const base = db->GetBaseDB();
    RequireOk(base->DropColumnFamily(db.family(1)));
    rocksdb::ColumnFamilyHandle* again = nullptr;
    if (made_again) {
      RequireOk(base->CreateColumnFamily(db.rocksdb_options(), "a", &again));
      RequireOk(base->Put({}, again, "b", "Oslo"));
    }
    const absl::Time end = absl::Now() + absl::Seconds(30);
    while (!made_again && db->Lookup("city", "Lisbon").ok() && absl::Now() < end) {
      absl::SleepFor(absl::Milliseconds(1));
    }
    CheckFails(db->Lookup("city", "Lisbon").status(), absl::StatusCode::kFailedPrecondition,
               "'a' was dropped");
    if (again != nullptr) RequireOk(base->DestroyColumnFamilyHandle(again));
  }
}

BOOST_AUTO_TEST_CASE(the_manifest_lists_the_families) {
  using Names = std::map<uint32_t, std::string>;
  Attached attached;
  rocksdb::DB* const db = attached.base.get();
  ManifestFamilies reads_on(db);
  BOOST_TEST((RequireOk(reads_on.Read()) == Names{{0, "default"}, {1, "people"}}));
  BOOST_TEST((RequireOk(reads_on.Read()) == Names{{0, "default"}, {1, "people"}}));
  Names expected = {{0, "default"}, {1, "people"}};
  for (int i = 0; i < 40; ++i) {
    rocksdb::ColumnFamilyHandle* const family = attached.Make(absl::StrCat("family", i));
    expected[family->GetID()] = family->GetName();
    RequireOk(db->Put({}, family, "k", std::string(100, 'v')));
    RequireOk(db->Flush({}, family));
    if (i % 3 == 0) {
      RequireOk(db->DropColumnFamily(family));
      expected.erase(family->GetID());
    }
    if (i % 5 == 0) BOOST_TEST((RequireOk(reads_on.Read()) == expected));
  }
  BOOST_TEST((RequireOk(reads_on.Read()) == expected));
  BOOST_TEST((RequireOk(ManifestFamilies(db).Read()) == expected));
  // The same with a MANIFEST that begins with a list of the current state.
  attached.Close();
  std::vector<std::string> names;
  RequireOk(rocksdb::DB::ListColumnFamilies(attached.options, attached.directory / "db", &names));
  std::vector<rocksdb::ColumnFamilyDescriptor> descriptors;
  for (const std::string& name : names) descriptors.emplace_back(name, attached.options);
  std::unique_ptr<rocksdb::DB> opened;
  std::vector<rocksdb::ColumnFamilyHandle*> handles;
  RequireOk(rocksdb::DB::Open(attached.options, attached.directory / "db", descriptors, &handles,
                              Into(&opened)));
  BOOST_TEST((RequireOk(ManifestFamilies(opened.get()).Read()) == expected));
  for (auto* handle : handles) RequireOk(opened->DestroyColumnFamilyHandle(handle));
}

// Returns the MANIFEST's path and size.
std::pair<std::string, size_t> ManifestOf(const Attached& attached) {
  const std::string path = attached.directory / "db";
  std::ifstream current(path + "/CURRENT");
  std::string name;
  std::getline(current, name);
  return {path + "/" + name, std::filesystem::file_size(path + "/" + name)};
}

void FlipBitAt(const std::string& path, size_t offset) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekg(static_cast<std::streamoff>(offset));
  const int byte = file.get();
  file.seekp(static_cast<std::streamoff>(offset));
  file.put(static_cast<char>(byte ^ 0x40));
}

BOOST_AUTO_TEST_CASE(a_damaged_manifest_is_an_error_and_what_is_being_written_is_not) {
  Attached attached;
  for (int i = 0; i < 5; ++i) attached.Make(absl::StrCat("family", i));
  RequireOk(attached.db->Close());
  const auto expected = RequireOk(ManifestFamilies(attached.base.get()).Read());
  BOOST_TEST(expected.size() == 7u);
  const auto [path, size] = ManifestOf(attached);
  for (size_t offset = 0; offset < size; ++offset) {
    FlipBitAt(path, offset);
    const auto damaged = ManifestFamilies(attached.base.get()).Read();
    BOOST_TEST(absl::IsDataLoss(damaged.status()), offset << ": " << damaged.status());
    FlipBitAt(path, offset);
  }
  std::filesystem::resize_file(path, size - 1);
  BOOST_TEST(absl::IsDataLoss(ManifestFamilies(attached.base.get()).Read().status()));
  std::filesystem::resize_file(path, size);
  FlipBitAt(path, size - 1);
  BOOST_TEST(absl::IsDataLoss(ManifestFamilies(attached.base.get()).Read().status()));
}

BOOST_AUTO_TEST_CASE(a_part_of_a_record_at_the_end_of_the_manifest_is_not_damage) {
  Attached attached;
  attached.Make("more");
  RequireOk(attached.db->Close());
  ManifestFamilies reads_on(attached.base.get());
  const auto expected = RequireOk(reads_on.Read());
  const std::string path = ManifestOf(attached).first;
  for (const char* part : {"abc", "abcdefghijklmno", "more"}) {
    std::ofstream(path, std::ios::app | std::ios::binary) << part;
    BOOST_TEST((RequireOk(ManifestFamilies(attached.base.get()).Read()) == expected));
    BOOST_TEST((RequireOk(reads_on.Read()) == expected));
  }
}

// Without the list of column families, a dropped one would not be noticed.
BOOST_AUTO_TEST_CASE(indexes_fail_if_the_manifest_is_damaged) {
  const auto files = std::make_shared<DamagingFileSystem>();
  const std::unique_ptr<rocksdb::Env> env = rocksdb::NewCompositeEnv(files);
  Attached attached(env.get());
  for (const bool before : {false, true}) {
    RequireOk(attached.db->CreateIndex("city = value:text", attached.families[1],
                                       {.if_not_exists = true}));
    RequireOk(attached.db->WaitUntilReady("city"));
    if (before) RequireOk(attached.db->Close());
    files->damages = true;
    if (before) {
      attached.Attach();
    } else {
      attached.Make("more");
    }
    const absl::Time end = absl::Now() + absl::Seconds(30);
    while (attached.db->Lookup("city", "Lisbon").ok() && absl::Now() < end) {
      absl::SleepFor(absl::Milliseconds(1));
    }
    const absl::Status ready = attached.db->WaitUntilReady("city", absl::Seconds(30));
    BOOST_TEST(absl::IsDataLoss(ready), ready);
    BOOST_TEST(absl::StrContains(ready.message(), "is damaged at byte"), ready);
    CheckFails(attached.db->Lookup("city", "Lisbon").status(),
               absl::StatusCode::kFailedPrecondition, "is damaged at byte");
    BOOST_TEST(attached.db->ListIndexes()[0].builds == (before ? 0u : 1u));  // none in vain
    files->damages = false;
    RequireOk(attached.db->RebuildIndex("city"));
    RequireOk(attached.db->WaitUntilReady("city"));
    CheckAgainstDatabase(attached.db.get(), "city", attached.families[1]);
  }
}

// RocksDB assigns sequence numbers a second time after a clean close if their rows are in no table
// file and their log is not read again: rows of a column family that was dropped, and rows that a
// flush drops. Table files then have rows that the index lacks, with numbers that it has seen.
BOOST_AUTO_TEST_CASE(numbers_that_are_assigned_twice_are_not_taken_for_known_rows) {
  enum Last { kDropped, kBatchWithDropped, kSingleDeletion, kEmptyRange, kLasts };
  for (int last = 0; last < kLasts; ++last) {
    BOOST_TEST_CONTEXT("last write " << last) {
      Attached attached;
      rocksdb::ColumnFamilyHandle* const people = attached.families[1];
      rocksdb::ColumnFamilyHandle* const cities = attached.families[0];
      RequireOk(attached.db->CreateIndex("city = value:text", cities));
      RequireOk(attached.db->WaitUntilReady("city"));
      rocksdb::WriteOptions unlogged;
      unlogged.disableWAL = true;
      // After such a write, a database flushes all column families as it closes.
      RequireOk(attached.db->Put(unlogged, "z", "Rome"));
      RequireOk(attached.db->WaitUntilReady("city"));
      RequireOk(attached.db->Put({}, "a", "Lisbon"));
      rocksdb::WriteBatch batch;
      switch (last) {
        case kDropped:
          RequireOk(batch.Put(people, "x", "1"));
          RequireOk(batch.Put(people, "y", "2"));
          break;
        case kBatchWithDropped:
          RequireOk(batch.Put(cities, "b", "Oslo"));
          RequireOk(batch.Put(people, "y", "2"));
          break;
        case kSingleDeletion:
          RequireOk(batch.Put(cities, "b", "Oslo"));
          RequireOk(batch.SingleDelete(cities, "b"));
          break;
        default:
          RequireOk(batch.DeleteRange(cities, "q", "q"));
          break;
      }
      RequireOk(attached.db->Write({}, &batch));
      BOOST_TEST(RowsOf(attached.db.get(), "city", "Lisbon") == "a");
      const SequenceNumber then = attached.base->GetLatestSequenceNumber();
      if (last <= kBatchWithDropped) RequireOk(attached.db->DropColumnFamily(people));
      attached.Close();

      std::string expected = "a";
      {
        std::vector<std::string> names;
        RequireOk(
            rocksdb::DB::ListColumnFamilies(attached.options, attached.directory / "db", &names));
        std::vector<rocksdb::ColumnFamilyDescriptor> descriptors;
        for (const std::string& name : names) descriptors.emplace_back(name, attached.options);
        std::vector<rocksdb::ColumnFamilyHandle*> handles;
        std::unique_ptr<rocksdb::DB> plain;
        RequireOk(rocksdb::DB::Open(attached.options, attached.directory / "db", descriptors,
                                    &handles, Into(&plain)));
        BOOST_TEST(plain->GetLatestSequenceNumber() < then);
        for (int i = 0; plain->GetLatestSequenceNumber() < then; ++i) {
          const std::string key = absl::StrCat("c", i);
          RequireOk(plain->Put(unlogged, key, "Lisbon"));
          expected += " " + key;
        }
        RequireOk(plain->Flush({}));
        RequireOk(plain->CompactRange({}, nullptr, nullptr));
        BOOST_TEST(plain->GetLatestSequenceNumber() == then);
        for (auto* handle : handles) RequireOk(plain->DestroyColumnFamilyHandle(handle));
      }
      attached.Open();
      RequireOk(attached.db->WaitUntilReady("city"));
      BOOST_TEST(RowsOf(attached.db.get(), "city", "Lisbon") == expected);
      CheckAgainstDatabase(attached.db.get(), "city", attached.families[0]);
    }
  }
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
