// The command line: indexes that are brought up to date with their database, and compacted.
#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "engine/util/rocksdb_compat.h"
#include "rocksdb/db.h"
#include "rocksdb/sst_file_writer.h"
#include "test/require_ok.h"
#include "test/tools/run_tool.h"

namespace cairn {
BOOST_AUTO_TEST_SUITE(cli_catch_up_test)
namespace {

// A database of 500 rows, in the column family `family` or the default one, and an index of it.
struct Indexed {
  TemporaryDirectory directory;
  const std::string db = directory / "db";
  const std::string index = directory / "index";
  const std::string from = "--db=" + db;

  explicit Indexed(uint64_t log_seconds = 3600) {
    options.create_if_missing = true;
    options.WAL_ttl_seconds = log_seconds;
    Write([](rocksdb::DB* db) {
      for (int i = 0; i < 500; ++i) Put(db, "row" + std::to_string(i), std::to_string(i % 10));
    });
    MustRun({"build", from, "--spec=value.field('|',0):u64", "--out=" + index});
  }

  template <typename Change>
  void Write(Change change) const {
    std::unique_ptr<rocksdb::DB> owned;
    RequireOk(rocksdb::DB::Open(options, db, Into(&owned)));
    change(owned.get());
  }
  static void Put(rocksdb::DB* db, const std::string& key, const std::string& value) {
    RequireOk(db->Put({}, key, value));
  }
  // Some changes of each kind: 10 rows with a new key, 10 deleted, 20 inserted.
  void WriteMore() const {
    Write([](rocksdb::DB* db) {
      for (int i = 0; i < 10; ++i) Put(db, "row" + std::to_string(i), "1000");
      RequireOk(db->DeleteRange({}, db->DefaultColumnFamily(), "row100", "row11"));  // row100 … 109
      for (int i = 0; i < 20; ++i) Put(db, "new" + std::to_string(100 + i), "2000");
    });
  }
  // The number of files of the index with this extension.
  size_t Files(const std::string& extension) const {
    size_t files = 0;
    for (const auto& file : std::filesystem::directory_iterator(index)) {
      files += file.path().extension() == extension ? 1 : 0;
    }
    return files;
  }
  std::string SequenceLine() const {
    for (const std::string& line : MustRun({"inspect", index}).lines()) {
      if (line.compare(0, 15, "sequence number") == 0) return line;
    }
    return "";
  }
  std::string DatabaseSequence() const {
    std::unique_ptr<rocksdb::DB> owned;
    RequireOk(rocksdb::DB::OpenForReadOnly(options, db, Into(&owned)));
    return std::to_string(owned->GetLatestSequenceNumber());
  }

