// What becomes of an index when its file system fails: at one operation after the other, once or
// from then on, until nothing fails any more.
#include "index/files/file_system.h"

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "cairn/secondary_index.h"
#include "index/files/index_directory.h"
#include "test/engine/faulty_file_system.h"
#include "test/engine/indexed_database.h"
#include "test/engine/test_database.h"
#include "test/require_ok.h"
#include "test/sanitizer.h"
#include "test/test_random.h"

namespace cairn {
namespace {

using Fault = FaultyFileSystem::Fault;
using Lasting = FaultyFileSystem::Lasting;
using Strings = std::vector<std::string>;

constexpr char kSpec[] = "value.field('|',0):u32";

struct Failure {
  Fault fault;
  Lasting lasting;
};

constexpr Failure kWriteFailures[] = {{Fault::kWriteError, Lasting::kOnce},
                                      {Fault::kWriteError, Lasting::kUntilRepaired},
                                      {Fault::kNoSpace, Lasting::kOnce},
                                      {Fault::kNoSpace, Lasting::kUntilRepaired}};

// A build has a hundred steps: all of them fail once, some of them in the other ways.
uint64_t BuildStride(Failure failure) {
  const bool all = failure.fault == Fault::kWriteError && failure.lasting == Lasting::kOnce;
  return all ? 1 : 5;
}

// Calls `attempt` for k = 1, 1 + stride, … until nothing fails. It calls what it is given to have
// the k-th operation from there on fail, repairs the file system when it has seen enough, and
// returns what failed.
template <typename Attempt>
void FailAtEachStep(FaultyFileSystem* files, Failure failure, uint64_t stride,
                    const Attempt& attempt) {
  if (kUnderTsan) stride *= 5;
  for (uint64_t k = 1;; k += stride) {
    BOOST_REQUIRE_MESSAGE(k < 10000, "nothing ends this");
    BOOST_TEST_CONTEXT("operation " << k) {
      const absl::Status status = attempt([&] { files->Break(failure.fault, k, failure.lasting); });
      files->Repair();
      if (files->failed() == 0) {
        BOOST_TEST(status.ok(), status);
        BOOST_TEST_MESSAGE(k - 1 << " operations failed");
        BOOST_TEST(k > stride);
        return;
      }
    }
  }
}

// That an operation in `directory` says what failed and where, in the code of the fault.
void CheckSaysWhy(const absl::Status& status, Failure failure, const std::string& directory) {
  BOOST_TEST(absl::StrContains(status.message(), directory), status);
  BOOST_TEST(absl::StrContains(status.message(), "cannot "), status);
  if (failure.fault == Fault::kNoSpace) {
    BOOST_TEST(absl::IsResourceExhausted(status), status);
  } else {
    BOOST_TEST((absl::IsInternal(status) || absl::IsUnavailable(status)), status);
  }
}

// The rows of a database: a number of the value each, by primary key.
class Rows {
 public:
  explicit Rows(TestDatabase* db) : db_(db) {}

  // Writes `count` rows, some of which are new, and deletes one.
  void Change(int count) {
    for (int i = 0; i < count; ++i) {
      const std::string key = "row" + std::to_string(random_() % 500);
      const std::string number = std::to_string(random_() % 50);
      db_->Put(key, number + "|some text");
      rows_[key] = number;
    }
    if (rows_.empty()) return;
    db_->Delete(rows_.begin()->first);
    rows_.erase(rows_.begin());
  }
  // "key=primary key" of every entry, in the order of the index.
  Strings Entries() const {
    std::set<std::pair<int, std::string>> ordered;
    for (const auto& [key, number] : rows_) ordered.emplace(std::stoi(number), key);
    Strings entries;
    for (const auto& [number, key] : ordered) entries.push_back(std::to_string(number) + "=" + key);
    return entries;
  }

 private:
  TestDatabase* const db_;
  std::mt19937_64 random_ = TestRandom();
  std::map<std::string, std::string> rows_;
};

Strings EntriesOf(const SecondaryIndex& index) {
  Matches matches;
  QueryOptions options;
  options.with_keys = true;
  RequireOk(index.Scan(RangeBatch::Everything(KeyKind::kU32), options, &matches));
  PrimaryKeyColumn primary_keys;
  RequireOk(index.PrimaryKeys(matches.row_ids, &primary_keys));
  Strings entries;
  for (size_t i = 0; i < primary_keys.size(); ++i) {
    entries.push_back(*index.codec().Format(matches.keys, i) + "=" + std::string(primary_keys[i]));
  }
  return entries;
}

void CheckEntries(const SecondaryIndex& index, const Strings& expected) {
  const Strings found = EntriesOf(index);
  if (found == expected) return;
  BOOST_ERROR("the index has " << found.size() << " entries, expected " << expected.size()
                               << ", or others");
}

// One index of a database on a file system that fails.
struct Fixture {
  TestDatabase db;
  Rows rows{&db};
  std::shared_ptr<FaultyFileSystem> files = std::make_shared<FaultyFileSystem>();
  std::string directory = db.Beside("index");

