#include "tools/bench/gpu/device_data.h"

#include <utility>

#include "absl/strings/str_format.h"
#include "gpu/runtime/cuda_status.h"
#include "gpu/runtime/launch.h"
#include "gpu/runtime/stream.h"
#include "index/machine/status_macros.h"
#include "tools/bench/gpu/check_each.cuh"
#include "tools/bench/gpu/key_rule.cuh"
#include "tools/bench/gpu/launch_check.h"
#include "tools/bench/zipf.h"

namespace cairn::bench {
namespace {

using gpu::DeviceBuffer;
using gpu::ForEachIndex;
using gpu::kSimpleThreads;
using gpu::SimpleBlocks;

constexpr uint64_t kQuerySeed = 20261121, kRangeSeed = 20261122;

template <typename Key>
__global__ void MakeEntries(KeyRule<Key> rule, Key* keys, RowId* row_ids) {
  ForEachIndex(rule.entries(), [=](size_t i) {
    keys[i] = rule.KeyOf(static_cast<RowId>(i));
    row_ids[i] = static_cast<RowId>(i);
  });
}

template <typename Key>
__global__ void MakeQueries(KeyRule<Key> rule, QueryMix mix, Zipf zipf, Key* keys, RowId* row_ids,
                            size_t size) {
  ForEachIndex(size, [=](size_t i) {
    const uint64_t random = DrawRandom(kQuerySeed, i);
    if (mix == QueryMix::kMiss || (mix == QueryMix::kHalfMiss && i % 2 == 1)) {
      keys[i] = rule.AbsentKey(random);
      row_ids[i] = kNoRow;
      return;
    }
    const size_t distinct = rule.distinct();
    const size_t key = mix == QueryMix::kZipf ? zipf.Rank(random) : Below(random, distinct);
    row_ids[i] = rule.FirstRow(key);
    keys[i] = rule.KeyOf(row_ids[i]);
  });
}

template <typename Key>
__global__ void CutRanges(const Key* keys, size_t n, size_t hits, Key* lower, Key* upper,
                          size_t size) {
  ForEachIndex(size, [=](size_t i) {
    const size_t first = Below(DrawRandom(kRangeSeed, i), n - hits + 1);
    lower[i] = keys[first];
    upper[i] = keys[first + hits - 1];
  });
}

// Whether a run holds the rule's entries in (key, row id) order.
template <typename Key>
absl::Status CheckRun(KeyRule<Key> rule, const gpu::DeviceRun<Key>& run, cudaStream_t stream) {
  const Key* keys = run.keys.data();
  const RowId* row_ids = run.row_ids.data();
  return CheckEach(run.size(), stream, [=] __device__(size_t i) {
    const bool follows =
        i == 0 || keys[i - 1] < keys[i] || (keys[i - 1] == keys[i] && row_ids[i - 1] < row_ids[i]);
    return !follows || row_ids[i] >= rule.entries() || keys[i] != rule.KeyOf(row_ids[i]);
  });
}

template <typename Key>
absl::StatusOr<EntrySet<Key>> NewEntries(KeySet set, int log2_n, cudaStream_t stream) {
  const KeyRule<Key> rule{set, log2_n};
  const size_t n = rule.entries();
  ASSIGN_OR_RETURN(DeviceBuffer<Key> keys, DeviceBuffer<Key>::Allocate(n, stream));
  ASSIGN_OR_RETURN(DeviceBuffer<RowId> row_ids, DeviceBuffer<RowId>::Allocate(n, stream));
  MakeEntries<<<SimpleBlocks(n), kSimpleThreads, 0, stream>>>(rule, keys.data(), row_ids.data());
  CAIRN_RETURN_IF_LAUNCH_FAILED("MakeEntries");
  ASSIGN_OR_RETURN(auto run, gpu::SortToRun(keys.data(), row_ids.data(), n, stream));
  RETURN_IF_ERROR(CheckRun(rule, run, stream));
  keys.SetStream(nullptr), row_ids.SetStream(nullptr);
  run.keys.SetStream(nullptr), run.row_ids.SetStream(nullptr);
  return EntrySet<Key>{set, log2_n, std::move(keys), std::move(row_ids), std::move(run)};
}

template <typename Key>
absl::Status SortQueries(QuerySet<Key>* queries, cudaStream_t stream) {
  ASSIGN_OR_RETURN(auto sorted, gpu::SortToRun(queries->keys.data(), queries->row_ids.data(),
                                               queries->size(), stream));
  queries->keys = std::move(sorted.keys);
  queries->row_ids = std::move(sorted.row_ids);
  return absl::OkStatus();
}

template <typename Key>
absl::StatusOr<QuerySet<Key>> NewQueries(KeySet set, int log2_n, QueryMix mix, size_t size,
                                         cudaStream_t stream) {
  const KeyRule<Key> rule{set, log2_n};
  QuerySet<Key> queries{mix, {}, {}};
  ASSIGN_OR_RETURN(DeviceBuffer<Key> keys, DeviceBuffer<Key>::Allocate(size, stream));
  ASSIGN_OR_RETURN(DeviceBuffer<RowId> row_ids, DeviceBuffer<RowId>::Allocate(size, stream));
  queries.keys = std::move(keys);
  queries.row_ids = std::move(row_ids);
  MakeQueries<<<SimpleBlocks(size), kSimpleThreads, 0, stream>>>(
      rule, mix, Zipf(rule.distinct()), queries.keys.data(), queries.row_ids.data(), size);
  CAIRN_RETURN_IF_LAUNCH_FAILED("MakeQueries");
  if (mix == QueryMix::kSorted) {
    RETURN_IF_ERROR(SortQueries(&queries, stream));
  }
  CAIRN_RETURN_IF_CUDA_FAILS(cudaStreamSynchronize(stream));
  queries.keys.SetStream(nullptr), queries.row_ids.SetStream(nullptr);
  return queries;
}

// A value in device memory that benchmarks share, by name; only the last one is kept.
class Cached {
 public:
  // make(stream) returns a StatusOr<T>.
  template <typename T, typename Make>
  absl::StatusOr<std::shared_ptr<const T>> Get(const std::string& name, Make make) {
    if (name_ == name) return std::static_pointer_cast<const T>(value_);
    name_.clear();
    value_ = nullptr;
    ASSIGN_OR_RETURN(const gpu::Stream stream, gpu::Stream::Create());
    ASSIGN_OR_RETURN(T made, make(stream.get()));
    auto value = std::make_shared<const T>(std::move(made));
    value_ = value;
    name_ = name;
    return value;
  }

