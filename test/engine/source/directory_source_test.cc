// Tests of SnapshotSource::FromDirectory.
#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <fstream>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "engine/source/stored_options.h"
#include "rocksdb/utilities/backup_engine.h"
#include "rocksdb/utilities/checkpoint.h"
#include "test/engine/key_orders.h"
#include "test/engine/source/directories.h"
#include "test/engine/source/source_test.h"
#include "test/test_random.h"

namespace cairn {
BOOST_AUTO_TEST_SUITE(directory_source_test)
namespace {

void Checkpoint(rocksdb::DB* db, const std::string& path) {
  rocksdb::Checkpoint* made = nullptr;
  CheckOk(rocksdb::Checkpoint::Create(db, &made));
  const std::unique_ptr<rocksdb::Checkpoint> checkpoint(made);
  CheckOk(checkpoint->CreateCheckpoint(path));
}

BOOST_AUTO_TEST_CASE(checkpoints_of_every_compression_are_read_and_not_written_to) {
  std::mt19937_64 random = TestRandom();
  const TemporaryDirectory temp;
  for (const rocksdb::CompressionType type : rocksdb::GetSupportedCompressions()) {
    rocksdb::Options options;
    options.compression = type;
    options.write_buffer_size = 64 << 10;
    options.target_file_size_base = 32 << 10;
    const std::string name = std::to_string(type);
    const auto db = OpenDb(temp / name, options);
    Fill(db.get(), 8000, &random);
    CheckOk(db->DeleteRange(rocksdb::WriteOptions(), db->DefaultColumnFamily(), "key00000100",
                            "key00000200"));
    CheckOk(db->Put(rocksdb::WriteOptions(), "key00000150", "alive"));
    Checkpoint(db.get(), temp / (name + ".cp"));
    const Rows expected = DbRows(db.get());
    CheckDirectory(temp / (name + ".cp"), expected, &random);
  }
}

BOOST_AUTO_TEST_CASE(a_log_that_was_never_flushed_is_read_fully) {
  std::mt19937_64 random = TestRandom();
  const TemporaryDirectory temp;
  rocksdb::Options options;
  options.avoid_flush_during_shutdown = true;
  Rows expected;
  rocksdb::SequenceNumber sequence = 0;
  std::string id;
  {
    const auto db = OpenDb(temp / "db", options);
    Fill(db.get(), 5000, &random);
    expected = DbRows(db.get());
    sequence = db->GetLatestSequenceNumber();
    CheckOk(db->GetDbIdentity(id));
    // Also while it is open.
    CheckDirectory(temp / "db", expected, &random);
  }
  CheckDirectory(temp / "db", expected, &random);
  const auto source = OrDie(SnapshotSource::FromDirectory(temp / "db"));
  BOOST_TEST(source->sequence() == sequence);
  BOOST_TEST(source->database_id() == id);
  BOOST_TEST(source->approximate_rows() > 0u);
}

BOOST_AUTO_TEST_CASE(leftovers_of_deleted_files_stay) {
  std::mt19937_64 random = TestRandom();
  const TemporaryDirectory temp;
  { CheckOk(OpenDb(temp / "db")->Put(rocksdb::WriteOptions(), "a", "b")); }
  std::ofstream(temp / "db/000099.sst.trash") << "trash";
  CheckDirectory(temp / "db", {{"a", "b", {}}}, &random);
  BOOST_TEST(std::filesystem::exists(temp / "db/000099.sst.trash"));
}

BOOST_AUTO_TEST_CASE(one_of_many_column_families_is_opened) {
  std::mt19937_64 random = TestRandom();
  const TemporaryDirectory temp;
  std::map<std::string, Rows> expected;
  {
    const auto db = OpenDb(temp / "db");
    for (int i = 0; i < 30; ++i) {
      const std::string name = "family " + std::to_string(i);
      rocksdb::ColumnFamilyHandle* family = nullptr;
      CheckOk(db->CreateColumnFamily(rocksdb::ColumnFamilyOptions(), name, &family));
      Fill(db.get(), 200, &random, family);
      if (i % 3 == 0) CheckOk(db->Flush(rocksdb::FlushOptions(), family));
      expected[name] = DbRows(db.get(), family);
      CheckOk(db->DestroyColumnFamilyHandle(family));
    }
    expected["default"] = {};
  }
  for (const auto& [name, rows] : expected) CheckDirectory(temp / "db", rows, &random, name);
  const absl::Status missing = SnapshotSource::FromDirectory(temp / "db", "other").status();
  BOOST_TEST(absl::IsNotFound(missing));
  CheckMessage(missing, {"'other'", "'default'", "'family 0'", "'family 29'"});
}

BOOST_AUTO_TEST_CASE(values_in_blob_files_are_read) {
  std::mt19937_64 random = TestRandom();
  const TemporaryDirectory temp;
  rocksdb::Options options;
  options.enable_blob_files = true;
  options.min_blob_size = 50;
  options.blob_compression_type = rocksdb::kLZ4Compression;
  const auto db = OpenDb(temp / "db", options);
  Fill(db.get(), 5000, &random);
  CheckOk(db->Flush(rocksdb::FlushOptions()));
  Fill(db.get(), 2000, &random);
  Checkpoint(db.get(), temp / "cp");
  CheckDirectory(temp / "cp", DbRows(db.get()), &random);
  const auto source = OrDie(SnapshotSource::FromDirectory(temp / "cp"));
  rocksdb::ColumnFamilyMetaData metadata;
  db->GetColumnFamilyMetaData(&metadata);
  BOOST_TEST(metadata.blob_file_size > 0u);
  BOOST_TEST(source->approximate_bytes() >= metadata.blob_file_size);
}

BOOST_AUTO_TEST_CASE(wide_columns_are_read) {
  std::mt19937_64 random = TestRandom();
  const TemporaryDirectory temp;
  Rows expected;
  {
    const auto db = OpenDb(temp / "db");
    for (int i = 0; i < 2000; ++i) {
      const std::string city = RandomValue(&random);
      CheckOk(db->PutEntity(rocksdb::WriteOptions(), db->DefaultColumnFamily(),
                            RandomKey(&random, 5000), {{"city", city}, {"zip", "8010"}}));
      CheckOk(db->Put(rocksdb::WriteOptions(), RandomKey(&random, 5000), "plain"));
      if (i == 1000) CheckOk(db->Flush(rocksdb::FlushOptions()));
    }
    expected = DbRows(db.get());
  }
  CheckDirectory(temp / "db", expected, &random);
}

BOOST_AUTO_TEST_CASE(the_log_is_looked_for_where_it_belongs_to_this_state) {
  std::mt19937_64 random = TestRandom();
  const TemporaryDirectory temp;
  rocksdb::Options options;
  options.wal_dir = temp / "wal";
  options.avoid_flush_during_shutdown = true;
  Rows at_checkpoint;
  Rows at_end;
  {
    const auto db = OpenDb(temp / "db", options);
    Fill(db.get(), 500, &random);
    at_checkpoint = DbRows(db.get());
    Checkpoint(db.get(), temp / "cp");
    Fill(db.get(), 500, &random);
    CheckOk(db->Put(rocksdb::WriteOptions(), "later", "x"));
    at_end = DbRows(db.get());
  }
  // The checkpoint's options name the log of the database, which continues.
  CheckDirectory(temp / "cp", at_checkpoint, &random);
  CheckDirectory(temp / "db", at_end, &random);
}

BOOST_AUTO_TEST_CASE(a_restored_backup_is_read) {
  std::mt19937_64 random = TestRandom();
  const TemporaryDirectory temp;
  const auto db = OpenDb(temp / "db");
  Fill(db.get(), 3000, &random);
  rocksdb::BackupEngine* made = nullptr;
  CheckOk(rocksdb::BackupEngine::Open(rocksdb::BackupEngineOptions(temp / "backup"),
                                      rocksdb::Env::Default(), &made));
  const std::unique_ptr<rocksdb::BackupEngine> backup(made);
  CheckOk(backup->CreateNewBackup(db.get()));
  CheckOk(backup->RestoreDBFromLatestBackup(temp / "restored", temp / "restored"));
  CheckDirectory(temp / "restored", DbRows(db.get()), &random);
}

BOOST_AUTO_TEST_CASE(a_checkpoint_has_the_identity_of_its_database) {
  const TemporaryDirectory temp;
  const auto db = OpenDb(temp / "db");
  CheckOk(db->Put(rocksdb::WriteOptions(), "a", "b"));
  Checkpoint(db.get(), temp / "cp");
  std::string id;
  CheckOk(db->GetDbIdentity(id));
  const auto source = OrDie(SnapshotSource::FromDirectory(temp / "cp"));
  BOOST_TEST(source->database_id() == id);
  BOOST_TEST(source->sequence() == db->GetLatestSequenceNumber());
}

BOOST_AUTO_TEST_CASE(an_empty_database_has_no_rows) {
  std::mt19937_64 random = TestRandom();
  const TemporaryDirectory temp;
  { OpenDb(temp / "db"); }
  CheckDirectory(temp / "db", {}, &random);
}

BOOST_AUTO_TEST_CASE(what_is_not_a_database_is_refused) {
  const TemporaryDirectory temp;
  BOOST_TEST(absl::IsNotFound(SnapshotSource::FromDirectory(temp / "nowhere").status()));
  BOOST_TEST(!std::filesystem::exists(temp / "nowhere"));
  std::filesystem::create_directory(temp / "empty");
  const absl::Status empty = SnapshotSource::FromDirectory(temp / "empty").status();
  BOOST_TEST(absl::IsInvalidArgument(empty));
  CheckMessage(empty, {temp / "empty", "CURRENT"});
  BOOST_TEST(std::filesystem::is_empty(temp / "empty"));
  std::ofstream(temp / "file") << "x";
  BOOST_TEST(absl::IsInvalidArgument(SnapshotSource::FromDirectory(temp / "file").status()));
  std::ofstream(temp / "empty/CURRENT") << "nonsense";
  BOOST_TEST(!SnapshotSource::FromDirectory(temp / "empty").ok());
  // Options from the caller also do not make it a database.
  rocksdb::Options options;
  options.create_if_missing = true;
  BOOST_TEST(absl::IsNotFound(
      SnapshotSource::FromDirectory(temp / "nowhere", "default", &options).status()));
  BOOST_TEST(!std::filesystem::exists(temp / "nowhere"));
}

BOOST_AUTO_TEST_CASE(a_missing_file_is_an_error_and_not_a_smaller_result) {
  std::mt19937_64 random = TestRandom();
  const TemporaryDirectory temp;
  std::string name;
  {
    const auto db = OpenDb(temp / "db");
    Fill(db.get(), 3000, &random);
    CheckOk(db->Flush(rocksdb::FlushOptions()));
    std::vector<rocksdb::LiveFileMetaData> files;
    db->GetLiveFilesMetaData(&files);
    name = std::filesystem::path(files.at(0).relative_filename).stem().string();
  }
  std::filesystem::remove(temp / "db/" + name + ".sst");
  const absl::Status status = SnapshotSource::FromDirectory(temp / "db").status();
  BOOST_TEST(!status.ok());
  CheckMessage(status, {name});
}

BOOST_AUTO_TEST_CASE(unknown_orders_are_refused_by_name) {
  const TemporaryDirectory temp;
  static const test::ByLength by_length;
  rocksdb::Options options;
  options.comparator = &by_length;
  const std::string path = temp / "db";
  { CheckOk(OpenDb(path, options)->Put(rocksdb::WriteOptions(), "a", "b")); }
  const absl::Status stored = SnapshotSource::FromDirectory(path).status();
  BOOST_TEST(absl::IsUnimplemented(stored));
  CheckMessage(stored, {by_length.Name(), "'default'", path, "DeclareComparator", "--comparator"});
  const absl::Status given = SnapshotSource::FromDirectory(path, "default", &options).status();
  BOOST_TEST(absl::IsUnimplemented(given));
  CheckMessage(given, {by_length.Name()});
  // Without stored options, the MANIFEST decides.
  for (const auto& entry : std::filesystem::directory_iterator(path)) {
    if (entry.path().filename().string().rfind("OPTIONS", 0) == 0) {
      std::filesystem::remove(entry.path());
    }
  }
  const absl::Status untold = SnapshotSource::FromDirectory(path).status();
  BOOST_TEST(absl::IsUnimplemented(untold));
  CheckMessage(untold, {by_length.Name()});
}

BOOST_AUTO_TEST_CASE(a_column_family_in_byte_order_is_read_beside_others) {
  std::mt19937_64 random = TestRandom();
  const TemporaryDirectory temp;
  rocksdb::Options options;
  options.comparator = rocksdb::ReverseBytewiseComparator();
  {
    const auto db = OpenDb(temp / "db", options);
    rocksdb::ColumnFamilyHandle* family = nullptr;
    CheckOk(db->CreateColumnFamily(rocksdb::ColumnFamilyOptions(), "plain", &family));
    for (const char* key : {"a", "b", "c"}) {
      CheckOk(db->Put(rocksdb::WriteOptions(), key, "default"));
      CheckOk(db->Put(rocksdb::WriteOptions(), family, key, "plain"));
    }
    CheckOk(db->DestroyColumnFamilyHandle(family));
  }
  CheckDirectory(temp / "db", {{"a", "plain", {}}, {"b", "plain", {}}, {"c", "plain", {}}}, &random,
                 "plain");
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
