// Cursors of scans, fetches, lookups and groups continue only the query that returned them, in
// unsharded indexes and in indexes sharded by key range or by source.
#include <array>
#include <boost/test/unit_test.hpp>
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "cairn/batcher.h"
#include "cairn/index_group.h"
#include "cairn/index_iterator.h"
#include "cairn/join.h"
#include "cairn/lookup.h"
#include "cairn/options.h"
#include "test/engine/serve/built_index.h"
#include "test/engine/shards/sharded_pair.h"
#include "test/engine/shards/sharded_sources.h"
#include "test/sanitizer.h"

namespace cairn {
BOOST_AUTO_TEST_SUITE(cursors_test)
namespace {

constexpr char kText[] = "t = value.field('|', 0):text, value.field('|', 1):text";
constexpr char kU32[] = "n = value.field('|', 0):u32";
constexpr char kU64[] = "n = value.field('|', 0):u64";
constexpr int kRows = 60, kKeys = 20;

void CheckRefused(const absl::Status& status, const std::string& part = "after") {
  BOOST_TEST(absl::IsInvalidArgument(status), status);
  BOOST_TEST(absl::StrContains(std::string(status.message()),
                               part + ": expected a cursor of the same query"),
             status);
}

// Row i of a database, with kRows / kKeys rows per key.
void PutRow(TestDatabase& db, int i) {
  db.Put(absl::StrCat("row", 100 + i), absl::StrCat(10 + i % kKeys, "|", i));
}

// An index of each kind over the same rows, and a database with all of these; null if there are
// several.
struct Kind {
  std::string name;
  std::unique_ptr<SecondaryIndex> index;
  std::unique_ptr<SnapshotSource> source;
};

struct Fixture {
  explicit Fixture(const std::string& spec) : sources(3) {
    for (int i = 0; i < kRows; ++i) {
      PutRow(db, i);
      PutRow(sources[static_cast<size_t>(i) % 3], i);
    }
    kinds.push_back({"unsharded", Build(db, spec), db.Source()});
    kinds.push_back({"by key range", BuildInShards(db, spec, 3), db.Source()});
    kinds.push_back({"by source", sources.Build(spec), nullptr});
  }

  TestDatabase db;
  ShardedSources sources;
  std::vector<Kind> kinds;
};

// Ranges that all contain the keys from 15 to 24, of any type.
class Ranges {
 public:
  explicit Ranges(const SecondaryIndex& index) : kind_(index.kind()) {
    const RangeBatch all = RangeBatch::Everything(kind_);
    Add(all);
    for (const Bound lower : {Bound::kInclusive, Bound::kExclusive, Bound::kOpen}) {
      for (const Bound upper : {Bound::kInclusive, Bound::kExclusive, Bound::kOpen}) {
        if (lower == Bound::kOpen && upper == Bound::kOpen) continue;
        for (const int wider : {0, 1}) {
          if (lower == Bound::kOpen && wider == 1) continue;
          RangeBatch range = Between(14 - wider, 25);
          range.lower_bound = lower;
          range.upper_bound = upper;
          Add(range);
        }
      }
    }
    if (kind_ != PhysicalType::kBytes) return;
    for (const std::string_view* prefix : {&kOne, &kNone}) {
      Add(RangeBatch::Prefix(absl::MakeConstSpan(prefix, 1)));
    }
    RangeBatch to_prefix = RangeBatch::Prefix(absl::MakeConstSpan(&kTwo, 1));
    to_prefix.lower_bound = Bound::kOpen;  // it also has the keys before the prefix
    Add(to_prefix);
  }

  const std::vector<RangeBatch>& all() const { return ranges_; }

 private:
  static constexpr std::string_view kOne = "1", kTwo = "2", kNone = "";

  void Add(const RangeBatch& range) { ranges_.push_back(range); }
  RangeBatch Between(int from, int to) {
    switch (kind_) {
      case PhysicalType::kU32:
        u32_.push_back({static_cast<uint32_t>(from), static_cast<uint32_t>(to)});
        return Of(u32_.back());
      case PhysicalType::kU64:
        u64_.push_back({static_cast<uint64_t>(from), static_cast<uint64_t>(to)});
        return Of(u64_.back());
      case PhysicalType::kBytes:
        break;
    }
    texts_.push_back({absl::StrCat(from), absl::StrCat(to)});
    bytes_.push_back({texts_.back()[0], texts_.back()[1]});
    return Of(bytes_.back());
  }
  template <typename Key>
  static RangeBatch Of(const std::array<Key, 2>& ends) {
    return RangeBatch::HalfOpen(absl::MakeConstSpan(ends).first(1),
                                absl::MakeConstSpan(ends).last(1));
  }