  OpenOptions open_options() const {
    OpenOptions options;
    options.calibration = Calibration::kNone;
    options.file_system = files;
    options.threads = 1;
    return options;
  }
  absl::Status Build() {
    BuildOptions options;
    options.threads = 1;
    options.memory_budget = 20000;  // so that it spills
    options.file_system = files;
    const BuildTarget targets[] = {{*IndexSpec::Parse(kSpec), directory},
                                   {*IndexSpec::Parse("value:text"), directory + "2"}};
    return SecondaryIndex::BuildAll(*db.Source(), targets, options).status();
  }
  std::unique_ptr<SecondaryIndex> Open() {
    auto index = RequireOk(SecondaryIndex::Open(directory, open_options()));
    RequireOk(index->Verify());
    return index;
  }
  // That the directory holds what its manifest names, and no more, once the next writer has it.
  void CheckNoLeftovers() {
    RequireOk(IndexDirectory::OpenForWrite(directory).status());
    std::set<std::string> expected = {"LOCK", "MANIFEST"};
    const auto manifest = RequireOk(ReadManifest(directory));
    for (const ManifestFile& file : manifest.files) expected.insert(file.name);
    std::set<std::string> found;
    for (const auto& file : std::filesystem::directory_iterator(directory)) {
      found.insert(file.path().filename().string());
    }
    BOOST_TEST(found == expected, boost::test_tools::per_element());
  }
};

BOOST_AUTO_TEST_SUITE(file_system_test)

BOOST_AUTO_TEST_CASE(a_first_build_that_fails_leaves_nothing) {
  for (const Failure failure : kWriteFailures) {
    Fixture f;
    f.rows.Change(3000);
    FailAtEachStep(f.files.get(), failure, 4, [&](const auto& break_files) {
      break_files();
      const absl::Status status = f.Build();
      f.files->Repair();
      if (!status.ok()) {
        // A new directory's name is synced in its parent.
        CheckSaysWhy(status, failure, std::filesystem::path(f.directory).parent_path().string());
        const auto opened = SecondaryIndex::Open(f.directory, f.open_options());
        if (opened.ok()) {
          CheckEntries(**opened, f.rows.Entries());  // the failure was the very last step
        } else {
          BOOST_TEST(absl::IsNotFound(opened.status()), opened.status());
        }
        RequireOk(f.Build());
      }
      CheckEntries(*f.Open(), f.rows.Entries());
      f.CheckNoLeftovers();
      std::filesystem::remove_all(f.directory);
      std::filesystem::remove_all(f.directory + "2");
      return status;
    });
  }
}

BOOST_AUTO_TEST_CASE(a_build_that_fails_leaves_the_index_that_was_there) {
  for (const Failure failure : kWriteFailures) {
    Fixture f;
    f.rows.Change(2000);
    RequireOk(f.Build());
    FailAtEachStep(f.files.get(), failure, BuildStride(failure), [&](const auto& break_files) {
      const Strings before = f.rows.Entries();
      const auto open = f.Open();
      f.rows.Change(20);
      break_files();
      const absl::Status status = f.Build();
      f.files->Repair();
      CheckEntries(*open, before);
      if (!status.ok()) {
        CheckSaysWhy(status, failure, f.directory);
        const auto reopened = f.Open();
        CheckEntries(*reopened,
                     reopened->sequence() == open->sequence() ? before : f.rows.Entries());
        RequireOk(f.Build());
      }
      CheckEntries(*f.Open(), f.rows.Entries());
      f.CheckNoLeftovers();
      return status;
    });
  }
}

BOOST_AUTO_TEST_CASE(catching_up_that_fails_is_stored_later) {
  for (const Failure failure : kWriteFailures) {
    Fixture f;
    f.rows.Change(500);
    RequireOk(f.Build());
    const auto index = f.Open();
    FailAtEachStep(f.files.get(), failure, 1, [&](const auto& break_files) {
      const Strings before = f.rows.Entries();
      const SequenceNumber stored = f.Open()->sequence();
      f.rows.Change(5);
      break_files();
      const absl::Status status = index->CatchUp(*f.db.Source()).status();
      CheckEntries(*index, f.rows.Entries());
      f.files->Repair();
      if (!status.ok()) {
        CheckSaysWhy(status, failure, f.directory);
        const auto reopened = f.Open();
        CheckEntries(*reopened, reopened->sequence() == stored ? before : f.rows.Entries());
        RequireOk(index->CatchUp(*f.db.Source()).status());
      }
      const auto reopened = f.Open();
      BOOST_TEST(reopened->sequence() == index->sequence());
      CheckEntries(*index, f.rows.Entries());
      CheckEntries(*reopened, f.rows.Entries());
      f.CheckNoLeftovers();
      return status;
    });
  }
}

BOOST_AUTO_TEST_CASE(a_merge_that_fails_changes_no_answer) {
  for (const Failure failure : kWriteFailures) {
    Fixture f;
    f.rows.Change(500);
    RequireOk(f.Build());
    const auto index = f.Open();
    FailAtEachStep(f.files.get(), failure, 1, [&](const auto& break_files) {
      f.rows.Change(5);
      RequireOk(index->CatchUp(*f.db.Source()).status());
      break_files();
      const absl::Status status = index->Merge();
      CheckEntries(*index, f.rows.Entries());
      f.files->Repair();
      if (!status.ok()) CheckSaysWhy(status, failure, f.directory);
      CheckEntries(*f.Open(), f.rows.Entries());
      if (!status.ok()) {
        // What comes meanwhile is stored beside whichever base is the published one.
        f.rows.Change(5);
        RequireOk(index->CatchUp(*f.db.Source()).status());
        RequireOk(index->Merge());
      }
      BOOST_TEST(index->Stats()->delta.added_entries == 0u);
      CheckEntries(*index, f.rows.Entries());
      CheckEntries(*f.Open(), f.rows.Entries());
      f.CheckNoLeftovers();
      return status;
    });
  }
}

BOOST_AUTO_TEST_CASE(an_index_that_cannot_be_read_says_why) {
  Fixture f;
  f.rows.Change(500);
  RequireOk(f.Build());
  f.rows.Change(5);
  RequireOk(f.Open()->CatchUp(*f.db.Source()).status());
  for (const Lasting lasting : {Lasting::kOnce, Lasting::kUntilRepaired}) {
    const Failure failure = {Fault::kReadError, lasting};
    FailAtEachStep(f.files.get(), failure, 1, [&](const auto& break_files) {
      break_files();
      const absl::Status status = SecondaryIndex::Open(f.directory, f.open_options()).status();
      f.files->Repair();
      if (!status.ok()) CheckSaysWhy(status, failure, f.directory);
      CheckEntries(*f.Open(), f.rows.Entries());
      return status;
    });
  }
}

BOOST_AUTO_TEST_CASE(a_merge_whose_base_cannot_be_read_is_taken_up_later) {
  Fixture f;
  f.rows.Change(500);
  RequireOk(f.Build());
  const auto index = f.Open();
  for (const Lasting lasting : {Lasting::kOnce, Lasting::kUntilRepaired}) {
    const Failure failure = {Fault::kReadError, lasting};
    FailAtEachStep(f.files.get(), failure, 1, [&](const auto& break_files) {
      f.rows.Change(5);
      RequireOk(index->CatchUp(*f.db.Source()).status());
      break_files();
      const absl::Status status = index->Merge();
      CheckEntries(*index, f.rows.Entries());
      f.files->Repair();
      if (!status.ok()) CheckSaysWhy(status, failure, f.directory);
      f.rows.Change(5);
      RequireOk(index->CatchUp(*f.db.Source()).status());
      CheckEntries(*f.Open(), f.rows.Entries());
      RequireOk(index->Merge());
      BOOST_TEST(index->Stats()->delta.added_entries == 0u);
      CheckEntries(*index, f.rows.Entries());
      CheckEntries(*f.Open(), f.rows.Entries());
      f.CheckNoLeftovers();
      return status;
    });
  }
}

// An IndexedDB whose indexes are on a file system that fails, and that does nothing by itself.
struct LiveFixture {
  std::shared_ptr<FaultyFileSystem> files = std::make_shared<FaultyFileSystem>();
  IndexedDatabase db{Options(files)};

