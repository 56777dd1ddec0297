// An index sharded by source, compared with the entries of all databases together.
#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <string>
#include <tuple>
#include <vector>

#include "cairn/options.h"
#include "cairn/sharding.h"
#include "test/engine/shards/sharded_pair.h"
#include "test/sanitizer.h"
#include "test/test_random.h"

namespace cairn {
BOOST_AUTO_TEST_SUITE(shard_source_test)
namespace {

// key, source, primary key
using SourceEntry = std::tuple<std::string, uint32_t, std::string>;

class Sources {
 public:
  explicit Sources(size_t count) : databases_(count) { std::filesystem::create_directory(path()); }

  TestDatabase& database(size_t i) { return databases_[i]; }
  std::string path() const { return databases_[0].Beside("sharded"); }
  void Put(size_t source, const std::string& row, const std::string& value) {
    databases_[source].Put(row, value);
    entries_.emplace_back(value, static_cast<uint32_t>(source), row);
  }
  std::unique_ptr<SecondaryIndex> Publish() {
    Strings names;
    for (size_t i = 0; i < databases_.size(); ++i) {
      names.push_back(ShardDirectoryName(static_cast<uint32_t>(i)));
      RequireOk(SecondaryIndex::Build(*databases_[i].Source(), Spec("value:text"),
                                      path() + "/" + names.back())
                    .status());
    }
    RequireOk(PublishSources(names, path(), {}));
    return RequireOk(SecondaryIndex::Open(path(), ForTests()));
  }
  std::vector<SourceEntry> Sorted() const {
    std::vector<SourceEntry> sorted = entries_;
    std::sort(sorted.begin(), sorted.end());
    return sorted;
  }

