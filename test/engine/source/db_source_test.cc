#include "engine/source/db_source.h"

#include <atomic>
#include <boost/test/unit_test.hpp>
#include <map>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "rocksdb/snapshot.h"
#include "rocksdb/table.h"
#include "rocksdb/utilities/db_ttl.h"
#include "test/engine/key_orders.h"
#include "test/engine/source/source_test.h"
#include "test/require_ok.h"
#include "test/test_random.h"

namespace cairn {
BOOST_AUTO_TEST_SUITE(db_source_test)
namespace {

// Puts, overwrites, deletions and range deletions over a small key space, some of it flushed.
void Churn(rocksdb::DB* db, int operations, std::mt19937_64* random,
           std::map<std::string, std::string>* model) {
  const rocksdb::WriteOptions write;
  for (int i = 0; i < operations; ++i) {
    std::string key = (*random)() % 20 == 0 ? AdversarialKey(random) : RandomKey(random, 5000);
    const uint64_t dice = (*random)() % 1000;
    if (dice < 150) {
      CheckOk(db->Delete(write, key));
      model->erase(key);
    } else if (dice < 153) {
      std::string end = RandomKey(random, 5000);
      if (end < key) std::swap(key, end);
      CheckOk(db->DeleteRange(write, db->DefaultColumnFamily(), key, end));
      model->erase(model->lower_bound(key), model->lower_bound(end));
    } else {
      const std::string value = RandomValue(random);
      CheckOk(db->Put(write, key, value));
      (*model)[key] = value;
    }
    if (dice == 999) CheckOk(db->Flush(rocksdb::FlushOptions()));
  }
}

BOOST_AUTO_TEST_CASE(reads_what_was_written_from_memory_and_files) {
  std::mt19937_64 random = TestRandom();
  const TemporaryDirectory temp;
  for (int round = 0; round < 4; ++round) {
    rocksdb::Options options;
    options.write_buffer_size = 64 << 10;
    options.target_file_size_base = 32 << 10;
    options.max_bytes_for_level_base = 128 << 10;
    options.compression = rocksdb::kNoCompression;
    const auto db = OpenDb(temp / std::to_string(round), options);
    std::map<std::string, std::string> model;
    Churn(db.get(), 10000, &random, &model);
    if (round % 2 == 0) CheckOk(db->CompactRange(rocksdb::CompactRangeOptions(), nullptr, nullptr));
    const auto source = OrDie(SnapshotSource::FromDb(db.get()));
    CheckSource(*source, ToRows(model), &random);
    BOOST_TEST(source->sequence() == db->GetLatestSequenceNumber());
    BOOST_TEST(source->column_family() == "default");
    std::string id;
    CheckOk(db->GetDbIdentity(id));
    BOOST_TEST(source->database_id() == id);
    BOOST_TEST((source->description().find(db->GetName()) != std::string::npos));
    BOOST_TEST(source->approximate_rows() > 0u);
    BOOST_TEST(source->approximate_bytes() > 0u);
  }
}

BOOST_AUTO_TEST_CASE(the_state_does_not_move_while_others_write) {
  std::mt19937_64 random = TestRandom();
  const TemporaryDirectory temp;
  rocksdb::Options options;
  options.write_buffer_size = 64 << 10;
  const auto db = OpenDb(temp / "db", options);
  std::map<std::string, std::string> model;
  Churn(db.get(), 5000, &random, &model);
  const auto source = OrDie(SnapshotSource::FromDb(db.get()));
  std::atomic<bool> stop = false;
  std::atomic<int> writes = 0;
  std::thread writer([&] {
    std::mt19937_64 own(random());
    while (!stop) {
      // No Boost checks here: they are not thread-safe.
      const std::string key = RandomKey(&own, 5000);
      if (own() % 3 == 0) {
        db->Delete(rocksdb::WriteOptions(), key).PermitUncheckedError();
      } else {
        db->Put(rocksdb::WriteOptions(), key, "after").PermitUncheckedError();
      }
      if (++writes % 3000 == 0) {
        db->CompactRange(rocksdb::CompactRangeOptions(), nullptr, nullptr).PermitUncheckedError();
      }
    }
  });
  while (writes < 1000) std::this_thread::yield();
  std::mt19937_64 checks = TestRandom(1);
  for (int round = 0; round < 3; ++round) CheckSource(*source, ToRows(model), &checks);
  stop = true;
  writer.join();
  BOOST_TEST((DbRows(db.get()) != ToRows(model)));
}

BOOST_AUTO_TEST_CASE(a_snapshot_is_held_until_the_source_goes) {
  const TemporaryDirectory temp;
  const auto db = OpenDb(temp / "db");
  uint64_t held = 7;
  {
    const auto source = OrDie(SnapshotSource::FromDb(db.get()));
    BOOST_TEST(db->GetIntProperty(rocksdb::DB::Properties::kNumSnapshots, &held));
    BOOST_TEST(held == 1u);
  }
  BOOST_TEST(db->GetIntProperty(rocksdb::DB::Properties::kNumSnapshots, &held));
  BOOST_TEST(held == 0u);
}

BOOST_AUTO_TEST_CASE(wide_columns_are_seen_and_plain_rows_have_none) {
  std::mt19937_64 random = TestRandom();
  const TemporaryDirectory temp;
  const auto db = OpenDb(temp / "db");
  const rocksdb::WriteOptions write;
  auto* family = db->DefaultColumnFamily();
  for (int i = 0; i < 3000; ++i) {
    const std::string key = RandomKey(&random, 100000);
    if (random() % 2 == 0) {
      CheckOk(db->Put(write, key, RandomValue(&random)));
      continue;
    }
    const std::string city = RandomValue(&random);
    rocksdb::WideColumns columns{{"city", city}, {"zip", "10115"}};
    if (random() % 2 == 0) columns.emplace_back(rocksdb::kDefaultWideColumnName, "plain");
    CheckOk(db->PutEntity(write, family, key, columns));
    if (i == 1500) CheckOk(db->Flush(rocksdb::FlushOptions()));
  }
  CheckOk(db->PutEntity(write, family, "only-default", {{rocksdb::kDefaultWideColumnName, "v"}}));
  CheckOk(db->PutEntity(write, family, "only-named", {{"n", "w"}}));
  CheckOk(db->PutEntity(write, family, "none", {}));
  const Rows expected = DbRows(db.get());
  BOOST_TEST(std::any_of(expected.begin(), expected.end(),
                         [](const Row& row) { return row.columns.size() == 3; }));
  const auto source = OrDie(SnapshotSource::FromDb(db.get()));
  CheckSource(*source, expected, &random);
}

BOOST_AUTO_TEST_CASE(merge_operands_are_merged) {
  std::mt19937_64 random = TestRandom();
  const TemporaryDirectory temp;
  rocksdb::Options options;
  options.merge_operator = MakeOperator("StringAppendOperator");
  options.write_buffer_size = 64 << 10;
  const auto db = OpenDb(temp / "db", options);
  for (int i = 0; i < 20000; ++i) {
    const std::string key = RandomKey(&random, 500);
    const rocksdb::WriteOptions write;
    if (random() % 10 == 0)
      CheckOk(db->Put(write, key, "base"));
    else if (random() % 30 == 0)
      CheckOk(db->Delete(write, key));
    else
      CheckOk(db->Merge(write, key, std::to_string(i % 100)));
  }
  const auto source = OrDie(SnapshotSource::FromDb(db.get()));
  CheckSource(*source, DbRows(db.get()), &random);
}

// Reads the values of random keys, in any order and repeated, and compares them with the model.
void CheckValues(rocksdb::DB* db, const rocksdb::Snapshot* snapshot,
                 const std::map<std::string, std::string>& model, size_t size,
                 std::mt19937_64* random) {
  StringList keys;
  for (size_t i = 0; i < size; ++i) {
    if ((*random)() % 8 == 0 && i > 0) {
      keys.Append(std::string(keys[(*random)() % i]));
    } else {
      keys.Append(RandomKey(random, 5000));
    }
  }
  StringList values;
  values.Append("before");
  std::vector<size_t> value_of;
  RequireOk(
      ReadValues(db, nullptr, db->DefaultColumnFamily(), snapshot, keys, {}, &values, &value_of));
  BOOST_REQUIRE(value_of.size() == size);
  BOOST_TEST(values[0] == "before");
  for (size_t i = 0; i < size; ++i) {
    const auto row = model.find(std::string(keys[i]));
    BOOST_REQUIRE((value_of[i] != SIZE_MAX) == (row != model.end()));
    if (row != model.end()) BOOST_REQUIRE(values[value_of[i]] == row->second);
  }
}

BOOST_AUTO_TEST_CASE(values_of_any_keys_are_read_at_a_snapshot) {
  std::mt19937_64 random = TestRandom();
  const TemporaryDirectory temp;
  rocksdb::Options options;
  options.write_buffer_size = 64 << 10;
  for (const bool blobs : {false, true}) {
    options.enable_blob_files = blobs;
    const auto db = OpenDb(temp / (blobs ? "blobs" : "plain"), options);
    std::map<std::string, std::string> model, later;
    Churn(db.get(), 8000, &random, &model);
    rocksdb::ManagedSnapshot snapshot(db.get());
    later = model;
    Churn(db.get(), 2000, &random, &later);
    for (const size_t size : {0, 1, 2, 3, 100, 1023, 1024, 1025, 5000}) {
      CheckValues(db.get(), snapshot.snapshot(), model, size, &random);
      CheckValues(db.get(), nullptr, later, size, &random);
    }
  }
}

BOOST_AUTO_TEST_CASE(values_of_entities_are_their_default_columns_and_a_stop_ends_the_reads) {
  const TemporaryDirectory temp;
  rocksdb::Options options;
  options.merge_operator = MakeOperator("StringAppendOperator");
  const auto db = OpenDb(temp / "db", options);
  auto* const family = db->DefaultColumnFamily();
  for (const bool flushed : {false, true}) {
    CheckOk(db->PutEntity({}, family, "a", {{"", "plain"}, {"city", "Ulm"}}));
    CheckOk(db->PutEntity({}, family, "b", {{"city", "Ulm"}}));
    CheckOk(db->Put({}, "c", ""));
    CheckOk(db->Put({}, "d", "1"));
    CheckOk(db->Merge({}, "d", "2"));
    if (flushed) CheckOk(db->Flush({}));
    for (const std::vector<std::string>& rows :
         {std::vector<std::string>{"d", "a", "x", "c", "b"}, {"a"}, {"b"}, {"c"}, {"x"}}) {
      StringList keys, values;
      for (const std::string& row : rows) keys.Append(row);
      std::vector<size_t> value_of;
      RequireOk(ReadValues(db.get(), nullptr, family, nullptr, keys, {}, &values, &value_of));
      const std::map<std::string, std::string> expected = {
          {"a", "plain"}, {"b", ""}, {"c", ""}, {"d", "1,2"}};
      for (size_t i = 0; i < rows.size(); ++i) {
        if (rows[i] == "x") {
          BOOST_TEST(value_of[i] == SIZE_MAX);
        } else {
          BOOST_REQUIRE(value_of[i] < values.size());
          BOOST_TEST(values[value_of[i]] == expected.at(rows[i]), rows[i]);
        }
      }
      const std::atomic<bool> cancelled = true;
      StopCondition stop;
      stop.cancelled = &cancelled;
      BOOST_TEST(absl::IsCancelled(
          ReadValues(db.get(), nullptr, family, nullptr, keys, stop, &values, &value_of)));
    }
  }
}

BOOST_AUTO_TEST_CASE(empty_single_and_huge_rows_are_read) {
  std::mt19937_64 random = TestRandom();
  const TemporaryDirectory temp;
  const auto db = OpenDb(temp / "db");
  CheckSource(*OrDie(SnapshotSource::FromDb(db.get())), {}, &random);
  for (int parts : {1, 2, 64}) {
    BOOST_TEST(SplitOrDie(*OrDie(SnapshotSource::FromDb(db.get())), parts).size() == 1u);
  }
  std::map<std::string, std::string> model{{"", "the empty key"}};
  for (int round = 0; round < 2; ++round) {
    for (const auto& [key, value] : model) CheckOk(db->Put(rocksdb::WriteOptions(), key, value));
    CheckSource(*OrDie(SnapshotSource::FromDb(db.get())), ToRows(model), &random);
    for (int i = 0; i < 40; ++i) {
      model[std::string(64 << 10, '\xFF') + std::to_string(i)] = "huge";
      model[std::string(64 << 10, '\0') + std::to_string(i)] = std::string(100000, 'v');
      model[std::string(static_cast<size_t>(i), '\xFF')] = "";
      model[std::string(static_cast<size_t>(i), '\0')] = "zeros";
    }
  }
}

BOOST_AUTO_TEST_CASE(any_number_of_parts_partitions_the_rows) {
  std::mt19937_64 random = TestRandom();
  const TemporaryDirectory temp;
  rocksdb::Options options;
  options.write_buffer_size = 1 << 20;
  options.target_file_size_base = 256 << 10;
  options.compression = rocksdb::kNoCompression;
  const auto db = OpenDb(temp / "db", options);
  std::map<std::string, std::string> model;
  // Only in memory; in memory and files; and only in files, in which case the ranges must also be
  // even.
  for (const int writes : {5000, 40000, 10000}) {
    for (int i = 0; i < writes; ++i) {
      const std::string key = RandomKey(&random, 90000);
      model[key] = RandomValue(&random);
      CheckOk(db->Put(rocksdb::WriteOptions(), key, model[key]));
    }
    if (writes == 10000) CheckOk(db->Flush(rocksdb::FlushOptions()));
    const auto source = OrDie(SnapshotSource::FromDb(db.get()));
    const Rows expected = ToRows(model);
    for (const int parts : {1, 2, 8, 64, 1 + static_cast<int>(random() % 64)}) {
      Rows found;
      size_t largest = 0;
      for (const PrimaryKeyRange& range : SplitOrDie(*source, parts)) {
        const Rows part = RangeRows(*source, range);
        largest = std::max(largest, part.size());
        found.insert(found.end(), part.begin(), part.end());
      }
      CheckSameRows(found, expected);
      if (writes != 10000) continue;
      BOOST_TEST(static_cast<double>(largest) <=
                 1.6 * static_cast<double>(expected.size()) / parts + 100);
    }
    BOOST_TEST(absl::IsInvalidArgument(source->Split(0).status()));
    BOOST_TEST(RangeRows(*source, {"key5", "key5", false}).empty());
    BOOST_TEST(RangeRows(*source, {"key6", "key5", false}).empty());
    BOOST_TEST(RangeRows(*source, {"", "", false}).empty());
  }
}

BOOST_AUTO_TEST_CASE(reads_of_keys_must_ascend_and_end_at_the_visitors_error) {
  const TemporaryDirectory temp;
  const auto db = OpenDb(temp / "db");
  for (const char* key : {"a", "b", "c"}) CheckOk(db->Put(rocksdb::WriteOptions(), key, "v"));
  const auto source = OrDie(SnapshotSource::FromDb(db.get()));
  const std::vector<std::string_view> descending{"b", "a"};
  const auto ignore = [](size_t, const RowView&) { return absl::OkStatus(); };
  BOOST_TEST(absl::IsInvalidArgument(source->Get(descending, ignore)));
  BOOST_TEST(source->Get({}, ignore).ok());
  int seen = 0;
  const std::vector<std::string_view> keys{"a", "b", "c"};
  const absl::Status status = source->Get(keys, [&](size_t index, const RowView&) {
    ++seen;
    return index == 1 ? absl::AbortedError("enough") : absl::OkStatus();
  });
  BOOST_TEST(absl::IsAborted(status));
  BOOST_TEST(seen == 2);
}

BOOST_AUTO_TEST_CASE(column_families_are_told_apart_and_named) {
  std::mt19937_64 random = TestRandom();
  const TemporaryDirectory temp;
  const auto db = OpenDb(temp / "db");
  rocksdb::ColumnFamilyHandle* family = nullptr;
  CheckOk(db->CreateColumnFamily(rocksdb::ColumnFamilyOptions(), "other", &family));
  CheckOk(db->Put(rocksdb::WriteOptions(), "a", "default"));
  CheckOk(db->Put(rocksdb::WriteOptions(), family, "a", "other"));
  {
    const auto source = OrDie(SnapshotSource::FromDb(db.get(), family));
    CheckSource(*source, {{"a", "other", {}}}, &random);
    BOOST_TEST(source->column_family() == "other");
  }
  CheckOk(db->DestroyColumnFamilyHandle(family));

  static const test::ByLength by_length;
  rocksdb::ColumnFamilyOptions unknown;
  unknown.comparator = &by_length;
  CheckOk(db->CreateColumnFamily(unknown, "by length", &family));
  const absl::Status refused = SnapshotSource::FromDb(db.get(), family).status();
  BOOST_TEST(absl::IsUnimplemented(refused));
  CheckMessage(refused, {"by length", by_length.Name(), "DeclareComparator"});
  CheckOk(db->DestroyColumnFamilyHandle(family));

  rocksdb::ColumnFamilyOptions timestamped;
  CheckOk(rocksdb::Comparator::CreateFromString(
      rocksdb::ConfigOptions(), "leveldb.BytewiseComparator.u64ts", &timestamped.comparator));
  CheckOk(db->CreateColumnFamily(timestamped, "timed", &family));
  const absl::Status timed = SnapshotSource::FromDb(db.get(), family).status();
  BOOST_TEST(absl::IsUnimplemented(timed));
  CheckMessage(timed, {"timed", "leveldb.BytewiseComparator.u64ts", "timestamps"});
  CheckOk(db->DestroyColumnFamilyHandle(family));
  BOOST_TEST(absl::IsInvalidArgument(SnapshotSource::FromDb(nullptr).status()));
}

BOOST_AUTO_TEST_CASE(a_database_without_snapshots_is_refused) {
  const TemporaryDirectory temp;
  rocksdb::Options options;
  options.inplace_update_support = true;
  options.allow_concurrent_memtable_write = false;
  const auto db = OpenDb(temp / "db", options);
  const absl::Status refused = SnapshotSource::FromDb(db.get()).status();
  BOOST_TEST(absl::IsFailedPrecondition(refused));
  CheckMessage(refused, {"inplace_update_support"});
}

BOOST_AUTO_TEST_CASE(layers_that_change_values_are_read_through) {
  std::mt19937_64 random = TestRandom();
  const TemporaryDirectory temp;
  rocksdb::Options options;
  options.create_if_missing = true;
  rocksdb::DBWithTTL* opened = nullptr;
  CheckOk(rocksdb::DBWithTTL::Open(options, temp / "ttl", &opened, 1000000));
  const std::unique_ptr<rocksdb::DBWithTTL> ttl(opened);
  std::map<std::string, std::string> model;
  for (int i = 0; i < 1000; ++i) {
    const std::string key = RandomKey(&random, 5000);
    model[key] = RandomValue(&random);
    CheckOk(ttl->Put(rocksdb::WriteOptions(), key, model[key]));
  }
  CheckSource(*OrDie(SnapshotSource::FromDb(ttl.get())), ToRows(model), &random);

  // A layer that forwards calls keeps wide columns.
  rocksdb::StackableDB layer(OpenDb(temp / "plain").release());
  CheckOk(layer.PutEntity(rocksdb::WriteOptions(), layer.DefaultColumnFamily(), "k",
                          {{"city", "Graz"}}));
  CheckSource(*OrDie(SnapshotSource::FromDb(&layer)), {{"k", "", {{"city", "Graz"}}}}, &random);
}

BOOST_AUTO_TEST_CASE(a_corrupt_block_ends_a_scan_with_an_error_that_names_the_file) {
  std::mt19937_64 random = TestRandom();
  const TemporaryDirectory temp;
  rocksdb::Options options;
  options.compression = rocksdb::kNoCompression;
  const auto db = OpenDb(temp / "db", options);
  for (int i = 0; i < 20000; ++i) {
    CheckOk(db->Put(rocksdb::WriteOptions(), RandomKey(&random, 1000000), std::string(50, 'v')));
  }
  CheckOk(db->Flush(rocksdb::FlushOptions()));
  std::vector<rocksdb::LiveFileMetaData> files;
  db->GetLiveFilesMetaData(&files);
  BOOST_TEST_REQUIRE(files.size() == 1u);
  const std::string path = temp / "db" + files[0].name;
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(static_cast<std::streamoff>(files[0].size / 2));
  file.write("rubbish!", 8);
  file.close();
  const auto source = OrDie(SnapshotSource::FromDb(db.get()));
  auto cursor = *source->Scan({});
  size_t rows = 0;
  while (cursor->Next()) ++rows;
  BOOST_TEST(rows > 0u);
  BOOST_TEST(rows < 20000u);
  BOOST_TEST(absl::IsDataLoss(cursor->status()));
  CheckMessage(cursor->status(), {files[0].relative_filename, source->description()});
  BOOST_TEST(!cursor->Next());
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
