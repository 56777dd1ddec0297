#include <cub/device/device_radix_sort.cuh>
#include <type_traits>
#include <utility>

#include "absl/strings/str_format.h"
#include "cairn/device.h"
#include "gpu/runtime/cuda_status.h"
#include "gpu/runtime/device_memory.h"
#include "gpu/runtime/launch.h"
#include "gpu/runtime/stream.h"
#include "index/machine/status_macros.h"

namespace cairn {
namespace {

using gpu::DeviceBuffer;
using gpu::ForEachIndex;
using gpu::OnDevice;
using gpu::SimpleShape;

__global__ void Iota(uint32_t* values, size_t size) {
  ForEachIndex(size, [=](size_t i) { values[i] = static_cast<uint32_t>(i); });
}

template <typename T>
__global__ void Scatter(const T* values, const uint32_t* places, size_t size, T* out) {
  ForEachIndex(size, [=](size_t i) { out[places[i]] = values[i]; });
}

// Stable sort of pairs by bits [first, last) of their keys, out of place.
template <typename Key>
absl::Status SortPairs(const Key* keys, const uint32_t* values, size_t size, int first, int last,
                       Key* sorted_keys, uint32_t* sorted_values, cudaStream_t stream) {
  size_t bytes = 0;
  CAIRN_RETURN_IF_CUB_FAILS(cub::DeviceRadixSort::SortPairs(
      nullptr, bytes, keys, sorted_keys, values, sorted_values, size, first, last, stream));
  ASSIGN_OR_RETURN(const DeviceBuffer<char> scratch, DeviceBuffer<char>::Allocate(bytes, stream));
  CAIRN_RETURN_IF_CUB_FAILS(cub::DeviceRadixSort::SortPairs(
      scratch.data(), bytes, keys, sorted_keys, values, sorted_values, size, first, last, stream));
  return absl::OkStatus();
}

// Sorts the queries by their leading `bits` bits. query_of[i] is the position among `keys` of
// sorted[i].
template <typename Key>
absl::Status OrderQueries(const Key* keys, size_t size, int bits, Key* sorted, uint32_t* query_of,
                          cudaStream_t stream) {
  constexpr int kBits = static_cast<int>(8 * sizeof(Key));
  ASSIGN_OR_RETURN(const DeviceBuffer<uint32_t> places,
                   DeviceBuffer<uint32_t>::Allocate(size, stream));
  CAIRN_RETURN_IF_LAUNCH_FAILS("Iota", SimpleShape(size), stream, Iota, places.data(), size);
  return SortPairs(keys, places.data(), size, kBits - bits, kBits, sorted, query_of, stream);
}

// Writes values[i] to out[places[i]]; does nothing if `out` is null.
template <typename T>
absl::Status ScatterTo(const T* values, const uint32_t* places, size_t size, T* out,
                       cudaStream_t stream) {
  if (out == nullptr) return absl::OkStatus();
  // It does not pay to first group the results by the leading bits of their positions. For 2^27
  // results, grouping takes 1.1 ms and scattering then 7.3 ms, not 7.5 (8 bits), or 2.0 and 5.6 ms
  // (10 bits).
  CAIRN_RETURN_IF_LAUNCH_FAILS("Scatter", SimpleShape(size), stream, Scatter<T>, values, places,
                               size, out);
  return absl::OkStatus();
}

// Executes the queries, whose keys are `keys`, in another order, and writes the results in the
// requested order.
template <typename Key>
absl::Status AnswerInOrder(const DeviceIndex& index, const DeviceBatch& batch, const Key* keys,
                           const DeviceStrategyOptions& options, uint32_t* query_of,
                           cudaStream_t stream) {
  const size_t size = batch.keys.size();
  const bool scatter = options.order == ResultOrder::kCaller;
  ASSIGN_OR_RETURN(DeviceBuffer<Key> sorted, DeviceBuffer<Key>::Allocate(size, stream));
  DeviceBatch in_order = batch;
  in_order.keys = DeviceKeys(sorted.data(), size);
  // Positions among the caller's results, and temporary results.
  const bool finds = batch.operation == Operation::kContains;
  const bool has_ends = batch.operation == Operation::kEqualRange;
  ASSIGN_OR_RETURN(const DeviceBuffer<uint32_t> own,
                   DeviceBuffer<uint32_t>::Allocate(
                       scatter ? (1 + (finds ? 0 : 1) + (has_ends ? 1 : 0)) * size : 0, stream));
  ASSIGN_OR_RETURN(const DeviceBuffer<bool> own_found,
                   DeviceBuffer<bool>::Allocate(scatter && finds ? size : 0, stream));
  if (scatter) {
    query_of = own.data();
    in_order.values = own.data() + size;
    in_order.ends = own.data() + 2 * size;
    in_order.found = own_found.data();
  }
  const int bits = options.strategy == Strategy::kSortBased ? static_cast<int>(8 * sizeof(Key))
                                                            : options.part_bits;
  absl::Status s = OrderQueries(keys, size, bits, sorted.data(), query_of, stream);
  if (s.ok()) s = index.Execute(in_order, stream);
  if (!s.ok() || !scatter) return s;
  if (finds) return ScatterTo(in_order.found, query_of, size, batch.found, stream);
  s = ScatterTo(in_order.values, query_of, size, batch.values, stream);
  return s.ok() && has_ends ? ScatterTo(in_order.ends, query_of, size, batch.ends, stream) : s;
}

absl::Status CheckOptions(const DeviceBatch& batch, const DeviceStrategyOptions& options,
                          const uint32_t* query_of) {
  const bool by_key = options.order == ResultOrder::kKey;
  if (by_key && (options.strategy == Strategy::kUnbuffered || TakesRanges(batch.operation))) {
    return absl::InvalidArgumentError(
        "results in key order: not supported for ranges or the unbuffered strategy");
  }
  if (by_key != (query_of != nullptr)) {
    return absl::InvalidArgumentError(
        by_key ? "query_of: expected an array for results in key order, got null"
               : "query_of: expected null for results in the caller's order");
  }
  if (options.part_bits < 1 || options.part_bits > 16) {
    return absl::InvalidArgumentError(
        absl::StrFormat("part_bits: expected 1 to 16, got %d", options.part_bits));
  }
  if (batch.size() > kMaxEntries) {
    return absl::InvalidArgumentError(
        absl::StrFormat("batch: got %d keys, expected at most %d", batch.size(), kMaxEntries));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status Execute(const DeviceIndex& index, const DeviceBatch& batch,
                     const DeviceStrategyOptions& options, uint32_t* query_of,
                     DeviceStream stream) {
  RETURN_IF_ERROR(CheckOptions(batch, options, query_of));
  const DeviceKeys keys = batch.keys;
  // The index itself refuses keys of another type and operations on rows.
  if (options.strategy == Strategy::kUnbuffered || TakesRanges(batch.operation) ||
      batch.operation == Operation::kFind || keys.empty() || keys.kind() != index.kind()) {
    return index.Execute(batch, stream);
  }
  if (keys.kind() == PhysicalType::kBytes) {
    return absl::UnimplementedError(
        "byte-string keys: only the unbuffered strategy is supported on a GPU");
  }
  const OnDevice on_device(index.device());
  return keys.kind() == PhysicalType::kU32
             ? AnswerInOrder(index, batch, keys.u32(), options, query_of, stream)
             : AnswerInOrder(index, batch, keys.u64(), options, query_of, stream);
}

}  // namespace cairn
