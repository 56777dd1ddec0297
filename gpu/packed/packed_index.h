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

// What maps a key to its packed leaf.
enum class LeafDirectory : uint8_t {
  kAuto,    // the rank bitmap where the keys suit it, else the tree
  kBitmap,  // RankBitmap
  kTree,    // KaryDirectory
};

struct PackedIndexOptions {
  LeafDirectory directory = LeafDirectory::kAuto;
  // Bits of a key that leaves keep: 16, 32, 48 or 64, at most the key's, and of one of 128 bits 64
  // or all. 0: what takes least memory.
  int bits = 0;
  // Keeps the row ids in a column too, from which long ranges are copied twice as fast as from
  // leaves, for 4 bytes an entry. Where keys repeat, there is one anyway.
  bool row_column = false;
};

// Packed leaves under a directory ("gpu:packed"): keys and row ids side by side in lines of 64
// bytes, and a directory that stays in the second-level cache, so that a lookup reads one line from
// memory. Where up to a sixteenth of the entries repeat a key, none more than 32 times, leaves hold
// all entries, as they do distinct ones. Where more do, keys are in the leaves once, with their
// first row id; row ids are then kept in a column besides.
//
// Takes 7 to 8 bytes an entry of 32-bit keys and 11 to 13 of 64-bit keys where keys are distinct
// and spread over their type, less where they are dense; besides the leaves, 4 bytes an entry and 4
// a key where keys are in them once.
//
// Builds and waits. ResourceExhausted, before anything is built, where leaves cannot fit
// (packed_size.h). InvalidArgument for bits that the keys do not have; FailedPrecondition where
// kBitmap is asked for and the keys do not suit it.
template <typename Key>
absl::StatusOr<std::unique_ptr<DeviceIndex>> BuildPackedIndex(DeviceRun<Key> run,
                                                              const PackedIndexOptions& options,
                                                              cudaStream_t stream);

// The same for keys of bytes that have numbers of up to 128 bits: `code` is of all the run's keys.
// Leaves are of the numbers, and queries become numbers in the kernel that searches. Takes what
// numbers take, of 64 bits where those hold the code's, else 23 to 28 bytes an entry, or 15 to 20
// where their high halves are few.
//
// Builds on up to `threads` threads of the host, and waits. Besides those errors DataLoss where the
// entries are not in order. Throws std::bad_alloc.
absl::StatusOr<std::unique_ptr<DeviceIndex>> BuildPackedTextIndex(const SortedRun& run,
                                                                  const TextCode& code,
                                                                  const PackedIndexOptions& options,
                                                                  int threads, cudaStream_t stream);

}  // namespace cairn::gpu
