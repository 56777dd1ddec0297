#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "cairn/device.h"
#include "cairn/sorted_run.h"

namespace cairn::gpu {

struct StringIndexOptions {
  // Also builds a StringHash, for FindFirst and Contains.
  bool hash = false;
};

// A tree of partial keys over records in key order ("gpu:partial_key"), for byte-string keys of any
// length. It is like the CPU's (cpu_fast/strings/partial_key_tree.h), but with nodes of 64 bytes
// that four lanes search, under a table of up to 20 bits. A query descends to the only record that
// can have its key, and compares. If the key of a bound does not exist, the query descends again,
// mostly within the same leaf. It uses the bits that it shares with the record's key.
//
// Records have the distinct keys with their first row ids. If keys repeat, positions and row ids
// are also stored in columns. Takes a key's bytes rounded up to a multiple of 8, plus 8, plus 4 if
// keys differ in length, plus 4 to 6 for the tree. If keys repeat, another 4 bytes per distinct key
// and 4 per entry. The hash takes 5 bytes per key. A batch of bounds needs 12 bytes of scratch
// memory per query, for queries that have to be searched again.
//
// Builds on up to `threads` threads of the host, and waits. Errors: Unimplemented if keys are not
// byte strings, have 256 MB or more, or total 32 GB; DataLoss if they are not sorted;
// ResourceExhausted if device or host memory runs out.
absl::StatusOr<std::unique_ptr<DeviceIndex>> BuildStringIndex(const SortedRun& run,
                                                              const StringIndexOptions& options,
                                                              int threads, cudaStream_t stream);

// Bytes of device memory.
struct StringIndexBytes {
  uint64_t building = 0;  // maximum during the build
  uint64_t resident = 0;  // maximum after the build
};
// An upper bound of the memory that BuildStringIndex needs. For most sets of keys, which have small
// trees, the need is about 20 bytes per key lower. Errors: Unimplemented and DataLoss like
// BuildStringIndex. Reads all keys. Throws std::bad_alloc.
absl::StatusOr<StringIndexBytes> BoundStringIndex(const SortedRun& run,
                                                  const StringIndexOptions& options, int threads);

}  // namespace cairn::gpu
