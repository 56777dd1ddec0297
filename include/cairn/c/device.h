#pragma once

#include <stddef.h>
#include <stdint.h>

#include "cairn/c.h"

// The device part of the C API (cairn/c.h): indexes whose keys and results are in the memory of one
// GPU (cairn/device.h). Batches are DLPack tensors, in the layout of DLPack 0.2 to 1.x; a caller
// that creates them includes dlpack.h. Calls enqueue their work on `stream`, a cudaStream_t (NULL:
// the default stream), and return, without a copy and without waiting, unless their comment says
// "Waits". Tensors are borrowed: their data must stay valid until the stream has completed the
// work, and their deleters are not called. Without a device, or in a library built without CUDA,
// cairn_device_open returns CAIRN_UNAVAILABLE with the reason.
//
// Tensors must have one dimension, be contiguous, be aligned to their elements, and be in the
// memory of the device of the index (kDLCUDA or kDLCUDAManaged). CAIRN_INVALID_ARGUMENT for any
// other, naming the tensor and the expected and actual values. Elements of results may be signed
// integers of the same width. An index may be used by any number of threads and streams, and may be
// closed while its work is enqueued.

struct DLManagedTensor;

#ifdef __cplusplus
extern "C" {
#endif

// Sets *count to the number of devices that this process can use. CAIRN_UNAVAILABLE, with the
// reason, if there is none.
CAIRN_C_MUST_USE cairn_error* cairn_devices(int32_t* count);

typedef struct cairn_device_index cairn_device_index;

// Copies the current entries of the index to the device with ordinal `device`, and builds the
// structure named by a factory string over them. `structure` NULL: "gpu:auto". Waits. `index` may
// be closed afterwards. CAIRN_UNIMPLEMENTED for a sharded index.
CAIRN_C_MUST_USE cairn_error* cairn_device_open(const cairn_index* index, const char* structure,
                                                int32_t device, cairn_device_index** device_index);
CAIRN_C_API void cairn_device_close(cairn_device_index* index);
CAIRN_C_API int32_t cairn_device_kind(const cairn_device_index* index);  // CAIRN_KIND_…
CAIRN_C_API uint64_t cairn_device_entries(const cairn_device_index* index);
CAIRN_C_API uint64_t cairn_device_memory_bytes(const cairn_device_index* index);

// Physical keys (cairn/key_codec.h); the physical keys of one u32 or u64 part are its values. The
// field `size` is the size of the structure.
typedef struct cairn_device_keys {
  size_t size;
  // Integer keys: uint32 or uint64. Byte strings: their contiguous bytes (uint8), in memory that
  // can be read in aligned words of 4 bytes.
  const struct DLManagedTensor* keys;
  // Byte strings: keys + 1 offsets (uint32 or int32), where each key begins and the last one ends.
  const struct DLManagedTensor* offsets;
} cairn_device_keys;
CAIRN_C_INIT(cairn_device_keys)

// As cairn_ranges, but with full keys. For CAIRN_BETWEEN, one of `lower` and `upper` may be NULL:
// all ranges are then unbounded at that end. CAIRN_EQUAL and CAIRN_PREFIX use only `lower`.
typedef struct cairn_device_ranges {
  size_t size;
  int32_t kind;
  int32_t lower_bound;
  int32_t upper_bound;
  int32_t reserved;  // 0
  const cairn_device_keys* lower;
  const cairn_device_keys* upper;
} cairn_device_ranges;
CAIRN_C_INIT(cairn_device_ranges)

// Sets row_ids (uint32, one per key) to the lowest row of each key, or to CAIRN_NO_ROW.
CAIRN_C_MUST_USE cairn_error* cairn_device_find_first(const cairn_device_index* index,
                                                      const cairn_device_keys* keys,
                                                      const struct DLManagedTensor* row_ids,
                                                      void* stream);
// Sets found (bool or uint8, one per key) to whether any row has each key.
CAIRN_C_MUST_USE cairn_error* cairn_device_contains(const cairn_device_index* index,
                                                    const cairn_device_keys* keys,
                                                    const struct DLManagedTensor* found,
                                                    void* stream);
// Sets counts (uint64, one per range) to the number of entries in each range.
CAIRN_C_MUST_USE cairn_error* cairn_device_count(const cairn_device_index* index,
                                                 const cairn_device_ranges* ranges,
                                                 const struct DLManagedTensor* counts,
                                                 void* stream);

// First of two steps to find all rows of each range (for CAIRN_EQUAL, of each key); the caller
// allocates memory between them. Sets begin (uint32, one per range) to the position of the first
// entry of each range, and offsets (uint64, ranges + 1) to where its rows belong. The last offset
// is the number of rows. At most `limit` rows per range; 0: no limit.
CAIRN_C_MUST_USE cairn_error* cairn_device_plan(const cairn_device_index* index,
                                                const cairn_device_ranges* ranges, uint64_t limit,
                                                int32_t order, const struct DLManagedTensor* begin,
                                                const struct DLManagedTensor* offsets,
                                                void* stream);
// Second step: writes the rows to row_ids (uint32), whose size must be the last offset.
CAIRN_C_MUST_USE cairn_error* cairn_device_copy_rows(const cairn_device_index* index,
                                                     const struct DLManagedTensor* begin,
                                                     const struct DLManagedTensor* offsets,
                                                     int32_t order,
                                                     const struct DLManagedTensor* row_ids,
                                                     void* stream);

// Both steps in one call, for a buffer of given size. Offsets are those of cairn_device_plan, for
// all rows. Rows that do not fit in row_ids (uint32) are omitted.
CAIRN_C_MUST_USE cairn_error* cairn_device_scan(const cairn_device_index* index,
                                                const cairn_device_ranges* ranges, uint64_t limit,
                                                int32_t order,
                                                const struct DLManagedTensor* offsets,
                                                const struct DLManagedTensor* row_ids,
                                                void* stream);

#ifdef __cplusplus
}
#endif
