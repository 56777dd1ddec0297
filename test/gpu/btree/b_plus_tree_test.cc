#include "gpu/btree/b_plus_tree.h"

#include <boost/test/unit_test.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "test/gpu/btree/b_plus_tree_check.h"
#include "test/gpu/btree/b_plus_tree_visits.h"
#include "test/gpu/needs_device.h"
#include "test/ordered_index_oracle.h"
#include "test/require_ok.h"

namespace cairn::gpu {
BOOST_FIXTURE_TEST_SUITE(b_plus_tree_test, NeedsDevice)
namespace {

template <typename Key>
void CheckCatalogueOf(int order, double fill, const char* method, size_t most) {
  const std::string factory =
      absl::StrFormat("gpu:btree,order=%d,fill=%g,method=%s", order, fill, method);
  CheckCatalogue<Key>(
      [&](SortedRun run) { return RequireOk(MakeOrderedIndex(factory, std::move(run))); }, most);
}

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
  const auto index = RequireOk(make("gpu:btree"));
  BOOST_TEST(index->description() == "gpu:btree,order=16,fill=1,method=combined");
  const auto wide = RequireOk(MakeDeviceIndex(
      "gpu:btree,fill=0.75", OracleRun(oracle::FinishIntegers<uint64_t>("", {1, 2, 3}))));
  BOOST_TEST(wide->description() == "gpu:btree,order=8,fill=0.75,method=combined");
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

// Every leaf, every page above and the root are full, so that the first insert splits them all.

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
        RequireOk(in_order ? VisitInOrder(*tree, visits) : VisitInParallel(*tree, visits));
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

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn::gpu
