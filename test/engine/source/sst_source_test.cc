// Tests of SnapshotSource::FromSstFiles.
#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "engine/source/sst_levels.h"
#include "rocksdb/utilities/checkpoint.h"
#include "test/engine/source/source_test.h"
#include "test/engine/source/sst_files.h"
#include "test/require_ok.h"
#include "test/sanitizer.h"
#include "test/test_random.h"

namespace cairn {
BOOST_AUTO_TEST_SUITE(sst_source_test)
namespace {

BOOST_AUTO_TEST_CASE(one_file_is_read) {
  std::mt19937_64 random = TestRandom();
  const TemporaryDirectory temp;
  std::map<std::string, Entry> entries;
  std::map<std::string, std::string> model;
  for (int i = 0; i < 20000; ++i) {
    const std::string key = i % 20 == 0 ? AdversarialKey(&random) : RandomKey(&random, 1000000);
    entries[key].value = model[key] = RandomValue(&random);
  }
  WriteSst(temp / "a.sst", entries);
  CheckFiles(temp.path(), {temp / "a.sst"}, ToRows(model), &random);
  // Scratch space is next to the file by default, and is removed afterwards.
  const auto before = DirectoryState(temp.path());
  {
    const auto source = OrDie(SnapshotSource::FromSstFiles({temp / "a.sst"}));
    CheckSameRows(SourceRows(*source), ToRows(model));
    BOOST_TEST(source->approximate_rows() == model.size());
  }
  auto after = DirectoryState(temp.path());
  after["."] = before.at(".");  // the directory's own time
  BOOST_TEST((after == before));
}

BOOST_AUTO_TEST_CASE(later_files_of_a_writer_win_with_tombstones_and_range_deletions) {
  std::mt19937_64 random = TestRandom();
  for (size_t round = 0; round < FewerUnderTsan(30, 5); ++round) {
    const TemporaryDirectory temp;
    std::map<std::string, std::string> model;
    Files files;
    const bool ranges = round % 3 != 0;
    const bool adversarial = round % 2 == 0;
    const auto draw = [&] {
      return adversarial ? AdversarialKey(&random) : RandomKey(&random, 300);
    };
    for (size_t f = 0, count = 1 + random() % 12; f < count; ++f) {
      std::map<std::string, Entry> entries;
      std::vector<std::pair<std::string, std::string>> deleted;
      for (size_t i = random() % 3; ranges && i > 0; --i) {
        std::string begin = draw();
        std::string end = draw();
        if (end < begin) std::swap(begin, end);
        if (begin == end) continue;
        deleted.emplace_back(begin, end);
        model.erase(model.lower_bound(begin), model.lower_bound(end));
      }
      // Some files are disjoint from others, some contain only tombstones.
      const bool only_deletes = random() % 5 == 0;
      const std::string prefix = random() % 4 == 0 ? std::to_string(random() % 3) : "";
      for (size_t i = random() % 60 + (deleted.empty() ? 1 : 0); i > 0; --i) {
        const std::string key = prefix + draw();
        const bool is_delete = only_deletes || random() % 4 == 0;
        entries[key] = {is_delete ? Entry::kDelete : Entry::kPut, std::to_string(random())};
      }
      for (const auto& [key, entry] : entries) {
        if (entry.kind == Entry::kDelete) {
          model.erase(key);
        } else {
          model[key] = entry.value;
        }
      }
      files.push_back(temp / (std::to_string(f) + ".sst"));
      WriteSst(files.back(), entries, deleted);
    }
    CheckFiles(temp.path(), files, ToRows(model), &random);
  }
}

BOOST_AUTO_TEST_CASE(the_order_given_and_not_that_of_names_decides) {
  std::mt19937_64 random = TestRandom();
  const TemporaryDirectory temp;
  WriteSst(temp / "a.sst", {{"k", {Entry::kPut, "of a"}}, {"z", {}}});
  WriteSst(temp / "b.sst", {{"k", {Entry::kPut, "of b"}}}, {{"l", "zz"}});
  CheckFiles(temp.path(), {temp / "a.sst", temp / "b.sst"}, {{"k", "of b", {}}}, &random);
  CheckFiles(temp.path(), {temp / "b.sst", temp / "a.sst"}, {{"k", "of a", {}}, {"z", "", {}}},
             &random);
}

BOOST_AUTO_TEST_CASE(range_deletions_reach_keys_of_any_length) {
  std::mt19937_64 random = TestRandom();
  const TemporaryDirectory temp;
  const std::string longest(70000, '\xFF');
  const std::string mark(64, '\xFF');
  WriteSst(temp / "old.sst", {{"", {}}, {"a", {}}, {mark, {}}, {longest, {}}});
  WriteSst(temp / "all.sst", {}, {{"", longest + "x"}});
  WriteSst(temp / "most.sst", {{mark + "y", {}}}, {{std::string("\0", 1), longest}});
  WriteSst(temp / "tail.sst", {{mark + mark, {Entry::kDelete, ""}}}, {{mark, longest + "\xFF"}});
  CheckFiles(temp.path(), {temp / "old.sst", temp / "all.sst"}, {}, &random);
  CheckFiles(temp.path(), {temp / "old.sst", temp / "most.sst"},
             {{"", "", {}}, {mark + "y", "", {}}, {longest, "", {}}}, &random);
  CheckFiles(temp.path(), {temp / "most.sst", temp / "old.sst"},
             {{"", "", {}}, {"a", "", {}}, {mark, "", {}}, {mark + "y", "", {}}, {longest, "", {}}},
             &random);
  CheckFiles(temp.path(), {temp / "old.sst", temp / "tail.sst"}, {{"", "", {}}, {"a", "", {}}},
             &random);
  CheckFiles(temp.path(), {temp / "all.sst"}, {}, &random);
}

BOOST_AUTO_TEST_CASE(many_files_that_do_not_overlap_share_a_level) {
  std::mt19937_64 random = TestRandom();
  const TemporaryDirectory temp;
  std::map<std::string, std::string> model;
  Files files;
  for (int f = 0; f < 200; ++f) {
    std::map<std::string, Entry> entries;
    for (int i = 0; i < 20; ++i) {
      const std::string key = std::to_string(100000 + f * 100 + static_cast<int>(random() % 100));
      entries[key].value = model[key] = RandomValue(&random);
    }
    files.push_back(temp / (std::to_string(f) + ".sst"));
    WriteSst(files.back(), entries);
  }
  std::shuffle(files.begin(), files.end(), random);
  CheckFiles(temp.path(), files, ToRows(model), &random);
}

BOOST_AUTO_TEST_CASE(the_files_of_a_database_are_ordered_by_sequence_number) {
  std::mt19937_64 random = TestRandom();
  for (size_t round = 0; round < FewerUnderTsan(4, 2); ++round) {
    const TemporaryDirectory temp;
    rocksdb::Options options = SmallFiles();
    options.disable_auto_compactions = round == 3;  // overlapping files, all in the first level
    const auto db = OpenDb(temp / "db", options);
    std::map<std::string, std::string> model;
    for (int i = 0; i < 12000; ++i) {
      const std::string key = RandomKey(&random, 2000);
      if (random() % 5 == 0) {
        model.erase(key);
        CheckOk(db->Delete(rocksdb::WriteOptions(), key));
      } else {
        model[key] = RandomValue(&random);
        CheckOk(db->Put(rocksdb::WriteOptions(), key, model[key]));
      }
    }
    if (round == 1) {
      CheckOk(db->Flush(rocksdb::FlushOptions()));
      CheckOk(db->CompactRange(rocksdb::CompactRangeOptions(), nullptr, nullptr));
    }
    Freeze(db.get());
    const Files files = LiveFiles(db.get(), &random);
    BOOST_TEST(files.size() > 3u);
    CheckFiles(temp.path(), files, ToRows(model), &random);
    CheckOk(db->ContinueBackgroundWork());
  }
}

BOOST_AUTO_TEST_CASE(an_exported_column_family_is_read) {
  std::mt19937_64 random = TestRandom();
  const TemporaryDirectory temp;
  const auto db = OpenDb(temp / "db", SmallFiles());
  rocksdb::ColumnFamilyHandle* family = nullptr;
  CheckOk(db->CreateColumnFamily(SmallFiles(), "exported", &family));
  for (int i = 0; i < 15000; ++i) {
    const std::string key = i % 10 == 0 ? AdversarialKey(&random) : RandomKey(&random, 3000);
    CheckOk(db->Put(rocksdb::WriteOptions(), family, key, RandomValue(&random)));
    if (i % 4 == 0) CheckOk(db->Delete(rocksdb::WriteOptions(), family, RandomKey(&random, 3000)));
    CheckOk(db->Put(rocksdb::WriteOptions(), key, "not exported"));
  }
  rocksdb::Checkpoint* made = nullptr;
  CheckOk(rocksdb::Checkpoint::Create(db.get(), &made));
  const std::unique_ptr<rocksdb::Checkpoint> checkpoint(made);
  rocksdb::ExportImportFilesMetaData* metadata = nullptr;
  CheckOk(checkpoint->ExportColumnFamily(family, temp / "export", &metadata));
  delete metadata;
  Files files;
  for (const auto& entry : fs::directory_iterator(temp / "export")) {
    files.push_back(entry.path().string());
  }
  const Rows expected = DbRows(db.get(), family);
  CheckFiles(temp / "export", files, expected, &random);
  // Files of the other column family do not belong to it.
  Freeze(db.get());
  const Files all = LiveFiles(db.get(), &random);
  const absl::Status mixed = Refused(all);
  BOOST_TEST(absl::IsFailedPrecondition(mixed));
  CheckMessage(mixed, {"'exported'", "'default'"});
  CheckOk(db->ContinueBackgroundWork());
  CheckOk(db->DestroyColumnFamilyHandle(family));
}

BOOST_AUTO_TEST_CASE(a_database_file_is_refused_beside_what_it_was_compacted_to) {
  std::mt19937_64 random = TestRandom();
  const TemporaryDirectory temp;
  const auto db = OpenDb(temp / "db", SmallFiles());
  const auto copy_files = [&](const std::string& to) {
    fs::create_directory(temp / to);
    Files copies;
    for (const std::string& file : LiveFiles(db.get(), &random)) {
      copies.push_back(temp / (to + "/" + fs::path(file).filename().string()));
      fs::copy(file, copies.back());
    }
    return copies;
  };
  const auto write_all = [&](const std::string& value) {
    for (int i = 0; i < 500; ++i) {
      CheckOk(db->Put(rocksdb::WriteOptions(), std::to_string(1000 + i), value));
    }
    CheckOk(db->Flush(rocksdb::FlushOptions()));
    rocksdb::CompactRangeOptions bottom;
    bottom.bottommost_level_compaction = rocksdb::BottommostLevelCompaction::kForce;
    CheckOk(db->CompactRange(bottom, nullptr, nullptr));
  };
  write_all("first");
  Files files = copy_files("first");
  write_all("second");
  const Files second = copy_files("second");
  CheckFiles(temp / "second", second, DbRows(db.get()), &random);
  // Both generations have sequence number 0.
  files.insert(files.end(), second.begin(), second.end());
  const absl::Status refused = Refused(files);
  BOOST_TEST(absl::IsFailedPrecondition(refused));
  CheckMessage(refused, {"obsolete", "checkpoint"});
}

BOOST_AUTO_TEST_CASE(range_deletions_of_a_database_are_read_from_one_file_and_refused_from_more) {
  std::mt19937_64 random = TestRandom();
  const TemporaryDirectory temp;
  rocksdb::Options options = SmallFiles();
  options.disable_auto_compactions = true;
  const auto db = OpenDb(temp / "db", options);
  for (int i = 0; i < 300; ++i) {
    CheckOk(db->Put(rocksdb::WriteOptions(), RandomKey(&random, 1000), "v"));
  }
  CheckOk(db->DeleteRange(rocksdb::WriteOptions(), db->DefaultColumnFamily(), "key00000200",
                          "key00000700"));
  for (int i = 0; i < 100; ++i) {
    CheckOk(db->Put(rocksdb::WriteOptions(), RandomKey(&random, 1000), "w"));
  }
  Freeze(db.get());
  CheckFiles(temp.path(), LiveFiles(db.get(), &random), DbRows(db.get()), &random);
  CheckOk(db->ContinueBackgroundWork());

  CheckOk(db->Put(rocksdb::WriteOptions(), "key00000300", "x"));
  CheckOk(db->Flush(rocksdb::FlushOptions()));
  const absl::Status refused = Refused(LiveFiles(db.get(), &random));
  BOOST_TEST(absl::IsFailedPrecondition(refused));
  CheckMessage(refused, {".sst", "range deletions", "MANIFEST", "checkpoint"});
}

BOOST_AUTO_TEST_CASE(files_of_a_writer_and_of_a_database_must_not_overlap) {
  std::mt19937_64 random = TestRandom();
  const TemporaryDirectory temp;
  const auto db = OpenDb(temp / "db");
  for (const char* key : {"a", "c", "e"}) CheckOk(db->Put(rocksdb::WriteOptions(), key, "db"));
  CheckOk(db->Flush(rocksdb::FlushOptions()));
  Files files = LiveFiles(db.get(), &random);
  WriteSst(temp / "apart.sst", {{"f", {Entry::kPut, "x"}}, {"g", {Entry::kPut, "y"}}});
  WriteSst(temp / "within.sst", {{"b", {}}});
  WriteSst(temp / "around.sst", {{"Z", {}}, {"z", {}}});
  WriteSst(temp / "touching.sst", {{"e", {}}});
  WriteSst(temp / "range.sst", {{"zz", {}}}, {{"y", "z"}});
  files.push_back(temp / "apart.sst");
  CheckFiles(temp.path(), files,
             {{"a", "db", {}}, {"c", "db", {}}, {"e", "db", {}}, {"f", "x", {}}, {"g", "y", {}}},
             &random);
  for (const char* name : {"within.sst", "around.sst", "touching.sst", "range.sst"}) {
    files[1] = temp / name;
    const absl::Status refused = Refused(files);
    BOOST_TEST(absl::IsFailedPrecondition(refused));
    CheckMessage(refused, {name, files[0], "newer"});
  }
}

BOOST_AUTO_TEST_CASE(files_of_two_databases_must_not_overlap) {
  std::mt19937_64 random = TestRandom();
  const TemporaryDirectory temp;
  Files files;
  for (const char* name : {"one", "two", "three"}) {
    const auto db = OpenDb(temp / name);
    const std::string start = name == std::string("three") ? "x" : "a";
    CheckOk(db->Put(rocksdb::WriteOptions(), start, name));
    CheckOk(db->Put(rocksdb::WriteOptions(), start + "z", name));
    CheckOk(db->Flush(rocksdb::FlushOptions()));
    files.push_back(LiveFiles(db.get(), &random).at(0));
  }
  const absl::Status refused = Refused({files[0], files[1]});
  BOOST_TEST(absl::IsFailedPrecondition(refused));
  CheckMessage(refused, {files[0], files[1], "different databases"});
  CheckSameRows(SourceRows(*OrDie(SnapshotSource::FromSstFiles({files[0], files[2]}, temp.path()))),
                {{"a", "one", {}}, {"az", "one", {}}, {"x", "three", {}}, {"xz", "three", {}}});
}

BOOST_AUTO_TEST_CASE(ingested_files_keep_the_number_that_was_written_into_them) {
  std::mt19937_64 random = TestRandom();
  const TemporaryDirectory temp;
  rocksdb::Options options;
  options.disable_auto_compactions = true;
  const auto db = OpenDb(temp / "db", options);
  for (const char* key : {"a", "b", "c"}) CheckOk(db->Put(rocksdb::WriteOptions(), key, "old"));
  CheckOk(db->Flush(rocksdb::FlushOptions()));
  WriteSst(temp / "in.sst", {{"b", {Entry::kPut, "ingested"}}, {"c", {Entry::kDelete, ""}}});
  rocksdb::IngestExternalFileOptions ingestion;
  ingestion.write_global_seqno = true;
  CheckOk(db->IngestExternalFile({temp / "in.sst"}, ingestion));
  CheckOk(db->Put(rocksdb::WriteOptions(), "a", "new"));
  Freeze(db.get());
  const Files files = LiveFiles(db.get(), &random);
  BOOST_TEST(files.size() == 3u);
  CheckFiles(temp.path(), files, {{"a", "new", {}}, {"b", "ingested", {}}}, &random);
  CheckOk(db->ContinueBackgroundWork());
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
