// Every allocation fails in turn while a sharded index is built, opened and queried.
#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cairn/aggregate.h"
#include "cairn/column.h"
#include "cairn/index_group.h"
#include "cairn/index_spec.h"
#include "cairn/options.h"
#include "cairn/query.h"
#include "cairn/secondary_index.h"
#include "cairn/sharding.h"
#include "test/allocation/fail_each_allocation.h"
#include "test/allocation/failing_new.h"
#include "test/engine/test_database.h"
#include "test/require_ok.h"

namespace cairn {
namespace {

OpenOptions OpeningShards() {
  OpenOptions options;
  options.calibration = Calibration::kNone;
  options.threads = 2;
  return options;
}

// Every row's primary key in index order, and the number of shards.
std::string Content(const std::string& directory) {
  const auto index = RequireOk(SecondaryIndex::Open(directory, OpeningShards()));
  FindResult matches;
  RequireOk(index->Scan(RangeBatch::Everything(PhysicalType::kBytes), &matches));
  StringList primary_keys;
  RequireOk(index->PrimaryKeys(matches, &primary_keys));
  std::string text = std::to_string(RequireOk(index->Stats()).shards.size()) + ": ";
  for (const std::string_view key : primary_keys) text.append(key) += ';';
  return text;
}

struct ShardsFixture {
  TestDatabase db;
  const IndexSpec spec = RequireOk(IndexSpec::Parse("value:text"));
  const std::string directory = db.Beside("index");
  std::unique_ptr<SnapshotSource> source;

