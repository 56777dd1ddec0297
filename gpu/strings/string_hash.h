#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "cairn/device.h"
#include "gpu/runtime/device_memory.h"
#include "gpu/strings/string_search.h"
#include "gpu/strings/string_tree.h"

namespace cairn::gpu {

// What lookups by hash read, in device memory (index/strings/pilot_table.h).
struct StringHashView {
  const uint8_t* pilots = nullptr;
  const uint32_t* slots = nullptr;  // the unit at which a record begins
  uint32_t buckets = 0;
  uint32_t part_slots = 0;
  uint64_t seed = 0;
  StringRecordsView records;
  size_t longest = 0;  // key, in bytes
};

// A perfect hash of distinct keys to their records, for lookups of whole keys: a lookup reads a
// pilot, which mostly stays in the second-level cache, a slot, and the record. Takes 5 bytes a key.
class StringHash {
 public:
  // The table's host memory is freed before this returns. `begins` are StringRecords'. None where
  // no seed that is tried gives a table, which takes keys that were made so. Waits. Throws
  // std::bad_alloc; ResourceExhausted where the device's memory does not suffice.
  static absl::StatusOr<std::optional<StringHash>> Build(const DistinctStrings& keys,
                                                         absl::Span<const uint32_t> begins,
                                                         int threads, cudaStream_t stream);
  // At most this much of the device's memory for so many keys.
  static uint64_t MostBytesFor(size_t keys);

  // `records` and `longest` are left to the caller.
  StringHashView view() const;
  uint64_t memory_bytes() const { return pilots_.bytes() + slots_.bytes(); }
  // Memory is freed behind all uses from now on.
  void Detach();

 private:
  DeviceBuffer<uint8_t> pilots_;
  DeviceBuffer<uint32_t> slots_;
  uint32_t part_slots_ = 0;
  uint64_t seed_ = 0;
};

// Enqueues the search for a batch of keys of bytes; the answer is kRow or kFound.
absl::Status SearchStringHash(const StringHashView& hash, StringAnswer answer, DeviceKeys keys,
                              void* results, cudaStream_t stream);

}  // namespace cairn::gpu
