#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "cairn/device.h"
#include "cairn/sorted_run.h"
#include "gpu/run/device_run.h"
#include "gpu/text/text_code.h"

namespace cairn::gpu {

// The structure that maps a key to its packed leaf.
enum class LeafDirectory : uint8_t {
  kAuto,    // the rank bitmap if the keys suit it, otherwise the tree
  kBitmap,  // RankBitmap
  kTree,    // KaryDirectory
};

struct PackedIndexOptions {
  LeafDirectory directory = LeafDirectory::kAuto;
  // Bits of a key to keep in leaves: 16, 32, 48 or 64, at most the key's; for 128-bit keys, 64 or
  // 128. 0: the least memory.
  int bits = 0;
  // Also keeps the row ids in a column, from which long ranges are copied twice as fast as from
  // leaves, for 4 bytes per entry. If keys repeat often, the column always exists.
  bool row_column = false;
};

// Packed leaves under a directory ("gpu:packed"). Keys and their row ids are stored together in
// lines of 64 bytes. The directory stays in the second-level cache, so a lookup reads one line from
// memory. If few entries repeat a key (MayHoldEntries), leaves hold all entries, as for distinct
// keys. Otherwise each key is in the leaves once, with its first row id, and all row ids are also
// kept in a column.
//
// Distinct keys that are distributed over their whole type take 7 to 8 bytes per entry with 32 bits
// and 11 to 13 with 64 bits; dense keys take less. If each key is in the leaves once, takes another
// 4 bytes per entry and 4 per distinct key.
//
// Builds and waits. Errors: ResourceExhausted, before the build starts, if leaves cannot fit
// (packed_size.h); InvalidArgument for more bits than the keys have; FailedPrecondition if kBitmap
// is required and the keys do not suit it.
template <typename Key>
absl::StatusOr<std::unique_ptr<DeviceIndex>> BuildPackedIndex(DeviceRun<Key> run,
                                                              const PackedIndexOptions& options,
                                                              cudaStream_t stream);

// The same for byte-string keys that can be encoded as integers of up to 128 bits; `code` covers
// all the run's keys. Leaves hold the integers, and the search kernel encodes queries. The memory
// is that of integer keys: of 64-bit keys if the code fits 64 bits; otherwise 23 to 28 bytes per
// entry, or 15 to 20 if there are few distinct high halves.
//
// Builds on up to `threads` threads of the host, and waits. Additional errors: DataLoss if the
// entries are not sorted. Throws std::bad_alloc.
absl::StatusOr<std::unique_ptr<DeviceIndex>> BuildPackedTextIndex(const SortedRun& run,
                                                                  const TextCode& code,
                                                                  const PackedIndexOptions& options,
                                                                  int threads, cudaStream_t stream);

}  // namespace cairn::gpu
