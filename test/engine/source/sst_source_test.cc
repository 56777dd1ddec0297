// Tests of SnapshotSource::FromSstFiles.
#include <sys/stat.h>

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <fstream>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "engine/source/sst_levels.h"
#include "rocksdb/sst_file_writer.h"
#include "rocksdb/table.h"
#include "rocksdb/utilities/checkpoint.h"
#include "test/engine/source/source_test.h"
#include "test/require_ok.h"
#include "test/test_random.h"

namespace cairn {
namespace {

namespace fs = std::filesystem;

using Files = std::vector<std::string>;

// What SstFileWriter is told about one key.
struct Entry {
  enum Kind { kPut, kDelete, kMerge } kind = kPut;
  std::string value;
};

void WriteSst(const std::string& path, const std::map<std::string, Entry>& entries,
              const std::vector<std::pair<std::string, std::string>>& range_deletions = {},
              const rocksdb::Options& options = rocksdb::Options()) {
  rocksdb::SstFileWriter writer(rocksdb::EnvOptions(), options);
  CheckOk(writer.Open(path));
  for (const auto& [begin, end] : range_deletions) CheckOk(writer.DeleteRange(begin, end));
  for (const auto& [key, entry] : entries) {
    if (entry.kind == Entry::kPut) CheckOk(writer.Put(key, entry.value));
    if (entry.kind == Entry::kDelete) CheckOk(writer.Delete(key));
    if (entry.kind == Entry::kMerge) CheckOk(writer.Merge(key, entry.value));
  }
  CheckOk(writer.Finish());
}

// Reads the files in every way. Neither they nor anything beside them may change, and scratch space
// is given back.
void CheckFiles(const std::string& directory, const Files& files, const Rows& expected,
                std::mt19937_64* random, const rocksdb::Options* options = nullptr) {
  const auto before = DirectoryState(directory);
  const TemporaryDirectory scratch;
  {
    const auto source = OrDie(SnapshotSource::FromSstFiles(files, scratch.path(), options));
    CheckSource(*source, expected, random);
    BOOST_TEST(source->sequence() == 0u);
    BOOST_TEST(source->database_id().empty());
    uint64_t bytes = 0;
    for (const std::string& file : files) bytes += fs::file_size(file);
    BOOST_TEST(source->approximate_bytes() == bytes);
    BOOST_TEST(!fs::is_empty(scratch.path()));
    // A few kilobytes, whatever the files' size.
    uint64_t used = 0;
    for (const auto& entry : fs::recursive_directory_iterator(scratch.path())) {
      if (!entry.is_symlink() && entry.is_regular_file()) used += entry.file_size();
    }
    BOOST_TEST(used < 4096 + 400 * files.size() + 3 * 70000);
  }
  BOOST_TEST(fs::is_empty(scratch.path()));
  BOOST_TEST((DirectoryState(directory) == before));
}

// The files are refused, and leave nothing behind.
absl::Status Refused(const Files& files, const rocksdb::Options* options = nullptr) {
  const TemporaryDirectory scratch;
  const absl::Status status = SnapshotSource::FromSstFiles(files, scratch.path(), options).status();
  BOOST_TEST(!status.ok());
  BOOST_TEST(fs::is_empty(scratch.path()));
  return status;
}

// The live SST files of a column family, in no particular order.
Files LiveFiles(rocksdb::DB* db, std::mt19937_64* random) {
  std::vector<rocksdb::LiveFileMetaData> metadata;
  db->GetLiveFilesMetaData(&metadata);
  Files files;
  for (const auto& file : metadata) files.push_back(file.directory + "/" + file.relative_filename);
  std::shuffle(files.begin(), files.end(), *random);
  return files;
}

rocksdb::Options SmallFiles() {
  rocksdb::Options options;
  options.write_buffer_size = 64 << 10;
  options.target_file_size_base = 16 << 10;
  options.max_bytes_for_level_base = 64 << 10;
  options.max_bytes_for_level_multiplier = 3;
  options.compression = rocksdb::kNoCompression;
  options.level_compaction_dynamic_level_bytes = false;
  return options;
}

// Flushes, and keeps the files as they are until ContinueBackgroundWork.
void Freeze(rocksdb::DB* db) {
  CheckOk(db->Flush(rocksdb::FlushOptions()));
  CheckOk(db->PauseBackgroundWork());
}

BOOST_AUTO_TEST_SUITE(sst_source_test)

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
  // Scratch space is beside the file unless told otherwise, and is gone afterwards.
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
  for (int round = 0; round < 30; ++round) {
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
      // Some files lie apart from others, some are of tombstones only.
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
  for (int round = 0; round < 4; ++round) {
    const TemporaryDirectory temp;
    rocksdb::Options options = SmallFiles();
    options.disable_auto_compactions = round == 3;  // overlapping files of the first level only
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
  CheckOk(db->Flush(rocksdb::FlushOptions()));
  CheckFiles(temp.path(), LiveFiles(db.get(), &random), DbRows(db.get()), &random);

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
  CheckOk(db->Flush(rocksdb::FlushOptions()));
  const Files files = LiveFiles(db.get(), &random);
  BOOST_TEST(files.size() == 3u);
  CheckFiles(temp.path(), files, {{"a", "new", {}}, {"b", "ingested", {}}}, &random);
}

BOOST_AUTO_TEST_CASE(merge_operands_need_an_operator_that_is_known) {
  std::mt19937_64 random = TestRandom();
  const TemporaryDirectory temp;
  const auto number = [](char n) { return std::string(1, n) + std::string(7, '\0'); };
  rocksdb::Options adding;
  adding.merge_operator = MakeOperator("uint64add");
  WriteSst(temp / "base.sst", {{"a", {Entry::kPut, number(1)}}, {"b", {Entry::kPut, number(2)}}});
  WriteSst(temp / "add.sst", {{"a", {Entry::kMerge, number(4)}}, {"c", {Entry::kMerge, number(5)}}},
           {}, adding);
  WriteSst(temp / "more.sst", {{"a", {Entry::kMerge, number(8)}}, {"b", {Entry::kDelete, ""}}}, {},
           adding);
  CheckFiles(temp.path(), {temp / "base.sst", temp / "add.sst", temp / "more.sst"},
             {{"a", number(13), {}}, {"c", number(5), {}}}, &random);

  // Whose files do not name it.
  WriteSst(temp / "unnamed.sst", {{"a", {Entry::kMerge, number(16)}}});
  const absl::Status unnamed = Refused({temp / "base.sst", temp / "unnamed.sst"});
  BOOST_TEST(absl::IsFailedPrecondition(unnamed));
  CheckMessage(unnamed, {temp / "unnamed.sst", "merge operator"});
  CheckFiles(temp.path(), {temp / "base.sst", temp / "unnamed.sst"},
             {{"a", number(17), {}}, {"b", number(2), {}}}, &random, &adding);

  // With settings that only options tell.
  rocksdb::Options appending;
  appending.merge_operator = MakeOperator("{id=StringAppendOperator;delimiter=|}");
  WriteSst(temp / "append.sst", {{"a", {Entry::kMerge, "x"}}}, {}, appending);
  const absl::Status unset = Refused({temp / "base.sst", temp / "append.sst"});
  BOOST_TEST(absl::IsFailedPrecondition(unset));
  CheckMessage(unset, {"StringAppendOperator", "delimiter"});
  CheckFiles(temp.path(), {temp / "base.sst", temp / "append.sst"},
             {{"a", number(1) + "|x", {}}, {"b", number(2), {}}}, &random, &appending);

  const absl::Status two = Refused({temp / "add.sst", temp / "append.sst"});
  BOOST_TEST(absl::IsFailedPrecondition(two));
  CheckMessage(two, {"UInt64AddOperator", "StringAppendOperator"});
}

BOOST_AUTO_TEST_CASE(wide_columns_are_read) {
  std::mt19937_64 random = TestRandom();
  const TemporaryDirectory temp;
  const auto db = OpenDb(temp / "db", SmallFiles());
  for (int i = 0; i < 3000; ++i) {
    const std::string city = RandomValue(&random);
    CheckOk(db->PutEntity(rocksdb::WriteOptions(), db->DefaultColumnFamily(),
                          RandomKey(&random, 3000), {{"city", city}, {"zip", "8010"}}));
    CheckOk(db->Put(rocksdb::WriteOptions(), RandomKey(&random, 3000), "plain"));
  }
  Freeze(db.get());
  CheckFiles(temp.path(), LiveFiles(db.get(), &random), DbRows(db.get()), &random);
  CheckOk(db->ContinueBackgroundWork());
}

BOOST_AUTO_TEST_CASE(values_in_blob_files_are_an_error_and_not_garbage) {
  std::mt19937_64 random = TestRandom();
  const TemporaryDirectory temp;
  rocksdb::Options options = SmallFiles();
  options.enable_blob_files = true;
  options.min_blob_size = 100;
  options.disable_auto_compactions = true;
  const auto db = OpenDb(temp / "db", options);
  CheckOk(db->Put(rocksdb::WriteOptions(), "a", "small"));
  CheckOk(db->Put(rocksdb::WriteOptions(), "b", std::string(1000, 'b')));
  CheckOk(db->Put(rocksdb::WriteOptions(), "c", "small"));
  CheckOk(db->Flush(rocksdb::FlushOptions()));
  {
    const auto source =
        OrDie(SnapshotSource::FromSstFiles(LiveFiles(db.get(), &random), temp.path()));
    auto cursor = *source->Scan({});
    BOOST_TEST(cursor->Next());
    BOOST_TEST(!cursor->Next());
    BOOST_TEST(absl::IsDataLoss(cursor->status()));
    CheckMessage(cursor->status(), {"blob"});
  }
  CheckOk(db->Put(rocksdb::WriteOptions(), "b", std::string(1000, 'B')));
  CheckOk(db->Put(rocksdb::WriteOptions(), "d", "small"));
  CheckOk(db->Flush(rocksdb::FlushOptions()));
  const absl::Status refused = Refused(LiveFiles(db.get(), &random));
  BOOST_TEST(absl::IsFailedPrecondition(refused));
  CheckMessage(refused, {"blob"});
}

BOOST_AUTO_TEST_CASE(what_is_no_set_of_sst_files_is_refused) {
  const TemporaryDirectory temp;
  BOOST_TEST(absl::IsInvalidArgument(Refused({})));
  BOOST_TEST(absl::IsNotFound(Refused({temp / "missing.sst"})));
  BOOST_TEST(absl::IsInvalidArgument(Refused({temp.path()})));
  std::ofstream(temp / "text.sst") << std::string(100000, 'x');
  std::ofstream(temp / "empty.sst");
  for (const char* name : {"text.sst", "empty.sst"}) {
    const absl::Status refused = Refused({temp / name});
    BOOST_TEST(absl::IsInvalidArgument(refused));
    CheckMessage(refused, {temp / name});
  }
  WriteSst(temp / "good.sst", {{"a", {}}});
  const absl::Status mixed = Refused({temp / "good.sst", temp / "text.sst"});
  BOOST_TEST(absl::IsInvalidArgument(mixed));

  // Given twice: by name, through a link, and as a copy.
  fs::create_symlink(temp / "good.sst", temp / "link.sst");
  fs::copy(temp / "good.sst", temp / "copy.sst");
  for (const char* name : {"good.sst", "link.sst", "copy.sst"}) {
    const absl::Status twice = Refused({temp / "good.sst", temp / name});
    BOOST_TEST(absl::IsInvalidArgument(twice));
    CheckMessage(twice, {name});
  }
  const absl::Status nowhere =
      SnapshotSource::FromSstFiles({temp / "good.sst"}, temp / "nowhere").status();
  BOOST_TEST(absl::IsNotFound(nowhere));
  CheckMessage(nowhere, {temp / "nowhere"});
}

BOOST_AUTO_TEST_CASE(other_orders_are_refused_by_name) {
  const TemporaryDirectory temp;
  rocksdb::Options reversed;
  reversed.comparator = rocksdb::ReverseBytewiseComparator();
  WriteSst(temp / "reversed.sst", {{"a", {}}}, {}, reversed);
  const absl::Status refused = Refused({temp / "reversed.sst"});
  BOOST_TEST(absl::IsUnimplemented(refused));
  CheckMessage(refused, {temp / "reversed.sst", "rocksdb.ReverseBytewiseComparator"});
  BOOST_TEST(absl::IsUnimplemented(Refused({temp / "reversed.sst"}, &reversed)));

  rocksdb::Options timed;
  CheckOk(rocksdb::Comparator::CreateFromString(
      rocksdb::ConfigOptions(), "leveldb.BytewiseComparator.u64ts", &timed.comparator));
  rocksdb::SstFileWriter writer(rocksdb::EnvOptions(), timed);
  CheckOk(writer.Open(temp / "timed.sst"));
  CheckOk(writer.Put("a", std::string(8, '\1'), "v"));
  CheckOk(writer.Finish());
  const absl::Status timestamps = Refused({temp / "timed.sst"});
  BOOST_TEST(absl::IsUnimplemented(timestamps));
  CheckMessage(timestamps, {temp / "timed.sst", "u64ts"});
}

BOOST_AUTO_TEST_CASE(damaged_files_give_errors_and_never_other_rows) {
  std::mt19937_64 random = TestRandom();
  const TemporaryDirectory temp;
  std::map<std::string, Entry> entries;
  std::map<std::string, std::string> model;
  for (int i = 0; i < 2000; ++i) {
    const std::string key = RandomKey(&random, 100000);
    entries[key].value = model[key] = RandomValue(&random);
  }
  WriteSst(temp / "good.sst", entries);
  WriteSst(temp / "later.sst", {{"key00000001", {Entry::kPut, "later"}}});
  model["key00000001"] = "later";
  const uint64_t size = fs::file_size(temp / "good.sst");
  const Rows expected = ToRows(model);
  int failed = 0;
  for (int round = 0; round < 150; ++round) {
    const std::string path = temp / "damaged.sst";
    fs::copy_file(temp / "good.sst", path, fs::copy_options::overwrite_existing);
    if (round % 3 == 0) {
      fs::resize_file(path, random() % size);
    } else {
      std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
      file.seekp(static_cast<std::streamoff>(random() % size));
      file.put(static_cast<char>(random()));
    }
    const auto source = SnapshotSource::FromSstFiles({path, temp / "later.sst"}, temp.path());
    if (!source.ok()) {
      ++failed;
      continue;
    }
    auto cursor = *(*source)->Scan({});
    Rows found;
    while (cursor->Next()) found.push_back(ToRow(cursor->row()));
    if (!cursor->status().ok()) {
      ++failed;
      BOOST_TEST_REQUIRE(found.size() <= expected.size());
      CheckSameRows(
          found, Rows(expected.begin(), expected.begin() + static_cast<ptrdiff_t>(found.size())));
    } else {
      CheckSameRows(found, expected);
    }
  }
  BOOST_TEST(failed > 100);
}

BOOST_AUTO_TEST_CASE(levels_are_few_and_newer_files_lie_above) {
  std::mt19937_64 random = TestRandom();
  for (int round = 0; round < 200; ++round) {
    std::vector<SstFile> files(1 + random() % 30);
    const SstOrigin origin = round % 2 == 0 ? SstOrigin::kWriter : SstOrigin::kDatabase;
    for (SstFile& file : files) {
      file.origin = origin;
      file.smallest = AdversarialKey(&random);
      file.largest = AdversarialKey(&random);
      if (file.largest < file.smallest) std::swap(file.smallest, file.largest);
      if (origin == SstOrigin::kWriter && random() % 10 == 0) {
        file.range_deletions = 1;
        file.smallest = "";
        file.largest = std::string(4000, '\xFF');
      }
    }
    const SstLevels levels = RequireOk(ArrangeSstFiles(files));
    size_t most_at_a_key = 1;
    for (size_t i = 0; i < files.size(); ++i) {
      BOOST_TEST(levels.level[i] >= 1);
      BOOST_TEST(levels.level[i] <= levels.depth);
      size_t at_key = 0;
      for (size_t j = 0; j < files.size(); ++j) {
        at_key += files[j].smallest <= files[i].smallest && files[i].smallest <= files[j].largest;
        if (j <= i || files[i].largest < files[j].smallest ||
            files[j].largest < files[i].smallest) {
          continue;
        }
        BOOST_TEST(levels.level[i] != levels.level[j]);
        if (origin == SstOrigin::kWriter) BOOST_TEST(levels.level[j] < levels.level[i]);
      }
      most_at_a_key = std::max(most_at_a_key, at_key);
    }
    if (origin == SstOrigin::kDatabase) {
      BOOST_TEST(static_cast<size_t>(levels.depth) == most_at_a_key);
      BOOST_TEST(levels.overlapping_database_files == (levels.depth > 1));
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace cairn
