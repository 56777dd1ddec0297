#include <boost/test/unit_test.hpp>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "gpu/btree/b_plus_tree.h"
#include "gpu/runtime/injected_failure.h"
#include "test/gpu/btree/b_plus_tree_check.h"
#include "test/gpu/needs_device.h"
#include "test/require_ok.h"

namespace cairn::gpu {
BOOST_FIXTURE_TEST_SUITE(b_plus_tree_update_test, NeedsDevice)
namespace {

// Orders of inserts that are hard for trees; `step` distinguishes batches.
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
    const EntriesOnDevice<Key> device(added);
    RequireOk(
        tree->BulkInsert(device.all_keys(), device.row_ids.data(), EqualKeys::kKeepRows, nullptr));
    expected.insert(added.begin(), added.end());
    CheckTree(*tree, Entries<Key>(expected.begin(), expected.end()), count);
    // Single inserts between, so that linked pages are merged too.
    InsertAndCheck(tree.get(), &expected, RandomEntries<Key>(20, most, count + 9), count);
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
  const EntriesOnDevice<uint32_t> device(added);
  RequireOk(
      tree->BulkInsert(device.all_keys(), device.row_ids.data(), EqualKeys::kReplaceRows, nullptr));
  std::map<uint32_t, RowId> expected;
  for (const auto& [key, row_id] : Sorted(added)) expected.emplace(key, row_id);
  for (const auto& [key, row_id] : Sorted(entries)) expected.emplace(key, row_id);
  CheckTree(*tree, Entries<uint32_t>(expected.begin(), expected.end()), 3);
}

BOOST_AUTO_TEST_CASE(updates_without_memory_change_nothing) {
  const auto entries = Sorted(RandomEntries<uint32_t>(5000, 0, 1));
  const auto added = RandomEntries<uint32_t>(300, 0, 2);
  const EntriesOnDevice<uint32_t> device(added);
  auto tree = BuildTree(entries, {16, 1});
  const size_t allocated = AllocatedDeviceBytes();
  const auto bulk_insert = [&] {
    return tree->BulkInsert(device.all_keys(), device.row_ids.data(), EqualKeys::kKeepRows,
                            nullptr);
  };
  const auto insert = [&] {
    return tree->Insert(device.all_keys(), device.row_ids.data(), nullptr).status();
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

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn::gpu