 private:
  std::string name_;
  std::shared_ptr<const void> value_;
};

// Never destroyed, since the device may be gone when static objects are destroyed.
struct Caches {
  Cached entries, queries, index;
};
Caches& SharedCaches() {
  static Caches& caches = *new Caches;
  return caches;
}

template <typename Key>
std::string SetName(KeySet set, int log2_n) {
  return absl::StrFormat("u%d/%s/n:%d", 8 * sizeof(Key), KeySetName(set), log2_n);
}

}  // namespace

const char* KeySetName(KeySet set) {
  constexpr const char* kNames[] = {"", "clustered", "runs", "duplicates", "near_unique"};
  return kNames[static_cast<size_t>(set)];
}

const char* QueryMixName(QueryMix mix) {
  constexpr const char* kNames[] = {"", "half_miss", "miss", "zipf", "sorted"};
  return kNames[static_cast<size_t>(mix)];
}

template <typename Key>
DeviceRanges RangeSet<Key>::ranges() const {
  return {DeviceKeys(lower.data(), size()), DeviceKeys(upper.data(), size()), Bound::kInclusive,
          Bound::kInclusive};
}

template <typename Key>
absl::StatusOr<std::shared_ptr<const EntrySet<Key>>> GetEntries(KeySet set, int log2_n) {
  return SharedCaches().entries.Get<EntrySet<Key>>(
      SetName<Key>(set, log2_n),
      [&](cudaStream_t stream) { return NewEntries<Key>(set, log2_n, stream); });
}

template <typename Key>
absl::StatusOr<std::shared_ptr<const QuerySet<Key>>> GetQueries(KeySet set, int log2_n,
                                                                QueryMix mix, size_t size) {
  return SharedCaches().queries.Get<QuerySet<Key>>(
      absl::StrFormat("%s/%s/%d", SetName<Key>(set, log2_n), QueryMixName(mix), size),
      [&](cudaStream_t stream) { return NewQueries<Key>(set, log2_n, mix, size, stream); });
}

template <typename Key>
absl::StatusOr<std::shared_ptr<const DeviceIndex>> GetIndex(const std::string& factory, KeySet set,
                                                            int log2_n) {
  ASSIGN_OR_RETURN(const auto entries, GetEntries<Key>(set, log2_n));
  const EntrySet<Key>& e = *entries;
  ASSIGN_OR_RETURN(
      const auto index,
      SharedCaches().index.Get<std::unique_ptr<DeviceIndex>>(
          absl::StrFormat("%s/%s", SetName<Key>(set, log2_n), factory), [&](cudaStream_t stream) {
            return MakeDeviceIndex(factory, DeviceKeys(e.keys.data(), e.size()), e.row_ids.data(),
                                   stream);
          }));
  return std::shared_ptr<const DeviceIndex>(index, index->get());
}

template <typename Key>
absl::StatusOr<RangeSet<Key>> MakeRanges(const EntrySet<Key>& entries, size_t size, size_t hits,
                                         cudaStream_t stream) {
  ASSIGN_OR_RETURN(DeviceBuffer<Key> lower, DeviceBuffer<Key>::Allocate(size, stream));
  ASSIGN_OR_RETURN(DeviceBuffer<Key> upper, DeviceBuffer<Key>::Allocate(size, stream));
  CutRanges<<<SimpleBlocks(size), kSimpleThreads, 0, stream>>>(
      entries.run.keys.data(), entries.size(), hits, lower.data(), upper.data(), size);
  CAIRN_RETURN_IF_LAUNCH_FAILED("CutRanges");
  return RangeSet<Key>{std::move(lower), std::move(upper)};
}

#define CAIRN_INSTANTIATE(Key)                                                                    \
  template struct RangeSet<Key>;                                                                  \
  template absl::StatusOr<std::shared_ptr<const EntrySet<Key>>> GetEntries(KeySet, int);          \
  template absl::StatusOr<std::shared_ptr<const QuerySet<Key>>> GetQueries(KeySet, int, QueryMix, \
                                                                           size_t);               \
  template absl::StatusOr<std::shared_ptr<const DeviceIndex>> GetIndex<Key>(const std::string&,   \
                                                                            KeySet, int);         \
  template absl::StatusOr<RangeSet<Key>> MakeRanges(const EntrySet<Key>&, size_t, size_t,         \
                                                    cudaStream_t);
CAIRN_INSTANTIATE(uint32_t)
CAIRN_INSTANTIATE(uint64_t)
#undef CAIRN_INSTANTIATE

}  // namespace cairn::bench
