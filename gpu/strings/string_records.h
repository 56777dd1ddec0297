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

// The part of StringRecords that kernels read: the record of key i begins at unit at[i], or i *
// stride.
struct StringRecordsView {
  const uint64_t* units = nullptr;
  const uint32_t* at = nullptr;  // null if all records have `stride` units
  uint32_t stride = 0;
};

// The distinct keys of a run with their first row ids, in key order, in device memory. Each record
// consists of eight-byte units, native integers. The low half of the first unit is the row id, its
// high half the key's length in bytes. The key follows, zero-padded past its end.
class StringRecords {
 public:
  // Maximum bytes of a key, and maximum units of all records together.
  static constexpr uint64_t kMaxKeyBytes = (uint64_t{1} << 28) - 1;
  static constexpr uint64_t kMaxUnits = UINT32_MAX;
  // Units after the last record that are readable but undefined.
  static constexpr size_t kReadableBehind = 32;

  // Unimplemented if a key, or all keys together, are too long.
  static absl::Status CheckKeys(const DistinctStrings& keys);
  // Bytes of device memory for the records of these keys.
  static uint64_t BytesFor(const DistinctStrings& keys);

  // Copies the keys, with the row ids of their first positions, to the current device. Waits.
  // Errors: those of CheckKeys; ResourceExhausted if memory runs out. Throws std::bad_alloc.
  static absl::StatusOr<StringRecords> Upload(const DistinctStrings& keys,
                                              absl::Span<const RowId> row_ids, int threads,
                                              cudaStream_t stream);

  StringRecordsView view() const { return {units_.data(), at_.data(), stride_}; }
  // The offset of each record in units, in host memory, for structures built over the records.
  // Moves the array out.
  AlignedBuffer<uint32_t> TakeBegins() { return std::move(begins_); }
  uint64_t memory_bytes() const { return units_.bytes() + at_.bytes(); }
  // From now on, the memory is freed after all uses.
  void Detach();

 private:
  DeviceBuffer<uint64_t> units_;
  DeviceBuffer<uint32_t> at_;
  uint32_t stride_ = 0;
  AlignedBuffer<uint32_t> begins_;
};

}  // namespace cairn::gpu