  ShardsFixture() {
    for (int i = 0; i < 200; ++i) {
      db.Put("row" + std::to_string(i), "a text longer than fits inline " + std::to_string(i % 30));
    }
    source = db.Source();
  }
  absl::Status Build(uint32_t shards) {
    ShardedBuildOptions options;
    options.shards = shards;
    options.segments = 2;
    options.build.threads = 2;
    return BuildSharded(*source, spec, directory, options).status();
  }
};

BOOST_FIXTURE_TEST_SUITE(shard_allocation_test, ShardsFixture)

BOOST_AUTO_TEST_CASE(a_build_leaves_one_generation_or_the_other) {
  RequireOk(Build(2));
  const std::string before = Content(directory);
  RequireOk(Build(3));
  const std::string after = Content(directory);
  for (const auto how : {FailingNew::How::kOnce, FailingNew::How::kOnward}) {
    absl::Status status;
    FailEachAllocation(
        how, 80, [&] { RequireOk(Build(2)); }, [&] { return status = Build(3); },
        [&] { BOOST_TEST(Content(directory) == (status.ok() ? after : before)); });
  }
}

BOOST_AUTO_TEST_CASE(opening_changes_nothing) {
  RequireOk(Build(3));
  const std::string expected = Content(directory);
  for (const auto how : {FailingNew::How::kOnce, FailingNew::How::kOnward}) {
    FailEachAllocation(
        how, 100, [] {}, [&] { return SecondaryIndex::Open(directory, OpeningShards()).status(); },
        [&] { BOOST_TEST(Content(directory) == expected); });
  }
}

BOOST_AUTO_TEST_CASE(queries_answer_right_or_not_at_all) {
  RequireOk(Build(4));
  const auto index = RequireOk(SecondaryIndex::Open(directory, OpeningShards()));
  const RangeBatch all = RangeBatch::Everything(PhysicalType::kBytes);
  QueryOptions page;
  page.limit = 70;
  page.with_keys = true;
  FindResult matches, everything;
  RequireOk(index->Scan(all, &everything, page));
  const KeyBatch keys = everything.keys.Batch();
  const auto found = std::make_unique<bool[]>(keys.size());
  std::vector<uint64_t> counts(keys.size());
  std::vector<GlobalRowId> rows(keys.size());
  StringList primary_keys;
  FetchResult fetched;
  std::vector<std::string> differences;
  for (const auto how : {FailingNew::How::kOnce, FailingNew::How::kOnward}) {
    const auto each = [&](const std::function<absl::Status()>& query) {
      FailEachAllocation(
          how, 60,
          [&] {
            matches = FindResult();
            fetched = FetchResult();
            primary_keys = StringList();
          },
          query, [] {});
    };
    each([&] { return index->Find(keys, &matches); });
    each([&] { return index->FindFirst(keys, absl::MakeSpan(rows)); });
    each([&] { return index->Contains(keys, absl::MakeSpan(found.get(), keys.size())); });
    each([&] { return index->Count(RangeBatch::Equal(keys), absl::MakeSpan(counts)); });
    each([&] { return index->Scan(all, &matches, page); });
    each([&] { return index->PrimaryKeys(everything, &primary_keys); });
    each([&] { return index->Fetch(*source, all, {}, &fetched); });
    each([&] { return index->VerifyAgainst(*source, 3, &differences); });
    each([&] { return index->Verify(); });
    each([&] { return index->Stats().status(); });
  }
  BOOST_TEST(differences.empty());
  RequireOk(index->Scan(all, &matches, page));
  BOOST_CHECK(matches.row_ids == everything.row_ids);
}

// An index sharded by key range, and one over two sources of the same rows.
BOOST_AUTO_TEST_CASE(aggregates_and_predicates_answer_right_or_not_at_all) {
  const std::string with = ",include(text=value:text)";
  std::vector<std::shared_ptr<SecondaryIndex>> opened;
  for (const std::string name : {"a", "b"}) {
    ShardedBuildOptions options;
    options.shards = 3;
    options.build.threads = 1;
    const IndexSpec in_shards = RequireOk(IndexSpec::Parse(name + " = value:text" + with));
    RequireOk(BuildSharded(*source, in_shards, db.Beside(name), options).status());
    opened.push_back(RequireOk(SecondaryIndex::Open(db.Beside(name), OpeningShards())));
  }
  TestDatabase other;
  for (int i = 0; i < 50; ++i) other.Put("row" + std::to_string(i), "a text of another source");
  const auto of_other = other.Source();
  for (const std::string name : {"c", "d"}) {
    const std::vector<std::string> names = {"shard-0.000000000000000a", "shard-1.000000000000000b"};
    std::filesystem::create_directory(db.Beside(name));
    const IndexSpec by_source = RequireOk(IndexSpec::Parse(name + " = value:text" + with));
    for (size_t s = 0; s < 2; ++s) {
      RequireOk(SecondaryIndex::Build(s == 0 ? *source : *of_other, by_source,
                                      db.Beside(name) + "/" + names[s])
                    .status());
    }
    RequireOk(PublishSources(names, db.Beside(name), {}));
    opened.push_back(RequireOk(SecondaryIndex::Open(db.Beside(name), OpeningShards())));
  }
  const RangeBatch all = RangeBatch::Everything(PhysicalType::kBytes);
  const std::vector<Aggregate> aggregates = {Aggregate::Count(), Aggregate::CountDistinct(),
                                             Aggregate::Max("text")};
  for (const size_t first : {0, 2}) {
    const Predicate where = RequireOk(Predicate::Parse(
        first == 0 ? "a >= 'a text' AND NOT b LIKE 'a text longer than fits inline 2%'"
                   : "c >= 'a text' AND NOT d LIKE 'a text longer than fits inline 2%'"));
    WhereOptions options;
    options.order_by = first == 0 ? "b" : "d";
    options.limit = 20;
    options.columns = {first == 0 ? "a.text" : "c.text"};
    std::vector<ColumnValues> values;
    AggregateGroupsResult groups;
    WhereResult matches;
    std::vector<IndexGroup::Member> members;
    const std::string path = db.Beside(first == 0 ? "a" : "c");
    for (const auto how : {FailingNew::How::kOnce, FailingNew::How::kOnward}) {
      const auto each = [&](const std::function<absl::Status()>& query,
                            const std::function<void()>& check) {
        FailEachAllocation(
            how, 60,
            [&] {
              values = {};
              groups = {};
              matches = {};
              members = {{opened[first]}, {opened[first + 1]}};
            },
            query, check);
      };
      absl::Status status;
      const SecondaryIndex& index = *opened[first];
      // A newly opened index has no state that earlier queries cached.
      each(
          [&] {
            const auto anew = SecondaryIndex::Open(path, OpeningShards());
            return status = !anew.ok() ? anew.status()
                                       : (*anew)->AggregateRanges(all, aggregates, &values);
          },
          [&] {
            if (status.ok())
              BOOST_CHECK(values[1].value(0) == DataValue(uint64_t{first == 0 ? 30u : 31u}));
          });
      each([&] { return status = index.AggregateGroups(all, 1, aggregates, {}, &groups); },
           [&] {
             if (status.ok()) BOOST_TEST(groups.offsets[1] == (first == 0 ? 30u : 31u));
           });
      each(
          [&]() -> absl::Status {
            const auto group = IndexGroup::Create(std::move(members));
            status = !group.ok() ? group.status() : (*group)->Find(where, options, &matches);
            return status;
          },
          [&] {
            if (status.ok()) BOOST_TEST(matches.row_ids.size() == 20u);
          });
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace cairn
