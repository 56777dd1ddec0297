#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "cairn/device.h"
#include "cairn/sorted_run.h"

namespace cairn::gpu {

struct StringIndexOptions {
  // A StringHash for FindFirst and Contains besides the tree.
  bool hash = false;
};

// A tree of partial keys over records in key order ("gpu:partial_key"), for keys of bytes of any
// length: as the CPU's (cpu_fast/strings/partial_key_tree.h), with nodes of 64 bytes that four
// lanes search, under a table of up to 20 bits. A query goes down to the one record that may be its
// key, and compares. A bound that is not there goes down again by the bits that it shares with that
// record's key, mostly within the leaf that it is in.
//
// Records are of distinct keys with their first row ids; where keys repeat, positions and row ids
// stand in columns besides. Takes a key's bytes rounded up to 8, 8 more, 4 where keys are of
// different lengths, and 4 to 6 for the tree; where keys repeat, 4 bytes a key and 4 an entry; for
// the hash 5 a key. A batch of bounds takes 12 bytes of scratch a query, for those that have to be
// searched again.
//
// Builds on up to `threads` threads of the host, and waits. Unimplemented for keys that are not
// bytes, that are 256 MB or more, or that come to 32 GB; DataLoss where they are not in order;
// ResourceExhausted where memory, the device's or the host's, does not suffice.
absl::StatusOr<std::unique_ptr<DeviceIndex>> BuildStringIndex(const SortedRun& run,
                                                              const StringIndexOptions& options,
                                                              int threads, cudaStream_t stream);

// Bytes of device memory.
struct StringIndexBytes {
  uint64_t building = 0;  // at most, while it is built
  uint64_t resident = 0;  // likewise, afterwards
};
// What BuildStringIndex takes, bounded: never more, and for most sets of keys some 20 bytes a key
// less, as their trees are small. Unimplemented and DataLoss as there. Reads all keys. Throws
// std::bad_alloc.
absl::StatusOr<StringIndexBytes> BoundStringIndex(const SortedRun& run,
                                                  const StringIndexOptions& options, int threads);

}  // namespace cairn::gpu