  static IndexedDBOptions Options(std::shared_ptr<FaultyFileSystem> files) {
    IndexedDBOptions options;
    options.open.file_system = std::move(files);
    options.open.threads = 1;
    options.merge_threads = 1;
    options.store_interval = absl::ZeroDuration();
    options.merge_interval = absl::ZeroDuration();
    return options;
  }
  void Write(int count) {
    rocksdb::WriteBatch batch;
    for (int i = 0; i < count; ++i, ++written) {
      RequireOk(batch.Put("row" + std::to_string(written), std::to_string(written % 40) + "|x"));
    }
    RequireOk(db->Write({}, &batch));
  }
  int written = 0;
};

constexpr char kLiveSpec[] = "by_number = value.field('|',0):u32";

BOOST_AUTO_TEST_CASE(storing_and_merging_a_live_index_that_fails_is_made_up_for) {
  for (const Failure failure : kWriteFailures) {
    LiveFixture f;
    f.Write(300);
    f.db.Create(kLiveSpec);
    for (const bool merge : {false, true}) {
      FailAtEachStep(f.files.get(), failure, 1, [&](const auto& break_files) {
        f.Write(5);
        CheckAgainstDatabase(f.db.get(), "by_number", nullptr);
        break_files();
        const absl::Status status = merge ? f.db->MergeIndex("by_number") : f.db->StoreIndexes();
        CheckAgainstDatabase(f.db.get(), "by_number", nullptr);
        const IndexInfo info = f.db.Info("by_number");
        BOOST_TEST((merge ? info.merge_status : info.store_status) == status);
        BOOST_TEST((info.state == IndexState::kReady));
        f.files->Repair();
        if (!status.ok()) {
          CheckSaysWhy(status, failure, "by_number");
          RequireOk(merge ? f.db->MergeIndex("by_number") : f.db->StoreIndexes());
        }
        CheckAgainstDatabase(f.db.get(), "by_number", nullptr);
        return status;
      });
    }
    f.db.Reopen();
    RequireOk(f.db->WaitUntilReady("by_number"));
    BOOST_TEST(f.db.Info("by_number").builds == 0u);
    CheckAgainstDatabase(f.db.get(), "by_number", nullptr);
  }
}

// Of the catalog, an error of the open; of an index, what is soon tried again.
BOOST_AUTO_TEST_CASE(an_index_that_cannot_be_read_when_the_database_is_opened_is_read_later) {
  for (const OnStale policy : {OnStale::kReport, OnStale::kRebuild}) {
    LiveFixture f;
    f.Write(100);
    f.db.Create(kLiveSpec);
    f.db.Close();
    const rocksdb::Options& rocksdb_options = f.db.rocksdb_options();
    IndexedDBOptions options = f.db.options();
    options.on_stale = policy;
    int healed = 0;
    const Failure failure = {Fault::kReadError, Lasting::kOnce};
    FailAtEachStep(f.files.get(), failure, 1, [&](const auto& break_files) {
      std::vector<rocksdb::ColumnFamilyHandle*> handles;
      break_files();
      const auto db = IndexedDB::Open(rocksdb_options, f.db.path(),
                                      {{"default", rocksdb_options}, {"a", rocksdb_options}},
                                      &handles, options);
      if (!db.ok()) return db.status();
      RequireOk((*db)->WaitUntilReady("by_number", absl::Seconds(30)));
      f.files->Repair();
      healed += f.files->failed() > 0 ? 1 : 0;
      RequireOk((*db)->Put({}, absl::StrCat("more", healed), "7|x"));
      CheckAgainstDatabase(db->get(), "by_number", nullptr);
      BOOST_TEST((*db)->ListIndexes().at(0).builds == 0u);
      for (rocksdb::ColumnFamilyHandle* handle : handles) {
        RequireOk((*db)->DestroyColumnFamilyHandle(handle));
      }
      return absl::OkStatus();
    });
    BOOST_TEST(healed > 0);
  }
}

BOOST_AUTO_TEST_CASE(creating_an_index_that_fails_is_tried_again) {
  // An attempt waits half a second for the next one, so that some steps stand for all.
  constexpr uint64_t kStride = 5;
  for (const Failure failure :
       {Failure{Fault::kWriteError, Lasting::kOnce}, Failure{Fault::kNoSpace, Lasting::kOnce}}) {
    LiveFixture f;
    f.Write(300);
    FailAtEachStep(f.files.get(), failure, kStride, [&](const auto& break_files) {
      break_files();
      absl::Status status = f.db->CreateIndex(SpecOf(kLiveSpec));
      if (!status.ok()) {
        CheckSaysWhy(status, failure, f.db.path() + ".indexes");
        BOOST_TEST(f.db->ListIndexes().empty());
        RequireOk(f.db->CreateIndex(SpecOf(kLiveSpec)));
      }
      RequireOk(f.db->WaitUntilReady("by_number", absl::Seconds(30)));
      f.files->Repair();
      f.Write(5);
      CheckAgainstDatabase(f.db.get(), "by_number", nullptr);
      f.db.Reopen();
      RequireOk(f.db->WaitUntilReady("by_number", absl::Seconds(30)));
      BOOST_TEST(f.db.Info("by_number").builds == 0u);
      CheckAgainstDatabase(f.db.get(), "by_number", nullptr);
      RequireOk(f.db->DropIndex("by_number"));
      return status;
    });
  }
}

BOOST_AUTO_TEST_CASE(an_index_that_cannot_be_removed_is_dropped_again) {
  for (const Failure failure : {kWriteFailures[0], kWriteFailures[1]}) {
    LiveFixture f;
    f.Write(300);
    int attempts = 0;
    FailAtEachStep(f.files.get(), failure, 1, [&](const auto& break_files) {
      f.db.Create(kLiveSpec);
      break_files();
      const absl::Status status = f.db->DropIndex("by_number");
      f.files->Repair();
      if (!status.ok()) {
        CheckSaysWhy(status, failure, f.db.path() + ".indexes");
        // It is what it was, or on its way out.
        if (f.db.Info("by_number").state == IndexState::kReady) {
          CheckAgainstDatabase(f.db.get(), "by_number", nullptr);
        } else {
          BOOST_TEST((f.db.Info("by_number").state == IndexState::kFailed));
        }
        if (++attempts % 2 == 0) {
          // Or is gone at the next open, unless nothing of it had gone yet.
          f.db.Reopen();
          if (!f.db->ListIndexes().empty()) {
            RequireOk(f.db->WaitUntilReady("by_number"));
            CheckAgainstDatabase(f.db.get(), "by_number", nullptr);
            RequireOk(f.db->DropIndex("by_number"));
          }
        } else {
          RequireOk(f.db->DropIndex("by_number"));
        }
      }
      BOOST_TEST(f.db->ListIndexes().empty());
      BOOST_TEST(std::filesystem::is_empty(f.db.path() + ".indexes"));
      return status;
    });
  }
}

template <typename Condition>
bool WaitFor(const Condition& condition) {
  const absl::Time deadline = absl::Now() + absl::Seconds(60);
  while (!condition()) {
    if (absl::Now() > deadline) return false;
    absl::SleepFor(absl::Milliseconds(5));
  }
  return true;
}

BOOST_AUTO_TEST_CASE(a_disk_that_is_full_for_a_time_costs_a_live_index_nothing_but_time) {
  LiveFixture f;
  f.db.Close();
  f.db.options().store_interval = absl::Milliseconds(20);
  f.db.options().merge_interval = absl::Milliseconds(20);
  f.db.Open();
  f.Write(1000);
  f.db.Create(kLiveSpec);
  f.files->Break(Fault::kNoSpace, 1, Lasting::kUntilRepaired);
  f.Write(20000);  // so that a merge pays
  BOOST_TEST(WaitFor([&] {
    const IndexInfo info = f.db.Info("by_number");
    return absl::IsResourceExhausted(info.store_status) &&
           absl::IsResourceExhausted(info.merge_status);
  }));
  BOOST_TEST((f.db.Info("by_number").state == IndexState::kReady));
  f.Write(100);
  CheckAgainstDatabase(f.db.get(), "by_number", nullptr);
  f.files->Repair();
  BOOST_TEST(WaitFor([&] {
    const IndexInfo info = f.db.Info("by_number");
    return info.store_status.ok() && info.merge_status.ok() && info.merges > 0;
  }));
  CheckAgainstDatabase(f.db.get(), "by_number", nullptr);
  f.db.Reopen();
  RequireOk(f.db->WaitUntilReady("by_number"));
  BOOST_TEST(f.db.Info("by_number").builds == 0u);
  CheckAgainstDatabase(f.db.get(), "by_number", nullptr);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace cairn
