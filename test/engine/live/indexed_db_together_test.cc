// IndexedDB::PinGroup: several indexes at one state, with every write that had returned, also
// during other writes and compactions.
#include <atomic>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <map>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "cairn/index_group.h"
#include "cairn/indexed_db.h"
#include "test/engine/indexed_database.h"
#include "test/engine/where/where_model.h"
#include "test/require_ok.h"
#include "test/sanitizer.h"
#include "test/test_random.h"

namespace cairn {
BOOST_AUTO_TEST_SUITE(indexed_db_together_test)
namespace {

std::vector<std::string> Found(const IndexGroup& group, const Predicate& where) {
  WhereResult matches;
  RequireOk(group.Find(where, {}, &matches));
  StringList keys;
  RequireOk(group.PrimaryKeys(matches, &keys));
  return {keys.begin(), keys.end()};
}

// Values are "city|age"; some lack the city.
std::unique_ptr<IndexedDB> OpenPeople(const std::string& path) {
  rocksdb::Options options;
  options.create_if_missing = true;
  auto db = RequireOk(IndexedDB::Open(options, path));
  for (const char* spec : {"age = value.field('|',0):u32", "city = value.field('|',1):text"}) {
    RequireOk(db->CreateIndex(spec));
  }
  RequireOk(db->WaitUntilReady("age"));
  RequireOk(db->WaitUntilReady("city"));
  return db;
}

BOOST_AUTO_TEST_CASE(predicates_see_what_was_written) {
  std::mt19937_64 random = TestRandom();
  TemporaryDirectory directory;
  auto db = OpenPeople(directory / "db");
  std::vector<ModelKey> ages, cities;
  for (int i = 0; i < 20; ++i) ages.push_back({ModelPart(int64_t{i})});
  for (const char* city : {"Lisbon", "Oslo", "Porto"}) {
    cities.push_back({ModelPart(std::string(city))});
  }
  PredicateMaker maker({{"age", false, false, ages}, {"city", false, false, cities}}, &random);
  ModelTable rows;
  const size_t rounds = FewerSanitized(1500, 4, 15);
  for (size_t round = 0; round < rounds; ++round) {
    for (uint64_t n = random() % 4; n > 0; --n) {
      const std::string key = absl::StrCat("k", random() % 300);
      if (random() % 4 == 0) {
        RequireOk(db->Delete({}, key));
        rows.erase(key);
        continue;
      }
      const ModelKey& age = ages[random() % ages.size()];
      const ModelKey& city = cities[random() % cities.size()];
      const bool has_city = random() % 4 != 0;
      std::string value = std::to_string(std::get<int64_t>(*age[0]));
      if (has_city) value += "|" + std::get<std::string>(*city[0]);
      RequireOk(db->Put({}, key, value));
      rows[key] = {{age}, has_city ? std::vector<ModelKey>{city} : std::vector<ModelKey>{}};
    }
    if (round % 211 == 50) RequireOk(db->CompactIndex(random() % 2 == 0 ? "age" : "city"));
    const auto group = RequireOk(db->PinGroup({"city", "age"}));
    const ModelPredicate where = maker.Make(2);
    BOOST_TEST_CONTEXT("where " << where.predicate.ToString()) {
      const std::vector<std::string> expected = ModelAnswer(rows, where);
      BOOST_TEST(Found(*group, where.predicate) == expected, boost::test_tools::per_element());
      uint64_t sum = 0;
      for (const std::string& key : expected) {
        sum += static_cast<uint64_t>(std::get<int64_t>(*rows[key][0][0][0]));
      }
      GroupByResult groups;
      RequireOk(group->GroupBy(where.predicate, {Aggregate::Count(), Aggregate::Sum("age")}, {},
                               &groups));
      BOOST_TEST(groups.values[0].numbers<uint64_t>()[0] == expected.size());
      BOOST_TEST(groups.values[1].is_null(0) == expected.empty());
      BOOST_TEST(groups.values[1].numbers<uint64_t>()[0] == sum);
    }
  }
}

// Each write has the same number in both indexes: no group may see it in only one of them.
BOOST_AUTO_TEST_CASE(indexes_are_of_one_state_while_others_write) {
  TemporaryDirectory directory;
  auto db = OpenPeople(directory / "db");
  std::atomic<bool> done{false};
  std::thread writer([&] {
    for (uint32_t i = 0; !done; ++i) {
      const std::string number = absl::StrFormat("%d", i % 1000);
      db->Put({}, absl::StrCat("k", i % 7), number + "|" + number).PermitUncheckedError();
    }
  });
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(500);
  size_t groups = 0;
  while (std::chrono::steady_clock::now() < end || groups < 3) {
    const auto group = RequireOk(db->PinGroup({"age", "city"}));
    ++groups;
    WhereResult matches;
    RequireOk(group->Find(Predicate("age", KeyQuery::Everything()), {}, &matches));
    for (const auto& member : group->members()) {
      BOOST_TEST(member.index->sequence() == group->members()[0].index->sequence());
    }
    BOOST_TEST(matches.row_ids.size() ==
               RequireOk(group->Count(Predicate("city", KeyQuery::Everything()))));
    std::vector<GlobalRowId> in_member(matches.row_ids.size());
    RequireOk(group->RowsOf(1, matches, absl::MakeSpan(in_member)));
    for (const GlobalRowId row : in_member) BOOST_TEST(row != kNoGlobalRow);
  }
  done = true;
  writer.join();
}

BOOST_AUTO_TEST_CASE(errors) {
  TemporaryDirectory directory;
  auto db = OpenPeople(directory / "db");
  BOOST_TEST(absl::IsNotFound(db->PinGroup({"age", "town"}).status()));
  BOOST_TEST(absl::IsInvalidArgument(db->PinGroup({}).status()));
  BOOST_TEST(absl::IsInvalidArgument(db->PinGroup({"age", "age"}).status()));
  const auto live = RequireOk(db->Index("age"));
  BOOST_TEST(absl::IsFailedPrecondition(IndexGroup::Create({{live}}).status()));
  RequireOk(db->Put({}, "a", "1|Oslo"));
  const auto group = RequireOk(db->PinGroup({"age", "city"}));
  RequireOk(db->DropIndex("city"));
  BOOST_TEST(absl::IsNotFound(db->PinGroup({"age", "city"}).status()));
  RequireOk(db->Close());
  BOOST_TEST(absl::IsFailedPrecondition(db->PinGroup({"age"}).status()));
  db.reset();
  BOOST_TEST(Found(*group, Predicate("city", "Oslo")) == std::vector<std::string>{"a"});
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
