// Indexes on RocksDB file systems: an encrypted one, one in memory.
#include "engine/util/rocksdb_file_system.h"
#include "cairn/options.h"
#include "cairn/secondary_index.h"

#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_format.h"
#include "cairn/index_spec.h"
#include "rocksdb/env.h"
#include "rocksdb/env_encryption.h"
#include "test/engine/faulty_file_system.h"
#include "test/engine/indexed_database.h"
#include "test/engine/test_database.h"
#include "test/require_ok.h"

namespace cairn {
BOOST_AUTO_TEST_SUITE(rocksdb_file_system_test)
namespace {

// Not secure, but hides plain text.
class ToyCipher final : public rocksdb::BlockCipher {
 public:
  const char* Name() const override { return "ToyCipher"; }
  size_t BlockSize() override { return 32; }
  rocksdb::Status Encrypt(char* data) override {
    for (size_t i = 0; i < BlockSize(); ++i) data[i] = static_cast<char>(data[i] ^ (7 * i + 181));
    return rocksdb::Status::OK();
  }
  rocksdb::Status Decrypt(char* data) override { return Encrypt(data); }
};

std::shared_ptr<rocksdb::EncryptionProvider> Provider() {
  return rocksdb::EncryptionProvider::NewCTRProvider(std::make_shared<ToyCipher>());
}

std::shared_ptr<rocksdb::FileSystem> EncryptedFileSystem() {
  return rocksdb::NewEncryptedFS(rocksdb::FileSystem::Default(), Provider());
}

// Replaces a file that is about to be opened, as a concurrent writer may.
class ReplacingFileSystem final : public rocksdb::FileSystemWrapper {
 public:
  ReplacingFileSystem() : FileSystemWrapper(rocksdb::FileSystem::Default()) {}
  const char* Name() const override { return "ReplacingFileSystem"; }
  rocksdb::IOStatus NewRandomAccessFile(const std::string& path,
                                        const rocksdb::FileOptions& options,
                                        std::unique_ptr<rocksdb::FSRandomAccessFile>* file,
                                        rocksdb::IODebugContext* debug) override {
    if (!replacement.empty()) {
      WriteFile(path + ".next", std::exchange(replacement, ""));
      std::filesystem::rename(path + ".next", path);
    }
    return target()->NewRandomAccessFile(path, options, file, debug);
  }
  std::string replacement;
};

// The file systems of the tests below, including the local one.
std::vector<std::shared_ptr<FileSystem>> FileSystems() {
  return {FileSystemOf(nullptr), FileSystemOf(EncryptedFileSystem()),
          FileSystemOf(std::make_shared<FaultyFileSystem>())};
}

std::string Contents(FileSystem* files, const std::string& path) {
  const auto bytes = RequireOk(files->Map(path));
  BOOST_TEST(reinterpret_cast<uintptr_t>(bytes.bytes.data()) % 64 == 0);
  return std::string(bytes.bytes.begin(), bytes.bytes.end());
}

// Whether any file on disk contains the text.
bool Occurs(const std::string& directory, std::string_view text) {
  for (const auto& file : std::filesystem::recursive_directory_iterator(directory)) {
    if (file.is_regular_file() && ReadFile(file.path().string()).find(text) != std::string::npos) {
      return true;
    }
  }
  return false;
}

BOOST_AUTO_TEST_CASE(the_local_one_is_used_as_it_is) {
  BOOST_TEST(FileSystemOf(nullptr).get() == FileSystem::Posix());
  BOOST_TEST(FileSystemOf(rocksdb::FileSystem::Default()).get() == FileSystem::Posix());
  BOOST_TEST(FileSystemOf(rocksdb::Env::Default()->GetFileSystem()).get() == FileSystem::Posix());
  BOOST_TEST(FileSystemOf(EncryptedFileSystem()).get() != FileSystem::Posix());
}

BOOST_AUTO_TEST_CASE(files_are_written_at_any_offset_and_read_back) {
  for (const auto& files : FileSystems()) {
    const TemporaryDirectory directory;
    const std::string path = directory / "file";
    {
      const auto file = RequireOk(files->Create(path, IfExists::kFail));
      const std::string large(3 << 20, 'x');
      RequireOk(file->WriteAt(100, large.data(), large.size()));
      const std::string head(100, 'h');
      RequireOk(file->WriteAt(0, head.data(), head.size()));
      RequireOk(file->Sync());
      BOOST_TEST(Contents(files.get(), path) == head + large);
    }
    BOOST_TEST(absl::IsAlreadyExists(files->Create(path, IfExists::kFail).status()));
    RequireOk(files->LinkOrCopy(path, directory / "second"));
    BOOST_TEST(absl::IsAlreadyExists(files->LinkOrCopy(path, directory / "second")));
    RequireOk(WriteSmallFile(files.get(), path, "short"));
    BOOST_TEST(Contents(files.get(), path) == "short");
    BOOST_TEST(*ReadSmallFile(files.get(), path, 5) == "short");
    BOOST_TEST(absl::IsDataLoss(ReadSmallFile(files.get(), path, 4).status()));
    const auto open = RequireOk(files->OpenForReading(path));
    char bytes[5];
    BOOST_TEST(absl::IsDataLoss(open->ReadAt(1, bytes, 5)));
    RequireOk(open->ReadAt(1, bytes, 4));
    BOOST_TEST(std::string(bytes, 4) == "hort");

    RequireOk(WriteSmallFile(files.get(), directory / "third", "longer"));
    RequireOk(files->Rename(path, directory / "third"));
    BOOST_TEST(absl::IsNotFound(files->OpenForReading(path).status()));
    BOOST_TEST(absl::IsNotFound(files->OpenForReading(directory / "third/of").status()));
    BOOST_TEST(absl::IsNotFound(files->Create(directory / "no/file", IfExists::kFail).status()));
    BOOST_TEST(absl::IsNotFound(files->Remove(path)));
    BOOST_TEST(Contents(files.get(), directory / "third") == "short");
  }
}

BOOST_AUTO_TEST_CASE(a_file_that_is_replaced_while_it_is_opened_is_one_or_the_other) {
  const auto replacing = std::make_shared<ReplacingFileSystem>();
  const auto files = FileSystemOf(replacing);
  const TemporaryDirectory directory;
  for (const char* next : {"a longer one", "short"}) {
    WriteFile(directory / "file", "the first");
    replacing->replacement = next;
    const auto bytes = RequireOk(ReadSmallFile(files.get(), directory / "file", 100));
    BOOST_TEST(bytes == next);
  }
}

BOOST_AUTO_TEST_CASE(directories_are_made_listed_synced_and_removed) {
  for (const auto& files : FileSystems()) {
    const TemporaryDirectory directory;
    const std::string path = directory / "inner";
    RequireOk(files->MakeDirectory(path));
    BOOST_TEST(absl::IsAlreadyExists(files->MakeDirectory(path)));
    BOOST_TEST(absl::IsNotFound(files->MakeDirectory(directory / "no/inner")));
    BOOST_TEST(files->List(path)->empty());
    RequireOk(WriteSmallFile(files.get(), path + "/a", "1"));
    RequireOk(WriteSmallFile(files.get(), path + "/b", "2"));
    BOOST_TEST(absl::IsFailedPrecondition(files->MakeDirectory(path + "/a")));
    RequireOk(files->SyncDirectory(path));
    const std::vector<std::string> names = *files->List(path);
    BOOST_TEST(
        (std::set<std::string>(names.begin(), names.end()) == std::set<std::string>{"a", "b"}));
    BOOST_TEST(!files->RemoveDirectory(path).ok());
    RequireOk(files->Remove(path + "/a"));
    RequireOk(files->Remove(path + "/b"));
    RequireOk(files->RemoveDirectory(path));
    BOOST_TEST(absl::IsNotFound(files->List(path).status()));
    BOOST_TEST(absl::IsNotFound(files->SyncDirectory(path)));
  }
}

BOOST_AUTO_TEST_CASE(a_lock_is_held_once) {
  for (const auto& files : FileSystems()) {
    const TemporaryDirectory directory;
    auto lock = files->Lock(directory / "LOCK");
    RequireOk(lock);
    BOOST_TEST((*lock)->made_file());
    BOOST_TEST(absl::IsUnavailable(files->Lock(directory / "LOCK").status()));
    BOOST_TEST(absl::IsNotFound(files->Lock(directory / "no/LOCK").status()));
    lock = absl::CancelledError("");
    lock = files->Lock(directory / "LOCK");
    RequireOk(lock);
    BOOST_TEST(!(*lock)->made_file());
  }
}

BOOST_AUTO_TEST_CASE(temporary_files_go_when_they_are_closed) {
  for (const auto& files : FileSystems()) {
    const TemporaryDirectory directory;
    {
      const auto first = files->CreateTemporary(directory.path());
      const auto second = files->CreateTemporary(directory.path());
      BOOST_REQUIRE_MESSAGE(first.ok() && second.ok(), first.status());
      RequireOk((*first)->WriteAt(3, "abc", 3));
      RequireOk((*second)->WriteAt(0, "x", 1));
      char bytes[3];
      RequireOk((*first)->ReadAt(3, bytes, 3));
      BOOST_TEST(std::string(bytes, 3) == "abc");
      BOOST_TEST(absl::IsDataLoss((*first)->ReadAt(4, bytes, 3)));
    }
    BOOST_TEST(std::filesystem::is_empty(directory.path()));
  }
}

BOOST_AUTO_TEST_CASE(an_encrypted_index_answers_and_shows_no_key) {
  TestDatabase db;
  const auto put = [&](int row, int town) {
    db.Put(absl::StrFormat("citizen-%05d", row), absl::StrFormat("township-%03d", town));
  };
  for (int i = 0; i < 5000; ++i) put(i, i % 97);
  const std::string directory = db.Beside("index"), plain = db.Beside("plain");
  BuildOptions build;
  build.memory_budget = 100000;  // so that it spills
  const IndexSpec spec = SpecOf("value:text");
  RequireOk(SecondaryIndex::Build(*db.Source(), spec, plain, build).status());
  build.file_system = EncryptedFileSystem();
  RequireOk(SecondaryIndex::Build(*db.Source(), spec, directory, build).status());
  BOOST_TEST(
      (Occurs(plain, "citizen-") && Occurs(plain, "township-")));  // so that it would be found

  OpenOptions open;
  open.file_system = EncryptedFileSystem();
  auto index = *SecondaryIndex::Open(directory, open);
  const auto check = [&] {
    RequireOk(index->Verify());
    std::vector<std::string> differences;
    RequireOk(index->VerifyAgainst(*db.Source(), 3, &differences));
    for (const std::string& difference : differences) BOOST_ERROR(difference);
    BOOST_TEST(!Occurs(directory, "citizen-"));
    BOOST_TEST(!Occurs(directory, "township-"));
  };
  check();
  BOOST_TEST(RowsOf(*index, "township-096") ==
             RowsOf(**SecondaryIndex::Open(plain), "township-096"));
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 100; ++i) put(4950 + i, 200 + round);
    RequireOk(index->CatchUp(*db.Source()).status());
    check();
    index = *SecondaryIndex::Open(directory, open);
    check();
    if (round == 0) continue;
    RequireOk(index->Compact());
    BOOST_TEST(index->Stats()->delta.added_entries == 0u);
    check();
  }
  // Without the encryption, the index cannot be opened.
  BOOST_TEST(!SecondaryIndex::Open(directory).ok());
}

