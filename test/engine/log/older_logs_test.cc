#include "engine/log/older_logs.h"

#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "test/engine/logged_database.h"
#include "test/require_ok.h"

namespace cairn {
BOOST_AUTO_TEST_SUITE(older_logs_test)
namespace {

// Begins a new log file, and keeps those before it in use.
void BeginNewLog(LoggedDatabase* database) {
  database->Put("key", "value");
  RequireOk(database->db()->Put({}, database->families()[1], "key", "value"));
  RequireOk(database->db()->Flush({}, database->families()[1]));
}

absl::Status Check(LoggedDatabase* database, const std::vector<LogPosition>& logs) {
  return OlderLogCheck(database->db()).HasAll(7, logs);
}

BOOST_AUTO_TEST_CASE(are_text_and_nothing_else) {
  const std::vector<LogPosition> logs = {{5, {100, 0xabc}}, {12, {7, UINT64_MAX}}};
  const std::string text = FormatOlderLogs(logs);
  BOOST_TEST(text == "5:100:0000000000000abc 12:7:ffffffffffffffff");
  BOOST_TEST((RequireOk(ParseOlderLogs(text)) == logs));
  BOOST_TEST(RequireOk(ParseOlderLogs("")).empty());
  for (const char* wrong :
       {" ", "5", "5:100", "5:100:abc", "x:100:0000000000000abc", "5:100:0000000000000abc ",
        "5:100:0000000000000abc:", "12:7:ffffffffffffffff 5:100:0000000000000abc",
        "5:7:ffffffffffffffff 5:7:ffffffffffffffff"}) {
    BOOST_TEST(absl::IsDataLoss(ParseOlderLogs(wrong).status()), wrong);
  }
}

BOOST_AUTO_TEST_CASE(are_those_that_hold_rows_of_memtables) {
  LoggedDatabase database;
  BeginNewLog(&database);
  BeginNewLog(&database);
  database.Put("key", "value");
  const uint64_t newest = RequireOk(ListWalFiles(database.db())).back().number;
  OlderLogs older(database.db());
  const std::vector<LogPosition> all = RequireOk(older.Before(newest));
  BOOST_REQUIRE(all.size() == 2u);
  BOOST_TEST((RequireOk(older.Before(all[1].log_number)) == std::vector<LogPosition>{all[0]}));
  BOOST_TEST((RequireOk(older.Before(newest)) == all));
  BOOST_TEST((RequireOk(OlderLogs(database.db()).Before(newest, all)) == all));
  RequireOk(Check(&database, all));

  // A position in the file is enough; a position past its end is not in it.
  const std::string path = absl::StrCat(LogDirectory(database.db()), "/",
                                        absl::StrFormat("%06d.log", all[0].log_number));
  std::vector<LogPosition> longer = all;
  ++longer[0].place.offset;
  BOOST_TEST(absl::IsFailedPrecondition(Check(&database, longer)));
  std::filesystem::rename(path, path + ".moved");
  BOOST_TEST(absl::IsFailedPrecondition(Check(&database, all)));
  BOOST_TEST((RequireOk(older.Before(newest)) == all));
  BOOST_TEST((RequireOk(OlderLogs(database.db()).Before(newest, all)) == all));
  std::filesystem::rename(path + ".moved", path);
  RequireOk(Check(&database, all));

  // Files that are no longer needed may be gone.
  database.Flush();
  BOOST_TEST(RequireOk(older.Before(newest)).empty());
  RequireOk(Check(&database, all));
  std::filesystem::remove_all(LogDirectory(database.db()) + "/archive");
  RequireOk(Check(&database, all));
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
