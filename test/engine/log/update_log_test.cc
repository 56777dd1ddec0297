#include "engine/log/update_log.h"

#include <atomic>
#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "index/machine/status_macros.h"
#include "rocksdb/comparator.h"
#include "rocksdb/sst_file_writer.h"
#include "rocksdb/version.h"
#include "test/engine/key_orders.h"
#include "test/engine/log/update_log_errors.h"
#include "test/engine/logged_database.h"
#include "test/engine/rocksdb_features.h"
#include "test/require_ok.h"
#include "test/test_random.h"

namespace cairn {
BOOST_AUTO_TEST_SUITE(update_log_test)
namespace {

// Writes an SST file of these keys in order.
std::string WriteSst(const std::string& path, const std::vector<std::string>& keys) {
  rocksdb::SstFileWriter writer(rocksdb::EnvOptions(), rocksdb::Options{});
  RequireOk(writer.Open(path));
  for (const std::string& key : keys) RequireOk(writer.Put(key, "ingested"));
  RequireOk(writer.Finish());
  return path;
}

BOOST_AUTO_TEST_CASE(an_empty_database_has_nothing_new) {
  LoggedDatabase database;
  const Point now = database.Now();
  BOOST_TEST(now.sequence == 0u);
  database.Follow(now, now);
  database.Put("a", "1");
  database.Follow(now, database.Now());
}

BOOST_AUTO_TEST_CASE(nothing_new_is_fine_with_and_without_a_log) {
  LoggedDatabase database(WithoutArchive());
  for (int i = 0; i < 10; ++i) database.Put(std::to_string(i), "value");
  const Point now = database.Now();
  database.Follow(now, now);
  database.Flush();
  database.Reopen();
  BOOST_TEST(database.Error(now.sequence, database.sequence()).ok());
}

BOOST_AUTO_TEST_CASE(follows_every_kind_of_write_to_every_column_family) {
  LoggedDatabase database;
  rocksdb::DB* const db = database.db();
  const auto& families = database.families();
  for (int i = 100; i < 200; ++i) {
    for (size_t family : {0, 1, 2}) database.Put("k" + std::to_string(i), "old", family);
  }
  const Point before = database.Now();
  rocksdb::WriteBatch batch;
  RequireOk(batch.Put(families[0], "k100", "new"));
  RequireOk(batch.Delete(families[0], "k101"));
  RequireOk(batch.PutLogData("nothing"));
  RequireOk(batch.SingleDelete(families[1], "k102"));
  RequireOk(batch.Merge(families[1], "k103", "operand"));
  RequireOk(batch.Merge(families[2], "new row", "operand"));
  RequireOk(batch.DeleteRange(families[2], "k110", "k120"));
  RequireOk(batch.Put(families[2], "k115", "in the range, afterwards"));
  RequireOk(batch.PutEntity(families[0], "k104", {{"", "plain"}, {"city", "Ulm"}}));
  RequireOk(batch.PutEntity(families[0], "k105", {{"city", "Ulm"}}));
  RequireOk(db->Write({}, &batch));
#if ROCKSDB_MAJOR >= 8  // earlier ones cannot read such a row
  RequireOk(db->Merge({}, families[0], "k104", "onto columns"));
#endif
  RequireOk(db->Put({}, families[1], "k103", "after its merge"));
  RequireOk(db->DeleteRange({}, families[0], "k190", "z"));
  rocksdb::WriteBatch empty;
  RequireOk(db->Write({}, &empty));
  const Point after = database.Now();
  for (size_t slice_bytes : {1, 100, 1 << 20}) database.Follow(before, after, {}, slice_bytes);
}

BOOST_AUTO_TEST_CASE(follows_values_that_go_to_blob_files) {
  rocksdb::Options options = LoggedDatabase::DefaultOptions();
  options.enable_blob_files = true;
  options.min_blob_size = 1000;
  LoggedDatabase database(options);
  const Point before = database.Now();
  for (int i = 0; i < 20; ++i) database.Put(std::to_string(i), std::string(200000, 'a' + i));
  database.Flush();
  RequireOk(database.db()->Merge({}, database.families()[0], "7", "operand"));
  for (int i = 5; i < 10; ++i) database.Put(std::to_string(i), std::string(300000, 'A' + i));
  database.Follow(before, database.Now());
}

BOOST_AUTO_TEST_CASE(goes_on_from_where_it_stopped_without_reading_again) {
  LoggedDatabase database;
  Point last = database.Now();
  LogPosition position;
  for (int round = 0; round < 20; ++round) {
    for (int i = 0; i < 100; ++i) database.Put(std::to_string(i), std::to_string(round));
    if (round % 3 == 2) database.Flush();  // and begins a file
    if (round % 7 == 6) database.Reopen();
    const Point now = database.Now();
    database.Follow(last, now);
    auto log = RequireOk(
        UpdateLog::Open(database.db(), database.families(), last.sequence, now.sequence, position));
    std::vector<TextRows> rows = last.rows;
    RequireOk(database.Apply(log.get(), 1000, true, &rows));
    BOOST_REQUIRE((rows == now.rows));
    if (round > 0 && round % 3 != 0 && round % 7 != 0) {
      BOOST_TEST(log->bytes_read() < 100u * 40);
    }
    position = log->position();
    last = now;
  }
}

BOOST_AUTO_TEST_CASE(a_position_that_is_none_does_no_harm) {
  LoggedDatabase database;
  for (int i = 0; i < 100; ++i) database.Put(std::to_string(i), "value");
  const Point middle = database.Now();
  for (int i = 0; i < 100; ++i) database.Put(std::to_string(i), "new");
  const Point now = database.Now();
  const auto files = RequireOk(ListWalFiles(database.db()));
  for (uint64_t offset : {0, 1, 41, 1001, 1 << 20}) {
    database.Follow(middle, now, {files.back().number, offset});
    database.Follow(middle, now, {files.back().number + 100, offset});
  }
}

BOOST_AUTO_TEST_CASE(slices_are_bounded_and_say_how_far_they_go) {
  LoggedDatabase database;
  for (int i = 0; i < 1000; ++i) database.Put(std::to_string(i), std::string(100, 'v'));
  auto log = RequireOk(UpdateLog::Open(database.db(), {database.families()[0]}, 0, 1000));
  std::vector<RowChanges> changes(1);
  SequenceNumber read = 0;
  for (int slices = 0; !log->done(); ++slices) {
    BOOST_REQUIRE(slices < 100);
    changes[0].Clear();
    RequireOk(log->Read(10000, absl::MakeSpan(changes)));
    BOOST_TEST(changes[0].bytes() < 10000 + 200u);
    read += changes[0].size();
    BOOST_TEST(log->sequence() == read);
  }
  BOOST_TEST(read == 1000u);
  BOOST_TEST(log->Read(1, absl::MakeSpan(changes)).ok());  // there are no more changes
  BOOST_TEST(log->sequence() == 1000u);
}

// Threads that write until they are stopped, each with some pauses, and a limited number of writes.
// Otherwise a reader that is slower, for example under a sanitizer, would never reach the end.
class Writers {
 public:
  static constexpr int kMaxWrites = 5000;  // per thread