 private:
  std::vector<TestDatabase> databases_;
  std::vector<SourceEntry> entries_;
};

std::vector<SourceEntry> FoundEntries(const SecondaryIndex& index, const FindResult& matches) {
  StringList primary_keys;
  RequireOk(index.PrimaryKeys(matches, &primary_keys));
  std::vector<SourceEntry> entries;
  for (size_t i = 0; i < primary_keys.size(); ++i) {
    entries.emplace_back(matches.keys.bytes(i), matches.shards[i], primary_keys[i]);
  }
  return entries;
}

BOOST_AUTO_TEST_CASE(scans_merge_all_sources_by_key_page_by_page) {
  std::mt19937_64 random = TestRandom();
  Sources sources(3);
  for (int i = 0; i < 200; ++i) {
    sources.Put(random() % 3, "row" + std::to_string(i), std::to_string(random() % 40));
  }
  sources.Put(1, "same", "zz\xff");
  sources.Put(2, "same", "zz\xff");
  sources.Put(0, "same", "zz");
  const auto index = sources.Publish();
  RequireOk(index->Verify());
  const std::vector<SourceEntry> all = sources.Sorted();
  const Strings keys = {"", "1", "2", "21", "30", "zz", "zz\xff", "zzz"};
  for (const std::string& from : keys) {
    for (const std::string& to : keys) {
      const std::string_view lower[] = {from}, upper[] = {to};
      for (const uint8_t ends : {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}) {
        if (kUnderTsan && random() % 8 != 0) continue;
        RangeBatch range = RangeBatch::HalfOpen(lower, upper);
        range.lower_bound = static_cast<Bound>(ends % 3);
        range.upper_bound = static_cast<Bound>(ends / 3);
        std::vector<SourceEntry> expected;
        for (const SourceEntry& entry : all) {
          const std::string& key = std::get<0>(entry);
          const bool begins = range.lower_bound == Bound::kOpen ||
                              (range.lower_bound == Bound::kInclusive ? key >= from : key > from);
          const bool ends_behind =
              range.upper_bound == Bound::kOpen ||
              (range.upper_bound == Bound::kInclusive   ? key <= to
               : range.upper_bound == Bound::kExclusive ? key < to
                                                        : key.substr(0, from.size()) <= from);
          if (begins && ends_behind) expected.push_back(entry);
        }
        uint64_t count = 0;
        RequireOk(index->Count(range, absl::MakeSpan(&count, 1)));
        BOOST_REQUIRE_EQUAL(count, expected.size());
        for (const Order order : {Order::kAscending, Order::kDescending}) {
          for (const uint64_t limit : {uint64_t{1}, uint64_t{7}, UINT64_MAX}) {
            if (limit == 1 && ends % 4 != 0) continue;
            QueryOptions options;
            options.order = order;
            options.limit = limit;
            options.with_keys = true;
            std::vector<SourceEntry> found;
            FindResult matches;
            Strings after(1);
            do {
              range.after = after;
              RequireOk(index->Scan(range, &matches, options));
              const std::vector<SourceEntry> page = FoundEntries(*index, matches);
              BOOST_REQUIRE(page.size() <= limit);
              found.insert(found.end(), page.begin(), page.end());
              after = matches.cursors;
            } while (!after.empty() && !after[0].empty());
            if (order == Order::kDescending) std::reverse(found.begin(), found.end());
            BOOST_REQUIRE(found == expected);
            range.after = {};
          }
        }
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(points_are_found_in_every_source) {
  Sources sources(2);
  sources.Put(0, "a", "x");
  sources.Put(1, "a", "x");
  sources.Put(1, "b", "y");
  const auto index = sources.Publish();
  const std::string_view keys[] = {"y", "x", "none"};
  FindResult matches;
  RequireOk(index->Find(keys, &matches));
  BOOST_TEST(matches.offsets == (std::vector<uint64_t>{0, 1, 3, 3}),
             boost::test_tools::per_element());
  BOOST_TEST(matches.shards == (std::vector<uint32_t>{1, 0, 1}), boost::test_tools::per_element());
  std::vector<GlobalRowId> rows(3);
  RequireOk(index->FindFirst(keys, absl::MakeSpan(rows)));
  BOOST_TEST(ShardOf(rows[0]) == 1u);
  BOOST_TEST(rows[1] == MakeGlobalRowId(0, 0));
  BOOST_TEST(rows[2] == kNoGlobalRow);
  BOOST_TEST(
      absl::IsFailedPrecondition(index->VerifyAgainst(*sources.database(0).Source(), 1, nullptr)));
}

BOOST_AUTO_TEST_CASE(a_shard_catches_up_with_its_own_database) {
  Sources sources(2);
  sources.Put(0, "a", "x");
  sources.Put(1, "b", "x");
  const auto index = sources.Publish();
  sources.Put(1, "c", "w");
  RequireOk(index->CatchUp(*sources.database(1).Source()).status());
  FindResult matches;
  QueryOptions options;
  options.with_keys = true;
  const auto everything = [&](const SecondaryIndex& of) {
    RequireOk(of.Scan(RangeBatch::Everything(PhysicalType::kBytes), &matches, options));
    return FoundEntries(of, matches);
  };
  BOOST_CHECK(everything(*index) == sources.Sorted());
  // It has the same entries when it is opened again.
  BOOST_CHECK(everything(*RequireOk(SecondaryIndex::Open(sources.path(), ForTests()))) ==
              sources.Sorted());
  // Both outlive the version that was current when they were returned.
  const IndexSpec& spec = index->spec();
  const KeyCodec& codec = index->codec();
  RequireOk(index->Compact());
  BOOST_TEST((&index->spec() == &spec && &index->codec() == &codec));
  BOOST_TEST(spec.ToString() == RequireOk(index->Pin())->spec().ToString());
  BOOST_CHECK(everything(*index) == sources.Sorted());
  BOOST_CHECK(everything(*RequireOk(SecondaryIndex::Open(sources.path(), ForTests()))) ==
              sources.Sorted());
  TestDatabase stranger;
  BOOST_TEST(absl::IsFailedPrecondition(index->CatchUp(*stranger.Source()).status()));
}

BOOST_AUTO_TEST_CASE(sources_of_different_specs_or_one_database_are_not_published) {
  TestDatabase db, other;
  db.Put("a", "1");
  other.Put("a", "1");
  const std::string path = db.Beside("sharded");
  std::filesystem::create_directory(path);
  const Strings names = {"shard-0.0000000000000000", "shard-1.0000000000000000"};
  const auto build = [&](TestDatabase& of, const std::string& name, const char* spec) {
    std::filesystem::remove_all(path + "/" + name);
    RequireOk(SecondaryIndex::Build(*of.Source(), Spec(spec), path + "/" + name).status());
  };
  const auto refused = [&](const char* why) {
    const absl::Status status = PublishSources(names, path, {});
    BOOST_TEST(absl::IsFailedPrecondition(status), status);
    BOOST_TEST(std::string(status.message()).find(why) != std::string::npos, status);
    BOOST_TEST(std::string(status.message()).find(names[1]) != std::string::npos, status);
    BOOST_TEST(absl::IsNotFound(SecondaryIndex::Open(path).status()));
  };
  build(db, names[0], "value:text");
  refused("no index");
  build(other, names[1], "value.field('|',0):u32");
  refused("its spec is");
  build(db, names[1], "value:text");
  refused("it has the same database");
  build(other, names[1], "value:text");
  RequireOk(PublishSources(names, path, {}));
  RequireOk(SecondaryIndex::Open(path).status());
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
