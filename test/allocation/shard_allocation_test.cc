// Every allocation fails in turn while an index in shards is built, opened and asked.
#include <boost/test/unit_test.hpp>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "cairn/build.h"
#include "cairn/fetched_rows.h"
#include "cairn/index_spec.h"
#include "cairn/index_stats.h"
#include "cairn/open_options.h"
#include "cairn/query.h"
#include "cairn/secondary_index.h"
#include "cairn/string_list.h"
#include "test/allocation/fail_each_allocation.h"
#include "test/allocation/failing_new.h"
#include "test/engine/test_database.h"
#include "test/require_ok.h"

namespace cairn {
namespace {

OpenOptions Opening() {
  OpenOptions options;
  options.calibration = Calibration::kNone;
  options.threads = 2;
  return options;
}

// Every row's primary key in the index's order, and how many shards there are.
std::string Content(const std::string& directory) {
  const auto index = RequireOk(SecondaryIndex::Open(directory, Opening()));
  Matches matches;
  RequireOk(index->Scan(RangeBatch::Everything(KeyKind::kBytes), &matches));
  PrimaryKeyColumn primary_keys;
  RequireOk(index->PrimaryKeysOf(matches, &primary_keys));
  std::string text = std::to_string(RequireOk(index->Stats()).shards.size()) + ": ";
  for (const std::string_view key : primary_keys) text.append(key) += ';';
  return text;
}

struct Fixture {
  TestDatabase db;
  const IndexSpec spec = RequireOk(IndexSpec::Parse("value:text"));
  const std::string directory = db.Beside("index");
  std::unique_ptr<SnapshotSource> source;

  Fixture() {
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

BOOST_FIXTURE_TEST_SUITE(shard_allocation_test, Fixture)

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
        how, 100, [] {}, [&] { return SecondaryIndex::Open(directory, Opening()).status(); },
        [&] { BOOST_TEST(Content(directory) == expected); });
  }
}

BOOST_AUTO_TEST_CASE(queries_answer_right_or_not_at_all) {
  RequireOk(Build(4));
  const auto index = RequireOk(SecondaryIndex::Open(directory, Opening()));
  const RangeBatch all = RangeBatch::Everything(KeyKind::kBytes);
  QueryOptions page;
  page.limit = 70;
  page.with_keys = true;
  Matches matches, everything;
  RequireOk(index->Scan(all, &everything, page));
  const KeyBatch keys = everything.keys.Batch();
  const auto found = std::make_unique<bool[]>(keys.size());
  std::vector<uint64_t> counts(keys.size());
  std::vector<WideRowId> rows(keys.size());
  PrimaryKeyColumn primary_keys;
  FetchedRows fetched;
  std::vector<std::string> differences;
  for (const auto how : {FailingNew::How::kOnce, FailingNew::How::kOnward}) {
    const auto each = [&](const std::function<absl::Status()>& query) {
      FailEachAllocation(
          how, 60,
          [&] {
            matches = Matches();
            fetched = FetchedRows();
            primary_keys = PrimaryKeyColumn();
          },
          query, [] {});
    };
    each([&] { return index->Find(keys, &matches); });
    each([&] { return index->FindFirstWide(keys, absl::MakeSpan(rows)); });
    each([&] { return index->Contains(keys, absl::MakeSpan(found.get(), keys.size())); });
    each([&] { return index->Count(RangeBatch::Equal(keys), absl::MakeSpan(counts)); });
    each([&] { return index->Scan(all, &matches, page); });
    each([&] { return index->PrimaryKeysOf(everything, &primary_keys); });
    each([&] { return index->Fetch(*source, all, {}, &fetched); });
    each([&] { return index->VerifyAgainst(*source, 3, &differences); });
    each([&] { return index->Verify(); });
    each([&] { return index->Stats().status(); });
  }
  BOOST_TEST(differences.empty());
  RequireOk(index->Scan(all, &matches, page));
  BOOST_CHECK(matches.row_ids == everything.row_ids);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace cairn
