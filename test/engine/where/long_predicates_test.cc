// Predicates of very many comparisons, and queries that are cancelled.
#include <atomic>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cairn/index_group.h"
#include "cairn/join.h"
#include "cairn/secondary_index.h"
#include "test/engine/serve/built_index.h"
#include "test/engine/test_database.h"
#include "test/sanitizer.h"

namespace cairn {
BOOST_AUTO_TEST_SUITE(long_predicates_test)
namespace {

constexpr int kRows = 500;

// Rows 0 … 499, indexed by their number, by its last digits, and by arrays of these.
struct Numbers {
  Numbers() {
    for (int i = 0; i < kRows; ++i) {
      db.Put(absl::StrCat("r", i),
             absl::StrCat("{\"n\":", i, ",\"d\":", i % 100, ",\"a\":[", i, ",", i + 1, "]}"));
    }
    const char* const specs[] = {"n = value.json('/n'):u32,include(v=value.json('/d'):u32)",
                                 "d = value.json('/d'):u32,nulls=first", "a = value.json('/a'):u32",
                                 "c = value.json('/d'):u32,value.json('/n'):u32"};
    for (size_t i = 0; i < std::size(specs); ++i) {
      indexes.push_back(RequireOk(SecondaryIndex::Build(*db.Source(), Spec(specs[i]),
                                                        db.Beside(absl::StrCat("index", i)))));
      members.push_back({indexes.back()});
    }
    group = RequireOk(IndexGroup::Create(members));
  }

  TestDatabase db;
  std::vector<std::shared_ptr<const SecondaryIndex>> indexes;
  std::vector<IndexGroup::Member> members;
  std::shared_ptr<const IndexGroup> group;
};

// "n=0 OR n=1 OR …", with numbers 0, 1, …
std::string Repeated(int times, const char* before, const char* after, const char* between) {
  std::string text;
  for (int i = 0; i < times; ++i) absl::StrAppend(&text, i == 0 ? "" : between, before, i, after);
  return text;
}

// With quadratic algorithms, these would take minutes.
BOOST_FIXTURE_TEST_CASE(many_comparisons_take_time_for_each, Numbers) {
  const int many = kUnderAsan || kUnderTsan ? 10000 : 100000;
  const int some = many / 20;  // comparisons that are looked up one by one
  const auto begin = std::chrono::steady_clock::now();
  const auto count = [&](const std::string& text) {
    const Predicate where = RequireOk(Predicate::Parse(text));
    const WherePlan plan = RequireOk(group->Explain(where));
    BOOST_TEST(plan.ToString().size() < 100u * static_cast<unsigned>(many));
    return RequireOk(group->Count(where));
  };
  BOOST_TEST(count(Repeated(many, "n=", "", " OR ")) == 500u);
  BOOST_TEST(count("NOT (" + Repeated(some, "n>=7 AND n=", "", " OR ") + ")") == 7u);
  BOOST_TEST(count(Repeated(many, "n<>", "", " AND ")) == 0u);
  BOOST_TEST(count(Repeated(some, "n<>1000", "", " AND ")) == 500u);
  BOOST_TEST(count(Repeated(many, "a=", "", " OR ")) == 500u);
  BOOST_TEST(count(Repeated(many, "a<>", "", " AND ")) == 0u);
  BOOST_TEST(count(Repeated(some, "NOT d=1", "", " OR ")) == 500u);
  BOOST_TEST(count(Repeated(some, "(n=", " AND d>=50)", " OR ")) == 250u);
  BOOST_TEST(count(Repeated(many, "c>=(", ",0)", " OR ")) == 500u);
  const auto took = std::chrono::steady_clock::now() - begin;
  if (!kUnderAsan && !kUnderTsan) BOOST_TEST((took < std::chrono::seconds(20)));
}

BOOST_FIXTURE_TEST_CASE(plans_list_some_of_many_comparisons, Numbers) {
  const Predicate where = RequireOk(Predicate::Parse(Repeated(100, "n=", "", " OR ")));
  const WherePlan plan = RequireOk(group->Explain(where));
  BOOST_REQUIRE(plan.comparisons.size() == 1u);
  BOOST_TEST(
      plan.comparisons[0].text ==
      "n = 0 OR n = 1 OR n = 2 OR n = 3 OR n = 4 OR n = 5 OR n = 6 OR n = 7 OR ... (92 more)");
  BOOST_TEST(plan.comparisons[0].rows == 100u);
}

BOOST_FIXTURE_TEST_CASE(queries_are_cancelled, Numbers) {
  const std::atomic<bool> cancelled{true};
  WhereResult matches;
  for (const char* const text : {"n >= 3", "n >= 3 AND d < 7", "a < 90 OR NOT d = 5", "TRUE"}) {
    for (const WhereStrategy strategy :
         {WhereStrategy::kAuto, WhereStrategy::kGather, WhereStrategy::kBitmap}) {
      const Predicate where = RequireOk(Predicate::Parse(text));
      WhereOptions options;
      options.strategy = strategy;
      options.cancelled = &cancelled;
      BOOST_TEST(absl::IsCancelled(group->Find(where, options, &matches)));
      options.order_by = "a";
      BOOST_TEST(absl::IsCancelled(group->Find(where, options, &matches)));
      BOOST_TEST(absl::IsCancelled(group->Count(where, options).status()));
    }
  }
  GroupByOptions rows;
  rows.group_by = {"d"};
  rows.cancelled = &cancelled;
  GroupByResult row_groups;
  BOOST_TEST(absl::IsCancelled(
      group->GroupBy(Predicate::All({}), {Aggregate::Sum("v")}, rows, &row_groups)));
  QueryOptions options;
  options.cancelled = &cancelled;
  AggregateGroupsResult groups;
  BOOST_TEST(absl::IsCancelled(indexes[3]->AggregateGroups(
      RangeBatch::Everything(indexes[3]->kind()), 1, {Aggregate::Count()}, options, &groups)));
  JoinOptions join;
  join.cancelled = &cancelled;
  JoinResult joined;
  BOOST_TEST(absl::IsCancelled(Join(*indexes[0], *indexes[1], join, &joined)));
  BOOST_TEST(absl::IsCancelled(CountJoin(*indexes[0], *indexes[1], join).status()));
}

// A thread that queries until it is cancelled.
BOOST_FIXTURE_TEST_CASE(a_query_is_cancelled_while_it_runs, Numbers) {
  const Predicate where = RequireOk(Predicate::Parse(Repeated(20000, "a <> ", "", " AND ")));
  std::atomic<bool> cancelled{false}, asks{false};
  absl::Status status;
  std::thread asking([&] {
    WhereOptions options;
    options.cancelled = &cancelled;
    while (status.ok()) {
      asks = true;
      status = group->Count(where, options).status();
    }
  });
  while (!asks) std::this_thread::yield();
  cancelled = true;
  asking.join();
  BOOST_TEST(absl::IsCancelled(status), status.ToString());
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
