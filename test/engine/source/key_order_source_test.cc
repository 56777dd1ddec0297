// Sources of column families whose comparator is not RocksDB's default one.
#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "cairn/index_spec.h"
#include "cairn/secondary_index.h"
#include "rocksdb/slice_transform.h"
#include "rocksdb/sst_file_writer.h"
#include "rocksdb/table.h"
#include "rocksdb/utilities/checkpoint.h"
#include "test/engine/key_orders.h"
#include "test/engine/source/source_test.h"
#include "test/test_random.h"

namespace cairn {
BOOST_AUTO_TEST_SUITE(key_order_source_test)
namespace {

using Model = std::map<std::string, std::string>;

rocksdb::Options OptionsOf(const rocksdb::Comparator* comparator) {
  rocksdb::Options options;
  options.comparator = comparator;
  options.merge_operator = MakeOperator("stringappend");
  options.disable_auto_compactions = true;
  return options;
}

void EraseRange(const rocksdb::Comparator* comparator, const std::string& begin,
                const std::string& end, Model* model) {
  std::erase_if(*model, [&](const auto& row) {
    return comparator->Compare(begin, row.first) <= 0 && comparator->Compare(row.first, end) < 0;
  });
}

// Random writes of all kinds, with hard keys.
void Write(rocksdb::DB* db, rocksdb::ColumnFamilyHandle* family, int writes,
           std::mt19937_64* random, Model* model) {
  const rocksdb::Comparator* const comparator = family->GetComparator();
  for (int i = 0; i < writes; ++i) {
    const std::string key = test::HardKey(random);
    const std::string value = "v" + std::to_string((*random)() % 1000);
    switch ((*random)() % 12) {
      case 0:
        CheckOk(db->Delete({}, family, key));
        model->erase(key);
        break;
      case 1: {
        CheckOk(db->Merge({}, family, key, value));
        std::string& row = (*model)[key];
        row += row.empty() ? value : "," + value;
        break;
      }
      case 2: {
        if ((*random)() % 6 != 0) break;
        const auto [begin, end] = test::HardRange(comparator, random);
        CheckOk(db->DeleteRange({}, family, begin, end));
        EraseRange(comparator, begin, end, model);
        break;
      }
      case 3:
        if ((*random)() % 4 == 0) CheckOk(db->Flush({}, family));
        if ((*random)() % 20 == 0) CheckOk(db->CompactRange({}, family, nullptr, nullptr));
        break;
      default:
        CheckOk(db->Put({}, family, key, value));
        (*model)[key] = value;
    }
  }
}

void CheckDirectoryOf(const std::string& path, const std::string& family, const Model& model,
                      std::mt19937_64* random) {
  const auto state = DirectoryState(path);
  CheckSource(*OrDie(SnapshotSource::FromDirectory(path, family)), ToRows(model), random);
  BOOST_TEST((DirectoryState(path) == state));
}

BOOST_AUTO_TEST_CASE(databases_directories_and_checkpoints) {
  std::mt19937_64 random = TestRandom();
  for (const test::Order& known : test::Orders()) {
    BOOST_TEST_CONTEXT(known.comparator->Name()) {
      const TemporaryDirectory temp;
      const rocksdb::Options options = OptionsOf(known.comparator);
      Model of_default, of_family;
      {
        const auto db = OpenDb(temp / "db", options);
        rocksdb::ColumnFamilyHandle* family = nullptr;
        // The name needs escapes in the OPTIONS file, as MyRocks' names of such families.
        CheckOk(
            db->CreateColumnFamily(OptionsOf(rocksdb::BytewiseComparator()), "rev:cf", &family));
        Write(db.get(), db->DefaultColumnFamily(), 3000, &random, &of_default);
        Write(db.get(), family, 300, &random, &of_family);
        CheckSource(*OrDie(SnapshotSource::FromDb(db.get())), ToRows(of_default), &random);
        CheckSource(*OrDie(SnapshotSource::FromDb(db.get(), family)), ToRows(of_family), &random);
        rocksdb::Checkpoint* made = nullptr;
        CheckOk(rocksdb::Checkpoint::Create(db.get(), &made));
        const std::unique_ptr<rocksdb::Checkpoint> checkpoint(made);
        CheckOk(checkpoint->CreateCheckpoint(temp / "checkpoint"));
        CheckOk(db->DestroyColumnFamilyHandle(family));
      }
      if (!known.is_known_by_name) {
        const absl::Status unknown = SnapshotSource::FromDirectory(temp / "db").status();
        BOOST_TEST(absl::IsUnimplemented(unknown), unknown);
        CheckMessage(unknown, {known.comparator->Name(), "--comparator"});
        const auto source = OrDie(SnapshotSource::FromDirectory(temp / "db", "default", &options));
        CheckSource(*source, ToRows(of_default), &random);
        continue;
      }
      for (const char* name : {"db", "checkpoint"}) {
        CheckDirectoryOf(temp / name, "default", of_default, &random);
        CheckDirectoryOf(temp / name, "rev:cf", of_family, &random);
        // Without stored options, the MANIFEST has the comparator's name.
        for (const auto& entry : std::filesystem::directory_iterator(temp / name)) {
          if (entry.path().filename().string().starts_with("OPTIONS")) {
            std::filesystem::remove(entry.path());
          }
        }
        const rocksdb::Options plain = OptionsOf(rocksdb::BytewiseComparator());
        CheckSource(*OrDie(SnapshotSource::FromDirectory(temp / name, "default", &plain)),
                    ToRows(of_default), &random);
      }
    }
  }
}

// Files of a database, also with several versions of a key, and of the empty key.
BOOST_AUTO_TEST_CASE(sst_files_of_a_database) {
  std::mt19937_64 random = TestRandom();
  for (const test::Order& known : test::Orders()) {
    if (!known.is_known_by_name) continue;
    for (int round = 0; round < 3; ++round) {
      BOOST_TEST_CONTEXT(known.comparator->Name() << " round " << round) {
        const TemporaryDirectory temp;
        Model model;
        const auto db = OpenDb(temp / "db", OptionsOf(known.comparator));
        const rocksdb::Snapshot* snapshot = db->GetSnapshot();  // keeps versions
        for (int i = 0; i < 4000; ++i) {
          const std::string key = random() % 3 == 0 ? "" : test::HardKey(&random);
          if (random() % 5 == 0) {
            CheckOk(db->Delete({}, key));
            model.erase(key);
          } else {
            const std::string value = std::to_string(i);
            CheckOk(db->Put({}, key, value));
            model[key] = value;
          }
          if (random() % 900 == 0) CheckOk(db->Flush({}));
          if (round == 2 && random() % 2000 == 0) {
            CheckOk(db->CompactRange({}, nullptr, nullptr));
          }
        }
        if (round == 1) {  // the empty key as the last one that is there
          CheckOk(db->Delete({}, ""));
          model.erase("");
        }
        CheckOk(db->Flush({}));
        std::vector<rocksdb::LiveFileMetaData> files;
        db->GetLiveFilesMetaData(&files);
        std::vector<std::string> paths;
        for (const auto& file : files) paths.push_back(temp / ("db" + file.name));
        CheckSource(*OrDie(SnapshotSource::FromSstFiles(paths, temp / ".")), ToRows(model),
                    &random);
        db->ReleaseSnapshot(snapshot);
      }
    }
  }
}

// Files of SstFileWriter with deletions of ranges: a later file wins.
BOOST_AUTO_TEST_CASE(sst_files_of_a_writer) {
  std::mt19937_64 random = TestRandom();
  for (const test::Order& known : test::Orders()) {
    if (!known.is_known_by_name) continue;
    for (int round = 0; round < 10; ++round) {
      BOOST_TEST_CONTEXT(known.comparator->Name() << " round " << round) {
        const TemporaryDirectory temp;
        const auto less = [&](const std::string& a, const std::string& b) {
          return known.comparator->Compare(a, b) < 0;
        };
        Model model;
        std::vector<std::string> paths;
        for (int file = 0; file < 4; ++file) {
          paths.push_back(temp / (std::to_string(file) + ".sst"));
          rocksdb::SstFileWriter writer(rocksdb::EnvOptions(), OptionsOf(known.comparator));
          CheckOk(writer.Open(paths.back()));
          const bool has_ranges = random() % 2 == 0;
          for (int range = 0; range < 2 && has_ranges; ++range) {
            const auto [begin, end] = test::HardRange(known.comparator, &random);
            if (begin == end) continue;
            CheckOk(writer.DeleteRange(begin, end));
            EraseRange(known.comparator, begin, end, &model);
          }
          std::vector<std::string> keys = {"", std::string(70, '\xff')};
          for (uint64_t i = random() % 150; i > 0; --i) keys.push_back(test::HardKey(&random));
          std::sort(keys.begin(), keys.end(), less);
          keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
          for (const std::string& key : keys) {
            const uint64_t what = random() % 4;
            if (what == 0) continue;
            // A deletion of a range in the same file does not apply to the file's own rows.
            if (what == 1) {
              CheckOk(writer.Delete(key));
              model.erase(key);
            } else {
              CheckOk(writer.Put(key, std::to_string(file)));
              model[key] = std::to_string(file);
            }
          }
          const rocksdb::Status finished = writer.Finish();
          if (finished.IsInvalidArgument()) paths.pop_back();  // it has no entries
        }
        if (paths.empty()) continue;
        CheckSource(*OrDie(SnapshotSource::FromSstFiles(paths, temp / ".")), ToRows(model),
                    &random);
        const rocksdb::Options given = OptionsOf(known.comparator);
        CheckSource(*OrDie(SnapshotSource::FromSstFiles(paths, temp / ".", &given)), ToRows(model),
                    &random);
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(files_of_two_orders_are_refused) {
  const TemporaryDirectory temp;
  std::vector<std::string> paths;
  for (const rocksdb::Comparator* comparator :
       {rocksdb::BytewiseComparator(), rocksdb::ReverseBytewiseComparator()}) {
    paths.push_back(temp / (std::to_string(paths.size()) + ".sst"));
    rocksdb::SstFileWriter writer(rocksdb::EnvOptions(), OptionsOf(comparator));
    CheckOk(writer.Open(paths.back()));
    CheckOk(writer.Put("a", "b"));
    CheckOk(writer.Finish());
  }
  const absl::Status refused = SnapshotSource::FromSstFiles(paths, temp / ".").status();
  BOOST_TEST(absl::IsFailedPrecondition(refused), refused);
  CheckMessage(refused, {paths[0], paths[1], "rocksdb.ReverseBytewiseComparator"});
}

// A build detects rows that are not in the order that was declared.
BOOST_AUTO_TEST_CASE(a_wrong_declaration_is_detected_by_a_scan_of_rows_out_of_order) {
  const TemporaryDirectory temp;
  RequireOk(DeclareComparator("test.Liar", KeyOrder::kBytewise));
  static const test::Renamed liar("test.Liar", rocksdb::ReverseBytewiseComparator());
  const auto db = OpenDb(temp / "db", OptionsOf(&liar));
  for (const char* key : {"a", "b", "c"}) CheckOk(db->Put({}, key, "x"));
  const auto source = OrDie(SnapshotSource::FromDb(db.get()));
  const absl::Status built =
      SecondaryIndex::Build(*source, RequireOk(IndexSpec::Parse("value:text")), temp / "index", {})
          .status();
  BOOST_TEST(absl::IsInvalidArgument(built), built);
  CheckMessage(built, {"do not ascend"});
}

// Such files cannot be read backwards.
BOOST_AUTO_TEST_CASE(plain_tables_in_reverse_order_are_refused) {
  const TemporaryDirectory temp;
  rocksdb::Options options = OptionsOf(rocksdb::ReverseBytewiseComparator());
  options.merge_operator = nullptr;
  options.allow_mmap_reads = true;
  rocksdb::PlainTableOptions table;
  options.table_factory.reset(rocksdb::NewPlainTableFactory(table));
  options.prefix_extractor.reset(rocksdb::NewNoopTransform());
  const auto db = OpenDb(temp / "db", options);
  CheckOk(db->Put({}, "a", "x"));
  const absl::Status refused = SnapshotSource::FromDb(db.get()).status();
  BOOST_TEST(absl::IsUnimplemented(refused), refused);
  CheckMessage(refused, {"PlainTable"});
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
