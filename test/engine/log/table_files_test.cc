// Changes of table files between two openings of a database that the log does not show.
#include "engine/log/table_files.h"

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "cairn/lookup.h"
#include "engine/log/anchor.h"
#include "test/engine/log/database_history.h"
#include "test/require_ok.h"
#include "test/sanitizer.h"
#include "test/test_random.h"

namespace cairn {
BOOST_AUTO_TEST_SUITE(table_files_test)
namespace {

TableFile File(uint64_t number, std::string smallest, std::string largest, uint64_t ancestry = 0) {
  return {number, 1000, number, 0, ancestry, false, std::move(smallest), std::move(largest), 0};
}

std::string Ranges(const TableFiles& then, const TableFiles& now,
                   ChangedFiles which = ChangedFiles::kLost) {
  std::string text;
  for (const ChangedRange& range : RequireOk(FindChangedRanges(then, now, which))) {
    BOOST_REQUIRE_EQUAL(range.upper.back(), '\0');
    text += range.lower + "-" + range.upper.substr(0, range.upper.size() - 1) + " ";
  }
  return text;
}

BOOST_AUTO_TEST_CASE(are_text_and_nothing_else) {
  TableFiles tables;
  BOOST_TEST((RequireOk(TableFiles::Parse(tables.ToString())) == tables));
  tables = {true, "12:ABC-DEF", {File(9, "", "z:%\xff\0 "), File(12, "a", "b", 7)}};
  tables.files[1].seen = true;
  const std::string text = tables.ToString();
  BOOST_TEST((RequireOk(TableFiles::Parse(text)) == tables));
  BOOST_TEST((tables.Find(12)->seen && !tables.Find(9)->seen && tables.Find(10) == nullptr));
  for (std::string wrong :
       {std::string(), std::string("complete=1"), text + " ", text + "%", text + " 3:1:1:1:1:0:a:b",
        text + " 13:1:1:1:1:2:a:b", text + " 13:1:1:1:1:0:%6g:b", text + " 13:1:1:1:1:0:%61:b"}) {
    BOOST_TEST(absl::IsDataLoss(TableFiles::Parse(wrong).status()), wrong);
  }
}

BOOST_AUTO_TEST_CASE(a_file_went_on_into_newer_ones_that_are_as_old_and_have_its_keys) {
  const TableFiles then = {false, "", {File(5, "b", "d", 100), File(7, "f", "h", 200)}};
  BOOST_TEST(Ranges(then, then).empty());
  BOOST_TEST(Ranges(then, {}) == "b-d f-h ");
  // If times are unknown, a file has the rows of another one unless all its entries are newer.
  TableFile undated = File(8, "a", "z");
  BOOST_TEST(Ranges(then, {false, "", {undated}}).empty());
  undated.smallest_sequence = 6;  // those of `then` have 5 and 7 as their largest ones
  BOOST_TEST(Ranges(then, {false, "", {undated}}) == "b-d ");
  // Both in one file; a file that is newer than only one of them; one with other keys.
  BOOST_TEST(Ranges(then, {false, "", {File(8, "d", "f", 100)}}).empty());
  BOOST_TEST(Ranges(then, {false, "", {File(8, "a", "z", 150)}}) == "b-d ");
  BOOST_TEST(Ranges(then, {false, "", {File(6, "a", "z", 100)}}) == "f-h ");
  BOOST_TEST(Ranges(then, {false, "", {File(8, "da", "ez", 1)}}) == "b-d f-h ");
  // From the same second: a file flushed then continued only in a file with its numbers.
  TableFile brief = File(7, "f", "h", 200), newer = File(8, "a", "z", 200);
  brief.created = 201;
  newer.smallest_sequence = 8;
  BOOST_TEST(Ranges({false, "", {brief}}, {false, "", {newer}}) == "f-h ");
  newer.smallest_sequence = 7;
  BOOST_TEST(Ranges({false, "", {brief}}, {false, "", {newer}}).empty());
  brief.created = 260;
  newer.smallest_sequence = 8;
  BOOST_TEST(Ranges({false, "", {brief}}, {false, "", {newer}}).empty());
  // With an unknown age.
  BOOST_TEST(Ranges(then, {false, "", {File(8, "a", "z")}}).empty());
  // An existing file is not new.
  BOOST_TEST(Ranges(then, {false, "", {File(7, "f", "h", 200)}}) == "b-d ");
  const TableFiles with_all = {false, "", {File(5, "b", "d", 100), File(7, "a", "z", 1)}};
  BOOST_TEST(Ranges(with_all, {false, "", {File(7, "a", "z", 1)}}) == "b-d ");
  // All missing files, and all new ones.
  const TableFiles now = {false, "", {File(7, "f", "h", 200), File(9, "c", "e", 100)}};
  BOOST_TEST(Ranges(then, now).empty());
  BOOST_TEST(Ranges(then, now, ChangedFiles::kGone) == "b-d ");
  BOOST_TEST(Ranges(then, now, ChangedFiles::kDifferent) == "b-e ");
  TableFiles other = then;
  ++other.files[0].size;
  const auto ranges = FindChangedRanges(then, other, ChangedFiles::kLost);
  BOOST_TEST(absl::IsFailedPrecondition(ranges.status()), ranges.status());
}

// Many of each, compared with an examination of all pairs.
BOOST_AUTO_TEST_CASE(successors_are_found_among_many_files) {
  std::mt19937_64 random = TestRandom();
  const auto key = [&] { return std::string(1, static_cast<char>('a' + random() % 26)); };
  for (int round = 0; round < 300; ++round) {
    TableFiles then, now;
    for (uint64_t number = 1; number < 40; ++number) {
      std::string low = key(), high = key();
      if (high < low) std::swap(low, high);
      TableFile file = File(number, low, high, random() % 4);
      (random() % 2 == 0 ? then : now).files.push_back(std::move(file));
    }
    std::vector<bool> lost(256);
    for (const TableFile& gone : then.files) {
      bool found = false;
      for (const TableFile& file : now.files) {
        found |= file.number > gone.number && file.smallest <= gone.largest &&
                 file.largest >= gone.smallest &&
                 (file.ancestry == 0 || gone.ancestry == 0 || file.ancestry <= gone.ancestry);
      }
      for (char c = gone.smallest[0]; !found && c <= gone.largest[0]; ++c) lost[c] = true;
    }
    std::vector<bool> ranges(256);
    for (const ChangedRange& range : RequireOk(FindChangedRanges(then, now, ChangedFiles::kLost))) {
      for (char c = range.lower[0]; c <= range.upper[0]; ++c) ranges[c] = true;
    }
    BOOST_REQUIRE(ranges == lost);
  }
}

// FIFO compaction drops the oldest files. If another file is gone, it was lost, and its rows may
// have older values again.
BOOST_AUTO_TEST_CASE(only_the_oldest_files_may_be_gone_with_fifo_compaction) {
  for (const bool oldest : {true, false}) {
    DatabaseHistory h;
    h.Close();
    h.options().compaction_style = rocksdb::kCompactionStyleFIFO;
    h.options().num_levels = 1;
    h.OpenDatabase();
    h.Put("a", 0, 2, "Lisbon");
    RequireOk(h.db()->Flush({}));
    h.Build();
    h.Put("a", 1, 2, "Oslo");
    RequireOk(h.db()->Flush({}));
    CatchUpOptions durable;
    durable.durable = true;
    RequireOk(h.CatchUp(durable));
    const std::vector<TableFile> files = ListTableFiles(h.db(), h.family()).files;
    BOOST_REQUIRE_EQUAL(files.size(), 2u);
    h.LoseFile(files[oldest ? 0 : 1].number);
    std::string value;
    BOOST_TEST(h.db()->Get({}, "a000", &value).IsNotFound() == oldest);
    if (!oldest) {
      h.CheckCurrent();
      continue;
    }
    RequireOk(h.CatchUp());
    BOOST_TEST(RequireOk(h.index().Count(KeyQuery::Everything(), {})) ==
               std::vector<uint64_t>({2}));
  }
}

BOOST_AUTO_TEST_CASE(long_keys_are_shortened_to_wider_ranges) {
  DatabaseHistory h;
  const std::string same(100, 's');
  const std::string low = same + "a" + std::string(1000, 'x');
  const std::string high = same + std::string(1000, '\xff');
  RequireOk(h.db()->Put({}, low, "value"));
  RequireOk(h.db()->Put({}, high, "value"));
  RequireOk(h.db()->Flush({}));
  std::shared_ptr<const TableFiles> tables;
  RequireOk(TableFilesRecorder(h.db(), h.family()).Record(&tables));
  BOOST_REQUIRE_EQUAL(tables->files.size(), 1u);
  BOOST_TEST(tables->files[0].smallest == low.substr(0, 124));
  BOOST_TEST((tables->files[0].largest >= high));
  BOOST_TEST(tables->files[0].largest.size() <= 100u);
  BOOST_TEST(tables->complete);
}

BOOST_AUTO_TEST_CASE(files_are_recorded_as_they_come_and_go) {
  DatabaseHistory h;
  TableFilesRecorder recorder(h.db(), h.family());
  std::shared_ptr<const TableFiles> tables;
  const auto record = [&] {
    RequireOk(recorder.Record(&tables));
    return tables;
  };
  BOOST_TEST(record()->files.empty());
  BOOST_TEST(tables->complete);
  h.Put("a", 0, 5, "value");
  BOOST_TEST(!record()->complete);
  RequireOk(h.db()->Flush({}));
  BOOST_TEST(record()->complete);
  BOOST_TEST(tables->files.size() == 1u);
  const auto first = tables;
  BOOST_TEST(record() == first);  // nothing is computed again
  h.Put("a", 2, 7, "value");
  BOOST_TEST(!record()->complete);
  BOOST_TEST(tables->newest.empty());
  BOOST_TEST((tables->files == first->files));
  RequireOk(h.db()->Flush({}));
  BOOST_TEST(record()->files.size() == 2u);
  BOOST_TEST(tables->newest.starts_with(absl::StrFormat("%d:", tables->files[1].number)));
  RequireOk(h.db()->CompactRange({}, nullptr, nullptr));
  BOOST_TEST(record()->files.size() == 1u);
}

// The newest file, or one in which older ones continue, is lost, and the database is opened without
// it.
BOOST_AUTO_TEST_CASE(rows_of_a_lost_file_are_not_in_the_index) {
  for (const bool keeps_logs : {true, false}) {
    for (const size_t lost : {0, 1}) {
      DatabaseHistory h(keeps_logs);
      h.options().disable_auto_compactions = true;
      h.Reopen();
      h.Put("a", 0, 50, "old");
      RequireOk(h.db()->Flush({}));
      h.Put("a", 40, 60, "new");
      RequireOk(h.db()->Flush({}));
      h.Build();
      const std::vector<rocksdb::LiveFileMetaData> files = LiveFiles(h.db());
      BOOST_REQUIRE_EQUAL(files.size(), 2u);
      const std::string victim = files[lost].db_path + files[lost].name;
      h.Close();
      fs::remove(victim);
      h.options().best_efforts_recovery = true;
      h.OpenDatabase();
      h.CheckCurrentOrRefused();
      h.Put("b", 0, 5, "more");
      h.CheckCurrentOrRefused();
    }
  }
}

BOOST_AUTO_TEST_CASE(too_many_rows_of_a_lost_file_are_an_error_that_names_it) {
  DatabaseHistory h;
  h.options().disable_auto_compactions = true;
  h.Reopen();
  h.Put("a", 0, 1, "first");
  RequireOk(h.db()->Flush({}));
  rocksdb::WriteBatch batch;
  for (int i = 0; i <= 100'000; ++i) RequireOk(batch.Put(absl::StrFormat("b%06d", i), "x"));
  RequireOk(h.db()->Write({}, &batch));
  RequireOk(h.db()->Flush({}));
  h.Put("b", 0, 1, "first");
  h.Put("b999", 0, 1, "last");
  RequireOk(h.db()->Flush({}));
  h.Build();
  uint64_t newest = 0;
  std::string victim;
  for (const rocksdb::LiveFileMetaData& file : LiveFiles(h.db())) {
    if (file.file_number < newest) continue;
    newest = file.file_number;
    victim = file.db_path + file.name;
  }
  h.Close();
  fs::remove(victim);
  h.options().best_efforts_recovery = true;
  h.OpenDatabase();
  h.CheckRefused(absl::StrFormat("%06d.sst", newest));
}

// A clean end; its log is not kept, or only briefly.
BOOST_AUTO_TEST_CASE(files_prove_a_state_whose_log_is_gone) {
  for (const bool compacted : {false, true}) {
    DatabaseHistory h(/*keeps_logs=*/false);
    h.options().level0_file_num_compaction_trigger = 2;
    h.Reopen();
    h.Put("a", 0, 50, "old");
    h.Build();
    for (int run = 0; run < 6; ++run) {
      h.CheckCurrent();
      h.Put("b", run, run + 2, "new");
      h.CheckCurrent();
      RequireOk(h.db()->Flush({}));
      h.CheckCurrent();  // and everything is in files
      h.Reopen();
      if (compacted) RequireOk(h.db()->CompactRange({}, nullptr, nullptr));
    }
    h.CheckCurrent();
  }
}

BOOST_AUTO_TEST_CASE(files_prove_nothing_beside_an_older_log) {
  DatabaseHistory h(/*keeps_logs=*/false);
  h.Put("a", 0, 50, "old");
  RequireOk(h.db()->Flush({}));
  h.Build();
  h.CopyTo("copy");
  h.Put("a", 50, 60, "lost");
  h.CheckCurrent();
  RequireOk(h.db()->Flush({}));
  h.CheckCurrent();
  h.Restore("copy");
  h.Put("a", 50, 60, "newx");  // with the numbers of the lost ones
  h.CheckCurrentOrRefused();
  RequireOk(h.db()->Flush({}));
  h.CheckCurrentOrRefused();
  h.Reopen();
  h.CheckCurrentOrRefused();
}

// Any number of sessions without the index that write, flush and compact.
BOOST_AUTO_TEST_CASE(ordinary_sessions_between_two_openings_are_no_reason_to_refuse) {
  std::mt19937_64 random = TestRandom();
  uint64_t read_again = 0, changes = 0;
  for (int history = 0; history < static_cast<int>(FewerSanitized(12, 3, 6)); ++history) {
    const bool keeps_logs = history % 3 != 0;
    DatabaseHistory h(keeps_logs);
    rocksdb::Options& options = h.options();
    options.write_buffer_size = 64 << 10;
    options.target_file_size_base = 4 << 10;
    options.max_bytes_for_level_base = 16 << 10;
    options.level0_file_num_compaction_trigger = 2 + static_cast<int>(random() % 3);
    options.compression = rocksdb::kNoCompression;
    if (history % 4 == 3) options.compaction_style = rocksdb::kCompactionStyleUniversal;
    h.Reopen();
    int head = 0, tail = 0;
    const auto work = [&] {
      for (int i = 0; i < 60; ++i) {
        const uint64_t kind = random() % 100;
        const int at = static_cast<int>(random() % 1000);
        if (kind < 40) {
          h.Put("m", at, at + 3, "some value that is not short");
        } else if (kind < 60) {
          for (int n = 0; n < 10; ++n) h.Put("q", tail, tail + 1, "a job"), tail++;
        } else if (kind < 75) {
          while (head < tail && random() % 20 != 0) {
            RequireOk(h.db()->Delete({}, h.family(), absl::StrFormat("q%03d", head++)));
          }
        } else if (kind < 85) {
          // At both ends of all keys.
          for (const char* lock : {"a-lock", "z-lock"}) {
            RequireOk(random() % 2 == 0 ? h.db()->Put({}, h.family(), lock, "held")
                                        : h.db()->Delete({}, h.family(), lock));
          }
        } else if (kind < 88) {
          RequireOk(h.db()->DeleteRange({}, h.family(), absl::StrFormat("m%03d", at),
                                        absl::StrFormat("m%03d~", std::min(at + 50, 999))));
        } else if (kind < 96) {
          RequireOk(h.db()->Flush({}, h.family()));
        } else if (kind < 97) {
          RequireOk(h.db()->CompactRange({}, h.family(), nullptr, nullptr));
        }
      }
    };
    work();
    h.Build();
    for (int round = 0; round < 8; ++round) {
      if (keeps_logs) {
        for (uint64_t sessions = random() % 4; sessions > 0; --sessions) {
          h.Reopen();
          work();
          if (random() % 2 == 0) RequireOk(h.db()->CompactRange({}, h.family(), nullptr, nullptr));
        }
      } else {  // The log of these writes is read; then everything is in files.
        h.Put("m", 100 * round, 100 * round + 50, "new");
        h.CheckCurrent();
        RequireOk(h.db()->Flush({}, h.family()));
        h.CheckCurrent();
        h.Reopen();
        if (random() % 2 == 0) RequireOk(h.db()->CompactRange({}, h.family(), nullptr, nullptr));
      }
      CatchUpReport report;
      RequireOk(h.CatchUp({}, &report));
      h.CheckCurrent();
      read_again += report.rows;
      changes += report.changes;
    }
  }
  BOOST_TEST_MESSAGE(changes << " changes, " << read_again << " rows read");
  BOOST_TEST(changes > 0u);
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
