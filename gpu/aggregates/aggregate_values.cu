#include "gpu/aggregates/aggregate_values.h"

#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/tabulate_output_iterator.h>
#include <thrust/iterator/transform_iterator.h>

#include <type_traits>

#include "gpu/aggregates/segment_scan.cuh"
#include "gpu/runtime/cuda_status.h"
#include "gpu/runtime/device_algorithms.cuh"
#include "gpu/runtime/launch.h"
#include "index/machine/status_macros.h"

namespace cairn::gpu {
namespace {

// A column as kernels read it.
struct ColumnReader {
  DataType type;
  const void* values;

  explicit ColumnReader(const DeviceColumn& column) : type(column.type()), values(column.data()) {}

  template <typename T>
  __device__ T At(size_t i) const {
    return static_cast<const T*>(values)[i];
  }
  // The integer as which the value is compared.
  __device__ uint64_t NumberAt(size_t i) const {
    switch (type) {
      case DataType::kU32:
        return At<uint32_t>(i);
      case DataType::kU64:
        return At<uint64_t>(i);
      case DataType::kI32:
        return static_cast<uint64_t>(int64_t{At<int32_t>(i)}) ^ kSign64;
      case DataType::kI64:
        return At<uint64_t>(i) ^ kSign64;
      case DataType::kF32: {
        const float value = At<float>(i);
        const uint32_t bits = value != value ? 0x7fc00000u : __float_as_uint(value);
        return (bits & 0x80000000u) != 0 ? uint32_t{~bits} : bits | 0x80000000u;
      }
      default: {
        const double value = At<double>(i);
        const uint64_t bits = value != value ? uint64_t{0x7ff8} << 48
                                             : static_cast<uint64_t>(__double_as_longlong(value));
        return (bits & kSign64) != 0 ? ~bits : bits | kSign64;
      }
    }
  }
  __device__ double DoubleAt(size_t i) const {
    return type == DataType::kF32 ? double{At<float>(i)} : At<double>(i);
  }

