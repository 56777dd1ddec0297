#include "gpu/b_plus_tree.h"

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <limits>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "test/gpu/b_plus_tree_pages_check.h"
#include "test/gpu/b_plus_tree_visits.h"
#include "test/gpu/device_array.h"
#include "test/gpu/needs_device.h"
#include "test/ordered_index_oracle.h"
#include "test/test_random.h"

namespace cairn::gpu {
namespace {

template <typename Key>
using Entries = std::vector<std::pair<Key, RowId>>;

template <typename Key>
std::unique_ptr<BPlusTree<Key>> BuildTree(const Entries<Key>& entries, BPlusTreeOptions options) {
  std::vector<Key> keys;
  std::vector<RowId> row_ids;
  for (const auto& [key, row_id] : entries) keys.push_back(key), row_ids.push_back(row_id);
  const DeviceArray<Key> device_keys(keys);
  const DeviceArray<RowId> device_rows(row_ids);
  auto run = SortToRun(device_keys.data(), device_rows.data(), keys.size(), nullptr);
  BOOST_REQUIRE_MESSAGE(run.ok(), run.status());
  auto tree = BuildBPlusTree(*std::move(run), options, nullptr);
  BOOST_REQUIRE_MESSAGE(tree.ok(), tree.status());
  return *std::move(tree);
}

// Asks a tree for keys that it has and for their neighbours, and compares with its entries.
template <typename Key>
void CheckAnswers(const BPlusTree<Key>& tree, const Entries<Key>& entries, uint64_t salt,
                  int keys_asked_for = 700) {
  constexpr Key kGreatest = std::numeric_limits<Key>::max();
  auto random = TestRandom(salt);
  std::vector<Key> queries = {0, 1, kGreatest - 1, kGreatest};
  for (int i = 0; i < keys_asked_for; ++i) {
    const Key key =
        entries.empty() ? static_cast<Key>(random()) : entries[random() % entries.size()].first;
    queries.insert(queries.end(), {key, key + 1, key - 1});
  }
  const size_t size = queries.size();
  const DeviceArray<Key> device_queries(queries);
  const DeviceKeys keys = [&] {
    if constexpr (sizeof(Key) == 4) {
      return DeviceKeys::U32(device_queries.data(), size);
    } else {
      return DeviceKeys::U64(device_queries.data(), size);
    }
  }();
  const DeviceArray<Position> lower(size), upper(size);
  const DeviceArray<RowId> first(size);
  const DeviceArray<bool> found(size);
  BOOST_REQUIRE(tree.LowerBound(keys, lower.data(), nullptr).ok());
  BOOST_REQUIRE(tree.UpperBound(keys, upper.data(), nullptr).ok());
  BOOST_REQUIRE(tree.FindFirst(keys, first.data(), nullptr).ok());
  BOOST_REQUIRE(tree.Contains(keys, found.data(), nullptr).ok());
  const auto lower_found = lower.ToHost(), upper_found = upper.ToHost();
  const auto first_found = first.ToHost();
  std::vector<uint8_t> found_found(size);
  BOOST_REQUIRE(cudaMemcpy(found_found.data(), found.data(), size, cudaMemcpyDeviceToHost) ==
                cudaSuccess);
  for (size_t i = 0; i < size; ++i) {
    const auto begin =
        std::lower_bound(entries.begin(), entries.end(), std::pair<Key, RowId>(queries[i], 0));
    const auto end =
        std::upper_bound(entries.begin(), entries.end(), std::pair<Key, RowId>(queries[i], kNoRow));
    BOOST_REQUIRE(lower_found[i] == static_cast<Position>(begin - entries.begin()));
    BOOST_REQUIRE(upper_found[i] == static_cast<Position>(end - entries.begin()));
    BOOST_REQUIRE(first_found[i] == (begin == end ? kNoRow : begin->second));
    BOOST_REQUIRE(found_found[i] == (begin != end));
  }
  // Ranges of positions, ascending and descending.
  if (entries.empty()) return;
  std::vector<Position> begins;
  std::vector<uint64_t> offsets = {0};
  for (int i = 0; i < 40; ++i) {
    const size_t count = std::min<size_t>(random() % (i < 35 ? 50 : 3000), entries.size());
    begins.push_back(static_cast<Position>(random() % (entries.size() - count + 1)));
    offsets.push_back(offsets.back() + count);
  }
  const DeviceArray<Position> begin(begins);
  const DeviceArray<uint64_t> device_offsets(offsets);
  const DeviceArray<RowId> rows(offsets.back());
  for (Order order : {Order::kAscending, Order::kDescending}) {
    BOOST_REQUIRE(tree.CopyRows(begin.data(), device_offsets.data(), begins.size(), offsets.back(),
                                order, rows.data(), nullptr)
                      .ok());
    const auto rows_found = rows.ToHost();
    for (size_t i = 0; i < begins.size(); ++i) {
      const size_t count = offsets[i + 1] - offsets[i];
      for (size_t j = 0; j < count; ++j) {
        const size_t at = begins[i] + (order == Order::kAscending ? j : count - 1 - j);
        BOOST_REQUIRE(rows_found[offsets[i] + j] == entries[at].second);
      }
    }
  }
}

// Checks pages and answers against the entries that there should be.
template <typename Key>
void CheckTree(const BPlusTree<Key>& tree, const Entries<Key>& entries, uint64_t salt) {
  BOOST_TEST_CONTEXT(tree.description() << ", " << entries.size() << " entries") {
    BOOST_REQUIRE(tree.size() == entries.size());
    const PagesCheck<Key> check(tree.pages());
    BOOST_REQUIRE(check.entries() == entries);
    CheckAnswers(tree, entries, salt);
  }
}

template <typename Key>
Entries<Key> Sorted(Entries<Key> entries) {
  std::sort(entries.begin(), entries.end());
  return entries;
}

// `count` entries with keys below `most`, or of all sizes for 0.
template <typename Key>
Entries<Key> RandomEntries(size_t count, uint64_t most, uint64_t salt) {
  auto random = TestRandom(salt);
  Entries<Key> entries;
  for (size_t i = 0; i < count; ++i) {
    const uint64_t key = most == 0 ? random() : random() % most;
    entries.emplace_back(static_cast<Key>(key), static_cast<RowId>(random() % 1000000));
  }
  return entries;
}

// The same entries on the device.
template <typename Key>
struct DeviceEntries {
  explicit DeviceEntries(const Entries<Key>& entries)
      : keys(Column(entries, [](const auto& e) { return e.first; })),
        row_ids(Column(entries, [](const auto& e) { return e.second; })) {}

