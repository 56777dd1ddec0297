// Which names the indexes of an IndexedDB may have.
#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <string>

#include "test/engine/indexed_database.h"

namespace cairn {
BOOST_AUTO_TEST_SUITE(indexed_db_names_test)
namespace {

IndexSpec Named(const std::string& name) {
  IndexSpec spec = SpecOf("value:text");
  spec.name = name;
  return spec;
}

BOOST_AUTO_TEST_CASE(a_name_that_no_directory_or_spec_can_have_is_refused_and_nothing_written) {
  IndexedDatabase db;
  const std::string names[] = {"",
                               "my index",
                               "a~",
                               ".",
                               "..",
                               ".hidden",
                               "a/b",
                               "../up",
                               "a\nb",
                               std::string("a\0b", 3),
                               "caf\xc3\xa9",
                               std::string(129, 'n'),
                               "unique",  // an option of specs
                               "cf"};
  for (const std::string& name : names) {
    const absl::Status created = db->CreateIndex(Named(name));
    BOOST_TEST(absl::IsInvalidArgument(created), name << ": " << created);
  }
  BOOST_TEST(db->ListIndexes().empty());
  BOOST_TEST(std::filesystem::is_empty(db.path() + ".indexes"));
}

BOOST_AUTO_TEST_CASE(every_name_that_is_taken_is_there_after_a_reopen) {
  IndexedDatabase db;
  db.Put("a", "red");
  const std::string names[] = {"x", "By-City.2_b", "-", "0", "a.tmp", std::string(128, 'n')};
  for (const std::string& name : names) {
    RequireOk(db->CreateIndex(Named(name)));
    RequireOk(db->WaitUntilReady(name));
  }
  db.Reopen();
  BOOST_TEST(db->ListIndexes().size() == std::size(names));
  for (const std::string& name : names) BOOST_TEST(RowsOf(db.get(), name, "red") == "a");
}

BOOST_AUTO_TEST_CASE(directories_and_files_of_other_names_are_left_alone) {
  IndexedDatabase db;
  db.Close();
  const std::string indexes = db.path() + ".indexes/";
  std::filesystem::create_directories(indexes + "my index");
  std::filesystem::create_directories(indexes + "a~");
  WriteFile(indexes + "my index~", "building\n");
  WriteFile(indexes + "a~~", "building\n");
  db.Open();
  BOOST_TEST(db->ListIndexes().empty());
  for (const char* name : {"my index", "a~", "my index~", "a~~"}) {
    BOOST_TEST(std::filesystem::exists(indexes + name), name);
  }
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
