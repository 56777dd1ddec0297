// Names that the indexes of an IndexedDB may have.
#include <atomic>
#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "test/engine/indexed_database.h"
#include "test/engine/live/indexed_db_checks.h"

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

BOOST_AUTO_TEST_CASE(an_index_is_created_if_it_does_not_exist) {
  IndexedDatabase db;
  db.Put("a", "red,heavy");
  constexpr CreateIndexOptions kIfMissing = {.if_not_exists = true};
  const std::string spec = "x = value.field(',', 0):text, include(w = value.field(',', 1):text)";
  for (int time = 0; time < 2; ++time) {
    for (int i = 0; i < 2; ++i) {
      RequireOk(db->CreateIndex(spec, kIfMissing));
      RequireOk(db->CreateIndex(SpecOf(spec), kIfMissing));
      RequireOk(
          db->CreateIndex("x= value . field(',',0) : text,include( w=value.field(',',1):text)",
                          nullptr, kIfMissing));
    }
    RequireOk(db->WaitUntilReady("x"));
    BOOST_TEST(RowsOf(db.get(), "x", "red") == "a");
    BOOST_TEST(db.Info("x").builds == (time == 0 ? 1u : 0u));
    db.Reopen();
  }
  CheckFails(db->CreateIndex(spec), absl::StatusCode::kAlreadyExists, "has an index 'x' already");

  const std::pair<const char*, const char*> others[] = {
      {"value.field(',', 1):text, include(w = value.field(',', 1):text)", "different key"},
      {"value.field(',', 0):bytes, include(w = value.field(',', 1):text)", "different key"},
      {"value.field(',', 0):text", "different included columns"},
      {"value.field(',', 0):text, unique=true, include(w = value.field(',', 1):text)",
       "different unique"},
      {"value.field(',', 0):text, nulls=last, include(w = value.field(',', 1):text)",
       "different nulls"},
      {"value.field(',', 0):text, on_error=skip, include(w = value.field(',', 1):text)",
       "different on_error"},
      {"value.field(',', 0):text, dropped_rows=ignore, include(w = value.field(',', 1):text)",
       "different dropped_rows"}};
  for (const auto& [other, difference] : others) {
    const absl::Status created = db->CreateIndex(absl::StrCat("x = ", other), kIfMissing);
    CheckFails(created, absl::StatusCode::kAlreadyExists, difference);
    CheckFails(created, absl::StatusCode::kAlreadyExists, "x=value.field(',',0):text");
  }
  CheckFails(db->CreateIndex(spec, db.family(1), kIfMissing), absl::StatusCode::kAlreadyExists,
             "different column family");

  // Either all missing ones are created, or none.
  const IndexSpec some[] = {SpecOf(spec), SpecOf("y = value:text")};
  RequireOk(db->CreateIndexes(some, nullptr, kIfMissing));
  RequireOk(db->WaitUntilReady("y"));
  const IndexSpec wrong[] = {SpecOf("z = value:text"), SpecOf("y = key:text")};
  CheckFails(db->CreateIndexes(wrong, nullptr, kIfMissing), absl::StatusCode::kAlreadyExists,
             "index 'y' exists with a different key");
  BOOST_TEST(db->ListIndexes().size() == 2u);

  // Concurrent calls: one of them creates it.
  std::vector<std::thread> threads;
  std::atomic<int> failed{0};
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back(
        [&] { failed += db->CreateIndex("z = value:text", kIfMissing).ok() ? 0 : 1; });
  }
  for (std::thread& thread : threads) thread.join();
  BOOST_TEST(failed == 0);
  RequireOk(db->WaitUntilReady("z"));
  BOOST_TEST(db.Info("z").builds == 1u);

  // Also a failed one.
  RequireOk(db->CreateIndex("m = value.field(',', 0):u32"));
  BOOST_TEST(!db->WaitUntilReady("m").ok());
  RequireOk(db->CreateIndex("m = value.field(',', 0):u32", kIfMissing));
  BOOST_TEST(!db->WaitUntilReady("m").ok());
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
