#include "engine/source/stored_options.h"

#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include "rocksdb/slice_transform.h"
#include "test/engine/source/directories.h"
#include "test/engine/source/source_test.h"
#include "test/test_random.h"

namespace cairn {
BOOST_AUTO_TEST_SUITE(stored_options_test)
namespace {

// Sums the lengths of operands; RocksDB does not know this operator.
class Lengths final : public rocksdb::AssociativeMergeOperator {
 public:
  bool Merge(const rocksdb::Slice&, const rocksdb::Slice* existing, const rocksdb::Slice& value,
             std::string* merged, rocksdb::Logger*) const override {
    *merged = (existing != nullptr ? existing->ToString() : "") + std::to_string(value.size());
    return true;
  }
  const char* Name() const override { return "test.Lengths"; }
};

BOOST_AUTO_TEST_CASE(merge_operators_come_from_the_stored_options) {
  std::mt19937_64 random = TestRandom();
  const TemporaryDirectory temp;
  for (const std::string name : {"{id=StringAppendOperator;delimiter=|}", "uint64add"}) {
    rocksdb::Options options;
    options.merge_operator = MakeOperator(name);
    options.disable_auto_compactions = true;
    const std::string path = temp / std::to_string(name.size());
    Rows expected;
    {
      const auto db = OpenDb(path, options);
      for (int i = 0; i < 3000; ++i) {
        CheckOk(db->Merge(rocksdb::WriteOptions(), RandomKey(&random, 100),
                          std::string(7, '\0') + static_cast<char>('a' + i % 7)));
        if (i % 1000 == 500) CheckOk(db->Flush(rocksdb::FlushOptions()));
      }
      expected = DbRows(db.get());
    }
    CheckDirectory(path, expected, &random);
  }
}

BOOST_AUTO_TEST_CASE(an_unknown_merge_operator_is_refused_by_name_unless_it_is_given) {
  std::mt19937_64 random = TestRandom();
  const TemporaryDirectory temp;
  rocksdb::Options options;
  options.merge_operator = std::make_shared<Lengths>();
  options.avoid_flush_during_shutdown = true;
  for (const bool flush : {false, true}) {
    const std::string path = temp / (flush ? "flushed" : "logged");
    Rows expected;
    {
      const auto db = OpenDb(path, options);
      // Two operands per key, which a flush does not merge under a snapshot between them.
      CheckOk(db->Put(rocksdb::WriteOptions(), "put", "value"));
      CheckOk(db->Merge(rocksdb::WriteOptions(), "merged", "abc"));
      CheckOk(db->Merge(rocksdb::WriteOptions(), "merged", "defg"));
      if (flush) CheckOk(db->Flush(rocksdb::FlushOptions()));
      expected = DbRows(db.get());
    }
    const absl::Status refused = SnapshotSource::FromDirectory(path).status();
    if (!flush || !refused.ok()) {
      BOOST_TEST(absl::IsFailedPrecondition(refused));
      CheckMessage(refused, {"test.Lengths", "options"});
    }
    CheckSource(*OrDie(SnapshotSource::FromDirectory(path, "default", &options)), expected,
                &random);
  }
  // It is harmless if nothing needs merging.
  {
    const auto db = OpenDb(temp / "unmerged", options);
    CheckOk(db->Put(rocksdb::WriteOptions(), "a", "b"));
    CheckOk(db->Flush(rocksdb::FlushOptions()));
  }
  CheckDirectory(temp / "unmerged", {{"a", "b", {}}}, &random);
}

BOOST_AUTO_TEST_CASE(without_stored_options_files_name_their_merge_operator) {
  std::mt19937_64 random = TestRandom();
  const TemporaryDirectory temp;
  for (const std::string name : {"uint64add", "StringAppendOperator"}) {
    rocksdb::Options options;
    options.merge_operator = MakeOperator(name);
    Rows expected;
    {
      const auto db = OpenDb(temp / name, options);
      // A snapshot keeps the operands of one key apart.
      CheckOk(db->Merge(rocksdb::WriteOptions(), "k", std::string(8, '\1')));
      const rocksdb::Snapshot* snapshot = db->GetSnapshot();
      CheckOk(db->Merge(rocksdb::WriteOptions(), "k", std::string(8, '\1')));
      CheckOk(db->Flush(rocksdb::FlushOptions()));
      db->ReleaseSnapshot(snapshot);
      expected = DbRows(db.get());
    }
    for (const auto& entry : std::filesystem::directory_iterator(temp / name)) {
      if (entry.path().filename().string().rfind("OPTIONS", 0) == 0) {
        std::filesystem::remove(entry.path());
      }
    }
    if (name == "uint64add") {
      CheckDirectory(temp / name, expected, &random);
      continue;
    }
    // Its delimiter is defined by options.
    const absl::Status refused = SnapshotSource::FromDirectory(temp / name).status();
    BOOST_TEST(absl::IsFailedPrecondition(refused));
    CheckMessage(refused, {"StringAppendOperator", "delimiter"});
    CheckSource(*OrDie(SnapshotSource::FromDirectory(temp / name, "default", &options)), expected,
                &random);
  }
}

BOOST_AUTO_TEST_CASE(a_directory_without_options_is_read_with_the_default_ones) {
  std::mt19937_64 random = TestRandom();
  const TemporaryDirectory temp;
  Rows expected;
  {
    const auto db = OpenDb(temp / "db");
    Fill(db.get(), 1000, &random);
    CheckOk(db->Flush(rocksdb::FlushOptions()));
    Fill(db.get(), 100, &random);
    expected = DbRows(db.get());
  }
  for (const auto& entry : std::filesystem::directory_iterator(temp / "db")) {
    if (entry.path().filename().string().rfind("OPTIONS", 0) == 0) {
      std::filesystem::remove(entry.path());
    }
  }
  CheckDirectory(temp / "db", expected, &random);
}

BOOST_AUTO_TEST_CASE(options_that_matter_to_writers_do_not_stop_readers) {
  std::mt19937_64 random = TestRandom();
  const TemporaryDirectory temp;
  rocksdb::Options options;
  options.prefix_extractor.reset(rocksdb::NewFixedPrefixTransform(3));
  options.memtable_factory.reset(rocksdb::NewHashSkipListRepFactory());
  options.allow_concurrent_memtable_write = false;
  options.max_successive_merges = 4;
  options.compaction_style = rocksdb::kCompactionStyleUniversal;
  options.info_log_level = rocksdb::DEBUG_LEVEL;
  options.db_log_dir = temp / "logs";
  std::filesystem::create_directory(temp / "logs");
  Rows expected;
  {
    const auto db = OpenDb(temp / "db", options);
    for (int i = 0; i < 8000; ++i) {
      // In the domain of the prefix extractor.
      CheckOk(db->Put(rocksdb::WriteOptions(), RandomKey(&random, 3000), RandomValue(&random)));
      if (i == 4000) CheckOk(db->Flush(rocksdb::FlushOptions()));
    }
    expected = DbRows(db.get());
  }
  const auto logs = DirectoryState(temp / "logs");
  CheckDirectory(temp / "db", expected, &random);
  BOOST_TEST((DirectoryState(temp / "logs") == logs));
}

BOOST_AUTO_TEST_CASE(hostile_option_and_manifest_files_are_errors) {
  std::mt19937_64 random = TestRandom();
  const TemporaryDirectory temp;
  { CheckOk(OpenDb(temp / "db")->Put(rocksdb::WriteOptions(), "a", "b")); }
  std::vector<std::string> damaged;
  for (const auto& entry : std::filesystem::directory_iterator(temp / "db")) {
    const std::string name = entry.path().filename().string();
    if (name.rfind("OPTIONS", 0) == 0 || name.rfind("MANIFEST", 0) == 0) damaged.push_back(name);
  }
  BOOST_TEST_REQUIRE(damaged.size() >= 2u);
  for (const std::string& name : damaged) {
    for (int round = 0; round < 40; ++round) {
      const std::string copy = temp / "copy";
      std::filesystem::remove_all(copy);
      std::filesystem::copy(temp / "db", copy);
      std::fstream file(copy + "/" + name, std::ios::in | std::ios::out | std::ios::binary);
      const uint64_t size = std::filesystem::file_size(copy + "/" + name);
      for (int i = 0; i < 8; ++i) {
        file.seekp(static_cast<std::streamoff>(random() % size));
        file.put(static_cast<char>(random()));
      }
      file.close();
      if (round % 5 == 0) std::filesystem::resize_file(copy + "/" + name, random() % size);
      // Either the option does not matter, or the directory is rejected.
      const auto source = SnapshotSource::FromDirectory(copy);
      if (source.ok()) {
        BOOST_TEST(RangeRows(**source, {}).size() <= 1u);
      } else {
        BOOST_TEST(!source.status().message().empty());
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(names_of_plug_ins_are_found_in_option_values) {
  BOOST_TEST(PlugInName("nullptr") == "");
  BOOST_TEST(PlugInName("") == "");
  BOOST_TEST(PlugInName(" leveldb.BytewiseComparator ") == "leveldb.BytewiseComparator");
  BOOST_TEST(PlugInName("{id=StringAppendOperator;delimiter=,;}") == "StringAppendOperator");
  BOOST_TEST(PlugInName("{delimiter=,; id=StringAppendOperator}") == "StringAppendOperator");
  BOOST_TEST(PlugInName("{void=1;id=A}") == "A");
  BOOST_TEST(PlugInName("{void=1}") == "{void=1}");
  BOOST_TEST(PlugInName("{") == "{");
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
