// The state of an index after failures of its file system: at each operation in turn, once or from
// then on, until none fails.
#include "index/files/file_system.h"
#include "cairn/options.h"
#include "cairn/secondary_index.h"

#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "cairn/column.h"
#include "cairn/index_spec.h"
#include "cairn/query.h"
#include "cairn/types.h"
#include "index/files/index_directory.h"
#include "test/engine/faults/failures.h"
#include "test/engine/faulty_file_system.h"
#include "test/engine/indexed_database.h"
#include "test/engine/test_database.h"
#include "test/require_ok.h"
#include "test/test_random.h"

namespace cairn {
BOOST_AUTO_TEST_SUITE(file_system_test)
namespace {

constexpr char kSpec[] = "value.field('|',0):u32";

// A build has a hundred steps: all of them fail once, some of them in the other ways.
uint64_t BuildStride(Failure failure) {
  const bool all = failure.fault == Fault::kWriteError && failure.lasting == Lasting::kOnce;
  return all ? 1 : 5;
}

// The rows of a database: the number in each value, by primary key.
class Rows {
 public:
  explicit Rows(TestDatabase* db) : db_(db) {}

  // Writes `count` rows, some of them new, and deletes one.
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
  // "key=primary key" of every entry, in index order.
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
  FindResult matches;
  QueryOptions options;
  options.with_keys = true;
  RequireOk(index.Scan(RangeBatch::Everything(PhysicalType::kU32), &matches, options));
  StringList primary_keys;
  RequireOk(index.PrimaryKeys(matches, &primary_keys));
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

// One index of a database, on a file system that fails.
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
  // Checks that the directory has only the files of its manifest after the next writer opened it.
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
          CheckEntries(**opened, f.rows.Entries());  // only the last step failed
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
      const absl::Status status = index->Compact();
      CheckEntries(*index, f.rows.Entries());
      f.files->Repair();
      if (!status.ok()) CheckSaysWhy(status, failure, f.directory);
      CheckEntries(*f.Open(), f.rows.Entries());
      if (!status.ok()) {
        // Later changes are stored with whichever base is published.
        f.rows.Change(5);
        RequireOk(index->CatchUp(*f.db.Source()).status());
        RequireOk(index->Compact());
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
      const absl::Status status = index->Compact();
      CheckEntries(*index, f.rows.Entries());
      f.files->Repair();
      if (!status.ok()) CheckSaysWhy(status, failure, f.directory);
      f.rows.Change(5);
      RequireOk(index->CatchUp(*f.db.Source()).status());
      CheckEntries(*f.Open(), f.rows.Entries());
      RequireOk(index->Compact());
      BOOST_TEST(index->Stats()->delta.added_entries == 0u);
      CheckEntries(*index, f.rows.Entries());
      CheckEntries(*f.Open(), f.rows.Entries());
      f.CheckNoLeftovers();
      return status;
    });
  }
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
