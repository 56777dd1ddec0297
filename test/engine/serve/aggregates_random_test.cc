// Aggregates of ranges and groups: of every kind of key and column, and under every kind of change.
#include <boost/test/unit_test.hpp>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cairn/options.h"
#include "test/engine/indexed_database.h"
#include "test/engine/serve/aggregate_rows.h"
#include "test/sanitizer.h"
#include "test/test_random.h"

namespace cairn {
BOOST_AUTO_TEST_SUITE(aggregates_random_test)
namespace {

BOOST_AUTO_TEST_CASE(every_kind_of_key_under_every_kind_of_change) {
  auto random = TestRandom();
  for (size_t k = 0; k < kKeys.size(); k += kUnderTsan ? 3 : 1) {
    const std::string_view keys = kKeys[k];
    BOOST_TEST_CONTEXT(keys) {
      TestDatabase db;
      Rows rows(random);
      rows.nulls = keys.find("nulls") != keys.npos;
      const uint64_t universe = random() % 3 == 0 ? 12 : kSmaller ? 100 : 400;
      for (uint64_t i = 0; i < universe; ++i) {
        if (random() % 4 != 0) db.Put(Key(i), rows.Any());
      }
      const auto index = Build(db, std::string(keys) + std::string(kInclude));
      CheckAll(*index, random);
      for (int round = 0; round < (kUnderTsan ? 3 : 5); ++round) {
        // Small versions after large ones, which keep their parts of the delta.
        const bool is_small = random() % 2 == 0;
        Change(db, rows, universe, is_small ? 1 + random() % 4 : 1 + random() % universe);
        RequireOk(index->CatchUp(*db.Source()).status());
        CheckAll(*index, random);
        if (round == 2) RequireOk(index->Compact());
      }
    }
  }
}

// Enough entries for many pages of removed ones, and for long ranges.
BOOST_AUTO_TEST_CASE(long_ranges_with_much_removed) {
  auto random = TestRandom();
  TestDatabase db;
  Rows rows(random);
  rows.keys = 3000;
  rows.odds = 1000000;
  const uint64_t universe = kUnderTsan ? 3000 : kUnderAsan ? 10000 : 20000;
  for (uint64_t i = 0; i < universe; ++i) db.Put(Key(i), rows.Any());
  const auto index = Build(db, std::string(kKeys[0]) + std::string(kInclude));
  for (int round = 0; round < 6; ++round) {
    if (round == 4) {  // a contiguous stretch
      for (uint64_t i = 0; i < universe; ++i) {
        std::string value;
        if (db.db()->Get({}, Key(i), &value).ok() && std::stoi(value) < 900) db.Delete(Key(i));
      }
    } else {
      Change(db, rows, universe, round == 0 ? 20 : round * universe / 100);
    }
    RequireOk(index->CatchUp(*db.Source()).status());
    CheckRanges(*index, kSmaller ? 5 : 15, random);
    CheckGroups(*index, 1, UINT64_MAX, 1, random);
  }
}

BOOST_AUTO_TEST_CASE(few_entries_and_none) {
  auto random = TestRandom();
  for (const size_t entries : {0, 1, 2, 15, 16, 17, 63, 64, 65, 127, 128, 129}) {
    if (kUnderTsan && entries != 1 && entries != 65) continue;
    for (const bool equal : {false, true}) {
      TestDatabase db;
      Rows rows(random);
      rows.keys = equal ? 1 : 1000;
      for (size_t i = 0; i < entries; ++i) db.Put(Key(i), rows.Any());
      const auto index = Build(db, std::string(kKeys[0]) + std::string(kInclude));
      CheckAll(*index, random);
      Change(db, rows, entries + 2, 5);
      RequireOk(index->CatchUp(*db.Source()).status());
      CheckAll(*index, random);
      for (size_t i = 0; i < entries + 2; ++i) db.Delete(Key(i));
      RequireOk(index->CatchUp(*db.Source()).status());
      CheckAll(*index, random);
    }
  }
}

BOOST_AUTO_TEST_CASE(a_large_batch_is_answered_in_order) {
  auto random = TestRandom();
  TestDatabase db;
  Rows rows(random);
  for (uint64_t i = 0; i < 500; ++i) db.Put(Key(i), rows.Any());
  auto index = Build(db, std::string(kKeys[0]) + std::string(kInclude));
  OpenOptions options;
  options.threads = 3;
  index = RequireOk(SecondaryIndex::Open(db.Beside("index"), options));
  Change(db, rows, 500, 50);
  RequireOk(index->CatchUp(*db.Source()).status());
  std::vector<uint32_t> keys(60000);
  for (uint32_t& key : keys) key = static_cast<uint32_t>(random() % 50);
  std::vector<ColumnValues> values, of_one;
  const std::vector<Aggregate> aggregates = AllAggregates();
  RequireOk(index->AggregateRanges(RangeBatch::Equal(keys), aggregates, &values));
  for (int i = 0; i < 100; ++i) {
    const size_t at = random() % keys.size();
    RequireOk(index->AggregateRanges(RangeBatch::Equal(keys).Slice(at, 1), aggregates, &of_one));
    for (size_t a = 0; a < aggregates.size(); ++a) {
      BOOST_TEST(Described(values[a].value(at)) == Described(of_one[a].value(0)));
    }
  }
}

// Queries two versions alternately, and the older one last.
BOOST_AUTO_TEST_CASE(pinned_versions_keep_their_aggregates) {
  auto random = TestRandom();
  IndexedDatabase db;
  Rows rows(random);
  rows.odds = 1000000;
  for (uint64_t i = 0; i < 6000; ++i) db.Put(Key(i), rows.Any());
  db.Create("by=" + std::string(kKeys[0]) + std::string(kInclude));
  std::vector<std::shared_ptr<const SecondaryIndex>> pinned;
  for (int round = 0; round < 6; ++round) {
    for (int i = 0; i < 150; ++i) {
      const std::string key = Key(random() % 6100);
      if (random() % 4 == 0) {
        RequireOk(db->Delete({}, key));
      } else {
        db.Put(key, rows.Any());
      }
    }
    const auto live = RequireOk(db->Index("by"));
    CheckRanges(*live, 3, random);
    pinned.push_back(RequireOk(db->Pin("by")));
    CheckRanges(*pinned.back(), 3, random);
    CheckRanges(*pinned[random() % pinned.size()], 3, random);
    if (round == 3) RequireOk(db->CompactIndex("by"));
    if (round == 4) pinned.erase(pinned.begin());
  }
  for (const auto& index : pinned) CheckRanges(*index, 3, random);
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
