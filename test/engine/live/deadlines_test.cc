// Cancellation and deadlines of every kind of query.
#include <atomic>
#include <boost/test/unit_test.hpp>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "cairn/extractor.h"
#include "cairn/index_group.h"
#include "cairn/index_iterator.h"
#include "cairn/indexed_db.h"
#include "cairn/join.h"
#include "cairn/lookup.h"
#include "cairn/secondary_index.h"
#include "cairn/sharding.h"
#include "index/machine/stop_flag.h"
#include "test/engine/indexed_database.h"
#include "test/sanitizer.h"

namespace cairn {
BOOST_AUTO_TEST_SUITE(deadlines_test)
namespace {

// A query that returns after its deadline returns within this time, on a machine of any speed.
constexpr absl::Duration kGenerous = absl::Seconds(20);

struct Question {
  std::string name;
  std::function<absl::Status(const StopCondition&)> ask;
};

absl::Status Walk(IndexIterator iterator) {
  for (iterator.SeekToFirst(); iterator.Valid(); iterator.Next()) {
  }
  return iterator.status();
}

// Every query of an index with the included column "v".
std::vector<Question> QuestionsOf(const SecondaryIndex& index, const SnapshotSource& source) {
  const auto query = [](const StopCondition& stop) { return stop.As<QueryOptions>(); };
  const auto lookup = [](const StopCondition& stop) { return stop.As<LookupOptions>(); };
  static const std::vector<uint32_t> keys = {1, 2, 3, 1000};
  const auto everything = [&index] { return RangeBatch::Everything(index.kind()); };
  return {
      {"FindFirst",
       [&, query](const StopCondition& stop) {
         std::vector<GlobalRowId> rows(keys.size());
         return index.FindFirst(keys, absl::MakeSpan(rows), query(stop));
       }},
      {"Contains",
       [&, query](const StopCondition& stop) {
         bool found[4];
         return index.BatchIndex::Contains(keys, absl::MakeSpan(found), query(stop));
       }},
      {"Find",
       [&, query](const StopCondition& stop) {
         FindResult matches;
         return index.Find(keys, &matches, query(stop));
       }},
      {"Count",
       [&, query, everything](const StopCondition& stop) {
         uint64_t count = 0;
         return index.BatchIndex::Count(everything(), absl::MakeSpan(&count, 1), query(stop));
       }},
      {"Scan",
       [&, query, everything](const StopCondition& stop) {
         FindResult matches;
         QueryOptions options = query(stop);
         options.columns = {"v"};
         return index.Scan(everything(), &matches, options);
       }},
      {"Fetch",
       [&, query, everything](const StopCondition& stop) {
         FetchResult rows;
         return index.Fetch(source, everything(), query(stop), &rows);
       }},
      {"Lookup",
       [&, lookup](const StopCondition& stop) {
         return index.Lookup(KeyQuery::AtLeast(2), lookup(stop)).status();
       }},
      {"LookupRows",
       [&, lookup](const StopCondition& stop) {
         return index.LookupRows(source, KeyQuery::AtLeast(2), lookup(stop)).status();
       }},
      {"Count of a KeyQuery",
       [&, lookup](const StopCondition& stop) {
         return index.Count(KeyQuery::AtLeast(2), lookup(stop)).status();
       }},
      {"Contains of a KeyQuery",
       [&, lookup](const StopCondition& stop) {
         return index.Contains(KeyQuery({1, 2}), lookup(stop)).status();
       }},
      {"AggregateRanges",
       [&, query, everything](const StopCondition& stop) {
         std::vector<ColumnValues> values;
         return index.AggregateRanges(everything(), {Aggregate::Count(), Aggregate::Sum("v")},
                                      &values, query(stop));
       }},
      {"AggregateGroups",
       [&, query, everything](const StopCondition& stop) {
         AggregateGroupsResult groups;
         return index.AggregateGroups(everything(), 1, {Aggregate::Count()}, query(stop), &groups);
       }},
      {"Pin", [&, query](const StopCondition& stop) { return index.Pin(query(stop)).status(); }},
      {"NewIterator",
       [&](const StopCondition& stop) {
         return Walk(index.NewIterator(stop.As<IteratorOptions>()));
       }},
      {"Verify", [&, query](const StopCondition& stop) { return index.Verify(query(stop)); }},
      {"VerifyAgainst",
       [&, query](const StopCondition& stop) {
         std::vector<std::string> differences;
         absl::Status s = index.VerifyAgainst(source, 5, &differences, query(stop));
         BOOST_TEST(differences.empty());
         return s;
       }},
      {"Join",
       [&](const StopCondition& stop) {
         JoinResult pairs;
         return Join(index, index, stop.As<JoinOptions>(), &pairs);
       }},
      {"CountJoin",
       [&](const StopCondition& stop) {
         return CountJoin(index, index, stop.As<JoinOptions>()).status();
       }},
      {"JoinKeys",
       [&](const StopCondition& stop) {
         JoinResult pairs;
         return JoinKeys(keys, index, stop.As<JoinOptions>(), &pairs);
       }},
  };
}

std::vector<Question> QuestionsOf(const IndexGroup& group) {
  const Predicate where("n", KeyQuery::AtLeast(2));
  return {{"IndexGroup::Count",
           [&group, where](const StopCondition& stop) {
             return group.Count(where, stop.As<WhereOptions>()).status();
           }},
          {"IndexGroup::Find",
           [&group, where](const StopCondition& stop) {
             WhereResult matches;
             return group.Find(where, stop.As<WhereOptions>(), &matches);
           }},
          {"IndexGroup::GroupBy", [&group, where](const StopCondition& stop) {
             GroupByOptions options = stop.As<GroupByOptions>();
             options.group_by = {"v"};
             GroupByResult groups;
             return group.GroupBy(where, {Aggregate::Count()}, options, &groups);
           }}};
}

std::vector<Question> QuestionsOf(const IndexedDB& db) {
  return {
      {"IndexedDB::Lookup",
       [&db](const StopCondition& stop) {
         return db.Lookup("n", 2, stop.As<LookupOptions>()).status();
       }},
      {"IndexedDB::LookupRows",
       [&db](const StopCondition& stop) {
         return db.LookupRows("n", KeyQuery::AtLeast(2), stop.As<LookupOptions>()).status();
       }},
      {"IndexedDB::Count",
       [&db](const StopCondition& stop) {
         return db.Count("n", 2, stop.As<LookupOptions>()).status();
       }},
      {"IndexedDB::Contains",
       [&db](const StopCondition& stop) {
         return db.Contains("n", 2, stop.As<LookupOptions>()).status();
       }},
      {"IndexedDB::NewIterator",
       [&db](const StopCondition& stop) {
         return Walk(db.NewIterator("n", stop.As<IteratorOptions>()));
       }},
      {"IndexedDB::Pin",
       [&db](const StopCondition& stop) { return db.Pin("n", stop.As<LookupOptions>()).status(); }},
      {"IndexedDB::PinGroup",
       [&db](const StopCondition& stop) {
         return db.PinGroup({"n"}, stop.As<LookupOptions>()).status();
       }},
      {"IndexedDB::Index", [&db](const StopCondition& stop) {
         uint64_t count = 0;
         return RequireOk(db.Index("n"))
             ->BatchIndex::Count(RangeBatch::Everything(PhysicalType::kU32),
                                 absl::MakeSpan(&count, 1), stop.As<QueryOptions>());
       }}};
}

void CheckStops(const std::vector<Question>& questions) {
  const std::atomic<bool> cancelled{true}, not_cancelled{false};
  for (const Question& question : questions) {
    BOOST_TEST_CONTEXT(question.name) {
      RequireOk(question.ask({}));
      RequireOk(question.ask({&not_cancelled, absl::Now() + absl::Hours(1)}));
      const absl::Time begin = absl::Now();
      BOOST_TEST(absl::IsDeadlineExceeded(question.ask({nullptr, begin - absl::Seconds(1)})));
      BOOST_TEST(absl::IsDeadlineExceeded(question.ask({nullptr, absl::InfinitePast()})));
      BOOST_TEST(absl::IsCancelled(question.ask({&cancelled, absl::InfiniteFuture()})));
      BOOST_TEST((absl::Now() - begin < kGenerous));
    }
  }
}

constexpr char kSpec[] = "n = value.field(',', 0):u32, include(v = value.field(',', 1):u32)";

BOOST_AUTO_TEST_CASE(every_query_is_refused_after_its_deadline) {
  IndexedDatabase db;
  db.Create(kSpec);
  for (int i = 0; i < 100; ++i) db.Put(absl::StrCat("r", i), absl::StrCat(i % 7, ",", i));
  const auto source = RequireOk(SnapshotSource::FromDb(db->GetBaseDB()));
  CheckStops(QuestionsOf(*db.get()));
  CheckStops(QuestionsOf(*RequireOk(db->Index("n")), *source));
  CheckStops(QuestionsOf(*RequireOk(db->Pin("n")), *source));
  CheckStops(QuestionsOf(*RequireOk(db->PinGroup({"n"}))));

  ShardedBuildOptions sharded;
  sharded.shards = 3;
  RequireOk(BuildSharded(*source, SpecOf(kSpec), db.Beside("shards"), sharded).status());
  const auto shards = RequireOk(SecondaryIndex::Open(db.Beside("shards")));
  CheckStops(QuestionsOf(*shards, *source));
  const auto group = RequireOk(IndexGroup::Create({{std::shared_ptr<const SecondaryIndex>(
      RequireOk(SecondaryIndex::Open(db.Beside("shards"))))}}));
  CheckStops(QuestionsOf(*group));
}

// Batches and results of several slices, which are processed in pieces if a query may stop.
BOOST_AUTO_TEST_CASE(a_query_that_ends_in_time_has_the_same_results) {
  IndexedDatabase db;
  constexpr int kRows = 80, kKeys = 5000;  // more entries than RangeMerge merges at a time
  const auto row = [](int i) {
    std::string text = "[";
    for (int k = 0; k < kKeys; ++k) absl::StrAppend(&text, k == 0 ? "" : ",", i + k * kRows);
    return absl::StrCat(R"({"k":)", text, R"(],"v":)", i, "}");
  };
  for (int i = 0; i < kRows; ++i) db.Put(absl::StrCat("r", 100 + i), row(i));
  db.Create("n = value.json('/k'):u32, include(v = value.json('/v'):u32)");
  const std::atomic<bool> not_cancelled{false};
  const StopCondition stop{&not_cancelled, absl::Now() + absl::Hours(1)};
  std::vector<uint32_t> keys(100'000);
  for (size_t i = 0; i < keys.size(); ++i) keys[i] = static_cast<uint32_t>(i * 31 % 500'000);

  for (const bool changed : {false, true}) {
    if (changed) db.Put("r999", row(7));  // equal keys, in the delta
    const auto index = RequireOk(db->Pin("n"));
    for (const Order order : {Order::kAscending, Order::kDescending}) {
      QueryOptions plain;
      plain.order = order;
      plain.with_keys = true;
      plain.columns = {"v"};
      QueryOptions stops = plain;
      stops.cancelled = stop.cancelled;
      stops.deadline = stop.deadline;
      FindResult expected, found;
      const RangeBatch everything = RangeBatch::Everything(index->kind());
      RequireOk(index->Scan(everything, &expected, plain));
      RequireOk(index->Scan(everything, &found, stops));
      BOOST_TEST(expected.row_ids.size() == static_cast<size_t>(kKeys * (kRows + changed)));
      BOOST_TEST((expected.row_ids == found.row_ids));
      BOOST_TEST((expected.keys.u32() == found.keys.u32()));
      BOOST_TEST((expected.columns[0].size() == found.columns[0].size()));
      for (size_t i = 0; i < found.columns[0].size(); i += 997) {
        BOOST_TEST((expected.columns[0].value(i) == found.columns[0].value(i)));
      }
    }
    FindResult expected, found;
    RequireOk(index->Find(keys, &expected));
    RequireOk(index->Find(keys, &found, stop.As<QueryOptions>()));
    BOOST_TEST((expected.offsets == found.offsets));
    BOOST_TEST((expected.row_ids == found.row_ids));
    std::vector<GlobalRowId> expected_rows(keys.size()), found_rows(keys.size());
    RequireOk(index->FindFirst(keys, absl::MakeSpan(expected_rows)));
    RequireOk(index->FindFirst(keys, absl::MakeSpan(found_rows), stop.As<QueryOptions>()));
    BOOST_TEST((expected_rows == found_rows));

    const auto expected_keys = RequireOk(db->Lookup("n", KeyQuery::LessThan(100'000)));
    const auto found_keys =
        RequireOk(db->Lookup("n", KeyQuery::LessThan(100'000), stop.As<LookupOptions>()));
    BOOST_TEST(found_keys.size() == static_cast<size_t>(kRows + changed));
    BOOST_TEST((expected_keys.all() == found_keys.all()));
  }
}

BOOST_AUTO_TEST_CASE(a_long_query_ends_soon_after_its_deadline) {
  IndexedDatabase db;
  for (int i = 0; i < 100; ++i) db.Put(absl::StrCat("r", i), absl::StrCat(i, ",0"));
  db.Create(kSpec);
  const auto index = RequireOk(db->Pin("n"));
  // Takes some 100 ms, or much longer with a sanitizer.
  const std::vector<uint32_t> keys(size_t{1} << (kUnderAsan || kUnderTsan ? 21 : 24), 42);
  const std::unique_ptr<bool[]> found(new bool[keys.size()]);
  QueryOptions options;
  options.deadline = absl::Now() + absl::Milliseconds(5);
  BOOST_TEST(absl::IsDeadlineExceeded(
      index->BatchIndex::Contains(keys, absl::MakeSpan(found.get(), keys.size()), options)));
  BOOST_TEST((absl::Now() - options.deadline < kGenerous));

  std::atomic<bool> cancelled{false};
  options.deadline = absl::InfiniteFuture();
  options.cancelled = &cancelled;
  std::thread cancels([&] { cancelled = true; });
  absl::Status status;
  while (status.ok()) {
    status = index->BatchIndex::Contains(keys, absl::MakeSpan(found.get(), keys.size()), options);
  }
  cancels.join();
  BOOST_TEST(absl::IsCancelled(status));
}

// An extractor that waits while its gate is closed.
class Gate final : public KeyExtractor {
 public:
  absl::Status Extract(const RowView& row, KeySink* sink) const override {
    std::unique_lock lock(mutex_);
    ++waiting_;
    changed_.notify_all();
    changed_.wait(lock, [&] { return open_; });
    --waiting_;
    sink->Add(static_cast<uint64_t>(row.value.size()));
    return absl::OkStatus();
  }
  void SetOpen(bool open) {
    const std::lock_guard lock(mutex_);
    open_ = open;
    changed_.notify_all();
  }
  void AwaitCaller() const {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return waiting_ > 0; });
  }

 private:
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  mutable int waiting_ = 0;
  bool open_ = true;
};

BOOST_AUTO_TEST_CASE(a_deadline_limits_the_wait_for_the_log) {
  const auto gate = std::make_shared<Gate>();
  RequireOk(RegisterExtractor("deadlines_test", gate));
  IndexedDatabase db;
  db.Create("n = custom('deadlines_test'):u32");
  db.Put("r0", "12");
  RequireOk(db->Lookup("n", 2).status());

  gate->SetOpen(false);
  db.Put("r1", "12");
  absl::Status waited;
  std::thread waits([&] { waited = db->Lookup("n", 2).status(); });
  gate->AwaitCaller();
  for (const Question& question : QuestionsOf(*db.get())) {
    BOOST_TEST_CONTEXT(question.name) {
      const absl::Time deadline = absl::Now() + absl::Milliseconds(5);
      BOOST_TEST(absl::IsDeadlineExceeded(question.ask({nullptr, deadline})));
      const absl::Time end = absl::Now();
      BOOST_TEST((end >= deadline && end - deadline < kGenerous));
      std::atomic<bool> cancelled{false};
      std::thread cancels([&] { cancelled = true; });
      BOOST_TEST(absl::IsCancelled(question.ask({&cancelled, absl::InfiniteFuture()})));
      cancels.join();
    }
  }
  gate->SetOpen(true);
  waits.join();
  RequireOk(waited);
  LookupOptions in_time;
  in_time.deadline = absl::Now() + absl::Hours(1);
  BOOST_TEST(RequireOk(db->Lookup("n", 2, in_time)).size() == 2u);
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
