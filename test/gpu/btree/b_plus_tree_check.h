#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cstdint>
#include <limits>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "gpu/btree/b_plus_tree.h"
#include "test/gpu/btree/b_plus_tree_pages_check.h"
#include "test/gpu/device_array.h"
#include "test/require_ok.h"
#include "test/test_random.h"

// Common code of the tests of B+-trees.
namespace cairn::gpu {

template <typename Key>
using Entries = std::vector<std::pair<Key, RowId>>;

template <typename Key>
std::unique_ptr<BPlusTree<Key>> BuildTree(const Entries<Key>& entries, BPlusTreeOptions options) {
  std::vector<Key> keys;
  std::vector<RowId> row_ids;
  for (const auto& [key, row_id] : entries) keys.push_back(key), row_ids.push_back(row_id);
  const DeviceArray<Key> device_keys(keys);
  const DeviceArray<RowId> device_rows(row_ids);
  auto run = RequireOk(SortToRun(device_keys.data(), device_rows.data(), keys.size(), nullptr));
  return RequireOk(BuildBPlusTree(std::move(run), options, nullptr));
}

// Queries a tree for its keys and adjacent ones, and compares with its entries.
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
  const DeviceKeys keys(device_queries.data(), size);
  const DeviceArray<Position> lower(size), upper(size);
  const DeviceArray<RowId> first(size);
  const DeviceArray<bool> found(size);
  RequireOk(tree.Execute(DeviceBatch::LowerBound(keys, lower.data()), nullptr));
  RequireOk(tree.Execute(DeviceBatch::UpperBound(keys, upper.data()), nullptr));
  RequireOk(tree.Execute(DeviceBatch::FindFirst(keys, first.data()), nullptr));
  RequireOk(tree.Execute(DeviceBatch::Contains(keys, found.data()), nullptr));
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
    RequireOk(tree.CopyRows(begin.data(), device_offsets.data(), begins.size(), offsets.back(),
                            order, rows.data(), nullptr));
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
struct EntriesOnDevice {
  explicit EntriesOnDevice(const Entries<Key>& entries)
      : keys(Column(entries, [](const auto& e) { return e.first; })),
        row_ids(Column(entries, [](const auto& e) { return e.second; })) {}

  template <typename Get>
  static auto Column(const Entries<Key>& entries, Get get) {
    std::vector<decltype(get(entries[0]))> column;
    for (const auto& entry : entries) column.push_back(get(entry));
    return column;
  }

  DeviceKeys all_keys() const { return {keys.data(), keys.size()}; }

  DeviceArray<Key> keys;
  DeviceArray<RowId> row_ids;
};

// Inserts into the tree and the set, one by one, and compares.
template <typename Key>
void InsertAndCheck(BPlusTree<Key>* tree, std::set<std::pair<Key, RowId>>* expected,
                    const Entries<Key>& added, uint64_t salt) {
  const EntriesOnDevice<Key> device(added);
  const auto inserted = RequireOk(tree->Insert(device.all_keys(), device.row_ids.data(), nullptr));
  size_t fresh = 0;
  for (const auto& entry : added) fresh += expected->insert(entry).second ? 1 : 0;
  BOOST_TEST(inserted == fresh);
  CheckTree(*tree, Entries<Key>(expected->begin(), expected->end()), salt);
}

}  // namespace cairn::gpu
