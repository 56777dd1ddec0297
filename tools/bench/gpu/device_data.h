#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cairn/device.h"
#include "gpu/run/device_run.h"
#include "gpu/runtime/device_memory.h"

// Entries and queries for benchmarks on a GPU, made in device memory, and checks of answers in
// device memory. All functions are instantiated for uint32_t and uint64_t, and wait unless
// documented otherwise.
namespace cairn::bench {

// The distribution of the keys of 2^k entries. Entry i has row id i; entries are unordered.
enum class KeySet : uint8_t {
  kUniform,     // distinct, uniform over all keys
  kClustered,   // distinct, sixteen runs of consecutive keys
  kRuns,        // distinct, many runs of ten consecutive keys
  kDuplicates,  // uniform, sixteen entries per key
  kNearUnique,  // uniform, two entries for every 127th key, otherwise one
};
// "", "clustered", "runs", "duplicates", "near_unique".
const char* KeySetName(KeySet set);

template <typename Key>
struct EntrySet {
  KeySet set;
  int log2_n;
  gpu::DeviceBuffer<Key> keys;
  gpu::DeviceBuffer<RowId> row_ids;  // 0, 1, 2, …
  gpu::DeviceRun<Key> run;           // the same sorted, checked against the rule

  size_t size() const { return keys.size(); }
};

// The keys of the queries.
enum class QueryMix : uint8_t {
  kHits,      // keys of the index, each entry equally likely, in random order
  kHalfMiss,  // every second key is absent
  kMiss,      // absent keys: uniform in the gaps of uniform keys, otherwise next to runs
  kZipf,      // a few keys are frequent (theta 0.99, over all keys in random order)
  kSorted,    // hits in ascending order
};
// "", "half_miss", "miss", "zipf", "sorted".
const char* QueryMixName(QueryMix mix);

template <typename Key>
struct QuerySet {
  QueryMix mix;
  gpu::DeviceBuffer<Key> keys;
  gpu::DeviceBuffer<RowId> row_ids;  // the first row of each, or kNoRow

  size_t size() const { return keys.size(); }
};

// Ranges that each contain `hits` entries, from key to key (both inclusive), in random order. Only
// for sets of distinct keys.
template <typename Key>
struct RangeSet {
  gpu::DeviceBuffer<Key> lower;
  gpu::DeviceBuffer<Key> upper;

  size_t size() const { return lower.size(); }
  DeviceRanges ranges() const;
};

// The shape of most benchmarks.
inline constexpr size_t kDeviceQueries = size_t{1} << 27;

// Each returns its last result if the arguments are the same; otherwise it frees that first. So
// benchmarks of one data set should follow each other, and within it those of one index.
// 10 <= log2_n <= 30.
template <typename Key>
absl::StatusOr<std::shared_ptr<const EntrySet<Key>>> GetEntries(KeySet set, int log2_n);
template <typename Key>
absl::StatusOr<std::shared_ptr<const QuerySet<Key>>> GetQueries(KeySet set, int log2_n,
                                                                QueryMix mix,
                                                                size_t size = kDeviceQueries);
template <typename Key>
absl::StatusOr<std::shared_ptr<const DeviceIndex>> GetIndex(const std::string& factory, KeySet set,
                                                            int log2_n);
// Not kept; enqueued on `stream`.
template <typename Key>
absl::StatusOr<RangeSet<Key>> MakeRanges(const EntrySet<Key>& entries, size_t size, size_t hits,
                                         cudaStream_t stream);

// Checks of the answers that `stream` will have written to device memory. Errors: Internal if any
// answer is wrong, with the number of wrong answers and the first.

// Answers to queries [first, first + size): first rows, whether there is one, lower bounds.
template <typename Key>
absl::Status CheckFirstRows(const QuerySet<Key>& queries, size_t first, size_t size,
                            const RowId* row_ids, cudaStream_t stream);
template <typename Key>
absl::Status CheckFound(const QuerySet<Key>& queries, size_t first, size_t size, const bool* found,
                        cudaStream_t stream);
template <typename Key>
absl::Status CheckPositions(const EntrySet<Key>& entries, const QuerySet<Key>& queries,
                            size_t first, size_t size, const Position* positions,
                            cudaStream_t stream);
// First rows in any order: row_ids[i] answers query query_of[i], and each of queries [0, size) is
// answered once.
template <typename Key>
absl::Status CheckFirstRowsOf(const QuerySet<Key>& queries, size_t size, const uint32_t* query_of,
                              const RowId* row_ids, cudaStream_t stream);
// All rows of the ranges from lower[i] to upper[i], both inclusive, ascending, as by PlanScan and
// CopyRows.
template <typename Key>
absl::Status CheckMatches(const EntrySet<Key>& entries, const Key* lower, const Key* upper,
                          size_t size, const uint64_t* offsets, const RowId* row_ids,
                          cudaStream_t stream);

}  // namespace cairn::bench
