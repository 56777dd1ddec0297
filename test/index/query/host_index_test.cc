#include "index/query/host_index.h"

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <memory>
#include <string>
#include <vector>

#include "index/query/sorted_array.h"
#include "index/run/gallop.h"
#include "test/ordered_index_oracle.h"
#include "test/require_ok.h"
#include "test/sanitizer.h"

namespace cairn {
BOOST_AUTO_TEST_SUITE(host_index_test, *StartsNoThread())
namespace {

// A structure that implements only LowerBound.
template <typename Key>
class LowerBoundOnly : public HostIndex {
 public:
  LowerBoundOnly(SortedRun run, const std::vector<Key>& keys)
      : HostIndex(std::move(run)), keys_(keys) {}
  std::string description() const override { return "test:lower_bound_only"; }
  uint64_t memory_bytes() const override { return 0; }

 private:
  void LowerBound(KeyBatch batch, Position* positions) const override {
    const auto queries = batch.as<oracle::Physical<Key>>();
    for (size_t i = 0; i < queries.size(); ++i) {
      positions[i] = static_cast<Position>(
          std::lower_bound(keys_.begin(), keys_.end(), queries[i]) - keys_.begin());
    }
  }

  const std::vector<Key>& keys_;
};

template <typename Key>
void CheckDefaults() {
  for (const OracleData<Key>& data : OracleCatalogue<Key>(20000)) {
    CheckAgainstOracle(LowerBoundOnly<Key>(OracleRun(data), data.keys), data);
  }
}

SortedArray Strings(const std::vector<std::string_view>& keys) {
  std::vector<RowId> rows(keys.size());
  for (size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<RowId>(i);
  auto run = RequireOk(SortedRun::FromSorted(absl::MakeConstSpan(keys), rows));
  return SortedArray(std::move(run));
}

uint64_t CountPrefix(const OrderedIndex& index, std::string_view prefix) {
  uint64_t count = 0;
  const std::string_view prefixes[] = {prefix};
  RequireOk(index.Execute(Batch::Count(RangeBatch::Prefix(prefixes), absl::MakeSpan(&count, 1))));
  return count;
}

BOOST_AUTO_TEST_CASE(all_operations_follow_from_lower_bound) {
  CheckDefaults<uint32_t>();
  CheckDefaults<uint64_t>();
  CheckDefaults<std::string>();
}

BOOST_AUTO_TEST_CASE(find_first_also_writes_row_ids_of_64_bits) {
  for (const size_t entries : {size_t{0}, size_t{1000}}) {
    std::vector<uint32_t> sorted(entries);
    std::vector<RowId> rows(entries);
    for (size_t i = 0; i < entries; ++i) {
      sorted[i] = static_cast<uint32_t>(3 * i);
      rows[i] = i == 7 ? kNoRow - 1 : static_cast<RowId>(i * 5);
    }
    const SortedArray index(RequireOk(SortedRun::FromSorted(absl::MakeConstSpan(sorted), rows)));
    for (const size_t size : {1u, 2047u, 2048u, 2049u, 5000u}) {
      std::vector<uint32_t> keys(size);
      for (size_t i = 0; i < size; ++i) keys[i] = static_cast<uint32_t>(i * 7 % 3500);
      std::vector<RowId> narrow(size);
      std::vector<GlobalRowId> wide(size, 1), expected(size);
      RequireOk(index.Execute(Batch::FindFirst(keys, absl::MakeSpan(narrow))));
      RequireOk(index.Execute(Batch::FindFirst(keys, absl::MakeSpan(wide))));
      for (size_t i = 0; i < size; ++i) {
        expected[i] = narrow[i] == kNoRow ? kNoGlobalRow : GlobalRowId{narrow[i]};
      }
      BOOST_TEST((wide == expected));
      Batch both = Batch::FindFirst(keys, absl::MakeSpan(wide));
      both.values = absl::MakeSpan(narrow);
      BOOST_TEST(absl::IsInvalidArgument(index.Execute(both)));
      BOOST_TEST(absl::IsInvalidArgument(
          index.Execute(Batch::FindFirst(keys, absl::MakeSpan(wide).first(size - 1)))));
    }
  }
}

BOOST_AUTO_TEST_CASE(a_prefix_of_0xFF_bytes_goes_to_the_end) {
  const SortedArray index = Strings({"", "a", "\xfe", "\xff", "\xff\xff", "\xff\xff\x01"});
  BOOST_TEST(CountPrefix(index, "") == 6u);
  BOOST_TEST(CountPrefix(index, "\xff") == 3u);
  BOOST_TEST(CountPrefix(index, "\xff\xff") == 2u);
  BOOST_TEST(CountPrefix(index, "\xff\xff\xff") == 0u);
  BOOST_TEST(CountPrefix(index, "\xfe") == 1u);
}

BOOST_AUTO_TEST_CASE(prefixes_may_be_longer_than_any_buffer) {
  const std::string a(3000, 'a'), b = a + "b", c(100000, 'c'), d = c + "d", e = c + "\xff\xff";
  const SortedArray index = Strings({a, b, c, d, e});
  const std::string_view prefixes[] = {a, b, c, d, a, e, "c"};
  std::vector<uint64_t> counts(7);
  RequireOk(index.Execute(Batch::Count(RangeBatch::Prefix(prefixes), absl::MakeSpan(counts))));
  BOOST_CHECK((counts == std::vector<uint64_t>{2, 1, 3, 1, 2, 1, 3}));
}

BOOST_AUTO_TEST_CASE(everything_is_everything) {
  const SortedArray index = Strings({"", "b", "\xff\xff"});
  FindResult matches;
  QueryOptions options;
  options.order = Order::kDescending;
  options.limit = 2;
  options.with_keys = true;
  RequireOk(
      index.Execute(Batch::Scan(RangeBatch::Everything(PhysicalType::kBytes), &matches, options)));
  BOOST_CHECK((matches.row_ids == std::vector<RowId>{2, 1}));
  BOOST_CHECK(matches.keys.bytes(1) == "b");
}

BOOST_AUTO_TEST_CASE(a_warm_call_keeps_its_memory) {
  const auto catalogue = OracleCatalogue<uint64_t>(5000);
  const SortedArray index(OracleRun(catalogue.back()));
  FindResult matches;
  const KeyBatch keys(catalogue.back().queries);
  RequireOk(index.Execute(Batch::Find(keys, &matches)));
  const void* rows = matches.row_ids.data();
  const void* offsets = matches.offsets.data();
  matches.cursors = {"of an earlier call"};
  RequireOk(index.Execute(Batch::Find(keys, &matches)));
  BOOST_TEST(matches.row_ids.data() == rows);
  BOOST_TEST(matches.offsets.data() == offsets);
  BOOST_TEST(matches.cursors.empty());
}

BOOST_AUTO_TEST_CASE(galloping_finds_the_first_that_does_not_hold) {
  for (size_t last = 0; last < 70; ++last) {
    for (size_t first = 0; first <= last; ++first) {
      for (size_t answer = first; answer <= last; ++answer) {
        size_t probes = 0;
        BOOST_REQUIRE(Gallop(first, last, [&](size_t i) {
                        ++probes;
                        BOOST_REQUIRE((i >= first && i < last));
                        return i < answer;
                      }) == answer);
        BOOST_REQUIRE(probes <= 15u);
      }
    }
  }
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
