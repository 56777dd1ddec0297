#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/transform_iterator.h>
#include <thrust/iterator/zip_iterator.h>
#include <thrust/tuple.h>

#include <cub/device/device_merge.cuh>
#include <cub/device/device_select.cuh>
#include <utility>

#include "gpu/btree/b_plus_tree_update.h"
#include "gpu/runtime/cuda_status.h"
#include "index/machine/status_macros.h"

namespace cairn::gpu {
namespace {

template <typename Key>
using Entry = thrust::tuple<Key, RowId>;

template <typename Key>
struct EntryLess {
  bool by_key_only;

  __host__ __device__ bool operator()(const Entry<Key>& a, const Entry<Key>& b) const {
    if (thrust::get<0>(a) != thrust::get<0>(b)) return thrust::get<0>(a) < thrust::get<0>(b);
    return !by_key_only && thrust::get<1>(a) < thrust::get<1>(b);
  }
};

// Whether an entry of a run is kept: only the first of equal entries is.
template <typename Key>
struct IsFirst {
  const Key* keys;
  const RowId* row_ids;
  bool by_key_only;

  __host__ __device__ bool operator()(size_t i) const {
    return i == 0 || keys[i - 1] != keys[i] || (!by_key_only && row_ids[i - 1] != row_ids[i]);
  }
};

template <typename Key>
absl::StatusOr<DeviceRun<Key>> AllocateRun(size_t size, cudaStream_t stream) {
  ASSIGN_OR_RETURN(DeviceBuffer<Key> keys, DeviceBuffer<Key>::Allocate(size, stream));
  ASSIGN_OR_RETURN(DeviceBuffer<RowId> row_ids, DeviceBuffer<RowId>::Allocate(size, stream));
  return DeviceRun<Key>{std::move(keys), std::move(row_ids), {}};
}

template <typename Key>
auto Entries(const DeviceRun<Key>& run) {
  return thrust::make_zip_iterator(run.keys.data(), run.row_ids.data());
}

// Calls a function of CUB twice: to get its scratch size, and with the scratch memory.
template <typename Call>
absl::Status CallWithScratch(Call call, cudaStream_t stream) {
  size_t bytes = 0;
  CAIRN_RETURN_IF_CUB_FAILS(call(nullptr, bytes));
  ASSIGN_OR_RETURN(DeviceBuffer<char> scratch, DeviceBuffer<char>::Allocate(bytes, stream));
  CAIRN_RETURN_IF_CUB_FAILS(call(scratch.data(), bytes));
  return absl::OkStatus();
}

}  // namespace

template <typename Key>
absl::StatusOr<MergedRun<Key>> MergeRuns(DeviceRun<Key> old, DeviceRun<Key> added,
                                         EqualKeys equal_keys, cudaStream_t stream) {
  const bool by_key_only = equal_keys == EqualKeys::kReplaceRows;
  const size_t size = old.size() + added.size();
  ASSIGN_OR_RETURN(DeviceRun<Key> merged, AllocateRun<Key>(size, stream));
  if (size == 0) return MergedRun<Key>{std::move(merged), 0};
  // If entries are equal, those of the first run come first.
  RETURN_IF_ERROR(CallWithScratch(
      [&](void* scratch, size_t& bytes) {
        return cub::DeviceMerge::MergeKeys(
            scratch, bytes, Entries(added), static_cast<int64_t>(added.size()), Entries(old),
            static_cast<int64_t>(old.size()), Entries(merged), EntryLess<Key>{by_key_only}, stream);
      },
      stream));
  old = {};
  added = {};
  ASSIGN_OR_RETURN(DeviceRun<Key> unique, AllocateRun<Key>(size, stream));
  ASSIGN_OR_RETURN(DeviceBuffer<int64_t> count, DeviceBuffer<int64_t>::Allocate(1, stream));
  RETURN_IF_ERROR(CallWithScratch(
      [&](void* scratch, size_t& bytes) {
        const IsFirst<Key> is_first{merged.keys.data(), merged.row_ids.data(), by_key_only};
        return cub::DeviceSelect::Flagged(
            scratch, bytes, Entries(merged),
            thrust::make_transform_iterator(thrust::make_counting_iterator(size_t{0}), is_first),
            Entries(unique), count.data(), static_cast<int64_t>(size), stream);
      },
      stream));
  int64_t kept = 0;
  CAIRN_RETURN_IF_CUDA_FAILS(
      cudaMemcpyAsync(&kept, count.data(), sizeof(kept), cudaMemcpyDeviceToHost, stream));
  CAIRN_RETURN_IF_CUDA_FAILS(cudaStreamSynchronize(stream));
  return MergedRun<Key>{std::move(unique), static_cast<size_t>(kept)};
}

template absl::StatusOr<MergedRun<uint32_t>> MergeRuns(DeviceRun<uint32_t>, DeviceRun<uint32_t>,
                                                       EqualKeys, cudaStream_t);
template absl::StatusOr<MergedRun<uint64_t>> MergeRuns(DeviceRun<uint64_t>, DeviceRun<uint64_t>,
                                                       EqualKeys, cudaStream_t);

}  // namespace cairn::gpu
