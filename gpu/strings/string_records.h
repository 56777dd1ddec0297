#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "cairn/types.h"
#include "gpu/runtime/device_memory.h"
#include "gpu/strings/string_tree.h"
#include "index/machine/aligned_buffer.h"

namespace cairn::gpu {

// What kernels read of StringRecords: the record of key i begins at unit at[i], or i * stride.
struct StringRecordsView {
  const uint64_t* units = nullptr;
  const uint32_t* at = nullptr;  // null where all are of `stride` units
  uint32_t stride = 0;
};

// The distinct keys of a run with their first row ids, in key order, in device memory: for each a
// record in units of eight bytes, as the machine's integers. The low half of the first is the row
// id, the high half the key's length in bytes; then the key, zeros behind its end.
class StringRecords {
 public:
  // Keys may have so many bytes, and all records together so many units.
  static constexpr uint64_t kMaxKeyBytes = (uint64_t{1} << 28) - 1;
  static constexpr uint64_t kMaxUnits = UINT32_MAX;
  // Units that may be read behind the last record, and say nothing.
  static constexpr size_t kReadableBehind = 32;

  // Unimplemented where keys, or all of them, are too long.
  static absl::Status CheckKeys(const DistinctStrings& keys);
  // Bytes of device memory for the records of these keys.
  static uint64_t BytesFor(const DistinctStrings& keys);

  // Copies the keys, with the row ids of their first positions, to the current device. Waits.
  // CheckKeys' error; ResourceExhausted where memory does not suffice. Throws std::bad_alloc.
  static absl::StatusOr<StringRecords> Upload(const DistinctStrings& keys,
                                              absl::Span<const RowId> row_ids, int threads,
                                              cudaStream_t stream);

  StringRecordsView view() const { return {units_.data(), at_.data(), stride_}; }
  // Where each record begins, in units, on the host, for whoever builds on them. Takes the array.
  AlignedBuffer<uint32_t> TakeBegins() { return std::move(begins_); }
  uint64_t memory_bytes() const { return units_.bytes() + at_.bytes(); }
  // Memory is freed behind all uses from now on.
  void Detach();

 private:
  DeviceBuffer<uint64_t> units_;
  DeviceBuffer<uint32_t> at_;
  uint32_t stride_ = 0;
  AlignedBuffer<uint32_t> begins_;
};

}  // namespace cairn::gpu
