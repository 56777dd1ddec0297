// IndexIterator compared with a sorted list of entries: random walks over indexes that are
// unsharded or sharded by key range or by source, with applied changes, several entries per key and
// several keys per row.
#include "cairn/index_iterator.h"

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "cairn/options.h"
#include "test/engine/indexed_database.h"
#include "test/engine/serve/built_index.h"
#include "test/engine/shards/entry_model.h"
#include "test/engine/shards/sharded_pair.h"
#include "test/engine/shards/sharded_sources.h"
#include "test/sanitizer.h"
#include "test/test_random.h"

namespace cairn {
BOOST_AUTO_TEST_SUITE(index_iterator_test)
namespace {

using namespace entry_model;  // NOLINT: all of it

// Walks at random over an index that has these entries.
void CheckWalk(const SecondaryIndex& index, const Kind& kind, EntryList all,
               std::mt19937_64& random) {
  std::sort(all.begin(), all.end());
  const Parts a = AnyKey(kind, random, true), b = AnyKey(kind, random, true);
  const Range range = AnyRange(kind, a, b, random);
  EntryList entries;
  for (const Entry& entry : all) {
    if (range.has(entry.key)) entries.push_back(entry);
  }
  IteratorOptions options;
  options.range = range.query;
  const bool with_column = random() % 2 == 0;
  if (with_column) options.columns = {"n"};
  IndexIterator it = index.NewIterator(options);
  BOOST_TEST(!it.Valid());
  const auto size = static_cast<std::ptrdiff_t>(entries.size());
  std::ptrdiff_t at = -1;
  for (int step = 0; step < 60; ++step) {
    const Parts target = AnyKey(kind, random, true);
    const auto count = [&](int below) {
      return std::count_if(entries.begin(), entries.end(),
                           [&](const Entry& entry) { return Compare(entry.key, target) < below; });
    };
    const uint64_t move = random() % 40;
    const int64_t times = 1 + static_cast<int64_t>(random() % (random() % 4 == 0 ? 200 : 3));
    if (at < 0 || at >= size || move < 4) {
      switch (random() % 4) {
        case 0:
          it.SeekToFirst();
          at = 0;
          break;
        case 1:
          it.SeekToLast();
          at = size - 1;
          break;
        case 2:
          it.Seek(Logical(target));
          at = count(0);
          break;
        default:
          it.SeekForPrev(Logical(target));
          at = count(1) - 1;
      }
    } else {
      for (int64_t i = 0; i < times && at >= 0 && at < size; ++i) {
        if (move % 2 == 0) {
          it.Next();
          ++at;
        } else {
          it.Prev();
          --at;
        }
      }
    }
    RequireOk(it.status());
    BOOST_REQUIRE_EQUAL(it.Valid(), at >= 0 && at < size);
    if (!it.Valid()) {
      BOOST_TEST(it.primary_key().empty());
      BOOST_TEST(it.secondary_key().empty());
      it.Next();
      it.Prev();
      BOOST_TEST(!it.Valid());
      continue;
    }
    const Entry& entry = entries[static_cast<size_t>(at)];
    BOOST_REQUIRE_EQUAL(it.primary_key(), entry.row);
    BOOST_REQUIRE_EQUAL(Text(it.secondary_key()), Text(Logical(entry.key).parts()));
    if (with_column) BOOST_TEST(std::get<std::string_view>(it.column(0)) == entry.column);
  }
}

void CheckWalks(const SecondaryIndex& index, const Kind& kind, const EntryList& all,
                std::mt19937_64& random) {
  for (size_t i = 0; i < FewerSanitized(30, 4, 10); ++i) CheckWalk(index, kind, all, random);
}

}  // namespace

BOOST_AUTO_TEST_CASE(walks_see_the_entries_of_one_index_and_its_changes) {
  std::mt19937_64 random = TestRandom();
  for (const Kind& kind : kKinds) {
    for (const size_t universe : {0, 1, 12, 500}) {
      TestDatabase db;
      Rows rows;
      if (universe > 0) rows.Change(db, universe, universe, random);
      const auto index = Build(db, kind.spec);
      for (int round = 0; round < 4; ++round) {
        EntryList all;
        rows.AddTo(kind, 0, &all);
        CheckWalks(*index, kind, all, random);
        rows.Change(db, universe / 3 + 1, universe + 5, random);
        RequireOk(index->CatchUp(*db.Source()).status());
        if (round == 2) RequireOk(index->Compact());
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(walks_see_the_entries_of_all_shards) {
  std::mt19937_64 random = TestRandom();
  for (const Kind& kind : kKinds) {
    TestDatabase db;
    Rows rows;
    rows.Change(db, 300, 200, random);
    EntryList all;
    rows.AddTo(kind, 0, &all);
    for (const uint32_t shards : {1, 3}) {
      CheckWalks(*BuildInShards(db, kind.spec, shards, 1, absl::StrCat("s", shards)), kind, all,
                 random);
    }
  }
}

BOOST_AUTO_TEST_CASE(walks_see_the_entries_of_all_sources) {
  std::mt19937_64 random = TestRandom();
  for (const Kind& kind : kKinds) {
    for (const size_t size : {1, 3}) {
      ShardedSources sources(size);
      std::vector<Rows> rows(size);
      for (size_t s = 0; s < size; ++s) rows[s].Change(sources[s], 100, 80, random);
      const auto index = sources.Build(kind.spec);
      for (int round = 0; round < 2; ++round) {
        EntryList all;
        for (size_t s = 0; s < size; ++s) rows[s].AddTo(kind, s, &all);
        CheckWalks(*index, kind, all, random);
        for (size_t s = 0; s < size; ++s) rows[s].Change(sources[s], 30, 90, random);
        sources.CatchUp(index.get());
      }
    }
  }
}

// Primary keys are those of a scan, even if all entries have the same key and fill more than a
// block.
BOOST_AUTO_TEST_CASE(entries_of_one_key_are_in_the_order_of_primary_keys) {
  TestDatabase db;
  for (int i = 0; i < 1000; ++i) db.Put(absl::StrFormat("r%04d", i), "same");
  const auto index = Build(db, "value:text");
  IndexIterator it = index->NewIterator();
  int row = 0;
  for (it.SeekToFirst(); it.Valid(); it.Next()) {
    BOOST_REQUIRE_EQUAL(it.primary_key(), absl::StrFormat("r%04d", row++));
  }
  RequireOk(it.status());
  BOOST_TEST(row == 1000);
  for (it.SeekForPrev("same"); it.Valid(); it.Prev()) {
    BOOST_REQUIRE_EQUAL(it.primary_key(), absl::StrFormat("r%04d", --row));
  }
  BOOST_TEST(row == 0);
}

BOOST_AUTO_TEST_CASE(an_iterator_of_a_database_keeps_its_state) {
  IndexedDatabase db;
  db.Create("age = value.field(',', 0):i32, include(name = value.field(',', 1):text)");
  db.Put("a", "30,ana");
  db.Put("b", "18,bo");
  IteratorOptions options;
  options.columns = {"name"};
  IndexIterator it = db->NewIterator("age", options);
  db.Put("c", "20,eva");
  RequireOk(db->Delete({}, "a"));
  it.Seek(19);
  BOOST_REQUIRE(it.Valid());
  BOOST_TEST(it.primary_key() == "a");
  BOOST_TEST(std::get<std::string_view>(it.column(0)) == "ana");
  it.Prev();
  BOOST_REQUIRE(it.Valid());
  BOOST_TEST((it.secondary_key()[0] == DataValue(int64_t{18})));
  RequireOk(db->DropIndex("age"));
  it.Next();
  BOOST_TEST(it.primary_key() == "a");
  IndexIterator moved = std::move(it);
  moved.SeekToLast();
  BOOST_TEST(moved.primary_key() == "a");
  BOOST_TEST(!it.Valid());  // NOLINT: it has none
  it.SeekToFirst();
  BOOST_TEST(!it.Valid());
  // RocksDB's iterators also work.
  const std::unique_ptr<rocksdb::Iterator> rows(db->NewIterator({}));
  rows->SeekToFirst();
  BOOST_TEST(rows->key().ToString() == "b");
}

BOOST_AUTO_TEST_CASE(errors_are_in_the_status) {
  IndexedDatabase db;
  db.Create("place = value.field(',', 0):text, value.field(',', 1):u8");
  db.Put("a", "PT,1");
  const auto refused = [](const absl::Status& status, const char* words) {
    BOOST_TEST(absl::IsInvalidArgument(status), status);
    BOOST_TEST(absl::StrContains(std::string(status.message()), words), status);
  };
  IndexIterator it = db->NewIterator("none");
  BOOST_TEST(absl::IsNotFound(it.status()));
  it.SeekToFirst();
  BOOST_TEST(!it.Valid());
  BOOST_TEST(absl::IsNotFound(it.status()));
  IteratorOptions options;
  options.range = {{"PT", 1}, {"NO", 1}};
  refused(db->NewIterator("place", options).status(), "IteratorOptions::range: expected one key");
  options.range = KeyQuery::AtLeast(1);
  refused(db->NewIterator("place", options).status(), "lower end");
  options = {};
  options.columns = {"none"};
  refused(db->NewIterator("place", options).status(), "none");
  it = db->NewIterator("place");
  it.Seek(5);
  BOOST_TEST(!it.Valid());
  refused(it.status(), "index 'place', Seek: lower end: part 1");
  it.Seek("PT");
  RequireOk(it.status());
  BOOST_TEST(it.primary_key() == "a");
  it.SeekForPrev({"PT", 300});
  refused(it.status(), "part 2");
}

BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
