#include "engine/log/update_log.h"
#include "engine/util/rocksdb_compat.h"

#include <boost/test/unit_test.hpp>
#include <memory>
#include <string>
#include <vector>

#include "index/machine/status_macros.h"
#include "test/engine/log/update_log_errors.h"
#include "test/engine/logged_database.h"
#include "test/require_ok.h"
#include "test/sanitizer.h"

namespace cairn {
BOOST_AUTO_TEST_SUITE(update_log_recovery_test, *StartsNoThread())
namespace {

BOOST_AUTO_TEST_CASE(follows_a_log_in_recycled_files_and_in_another_directory) {
  // With one column family: RocksDB 7.8 crashes if others are flushed and files recycled.
  rocksdb::Options options = WithoutArchive();
  options.recycle_log_file_num = 2;
  options.wal_recovery_mode = rocksdb::WALRecoveryMode::kSkipAnyCorruptedRecords;
  TemporaryDirectory directory;
  options.wal_dir = directory / "wal";
  std::unique_ptr<rocksdb::DB> db;
  RequireOk(rocksdb::DB::Open(options, directory / "db", Into(&db)));
  const auto read = [&](SequenceNumber after, LogPosition* position) {
    const SequenceNumber until = db->GetLatestSequenceNumber();
    ASSIGN_OR_RETURN(
        auto log, UpdateLog::Open(db.get(), {db->DefaultColumnFamily()}, after, until, *position));
    std::vector<RowChanges> changes(1);
    absl::Status s = log->Read(SIZE_MAX, absl::MakeSpan(changes));
    if (!s.ok()) return s;
    BOOST_TEST(changes[0].size() == until - after);
    for (size_t i = 0; i < changes[0].size(); ++i) {
      if (changes[0][i].key != std::to_string(after + 1 + i)) BOOST_ERROR("row " << i);
    }
    *position = log->position();
    return s;
  };
  LogPosition position;
  for (int round = 0; round < 12; ++round) {
    const SequenceNumber after = db->GetLatestSequenceNumber();
    for (int i = 0; i < 50 + 10 * (round % 3); ++i) {
      const std::string key = std::to_string(db->GetLatestSequenceNumber() + 1);
      RequireOk(db->Put({}, key, "value"));
    }
    LogPosition none;
    absl::Status s = read(after, &none);
    BOOST_TEST(s.ok(), s.ToString());
    s = read(after, &position);
    BOOST_TEST(s.ok(), s.ToString());
    RequireOk(db->Flush({}));
  }
  BOOST_TEST(IsMissing(read(0, &position), {"number 1 "}));
}

BOOST_AUTO_TEST_CASE(a_damaged_log_is_data_loss_that_names_file_and_offset) {
  LoggedDatabase database;
  for (int i = 0; i < 100; ++i) database.Put(std::to_string(i), std::string(1000, 'v'));
  const auto files = RequireOk(ListWalFiles(database.db()));
  const std::string path = files.back().path;
  const std::string bytes = ReadFile(path);
  const auto error_with = [&](const std::string& damaged) {
    WriteFile(path, damaged);
    const absl::Status s = database.Error(0, 100);
    WriteFile(path, bytes);
    return s;
  };
  std::string damaged = bytes;
  damaged[bytes.size() / 2] ^= 1;
  absl::Status s = error_with(damaged);
  BOOST_TEST(absl::IsDataLoss(s), s.ToString());
  for (const std::string& word : {path, std::string("checksum mismatch"), std::string("offset")}) {
    BOOST_TEST(s.ToString().find(word) != std::string::npos, s.ToString());
  }
  s = error_with(bytes.substr(0, bytes.size() - 10));
  BOOST_TEST(absl::IsDataLoss(s), s.ToString());
  BOOST_TEST(database.Error(0, 100).ok());
}

BOOST_AUTO_TEST_CASE(goes_on_behind_what_rocksdb_left_behind) {
  rocksdb::Options options = LoggedDatabase::DefaultOptions();
  options.avoid_flush_during_shutdown = true;
  LoggedDatabase database(options);
  for (int i = 0; i < 20; ++i) database.Put(std::to_string(i), "value");
  const auto files = RequireOk(ListWalFiles(database.db()));
  // As after a crash: the last write is truncated, and its sequence number is assigned again.
  const std::string path = files.back().path;
  const std::string bytes = ReadFile(path);
  database.Close();
  WriteFile(path, bytes.substr(0, bytes.size() - 5));
  database.Open();
  BOOST_REQUIRE_EQUAL(database.sequence(), 19u);
  database.Put("after", "the crash");
  const Point now = database.Now();
  database.Follow({0, std::vector<TextRows>(3)}, now);
  BOOST_TEST(now.rows[0].count("19") == 0u);
  // And as after a write that was logged, failed, and was repeated in a new file: the first one
  // never happened.
  const auto archived = RequireOk(ListWalFiles(database.db()));
  BOOST_REQUIRE_EQUAL(archived.size(), 2u);
  WriteFile(archived[0].path, bytes);
  database.Follow({0, std::vector<TextRows>(3)}, now);
}

// A database opened read-only has recovered the log of a running one.
BOOST_AUTO_TEST_CASE(a_batch_with_an_empty_range_is_read_whole_beside_its_writer) {
  LoggedDatabase db;
  db.Put("a", "1");
  const LoggedDatabase::Point before = db.Now();
  rocksdb::WriteBatch batch;
  RequireOk(batch.Put("b", "2"));
  RequireOk(batch.DeleteRange("c", "c"));
  RequireOk(batch.Put("d", "3"));
  RequireOk(db.db()->Write({}, &batch));
  LoggedDatabase::Point read_only = db.Now();
  --read_only.sequence;
  const LogPosition position = db.Follow(before, read_only);
  db.Put("e", "4");
  const LoggedDatabase::Point after = db.Now();
  db.Follow(read_only, after);
  db.Follow(read_only, after, position);
}

// RocksDB's sequence number goes back when it recovers a log whose last batch deletes an empty
// range.
BOOST_AUTO_TEST_CASE(numbers_that_were_given_twice_are_an_error_for_who_has_read_them) {
  LoggedDatabase db;
  db.Put("a", "1");
  const LoggedDatabase::Point before = db.Now();
  rocksdb::WriteBatch batch;
  RequireOk(batch.Put("b", "2"));
  RequireOk(batch.DeleteRange("c", "c"));
  RequireOk(db.db()->Write({}, &batch));
  const LoggedDatabase::Point live = db.Now();
  const LogPosition position = db.Follow(before, live);
  db.Reopen();
  db.Put("d", "3");
  // As if there were no new writes.
  BOOST_REQUIRE_EQUAL(db.Now().sequence, live.sequence);
  const auto refuses = [&](SequenceNumber until) {
    const absl::Status s = db.Error(live.sequence, until, position);
    BOOST_TEST(absl::IsFailedPrecondition(s), s);
  };
  refuses(live.sequence);
  db.Put("e", "4");
  refuses(live.sequence + 1);
  db.Follow(before, db.Now());
}

BOOST_AUTO_TEST_CASE(a_batch_with_an_empty_range_is_read_whole_after_a_recovery) {
  for (const int empty_ranges : {1, 2}) {
    LoggedDatabase db;
    db.Put("a", "1");
    const LoggedDatabase::Point before = db.Now();
    rocksdb::WriteBatch batch;
    RequireOk(batch.Put("b", "2"));
    for (int i = 0; i < empty_ranges; ++i) RequireOk(batch.DeleteRange("c", "c"));
    RequireOk(batch.Put("d", "3"));
    RequireOk(db.db()->Write({}, &batch));
    const LoggedDatabase::Point live = db.Now();
    BOOST_REQUIRE_EQUAL(live.sequence, before.sequence + 2 + empty_ranges);
    db.Follow(before, live);

    db.Reopen();
    const LoggedDatabase::Point recovered = db.Now();
    BOOST_REQUIRE_EQUAL(recovered.sequence, live.sequence - empty_ranges);
    const LogPosition position = db.Follow(before, recovered);
    db.Put("e", "4");
    const LoggedDatabase::Point after = db.Now();
    db.Follow(before, after);
    db.Follow(recovered, after);
    db.Follow(recovered, after, position);
    // Only an empty range, without a later recovery.
    RequireOk(db.db()->DeleteRange({}, db.families()[0], "x", "x"));
    const LoggedDatabase::Point last = db.Now();
    BOOST_REQUIRE_EQUAL(last.sequence, after.sequence + 1);
    db.Follow(after, last);
    db.Follow(before, last);
    // An index that was ahead has seen a number that was never recovered as that write.
    BOOST_TEST(absl::IsFailedPrecondition(db.Error(live.sequence, recovered.sequence)));
  }
}

// A range that is skipped because its column family has been flushed also takes a number.
BOOST_AUTO_TEST_CASE(a_batch_is_read_whole_though_some_of_its_empty_ranges_were_recovered) {
  LoggedDatabase db;
  db.Put("a", "1");
  db.Put("a", "1", 1);
  const LoggedDatabase::Point before = db.Now();
  rocksdb::WriteBatch batch;
  RequireOk(batch.Put("b", "2"));
  for (size_t family : {0, 0, 1}) RequireOk(batch.DeleteRange(db.families()[family], "c", "c"));
  RequireOk(db.db()->Write({}, &batch));
  RequireOk(db.db()->Flush({}, db.families()[1]));
  db.Reopen();
  const LoggedDatabase::Point recovered = db.Now();
  BOOST_REQUIRE_EQUAL(recovered.sequence, before.sequence + 2);
  const LogPosition position = db.Follow(before, recovered);
  db.Put("e", "4");
  const LoggedDatabase::Point after = db.Now();
  db.Follow(before, after);
  db.Follow(recovered, after);
  db.Follow(recovered, after, position);
}

// Writes that a flush omits, because they were deleted before, have no number in its files. A
// database that is opened from these files is then in a state within the write.
BOOST_AUTO_TEST_CASE(a_batch_whose_end_left_no_trace_is_read_whole_beside_its_writer) {
  LoggedDatabase db;
  db.Put("a", "1");
  const LoggedDatabase::Point before = db.Now();
  rocksdb::WriteBatch batch;
  RequireOk(batch.Put("b", "2"));
  RequireOk(batch.Put("c", "3"));
  RequireOk(batch.SingleDelete("c"));
  RequireOk(db.db()->Write({}, &batch));
  LoggedDatabase::Point read_only = db.Now();
  db.Flush();
  std::unique_ptr<rocksdb::DB> reader;
  RequireOk(rocksdb::DB::OpenForReadOnly(db.options(), db.path(), Into(&reader)));
  read_only.sequence = reader->GetLatestSequenceNumber();
  reader.reset();
  BOOST_REQUIRE_EQUAL(read_only.sequence, before.sequence + 1);
  const LogPosition position = db.Follow(before, read_only);
  db.Put("e", "4");
  const LoggedDatabase::Point after = db.Now();
  db.Follow(read_only, after);
  db.Follow(read_only, after, position);
}

rocksdb::WriteOptions PastLog() {
  rocksdb::WriteOptions options;
  options.disableWAL = true;
  return options;
}

// Recovery assigns the number of an empty range again. If a write past the log gets it, the log
// does not show that: it seems to have all numbers.
BOOST_AUTO_TEST_CASE(the_number_of_a_recovered_empty_range_does_not_hide_a_write_past_the_log) {
  for (const bool in_one_batch : {true, false}) {
    rocksdb::Options options = LoggedDatabase::DefaultOptions();
    options.avoid_flush_during_shutdown = true;
    LoggedDatabase db(options);
    db.Put("a", "1");
    const LoggedDatabase::Point before = db.Now();
    rocksdb::WriteBatch batch;
    RequireOk(batch.Put("b", "2"));
    if (!in_one_batch) {
      RequireOk(db.db()->Write({}, &batch));
      batch.Clear();
    }
    RequireOk(batch.DeleteRange("q", "q"));
    RequireOk(db.db()->Write({}, &batch));
    db.Reopen();
    const LoggedDatabase::Point recovered = db.Now();
    BOOST_REQUIRE_EQUAL(recovered.sequence, before.sequence + 1);
    const LogPosition position = db.Follow(before, recovered);
    // For a process that has the database open, its writes are not in older files.
    const LiveLog live = LiveLog::Of(db.db());
    BOOST_TEST(live.sequence == recovered.sequence);
    RequireOk(db.db()->Put(PastLog(), "bulk", "load"));
    const LoggedDatabase::Point now = db.Now();
    BOOST_REQUIRE_EQUAL(now.sequence, before.sequence + 2);
    const auto error = [&](SequenceNumber after, LogPosition from, const LiveLog& knows) {
      absl::StatusOr<std::unique_ptr<UpdateLog>> log =
          UpdateLog::Open(db.db(), db.families(), after, now.sequence, from, knows);
      if (!log.ok()) return log.status();
      std::vector<RowChanges> changes(db.families().size());
      return (*log)->Read(SIZE_MAX, absl::MakeSpan(changes));
    };
    BOOST_TEST(IsMissing(error(recovered.sequence, position, live)));
    BOOST_TEST(IsMissing(error(recovered.sequence, {}, live)));
    BOOST_TEST(IsMissing(error(before.sequence, {}, live)));
    // The index was at a state that exists only after a recovery.
    if (in_one_batch) BOOST_TEST(IsMissing(error(recovered.sequence, position, {})));
    if (in_one_batch) BOOST_TEST(IsMissing(error(recovered.sequence, {}, {})));
    // When the row is in a file, the file has the number.
    RequireOk(db.db()->Flush({}));
    db.Reopen();
    BOOST_TEST(IsMissing(db.Error(before.sequence, now.sequence)));
    BOOST_TEST(IsMissing(db.Error(recovered.sequence, now.sequence, position)));
    db.Put("c", "3");
    BOOST_TEST(IsMissing(db.Error(before.sequence, db.sequence())));
  }
}

BOOST_AUTO_TEST_CASE(an_empty_range_at_the_end_of_a_file_that_was_not_recovered_keeps_its_number) {
  LoggedDatabase db;
  db.Put("a", "1");
  const LiveLog live = LiveLog::Of(db.db());
  LoggedDatabase::Point before = db.Now();
  for (int i = 0; i < 3; ++i) {
    rocksdb::WriteBatch batch;
    if (i != 1) RequireOk(batch.Put("b", "2"));
    RequireOk(batch.DeleteRange("q", "q"));
    RequireOk(db.db()->Write({}, &batch));
    RequireOk(db.db()->Flush({}));
    const LoggedDatabase::Point now = db.Now();
    const LogPosition position = db.Follow(before, now);
    BOOST_TEST(db.Error(before.sequence, now.sequence).ok());
    auto log =
        RequireOk(UpdateLog::Open(db.db(), db.families(), before.sequence, now.sequence, {}, live));
    std::vector<RowChanges> changes(db.families().size());
    RequireOk(log->Read(SIZE_MAX, absl::MakeSpan(changes)));
    db.Put("c", "3");
    const LoggedDatabase::Point more = db.Now();
    db.Follow(now, more, position);
    db.Follow(before, more);
    before = more;
  }
}

// After a write whose sync failed, RocksDB without paranoid_checks continues in the same file with
// the same number.
BOOST_AUTO_TEST_CASE(two_writes_with_one_number_in_one_file_are_an_error) {
  rocksdb::Options options = LoggedDatabase::DefaultOptions();
  options.avoid_flush_during_shutdown = true;
  LoggedDatabase db(options);
  db.Put("a", "1");
  const LoggedDatabase::Point before = db.Now();
  db.Put("x", "Ghost");
  const LoggedDatabase::Point failed = db.Now();
  const LogPosition position = db.Follow(before, failed);
  // Repeats the record, as the one of the successful write.
  const auto files = RequireOk(ListWalFiles(db.db()));
  const std::string path = files.back().path;
  const std::string bytes = ReadFile(path);
  const auto first = RequireOk(OpenWalFile(db.db(), files.back()));
  BOOST_REQUIRE(first->Next());
  const std::string again = bytes.substr(first->end().offset);
  db.Put("z", "3");
  const std::string last = ReadFile(path).substr(bytes.size());
  WriteFile(path, bytes + again);
  const auto given_twice = {std::string("two writes with sequence number 2")};
  BOOST_TEST(IsMissing(db.Error(before.sequence, failed.sequence), given_twice));
  WriteFile(path, bytes + again + last);
  const SequenceNumber now = db.sequence();
  BOOST_TEST(IsMissing(db.Error(before.sequence, now)));
  BOOST_TEST(IsMissing(db.Error(failed.sequence, now, position), given_twice));
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