BOOST_AUTO_TEST_CASE(the_indexes_of_an_encrypted_database_are_encrypted) {
  const auto provider = Provider();
  const std::unique_ptr<rocksdb::Env> env(
      rocksdb::NewEncryptedEnv(rocksdb::Env::Default(), provider));
  const TemporaryDirectory directory;
  rocksdb::Options options;
  options.create_if_missing = true;
  options.env = env.get();
  IndexedDBOptions indexes;
  indexes.open.calibration = Calibration::kNone;
  indexes.build.threads = 1;
  for (int round = 0; round < 2; ++round) {
    auto db = RequireOk(IndexedDB::Open(options, directory / "db", indexes));
    for (int i = 0; i < 500; ++i) {
      RequireOk(db->Put({}, absl::StrFormat("citizen-%d-%05d", round, i), "township-7"));
    }
    if (round == 0) RequireOk(db->CreateIndex(SpecOf("by_town = value:text")));
    RequireOk(db->WaitUntilReady("by_town"));
    BOOST_TEST(db->ListIndexes().at(0).builds == (round == 0 ? 1u : 0u));
    CheckAgainstDatabase(db.get(), "by_town", nullptr);
    RequireOk(db->FlushIndexes());
    if (round == 1) {
      RequireOk(db->CompactIndex("by_town"));
      CheckAgainstDatabase(db.get(), "by_town", nullptr);
    }
    BOOST_TEST(std::filesystem::exists(directory / "db.indexes/by_town/MANIFEST"));
    BOOST_TEST(!Occurs(directory.path(), "citizen-"));
    BOOST_TEST(!Occurs(directory.path(), "township-7"));
  }
}

BOOST_AUTO_TEST_CASE(a_database_in_memory_has_its_indexes_there) {
  const std::unique_ptr<rocksdb::Env> env(rocksdb::NewMemEnv(rocksdb::Env::Default()));
  const TemporaryDirectory directory;
  rocksdb::Options options;
  options.create_if_missing = true;
  options.env = env.get();
  IndexedDBOptions indexes;
  indexes.open.calibration = Calibration::kNone;
  for (int round = 0; round < 2; ++round) {
    auto db = RequireOk(IndexedDB::Open(options, directory / "db", indexes));
    RequireOk(db->Put({}, absl::StrFormat("row%d", round), "red"));
    if (round == 0) RequireOk(db->CreateIndex(SpecOf("by_colour = value:text")));
    RequireOk(db->WaitUntilReady("by_colour"));
    BOOST_TEST(RowsOf(db.get(), "by_colour", "red") == (round == 0 ? "row0" : "row0 row1"));
  }
  BOOST_TEST(std::filesystem::is_empty(directory.path()));
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