  // write(thread, i) returns whether it succeeded.
  template <typename Write>
  Writers(int threads, const Write& write) {
    for (int t = 0; t < threads; ++t) {
      threads_.emplace_back([this, write, t] {
        for (int i = 0; !stop_ && i < kMaxWrites; ++i) {
          if (!write(t, i)) ++failures_;
          if (i % 20 == 19) std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
      });
    }
  }
  ~Writers() {
    stop_ = true;
    for (std::thread& thread : threads_) thread.join();
    BOOST_TEST(failures_ == 0);
  }

 private:
  std::atomic<bool> stop_ = false;
  std::atomic<int> failures_ = 0;
  std::vector<std::thread> threads_;
};

BOOST_AUTO_TEST_CASE(stops_at_until_though_writers_go_on) {
  LoggedDatabase database;
  Point last = database.Now();
  LogPosition position;
  Writers writers(3, [&database](int t, int i) {
    const auto& families = database.families();
    rocksdb::WriteBatch batch;
    const std::string key = std::to_string(i % 500);
    bool ok = batch.Put(families[0], key, std::to_string(t * 1000000 + i)).ok();
    ok &= (i % 5 == 0 ? batch.Delete(families[1], key) : batch.Merge(families[1], key, "m")).ok();
    return ok && database.db()->Write({}, &batch).ok();
  });
  for (int round = 0; round < 10; ++round) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    if (round % 4 == 3) BOOST_TEST(database.db()->Flush({}, database.families()[0]).ok());
    Point now = database.Now();
    position = database.Follow(last, now, position, 10000);
    last = std::move(now);
  }
}

BOOST_AUTO_TEST_CASE(follows_databases_whose_snapshots_part_writes_that_were_logged_together) {
  rocksdb::Options options = LoggedDatabase::DefaultOptions();
  options.enable_pipelined_write = true;
  LoggedDatabase database(options);
  Point last = database.Now();
  LogPosition position;
  Writers writers(6, [&database](int t, int i) {
    const std::string key = std::to_string(i % 100);
    // Merges are not written to memory together with others.
    return (t % 2 == 0 ? database.db()->Merge({}, database.families()[0], key, "m")
                       : database.db()->Put({}, database.families()[0], key, "p"))
        .ok();
  });
  for (int round = 0; round < 40; ++round) {
    Point now = database.Now();
    position = database.Follow(last, now, position);
    last = std::move(now);
  }
}

BOOST_AUTO_TEST_CASE(an_older_database_is_found_out) {
  LoggedDatabase database;
  database.Put("a", "1");
  BOOST_TEST(IsMissing(database.Error(5, database.sequence()), {"number 1,", "index is at 5"}));
}

BOOST_AUTO_TEST_CASE(an_expired_log_is_not_nothing_new) {
  LoggedDatabase database(WithoutArchive());
  for (int i = 0; i < 10; ++i) database.Put(std::to_string(i), "value");
  database.Flush();  // which deletes the log
  BOOST_TEST(IsMissing(database.Error(5, 10), {"number 6 ", "up to 10", "expired"}));
  BOOST_TEST(IsMissing(database.Error(0, 10), {"number 1 ", "which is empty"}));
  BOOST_TEST(database.Error(10, 10).ok());
  database.Put("a", "later");
  BOOST_TEST(IsMissing(database.Error(5, 11), {"number 6 ", "begins at 11"}));
  BOOST_TEST(IsMissing(database.Error(9, 11), {"number 10 ", "begins at 11"}));
  BOOST_TEST(database.Error(10, 11).ok());
  database.Reopen();
  BOOST_TEST(IsMissing(database.Error(5, 11), {"number 6 "}));
  BOOST_TEST(IsMissing(database.Error(10, 11), {"number 11 "}));
}

BOOST_AUTO_TEST_CASE(an_archived_log_can_be_read_until_it_is_removed) {
  LoggedDatabase database;
  Point before = database.Now();
  for (int round = 0; round < 5; ++round) {
    for (int i = 0; i < 100; ++i) database.Put(std::to_string(i), std::to_string(round));
    database.Flush();
  }
  const Point after = database.Now();
  database.Follow(before, after);
  auto files = RequireOk(ListWalFiles(database.db()));
  BOOST_REQUIRE(files.size() >= 5);
  RequireOk(FindWalFile(database.db(), 1, &files));
  // The log is open: it can be read after its files are deleted.
  auto log = RequireOk(UpdateLog::Open(database.db(), database.families(), 0, after.sequence));
  std::filesystem::remove(files[2].path);
  std::vector<TextRows> rows = before.rows;
  BOOST_TEST(database.Apply(log.get(), 100, true, &rows).ok());
  BOOST_TEST((rows == after.rows));
  // The remaining log has a gap.
  BOOST_TEST(IsMissing(database.Error(0, after.sequence),
                       {"number " + std::to_string(files[2].start),
                        "where " + std::to_string(files[3].start) + " follows"}));
  BOOST_TEST(database.Error(files[3].start - 1, after.sequence).ok());
}

BOOST_AUTO_TEST_CASE(writes_that_went_past_the_log_are_found_out) {
  rocksdb::WriteOptions unlogged;
  unlogged.disableWAL = true;
  for (bool flush : {false, true}) {
    LoggedDatabase database;
    database.Put("a", "1");
    RequireOk(database.db()->Put(unlogged, "b", "2"));
    if (flush) database.Flush();
    // At the end, no record shows it, only the database's sequence number.
    BOOST_TEST(IsMissing(database.Error(0, 2), {"number 2 ", "ends there", "bypassed it"}));
    BOOST_TEST(IsMissing(database.Error(1, 2), {"number 2 "}));
    BOOST_TEST(database.Error(2, 2).ok());
    database.Put("c", "3");
    BOOST_TEST(IsMissing(database.Error(0, 3), {"number 2 ", flush ? "where 3" : "where 3"}));
    BOOST_TEST(IsMissing(database.Error(1, 3), {"number 2 "}));
    BOOST_TEST(database.Error(2, 3).ok());
  }
}

BOOST_AUTO_TEST_CASE(ingested_files_that_took_a_sequence_number_are_found_out) {
  LoggedDatabase database;
  database.Put("b", "1");
  const std::string sst = WriteSst(database.Beside("x.sst"), {"a", "b", "c"});
  RequireOk(database.db()->IngestExternalFile({sst}, {}));
  BOOST_REQUIRE_EQUAL(database.sequence(), 2u);
  BOOST_TEST(IsMissing(database.Error(0, 2), {"number 2 ", "ingested"}));
  BOOST_TEST(IsMissing(database.Error(1, 2), {"number 2 "}));
  database.Put("d", "1");
  BOOST_TEST(IsMissing(database.Error(1, 3), {"number 2 "}));
  BOOST_TEST(database.Error(2, 3).ok());
  // Under a snapshot they always take one.
  const rocksdb::Snapshot* const snapshot = database.db()->GetSnapshot();
  const std::string apart = WriteSst(database.Beside("y.sst"), {"y", "z"});
  RequireOk(database.db()->IngestExternalFile({apart}, {}));
  database.db()->ReleaseSnapshot(snapshot);
  BOOST_TEST(IsMissing(database.Error(3, database.sequence()), {"number 4 "}));
}

BOOST_AUTO_TEST_CASE(records_of_a_dropped_column_family_are_passed_over) {
  LoggedDatabase database;
  rocksdb::DB* const db = database.db();
  const Point before = database.Now();
  rocksdb::ColumnFamilyHandle* dropped = nullptr;
  RequireOk(db->CreateColumnFamily(database.options(), "dropped", &dropped));
  rocksdb::WriteBatch batch;
  RequireOk(batch.Put(database.families()[0], "a", "1"));
  RequireOk(batch.Put(dropped, "b", "2"));
  RequireOk(batch.DeleteRange(dropped, "b", "c"));
  RequireOk(batch.Put(database.families()[1], "c", "3"));
  RequireOk(db->Write({}, &batch));
  RequireOk(db->DropColumnFamily(dropped));
  RequireOk(db->DestroyColumnFamilyHandle(dropped));
  database.Put("d", "4");
  database.Follow(before, database.Now());
  database.Reopen();
  database.Follow(before, database.Now());
}

BOOST_AUTO_TEST_CASE(refuses_what_cannot_be_followed) {
  const auto error = [](const rocksdb::Options& options) {
    LoggedDatabase database(options);
    database.Put("a", "1");
    return database.Error(0, 1);
  };
  static const test::ByLength by_length;
  rocksdb::Options unknown = LoggedDatabase::DefaultOptions();
  unknown.comparator = &by_length;
  BOOST_TEST(absl::IsUnimplemented(error(unknown)));
  rocksdb::Options unordered = LoggedDatabase::DefaultOptions();
  unordered.unordered_write = true;
  BOOST_TEST(absl::IsFailedPrecondition(error(unordered)));
}

BOOST_AUTO_TEST_CASE(a_compressed_log_is_followed_from_any_place_on) {
  rocksdb::Options options = LoggedDatabase::DefaultOptions();
  options.wal_compression = rocksdb::kZSTD;
  LoggedDatabase database(options);
  auto random = TestRandom();
  LogPosition position;
  LoggedDatabase::Point before = database.Now();
  for (int round = 0; round < 20; ++round) {
    for (int i = 0; i < 20; ++i) {
      std::string value(random() % 5000, 'v');
      for (size_t at = 0; at < value.size(); at += 1 + random() % 3) {
        value[at] = static_cast<char>(random());
      }
      database.Put(std::to_string(random() % 100), value, random() % 3);
    }
    if (round % 7 == 6) database.Flush();
    if (round == 10) database.Reopen();
    const LoggedDatabase::Point now = database.Now();
    database.Follow(before, now);
    position = database.Follow(before, now, position);
    before = now;
  }
}

BOOST_AUTO_TEST_CASE(a_log_that_is_written_out_by_hand_is_written_out) {
  rocksdb::Options options = LoggedDatabase::DefaultOptions();
  options.manual_wal_flush = true;
  LoggedDatabase database(options);
  const Point before = database.Now();
  for (int i = 0; i < 100; ++i) database.Put(std::to_string(i), "value");
  database.Follow(before, database.Now());
}

// RocksDB strips such timestamps when it flushes or recovers, so that rows have other keys than in
// the log.
BOOST_AUTO_TEST_CASE(keys_that_had_timestamps_in_the_log_are_refused) {
  LoggedDatabase database;
  database.Put("a", "1");
  const SequenceNumber before = database.sequence();
  const rocksdb::Options plain = database.options();
  if (!KeepTimestampsInMemory(&database.options())) return;
  database.Reopen();
  const std::string timestamp(sizeof(uint64_t), '\1');
  RequireOk(database.db()->Put({}, database.families()[0], "a", timestamp, "2"));
  database.options() = plain;
  database.Reopen();
  const SequenceNumber stripped = database.sequence();
  database.Put("b", "3");
  const Point now = database.Now();
  BOOST_TEST(now.rows[0].at("a") == "2");
  BOOST_TEST(IsMissing(database.Error(before, now.sequence), {"end in a timestamp"}));
  RequireOk(database.Error(stripped, now.sequence));
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
