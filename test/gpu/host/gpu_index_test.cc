#include "gpu/host/gpu_index.h"

#include <cuda_runtime.h>

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "test/gpu/needs_device.h"
#include "test/ordered_index_oracle.h"
#include "test/require_ok.h"
#include "test/test_random.h"

namespace cairn::gpu {
BOOST_FIXTURE_TEST_SUITE(gpu_index_test, NeedsDevice)
namespace {

// Switch points so low that the catalog of small data sets crosses each of them many times.
HostBatchPolicy TinyPolicy() {
  HostBatchPolicy policy;
  policy.max_zero_copy = 64;
  policy.max_polled = 20;
  policy.min_chunk = 64;
  policy.max_chunk = 256;
  policy.max_staged_chunk = 128;
  policy.max_rows_from_run = 8;
  policy.piece_ranges = 100;
  policy.piece_rows = 1000;
  return policy;
}

std::unique_ptr<OrderedIndex> MakeIndex(const SortedRun& run, const HostBatchPolicy& policy) {
  auto index = RequireOk(MakeDeviceIndex("gpu:sorted_array", run));
  return std::make_unique<GpuIndex>(run, std::move(index), policy);
}

// An array in pinned memory.
template <typename T>
class PinnedArray {
 public:
  explicit PinnedArray(size_t size) : size_(size) {
    BOOST_REQUIRE(cudaMallocHost(&data_, size * sizeof(T) + 1) == cudaSuccess);
  }
  PinnedArray(const PinnedArray&) = delete;
  PinnedArray& operator=(const PinnedArray&) = delete;
  ~PinnedArray() { (void)cudaFreeHost(data_); }
  absl::Span<T> span() const { return {data_, size_}; }

 private:
  T* data_ = nullptr;
  size_t size_;
};

// Entries with some duplicates, and queries for them and for others, with the right answers.
template <typename Key>
struct Lookups {
  SortedRun run;
  std::vector<Key> keys;
  std::vector<Position> lower;