  rocksdb::Options options;
};

void CheckSays(const std::string& text, const std::vector<std::string>& parts) {
  for (const std::string& part : parts) {
    BOOST_TEST(text.find(part) != std::string::npos, "'" << part << "' in:\n" << text);
  }
}

// Checks that a run failed with one line that contains all of `parts`.
void CheckFails(const std::vector<std::string>& arguments, const std::vector<std::string>& parts) {
  const ToolResult result = RunTool(arguments);
  BOOST_TEST(result.exit_status == 1);
  BOOST_TEST(result.out == "");
  BOOST_TEST(std::count(result.err.begin(), result.err.end(), '\n') == 1, result.err);
  CheckSays(result.err, parts);
}

}  // namespace

BOOST_AUTO_TEST_CASE(an_index_that_catches_up_and_is_merged_has_what_was_written) {
  const Indexed indexed;
  const std::string& index = indexed.index;
  CheckSays(MustRun({"inspect", index}).out, {"changes           none\n"});
  indexed.WriteMore();
  BOOST_TEST(RunTool({"verify", index, indexed.from}).exit_status == 1);

  const ToolResult caught_up = MustRun({"catch-up", index, indexed.from});
  CheckSays(caught_up.out, {"at sequence number " + indexed.DatabaseSequence() + " of directory",
                            "31 changes of"});
  BOOST_TEST(caught_up.err == "");
  BOOST_TEST(MustRun({"count", index, "--eq=1000", "--eq=2000", "--range=.."}).out ==
             "10\n20\n510\n");
  BOOST_TEST(MustRun({"query", index, "--eq=2000", "--limit=1", "--format=tsv"}).out ==
             "2000\tnew100\n");
  BOOST_TEST(indexed.SequenceLine() == "sequence number   " + indexed.DatabaseSequence());
  CheckSays(MustRun({"inspect", index}).out,
            {"changes           30 entries added, 20 removed; 20 new rows\n",
             "compaction        does not pay yet\n", ".upd"});
  BOOST_TEST(indexed.Files(".upd") == 1u);
  MustRun({"verify", index, indexed.from});

  const ToolResult merged = MustRun({"compact", index, "--threads=2"});
  CheckSays(merged.out, {"compacted: 510 entries of 510 rows"});
  BOOST_TEST(indexed.Files(".upd") == 0u);
  CheckSays(MustRun({"inspect", index}).out,
            {"changes           none\n", "rows              510\n"});
  BOOST_TEST(indexed.SequenceLine() == "sequence number   " + indexed.DatabaseSequence());
  BOOST_TEST(MustRun({"count", index, "--eq=1000", "--eq=2000"}).out == "10\n20\n");
  MustRun({"verify", index, indexed.from});
}

BOOST_AUTO_TEST_CASE(what_was_merged_or_caught_up_before_is_not_read_again) {
  const Indexed indexed;
  CheckSays(MustRun({"catch-up", indexed.index, indexed.from}).out,
            {": 0 changes of 0 rows, in 0 B"});
  CheckSays(MustRun({"compact", indexed.index}).out, {"there is nothing to compact\n"});
  indexed.WriteMore();
  CheckSays(MustRun({"catch-up", indexed.index, indexed.from, "--compact=always"}).out,
            {"31 changes", "compacted: 510 entries"});
  CheckSays(MustRun({"catch-up", indexed.index, indexed.from}).out, {": 0 changes"});
  indexed.Write([](rocksdb::DB* db) { Indexed::Put(db, "row42", "4242"); });
  CheckSays(MustRun({"catch-up", indexed.index, indexed.from, "--max-bytes-per-second=10M"}).out,
            {": 1 changes of 1 rows"});
  MustRun({"verify", indexed.index, indexed.from});
}

BOOST_AUTO_TEST_CASE(a_merge_is_made_if_it_pays) {
  const Indexed indexed;
  indexed.WriteMore();
  CheckSays(MustRun({"catch-up", indexed.index, indexed.from, "--compact=auto"}).out,
            {"a compaction does not pay yet\n"});
  indexed.Write([](rocksdb::DB* db) {
    for (int i = 0; i < 12000; ++i) Indexed::Put(db, "many" + std::to_string(i), "3");
  });
  const ToolResult merged = MustRun({"catch-up", indexed.index, indexed.from, "--compact=auto"});
  CheckSays(merged.out, {"12,000 changes", "compacted: 12,510 entries"});
  CheckSays(merged.err, {"cairn: writing entries"});
  MustRun({"verify", indexed.index, indexed.from});
}

BOOST_AUTO_TEST_CASE(a_database_in_use_is_caught_up_with) {
  const Indexed indexed;
  indexed.Write([&](rocksdb::DB* db) {
    Indexed::Put(db, "row7", "7777");
    MustRun({"catch-up", indexed.index, indexed.from});
    RequireOk(db->Flush({}));
    Indexed::Put(db, "row8", "7777");
    MustRun({"catch-up", indexed.index, indexed.from, "--cf=default"});
    BOOST_TEST(MustRun({"count", indexed.index, "--eq=7777"}).out == "2\n");
  });
}

BOOST_AUTO_TEST_CASE(a_gap_in_the_log_is_an_error_that_says_to_rebuild) {
  const Indexed indexed(/*log_seconds=*/0);
  // Opening flushes the existing log and removes it.
  indexed.WriteMore();
  indexed.Write([](rocksdb::DB* db) { Indexed::Put(db, "row7", "7777"); });
  CheckFails({"catch-up", indexed.index, indexed.from}, {"log", "rebuild the index"});
  BOOST_TEST(MustRun({"count", indexed.index, "--range=.."}).out == "500\n");
  MustRun({"build", indexed.from, "--spec=value.field('|',0):u64", "--out=" + indexed.index});
  MustRun({"catch-up", indexed.index, indexed.from});
  MustRun({"verify", indexed.index, indexed.from});
}

BOOST_AUTO_TEST_CASE(what_cannot_be_caught_up_is_refused) {
  const Indexed indexed, other;
  CheckFails({"catch-up", indexed.index, other.from}, {"database"});
  CheckFails({"catch-up", indexed.index, "--db=" + indexed.directory / "nowhere"}, {"nowhere"});
  const ToolResult result = RunTool({"catch-up", indexed.index, indexed.from, "--cf=other"});
  BOOST_TEST(result.exit_status == 2);
  CheckSays(result.err, {"'default'"});

  // A row that the specification does not allow changes nothing.
  indexed.Write([](rocksdb::DB* db) {
    Indexed::Put(db, "row7", "7777");
    Indexed::Put(db, "the-bad-row", "no number");
  });
  CheckFails({"catch-up", indexed.index, indexed.from}, {"the-bad-row"});
  BOOST_TEST(MustRun({"count", indexed.index, "--eq=7777"}).out == "0\n");
}

BOOST_AUTO_TEST_CASE(a_damaged_delta_file_is_found) {
  const Indexed indexed;
  indexed.WriteMore();
  MustRun({"catch-up", indexed.index, indexed.from});
  for (const auto& file : std::filesystem::directory_iterator(indexed.index)) {
    if (file.path().extension() != ".upd") continue;
    std::fstream stream(file.path(), std::ios::in | std::ios::out | std::ios::binary);
    stream.seekg(1100);
    const int byte = stream.peek();
    stream.seekp(1100);
    stream.put(static_cast<char>(byte ^ 1));
  }
  for (const std::vector<std::string>& arguments :
       {std::vector<std::string>{"catch-up", indexed.index, indexed.from},
        {"compact", indexed.index},
        {"inspect", indexed.index},
        {"count", indexed.index, "--range=.."}}) {
    CheckFails(arguments, {"delta-", ".upd"});
  }
  const ToolResult verified = RunTool({"verify", indexed.index});
  BOOST_TEST(verified.exit_status == 1);
  CheckSays(verified.out, {".upd"});
}

BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