  template <typename Get>
  static auto Column(const Entries<Key>& entries, Get get) {
    std::vector<decltype(get(entries[0]))> column;
    for (const auto& entry : entries) column.push_back(get(entry));
    return column;
  }

  DeviceArray<Key> keys;
  DeviceArray<RowId> row_ids;
};

// Inserts into the tree and the set, one by one, and compares.
template <typename Key>
void InsertAndCheck(BPlusTree<Key>* tree, std::set<std::pair<Key, RowId>>* expected,
                    const Entries<Key>& added, uint64_t salt) {
  const DeviceEntries<Key> device(added);
  const auto inserted =
      tree->Insert(device.keys.data(), device.row_ids.data(), added.size(), nullptr);
  BOOST_REQUIRE_MESSAGE(inserted.ok(), inserted.status());
  size_t fresh = 0;
  for (const auto& entry : added) fresh += expected->insert(entry).second ? 1 : 0;
  BOOST_TEST(*inserted == fresh);
  CheckTree(*tree, Entries<Key>(expected->begin(), expected->end()), salt);
}

// Orders of inserts that trees have trouble with; `step` tells batches apart.
template <typename Key>
Entries<Key> Adversarial(const std::string& kind, size_t count, size_t step, uint64_t salt) {
  if (kind == "random") return RandomEntries<Key>(count, 0, salt);
  if (kind == "few keys") return RandomEntries<Key>(count, 7, salt);
  Entries<Key> entries;
  for (size_t i = 0; i < count; ++i) {
    const size_t at = step * count + i;
    const auto row = static_cast<RowId>(at);
    if (kind == "ascending") entries.emplace_back(static_cast<Key>(at * 3), row);
    if (kind == "descending") entries.emplace_back(static_cast<Key>(1000000000 - at * 3), row);
    if (kind == "equal") entries.emplace_back(Key{42}, row ^ 5);
    if (kind == "greatest") entries.emplace_back(std::numeric_limits<Key>::max(), 90000000 - row);
    if (kind == "least and greatest") {
      entries.emplace_back(at % 2 == 0 ? Key{0} : std::numeric_limits<Key>::max(), row);
    }
  }
  return entries;
}

template <typename Key>
void CheckInserts(const std::string& kind, int order, double fill, size_t before) {
  BOOST_TEST_CONTEXT(kind << " inserts, order " << order << ", fill " << fill << ", into "
                          << before) {
    const Entries<Key> entries = RandomEntries<Key>(before, 0, before + 1);
    std::set<std::pair<Key, RowId>> expected(entries.begin(), entries.end());
    const auto tree = BuildTree<Key>({expected.begin(), expected.end()}, {order, fill});
    size_t step = 0;
    for (size_t count : {1, 2, 17, 300, 300, 1000}) {
      InsertAndCheck(tree.get(), &expected, Adversarial<Key>(kind, count, step, count + step),
                     step);
      ++step;
    }
  }
}

template <typename Key>
void CheckBulkInserts(BPlusTreeOptions options, size_t before, uint64_t most) {
  const Entries<Key> entries = RandomEntries<Key>(before, most, before);
  const auto tree = BuildTree<Key>(entries, options);
  std::set<std::pair<Key, RowId>> expected(entries.begin(), entries.end());
  CheckTree(*tree, Sorted(entries), 1);
  for (size_t count : {0, 1, 100, 5000}) {
    const Entries<Key> added = RandomEntries<Key>(count, most, count + 7);
    const DeviceEntries<Key> device(added);
    const absl::Status status = tree->BulkInsert(device.keys.data(), device.row_ids.data(), count,
                                                 Duplicates::kKeepRows, nullptr);
    BOOST_REQUIRE_MESSAGE(status.ok(), status);
    expected.insert(added.begin(), added.end());
    CheckTree(*tree, Entries<Key>(expected.begin(), expected.end()), count);
    // Single inserts between, so that linked pages are merged too.
    InsertAndCheck(tree.get(), &expected, RandomEntries<Key>(20, most, count + 9), count);
  }
}

template <typename Key>
void CheckCatalogueOf(int order, double fill, const char* method, size_t most) {
  const std::string factory =
      absl::StrFormat("gpu:btree,order=%d,fill=%g,method=%s", order, fill, method);
  CheckCatalogue<Key>(
      [&](SortedRun run) {
        auto index = MakeOrderedIndex(factory, std::move(run));
        BOOST_REQUIRE_MESSAGE(index.ok(), index.status());
        return *std::move(index);
      },
      most);
}

BOOST_FIXTURE_TEST_SUITE(b_plus_tree_test, NeedsDevice)

// Every order with every fill is below, with fewer sets of entries.
BOOST_AUTO_TEST_CASE(combined_search_answers_the_catalogue) {
  CheckCatalogueOf<uint32_t>(8, 0.7, "combined", 5000);
  CheckCatalogueOf<uint64_t>(8, 1, "combined", 5000);
  CheckCatalogueOf<uint32_t>(32, 1, "combined", 5000);
  CheckCatalogueOf<uint64_t>(32, 0.5, "combined", 5000);
  CheckCatalogueOf<uint32_t>(64, 0.5, "combined", 5000);
  CheckCatalogueOf<uint64_t>(64, 0.7, "combined", 5000);
}

BOOST_AUTO_TEST_CASE(other_methods_answer_the_catalogue) {
  CheckCatalogueOf<uint32_t>(8, 0.7, "binary", 5000);
  CheckCatalogueOf<uint64_t>(64, 1, "binary", 5000);
  CheckCatalogueOf<uint32_t>(32, 0.5, "multiple", 1000);
  CheckCatalogueOf<uint64_t>(16, 1, "multiple", 1000);
  CheckCatalogueOf<uint32_t>(16, 0.7, "brute", 1000);
  CheckCatalogueOf<uint64_t>(8, 1, "brute", 1000);
}

BOOST_AUTO_TEST_CASE(large_sets_answer_the_catalogue) {
  CheckCatalogueOf<uint32_t>(16, 1, "combined", 70000);
  CheckCatalogueOf<uint64_t>(16, 1, "combined", 70000);
}

BOOST_AUTO_TEST_CASE(factory_strings_say_what_was_chosen_or_what_is_wrong) {
  const auto make = [](const char* factory) {
    return MakeDeviceIndex(factory, OracleRun(oracle::FinishIntegers<uint32_t>("", {1, 2, 3})));
  };
  const auto index = make("gpu:btree");
  BOOST_REQUIRE_MESSAGE(index.ok(), index.status());
  BOOST_TEST((*index)->description() == "gpu:btree,order=16,fill=1,method=combined");
  const auto wide = MakeDeviceIndex("gpu:btree,fill=0.75",
                                    OracleRun(oracle::FinishIntegers<uint64_t>("", {1, 2, 3})));
  BOOST_REQUIRE_MESSAGE(wide.ok(), wide.status());
  BOOST_TEST((*wide)->description() == "gpu:btree,order=8,fill=0.75,method=combined");
  for (const char* bad : {"gpu:btree,order=24", "gpu:btree,order=4", "gpu:btree,fill=0.4",
                          "gpu:btree,fill=1.1", "gpu:btree,fill=nan", "gpu:btree,fill=x",
                          "gpu:btree,method=ternary", "gpu:btree,page=4k"}) {
    BOOST_TEST(absl::IsInvalidArgument(make(bad).status()), bad);
  }
}

BOOST_AUTO_TEST_CASE(pages_are_sound_after_bulk_creation_of_any_size) {
  for (int order : {8, 16, 32, 64}) {
    for (double fill : {0.5, 0.8, 1.0}) {
      for (size_t size : {0, 1, 7, 8, 9, 16, 17, 63, 64, 65, 66, 129, 500, 4097, 30000}) {
        const auto entries = RandomEntries<uint32_t>(size, 5000, size);
        CheckTree(*BuildTree(entries, {order, fill}), Sorted(entries), size);
      }
      const auto entries = RandomEntries<uint64_t>(12345, 0, 1);
      CheckTree(*BuildTree(entries, {order, fill}), Sorted(entries), 1);
    }
  }
}

BOOST_AUTO_TEST_CASE(large_batches_are_answered_like_small_ones) {
  const auto narrow = Sorted(RandomEntries<uint32_t>(40000, 30000, 1));
  const auto wide = Sorted(RandomEntries<uint64_t>(40000, 0, 2));
  for (int order : {8, 16, 32, 64}) {
    CheckAnswers(*BuildTree(narrow, {order, 0.8}), narrow, 1, 70000);
    CheckAnswers(*BuildTree(wide, {order, 1}), wide, 2, 70000);
  }
}

BOOST_AUTO_TEST_CASE(inserts_one_by_one_keep_pages_sound) {
  for (const char* kind : {"random", "few keys", "ascending", "descending", "equal", "greatest",
                           "least and greatest"}) {
    CheckInserts<uint32_t>(kind, 8, 1, 0);
    CheckInserts<uint32_t>(kind, 16, 0.5, 3000);
    CheckInserts<uint32_t>(kind, 64, 1, 1);
    CheckInserts<uint64_t>(kind, 8, 1, 3000);
    CheckInserts<uint64_t>(kind, 32, 0.7, 100);
  }
}

// Every leaf, every page above and the root are full, so that the first insert splits them all.
BOOST_AUTO_TEST_CASE(one_insert_splits_every_page_up_to_a_new_root) {
  Entries<uint32_t> entries;
  for (uint32_t i = 0; i < 8 * 9 * 9 * 9; ++i) entries.emplace_back(i * 2, i);
  const auto tree = BuildTree(entries, {8, 1});
  std::set<std::pair<uint32_t, RowId>> expected(entries.begin(), entries.end());
  BOOST_TEST(tree->pages().layout.levels() == 4);
  InsertAndCheck(tree.get(), &expected, {{5001, 7}}, 1);
  BOOST_TEST(tree->pages().links->shape.levels == 5);
  BOOST_TEST(tree->pages().links->shape.pages[3] == 2u);
}

BOOST_AUTO_TEST_CASE(bulk_inserts_merge_and_leave_no_equal_pairs) {
  for (uint64_t most : {0, 50, 3000, 1}) {
    CheckBulkInserts<uint32_t>({16, 1}, 0, most);
    CheckBulkInserts<uint32_t>({8, 0.5}, 10000, most);
    CheckBulkInserts<uint64_t>({64, 0.75}, 10000, most);
  }
}

BOOST_AUTO_TEST_CASE(bulk_inserts_may_replace_rows_of_keys) {
  const auto entries = RandomEntries<uint32_t>(5000, 3000, 1);
  const auto added = RandomEntries<uint32_t>(2000, 3000, 2);
  const auto tree = BuildTree(entries, {16, 0.8});
  const DeviceEntries<uint32_t> device(added);
  BOOST_REQUIRE(tree->BulkInsert(device.keys.data(), device.row_ids.data(), added.size(),
                                 Duplicates::kReplaceRows, nullptr)
                    .ok());
  std::map<uint32_t, RowId> expected;
  for (const auto& [key, row_id] : Sorted(added)) expected.emplace(key, row_id);
  for (const auto& [key, row_id] : Sorted(entries)) expected.emplace(key, row_id);
  CheckTree(*tree, Entries<uint32_t>(expected.begin(), expected.end()), 3);
}

BOOST_AUTO_TEST_CASE(updates_without_memory_change_nothing) {
  const auto entries = Sorted(RandomEntries<uint32_t>(5000, 0, 1));
  const auto added = RandomEntries<uint32_t>(300, 0, 2);
  const DeviceEntries<uint32_t> device(added);
  auto tree = BuildTree(entries, {16, 1});
  const size_t allocated = AllocatedDeviceBytes();
  const auto bulk_insert = [&] {
    return tree->BulkInsert(device.keys.data(), device.row_ids.data(), added.size(),
                            Duplicates::kKeepRows, nullptr);
  };
  const auto insert = [&] {
    return tree->Insert(device.keys.data(), device.row_ids.data(), added.size(), nullptr).status();
  };
  const auto fails_everywhere = [&](const auto& update) {
    for (int64_t allowed = 0;; ++allowed) {
      BOOST_REQUIRE(allowed < 100);
      FailDeviceAllocationsAfter(allowed);
      const absl::Status status = update();
      FailDeviceAllocationsAfter(-1);
      if (status.ok()) break;
      BOOST_TEST(absl::IsResourceExhausted(status), status);
      CheckTree(*tree, entries, static_cast<uint64_t>(allowed));
    }
  };
  fails_everywhere(bulk_insert);
  BOOST_TEST(tree->size() == entries.size() + added.size());
  BOOST_TEST(AllocatedDeviceBytes() < allocated + (size_t{1} << 20));
  tree = BuildTree(entries, {16, 1});
  fails_everywhere(insert);
  BOOST_TEST(tree->size() == entries.size() + added.size());
}

BOOST_AUTO_TEST_CASE(traversals_visit_every_entry_once) {
  for (bool linked : {false, true}) {
    for (size_t size : {0, 1, 100, 20000}) {
      auto entries = RandomEntries<uint64_t>(size, 0, size);
      const auto tree = BuildTree(entries, {32, 0.6});
      std::set<std::pair<uint64_t, RowId>> expected(entries.begin(), entries.end());
      if (linked) {
        InsertAndCheck(tree.get(), &expected, RandomEntries<uint64_t>(500, 0, size + 1), size);
      }
      entries.assign(expected.begin(), expected.end());
      for (bool in_order : {false, true}) {
        const DeviceArray<uint64_t> keys(entries.size());
        const DeviceArray<RowId> rows(entries.size());
        const DeviceArray<uint32_t> tickets(entries.size());
        const DeviceArray<uint32_t> counter(std::vector<uint32_t>{0});
        const Visits<uint64_t> visits{keys.data(), rows.data(), tickets.data(), counter.data()};
        const absl::Status status =
            in_order ? VisitInOrder(*tree, visits) : VisitInParallel(*tree, visits);
        BOOST_REQUIRE_MESSAGE(status.ok(), status);
        const auto keys_seen = keys.ToHost();
        const auto rows_seen = rows.ToHost(), tickets_seen = tickets.ToHost();
        BOOST_REQUIRE(counter.ToHost()[0] == entries.size());
        for (size_t i = 0; i < entries.size(); ++i) {
          BOOST_REQUIRE((std::pair(keys_seen[i], rows_seen[i]) == entries[i]));
          // In order, a visit begins after all of the leaves before.
          if (in_order) BOOST_REQUIRE(tickets_seen[i] < i + 32 && tickets_seen[i] + 32 > i);
        }
      }
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace cairn::gpu
