// Contents of SST files other than values, and rejected contents.
#include <boost/test/unit_test.hpp>
#include <fstream>
#include <map>
#include <random>
#include <string>

#include "engine/source/sst_levels.h"
#include "rocksdb/sst_file_writer.h"
#include "test/engine/key_orders.h"
#include "test/engine/source/source_test.h"
#include "test/engine/source/sst_files.h"
#include "test/require_ok.h"
#include "test/test_random.h"

namespace cairn {
BOOST_AUTO_TEST_SUITE(sst_contents_test)
namespace {

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

  // A merge operator that the files do not name.
  WriteSst(temp / "unnamed.sst", {{"a", {Entry::kMerge, number(16)}}});
  const absl::Status unnamed = Refused({temp / "base.sst", temp / "unnamed.sst"});
  BOOST_TEST(absl::IsFailedPrecondition(unnamed));
  CheckMessage(unnamed, {temp / "unnamed.sst", "merge operator"});
  CheckFiles(temp.path(), {temp / "base.sst", temp / "unnamed.sst"},
             {{"a", number(17), {}}, {"b", number(2), {}}}, &random, &adding);

  // With settings that are only in the options.
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

BOOST_AUTO_TEST_CASE(unknown_orders_are_refused_by_name) {
  const TemporaryDirectory temp;
  static const test::ByLength by_length;
  rocksdb::Options unknown;
  unknown.comparator = &by_length;
  WriteSst(temp / "unknown.sst", {{"a", {}}}, {}, unknown);
  const absl::Status refused = Refused({temp / "unknown.sst"});
  BOOST_TEST(absl::IsUnimplemented(refused));
  CheckMessage(refused, {temp / "unknown.sst", by_length.Name(), "DeclareComparator"});
  BOOST_TEST(absl::IsUnimplemented(Refused({temp / "unknown.sst"}, &unknown)));

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

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