  const PhysicalType kind_;
  std::deque<std::array<uint32_t, 2>> u32_;
  std::deque<std::array<uint64_t, 2>> u64_;
  std::deque<std::array<std::string, 2>> texts_;
  std::deque<std::array<std::string_view, 2>> bytes_;
  std::vector<RangeBatch> ranges_;
};

QueryOptions Page(Order order, uint64_t limit) {
  QueryOptions options;
  options.order = order;
  options.limit = limit;
  return options;
}

Order Other(Order order) {
  return order == Order::kAscending ? Order::kDescending : Order::kAscending;
}

// Fetches one page if there is a source; otherwise scans.
absl::Status Read(const Kind& kind, bool fetch, RangeBatch range, const Strings& after,
                  const QueryOptions& options, Strings* rows, Strings* cursors) {
  range.after = after;
  if (fetch) {
    FetchResult page;
    absl::Status s = kind.index->Fetch(*kind.source, range, options, &page);
    if (s.ok()) *rows = Texts(page.primary_keys);
    *cursors = page.cursors;
    return s;
  }
  FindResult page;
  absl::Status s = kind.index->Scan(range, &page, options);
  if (s.ok()) *rows = PrimaryKeys(*kind.index, page);
  *cursors = page.cursors;
  return s;
}

BOOST_AUTO_TEST_CASE(scans_and_fetches_continue_only_the_same_range_in_the_same_order) {
  for (const char* spec : {kText, kU32, kU64}) {
    if (kUnderTsan && spec != kU32) continue;
    const Fixture f(spec);
    const Ranges ranges(*f.kinds[0].index);
    for (const Kind& kind : f.kinds) {
      for (const Order order : {Order::kAscending, Order::kDescending}) {
        for (size_t i = 0; i < ranges.all().size(); ++i) {
          BOOST_TEST_CONTEXT(spec << ", " << kind.name << ", range " << i) {
            const RangeBatch& range = ranges.all()[i];
            Strings all, first, rest, cursors, none;
            RequireOk(Read(kind, false, range, {}, Page(order, UINT64_MAX), &all, &none));
            RequireOk(Read(kind, false, range, {}, Page(order, 7), &first, &cursors));
            BOOST_REQUIRE(!cursors[0].empty());
            for (const bool fetch : {false, true}) {
              if (fetch && kind.source == nullptr) continue;
              RequireOk(Read(kind, fetch, range, cursors, Page(order, UINT64_MAX), &rest, &none));
              Strings both = first;
              both.insert(both.end(), rest.begin(), rest.end());
              BOOST_TEST(both == all, boost::test_tools::per_element());
              CheckRefused(Read(kind, fetch, range, cursors, Page(Other(order), 7), &rest, &none));
              for (size_t j = 0; j < ranges.all().size(); ++j) {
                if (j == i) continue;
                CheckRefused(
                    Read(kind, fetch, ranges.all()[j], cursors, Page(order, 7), &rest, &none));
              }
            }
          }
        }
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(a_batch_names_the_range_whose_cursor_is_of_another_one) {
  const Fixture f(kU32);
  const uint32_t lower[] = {10, 12, 14}, upper[] = {30, 30, 30};
  RangeBatch batch = RangeBatch::HalfOpen(lower, upper);
  for (const Kind& kind : f.kinds) {
    FindResult page;
    RequireOk(kind.index->Scan(batch, &page, Page(Order::kAscending, 2)));
    Strings after = page.cursors;
    batch.after = after;
    RequireOk(kind.index->Scan(batch, &page, Page(Order::kAscending, 2)));
    std::swap(after[1], after[2]);
    CheckRefused(kind.index->Scan(batch, &page, Page(Order::kAscending, 2)), "after[1]");
    after = {"", "", after[1]};
    RequireOk(kind.index->Scan(batch, &page, Page(Order::kAscending, 2)));
    batch.after = {};
  }
}

BOOST_AUTO_TEST_CASE(cursors_of_another_index_are_refused) {
  const Fixture f(kU32), other("m = value.field('|', 1):u32");
  for (size_t a = 0; a < f.kinds.size(); ++a) {
    FindResult page;
    RangeBatch all = RangeBatch::Everything(PhysicalType::kU32);
    RequireOk(f.kinds[a].index->Scan(all, &page, Page(Order::kAscending, 30)));
    const Strings after = page.cursors;
    all.after = after;
    for (const Kind& kind : other.kinds) {
      CheckRefused(kind.index->Scan(all, &page, Page(Order::kAscending, 30)));
    }
    // An index that is not sharded and one that is sharded by key range name the same positions.
    for (size_t b = 0; b < f.kinds.size(); ++b) {
      const absl::Status s = f.kinds[b].index->Scan(all, &page, Page(Order::kAscending, 30));
      if ((a == 2) == (b == 2)) {
        RequireOk(s);
        BOOST_TEST(page.row_ids.size() == 30u);
      } else {
        CheckRefused(s);
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(cursors_stay_valid_over_changes_merges_and_opening) {
  Fixture f(kText);
  for (Kind& kind : f.kinds) {
    const bool by_key_range = kind.name == "by key range";
    for (const Order order : {Order::kAscending, Order::kDescending}) {
      Strings rows, cursors;
      const RangeBatch all = RangeBatch::Everything(PhysicalType::kBytes);
      RequireOk(Read(kind, false, all, {}, Page(order, 40), &rows, &cursors));
      const auto check = [&](const SecondaryIndex& index, size_t left) {
        RangeBatch rest = all;
        rest.after = cursors;
        FindResult page;
        RequireOk(index.Scan(rest, &page, Page(order, UINT64_MAX)));
        BOOST_TEST(page.row_ids.size() == left);
      };
      check(*kind.index, kRows - 40);
      if (by_key_range) {
        const auto again = BuildInShards(f.db, kText, 2, 1, order == Order::kAscending ? "a" : "b");
        check(*again, kRows - 40);
        continue;
      }
      // A row before the cursor, and one after it.
      TestDatabase& db = kind.source == nullptr ? f.sources[1] : f.db;
      const std::string at = order == Order::kAscending ? "asc" : "desc";
      db.Put("first" + at, "0|x");
      db.Put("last" + at, "9|x");
      RequireOk(kind.index->CatchUp(*db.Source()).status());
      check(*kind.index, kRows - 40 + 1);
      RequireOk(kind.index->Compact());
      check(*kind.index, kRows - 40 + 1);
      const std::string path =
          kind.source == nullptr ? f.sources.Path("sources") : f.db.Beside("index");
      const auto opened = RequireOk(SecondaryIndex::Open(path, ForTests()));
      check(*opened, kRows - 40 + 1);
      for (const char* row : {"first", "last"}) db.Delete(row + at);
      RequireOk(kind.index->CatchUp(*db.Source()).status());
    }
  }
}

BOOST_AUTO_TEST_CASE(lookups_continue_only_the_same_query) {
  const Fixture f(kU32);
  for (const Kind& kind : f.kinds) {
    const std::vector<KeyQuery> queries = {KeyQuery(15), KeyQuery::AtLeast(15),
                                           KeyQuery::Between(15, 26), KeyQuery::Between(15, 25)};
    for (size_t i = 0; i < queries.size(); ++i) {
      for (const Order order : {Order::kAscending, Order::kDescending}) {
        LookupOptions options;
        options.limit = 2;
        options.order = order;
        options.after = RequireOk(kind.index->Lookup(queries[i], options)).cursor();
        BOOST_REQUIRE(!options.after.empty());
        BOOST_TEST(!RequireOk(kind.index->Lookup(queries[i], options)).empty());
        const std::string part = "index 'n', LookupOptions::after";
        for (size_t j = 0; j < queries.size(); ++j) {
          if (j != i) CheckRefused(kind.index->Lookup(queries[j], options).status(), part);
        }
        if (kind.source != nullptr) {
          RequireOk(kind.index->LookupRows(*kind.source, queries[i], options).status());
        }
        options.order = Other(order);
        CheckRefused(kind.index->Lookup(queries[i], options).status(), part);
        if (kind.source == nullptr) continue;
        CheckRefused(kind.index->LookupRows(*kind.source, queries[i], options).status(), part);
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(groups_continue_only_the_same_range_and_parts) {
  const Fixture f(kText);
  const Ranges ranges(*f.kinds[0].index);
  for (const Kind& kind : f.kinds) {
    AggregateGroupsResult groups;
    const auto page = [&](RangeBatch range, const Strings& after, size_t parts) {
      range.after = after;
      return kind.index->AggregateGroups(range, parts, {Aggregate::Count()},
                                         Page(Order::kAscending, 3), &groups);
    };
    for (size_t i = 0; i < ranges.all().size(); ++i) {
      RequireOk(page(ranges.all()[i], {}, 1));
      const Strings after = groups.cursors;
      BOOST_REQUIRE(!after[0].empty());
      RequireOk(page(ranges.all()[i], after, 1));
      BOOST_TEST(groups.offsets[1] == 3u);
      CheckRefused(page(ranges.all()[i], after, 2));
      for (size_t j = 0; j < ranges.all().size(); ++j) {
        if (j != i) CheckRefused(page(ranges.all()[j], after, 1));
      }
      // A scan names other positions.
      FindResult rows;
      RangeBatch range = ranges.all()[i];
      range.after = after;
      CheckRefused(kind.index->Scan(range, &rows, Page(Order::kAscending, 3)));
    }
  }
}

BOOST_AUTO_TEST_CASE(predicates_and_joins_continue_only_over_indexes_of_the_same_specs) {
  const Fixture f(kU32), others("m = value.field('|', 1):u32");
  for (size_t k = 0; k < f.kinds.size(); ++k) {
    const std::shared_ptr<const SecondaryIndex> index = RequireOk(f.kinds[k].index->Pin()),
                                                other = RequireOk(others.kinds[k].index->Pin());
    const auto group = RequireOk(IndexGroup::Create({{index, "a"}}));
    const auto of_other = RequireOk(IndexGroup::Create({{other, "a"}}));
    const Predicate where("a", KeyQuery::AtLeast(10));
    WhereOptions page;
    page.limit = 5;
    for (const char* order_by : {"", "a"}) {
      page.order_by = order_by;
      page.after.clear();
      WhereResult rows;
      RequireOk(group->Find(where, page, &rows));
      page.after = rows.cursor;
      RequireOk(group->Find(where, page, &rows));
      BOOST_TEST(rows.row_ids.size() == 5u);
      CheckRefused(of_other->Find(where, page, &rows), "WhereOptions::after");
    }
    GroupByOptions groups_page;
    groups_page.group_by = {"a"};
    groups_page.limit = 2;
    GroupByResult groups;
    RequireOk(group->GroupBy(where, {Aggregate::Count()}, groups_page, &groups));
    groups_page.after = groups.cursor;
    RequireOk(group->GroupBy(where, {Aggregate::Count()}, groups_page, &groups));
    BOOST_TEST(groups.size == 2u);
    CheckRefused(of_other->GroupBy(where, {Aggregate::Count()}, groups_page, &groups),
                 "GroupByOptions::after");

    JoinOptions join_page;
    join_page.limit = 5;
    JoinResult pairs;
    RequireOk(Join(*index, *other, join_page, &pairs));
    join_page.after = pairs.cursor;
    RequireOk(Join(*index, *other, join_page, &pairs));
    BOOST_TEST(pairs.size() == 5u);
    for (const auto& [left, right] :
         {std::pair(other, index), std::pair(index, index), std::pair(other, other)}) {
      CheckRefused(Join(*left, *right, join_page, &pairs), "JoinOptions::after");
    }
    // A cursor over sources contains the number of a source.
    for (size_t j = 0; j < f.kinds.size(); ++j) {
      const absl::Status s = Join(*f.kinds[j].index, *others.kinds[j].index, join_page, &pairs);
      if ((j == 2) == (k == 2)) {
        RequireOk(s);
      } else {
        CheckRefused(s, "JoinOptions::after");
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(a_batcher_refuses_a_cursor_without_failing_other_requests) {
  const Fixture f(kU32);
  const SecondaryIndex& index = *f.kinds[0].index;
  FindResult page;
  RangeBatch all = RangeBatch::Everything(PhysicalType::kU32);
  RequireOk(index.Scan(all, &page, Page(Order::kAscending, 5)));
  const Strings after = page.cursors;
  all.after = after;
  const auto batcher = RequireOk(Batcher::Make(&index));
  auto good = batcher->Scan(all, Page(Order::kAscending, 5));
  auto bad = batcher->Scan(all, Page(Order::kDescending, 5));
  batcher->Flush();
  BOOST_TEST(RequireOk(good.get()).row_ids.size() == 5u);
  CheckRefused(bad.get().status());
}

// Seek reads blocks of other ranges than the steps after it.
BOOST_AUTO_TEST_CASE(iterators_continue_after_seeks_and_turns) {
  for (const char* spec : {kText, kU32, kU64}) {
    const Fixture f(spec);
    for (const Kind& kind : f.kinds) {
      IndexIterator it = kind.index->NewIterator();
      Strings forward, backward;
      const bool text = kind.index->kind() == PhysicalType::kBytes;
      it.Seek(text ? LogicalKey("12") : LogicalKey(12));
      for (; it.Valid(); it.Next()) forward.emplace_back(it.primary_key());
      RequireOk(it.status());
      BOOST_TEST(forward.size() == kRows - 2u * (kRows / kKeys));
      it.SeekForPrev(text ? LogicalKey("27") : LogicalKey(27));
      for (; it.Valid(); it.Prev()) backward.emplace_back(it.primary_key());
      RequireOk(it.status());
      BOOST_TEST(backward.size() == kRows - 2u * (kRows / kKeys));
      // A turn after a seek leaves the range of the seek.
      it.Seek(text ? LogicalKey("12") : LogicalKey(12));
      size_t before = 0;
      for (it.Prev(); it.Valid(); it.Prev()) ++before;
      RequireOk(it.status());
      BOOST_TEST(before == 2u * (kRows / kKeys));
    }
  }
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
