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

// The data that lookups by hash read, in device memory (index/strings/pilot_table.h).
struct StringHashView {
  const uint8_t* pilots = nullptr;
  const uint32_t* slots = nullptr;  // the unit at which a record begins
  uint32_t buckets = 0;
  uint32_t part_slots = 0;
  uint64_t seed = 0;
  StringRecordsView records;
  size_t longest = 0;  // length of the longest key, in bytes
};

// A perfect hash from distinct keys to their records, for full-key lookups. A lookup reads a pilot,
// which is mostly in the second-level cache, a slot, and the record. Takes 5 bytes per key.
class StringHash {
 public:
  // Builds the hash. The table's host memory is freed before this returns. `begins` are those of
  // StringRecords. Returns nullopt if no tried seed gives a table, which happens only with
  // adversarial keys. Waits. Errors: ResourceExhausted if device memory runs out. Throws
  // std::bad_alloc.
  static absl::StatusOr<std::optional<StringHash>> Build(const DistinctStrings& keys,
                                                         absl::Span<const uint32_t> begins,
                                                         int threads, cudaStream_t stream);
  // Upper bound of the device memory for `keys` keys.
  static uint64_t MostBytesFor(size_t keys);

  // The caller must set `records` and `longest`.
  StringHashView view() const;
  uint64_t memory_bytes() const { return pilots_.bytes() + slots_.bytes(); }
  // From now on, the memory is freed after all uses.
  void Detach();

 private:
  DeviceBuffer<uint8_t> pilots_;
  DeviceBuffer<uint32_t> slots_;
  uint32_t part_slots_ = 0;
  uint64_t seed_ = 0;
};

// Enqueues the search for a batch of byte-string keys; `answer` must be kRow or kFound.
absl::Status SearchStringHash(const StringHashView& hash, StringAnswer answer, DeviceKeys keys,
                              void* results, cudaStream_t stream);

}  // namespace cairn::gpu
