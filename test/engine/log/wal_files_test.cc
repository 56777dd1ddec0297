#include "engine/log/wal_files.h"

#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <string>
#include <vector>

#include "test/engine/logged_database.h"
#include "test/require_ok.h"
#include "test/sanitizer.h"

namespace cairn {
BOOST_AUTO_TEST_SUITE(wal_files_test, *StartsNoThread())
namespace {

std::vector<WalFile> List(LoggedDatabase* database) {
  return RequireOk(ListWalFiles(database->db()));
}

// The start of the file in which a sequence number must be searched; 0 for none.
SequenceNumber StartFor(LoggedDatabase* database, SequenceNumber sequence) {
  std::vector<WalFile> files = List(database);
  const auto found = RequireOk(FindWalFile(database->db(), sequence, &files));
  return found == files.size() ? 0 : files[found].start;
}

BOOST_AUTO_TEST_CASE(lists_live_and_archived_files_in_order) {
  LoggedDatabase database;
  for (int round = 0; round < 4; ++round) {
    for (int i = 0; i < 10; ++i) database.Put("key", "value");
    database.Flush();
  }
  database.Put("key", "value");
  const std::vector<WalFile> files = List(&database);
  BOOST_REQUIRE(files.size() >= 5);
  for (size_t i = 0; i < files.size(); ++i) {
    BOOST_TEST((i == 0 || files[i - 1].number < files[i].number));
    BOOST_TEST(std::filesystem::exists(files[i].path));
  }
  BOOST_TEST(files.front().path == files.front().archived_path);
  BOOST_TEST(files.back().path != files.back().archived_path);
}

BOOST_AUTO_TEST_CASE(does_not_take_other_files_for_logs) {
  LoggedDatabase database;
  const size_t before = List(&database).size();
  for (const char* name : {"LOG.log", "7x.log", ".log", "000099.log.bak", "-5.log"}) {
    WriteFile(database.path() + "/" + name, "text");
  }
  BOOST_TEST(List(&database).size() == before);
}

BOOST_AUTO_TEST_CASE(opens_a_file_that_has_been_moved_to_the_archive) {
  LoggedDatabase database;
  database.Put("key", "value");
  const WalFile file = List(&database).back();
  std::filesystem::create_directory(database.path() + "/archive");
  std::filesystem::rename(file.path, file.archived_path);
  const auto reader = RequireOk(OpenWalFile(database.db(), file));
  BOOST_TEST(reader->path() == file.archived_path);
  BOOST_TEST(reader->Next());
  std::filesystem::rename(file.archived_path, file.path + ".gone");
  BOOST_TEST(absl::IsNotFound(OpenWalFile(database.db(), file).status()));
}

BOOST_AUTO_TEST_CASE(finds_the_file_that_a_sequence_number_is_in) {
  LoggedDatabase database;
  BOOST_TEST(StartFor(&database, 1) == 0u);
  for (int round = 0; round < 4; ++round) {
    for (int i = 0; i < 10; ++i) database.Put("key", "value");
    database.Flush();
  }
  database.Put("key", "value");  // number 41
  for (SequenceNumber sequence = 1; sequence <= 50; ++sequence) {
    const SequenceNumber expected = sequence > 41 ? 41 : (sequence - 1) / 10 * 10 + 1;
    BOOST_TEST(StartFor(&database, sequence) == expected);
  }
  BOOST_TEST(StartFor(&database, 0) == 0u);
}

BOOST_AUTO_TEST_CASE(knows_where_later_files_begin) {
  LoggedDatabase database;
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 10; ++i) database.Put("key", "value");
    database.Flush();
  }
  std::vector<WalFile> files = List(&database);
  RequireOk(FindWalFile(database.db(), 1, &files));
  for (const WalFile& file : files) {
    if (file.start == 0) continue;  // it has no record yet
    BOOST_TEST(file.limit == (file.start == 21 ? UINT64_MAX : file.start + 10));
  }
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