 private:
  static constexpr uint64_t kSign64 = uint64_t{1} << 63;
};

// Computes the minimum and maximum numbers over all threads, in least[0] and greatest[0].
__global__ void FindSpan(ColumnReader column, size_t size, unsigned long long* least,
                         unsigned long long* greatest) {
  unsigned long long low = ~0ull, high = 0;
  ForEachIndex(size, [&](size_t i) {
    const unsigned long long number = column.NumberAt(i);
    low = min(low, number);
    high = max(high, number);
  });
  for (int apart = 16; apart > 0; apart /= 2) {
    low = min(low, __shfl_xor_sync(0xffffffffu, low, apart));
    high = max(high, __shfl_xor_sync(0xffffffffu, high, apart));
  }
  if (threadIdx.x % 32 != 0 || low > high) return;
  atomicMin(least, low);
  atomicMax(greatest, high);
}

__global__ void FindGreatestRow(const RowId* row_ids, size_t size, RowId* greatest) {
  RowId high = 0;
  ForEachIndex(size, [&](size_t i) { high = max(high, row_ids[i]); });
  high = __reduce_max_sync(0xffffffffu, high);
  if (threadIdx.x % 32 == 0) atomicMax(greatest, high);
}

template <typename Value>
__global__ void WriteCodes(ColumnReader column, ColumnSurvey survey, bool below_greatest,
                           const RowId* row_ids, size_t size, Value* codes) {
  ForEachIndex(size, [=](size_t i) {
    if constexpr (std::is_same_v<Value, double>) {
      codes[i] = column.DoubleAt(row_ids[i]);
    } else {
      const uint64_t number = column.NumberAt(row_ids[i]);
      codes[i] =
          static_cast<Value>(below_greatest ? survey.greatest - number : number - survey.least);
    }
  });
}

template <typename Value, typename Sum>
struct Widen {
  const Value* codes;
  __device__ Sum operator()(size_t i) const { return codes[i]; }
};
template <typename Sum>
struct Add {
  __device__ Sum operator()(const Sum& a, const Sum& b) const { return a + b; }
};

// Entry i as a segment of its own.
template <typename Key, typename Value>
struct EntrySegment {
  const Key* keys;
  const Value* codes;
  __device__ Segments<Value> operator()(size_t i) const {
    return {codes[i], i == 0 || keys[i] != keys[i - 1] ? 1u : 0u};
  }
};
// Output of a scan over the segments: writes the combined value of a key at the key's last entry.
template <typename Key, typename Value>
struct LastOfKey {
  const Key* keys;
  size_t size;
  Value* reduced;
  __device__ void operator()(ptrdiff_t i, const Segments<Value>& up_to) const {
    const size_t next = static_cast<size_t>(i) + 1;
    if (next == size || keys[next] != keys[next - 1]) reduced[up_to.heads - 1] = up_to.value;
  }
};

template <typename Sum>
__global__ void WriteRecords(const Position* first_entry, size_t size, const Sum* sums,
                             KeyRecord* records) {
  ForEachIndex(size, [=](size_t d) {
    const Position first = first_entry[d];
    const Sum sum = sums[first];
    KeyRecord record = {{static_cast<uint32_t>(sum), static_cast<uint32_t>(sum >> 32), 0}, first};
    if constexpr (sizeof(Sum) == 16) record.sum[2] = static_cast<uint32_t>(sum >> 64);
    records[d] = record;
  });
}

}  // namespace

absl::StatusOr<ColumnSurvey> SurveyColumn(const DeviceColumn& column, cudaStream_t stream) {
  DeviceBuffer<unsigned long long> span;
  RETURN_IF_ERROR(Resize(&span, 2, stream));
  CAIRN_RETURN_IF_CUDA_FAILS(cudaMemsetAsync(span.data(), 0xff, 8, stream));
  CAIRN_RETURN_IF_CUDA_FAILS(cudaMemsetAsync(span.data() + 1, 0, 8, stream));
  CAIRN_RETURN_IF_LAUNCH_FAILS("FindSpan", SimpleShape(column.size()), stream, FindSpan,
                               ColumnReader(column), column.size(), span.data(), span.data() + 1);
  ColumnSurvey survey;
  ASSIGN_OR_RETURN(survey.least, ReadBack(span.data(), stream));
  ASSIGN_OR_RETURN(survey.greatest, ReadBack(span.data() + 1, stream));
  return survey;
}

absl::StatusOr<RowId> GreatestRow(const RowId* row_ids, size_t size, cudaStream_t stream) {
  DeviceBuffer<RowId> greatest;
  RETURN_IF_ERROR(Resize(&greatest, 1, stream));
  CAIRN_RETURN_IF_CUDA_FAILS(cudaMemsetAsync(greatest.data(), 0, greatest.bytes(), stream));
  CAIRN_RETURN_IF_LAUNCH_FAILS("FindGreatestRow", SimpleShape(size), stream, FindGreatestRow,
                               row_ids, size, greatest.data());
  return ReadBack(greatest.data(), stream);
}

template <typename Value>
absl::StatusOr<DeviceBuffer<Value>> GatherCodes(const DeviceColumn& column,
                                                const ColumnSurvey& survey, ValueCode code,
                                                const RowId* row_ids, size_t size,
                                                cudaStream_t stream) {
  DeviceBuffer<Value> codes;
  RETURN_IF_ERROR(Resize(&codes, size, stream));
  CAIRN_RETURN_IF_LAUNCH_FAILS("WriteCodes", SimpleShape(size), stream, WriteCodes<Value>,
                               ColumnReader(column), survey, code == ValueCode::kBelowGreatest,
                               row_ids, size, codes.data());
  return codes;
}

template <typename Value, typename Sum>
absl::StatusOr<DeviceBuffer<Sum>> SumsBefore(const Value* codes, size_t size, cudaStream_t stream) {
  DeviceBuffer<Sum> sums;
  RETURN_IF_ERROR(Resize(&sums, size + 1, stream));
  CAIRN_RETURN_IF_CUDA_FAILS(cudaMemsetAsync(sums.data(), 0, sizeof(Sum), stream));
  const auto wide = thrust::make_transform_iterator(thrust::make_counting_iterator(size_t{0}),
                                                    Widen<Value, Sum>{codes});
  RETURN_IF_ERROR(InclusiveScan(wide, sums.data() + 1, size, Add<Sum>(), stream));
  return sums;
}

template <typename Key, typename Value>
absl::StatusOr<DeviceBuffer<Value>> ReduceByKey(const Key* keys, const Value* codes, size_t size,
                                                size_t distinct, cudaStream_t stream) {
  DeviceBuffer<Value> reduced;
  RETURN_IF_ERROR(Resize(&reduced, distinct, stream));
  const auto entries = thrust::make_transform_iterator(thrust::make_counting_iterator(size_t{0}),
                                                       EntrySegment<Key, Value>{keys, codes});
  const auto last =
      thrust::make_tabulate_output_iterator(LastOfKey<Key, Value>{keys, size, reduced.data()});
  RETURN_IF_ERROR(InclusiveScan(entries, last, size, JoinSegments<Value>(), stream));
  return reduced;
}

template <typename Sum>
absl::StatusOr<DeviceBuffer<KeyRecord>> MakeRecords(const Position* first_entry, size_t distinct,
                                                    const Sum* sums, cudaStream_t stream) {
  DeviceBuffer<KeyRecord> records;
  RETURN_IF_ERROR(Resize(&records, distinct + 1, stream));
  CAIRN_RETURN_IF_LAUNCH_FAILS("WriteRecords", SimpleShape(distinct + 1), stream, WriteRecords<Sum>,
                               first_entry, distinct + 1, sums, records.data());
  return records;
}

#define CAIRN_INSTANTIATE(Value)                            \
  template absl::StatusOr<DeviceBuffer<Value>> GatherCodes( \
      const DeviceColumn&, const ColumnSurvey&, ValueCode, const RowId*, size_t, cudaStream_t)
CAIRN_INSTANTIATE(uint32_t);
CAIRN_INSTANTIATE(uint64_t);
CAIRN_INSTANTIATE(double);
#undef CAIRN_INSTANTIATE
#define CAIRN_INSTANTIATE(Value, Sum)                                                        \
  template absl::StatusOr<DeviceBuffer<Sum>> SumsBefore(const Value*, size_t, cudaStream_t); \
  template absl::StatusOr<DeviceBuffer<KeyRecord>> MakeRecords(const Position*, size_t,      \
                                                               const Sum*, cudaStream_t)
CAIRN_INSTANTIATE(uint32_t, uint64_t);
CAIRN_INSTANTIATE(uint64_t, WideKey);
#undef CAIRN_INSTANTIATE
#define CAIRN_INSTANTIATE(Key, Value)                                                        \
  template absl::StatusOr<DeviceBuffer<Value>> ReduceByKey(const Key*, const Value*, size_t, \
                                                           size_t, cudaStream_t)
CAIRN_INSTANTIATE(uint32_t, uint64_t);
CAIRN_INSTANTIATE(uint64_t, uint64_t);
CAIRN_INSTANTIATE(uint32_t, double);
CAIRN_INSTANTIATE(uint64_t, double);
#undef CAIRN_INSTANTIATE

}  // namespace cairn::gpu