  Lookups(size_t entries, size_t queries) {
    auto random = TestRandom(entries + queries);
    const auto key = [&] { return static_cast<Key>(random() % (2 * entries)); };
    std::vector<Key> sorted(entries);
    std::generate(sorted.begin(), sorted.end(), key);
    std::sort(sorted.begin(), sorted.end());
    std::vector<RowId> rows(entries);
    for (size_t i = 0; i < entries; ++i) rows[i] = static_cast<RowId>(i);
    run = *SortedRun::FromSorted(sorted, rows);
    std::vector<Position> lower_of_key(2 * entries);
    size_t position = 0;
    for (size_t k = 0; k < lower_of_key.size(); ++k) {
      while (position < entries && sorted[position] < k) ++position;
      lower_of_key[k] = static_cast<Position>(position);
    }
    keys.resize(queries);
    std::generate(keys.begin(), keys.end(), key);
    lower.resize(queries);
    for (size_t i = 0; i < queries; ++i) lower[i] = lower_of_key[keys[i]];
  }
};

// Executes batches of every size, from and to ordinary and pinned memory.
template <typename Key>
void CheckSizes(const Lookups<Key>& lookups, const HostBatchPolicy& policy,
                const std::vector<size_t>& sizes) {
  const std::unique_ptr<OrderedIndex> index = MakeIndex(lookups.run, policy);
  const PinnedArray<Key> pinned_keys(lookups.keys.size());
  std::copy(lookups.keys.begin(), lookups.keys.end(), pinned_keys.span().begin());
  const PinnedArray<Position> pinned_positions(lookups.keys.size());
  std::vector<Position> positions(lookups.keys.size());
  for (size_t size : sizes) {
    BOOST_REQUIRE(size <= lookups.keys.size());
    for (const absl::Span<const Key> keys :
         {absl::MakeConstSpan(lookups.keys), absl::Span<const Key>(pinned_keys.span())}) {
      for (const absl::Span<Position> out : {absl::MakeSpan(positions), pinned_positions.span()}) {
        std::fill(out.begin(), out.end(), 0xDEAD0000);
        RequireOk(index->Execute(Batch::LowerBound(keys.first(size), out.first(size))));
        BOOST_TEST(std::equal(out.begin(), out.begin() + size, lookups.lower.begin()),
                   size << " queries");
        BOOST_TEST(std::count(out.begin() + size, out.end(), 0xDEAD0000) ==
                   static_cast<ptrdiff_t>(out.size() - size));
      }
    }
  }
}

std::vector<size_t> Around(std::initializer_list<size_t> sizes) {
  std::vector<size_t> around = {0, 1, 2, 4095, 4096, 4097};
  for (size_t size : sizes) around.insert(around.end(), {size - 1, size, size + 1});
  return around;
}

BOOST_AUTO_TEST_CASE(every_operation_agrees_with_the_oracle) {
  const auto make = [](SortedRun run) {
    return RequireOk(MakeOrderedIndex("gpu:sorted_array", std::move(run)));
  };
  CheckCatalogue<uint32_t>(make, 20000);
  CheckCatalogue<uint64_t>(make, 20000);
}

BOOST_AUTO_TEST_CASE(every_operation_agrees_with_the_oracle_in_chunks_and_pieces) {
  const auto make = [](const SortedRun& run) { return MakeIndex(run, TinyPolicy()); };
  CheckCatalogue<uint32_t>(make, 5000);
  CheckCatalogue<uint64_t>(make, 5000);
}

BOOST_AUTO_TEST_CASE(batches_of_every_size_around_the_switch_points) {
  HostBatchPolicy policy;
  policy.max_polled = 1000;
  policy.max_zero_copy = 4096;
  policy.chunks = 8;
  policy.min_chunk = 4096;
  policy.max_chunk = 16384;
  policy.max_staged_chunk = 8192;
  const std::vector<size_t> sizes = Around(
      {8192, 2 * 8192, 4 * 8192, 5 * 8192, 8 * 4096, 8 * 8192, 8 * 16384, 9 * 16384, 150000});
  CheckSizes(Lookups<uint32_t>(30000, 150001), policy, sizes);
  CheckSizes(Lookups<uint64_t>(30000, 150001), policy, sizes);
}

BOOST_AUTO_TEST_CASE(batches_around_the_switch_points_of_production) {
  const HostBatchPolicy policy;
  const std::vector<size_t> sizes = Around(
      {policy.max_polled, policy.max_zero_copy, policy.min_chunk, policy.chunks * policy.min_chunk,
       policy.chunks * policy.max_chunk, (policy.chunks + 1) * policy.max_chunk});
  CheckSizes(Lookups<uint32_t>(1000000, (policy.chunks + 1) * policy.max_chunk + 1), policy, sizes);
}

// Results that equal the placeholder that marks a missing result.
BOOST_AUTO_TEST_CASE(row_ids_of_every_pattern_are_found) {
  std::vector<uint32_t> keys(255);
  std::vector<RowId> rows(255);
  for (uint32_t i = 0; i < 255; ++i) {
    keys[i] = i;
    rows[i] = i * 0x01010101u;  // 0xFEFEFEFE among them
  }
  const std::unique_ptr<OrderedIndex> index = MakeIndex(*SortedRun::FromSorted(keys, rows), {});
  std::vector<RowId> found(255);
  RequireOk(index->Execute(Batch::FindFirst(keys, absl::MakeSpan(found))));
  BOOST_TEST(found == rows);
}

BOOST_AUTO_TEST_CASE(a_scan_of_one_range_that_is_longer_than_many_pieces) {
  const Lookups<uint64_t> lookups(200000, 1);
  const std::unique_ptr<OrderedIndex> index = MakeIndex(lookups.run, TinyPolicy());
  for (Order order : {Order::kAscending, Order::kDescending}) {
    for (uint64_t limit : {uint64_t{99999}, UINT64_MAX}) {
      FindResult matches;
      QueryOptions options;
      options.order = order;
      options.limit = limit;
      options.with_keys = true;
      RequireOk(index->Execute(
          Batch::Scan(RangeBatch::Everything(PhysicalType::kU64), &matches, options)));
      const size_t count = std::min<uint64_t>(limit, 200000);
      BOOST_REQUIRE(matches.row_ids.size() == count);
      BOOST_REQUIRE(matches.keys.size() == count);
      size_t wrong = 0;
      for (size_t i = 0; i < count; ++i) {
        const size_t position = order == Order::kAscending ? i : 199999 - i;
        wrong += matches.row_ids[i] != lookups.run.row_ids()[position] ||
                 matches.keys.u64(i) != lookups.run.u64()[position];
      }
      BOOST_TEST(wrong == 0u);
    }
  }
}

BOOST_AUTO_TEST_CASE(a_description_makes_the_same_index) {
  const Lookups<uint32_t> lookups(1000, 1);
  const std::unique_ptr<OrderedIndex> index = MakeIndex(lookups.run, {});
  auto again = RequireOk(MakeOrderedIndex(index->description(), lookups.run));
  BOOST_TEST(again->description() == index->description());
  BOOST_TEST(again->memory_bytes() == index->memory_bytes());
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn::gpu
