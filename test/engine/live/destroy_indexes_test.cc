// DestroyIndexes, and the files that it keeps.
#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <fstream>
#include <string>

#include "cairn/indexed_db.h"
#include "rocksdb/db.h"
#include "test/engine/indexed_database.h"
#include "test/engine/live/indexed_db_checks.h"
#include "test/require_ok.h"

namespace cairn {
BOOST_AUTO_TEST_SUITE(destroy_indexes_test)
namespace {

namespace fs = std::filesystem;

constexpr char kCity[] = "city = value:text";

BOOST_AUTO_TEST_CASE(a_new_database_at_a_path_has_no_indexes_of_the_old_one) {
  IndexedDatabase db;
  db.Put("a", "Lisbon");
  db.Create(kCity);
  db.Create("other = value:text, cf=a", 1);
  const std::string path = db.path();
  CheckFails(DestroyIndexes(path), absl::StatusCode::kUnavailable, path);
  BOOST_TEST(RowsOf(db.get(), "city", "Lisbon") == "a");
  db.Close();
  RequireOk(rocksdb::DestroyDB(path, db.rocksdb_options(), {{"a", db.rocksdb_options()}}));
  BOOST_TEST(fs::exists(path + ".indexes/city"));
  RequireOk(DestroyIndexes(path));
  BOOST_TEST(!fs::exists(path + ".indexes"));
  RequireOk(DestroyIndexes(path));  // again
  db.Open();
  BOOST_TEST(db->ListIndexes().empty());
  db.Create(kCity);
}

BOOST_AUTO_TEST_CASE(marks_and_what_a_killed_process_left_go_too) {
  IndexedDatabase db;
  db.Create(kCity);
  db.Close();
  const std::string root = db.path() + ".indexes";
  std::ofstream(root + "/city~") << "";       // a damaged mark
  std::ofstream(root + "/.city.tmp") << "x";  // of a mark whose writing was interrupted
  RequireOk(DestroyIndexes(db.path() + "/"));
  BOOST_TEST(!fs::exists(root));
}

BOOST_AUTO_TEST_CASE(a_directory_with_anything_else_stays) {
  IndexedDatabase db;
  db.options().index_directory = db.Beside("elsewhere");
  db.Reopen();
  db.Create(kCity);
  db.Close();
  const std::string root = db.Beside("elsewhere");
  const auto check = [&](const std::string& part) {
    CheckFails(DestroyIndexes(db.path(), db.options()), absl::StatusCode::kFailedPrecondition,
               part);
    BOOST_TEST(fs::exists(root + "/city/MANIFEST"));
  };
  std::ofstream(root + "/notes") << "mine";
  check("'notes'");
  fs::remove(root + "/notes");
  std::ofstream(root + "/notes~") << "mine";
  check("'notes~'");
  fs::remove(root + "/notes~");
  fs::create_directory(root + "/photos");
  std::ofstream(root + "/photos/cat.jpg") << "mine";
  check("'photos'");
  BOOST_TEST(fs::exists(root + "/photos/cat.jpg"));
  fs::remove_all(root + "/photos");
  RequireOk(DestroyIndexes(db.path(), db.options()));
  BOOST_TEST(!fs::exists(root));
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
